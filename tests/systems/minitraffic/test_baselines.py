"""Baselines by hand, at their limits, and against the same answer by numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.systems.minitraffic.baselines import (
    carried_forward,
    complete_profile,
    grid,
    last_value,
    moments,
    pulled_profile,
    ridge,
    slot_means,
)
from stages.systems.minitraffic.dlinear import DLinear
from stages.traffic.scores import masked_l1
from stages.traffic.windows import Windows

NAN = np.nan


def test_missing_values_are_carried_forward() -> None:
    context = np.array([[[1, NAN, NAN, 4], [NAN, 2, NAN, 3], [NAN, NAN, NAN, NAN]]], np.float32)
    assert carried_forward(context, np.array([7, 8, 9], np.float32)).tolist() == [
        [[1, 1, 1, 4], [2, 2, 2, 3], [9, 9, 9, 9]]
    ]


def test_the_last_value_is_the_last_measured_one() -> None:
    context = np.array([[[1, 5, NAN]]], np.float32)
    assert last_value(context, np.zeros(1, np.float32), 2).tolist() == [[[5, 5]]]


def test_the_historical_average_is_that_of_a_slot_over_all_days() -> None:
    values_TS = np.array([[10], [20], [30], [NAN], [50], [20]], np.float32)
    mean_VS, count_VS = slot_means(values_TS, np.array([0, 1, 2, 0, 1, 2]), 4)
    assert mean_VS[:3, 0].tolist() == [10, 35, 25]
    assert np.isnan(mean_VS[3, 0])
    assert count_VS[:, 0].tolist() == [1, 2, 2, 0]
    assert complete_profile(mean_VS, np.zeros(1))[3, 0] == pytest.approx((25 + 10) / 2)  # midnight joins both ends


def test_where_a_lane_has_too_little_its_profile_is_the_roads_shifted_to_it() -> None:
    road_VS = np.array([[60.0], [40.0], [50.0]])
    own_VS, count_VS = np.array([[66.0], [NAN], [NAN]]), np.array([[2], [0], [0]])
    assert pulled_profile(own_VS, count_VS, road_VS, 1.0)[:, 0].tolist() == [66, 46, 56]


def test_a_strong_pull_leads_to_the_road_and_a_weak_one_to_the_lane() -> None:
    road_VS = np.array([[60.0], [40.0]])
    own_VS, count_VS = np.array([[50.0], [50.0]]), np.array([[3], [3]])
    assert pulled_profile(own_VS, count_VS, road_VS, 1e9)[:, 0] == pytest.approx([60, 40])
    assert pulled_profile(own_VS, count_VS, road_VS, 1e-9)[:, 0] == pytest.approx([50, 50])


def regression(rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3)).astype(np.float32)
    y = (x @ np.array([[1.0, 2], [0, -1], [3, 0]]) + 0.1 * rng.normal(size=(rows, 2))).astype(np.float32)
    return x, y


def test_ridge_without_a_penalty_is_least_squares_and_batches_add_up() -> None:
    x, y = regression()
    sums = moments([(x[:50], y[:50]), (x[50:], y[50:])])
    expected = np.linalg.lstsq(x.astype(float), y.astype(float), rcond=None)[0]
    np.testing.assert_allclose(ridge(sums, 0.0), expected, atol=1e-8)


def test_ridge_is_the_least_squares_of_rows_that_are_added() -> None:
    x, y = regression()
    sums = moments([(x, y)])
    weight = 0.5 * np.trace(sums.gram_PP) / 3
    more = np.concatenate([x.astype(float), np.sqrt(weight) * np.eye(3)])
    expected = np.linalg.lstsq(more, np.concatenate([y.astype(float), np.zeros((3, 2))]), rcond=None)[0]
    np.testing.assert_allclose(ridge(sums, 0.5), expected, atol=1e-8)


def test_an_infinite_penalty_leads_to_the_roads_weights() -> None:
    x, y = regression()
    towards = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(ridge(moments([(x, y)]), 1e9, towards), towards, atol=1e-6)


def test_a_row_with_a_missing_target_counts_nowhere() -> None:
    x, y = regression()
    less = y.copy()
    less[7, 1] = NAN
    kept = np.arange(200) != 7
    here, there = moments([(x, less)]), moments([(x[kept], y[kept])])
    assert here.rows == there.rows == 199
    np.testing.assert_allclose(here.cross_PH, there.cross_PH)


def test_the_grid_has_its_ends() -> None:
    assert grid((0.01, 100), 5) == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert grid((0.01, 100), 1) == pytest.approx([1])


def test_a_new_dlinear_forecasts_the_mean_of_a_window() -> None:
    x_BSL = torch.tensor([[[1.0, 2, 3, 4, 5, 6, 7, 8]]])
    assert DLinear(8, 3)(x_BSL).detach().reshape(-1).tolist() == pytest.approx([4.5] * 3)


def test_dlinear_learns_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes would depend on the number of cores; and the caller's threads are as they were at every look."""
    import torch

    from stages.systems.minitraffic import dlinear

    seen = []
    monkeypatch.setattr(
        dlinear, "masked_l1", lambda *tensors: (seen.append(torch.get_num_threads()), masked_l1(*tensors))[1]
    )
    values_TS = np.random.default_rng(0).normal(60, 5, (60, 3)).astype(np.float32)
    level_S, scale_S = values_TS.mean(axis=0), values_TS.std(axis=0)
    plan = dlinear.Plan(rate=0.01, steps=4, windows=5, check=2)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        looks = dlinear.snapshots(Windows(values_TS, 18, 6), level_S, level_S, scale_S, plan, np.random.default_rng(1))
        outside = [torch.get_num_threads() for _ in looks]
    finally:
        torch.set_num_threads(before)
    assert seen == [1] * 4
    assert outside == [2] * 3
