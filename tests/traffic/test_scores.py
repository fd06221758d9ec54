from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from stages.traffic.scores import ErrorSums, Score, masked_l1, score, valid

RANDOM = np.random.default_rng(0)


def some_forecasts(windows: int, sensors: int = 3, horizon: int = 4) -> tuple[np.ndarray, np.ndarray]:
    truth = RANDOM.uniform(20, 70, (windows, sensors, horizon)).astype(np.float32)
    truth[RANDOM.random(truth.shape) < 0.3] = np.nan
    return truth, RANDOM.uniform(20, 70, truth.shape).astype(np.float32)


def test_a_stated_null_value_is_no_measurement() -> None:
    found = score([0, 60, 50], [30, 63, 48], null=0)
    assert found.mae == pytest.approx(2.5)
    assert found.rmse == pytest.approx(math.sqrt((9 + 4) / 2))
    assert round(found.rmse or 0, 2) == 2.55
    assert found.mape == pytest.approx(4.5)
    assert (found.count, found.mape_count) == (2, 2)


def test_without_a_null_value_a_zero_is_a_measurement() -> None:
    found = score([0.0, 0.0, 12.0], [3.0, 0.0, 9.0])
    assert found.mae == pytest.approx(2)
    assert (found.count, found.mape_count) == (3, 1)
    assert found.mape == pytest.approx(25)


def test_a_missing_value_counts_nowhere_whatever_the_forecast() -> None:
    assert score([np.nan, 10.0], [np.nan, 11.0]) == Score(1.0, 1.0, pytest.approx(10), 1, 1)
    assert valid([np.nan, 0.0, 5.0]).tolist() == [False, True, True]
    assert valid([np.nan, 0.0, 5.0], null=0).tolist() == [False, False, True]


def test_nothing_to_score_is_undefined_and_not_zero() -> None:
    assert score([np.nan, 0.0], [1.0, 1.0], null=0) == Score(None, None, None, 0, 0)


def test_the_errors_do_not_depend_on_the_batch_size_to_the_last_bit() -> None:
    truth, forecast = some_forecasts(23)
    hour = RANDOM.integers(0, 24, (23, 4))
    totals = set()
    for size in (1, 4, 5, 23):
        sums = ErrorSums(3, 4, groups={"hour": 24})
        for begin in range(0, 23, size):
            part = slice(begin, begin + size)
            sums.add(truth[part], forecast[part], hour=hour[part])
        assert sums.windows == 23
        totals.add((sums.total(), *sums.by_horizon(), *sums.by_sensor(), *sums.by_group("hour")))
    assert len(totals) == 1


def test_batches_weigh_by_their_valid_values() -> None:
    sums = ErrorSums(1, 1)
    sums.add(np.array([[[10.0]], [[10.0]], [[10.0]]]), np.array([[[11.0]], [[11.0]], [[11.0]]]))
    sums.add(np.array([[[10.0]], [[np.nan]], [[np.nan]]]), np.array([[[15.0]], [[0.0]], [[0.0]]]))
    assert sums.total().mae == pytest.approx((3 * 1 + 5) / 4)


def test_slices_are_what_a_score_of_the_slice_gives() -> None:
    truth, forecast = some_forecasts(9)
    group = np.array([0, 1, 0, 1, 1, 0, 0, 0, 1])
    sums = ErrorSums(3, 4, groups={"weekend": 2})
    sums.add(truth, forecast, weekend=group)
    approximately = [
        (sums.total(), score(truth, forecast)),
        (sums.by_horizon()[2], score(truth[:, :, 2], forecast[:, :, 2])),
        (sums.by_sensor()[1], score(truth[:, 1], forecast[:, 1])),
        (sums.over_sensors(np.array([0, 2])), score(truth[:, [0, 2]], forecast[:, [0, 2]])),
        (sums.by_group("weekend")[1], score(truth[group == 1], forecast[group == 1])),
        (sums.by_group_and_sensor("weekend")[0][2], score(truth[group == 0, 2], forecast[group == 0, 2])),
        (sums.by_group_and_horizon("weekend")[0][3], score(truth[group == 0, :, 3], forecast[group == 0, :, 3])),
    ]
    for found, expected in approximately:
        assert found.as_json() == pytest.approx(expected.as_json())


def test_a_group_may_differ_between_the_steps_of_one_window() -> None:
    sums = ErrorSums(1, 2, groups={"hour": 24})
    sums.add(np.array([[[10.0, 20.0]]]), np.array([[[11.0, 24.0]]]), hour=np.array([[7, 8]]))
    assert [sums.by_group("hour")[hour].mae for hour in (7, 8, 9)] == [1, 4, None]


def test_a_forecast_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the forecast is no number at \[1\], where the truth is 50.0"):
        score([60.0, 50.0], [60.0, np.nan])


def test_what_does_not_fit_is_refused() -> None:
    sums = ErrorSums(3, 4, groups={"hour": 24})
    truth, forecast = some_forecasts(2)
    with pytest.raises(ValueError, match=r"groupings \[\]; expected \['hour'\]"):
        sums.add(truth, forecast)
    with pytest.raises(ValueError, match=r"labels of shape \(3,\); expected one a window"):
        sums.add(truth, forecast, hour=np.zeros(3, int))
    with pytest.raises(ValueError, match=r"forecasts of shape \(3, 2\); expected \(3, 4\)"):
        sums.add(truth[:, :, :2], forecast[:, :, :2], hour=np.zeros(2, int))
    with pytest.raises(ValueError, match=r"a truth of shape \(2, 3, 4\) and a forecast of shape \(1, 3, 4\)"):
        sums.add(truth, forecast[:1], hour=np.zeros(2, int))


def test_the_loss_equals_the_error_and_a_missing_truth_has_no_gradient() -> None:
    truth, told = some_forecasts(5)
    forecast = torch.tensor(told, requires_grad=True)
    loss = masked_l1(forecast, torch.from_numpy(truth))
    assert loss.item() == pytest.approx(score(truth, told).mae, rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert forecast.grad is not None
    np.testing.assert_array_equal(forecast.grad.numpy() == 0, np.isnan(truth))
    assert masked_l1(forecast, torch.full_like(forecast, torch.nan)).item() == 0
