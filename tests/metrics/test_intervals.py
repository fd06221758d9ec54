from __future__ import annotations

import numpy as np
import pytest

from stages.metrics.intervals import bootstrap_interval
from stages.metrics.summary import round_figures


def test_the_interval_of_a_normal_mean_has_its_width() -> None:
    """1.96 standard errors to each side, within the noise of the bootstrap."""
    values = np.random.default_rng(0).normal(size=400)
    mean, low, high = bootstrap_interval(values, np.random.default_rng(1), resamples=20_000)
    error = values.std() / np.sqrt(values.size)
    assert mean == values.mean()
    assert (mean - low, high - mean) == pytest.approx((1.96 * error, 1.96 * error), rel=0.05)


def test_groups_without_a_value_are_left_out() -> None:
    assert bootstrap_interval([1.0, float("nan"), 1.0], np.random.default_rng(0)) == (1, 1, 1)


def test_one_group_has_no_interval_and_none_no_mean() -> None:
    one = bootstrap_interval([0.7], np.random.default_rng(0))
    assert one[0] == 0.7
    assert np.isnan(one[1:]).all()
    assert np.isnan(bootstrap_interval([], np.random.default_rng(0))).all()


def test_figures_are_rounded_to_significant_digits() -> None:
    assert round_figures({"a": [1 / 3, 123456789.0], "b": "x", "n": 12345678}) == {
        "a": [0.333333, 123457000.0],
        "b": "x",
        "n": 12345678,
    }
