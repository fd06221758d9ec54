"""Smoothing of features over the windows of one trial: a moving average, or a linear dynamical system.

A window is smoothed with windows of its own trial only, earlier and later ones. Missing values (NaN) are left out;
where other windows of the trial have a value of the feature, they get one from them.

Dimensions: W window, F feature, R trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def moving_average(feature_WF: NDArray[Any], windows: int) -> Array:
    """Mean of the window and its (windows - 1) / 2 neighbours on either side, as many as there are.

    Raises
    ------
    ValueError
        ``windows`` is not odd: the mean would lie between two windows.
    """
    if windows < 1 or windows % 2 == 0:
        raise ValueError(f"a moving average over {windows} windows has no middle; expected an odd number")
    feature_WF = np.asarray(feature_WF, dtype=np.float64)
    there_WF = np.isfinite(feature_WF)
    value_WF = np.where(there_WF, feature_WF, 0.0)
    total_WF, count_WF = np.zeros_like(value_WF), np.zeros(value_WF.shape)
    length = len(value_WF)
    for shift in range(-(windows // 2), windows // 2 + 1):
        here, other = slice(max(0, -shift), length - max(0, shift)), slice(max(0, shift), length + min(0, shift))
        if abs(shift) < length:
            total_WF[here] += value_WF[other]
            count_WF[here] += there_WF[other]
    return np.where(count_WF > 0, total_WF / np.maximum(count_WF, 1), np.nan)


@dataclass(frozen=True)
class Smoothed:
    """Posterior of a local-level model; arrays (window, feature), NaN for a feature that is missing throughout.

    Attributes
    ----------
    mean, variance
        Of the level in each window, given all windows of the trial.
    process_variance, noise_variance
        The two variances of each feature (feature,).
    log_likelihood
        Of the observed values of each feature (feature,), the first one being given.
    """

    mean: Array
    variance: Array
    process_variance: Array
    noise_variance: Array
    log_likelihood: Array


def linear_dynamical_system(
    feature_WF: NDArray[Any], *, ratio: float = 0.1, em_steps: int = 0, lengths_F: NDArray[np.int64] | None = None
) -> Smoothed:
    """Kalman filter and Rauch-Tung-Striebel smoother of a level that wanders under noise, for all features at once.

    Each feature on its own: level_w = level_(w-1) + N(0, process), observed_w = level_w + N(0, noise); nothing is known
    of the first level. The mean depends on process / noise alone; ``em_steps`` steps of expectation maximisation fit
    both variances to the trial, from ``ratio``.

    Parameters
    ----------
    feature_WF
        NaN where a value is missing.
    ratio
        Process variance over noise variance to begin with.
    em_steps
        Steps of the fit; each raises the likelihood or keeps it.
    lengths_F
        Windows of each feature that belong to its trial (the rest is padding); by default all.
    """
    observed_WF = np.asarray(feature_WF, dtype=np.float64)
    length, features = observed_WF.shape
    there_WF = np.isfinite(observed_WF)
    count_F = there_WF.sum(axis=0)
    lengths_F = np.full(features, length) if lengths_F is None else lengths_F
    inside_WF = np.arange(length)[:, None] < lengths_F
    value_WF = np.where(there_WF, observed_WF, 0.0)
    noise_F = np.maximum(_spread(value_WF, there_WF, count_F), np.finfo(np.float64).tiny)
    process_F = ratio * noise_F
    floor_F = 1e-9 * noise_F
    for _ in range(em_steps):
        mean_WF, variance_WF, lag_WF, _ = _smooth(value_WF, there_WF, process_F, noise_F)
        process_F, noise_F = _refit(value_WF, there_WF, inside_WF, mean_WF, variance_WF, lag_WF)
        process_F, noise_F = np.maximum(process_F, floor_F), np.maximum(noise_F, floor_F)
    mean_WF, variance_WF, _, likelihood_F = _smooth(value_WF, there_WF, process_F, noise_F)
    known = (count_F > 0) & inside_WF
    return Smoothed(
        mean=np.where(known, mean_WF, np.nan),
        variance=np.where(known, variance_WF, np.nan),
        process_variance=process_F,
        noise_variance=noise_F,
        log_likelihood=likelihood_F,
    )


def _spread(value_WF: Array, there_WF: NDArray[np.bool_], count_F: NDArray[np.int64]) -> Array:
    """Variance of the values that are there; 1 where they do not vary."""
    mean_F = value_WF.sum(axis=0) / np.maximum(count_F, 1)
    spread_F = (np.where(there_WF, value_WF - mean_F, 0.0) ** 2).sum(axis=0) / np.maximum(count_F, 1)
    return np.where(spread_F > 0, spread_F, 1.0)


def _smooth(
    value_WF: Array, there_WF: NDArray[np.bool_], process_F: Array, noise_F: Array
) -> tuple[Array, Array, Array, Array]:
    """Mean, variance, covariance with the window before, and log likelihood.

    Before the first observation nothing is known; this limit of an infinite variance is taken exactly: the first
    observation sets the level, and the likelihood counts from the second.
    """
    length, features = value_WF.shape
    mean_WF, variance_WF = np.zeros_like(value_WF), np.full_like(value_WF, np.inf)
    likelihood_F = np.zeros(features)
    mean_F, variance_F = np.zeros(features), np.full(features, np.inf)
    for window in range(length):
        ahead_F = variance_F + process_F if window else variance_F
        known_F = np.isfinite(ahead_F)
        safe_F = np.where(known_F, ahead_F, 0.0)
        gain_F = np.where(known_F, safe_F / (safe_F + noise_F), 1.0)
        seen_F = there_WF[window]
        error_F = value_WF[window] - mean_F
        told_F = seen_F & known_F
        total_F = safe_F + noise_F
        likelihood_F += np.where(told_F, -0.5 * (np.log(2 * np.pi * total_F) + error_F**2 / total_F), 0.0)
        mean_F = np.where(seen_F, mean_F + gain_F * error_F, mean_F)
        variance_F = np.where(seen_F, np.where(known_F, gain_F * noise_F, noise_F), ahead_F)
        mean_WF[window], variance_WF[window] = mean_F, variance_F
    lag_WF = np.zeros_like(value_WF)
    for window in range(length - 2, -1, -1):
        filtered_F = variance_WF[window]
        known_F = np.isfinite(filtered_F)
        safe_F = np.where(known_F, filtered_F, 0.0)
        back_F = np.where(known_F, safe_F / (safe_F + process_F), 1.0)
        later_F = variance_WF[window + 1]
        mean_WF[window] += back_F * (mean_WF[window + 1] - mean_WF[window])
        # (1 - back) filtered + back^2 later, in which (1 - back) filtered = back process, also without bound
        variance_WF[window] = back_F * process_F + back_F**2 * later_F
        lag_WF[window + 1] = back_F * later_F
    return mean_WF, variance_WF, lag_WF, likelihood_F


def _refit(
    value_WF: Array,
    there_WF: NDArray[np.bool_],
    inside_WF: NDArray[np.bool_],
    mean_WF: Array,
    variance_WF: Array,
    lag_WF: Array,
) -> tuple[Array, Array]:
    """Expected squares of the steps and of the errors, given the levels' posterior."""
    variance_WF, lag_WF = (np.where(np.isfinite(each), each, 0.0) for each in (variance_WF, lag_WF))
    step_WF = np.diff(mean_WF, axis=0) ** 2 + variance_WF[1:] + variance_WF[:-1] - 2 * lag_WF[1:]
    steps_F = inside_WF[1:].sum(axis=0)
    process_F = np.where(inside_WF[1:], step_WF, 0.0).sum(axis=0) / np.maximum(steps_F, 1)
    error_WF = (value_WF - mean_WF) ** 2 + variance_WF
    noise_F = np.where(there_WF, error_WF, 0.0).sum(axis=0) / np.maximum(there_WF.sum(axis=0), 1)
    return process_F, noise_F


def smooth_trials(trials: Sequence[NDArray[Any]], *, ratio: float, em_steps: int) -> list[NDArray[np.float32]]:
    """A linear dynamical system in each trial on its own, all trials in one pass.

    Parameters
    ----------
    trials
        Arrays (window, ...) of one shape but for the number of windows.
    ratio, em_steps
        See :func:`linear_dynamical_system`.

    Returns
    -------
    list of NDArray
        The smoothed trials, in their shapes.
    """
    lengths_R = np.array([len(trial) for trial in trials], dtype=np.int64)
    if not lengths_R.size or not lengths_R.max():
        return [np.asarray(trial, dtype=np.float32) for trial in trials]
    flat = [np.asarray(trial, dtype=np.float64).reshape(len(trial), int(np.prod(trial.shape[1:]))) for trial in trials]
    features = flat[0].shape[1]
    padded_WRF = np.full((int(lengths_R.max()), len(trials), features), np.nan)
    for index, trial_WF in enumerate(flat):
        padded_WRF[: len(trial_WF), index] = trial_WF
    mean_WF = linear_dynamical_system(
        padded_WRF.reshape(len(padded_WRF), -1),
        ratio=ratio,
        em_steps=em_steps,
        lengths_F=np.repeat(lengths_R, features),
    ).mean
    mean_WRF = mean_WF.reshape(padded_WRF.shape)
    return [mean_WRF[: len(trial), index].reshape(trial.shape).astype(np.float32) for index, trial in enumerate(trials)]
