"""Anomalies from the seasonal cycle, and the season a graph is estimated in."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

DAYS_PER_YEAR = 365.2425


def seasonal_anomalies(
    values_T: NDArray[np.float64], day_T: NDArray[np.float64], *, harmonics: int, fit_T: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Subtract the mean seasonal cycle, a least-squares sum of harmonics of the year.

    Parameters
    ----------
    values_T
        A series on a regular clock, NaN where missing, shape (time,), any unit.
    day_T
        Days since any 1 January, with fractions, shape (time,).
    harmonics
        Number of sines and cosines of the year; 0 subtracts the mean only.
    fit_T
        Which times the cycle is fitted to, shape (time,): training years only where a held-out year must not be seen.

    Returns
    -------
    NDArray
        ``values_T`` less the cycle, NaN where it was missing, shape (time,), same unit.

    Raises
    ------
    ValueError
        Fewer finite values to fit than coefficients.
    """
    angle_T = 2 * np.pi * day_T / DAYS_PER_YEAR
    waves = [wave(order * angle_T) for order in range(1, harmonics + 1) for wave in (np.sin, np.cos)]
    design_TK = np.column_stack([np.ones_like(angle_T), *waves])
    used_T = fit_T & np.isfinite(values_T)
    if used_T.sum() <= design_TK.shape[1]:
        raise ValueError(f"{used_T.sum()} values to fit a seasonal cycle of {design_TK.shape[1]} coefficients")
    coefficients_K, *_ = np.linalg.lstsq(design_TK[used_T], values_T[used_T], rcond=None)
    return values_T - design_TK @ coefficients_K


def outside_season(month_T: NDArray[np.integer], months: Collection[int]) -> NDArray[np.bool_]:
    """Mask of the times whose month is not in the season: True means not used, shape (time,)."""
    return ~np.isin(month_T, list(months))
