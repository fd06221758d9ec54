"""One lagged sample of a multivariate series, and the moments that all its tests share.

Shape suffixes: T time, N variable, L lag, R target time (R = T - 2 tau_max, from 2 tau_max to T - 1), D lagged cell.
Cell lag * N + i is variable i, lag steps before the target; D = N (2 tau_max + 1).

The Gram matrix of the lagged columns is nearly block-Toeplitz: shifting both columns of a pair one step back adds one
product at one end and removes one at the other, so N x N products per lag difference are all that is summed in full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from stages.causal.compiled import compiled
from stages.causal.student import normal_quantile

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

# The normal score of the largest value, whose empirical distribution function is 1 (as in tigramite's RobustParCorr).
TOP_PROBABILITY = 0.99999
# Below this share of a variable's largest lagged sum of squares, edge terms of the Toeplitz sums cost too many digits.
TOEPLITZ_RANGE = 1e-3
# Below this share of its raw sum of squares, a column's centred one is computed from the centred column.
DOUBTFUL_SPREAD = 1e-4
_CHUNK = 4096


class Moments(NamedTuple):
    """What the compiled tests read; values are shifted and scaled per variable, missing ones are 0."""

    x_NT: Floats
    missing_NT: Bytes
    gappy_N: Bytes
    order_NT: Integers
    weight_R: Floats
    masked_NR: Bytes
    gram_DD: Floats
    sum_D: Floats
    total: float
    first: int
    complete: bool
    robust: bool


@compiled
def expand_toeplitz(base_LNN: Floats, x_TN: Floats, first: int) -> Floats:
    """Gram matrix of all lagged columns from the products with the unlagged ones.

    Parameters
    ----------
    base_LNN
        Sum over target times of x[t, i] x[t - d, j], for d = 0 to 2 tau_max.
    x_TN
        The series.
    first
        First target time.

    Returns
    -------
    ndarray
        gram_DD, symmetric.
    """
    lags, n, _ = base_LNN.shape
    t_end = x_TN.shape[0]
    gram_DD = np.empty((lags * n, lags * n))
    for d in range(lags):
        for i in range(n):
            for j in range(n):
                gram_DD[i, d * n + j] = base_LNN[d, i, j]
    for a in range(1, lags):
        for d in range(lags - a):
            for i in range(n):
                gained = x_TN[first - a, i]
                lost = x_TN[t_end - a, i]
                row, above = a * n + i, (a - 1) * n + i
                column, before = (a + d) * n, (a + d - 1) * n
                for j in range(n):
                    edge = gained * x_TN[first - a - d, j] - lost * x_TN[t_end - a - d, j]
                    gram_DD[row, column + j] = gram_DD[above, before + j] + edge
    for row in range(lags * n):
        for column in range(row):
            gram_DD[row, column] = gram_DD[column, row]
    return gram_DD


@compiled
def score_column(
    x_T: Floats, order_T: Integers, weight_R: Floats, start: int, total: float, score_M: Floats, out_R: Floats
) -> None:
    """Replace one lagged column by its normal scores, Phi^-1 of the empirical distribution function.

    Parameters
    ----------
    x_T, order_T
        The series and the times that sort it.
    weight_R
        How often each target time is in the sample; 0 leaves it out.
    start
        Time of the cell at the first target time.
    total
        Sum of the weights.
    score_M
        Scores of the cumulative counts 0 to total.
    out_R
        Receives the scores; rows of weight 0 receive 0.
    """
    rows = weight_R.size
    for r in range(rows):
        out_R[r] = 0.0
    below = 0.0
    length = order_T.size
    k = 0
    while k < length:
        value = x_T[order_T[k]]
        stop = k
        while stop < length and x_T[order_T[stop]] == value:
            r = order_T[stop] - start
            if 0 <= r < rows:
                below += weight_R[r]
            stop += 1
        score = score_M[int(min(below, total))]
        for q in range(k, stop):
            r = order_T[q] - start
            if 0 <= r < rows and weight_R[r] > 0.0:
                out_R[r] = score
        k = stop
    return


@compiled
def score_table(total: int) -> Floats:
    """Tabulate the normal scores of the counts 0 to total; entry 0 is not used.

    Parameters
    ----------
    total
        Sample size.

    Returns
    -------
    ndarray
        score_M, M = total + 1.
    """
    score_M = np.zeros(total + 1)
    for k in range(1, total // 2 + 1):
        score_M[k] = normal_quantile(k / total)
        score_M[total - k] = -score_M[k]
    score_M[total] = normal_quantile(TOP_PROBABILITY)
    return score_M


def window_moments(m: Moments) -> tuple[Floats, Floats]:
    """Weighted sums and products of all lagged columns of the scaled series, not centred.

    Parameters
    ----------
    m
        The sample.

    Returns
    -------
    tuple
        gram_DD and sum_D.
    """
    n, steps = m.x_NT.shape
    first, lags = m.first, m.first + 1
    if (m.weight_R == 1.0).all():
        now_NR = m.x_NT[:, first:]
        base_LNN = np.empty((lags, n, n))
        for d in range(lags):
            np.matmul(now_NR, m.x_NT[:, first - d : steps - d].T, out=base_LNN[d])
        gram_DD = expand_toeplitz(base_LNN, np.ascontiguousarray(m.x_NT.T), first)
        squares_LN = np.diag(gram_DD).reshape(lags, n)
        if (squares_LN.min(axis=0) >= TOEPLITZ_RANGE * squares_LN.max(axis=0)).all():
            return gram_DD, np.concatenate([m.x_NT[:, first - a : steps - a].sum(axis=1) for a in range(lags)])
    return column_moments(m, None)


def column_moments(m: Moments, columns_DR: Floats | None) -> tuple[Floats, Floats]:
    """Weighted sums and products of given columns, or of all lagged columns, in pieces that fit the cache.

    Parameters
    ----------
    m
        The sample.
    columns_DR
        The columns; None for the scaled series.

    Returns
    -------
    tuple
        gram_DD and sum_D.
    """
    n = m.x_NT.shape[0]
    cells = n * (m.first + 1)
    gram_DD, sum_D = np.zeros((cells, cells)), np.zeros(cells)
    used_R = np.flatnonzero(m.weight_R)
    piece_DR = np.empty((cells, min(_CHUNK, used_R.size)))
    for begin in range(0, used_R.size, _CHUNK):
        rows = used_R[begin : begin + _CHUNK]
        part_DR = piece_DR[:, : rows.size]
        if columns_DR is not None:
            part_DR[:] = columns_DR[:, rows]
        else:
            for lag in range(m.first + 1):
                part_DR[lag * n : (lag + 1) * n] = m.x_NT[:, rows + (m.first - lag)]
        root_R = np.sqrt(m.weight_R[rows])
        part_DR *= root_R
        sum_D += part_DR @ root_R
        gram_DD += part_DR @ part_DR.T
    return gram_DD, sum_D


def normal_scores(m: Moments) -> Floats:
    """Replace every lagged column of a complete sample by its normal scores.

    Parameters
    ----------
    m
        The sample.

    Returns
    -------
    ndarray
        scores_DR.
    """
    n = m.x_NT.shape[0]
    count = np.arange(1, int(m.total) + 1)
    score_M = np.concatenate([[0.0], ndtri(count / m.total)])
    score_M[-1] = ndtri(TOP_PROBABILITY)
    scores_DR = np.empty((n * (m.first + 1), m.weight_R.size))
    for lag in range(m.first + 1):
        for i in range(n):
            score_column(m.x_NT[i], m.order_NT[i], m.weight_R, m.first - lag, m.total, score_M, scores_DR[lag * n + i])
    return scores_DR


def correlations(m: Moments, gram_DD: Floats, sum_D: Floats, scores_DR: Floats | None) -> tuple[Floats, Booleans]:
    """Correlation matrix of all lagged columns of a complete sample.

    Parameters
    ----------
    m
        The sample.
    gram_DD, sum_D
        Weighted products and sums of the columns, overwritten.
    scores_DR
        The columns, where they are not the scaled series.

    Returns
    -------
    tuple
        The correlations, and which columns are constant; a constant one correlates with nothing.
    """
    square_D = np.diag(gram_DD) - sum_D * sum_D / m.total
    if (square_D <= DOUBTFUL_SPREAD * np.diag(gram_DD)).any():
        return _exact_correlations(m, scores_DR)
    gram_DD -= np.outer(sum_D, sum_D / m.total)
    inverse_D = 1.0 / np.sqrt(square_D)
    gram_DD *= inverse_D
    gram_DD *= inverse_D[:, None]
    np.fill_diagonal(gram_DD, 1.0)
    return gram_DD, np.zeros(square_D.size, np.bool_)


def _exact_correlations(m: Moments, scores_DR: Floats | None) -> tuple[Floats, Booleans]:
    """Correlations by centring every column first, for columns whose spread is small beside their mean."""
    used_R = np.flatnonzero(m.weight_R)
    weight_R = m.weight_R[used_R]
    if scores_DR is not None:
        columns_DR = scores_DR[:, used_R]
    else:
        columns_DR = np.concatenate([m.x_NT[:, used_R + (m.first - lag)] for lag in range(m.first + 1)])
    constant_D = columns_DR.min(axis=1) == columns_DR.max(axis=1)
    columns_DR -= columns_DR[:, :1].copy()
    columns_DR -= (columns_DR @ weight_R / m.total)[:, None]
    columns_DR[constant_D] = 0.0
    columns_DR *= np.sqrt(weight_R)
    # Unit columns before the product: their spreads may differ by many powers of ten.
    size_D = np.sqrt(np.einsum("dr,dr->d", columns_DR, columns_DR))
    columns_DR /= np.where(size_D > 0.0, size_D, 1.0)[:, None]
    corr_DD = columns_DR @ columns_DR.T
    np.fill_diagonal(corr_DD, 1.0)
    return corr_DD, constant_D
