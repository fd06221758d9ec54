"""A tower's means as the series a causal graph is estimated on.

Shape suffixes: T time on a regular clock, N variable, Y year.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import xarray as xr
from numpy.typing import NDArray

from stages import artifacts
from stages.accepted.land_atmosphere import open_tower
from stages.accepted.series_config import DOMAIN, SeriesConfig
from stages.causal.anomalies import outside_season, seasonal_anomalies
from stages.runtime import progress


@dataclass(frozen=True)
class Series:
    """Seasonal anomalies of one tower in one sample of its years.

    Attributes
    ----------
    names
        The variables, in the order of the columns.
    anomalies_TN
        Anomalies in each variable's unit, NaN where missing, shape (time, variable).
    unused_T
        True where a time may be no target: outside the season, or outside the years of the sample.
    dropped
        Variables left out, each with its reason.
    """

    names: list[str]
    anomalies_TN: NDArray[np.float64]
    unused_T: NDArray[np.bool_]
    dropped: dict[str, str]

    @property
    def days(self) -> int:
        """Steps that may be targets and hold at least one value."""
        return int((~self.unused_T & np.isfinite(self.anomalies_TN).any(axis=1)).sum())

    def without_scarcest(self, why: str, keep: str | None = None) -> Series:
        """The series without the variable that has fewest values in the season, other than one that must stay."""
        values_N = np.isfinite(self.anomalies_TN[~self.unused_T]).sum(axis=0)
        scarcest = min((k for k, name in enumerate(self.names) if name != keep), key=lambda k: int(values_N[k]))
        return Series(
            [name for name in self.names if name != self.names[scarcest]],
            np.delete(self.anomalies_TN, scarcest, axis=1),
            self.unused_T,
            self.dropped | {self.names[scarcest]: why},
        )


def prepare(
    dataset: xr.Dataset,
    years: NDArray[np.integer] | None,
    *,
    variables: Sequence[str],
    months: Sequence[int],
    harmonics: int,
    min_days: int,
) -> Series:
    """Anomalies of the warm season of some years.

    A variable with too few values in the sample is left out, and named: it does not shrink the sample of the others.

    Parameters
    ----------
    dataset
        Accepted means of one tower on a regular ``time`` axis, NaN where missing.
    years
        The years of the sample; None means all. Other years are neither targets nor part of the seasonal fit.
    variables
        Names wanted, in order.
    months
        Months of the season, 1 to 12.
    harmonics
        Harmonics of the seasonal cycle.
    min_days
        Fewest values a variable needs in the season of the sample.
    """
    time_T = dataset["time"]
    year_T = time_T.dt.year.to_numpy()
    inside_T = np.ones(year_T.shape, bool) if years is None else np.isin(year_T, years)
    unused_T = outside_season(time_T.dt.month.to_numpy(), months) | ~inside_T
    day_T = (time_T.to_numpy() - np.datetime64("2000-01-01")) / np.timedelta64(1, "D")
    columns, names, dropped = [], [], {}
    for name in variables:
        if name not in dataset:
            dropped[name] = "not measured"
            continue
        values_T = np.where(inside_T, dataset[name].to_numpy().astype(np.float64), np.nan)
        found = int(np.isfinite(values_T[~unused_T]).sum())
        if found < min_days:
            dropped[name] = f"{found} values in the season; {min_days} needed"
            continue
        if np.nanmin(values_T[~unused_T]) == np.nanmax(values_T[~unused_T]):
            dropped[name] = "constant in the season"
            continue
        names.append(name)
        columns.append(seasonal_anomalies(values_T, day_T, harmonics=harmonics, fit_T=inside_T))
    anomalies_TN = np.column_stack(columns) if columns else np.empty((year_T.size, 0))
    return Series(names, anomalies_TN, unused_T, dropped)


@dataclass(frozen=True)
class Tower:
    """One tower's accepted means, and which of its years are held out.

    Attributes
    ----------
    site
        Its key in params.yaml.
    dataset
        Accepted means on a regular ``time`` axis.
    training_Y, test_Y
        Years to learn from (training and validation), and years held out; the latter are none in a short record.
    """

    site: str
    dataset: xr.Dataset
    training_Y: NDArray[np.int64]
    test_Y: NDArray[np.int64]

    def series(self, config: SeriesConfig, years: NDArray[np.int64] | None = None) -> Series:
        """Anomalies of all years, or of some of them, where a variable needs a third of ``min_days``."""
        return prepare(
            self.dataset,
            years,
            variables=config.variables,
            months=config.months,
            harmonics=config.harmonics,
            min_days=config.min_days if years is None else config.min_days // 3,
        )


def towers(aggregation: str) -> Iterator[Tower]:
    """Each tower that has the aggregation, in the order of their keys."""
    folder = artifacts.validated(DOMAIN)
    splits = artifacts.read_table(folder / "splits.parquet").collect()
    years = splits.with_columns(year=pl.col("record_id").str.split("/").list.last().str.head(4).cast(pl.Int64))
    sites = years["group"].unique().sort().to_list()
    for site in progress(sites, "towers", unit="towers"):
        dataset = open_tower(Path(artifacts.ingested(DOMAIN, site)), folder / "verdict.parquet", aggregation)
        if dataset is None:  # coarser than the aggregation
            continue
        of_site = years.filter(pl.col("group") == site)
        held_out = pl.col("by_year") == "test"
        rest, test = (of_site.filter(chosen)["year"].unique().sort() for chosen in (~held_out, held_out))
        yield Tower(site, dataset, rest.to_numpy(), test.to_numpy())


def tower_samples(config: SeriesConfig) -> Iterator[tuple[str, str, Series]]:
    """Each tower in each sample of its years: all; training and validation; test (held out)."""
    for tower in towers(config.aggregation):
        for sample, years in (("all", None), ("train", tower.training_Y), ("test", tower.test_Y)):
            if years is None or tower.test_Y.size:  # one or two years: nothing is held out
                yield tower.site, sample, tower.series(config, years)
