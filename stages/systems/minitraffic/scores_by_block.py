"""Errors of forecasts by block of test time, and intervals that resample blocks and seeds.

Neighbouring forecasts share most of their steps, so an interval resamples contiguous blocks: days of the test part, or
blocks of hours where it holds fewer than two whole days. Sums are kept, so that any slice is a ratio of sums.

Shape suffixes: T time, W window, H step ahead, G seed, K block, C one of the five sums, R resample.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.metrics.intervals import RESAMPLES
from stages.runtime import random_numbers
from stages.traffic.clock import LocalTime
from stages.traffic.scores import Score

#: Sums in errors.parquet: valid values, |error|, error squared, |error / truth|, values whose truth is not 0.
SUMS = ("count", "absolute", "squared", "relative", "non_zero")
SCORES = {"mae": "MAE", "rmse": "RMSE", "mape": "MAPE"}
#: Part of the day -> its first and last minute, half open; the night goes round midnight.
PERIODS = {
    "night (22-6 h)": (1320, 360),
    "morning (6-10 h)": (360, 600),
    "midday (10-16 h)": (600, 960),
    "evening (16-22 h)": (960, 1320),
}
BLOCK_HOURS = (6, 4, 3, 2, 1)
ENOUGH_BLOCKS = 6
WHOLE_DAY = 0.9  # share of a day's forecasts that the test part holds


class Interval(NamedTuple):
    """An estimate and its 95 % interval; low and high are NaN where there is one block."""

    value: float
    low: float
    high: float


class Blocks(NamedTuple):
    """Contiguous blocks of the windows of a test part.

    Attributes
    ----------
    block_W
        Block of each window, from 0, by its first forecast step.
    number
        Number of blocks.
    noun
        What a block is: day, or block of 2 hours.
    """

    block_W: NDArray[np.int64]
    number: int
    noun: str


def blocks_of(start_W: NDArray[np.int64], local: LocalTime, step_minutes: float) -> Blocks:
    """Blocks of windows by their first forecast step: days, or hours where fewer than two days are whole.

    Of hours, the longest blocks that give at least six; else single hours. A part of a day at either end is a block
    too, and weighs as much as it holds.

    Parameters
    ----------
    start_W
        First forecast step of each window, ascending, evenly apart.
    local
        Local time of every step of the set.
    step_minutes
        Step of the grid.
    """
    if not start_W.size:
        return Blocks(start_W, 0, "day")
    apart = int(start_W[1] - start_W[0]) if start_W.size > 1 else 1
    days, block_W, size_K = np.unique(local.day_T[start_W], return_inverse=True, return_counts=True)
    if np.sum(size_K * apart * step_minutes >= WHOLE_DAY * 1440) >= 2:
        return Blocks(block_W.astype(np.int64), len(days), "day")
    hour_W = (start_W - start_W[0]) * step_minutes / 60
    enough = [hours for hours in BLOCK_HOURS if len(np.unique(hour_W // hours)) >= ENOUGH_BLOCKS]
    hours = enough[0] if enough else BLOCK_HOURS[-1]
    found, block_W = np.unique(hour_W // hours, return_inverse=True)
    return Blocks(block_W.astype(np.int64), len(found), "hour" if hours == 1 else f"block of {hours} hours")


def period_of(minute_T: NDArray[np.int64]) -> NDArray[np.int64]:
    """Part of the day of each minute of the day, a place in :data:`PERIODS`."""
    found_T = np.zeros(minute_T.shape, np.int64)
    for place, (start, stop) in enumerate(PERIODS.values()):
        if start < stop:
            found_T[(minute_T >= start) & (minute_T < stop)] = place
    return found_T


def sums_of(score: Score) -> dict[str, float]:
    """The five sums behind a score."""
    return {
        "count": float(score.count),
        "absolute": (score.mae or 0.0) * score.count,
        "squared": (score.rmse or 0.0) ** 2 * score.count,
        "relative": (score.mape or 0.0) / 100 * score.mape_count,
        "non_zero": float(score.mape_count),
    }


def added(scores: Iterable[Score]) -> dict[str, float]:
    """The sums of several scores together."""
    total = dict.fromkeys(SUMS, 0.0)
    for score in scores:
        total = {name: total[name] + value for name, value in sums_of(score).items()}
    return total


def value_of(sums_C: NDArray[np.float64], score: str) -> NDArray[np.float64]:
    """MAE, RMSE (unit of the data) or MAPE (percent) out of sums, shape (..., 5) -> (...); NaN of no value."""
    count, absolute, squared, relative, non_zero = np.moveaxis(sums_C, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        if score == "mape":
            return np.where(non_zero > 0, 100 * relative / non_zero, math.nan)
        mean = np.where(count > 0, (absolute if score == "mae" else squared) / count, math.nan)
    return np.sqrt(mean) if score == "rmse" else mean


def block_sums(errors: pl.DataFrame) -> NDArray[np.float64]:
    """Sums of the rows of one arm, shape (seed, block, 5).

    Parameters
    ----------
    errors
        seed, block and the five sums; rows of equal seed and block are added.
    """
    seeds, blocks = (sorted(errors[name].unique()) for name in ("seed", "block"))
    table = errors.group_by("seed", "block").agg(pl.col(SUMS).sum()).sort("seed", "block")
    places_G = np.searchsorted(seeds, table["seed"].to_numpy())
    places_K = np.searchsorted(blocks, table["block"].to_numpy())
    sums_GKC = np.zeros((len(seeds), len(blocks), len(SUMS)))
    sums_GKC[places_G, places_K] = table.select(SUMS).to_numpy()
    return sums_GKC


def interval(sums_GKC: NDArray[np.float64], score: str, *stream: str) -> Interval:
    """A score over all seeds and blocks, with its 95 % percentile bootstrap interval over blocks and seeds."""
    total_RC = _resampled(sums_GKC, stream)
    return _bounds(float(value_of(sums_GKC.sum(axis=(0, 1)), score)), value_of(total_RC, score), sums_GKC.shape[1])


def paired(
    one_GKC: NDArray[np.float64], other_GKC: NDArray[np.float64], score: str, *stream: str
) -> tuple[Interval, float]:
    """Score of one arm less that of another over the same seeds and blocks, with its interval.

    Returns
    -------
    difference
        In the unit of the score; negative where the first is better.
    percent
        The difference relative to the other's score, in percent.

    Raises
    ------
    ValueError
        The arms were not scored over the same seeds and blocks.
    """
    if one_GKC.shape != other_GKC.shape:
        raise ValueError(f"sums of shape {one_GKC.shape} and {other_GKC.shape}; expected the same seeds and blocks")
    first, second = (float(value_of(sums.sum(axis=(0, 1)), score)) for sums in (one_GKC, other_GKC))
    drawn_R = value_of(_resampled(one_GKC, stream), score) - value_of(_resampled(other_GKC, stream), score)
    percent = 100 * (first - second) / second if second else math.nan
    return _bounds(first - second, drawn_R, one_GKC.shape[1]), percent


def _resampled(sums_GKC: NDArray[np.float64], stream: Sequence[str]) -> NDArray[np.float64]:
    """Sums of resamples of seeds and blocks, shape (resample, 5): equal streams draw equal resamples."""
    seeds, blocks = sums_GKC.shape[:2]
    rng = random_numbers(0, "minitraffic", *stream)
    times_RG, times_RK = (
        rng.multinomial(size, np.full(size, 1 / size), RESAMPLES).astype(np.float64) for size in (seeds, blocks)
    )
    total_RC: NDArray[np.float64] = np.einsum("rg,rk,gkc->rc", times_RG, times_RK, sums_GKC, optimize=True)
    return total_RC


def _bounds(value: float, drawn_R: NDArray[np.float64], blocks: int) -> Interval:
    drawn_R = drawn_R[np.isfinite(drawn_R)]
    if blocks < 2 or not drawn_R.size or not math.isfinite(value):
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(drawn_R, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def empty_to_none(rows: list[list[Any]]) -> list[list[Any]]:
    """Cells of a table with None for NaN."""
    return [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]


class ErrorTable:
    """errors.parquet, taken apart by target, share and arm.

    Parameters
    ----------
    errors
        target, share, arm, seed and the columns of :data:`stages.systems.minitraffic.predictions.ERROR_SCHEMA`.
    """

    def __init__(self, errors: pl.DataFrame) -> None:
        self._parts = errors.partition_by("target", "share", "arm", as_dict=True)

    def arms(self, target: str, share: float) -> list[str]:
        """Arms that were scored for a target and share, in the order of the table."""
        return [str(arm) for name, found, arm in self._parts if name == target and found == share]

    def members(self, target: str, share: float, arm: str, by: str, granularity: str) -> list[int]:
        """Steps ahead, parts of the day, lanes or sensors that have a valid value."""
        mine = self._rows(target, share, arm, by, granularity).filter(pl.col("count") > 0)
        return sorted(int(member) for member in mine["member"].unique())

    def blocked(
        self, target: str, share: float, arm: str, granularity: str, by: str = "horizon", member: int | None = None
    ) -> NDArray[np.float64]:
        """Sums of one arm, shape (seed, block, 5): of all forecasts, or of one step ahead, part of the day or lane."""
        mine = self._rows(target, share, arm, by, granularity)
        return block_sums(mine if member is None else mine.filter(pl.col("member") == member))

    def sensor(self, target: str, share: float, arm: str, granularity: str, position: int) -> NDArray[np.float64]:
        """Sums of one sensor over all seeds and blocks, shape (5,)."""
        mine = self._rows(target, share, arm, "sensor", granularity).filter(pl.col("member") == position)
        return np.asarray(mine.select(SUMS).sum().to_numpy()[0], dtype=np.float64)

    def _rows(self, target: str, share: float, arm: str, by: str, granularity: str) -> pl.DataFrame:
        return self._parts[target, share, arm].filter((pl.col("by") == by) & (pl.col("granularity") == granularity))
