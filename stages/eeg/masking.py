"""Masked features filled in for a learner that takes no NaN. Dimensions: W window, C channel, B band."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def filled(feature_WCB: NDArray[Any], trial_W: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Fill each masked value from its own trial, and say which were filled.

    In this order: the mean of the same channel and band over the other windows of the trial; the mean of the same
    window and band over the other channels; the mean of the same band over the trial. A trial without any value of a
    band stays NaN: it has to be refused.

    Returns
    -------
    filled_WCB, masked_WCB
    """
    feature_WCB = np.array(feature_WCB, dtype=np.float32)
    masked_WCB = ~np.isfinite(feature_WCB)
    for trial in np.unique(trial_W[masked_WCB.any(axis=(1, 2))]):
        rows = trial_W == trial
        block_WCB = feature_WCB[rows]
        for axes in (0, 1, (0, 1)):
            block_WCB = np.where(np.isfinite(block_WCB), block_WCB, _mean(block_WCB, axes))
        feature_WCB[rows] = block_WCB
    return feature_WCB, masked_WCB


def _mean(values: NDArray[Any], axes: int | tuple[int, ...]) -> NDArray[Any]:
    """Mean of the finite values over axes that are kept; NaN where there is none."""
    there = np.isfinite(values)
    count = there.sum(axis=axes, keepdims=True)
    total = np.where(there, values, 0.0).sum(axis=axes, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
