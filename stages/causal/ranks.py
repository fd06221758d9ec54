"""Normal scores of lagged columns, from a sort order that is made once and read in one pass per set of rows.

Shape suffixes: T time, N variable, D lagged cell, R row of the sample (a target time that it holds), Q row of one test.

A test's column is ranked within the rows of that test. Leaving rows out keeps the order of the others, so each cell is
sorted once for all its rows, and the ranks of any of them are running sums of their weights in that order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.causal.compiled import compiled
from stages.causal.student import normal_quantile

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
# Unsigned, so that compiled code does not look for negative indices.
Counts = NDArray[np.uint32]

# The normal score of the largest value, whose empirical distribution function is 1 (as in tigramite's RobustParCorr).
TOP_PROBABILITY = 0.99999


@compiled
def write_scores(total: int, score_M: Floats) -> None:
    """Tabulate the normal scores of the counts 0 to total; entry 0 is not used.

    Parameters
    ----------
    total
        Sample size.
    score_M
        Receives the scores, M = total + 1.
    """
    score_M[0] = 0.0
    for k in range(1, total // 2 + 1):
        score_M[k] = normal_quantile(k / total)
        score_M[total - k] = -score_M[k]
    score_M[total] = normal_quantile(TOP_PROBABILITY)


@compiled
def sort_rows(order_S: Integers, lag: int, row_T: Integers, order_R: Counts) -> int:
    """Rows of the sample sorted by the value of one lagged cell.

    Parameters
    ----------
    order_S
        Times sorted by the value of the variable, among them all that the sample reads; times beyond the series
        stand for nothing.
    lag
        Lag of the cell.
    row_T
        Row of each target time, -1 where the sample does not hold it.
    order_R
        Receives the rows.

    Returns
    -------
    int
        How many rows have a value.
    """
    k = 0
    steps = row_T.size
    for s in range(order_S.size):
        target = order_S[s] + lag
        if target < steps and row_T[target] >= 0:
            order_R[k] = np.uint32(row_T[target])
            k += 1
    return k


@compiled
def mark_ties(x_T: Floats, lag: int, time_R: Integers, order_R: Counts, end_R: Counts) -> bool:
    """Find the last place of every run of equal values in a cell's order.

    Parameters
    ----------
    x_T
        The variable.
    lag
        Lag of the cell.
    time_R
        Target time of each row.
    order_R
        Rows sorted by the value of the cell.
    end_R
        Receives, for each place in the order, the last place with the same value.

    Returns
    -------
    bool
        Whether any two values are equal.
    """
    tied = False
    last = order_R.size - 1
    end = last
    for k in range(last, -1, -1):
        if k < last and x_T[time_R[order_R[k]] - lag] != x_T[time_R[order_R[k + 1]] - lag]:
            end = k
        end_R[k] = np.uint32(end)
        tied = tied or end != k
    return tied


@compiled
def score_rows(
    order_R: Counts, end_R: Counts, tied: bool, count_R: Counts, place_R: Counts, score_M: Floats, out_Q: Floats
) -> None:
    """Replace a cell by its normal scores within some rows, Phi^-1 of the empirical distribution function.

    Parameters
    ----------
    order_R, end_R, tied
        The order of the cell and its runs of equal values; the runs are read only where there are ties.
    count_R
        How often each row is drawn; 0 for rows that are left out.
    place_R
        Where the score of each row is written; rows that are left out share the last place.
    score_M
        Scores of the counts 0 to the sum of the counts.
    out_Q
        Receives the scores.
    """
    below = np.uint64(0)
    if not tied:
        for k in range(order_R.size):
            r = order_R[k]
            below += count_R[r]
            out_Q[place_R[r]] = score_M[below]
        return
    k = 0
    while k < order_R.size:
        stop = int(end_R[k]) + 1
        for s in range(k, stop):
            below += count_R[order_R[s]]
        score = score_M[below]
        for s in range(k, stop):
            out_Q[place_R[order_R[s]]] = score
        k = stop


@compiled
def order_cells(
    x_NT: Floats, order_NS: Integers, row_T: Integers, time_R: Integers, lags: int
) -> tuple[Counts, Counts, Integers, Bytes]:
    """Sort the rows of a sample by each lagged cell.

    Parameters
    ----------
    x_NT
        The series.
    order_NS, row_T
        Times by the value of each variable, and the row of each target time; see `sort_rows`.
    time_R
        Target time of each row.
    lags
        Number of lags of the cells.

    Returns
    -------
    tuple
        order_DR, end_DR (only written where there are ties), the number of rows with a value, and 1 where values tie.
    """
    n = x_NT.shape[0]
    cells, rows = n * lags, time_R.size
    order_DR, end_DR = np.empty((cells, rows), np.uint32), np.empty((cells, rows), np.uint32)
    size_D, tied_D = np.zeros(cells, np.int64), np.zeros(cells, np.uint8)
    for i in range(n):
        # Equal values of a variable are neighbours in its order; without any no cell needs its runs.
        tied = False
        for s in range(1, order_NS.shape[1]):
            before, after = order_NS[i, s - 1], order_NS[i, s]
            tied = tied or (max(before, after) < row_T.size and x_NT[i, before] == x_NT[i, after])
        for lag in range(lags):
            cell = lag * n + i
            size_D[cell] = sort_rows(order_NS[i], lag, row_T, order_DR[cell])
            if tied:
                size = size_D[cell]
                tied_D[cell] = mark_ties(x_NT[i], lag, time_R, order_DR[cell][:size], end_DR[cell])
    return order_DR, end_DR, size_D, tied_D
