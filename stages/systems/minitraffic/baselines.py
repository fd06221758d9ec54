"""Baselines that need no network: last value, historical average, ridge regressions.

Each one with a free choice offers as many candidates as every other arm; the validation part chooses, see
:mod:`stages.systems.minitraffic.search`.

Shape suffixes: B window, S sensor, L step of the context, H step of the horizon, R road, V slot of the day, N row of
a regression, P regressor, T time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Penalties of the ridge regressions, as shares of the mean squared regressor: the ends of a logarithmic grid.
PENALTIES = (1e-4, 1e3)
#: Pseudo-counts that pull a lane's slot of the day to its road's: the ends of a logarithmic grid.
PULLS = (0.1, 100.0)

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


class Moments(NamedTuple):
    """Sums of a regression: enough to fit it with any penalty."""

    gram_PP: Doubles
    cross_PH: Doubles
    rows: int


def carried_forward(context_BSL: Floats, level_S: Floats) -> Floats:
    """Contexts with each missing value replaced by the one before it.

    Missing values at the start take the first measured one; a window without any has the level of its sensor.
    """
    there = np.isfinite(context_BSL)
    steps = np.arange(context_BSL.shape[-1])
    before = np.maximum.accumulate(np.where(there, steps, -1), axis=-1)
    first = there.argmax(axis=-1)[..., None]
    filled = np.take_along_axis(context_BSL, np.where(before >= 0, before, first), axis=-1)
    return np.where(np.isfinite(filled), filled, level_S[:, None]).astype(np.float32)


def last_value(context_BSL: Floats, level_S: Floats, horizon: int) -> Floats:
    """The last measured value of each window, at every step of the horizon."""
    last_BS = carried_forward(context_BSL, level_S)[..., -1]
    return np.repeat(last_BS[..., None], horizon, axis=-1)


def slot_means(values_TS: Floats, slot_T: NDArray[np.int64], slots: int) -> tuple[Doubles, NDArray[np.int64]]:
    """Mean and number of measured values of each sensor at each slot of the day, shapes (slot, sensor).

    All days count alike: with few weeks, single weekdays have too few values. The mean is NaN where there is none.
    """
    there_TS = np.isfinite(values_TS)
    count_VS = np.zeros((slots, values_TS.shape[1]), np.int64)
    total_VS = np.zeros((slots, values_TS.shape[1]))
    np.add.at(count_VS, slot_T, there_TS)
    np.add.at(total_VS, slot_T, np.where(there_TS, values_TS, 0))
    return np.where(count_VS > 0, total_VS / np.maximum(count_VS, 1), np.nan), count_VS


def complete_profile(mean_VS: Doubles, level_S: NDArray[np.floating]) -> Doubles:
    """A profile without gaps: a missing slot is interpolated around midnight, a sensor without any has its level."""
    slots = np.arange(len(mean_VS))
    found = np.array(mean_VS)
    for place in range(mean_VS.shape[1]):
        known = np.isfinite(mean_VS[:, place])
        if not known.any():
            found[:, place] = level_S[place]
        elif not known.all():
            found[:, place] = np.interp(slots, slots[known], mean_VS[known, place], period=len(slots))
    return found


def pulled_profile(own_VS: Doubles, count_VS: NDArray[np.int64], base_VS: Doubles, pull: float) -> Doubles:
    """Profile of each sensor: its own mean of a slot, pulled to a base as if the base had been seen ``pull`` times.

    The base is shifted to the sensor by the mean difference over the slots that the sensor has.
    """
    seen = count_VS > 0
    own_VS = np.where(seen, own_VS, 0)
    weight_VS = count_VS / np.maximum(count_VS.sum(axis=0), 1)
    offset_S = (weight_VS * (own_VS - base_VS)).sum(axis=0)
    return np.asarray((count_VS * own_VS + pull * (base_VS + offset_S)) / (count_VS + pull))


def lag_regressors(filled_BSL: Floats) -> Floats:
    """Lags less the last value, shape (window, sensor, lag - 1)."""
    return filled_BSL[..., :-1] - filled_BSL[..., -1:]


def profile_regressors(last_BS: Floats, now_BS: Floats, ahead_BSH: Floats) -> Floats:
    """How far the last value is from a profile, and where that goes, shape (window, sensor, 1 + horizon)."""
    return np.concatenate([(last_BS - now_BS)[..., None], ahead_BSH - now_BS[..., None]], axis=-1)


def moments(rows: Iterable[tuple[Floats, Floats]]) -> Moments:
    """Sums over batches of regressors (..., P) and targets (..., H); a row with a missing target is left out."""
    gram: Doubles | None = None
    cross: Doubles | None = None
    count = 0
    for x, y in rows:
        x_NP, y_NH = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
        kept_N = np.isfinite(y_NH).all(axis=1)
        x_NP, y_NH = x_NP[kept_N].astype(np.float64), y_NH[kept_N].astype(np.float64)
        square, product = np.asarray(x_NP.T @ x_NP), np.asarray(x_NP.T @ y_NH)
        gram = square if gram is None else gram + square
        cross = product if cross is None else cross + product
        count += len(x_NP)
    if gram is None or cross is None:
        raise ValueError("a regression without a batch")
    return Moments(gram, cross, count)


def ridge(sums: Moments, penalty: float, towards_PH: Doubles | None = None) -> Doubles:
    """Ridge regression, shape (regressor, step of the horizon).

    Parameters
    ----------
    sums
        Of the rows.
    penalty
        Share of the mean squared regressor that is added to the diagonal.
    towards_PH
        What an infinite penalty leads to; 0 by default.
    """
    size = len(sums.gram_PP)
    towards_PH = np.zeros_like(sums.cross_PH) if towards_PH is None else towards_PH
    weight = penalty * max(np.trace(sums.gram_PP) / size, 1e-12)
    return np.asarray(np.linalg.solve(sums.gram_PP + weight * np.eye(size), sums.cross_PH + weight * towards_PH))


def grid(ends: tuple[float, float], count: int) -> list[float]:
    """``count`` numbers from one end to the other, evenly on a logarithmic scale; the middle alone for one."""
    low, high = np.log10(ends)
    places = [(low + high) / 2] if count == 1 else np.linspace(low, high, count)
    return [float(10**place) for place in places]
