"""Sums of errors, blocks of time, and intervals that resample them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from stages.systems.minitraffic import scores_by_block
from stages.systems.minitraffic.scores_by_block import (
    PERIODS,
    blocks_of,
    interval,
    paired,
    period_of,
    sums_of,
    value_of,
)
from stages.traffic.clock import local_time
from stages.traffic.scores import score


def times(steps: int, minutes: int, start: str = "2024-01-01T00:00") -> np.ndarray:
    return np.datetime64(start, "m") + (np.arange(steps) * minutes).astype("timedelta64[m]")


def test_sums_give_back_the_errors_of_case_23() -> None:
    found = score(np.array([0.0, 60, 50]), np.array([30.0, 63, 48]), null=0)
    sums = np.array(list(sums_of(found).values()))
    assert value_of(sums, "mae") == pytest.approx(2.5)
    assert value_of(sums, "rmse") == pytest.approx(math.sqrt(6.5))
    assert value_of(sums, "mape") == pytest.approx(4.5)
    assert all(np.isnan(value_of(np.zeros(5), name)) for name in ("mae", "rmse", "mape"))


def test_whole_days_are_blocks_where_there_are_two_and_a_rest_of_a_day_is_one_too() -> None:
    local = local_time(times(288 * 3, 5))
    found = blocks_of(np.arange(144, 288 * 3 - 5), local, 5)
    assert (found.number, found.noun) == (3, "day")
    assert np.bincount(found.block_W).tolist() == [144, 288, 283]


def test_a_shorter_test_part_has_blocks_of_hours() -> None:
    local = local_time(times(500, 10), clock=False)
    found = blocks_of(np.arange(424, 495), local, 10)  # 71 windows, 11 h 50 min
    assert (found.number, found.noun) == (6, "block of 2 hours")
    assert np.bincount(found.block_W).tolist() == [12] * 5 + [11]
    short = blocks_of(np.arange(424, 430), local, 10)
    assert (short.number, short.noun) == (1, "hour")
    day = blocks_of(np.arange(0, 24 * 6 + 1), local, 10)
    assert (day.number, day.noun) == (7, "block of 4 hours")
    assert blocks_of(np.arange(0), local, 10).number == 0


def test_the_night_goes_round_midnight() -> None:
    hours = np.array([23, 0, 5.9, 6, 9.9, 10, 15.9, 16, 21.9, 22]) * 60
    names = [list(PERIODS)[place].split()[0] for place in period_of(hours.astype(np.int64))]
    assert names == ["night"] * 3 + ["morning"] * 2 + ["midday"] * 2 + ["evening"] * 2 + ["night"]


def rows(absolute: list[list[float]], count: float = 10.0) -> np.ndarray:
    """Sums of seeds and blocks out of their absolute errors."""
    table = pl.DataFrame(
        [
            {"seed": seed, "block": block, "count": count, "absolute": value, "squared": value**2 / count}
            | {"relative": value / 100, "non_zero": count}
            for seed, values in enumerate(absolute)
            for block, value in enumerate(values)
        ]
    )
    return scores_by_block.block_sums(table)


def test_a_block_weighs_as_much_as_it_holds() -> None:
    sums_GKC = rows([[10.0, 30.0]])
    sums_GKC[0, 1, :] *= 3  # MAE 1 in ten values, 3 in thirty
    assert interval(sums_GKC, "mae", "x").value == pytest.approx((10 + 90) / 40)


def test_an_interval_of_equal_blocks_is_a_point_and_one_block_has_none() -> None:
    assert interval(rows([[20.0] * 6] * 2), "mae", "x") == pytest.approx((2, 2, 2))
    value, low, high = interval(rows([[20.0], [10.0]]), "mae", "x")
    assert value == pytest.approx(1.5)
    assert math.isnan(low)
    assert math.isnan(high)


def test_a_paired_difference_does_not_see_what_blocks_have_in_common() -> None:
    hard = np.random.default_rng(0).uniform(5, 50, size=8)
    one, other = rows([list(hard)]), rows([list(hard + 2)])
    (value, low, high), relative = paired(one, other, "mae", "x")
    assert (value, low, high) == pytest.approx((-0.2, -0.2, -0.2))
    assert relative == pytest.approx(100 * -2 / (hard.mean() + 2))
    alone = interval(one, "mae", "x")
    assert alone.high - alone.low > 0.5
    with pytest.raises(ValueError, match="the same seeds and blocks"):
        paired(one, rows([[1.0]]), "mae", "x")


def test_seeds_that_differ_widen_the_interval() -> None:
    alike, apart = rows([[20.0, 22.0, 18.0, 21.0]] * 3), rows([[10.0, 12.0, 8.0, 11.0], [20.0] * 4, [30.0] * 4])
    narrow, wide = (interval(sums, "mae", "x") for sums in (alike, apart))
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


def test_the_interval_of_a_mean_has_the_width_of_its_standard_error() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(20, 4, size=400)
    found = interval(rows([list(values)]), "mae", "x")
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * values.std() / 10 / math.sqrt(400), rel=0.1)
