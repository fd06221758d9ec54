"""Errors of one arm's forecasts as rows of a table, and its forecasts of one test day.

Shape suffixes: T time, S sensor, R road, W window, H step ahead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.systems.minitraffic.scores_by_block import PERIODS, Blocks, added, blocks_of, period_of, sums_of
from stages.traffic.scores import ErrorSums

if TYPE_CHECKING:
    from stages.systems.minitraffic.forecasts import Forecasts
    from stages.systems.minitraffic.problem import Target

#: Errors by these; ``sensor`` has no blocks, all others have.
KINDS = ("horizon", "period", "lane", "sensor")
ERROR_SCHEMA: dict[str, Any] = {
    "granularity": pl.String,
    "by": pl.String,
    "member": pl.Int32,
    "block": pl.Int32,
    **dict.fromkeys(("count", "absolute", "squared", "relative", "non_zero"), pl.Float64),
}
DAY_SCHEMA: dict[str, Any] = {
    "step": pl.Int32,
    "position": pl.Int32,
    "ahead": pl.Int16,
    "observed": pl.Float32,
    "forecast": pl.Float32,
}


@dataclass(frozen=True)
class TestPart:
    """What the windows of a test part have in common for all arms.

    Attributes
    ----------
    stride
        Steps from one window to the next.
    start_W
        First forecast step of each window.
    blocks
        What is resampled.
    period_T
        Part of the day of every step of the set; None without a clock.
    lane_S
        Lane number of each sensor, -1 where it has none.
    roads_TR, road_of_sensor_S
        Road values and the road of each sensor; None and -1 without roads.
    granularity
        What a sensor is: lane or road.
    """

    __test__ = False  # no test, whatever its name begins with

    stride: int
    start_W: NDArray[np.int64]
    blocks: Blocks
    period_T: NDArray[np.int64] | None
    lane_S: NDArray[np.int64]
    roads_TR: NDArray[np.float32] | None
    road_of_sensor_S: NDArray[np.int64]
    granularity: str


def stride_of(windows: int, most: int, steps_per_day: int) -> int:
    """Steps between test windows so that at most ``most`` of ``windows`` are taken, at every time of day alike.

    A stride that shared a divisor with the steps of a day would take some times of day alone.
    """
    stride = max(1, math.ceil(windows / most))
    while math.gcd(stride, steps_per_day) > 1:
        stride += 1
    return stride


def open_test_part(target: Target, most: int | None = None) -> TestPart:
    """What the windows of a target's test part have in common: all windows, or about ``most`` of them."""
    accepted = target.accepted
    local = accepted.local()
    every = len(target.windows("test"))
    stride = stride_of(every, most or every, accepted.steps_per_day)
    start_W = target.windows("test", stride).starts_W + target.context
    lanes = target.goal.mode == "lane"
    lane_S = accepted.sensors["lane"].cast(pl.Int64).fill_null(-1).to_numpy()
    return TestPart(
        stride=stride,
        start_W=start_W,
        blocks=blocks_of(start_W, local, accepted.step_minutes),
        period_T=period_of(local.minute_T) if accepted.clock else None,
        lane_S=lane_S if lanes else np.full(len(lane_S), -1),
        roads_TR=accepted.roads_TR if lanes else None,
        road_of_sensor_S=accepted.road_of_sensor_S,
        granularity="lane" if lanes else "road",
    )


def arm_errors(batches: Iterable[Forecasts], part: TestPart) -> pl.DataFrame:
    """Sums of the errors of all windows of a test part, see :data:`ERROR_SCHEMA`.

    ``by`` names what ``member`` is: step ahead (from 1), place of the part of the day, lane number, or position of the
    sensor; the rows of each kind add up to all forecasts. ``block`` is null for sensors.

    Raises
    ------
    ValueError
        The batches are not the windows of the test part, each once and in order.
    """
    sums: dict[str, ErrorSums] = {}
    seen = 0
    for starts_W, truths in _by_granularity(batches, part):
        stop = seen + len(starts_W)
        if not np.array_equal(starts_W, part.start_W[seen:stop]):
            raise ValueError(f"windows {seen} to {stop} of the test part were expected, each once and in order")
        labels = {"block": part.blocks.block_W[seen:stop]}
        for name, (truth_WSH, forecast_WSH) in truths.items():
            steps_WH = starts_W[:, None] + np.arange(truth_WSH.shape[2])
            if part.period_T is not None:
                labels["slice"] = labels["block"][:, None] * len(PERIODS) + part.period_T[steps_WH]
            if name not in sums:
                groups = {"block": part.blocks.number}
                if part.period_T is not None:
                    groups["slice"] = part.blocks.number * len(PERIODS)
                sums[name] = ErrorSums(truth_WSH.shape[1], truth_WSH.shape[2], groups=groups)
            sums[name].add(truth_WSH, forecast_WSH, **labels)
        seen = stop
    if seen != len(part.start_W):
        raise ValueError(f"{seen} windows were forecast; expected all {len(part.start_W)} of the test part")
    rows = [row for name, found in sums.items() for row in _rows(name, found, part)]
    return pl.DataFrame(rows, schema=ERROR_SCHEMA)


def _by_granularity(
    batches: Iterable[Forecasts], part: TestPart
) -> Iterator[tuple[NDArray[np.int64], dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]]]:
    """Truth and forecast of each batch, shape (window, sensor, step ahead): of the sensors, and of lanes' roads."""
    for batch in batches:
        truth_WSH, forecast_WSH = batch.observed_WHS.swapaxes(1, 2), batch.forecast_WHS.swapaxes(1, 2)
        found = {part.granularity: (truth_WSH, forecast_WSH)}
        if part.roads_TR is not None:
            steps_WH = batch.start_W[:, None] + np.arange(truth_WSH.shape[2])
            road_WRH = part.roads_TR[steps_WH].swapaxes(1, 2)
            told_WRH = road_means(forecast_WSH, part.road_of_sensor_S, road_WRH.shape[1])
            # a road none of whose lanes is in the set cannot be forecast out of lanes
            found["road"] = (np.where(np.isfinite(told_WRH), road_WRH, np.nan), told_WRH)
        yield batch.start_W, found


def road_means(
    forecast_WSH: NDArray[np.float32], road_of_sensor_S: NDArray[np.int64], roads: int
) -> NDArray[np.float32]:
    """Mean of the forecasts of each road's lanes, shape (window, road, step ahead); NaN of a road without lanes."""
    weight_RS = (road_of_sensor_S == np.arange(roads)[:, None]).astype(np.float64)
    lanes_R1 = weight_RS.sum(axis=1, keepdims=True)
    weight_RS = np.divide(weight_RS, lanes_R1, out=np.full_like(weight_RS, np.nan), where=lanes_R1 > 0)
    mean_WRH = np.einsum("rs,wsh->wrh", weight_RS, forecast_WSH.astype(np.float64))
    return np.asarray(mean_WRH, dtype=np.float32)


def _rows(granularity: str, sums: ErrorSums, part: TestPart) -> Iterator[dict[str, Any]]:
    common = {"granularity": granularity}
    for block, horizons in enumerate(sums.by_group_and_horizon("block")):
        for step, found in enumerate(horizons, 1):
            yield common | {"by": "horizon", "member": step, "block": block} | sums_of(found)
    if part.period_T is not None:
        for place, found in enumerate(sums.by_group("slice")):
            block, period = divmod(place, len(PERIODS))
            yield common | {"by": "period", "member": period, "block": block} | sums_of(found)
    if granularity == part.granularity:
        numbers = [int(number) for number in np.unique(part.lane_S) if number >= 0]
        for block, sensors in enumerate(sums.by_group_and_sensor("block") if numbers else []):
            for number in numbers:
                mine = (sensors[place] for place in np.flatnonzero(part.lane_S == number))
                yield common | {"by": "lane", "member": number, "block": block} | added(mine)
        for position, found in enumerate(sums.by_sensor()):
            yield common | {"by": "sensor", "member": position, "block": None} | sums_of(found)


def shown_day(target: Target) -> tuple[int, int]:
    """Half-open range of steps of the day that is drawn: the most complete day of the test part, the first of equals.

    Where the test part holds no whole day it is all of the part that can be forecast, up to a day.
    """
    accepted = target.accepted
    start, stop = accepted.part("test")
    first = start + target.context + target.horizon - 1  # every step ahead has a forecast from here on
    day_T = accepted.local().day_T[first:stop]
    days, place_D, size_D = np.unique(day_T, return_index=True, return_counts=True)
    whole = np.flatnonzero(size_D >= accepted.steps_per_day)
    if not whole.size:
        return first, min(stop, first + accepted.steps_per_day)
    measured = [np.isfinite(target.values_TS[first:stop][day_T == days[place]]).sum() for place in whole]
    begin = first + int(place_D[whole[int(np.argmax(measured))]])
    return begin, begin + int(size_D[whole[int(np.argmax(measured))]])


def day_forecasts(batches: Iterable[Forecasts], day: tuple[int, int], ahead: tuple[int, ...]) -> pl.DataFrame:
    """Forecasts of the steps of one day, made so many steps before: a row a step, sensor and lead.

    Parameters
    ----------
    batches
        Forecasts of the test part.
    day
        Half-open range of steps.
    ahead
        Leads that are kept; 1 is the next step.
    """
    parts = []
    for batch in batches:
        for lead in ahead:
            step_W = batch.start_W + lead - 1
            mine_W = (step_W >= day[0]) & (step_W < day[1])
            forecast_WS = batch.forecast_WHS[mine_W, lead - 1]
            sensors = forecast_WS.shape[1]
            parts.append(
                pl.DataFrame(
                    {
                        "step": np.repeat(step_W[mine_W], sensors),
                        "position": np.tile(np.arange(sensors), int(mine_W.sum())),
                        "ahead": np.full(forecast_WS.size, lead),
                        "observed": batch.observed_WHS[mine_W, lead - 1].reshape(-1),
                        "forecast": forecast_WS.reshape(-1),
                    }
                ).cast(DAY_SCHEMA)  # type: ignore[arg-type]
            )
    return pl.concat(parts).with_columns(pl.col("observed").fill_nan(None)).sort("ahead", "step", "position")
