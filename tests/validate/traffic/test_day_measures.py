from __future__ import annotations

import numpy as np
import pytest

from stages.validate.traffic.day_measures import day_shapes, longest_runs, measure, spikes, spread

DAYS = [(0, 4), (4, 8)]
NAN = np.nan


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)[:, None]


def test_the_longest_run_ends_with_the_day_and_at_a_gap() -> None:
    values = column(5, 5, 7, 7, 7, 7, 7, 1)
    assert longest_runs(values, DAYS)[:, 0].tolist() == [2, 3]
    assert longest_runs(column(5, 5, NAN, 5, NAN, NAN, NAN, NAN), DAYS)[:, 0].tolist() == [2, 0]


def test_an_empty_road_at_night_is_no_run() -> None:
    values = column(0, 0, 0, 3, 3, 0, 2, 1)
    assert longest_runs(values, DAYS, zeros_run=False)[:, 0].tolist() == [1, 1]
    assert longest_runs(values, DAYS, zeros_run=True)[:, 0].tolist() == [3, 1]


def test_a_spike_is_far_from_both_neighbours_on_the_same_side() -> None:
    assert spikes(column(60, 60, 5, 60, 60, 40, 20, 20), DAYS, np.array([30.0]))[:, 0].tolist() == [1, 0]
    assert spikes(column(60, NAN, 5, 60, 5, 90, 5, NAN), DAYS, np.array([30.0]))[:, 0].tolist() == [0, 1]


def test_a_sensor_without_spread_has_no_spikes() -> None:
    values = column(60, 60, 60, 60, 60, 60, 60, 60)
    assert np.isnan(spread(values)).all()
    assert spikes(values, DAYS, spread(values))[:, 0].tolist() == [0, 0]
    assert np.isnan(spread(np.full((8, 1), NAN, np.float32))).all()


def test_a_day_is_correlated_with_the_mean_of_the_others() -> None:
    random = np.random.default_rng(0)
    typical = np.array([1.0, 4, 2, 8, 5, 7])
    values = np.concatenate([typical, 2 * typical + 1, -typical])[:, None] + random.normal(0, 1e-6, (18, 1))
    days = [(0, 6), (6, 12), (12, 18)]
    found = day_shapes(values.astype(np.float32), days, np.tile(np.arange(6), 3))
    assert found[2, 0] == pytest.approx(-1, abs=1e-3)
    expected = np.corrcoef(values[:6, 0], (values[6:12, 0] + values[12:, 0]) / 2)[0, 1]
    assert found[0, 0] == pytest.approx(expected, abs=1e-4)


def test_a_day_of_which_half_is_missing_or_that_does_not_vary_has_no_shape() -> None:
    values = np.concatenate([column(1, 2, 3, 4), column(NAN, NAN, NAN, 4), column(2, 2, 2, 2)])
    found = day_shapes(values, [(0, 4), (4, 8), (8, 12)], np.tile(np.arange(4), 3))
    assert np.isnan(found[1:, 0]).all()
    assert np.isfinite(found[0, 0])


def test_all_measures_have_a_row_a_day_and_a_column_a_sensor() -> None:
    values = np.random.default_rng(0).uniform(0, 60, (8, 3)).astype(np.float32)
    found = measure(values, DAYS, np.tile(np.arange(4), 2), spike=1.5, zeros_run=True)
    assert found.flat_steps_DS.shape == found.spikes_DS.shape == found.shape_DS.shape == (2, 3)
