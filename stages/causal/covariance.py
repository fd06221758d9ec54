"""One lagged sample of a multivariate series, and the moments that all its tests share.

Shape suffixes: T time, N variable, L lag, R row (a target time of the sample), D lagged cell, W word of 64 rows.
Cell lag * N + i is variable i, lag steps before the target; D = N (2 tau_max + 1).

The Gram matrix of the lagged columns is nearly block-Toeplitz: shifting both columns of a pair one step back adds one
product at one end and removes one at the other, so N x N products per lag difference are all that is summed in full.

All sums are compiled here: the digits of a BLAS product depend on its number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.causal.compiled import compiled
from stages.causal.ranks import Bytes, Counts, Floats, Integers, mark_ties, score_rows, sort_rows, write_scores

Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]

# Below this share of a variable's largest lagged sum of squares, edge terms of the Toeplitz sums cost too many digits.
TOEPLITZ_RANGE = 1e-3
# Below this share of its raw sum of squares, a column's centred one is computed from the centred column.
DOUBTFUL_SPREAD = 1e-4
_CHUNK = 2048


class Moments(NamedTuple):
    """What the compiled tests read; values are shifted and scaled per variable, missing ones are 0.

    Rows are the target times of the sample, each once; their weights say how often each is drawn. A word has a bit for
    each of 64 rows: set where a cell is missing, or where the target is masked for a variable. ``order_NS`` are times
    by value, ``row_T`` the row of each target time or -1. Where tests have different rows, the order of each cell is
    kept: rows by value, the last place of each run of equal values, the length, and whether there are such runs.
    """

    x_NT: Floats
    order_NS: Integers
    row_T: Integers
    time_R: Integers
    weight_R: Floats
    missing_DW: Words
    masked_NW: Words
    order_DR: Counts
    end_DR: Counts
    size_D: Integers
    tied_D: Bytes
    gram_DD: Floats
    sum_D: Floats
    total: float
    first: int
    complete: bool
    robust: bool


@compiled
def dot(a_R: Floats, b_R: Floats) -> float:
    """Sum of the products of two vectors."""
    s = 0.0
    for r in range(a_R.size):
        s += a_R[r] * b_R[r]
    return s


@compiled
def add_products(a_KT: Floats, a_start: int, b_KT: Floats, b_start: int, length: int, lower: bool, out: Floats) -> None:
    """Add the products of all rows of one matrix with all rows of another, over some columns of each.

    Parameters
    ----------
    a_KT, b_KT
        The matrices.
    a_start, b_start, length
        First column in each, and how many columns.
    lower
        Leave out the entries above the diagonal (as far as blocks of two allow).
    out
        What is added to.
    """
    # Blocks of 2 x 2 rows: every value that is loaded serves twice.
    rows, columns = a_KT.shape[0], b_KT.shape[0]
    for i in range(0, rows, 2):
        a0_T = a_KT[i][a_start : a_start + length]
        a1_T = a_KT[min(i + 1, rows - 1)][a_start : a_start + length]
        for j in range(0, min(columns, i + 2) if lower else columns, 2):
            b0_T = b_KT[j][b_start : b_start + length]
            b1_T = b_KT[min(j + 1, columns - 1)][b_start : b_start + length]
            s00 = s01 = s10 = s11 = 0.0
            for t in range(length):
                s00 += a0_T[t] * b0_T[t]
                s01 += a0_T[t] * b1_T[t]
                s10 += a1_T[t] * b0_T[t]
                s11 += a1_T[t] * b1_T[t]
            out[i, j] += s00
            if j + 1 < columns:
                out[i, j + 1] += s01
            if i + 1 < rows:
                out[i + 1, j] += s10
                if j + 1 < columns:
                    out[i + 1, j + 1] += s11


@compiled
def mirror(gram_DD: Floats) -> None:
    """Copy the lower triangle to the upper one."""
    for row in range(gram_DD.shape[0]):
        for column in range(row):
            gram_DD[column, row] = gram_DD[row, column]


@compiled
def toeplitz_moments(x_NT: Floats, first: int) -> tuple[Floats, Floats]:
    """Products and sums of all lagged columns of a series whose target times are all in the sample, once.

    Parameters
    ----------
    x_NT
        The series.
    first
        First target time, which is the largest lag.

    Returns
    -------
    tuple
        gram_DD and sum_D.
    """
    n, steps = x_NT.shape
    lags = first + 1
    gram_DD = np.zeros((lags * n, lags * n))
    base_NN = np.zeros((n, n))
    for d in range(lags):
        base_NN[:] = 0.0
        for begin in range(first, steps, _CHUNK):
            add_products(x_NT, begin, x_NT, begin - d, min(_CHUNK, steps - begin), False, base_NN)
        for i in range(n):
            for j in range(n):
                gram_DD[i, d * n + j] = base_NN[i, j]
    for a in range(1, lags):
        for d in range(lags - a):
            for i in range(n):
                gained = x_NT[i, first - a]
                lost = x_NT[i, steps - a]
                for j in range(n):
                    edge = gained * x_NT[j, first - a - d] - lost * x_NT[j, steps - a - d]
                    before = gram_DD[(a - 1) * n + i, (a + d - 1) * n + j]
                    gram_DD[a * n + i, (a + d) * n + j] = before + edge
    for row in range(lags * n):
        for column in range(row):
            gram_DD[row, column] = gram_DD[column, row]
    sum_D = np.zeros(lags * n)
    for cell in range(lags * n):
        lag = cell // n
        x_T = x_NT[cell % n]
        s = 0.0
        for t in range(first - lag, steps - lag):
            s += x_T[t]
        sum_D[cell] = s
    return gram_DD, sum_D


def window_moments(m: Moments) -> tuple[Floats, Floats]:
    """Weighted products and sums of all lagged columns of the scaled series, not centred.

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
    if m.time_R.size == steps - m.first and (m.weight_R == 1.0).all():
        gram_DD, sum_D = toeplitz_moments(m.x_NT, m.first)
        squares_LN = np.diag(gram_DD).reshape(m.first + 1, n)
        if (squares_LN.min(axis=0) >= TOEPLITZ_RANGE * squares_LN.max(axis=0)).all():
            return gram_DD, sum_D
    return column_moments(m, np.empty((0, 0)))


@compiled
def column_moments(m: Moments, columns_DR: Floats) -> tuple[Floats, Floats]:
    """Weighted products and sums of given columns, or of all lagged columns, in pieces that fit the cache.

    Parameters
    ----------
    m
        The sample.
    columns_DR
        The columns; empty for the scaled series.

    Returns
    -------
    tuple
        gram_DD and sum_D.
    """
    n = m.x_NT.shape[0]
    cells = n * (m.first + 1)
    rows = m.time_R.size
    gram_DD, sum_D = np.zeros((cells, cells)), np.zeros(cells)
    piece_DR = np.empty((cells, min(_CHUNK, rows)))
    root_R = np.sqrt(m.weight_R)
    for begin in range(0, rows, _CHUNK):
        size = min(_CHUNK, rows - begin)
        for cell in range(cells):
            part_R = piece_DR[cell][:size]
            if columns_DR.size:
                part_R[:] = columns_DR[cell][begin : begin + size]
            else:
                x_T = m.x_NT[cell % n]
                for r in range(size):
                    part_R[r] = x_T[m.time_R[begin + r] - cell // n]
            for r in range(size):
                part_R[r] *= root_R[begin + r]
            sum_D[cell] += dot(part_R, root_R[begin : begin + size])
        add_products(piece_DR, 0, piece_DR, 0, size, True, gram_DD)
    mirror(gram_DD)
    return gram_DD, sum_D


@compiled
def pack_rows(flag_NT: Bytes, time_R: Integers, lags: int) -> Words:
    """Pack the flags of lagged cells on the rows of a sample, 64 rows to a word.

    Parameters
    ----------
    flag_NT
        1 where a value is flagged; empty when none is.
    time_R
        Target time of each row.
    lags
        Number of lags of the cells.

    Returns
    -------
    ndarray
        flag_DW; empty for empty flags.
    """
    n = flag_NT.shape[0] if flag_NT.size else 0
    words = (time_R.size + 63) // 64
    flag_DW = np.zeros((n * lags, words), np.uint64)
    for cell in range(n * lags):
        flag_T, lag = flag_NT[cell % n], cell // n
        if flag_T.any():
            for r in range(time_R.size):
                flag_DW[cell, r >> 6] |= np.uint64(flag_T[time_R[r] - lag]) << np.uint64(r & 63)
    return flag_DW


@compiled
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
    rows = m.time_R.size
    score_M = np.empty(int(m.total) + 1)
    write_scores(int(m.total), score_M)
    order_R, end_R = np.empty(rows, np.uint32), np.empty(rows, np.uint32)
    count_R, place_R = m.weight_R.astype(np.uint32), np.arange(rows).astype(np.uint32)
    scores_DR = np.empty((n * (m.first + 1), rows))
    for cell in range(scores_DR.shape[0]):
        lag, i = cell // n, cell % n
        sort_rows(m.order_NS[i], lag, m.row_T, order_R)
        tied = mark_ties(m.x_NT[i], lag, m.time_R, order_R, end_R)
        score_rows(order_R, end_R, tied, count_R, place_R, score_M, scores_DR[cell])
    return scores_DR


def correlations(m: Moments, gram_DD: Floats, sum_D: Floats, scores_DR: Floats) -> tuple[Floats, Booleans]:
    """Correlation matrix of all lagged columns of a complete sample.

    Parameters
    ----------
    m
        The sample.
    gram_DD, sum_D
        Weighted products and sums of the columns, overwritten.
    scores_DR
        The columns; empty where they are the scaled series.

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


@compiled
def _exact_correlations(m: Moments, scores_DR: Floats) -> tuple[Floats, Booleans]:
    """Correlations by centring every column first, for columns whose spread is small beside their mean."""
    n = m.x_NT.shape[0]
    cells, rows = n * (m.first + 1), m.time_R.size
    columns_DR, raw_R = np.empty((cells, rows)), np.empty(rows)
    constant_D = np.zeros(cells, np.bool_)
    for cell in range(cells):
        if scores_DR.size:
            raw_R[:] = scores_DR[cell]
        else:
            x_T = m.x_NT[cell % n]
            for r in range(rows):
                raw_R[r] = x_T[m.time_R[r] - cell // n]
        constant_D[cell] = (raw_R == raw_R[0]).all()
        column_R = columns_DR[cell]
        centre(raw_R, m.weight_R, m.total, column_R)
        # Unit columns before the product: their spreads may differ by many powers of ten.
        size = math.sqrt(dot(column_R, column_R))
        if size > 0.0:
            for r in range(rows):
                column_R[r] /= size
    corr_DD = np.zeros((cells, cells))
    add_products(columns_DR, 0, columns_DR, 0, rows, True, corr_DD)
    mirror(corr_DD)
    for cell in range(cells):
        corr_DD[cell, cell] = 1.0
    return corr_DD, constant_D


@compiled
def centre(raw_R: Floats, weight_R: Floats, total: float, out_R: Floats) -> None:
    """Subtract the weighted mean and multiply by the root of the weight; a constant column becomes exactly 0.

    Parameters
    ----------
    raw_R
        The column, overwritten.
    weight_R, total
        The weight of each value, and their sum.
    out_R
        Receives the centred column.
    """
    origin = raw_R[0]
    mean = 0.0
    for r in range(out_R.size):
        raw_R[r] -= origin
        mean += weight_R[r] * raw_R[r]
    mean /= total
    for r in range(out_R.size):
        out_R[r] = (raw_R[r] - mean) * math.sqrt(weight_R[r])
