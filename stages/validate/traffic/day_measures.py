"""What only the series itself tells of a sensor-day: runs of one value, spikes, and the shape of the day.

Shape suffixes: T time, S sensor, D day, L steps of one day, P slot of the day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_SHARE = 0.5  # share of a day's steps that must be there for its shape to be judged


@dataclass(frozen=True)
class DayMeasures:
    """Measures of one variable, each of shape (day, sensor); NaN where there is nothing to measure.

    Attributes
    ----------
    flat_steps_DS
        Length of the longest run of one value.
    spikes_DS
        Steps that lie far from both of their neighbours, on the same side.
    shape_DS
        Pearson correlation of the day with the mean of the sensor's other days, slot by slot.
    """

    flat_steps_DS: NDArray[np.float64]
    spikes_DS: NDArray[np.float64]
    shape_DS: NDArray[np.float64]


def measure(
    values_TS: NDArray[np.float32],
    days: Sequence[tuple[int, int]],
    slot_T: NDArray[np.int64],
    *,
    spike: float,
    zeros_run: bool,
) -> DayMeasures:
    """Measure every sensor on every day.

    Parameters
    ----------
    days
        Half-open ranges of steps.
    slot_T
        Slot of the day of each step.
    spike
        Distance that makes a spike, in ranges (5th to 95th percentile) of the sensor.
    zeros_run
        Whether a run of zeros counts: it does for speed; an empty road at night has no flow and no occupancy.
    """
    return DayMeasures(
        longest_runs(values_TS, days, zeros_run=zeros_run),
        spikes(values_TS, days, spike * spread(values_TS)),
        day_shapes(values_TS, days, slot_T),
    )


def longest_runs(
    values_TS: NDArray[np.float32], days: Sequence[tuple[int, int]], *, zeros_run: bool = True
) -> NDArray[np.float64]:
    """Longest run of one value within each day, in steps, shape (day, sensor); 0 on a day without values."""
    found_DS = np.zeros((len(days), values_TS.shape[1]))
    for day, (start, stop) in enumerate(days):
        day_LS = values_TS[start:stop]
        counts_LS = np.isfinite(day_LS) if zeros_run else np.isfinite(day_LS) & (day_LS != 0)
        run_S = counts_LS[0].astype(np.int64)
        best_S = run_S.copy()
        equal_LS = day_LS[1:] == day_LS[:-1]
        for step in range(1, len(day_LS)):
            run_S = (run_S * equal_LS[step - 1] + 1) * counts_LS[step]
            np.maximum(best_S, run_S, out=best_S)
        found_DS[day] = best_S
    return found_DS


def spread(values_TS: NDArray[np.float32]) -> NDArray[np.float64]:
    """Distance from the 5th to the 95th percentile of each sensor; NaN where it has no value or no spread."""
    spread_S = np.full(values_TS.shape[1], np.nan)
    for sensor in range(values_TS.shape[1]):
        column_T = values_TS[:, sensor]
        there = column_T[np.isfinite(column_T)]
        if there.size:
            low, high = np.percentile(there, [5, 95])
            spread_S[sensor] = high - low if high > low else np.nan
    return spread_S


def spikes(
    values_TS: NDArray[np.float32], days: Sequence[tuple[int, int]], distance_S: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Steps of each day that lie further than a distance from both neighbours, both above or both below them."""
    found_DS = np.zeros((len(days), values_TS.shape[1]))
    for day, (start, stop) in enumerate(days):
        day_LS = values_TS[start:stop]
        before_LS, here_LS, after_LS = day_LS[:-2], day_LS[1:-1], day_LS[2:]
        above_LS = here_LS - np.maximum(before_LS, after_LS)
        below_LS = np.minimum(before_LS, after_LS) - here_LS
        # a comparison with NaN is false: no spike beside a gap
        found_DS[day] = (np.maximum(above_LS, below_LS) > distance_S).sum(axis=0)
    return found_DS


def day_shapes(
    values_TS: NDArray[np.float32], days: Sequence[tuple[int, int]], slot_T: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Correlation of each day with the mean of the sensor's other days, shape (day, sensor).

    NaN where half of the day is missing, where no other day has the slots, or where one of the two does not vary.
    """
    slots = int(slot_T.max()) + 1 if slot_T.size else 0
    sum_PS, count_PS = (np.zeros((slots, values_TS.shape[1])) for _ in range(2))
    for start, stop in days:
        day_LS = values_TS[start:stop]
        there_LS = np.isfinite(day_LS)
        np.add.at(sum_PS, slot_T[start:stop], np.where(there_LS, day_LS, 0))
        np.add.at(count_PS, slot_T[start:stop], there_LS)
    found_DS = np.full((len(days), values_TS.shape[1]), np.nan)
    for day, (start, stop) in enumerate(days):
        slot_L = slot_T[start:stop]
        own_LS = np.isfinite(values_TS[start:stop])
        day_LS = np.where(own_LS, values_TS[start:stop], 0.0)
        others_LS = count_PS[slot_L] - own_LS
        both_LS = own_LS & (others_LS > 0)
        typical_LS = (sum_PS[slot_L] - day_LS) / np.maximum(others_LS, 1)
        enough_S = both_LS.sum(axis=0) >= max(3, MIN_SHARE * slots)
        found_DS[day] = np.where(enough_S, _correlation(day_LS, typical_LS, both_LS), np.nan)
    return found_DS


def _correlation(
    x_LS: NDArray[np.floating], y_LS: NDArray[np.floating], both_LS: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Pearson correlation along the first axis over the places that both have; NaN where one does not vary."""
    count_S = np.maximum(both_LS.sum(axis=0), 1)
    first_LS, second_LS = (_centred(z_LS.astype(np.float64), both_LS, count_S) for z_LS in (x_LS, y_LS))
    product_S = np.sqrt((first_LS**2).sum(axis=0) * (second_LS**2).sum(axis=0))
    moves_S = product_S > 1e-12
    return np.where(moves_S, (first_LS * second_LS).sum(axis=0) / np.where(moves_S, product_S, 1), np.nan)


def _centred(x_LS: NDArray[np.float64], both_LS: NDArray[np.bool_], count_S: NDArray[np.int64]) -> NDArray[np.float64]:
    """Distance from the mean over the places that count; 0 elsewhere."""
    return np.where(both_LS, x_LS - np.where(both_LS, x_LS, 0).sum(axis=0) / count_S, 0)
