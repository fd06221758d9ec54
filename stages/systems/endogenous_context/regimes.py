"""Soil-moisture regimes: which level of soil moisture each day belongs to.

Shape suffixes: T time on a regular clock, K threshold, from the driest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.causal.errors import CausalDataError

#: The level of a day without a value.
UNKNOWN = -1


@dataclass(frozen=True)
class Regimes:
    """Levels of one variable, cut at thresholds.

    Attributes
    ----------
    variable, unit
        What is cut, and the unit of the thresholds.
    levels
        Names of the levels, from the lowest values to the highest.
    threshold_K
        Upper bounds of all levels but the last; a value at a threshold belongs to the level below it.
    """

    variable: str
    unit: str
    levels: tuple[str, ...]
    threshold_K: NDArray[np.float64]

    def classify(self, values_T: NDArray[np.float64]) -> NDArray[np.int64]:
        """Level of each time, 0 the lowest; `UNKNOWN` where the value is missing."""
        level_T = np.searchsorted(self.threshold_K, values_T, side="left").astype(np.int64)
        return np.where(np.isfinite(values_T), level_T, UNKNOWN)

    def bounds(self, level: int) -> tuple[float, float]:
        """Values between which a level lies, the lower one not included."""
        edges = [-np.inf, *self.threshold_K.tolist(), np.inf]
        return edges[level], edges[level + 1]


def regimes_by_quantile(
    values_T: NDArray[np.float64],
    fit_T: NDArray[np.bool_],
    *,
    quantiles: Sequence[float],
    levels: Sequence[str],
    variable: str,
    unit: str,
) -> Regimes:
    """Fit thresholds as quantiles of some of the times.

    Parameters
    ----------
    values_T
        The variable itself, no anomaly, NaN where missing.
    fit_T
        The times the quantiles are taken from: the season of the training years, so that no held-out year moves them.
    quantiles
        Shares of the times below each threshold, rising, between 0 and 1.
    levels
        Names of the levels, one more than quantiles.
    variable, unit
        Name and unit of the variable.

    Raises
    ------
    CausalDataError
        There are fewer values than levels, or two thresholds, or a threshold and the largest value, are equal: a level
        would be empty.
    """
    used = values_T[fit_T & np.isfinite(values_T)]
    if used.size < len(levels):
        raise CausalDataError(f"{used.size} values of {variable} to cut into the regimes {', '.join(levels)}.")
    threshold_K = np.quantile(used, quantiles)
    edges = [*threshold_K.tolist(), float(used.max())]
    for lower, upper, level in zip(edges[:-1], edges[1:], levels[1:], strict=True):
        if lower >= upper:
            raise CausalDataError(
                f"{variable} has no value in the regime {level}, above {lower:g} and up to {upper:g} {unit}. "
                "Use other quantiles."
            )
    return Regimes(variable, unit, tuple(levels), threshold_K)


def occupancy(
    level_T: NDArray[np.int64], year_T: NDArray[np.int64], season_T: NDArray[np.bool_], levels: Sequence[str]
) -> pl.DataFrame:
    """How often each level holds, and how long it lasts.

    A spell is a run of neighbouring days of the season with one level; an unknown day, the end of the season and the
    turn of a year end it.

    Parameters
    ----------
    level_T
        Level of each time, `UNKNOWN` where there is none.
    year_T
        Calendar year of each time.
    season_T
        True where a time belongs to the season.
    levels
        Names of the levels.

    Returns
    -------
    polars.DataFrame
        year (null: all years), level, days, occupancy (share of the days with a known level), spells, mean_spell (days;
        null without a spell).
    """
    inside_T = season_T & (level_T != UNKNOWN)
    same_T = np.r_[False, (level_T[1:] == level_T[:-1]) & (year_T[1:] == year_T[:-1]) & inside_T[:-1]]
    start_T = inside_T & ~same_T
    rows = []
    for year in [None, *np.unique(year_T[season_T]).tolist()]:
        of_year = inside_T if year is None else inside_T & (year_T == year)
        for number, level in enumerate(levels):
            here = of_year & (level_T == number)
            days, spells = int(here.sum()), int((here & start_T).sum())
            rows.append(
                {
                    **{"year": year, "level": level, "days": days},
                    "occupancy": days / int(of_year.sum()) if of_year.any() else None,
                    **{"spells": spells, "mean_spell": days / spells if spells else None},
                }
            )
    return pl.DataFrame(rows, schema_overrides={"year": pl.Int64, "occupancy": pl.Float64, "mean_spell": pl.Float64})
