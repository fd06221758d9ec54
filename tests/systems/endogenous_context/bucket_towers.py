"""Towers made of the bucket model, for tests: daily records of some years, the season May to September."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stages.accepted.tower_series import Tower
from stages.causal.simulators import simulate_soil_bucket
from stages.systems.endogenous_context.study_config import Study
from stages.systems.endogenous_context.train import Context, Train, Twins

TRAIN = Train(
    variables=["P", "SWC", "LE", "SW_IN"],
    aggregation="daily",
    months=[5, 6, 7, 8, 9],
    harmonics=0,
    tau_max=1,
    context=Context(quantiles=[0.5], levels=["dry", "wet"]),
    pc_alpha=0.05,
    alpha=0.05,
    min_days=30,
    min_samples=30,
    resampled=["A"],
    resamples=10,
    block=10,
    twins=Twins(repeats=2, steps=300),
    study=Study(repeats=2, steps=[300], variables=[4], example_steps=300, persistence=0.5, density=0.4, alpha=0.05),
)


def bucket_tower(site: str, *, years: int, seed: int = 0) -> Tower:
    """A tower that measures the variables of `TRAIN`, with a last year held out where there are three."""
    first = 2010
    time_T = np.arange(np.datetime64(f"{first}-01-01"), np.datetime64(f"{first + years}-01-01"), np.timedelta64(1, "D"))
    bucket = simulate_soil_bucket(np.random.default_rng(seed), steps=time_T.size)
    columns = dict(zip(bucket.names, bucket.data_TN.T, strict=True))
    dataset = xr.Dataset(
        {name: ("time", columns[name], {"units": "mm" if name == "SWC" else "1"}) for name in TRAIN.variables},
        coords={"time": time_T.astype("datetime64[ns]")},
    )
    year_Y = np.arange(first, first + years)
    held_out = 1 if years > 2 else 0
    return Tower(site, dataset, year_Y[: years - held_out], year_Y[years - held_out :])


def without(tower: Tower, *variables: str) -> Tower:
    """The tower without some variables."""
    return Tower(tower.site, tower.dataset.drop_vars(variables), tower.training_Y, tower.test_Y)
