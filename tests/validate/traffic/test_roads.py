from __future__ import annotations

import numpy as np
import pytest

from stages.validate.traffic.roads import relation, road_lags, told

DAYS = [(start, start + 96) for start in range(0, 480, 96)]
LANES = np.cumsum(np.random.default_rng(0).normal(0, 1, (480, 3)), axis=0).astype(np.float32) + 50


def test_roads_on_the_times_of_their_lanes_have_no_lag() -> None:
    noisy = LANES + np.random.default_rng(1).normal(0, 0.3, LANES.shape).astype(np.float32)
    found = road_lags(noisy, LANES, DAYS, 12)
    assert not found.lag_D.any()
    assert told(found, [f"d{day}" for day in range(5)], 5) == []


@pytest.mark.parametrize(("lag", "word"), [(1, "1 step (5 minutes) late"), (-7, "7 steps (35 minutes) early")])
def test_a_lag_is_named_with_its_days(lag: int, word: str) -> None:
    road = LANES.copy()
    road[192:] = np.roll(LANES, lag, axis=0)[192:]
    found = road_lags(road, LANES, DAYS, 12)
    assert found.lag_D.tolist() == [0, 0, lag, lag, lag]
    (note,) = told(found, ["mon", "tue", "wed", "thu", "fri"], 5)
    assert f"run {word} against their lanes on 3 days, wed to fri" in note


def test_pairing_by_row_shifts_by_one_more_with_each_extra_row() -> None:
    extra_rows = np.insert(LANES, [100, 300], LANES[[99, 299]], axis=0)[:480]
    assert road_lags(extra_rows, LANES, DAYS, 12).lag_D.tolist() == [0, 1, 1, 2, 2]


def test_days_without_values_are_not_judged() -> None:
    road = np.roll(LANES, 3, axis=0)
    road[:192] = np.nan
    assert road_lags(road, LANES, DAYS, 12).lag_D.tolist() == [0, 0, 3, 3, 3]


def test_flows_of_roads_may_be_sums_or_means() -> None:
    lanes = np.random.default_rng(0).poisson(50, (100, 2, 3)).astype(np.float32)
    mean, total = lanes.mean(axis=2), lanes.sum(axis=2)
    assert relation(total + 1, mean, total) == "sum"
    assert relation(mean + 1, mean, total) == "mean"
