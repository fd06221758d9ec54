"""Lanes against the road they belong to, on the same times: how far apart they are, and whether one runs late.

Shape suffixes: T time, R road, D day, K lag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

HALF = 0.5  # a shift must at least halve the difference to be called one


@dataclass(frozen=True)
class RoadLag:
    """Days on which the road values fit the lanes better at another time.

    Attributes
    ----------
    lag_D
        Steps by which the road values run late on each day (negative: early); 0 where they do not.
    now_D, shifted_D
        Mean absolute difference on the same times, and at the best lag.
    """

    lag_D: NDArray[np.int64]
    now_D: NDArray[np.float64]
    shifted_D: NDArray[np.float64]


def relation(
    road_TR: NDArray[np.float32], mean_TR: NDArray[np.float32], sum_TR: NDArray[np.float32]
) -> Literal["mean", "sum"]:
    """Whether the values of roads are means or sums of their lanes, by the smaller median difference."""
    apart = [_median(np.abs(road_TR - lanes_TR)) for lanes_TR in (mean_TR, sum_TR)]
    return "sum" if apart[1] < apart[0] else "mean"


def _median(x: NDArray[np.float32]) -> float:
    there = x[np.isfinite(x)]
    return float(np.median(there)) if there.size else np.inf


def road_lags(
    road_TR: NDArray[np.float32], lanes_TR: NDArray[np.float32], days: Sequence[tuple[int, int]], most: int
) -> RoadLag:
    """Best lag of the road values against the lanes on each day, up to ``most`` steps either way.

    A lag is named where it at least halves the mean absolute difference over all roads; a table that was paired by row
    and not by time shows a lag from the first missing row on.
    """
    lags = range(-most, most + 1)
    apart_KD = np.full((len(lags), len(days)), np.nan)
    for place, lag in enumerate(lags):
        apart_KD[place] = _day_means(_apart(road_TR, lanes_TR, lag), days)
    judged_D = np.isfinite(apart_KD[most])
    filled_KD = np.where(np.isfinite(apart_KD), apart_KD, np.inf)
    best_D = filled_KD.argmin(axis=0)
    shifted_D = np.take_along_axis(apart_KD, best_D[None], axis=0)[0]
    now_D = apart_KD[most]
    late_D = judged_D & (shifted_D < HALF * now_D)
    return RoadLag(np.where(late_D, best_D - most, 0).astype(np.int64), now_D, shifted_D)


def _apart(road_TR: NDArray[np.float32], lanes_TR: NDArray[np.float32], lag: int) -> NDArray[np.float64]:
    """Mean over the roads of ``|road at t + lag - lanes at t|``, shape (time,); NaN where nothing is there."""
    moved_TR = np.full_like(road_TR, np.nan)
    steps = len(road_TR)
    if abs(lag) < steps:
        moved_TR[max(0, -lag) : steps - max(0, lag)] = road_TR[max(0, lag) : steps - max(0, -lag)]
    apart_TR = np.abs(moved_TR - lanes_TR)
    there_TR = np.isfinite(apart_TR)
    count_T = there_TR.sum(axis=1)
    sum_T = np.where(there_TR, apart_TR, 0).sum(axis=1, dtype=np.float64)
    return np.where(count_T > 0, sum_T / np.maximum(count_T, 1), np.nan)


def _day_means(x_T: NDArray[np.float64], days: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    means = []
    for start, stop in days:
        there = x_T[start:stop][np.isfinite(x_T[start:stop])]
        means.append(float(there.mean()) if there.size else np.nan)
    return np.array(means)


def told(found: RoadLag, names: Sequence[str], step_minutes: float) -> list[str]:
    """In words: which days run late by how much."""
    notes = []
    for lag in sorted({int(lag) for lag in found.lag_D if lag}):
        at_D = np.flatnonzero(found.lag_D == lag)
        first, last = names[at_D[0]], names[at_D[-1]]
        when = f"on {first}" if at_D.size == 1 else f"on {at_D.size} days, {first} to {last}"
        steps = f"{abs(lag)} step{'' if abs(lag) == 1 else 's'} ({abs(lag) * step_minutes:g} minutes)"
        notes.append(
            f"the road values run {steps} {'late' if lag > 0 else 'early'} against their lanes {when}: mean difference "
            f"{np.nanmean(found.now_D[at_D]):.3g} on the same times and {np.nanmean(found.shifted_D[at_D]):.3g} when "
            "moved; were the tables paired by row?"
        )
    return notes
