"""Anomalies from the seasonal cycle, and the season a graph is estimated in."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

DAYS_PER_YEAR = 365.2425
#: Mean square below which a wave is a combination of the ones before it over the times of the fit.
DEPENDENT = 1e-10


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
    used_T = fit_T & np.isfinite(values_T)
    if used_T.sum() <= 1 + len(waves):
        raise ValueError(f"{used_T.sum()} values to fit a seasonal cycle of {1 + len(waves)} coefficients")
    # Modified Gram-Schmidt with plain sums: a LAPACK solver's last bits depend on where the arrays lie in memory, and
    # equal data must give equal bytes.
    remainder_T = values_T.astype(np.float64)
    orthogonal: list[NDArray[np.float64]] = []
    for column_T in [np.ones_like(angle_T), *waves]:
        for other_T in orthogonal:
            column_T = column_T - _projection(column_T, other_T, used_T) * other_T
        if np.sum(column_T[used_T] ** 2) > DEPENDENT * used_T.sum():
            orthogonal.append(column_T)
            remainder_T = remainder_T - _projection(remainder_T, column_T, used_T) * column_T
    return remainder_T


def _projection(values_T: NDArray[np.float64], onto_T: NDArray[np.float64], used_T: NDArray[np.bool_]) -> np.float64:
    """Coefficient of one series on another over some of the times."""
    onto = onto_T[used_T]
    coefficient: np.float64 = np.sum(values_T[used_T] * onto) / np.sum(onto * onto)
    return coefficient


def outside_season(month_T: NDArray[np.integer], months: Collection[int]) -> NDArray[np.bool_]:
    """Mask of the times whose month is not in the season: True means not used, shape (time,)."""
    return ~np.isin(month_T, list(months))
