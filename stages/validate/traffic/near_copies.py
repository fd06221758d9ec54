"""Near-copies inside a set: a block of time that stands in it twice, and sensors that repeat one another.

Days of traffic are alike, so levels say nothing. What is compared is the change from one step to the next of the
departure from the typical day (of the typical week in a long set), in standard deviations of that time of day: two days
of real traffic share little of it (at most 0.5 for one sensor at 5 minutes, 0.8 by the hour; 0.1 and 0.5 in the mean of
all sensors), a copy shares it up to a factor, an offset and its noise.

Blocks of the later parts of the time are moved along everything before their part. Every sensor is compared with itself
and, as far as :data:`BUDGET` reaches, with every other one at every shift, by FFT; beyond it with every other one at
the same time of day.

Shape suffixes: T time, S sensor, K block, L step of a block, O offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLIP = 4.0  # standard deviations: one jump does not make a copy
BLOCK_STEPS = 256  # of a block, or a day where that is longer
MIN_STEPS = 64  # of the one block of a part that is shorter
LONG_WEEKS = 8  # weeks from which on the typical week is known well enough
MIN_DEVIATION = 0.1  # of a time of day, against that of the whole day
MIN_POWER = 0.25  # share of the usual power: a quiet block is not compared
STANDARD_ERRORS = 8  # a correlation by chance stays below this many
BUDGET = 1e10  # pairs of sensors * blocks * steps * log2(steps), about ten seconds
SHIFTS = 12  # steps by which two sensors are moved against each other in a large set
PAIRS_BUDGET = 5e7  # pairs of sensors * steps up to which every shift is tried


@dataclass(frozen=True)
class Copy:
    """A block ``[start, stop)`` that repeats the steps from ``source_start`` on.

    ``sensor`` and ``source_sensor`` are positions; None: all sensors together.
    """

    part: str
    start: int
    stop: int
    source_start: int
    sensor: int | None
    source_sensor: int | None
    correlation: float


@dataclass(frozen=True)
class Twin:
    """A sensor whose changes are those of an earlier one, ``shift`` steps later, times ``factor``."""

    sensor: int
    source: int
    shift: int
    factor: float
    correlation: float


def typical_slots(day_T: NDArray[np.int64], slot_T: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slot of the typical day, or of the typical week in a set of at least ``LONG_WEEKS`` weeks, of each step."""
    if not day_T.size or day_T[-1] + 1 < 7 * LONG_WEEKS:
        return slot_T
    return np.asarray((day_T % 7) * (slot_T.max() + 1) + slot_T, dtype=np.int64)


def changes(values_TS: NDArray[np.float32], slot_T: NDArray[np.int64]) -> NDArray[np.float32]:
    """Change of the departure from the typical day, in standard deviations, clipped; 0 where a value is missing.

    Parameters
    ----------
    slot_T
        What :func:`typical_slots` returned.

    Returns
    -------
    ndarray of float32, shape (time, sensor)
        The change from the step before; all 0 for a sensor that never changes.
    """
    change_TS = np.zeros(values_TS.shape, np.float32)
    slots = int(slot_T.max()) + 1 if slot_T.size else 0
    for sensor in range(values_TS.shape[1]):
        column_T = values_TS[:, sensor].astype(np.float64)
        there_T = np.isfinite(column_T)
        filled_T = np.where(there_T, column_T, 0)
        typical_P = _slot_means(filled_T, there_T, slot_T, slots)
        both_T = there_T & np.roll(there_T, 1)
        both_T[:1] = False
        step_T = np.where(both_T, np.diff(filled_T - typical_P[slot_T], prepend=0), 0)
        deviation = np.sqrt((step_T**2).sum() / max(1, both_T.sum()))
        if deviation <= 1e-9:
            continue
        deviation_P = np.sqrt(_slot_means(step_T**2, both_T, slot_T, slots))
        step_T = np.clip(step_T / np.maximum(deviation_P, MIN_DEVIATION * deviation)[slot_T], -CLIP, CLIP)
        change_TS[:, sensor] = step_T / np.sqrt((step_T**2).sum() / both_T.sum())
    return change_TS


def _slot_means(
    x_T: NDArray[np.float64], there_T: NDArray[np.bool_], slot_T: NDArray[np.int64], slots: int
) -> NDArray[np.float64]:
    """Mean of the values that are there in each slot, 0 in one without."""
    count_P = np.bincount(slot_T[there_T], minlength=slots)
    return np.asarray(np.bincount(slot_T, np.where(there_T, x_T, 0), slots) / np.maximum(count_P, 1))


def blocks(parts: Mapping[str, tuple[int, int]], length: int) -> list[tuple[str, int, int]]:
    """Blocks of one length that cover the later parts of the time, each with its part.

    They start half a block apart, so that whatever stands twice for a block and a half holds a whole one. A part that
    is shorter than a block is one block; one with fewer than ``MIN_STEPS`` steps has none.
    """
    found = []
    for part, (start, stop) in list(parts.items())[1:]:
        size = min(length, stop - start)
        if size < MIN_STEPS:
            continue
        begins = [*range(start, stop - size, max(1, size // 2)), stop - size]
        found += [(part, begin, begin + size) for begin in begins]
    return found


def time_copies(
    change_TS: NDArray[np.float32],
    parts: Mapping[str, tuple[int, int]],
    steps_per_day: int,
    *,
    one: float,
    together: float,
) -> list[Copy]:
    """Blocks of the later parts that stand, up to scale and noise, somewhere before their part.

    Parameters
    ----------
    change_TS
        What :func:`changes` returned.
    parts
        Half-open ranges of steps, in the order of time; the first is only looked at as a source.
    one, together
        Correlation from which a block of one sensor, and of all sensors together, is a near-copy. Both are raised
        where blocks are so short that chance would reach them.

    Returns
    -------
    list of Copy
        The best source of each block and sensor, in the order of the blocks; all sensors together first.
    """
    found: list[Copy] = []
    sensors = change_TS.shape[1]
    length = max(steps_per_day, BLOCK_STEPS)
    for part, mine in _by_part(blocks(parts, length)):
        size, past = mine[0][1] - mine[0][0], parts[part][0]
        if past < size:
            continue
        chance = min(0.95, STANDARD_ERRORS / np.sqrt(size))
        limit, shared = max(one, chance), max(together, chance)
        cost = sensors**2 * len(mine) * past * np.log2(past)
        past_TS = change_TS[:past]
        block_KLS = np.stack([change_TS[start:stop] for start, stop in mine])
        with_itself, mean_KO = _with_itself(past_TS, block_KLS)
        best = with_itself
        if cost <= BUDGET:
            best = _better(best, _with_every_other(past_TS, block_KLS))
        else:
            best = _better(best, _at_the_same_time(past_TS, block_KLS, [start for start, _ in mine], steps_per_day))
        offset_K = mean_KO.argmax(axis=1)
        for place, (start, stop) in enumerate(mine):
            mean = float(mean_KO[place, offset_K[place]])
            if mean >= shared and sensors > 1:
                found.append(Copy(part, start, stop, int(offset_K[place]), None, None, mean))
            for sensor in np.flatnonzero(best.correlation_KS[place] >= limit):
                at = (place, int(sensor))
                source = (int(best.offset_KS[at]), int(sensor), int(best.source_KS[at]))
                found.append(Copy(part, start, stop, *source, float(best.correlation_KS[at])))
    return found


def _by_part(every: Sequence[tuple[str, int, int]]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    for part in dict.fromkeys(part for part, _, _ in every):
        yield part, [(start, stop) for name, start, stop in every if name == part]


@dataclass(frozen=True)
class _Best:
    """Best correlation of each block and sensor, where in the past it lies, and in which sensor."""

    correlation_KS: NDArray[np.float32]
    offset_KS: NDArray[np.int64]
    source_KS: NDArray[np.int64]


def _better(first: _Best, second: _Best) -> _Best:
    wins_KS = second.correlation_KS > first.correlation_KS
    return _Best(
        np.where(wins_KS, second.correlation_KS, first.correlation_KS),
        np.where(wins_KS, second.offset_KS, first.offset_KS),
        np.where(wins_KS, second.source_KS, first.source_KS),
    )


class _Past:
    """One sensor's past, ready to be correlated with blocks of one length at every offset."""

    def __init__(self, past_T: NDArray[np.float32], size: int) -> None:
        from scipy import fft

        self.size, self.offsets = size, past_T.size - size + 1
        self.points = fft.next_fast_len(past_T.size, real=True)
        self.spectrum = fft.rfft(past_T, self.points)
        power_T = np.concatenate([[0.0], np.cumsum(past_T.astype(np.float64) ** 2)])
        power_O = power_T[size:] - power_T[:-size]
        loud_O = power_O > MIN_POWER * size
        self.inverse_O = np.where(loud_O, 1 / np.sqrt(np.where(loud_O, power_O, 1)), 0).astype(np.float32)

    def correlations(self, block_KL: NDArray[np.float32]) -> NDArray[np.float32]:
        """Correlation of each block with the past at every offset, shape (block, offset)."""
        from scipy import fft

        spectrum_KF = np.conj(fft.rfft(_unit(block_KL), self.points, axis=1)) * self.spectrum
        there_KO = fft.irfft(spectrum_KF, self.points, axis=1)[:, : self.offsets]
        there_KO *= self.inverse_O
        return np.asarray(there_KO, dtype=np.float32)


def _unit(block_KL: NDArray[np.float32]) -> NDArray[np.float32]:
    """Blocks of length 1 along their last axis; a quiet block is 0."""
    power_K = (block_KL.astype(np.float64) ** 2).sum(axis=-1, keepdims=True)
    loud_K = power_K > MIN_POWER * block_KL.shape[-1]
    return np.where(loud_K, block_KL / np.sqrt(np.where(loud_K, power_K, 1)), 0).astype(np.float32)


def _with_itself(past_TS: NDArray[np.float32], block_KLS: NDArray[np.float32]) -> tuple[_Best, NDArray[np.float32]]:
    """Every sensor with its own past, and the mean correlation of the sensors at every offset."""
    blocks, size, sensors = block_KLS.shape
    correlation_KS = np.zeros((blocks, sensors), np.float32)
    offset_KS = np.zeros((blocks, sensors), np.int64)
    sum_KO = np.zeros((blocks, len(past_TS) - size + 1), np.float32)
    for sensor in range(sensors):
        there_KO = _Past(past_TS[:, sensor], size).correlations(block_KLS[:, :, sensor])
        sum_KO += there_KO
        offset_KS[:, sensor] = there_KO.argmax(axis=1)
        correlation_KS[:, sensor] = there_KO.max(axis=1)
    source_KS = np.broadcast_to(np.arange(sensors), (blocks, sensors))
    return _Best(correlation_KS, offset_KS, source_KS), sum_KO / max(1, sensors)


def _with_every_other(past_TS: NDArray[np.float32], block_KLS: NDArray[np.float32]) -> _Best:
    """Every block of every sensor with the past of every sensor, at every offset."""
    blocks, size, sensors = block_KLS.shape
    found = _Best(np.zeros((blocks, sensors), np.float32), *np.zeros((2, blocks, sensors), np.int64))
    for source in range(sensors):
        past = _Past(past_TS[:, source], size)
        for place in range(blocks):
            there_SO = past.correlations(np.ascontiguousarray(block_KLS[place].T))
            offset_S = there_SO.argmax(axis=1)
            top_S = np.take_along_axis(there_SO, offset_S[:, None], axis=1)[:, 0]
            wins_S = top_S > found.correlation_KS[place]
            found.correlation_KS[place, wins_S] = top_S[wins_S]
            found.offset_KS[place, wins_S] = offset_S[wins_S]
            found.source_KS[place, wins_S] = source
    return found


def _at_the_same_time(
    past_TS: NDArray[np.float32], block_KLS: NDArray[np.float32], starts: Sequence[int], steps_per_day: int
) -> _Best:
    """Every block of every sensor with every sensor, whole days earlier."""
    blocks, size, sensors = block_KLS.shape
    found = _Best(np.zeros((blocks, sensors), np.float32), *np.zeros((2, blocks, sensors), np.int64))
    for place, start in enumerate(starts):
        block_SL = _unit(np.ascontiguousarray(block_KLS[place].T))
        for offset in range(start % steps_per_day, len(past_TS) - size + 1, steps_per_day):
            there_SS = block_SL @ _unit(np.ascontiguousarray(past_TS[offset : offset + size].T)).T
            source_S = there_SS.argmax(axis=1)
            top_S = there_SS.max(axis=1)
            wins_S = top_S > found.correlation_KS[place]
            found.correlation_KS[place, wins_S] = top_S[wins_S]
            found.offset_KS[place, wins_S] = offset
            found.source_KS[place, wins_S] = source_S[wins_S]
    return found


def twins(change_TS: NDArray[np.float32], values_TS: NDArray[np.float32], *, limit: float) -> list[Twin]:
    """Sensors that repeat an earlier sensor of the table, on the same steps or shifted.

    Parameters
    ----------
    limit
        Correlation of the changes from which a sensor is a twin; neighbouring lanes reach 0.8.

    Returns
    -------
    list of Twin
        The best source of each twin; ``factor`` is the ratio of their means.
    """
    steps, sensors = change_TS.shape
    unit_TS = _unit(np.ascontiguousarray(change_TS.T)).T
    most = steps - MIN_STEPS if sensors**2 * steps <= PAIRS_BUDGET else SHIFTS
    found: dict[int, tuple[float, int, int]] = {}
    for source in range(sensors):
        for sensor, (correlation, shift) in _against(unit_TS, source, max(0, most)).items():
            first, second, shift = (source, sensor, shift) if source < sensor else (sensor, source, -shift)
            if correlation >= limit and correlation > found.get(second, (-1.0, 0, 0))[0] + 1e-6:
                found[second] = (correlation, first, shift)
    return [
        Twin(sensor, source, shift, _factor(values_TS[:, sensor], values_TS[:, source]), correlation)
        for sensor, (correlation, source, shift) in sorted(found.items())
    ]


def _against(unit_TS: NDArray[np.float32], source: int, most: int) -> dict[int, tuple[float, int]]:
    """Best correlation of the later sensors with one, and the steps by which they run after it."""
    from scipy import fft

    later_TS = unit_TS[:, source + 1 :]
    if not later_TS.shape[1]:
        return {}
    if most == SHIFTS:
        shifts = np.arange(-most, most + 1)
        moved_TQ = np.stack([_moved(unit_TS[:, source], int(shift)) for shift in shifts], axis=1)
        there_SQ = later_TS.T @ moved_TQ
    else:
        points = fft.next_fast_len(2 * len(unit_TS), real=True)
        product_FS = fft.rfft(later_TS, points, axis=0) * np.conj(fft.rfft(unit_TS[:, [source]], points, axis=0))
        circle_SQ = fft.irfft(product_FS, points, axis=0).T
        shifts = np.arange(-most, most + 1)
        there_SQ = circle_SQ[:, shifts]
    best_S = there_SQ.argmax(axis=1)
    return {source + 1 + place: (float(there_SQ[place, best]), int(shifts[best])) for place, best in enumerate(best_S)}


def _moved(x_T: NDArray[np.float32], shift: int) -> NDArray[np.float32]:
    """The series ``shift`` steps later, 0 where it has left."""
    moved_T = np.zeros_like(x_T)
    steps = len(x_T)
    moved_T[max(0, shift) : steps + min(0, shift)] = x_T[max(0, -shift) : steps - max(0, shift)]
    return moved_T


def _factor(x_T: NDArray[np.float32], source_T: NDArray[np.float32]) -> float:
    both_T = np.isfinite(x_T) & np.isfinite(source_T)
    total = float(source_T[both_T].sum(dtype=np.float64))
    return float(x_T[both_T].sum(dtype=np.float64)) / total if total else np.nan
