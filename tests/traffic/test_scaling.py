from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.traffic import scaling

VALUES = np.array([[10, 5, 0], [20, 5, np.nan], [0, 5, np.nan], [30, 5, np.nan], [999, 999, 7]], dtype=np.float32)


def test_the_scale_is_that_of_training_values_that_are_measured() -> None:
    found = scaling.fit(VALUES, (0, 4), null=0)
    assert found.mean_S[0] == pytest.approx(20)
    assert found.scale_S[0] == pytest.approx(np.std([10, 20, 30]))
    assert scaling.fit(VALUES, (0, 4)).mean_S[0] == pytest.approx(15)


def test_nothing_outside_the_training_steps_is_read() -> None:
    changed = VALUES.copy()
    changed[4] = -1e6
    for name in ("mean_S", "scale_S"):
        np.testing.assert_array_equal(
            getattr(scaling.fit(VALUES, (0, 4), null=0), name), getattr(scaling.fit(changed, (0, 4), null=0), name)
        )


def test_a_deviation_of_zero_does_not_divide() -> None:
    found = scaling.fit(VALUES, (0, 4), null=0)
    assert found.constant_S.tolist() == [False, True, False]
    assert found.scale_S[1] == 1
    assert found.standardised(VALUES)[:4, 1].tolist() == [0, 0, 0, 0]
    constant = np.full((1000, 1), 0.1, np.float32)
    assert scaling.fit(constant, (0, 1000)).scale_S[0] == 1


def test_a_sensor_without_training_values_has_the_scale_of_all() -> None:
    found = scaling.fit(VALUES, (0, 4), null=0)
    every = [10, 20, 30, 5, 5, 5, 5]
    assert found.empty_S.tolist() == [False, False, True]
    assert (found.mean_S[2], found.scale_S[2]) == (pytest.approx(np.mean(every)), pytest.approx(np.std(every)))


def test_one_scale_for_all_sensors() -> None:
    found = scaling.fit(VALUES[:, :2], (0, 4), null=0, per_sensor=False)
    every = [10, 20, 30, 5, 5, 5, 5]
    assert found.mean_S.tolist() == pytest.approx([np.mean(every)] * 2)
    assert found.scale_S.tolist() == pytest.approx([np.std(every)] * 2)


def test_several_ranges_are_fitted_together() -> None:
    both = scaling.fit(VALUES, [(0, 1), (3, 4)])
    assert both.mean_S[0] == pytest.approx(20)
    assert both.scale_S[0] == pytest.approx(10)


@pytest.mark.parametrize("axis", [-1, 1])
def test_restored_values_are_the_values(axis: int) -> None:
    found = scaling.fit(VALUES, (0, 4), null=0)
    x = np.random.default_rng(0).uniform(0, 70, (4, 3, 3)).astype(np.float32)
    np.testing.assert_allclose(found.restored(found.standardised(x, axis), axis), x, rtol=1e-5)
    tensor = found.restored(found.standardised(torch.from_numpy(x), axis), axis)
    np.testing.assert_allclose(tensor.numpy(), x, rtol=1e-5)


def test_the_sensors_may_lie_along_any_axis() -> None:
    found = scaling.fit(VALUES, (0, 4), null=0)
    x_BSL = np.zeros((2, 3, 5), np.float32) + found.mean_S[None, :, None]
    assert np.abs(found.standardised(x_BSL, 1)).max() == 0


def test_no_training_value_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="no training value to fit a scale on"):
        scaling.fit(VALUES[:, 2:], (1, 4))
