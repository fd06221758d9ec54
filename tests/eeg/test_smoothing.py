"""Smoothing: the dense posterior, its limits, missing windows, and that no trial sees another."""

from __future__ import annotations

import numpy as np
import pytest

from stages.eeg.masking import filled
from stages.eeg.smoothing import linear_dynamical_system, moving_average, smooth_trials


def dense_posterior(observed: np.ndarray, process: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the level by one inversion of its precision matrix; nothing known of the first level."""
    there = np.isfinite(observed)
    difference = np.diff(np.eye(observed.size), axis=0)
    covariance = np.linalg.inv(difference.T @ difference / process + np.diag(there / noise))
    return covariance @ (np.where(there, observed, 0) / noise), np.diag(covariance)


@pytest.mark.parametrize("gaps", [[], [3], [0, 1], [9], [0, 4, 5, 9]])
@pytest.mark.parametrize("ratio", [0.01, 0.3, 5.0])
def test_the_smoother_is_the_posterior_of_its_model(gaps: list[int], ratio: float) -> None:
    observed = np.random.default_rng(0).normal(3, 2, size=10)
    observed[gaps] = np.nan
    found = linear_dynamical_system(observed[:, None], ratio=ratio)
    mean, variance = dense_posterior(observed, found.process_variance[0], found.noise_variance[0])
    np.testing.assert_allclose(found.mean[:, 0], mean, rtol=1e-9)
    np.testing.assert_allclose(found.variance[:, 0], variance, rtol=1e-9)


def test_the_limits_are_the_mean_of_the_trial_and_the_values_themselves() -> None:
    observed_WF = np.random.default_rng(1).normal(size=(12, 3))
    still = linear_dynamical_system(observed_WF, ratio=1e-10).mean
    np.testing.assert_allclose(still, np.broadcast_to(observed_WF.mean(axis=0), (12, 3)), atol=1e-6)
    np.testing.assert_allclose(linear_dynamical_system(observed_WF, ratio=1e10).mean, observed_WF, atol=1e-6)


@pytest.mark.parametrize("gaps", [[], [0, 1, 7]])
def test_a_step_of_the_fit_never_lowers_the_likelihood(gaps: list[int]) -> None:
    observed_WF = np.cumsum(np.random.default_rng(2).normal(size=(40, 6)), axis=0)
    observed_WF += np.random.default_rng(3).normal(scale=2, size=observed_WF.shape)
    observed_WF[gaps] = np.nan
    likelihood = [linear_dynamical_system(observed_WF, em_steps=steps).log_likelihood for steps in range(12)]
    assert (np.diff(likelihood, axis=0) > -1e-9).all()


def test_the_fit_finds_the_variances_of_a_long_series() -> None:
    random = np.random.default_rng(4)
    observed_WF = np.cumsum(random.normal(scale=0.5, size=(5000, 2)), axis=0) + random.normal(scale=1.5, size=(5000, 2))
    found = linear_dynamical_system(observed_WF, em_steps=100)
    np.testing.assert_allclose(found.process_variance, 0.25, rtol=0.15)
    np.testing.assert_allclose(found.noise_variance, 2.25, rtol=0.1)


def test_a_constant_stays_constant_and_a_feature_without_values_stays_missing() -> None:
    observed_WF = np.stack([np.full(5, 2.5), np.full(5, np.nan)], axis=1)
    found = linear_dynamical_system(observed_WF, em_steps=5)
    np.testing.assert_allclose(found.mean[:, 0], 2.5)
    assert np.isnan(found.mean[:, 1]).all()


def test_no_trial_sees_another() -> None:
    """The same numbers alone and beside trials of other lengths."""
    random = np.random.default_rng(5)
    trials = [random.normal(size=(length, 4, 5)).astype(np.float32) for length in (12, 3, 1, 20, 0)]
    together = smooth_trials(trials, ratio=0.2, em_steps=4)
    for trial, smoothed in zip(trials, together, strict=True):
        assert smoothed.shape == trial.shape
        np.testing.assert_allclose(smoothed, smooth_trials([trial], ratio=0.2, em_steps=4)[0], atol=1e-5)


def test_a_moving_average_is_the_mean_of_the_neighbours_that_are_there() -> None:
    value_WF = np.array([[1.0], [2], [6], [np.nan], [10]])
    assert moving_average(value_WF, 3)[:, 0].tolist() == [1.5, 3, 4, 8, 10]
    np.testing.assert_array_equal(moving_average(value_WF, 1), value_WF)
    np.testing.assert_allclose(moving_average(value_WF, 99)[:, 0], np.nanmean(value_WF))


@pytest.mark.parametrize("windows", [0, 2, 4])
def test_an_even_average_has_no_middle(windows: int) -> None:
    with pytest.raises(ValueError, match="expected an odd number"):
        moving_average(np.zeros((3, 1)), windows)


def test_masked_features_are_filled_from_their_own_trial() -> None:
    feature_WCB = np.arange(12, dtype=np.float32).reshape(4, 3, 1)
    feature_WCB[1, 0] = np.nan  # other window of the trial: 0
    feature_WCB[2:, 1] = np.nan  # the channel is masked through the second trial: mean of the other channels
    trial_W = np.array([0, 0, 1, 1])
    done, masked = filled(feature_WCB, trial_W)
    assert done[1, 0, 0] == 0
    assert done[2:, 1, 0].tolist() == [7, 10]
    assert masked.sum() == 3
    feature_WCB[2:] = 999
    np.testing.assert_array_equal(filled(feature_WCB, trial_W)[0][:2], done[:2])
    assert np.isnan(filled(np.full((2, 2, 1), np.nan), np.zeros(2))[0]).all()
