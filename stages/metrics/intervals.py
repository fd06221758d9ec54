"""Intervals of means by resampling whole groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2000


def bootstrap_interval(
    values: ArrayLike, rng: np.random.Generator, *, level: float = 0.95, resamples: int = RESAMPLES
) -> tuple[float, float, float]:
    """Mean over groups with its percentile bootstrap interval (Efron 1979).

    Parameters
    ----------
    values
        One value for each group, shape (groups,); NaN groups are left out.
    rng
        Where the resamples are drawn from.
    level
        Probability that the interval holds, between 0 and 1.
    resamples
        Number of bootstrap samples.

    Returns
    -------
    mean, low, high
        NaN where there is no group; with one group the interval is not defined and low, high are NaN.
    """
    group_values: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    group_values = group_values[np.isfinite(group_values)]
    if group_values.size == 0:
        return float("nan"), float("nan"), float("nan")
    mean = float(group_values.mean())
    if group_values.size == 1:
        return mean, float("nan"), float("nan")
    draws = rng.integers(0, group_values.size, size=(resamples, group_values.size))
    means = group_values[draws].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return mean, float(low), float(high)
