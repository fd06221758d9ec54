"""The bucket model as a tower whose graphs are known: its evaporation feels the soil only below a critical moisture.

Two rules cut its soil moisture into regimes: the critical moisture itself, which nobody knows of a real tower, and the
quantiles that the towers are cut at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from stages.accepted.tower_series import Series
from stages.causal.errors import CausalDataError
from stages.causal.simulators import SoilBucketSimulation, simulate_soil_bucket
from stages.runtime import random_numbers
from stages.systems.endogenous_context.estimate import METHODS, Case, estimate
from stages.systems.endogenous_context.regimes import Regimes, regimes_by_quantile

if TYPE_CHECKING:
    from stages.systems.endogenous_context.train import Search, Train

#: Soil moisture below which evaporation falls, mm.
CRITICAL = 80.0
#: The bucket's links within a day, from cause to effect.
WITHIN_A_DAY = (
    *(("P", "SWC"), ("LE", "SWC"), ("SW_IN", "LE"), ("SW_IN", "H")),
    *(("LE", "H"), ("SW_IN", "TA"), ("SW_IN", "VPD"), ("TA", "VPD")),
)


class Twin(NamedTuple):
    """A task: one simulated series, by every rule and method."""

    settings: Search
    quantiles: Sequence[float]
    levels: Sequence[str]
    steps: int
    seed: int
    repeat: int

    def run(self) -> pl.DataFrame:
        """Tested links with the truth beside them.

        Returns
        -------
        polars.DataFrame
            rule, repeat, method, level, source, target, lag (days), value, p, q, samples, low, high, mark, truth,
            truth_mark. A method that fails has no rows.

        Raises
        ------
        CausalDataError
            Every method fails: the series are too short.
        """
        rng = random_numbers(self.seed, "twin", str(self.repeat))
        bucket = simulate_soil_bucket(rng, steps=self.steps, tau_max=self.settings.tau_max, critical=CRITICAL)
        every = np.ones(self.steps, np.bool_)
        soil_T = bucket.data_TN[:, bucket.names.index("SWC")]
        rules = {
            "critical": Regimes("SWC", "mm", (self.levels[0], self.levels[-1]), np.array([CRITICAL])),
            "quantile": regimes_by_quantile(
                soil_T, every, quantiles=self.quantiles, levels=self.levels, variable="SWC", unit="mm"
            ),
        }
        parts, failure = [], ""
        for rule, regimes in rules.items():
            series = Series(list(bucket.names), bucket.data_TN, ~every, {})
            case = Case(
                "bucket model", series, regimes.classify(soil_T), regimes.levels, np.zeros(self.steps, np.int64)
            )
            truth = pl.concat(
                truth_table(bucket, limited=regimes.bounds(number)[0] < CRITICAL).with_columns(level=pl.lit(level))
                for number, level in enumerate(regimes.levels)
            )
            for method in METHODS:
                found = estimate(case, method, self.settings)
                failure = found.failure or failure
                if found.links is not None:
                    label = [pl.lit(rule).alias("rule"), pl.lit(self.repeat).alias("repeat")]
                    parts.append(
                        found.links.join(truth, on=["level", "source", "target", "lag"], how="left").select(
                            *label, pl.lit(method).alias("method"), pl.all()
                        )
                    )
        if not parts:
            raise CausalDataError(f"bucket model of {self.steps} days, no method has a graph: {failure}")
        return pl.concat(parts)


def twins(train: Train, seed: int) -> list[Twin]:
    """The simulated series of one seed."""
    context = train.context
    return [
        Twin(train.search, context.quantiles, context.levels, train.twins.steps, seed, repeat)
        for repeat in range(train.twins.repeats)
    ]


def truth_table(bucket: SoilBucketSimulation, *, limited: bool) -> pl.DataFrame:
    """The bucket's graph while soil moisture limits evaporation on some days of a regime, or on none.

    Returns
    -------
    polars.DataFrame
        source, target, lag, truth, truth_mark (``-->``, ``<--`` or empty); a pair at lag 0 in the order of the names.
    """
    truth_NNL = bucket.truth_NNL if limited else bucket.truth_wet_NNL
    rows = []
    for i, j, lag in np.ndindex(truth_NNL.shape):
        if lag == 0 and i >= j:
            continue
        source, target = bucket.names[i], bucket.names[j]
        truth = bool(truth_NNL[i, j, lag])
        backward = lag == 0 and (target, source) in WITHIN_A_DAY
        rows.append((source, target, lag, truth, ("<--" if backward else "-->") if truth else ""))
    return pl.DataFrame(rows, schema=["source", "target", "lag", "truth", "truth_mark"], orient="row")
