"""Partial correlation of two lagged cells given others, from shared moments; Gram-Schmidt where they are collinear.

Shape suffixes: K the cells of one test (conditions, then X, then Y), D all lagged cells, N variable, R row,
W is a word of 64 rows, Q a row that the test may use.

The Cholesky factor of the moments of (S, X, Y) holds the residuals: its last two rows give X and Y after regression on
S, so corr(X, Y | S) = l_YX / sqrt(l_YX^2 + l_YY^2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stages.causal.compiled import compiled
from stages.causal.covariance import Moments, Words, centre, dot
from stages.causal.errors import ConstantVariable, TooFewSamples, cell_name, link_name
from stages.causal.ranks import Counts, Floats, Integers, mark_ties, score_rows, sort_rows, write_scores
from stages.causal.samples import LaggedSample
from stages.causal.student import two_sided_p

# A pivot below this share of its diagonal: near-collinear, and the columns themselves are used. A factor loses about
# 2e-16 / pivot, so values stay within 1e-8 of a regression on the columns.
COLLINEAR = 1e-6
# A residual below this share of its column is rounding: the column lies in the span of the conditions.
SPANNED = 1e-12

OK, TOO_FEW, CONSTANT_X, CONSTANT_Y = 0, 1, 2, 3


@dataclass(frozen=True)
class TestResult:
    """One conditional independence test.

    Attributes
    ----------
    value, p
        Partial correlation, and its two-sided p-value.
    samples, df
        Target times with all cells of the test present and not masked; samples - 2 - number of conditions.
    """

    __test__ = False  # not a pytest class

    value: float
    p: float
    samples: int
    df: int


@compiled
def append_row(factor_KK: Floats, k: int, corr_DD: Floats, cells_K: Integers, cell: int) -> bool:
    """Append one cell to a Cholesky factor of a correlation matrix.

    Parameters
    ----------
    factor_KK
        Lower factor of the cells before; row k is written.
    k
        Number of cells in the factor.
    corr_DD
        Correlations of all lagged cells.
    cells_K
        Cells in the factor.
    cell
        Cell to append.

    Returns
    -------
    bool
        False when the pivot is below ``COLLINEAR``.
    """
    pivot = 1.0
    for a in range(k):
        s = corr_DD[cell, cells_K[a]]
        for b in range(a):
            s -= factor_KK[k, b] * factor_KK[a, b]
        s /= factor_KK[a, a]
        factor_KK[k, a] = s
        pivot -= s * s
    if pivot < COLLINEAR:
        return False
    factor_KK[k, k] = math.sqrt(pivot)
    return True


@compiled
def unusable_rows(missing_DW: Words, masked_NW: Words, cells_K: Integers, target: int, bad_W: Words) -> None:
    """Mark the rows in which a cell of a test is missing, or its target is masked.

    Parameters
    ----------
    missing_DW, masked_NW
        Rows in which each cell is missing, and each variable is no target (may be empty).
    cells_K
        Cells of the test.
    target
        Variable that is the target.
    bad_W
        Receives a bit for each row.
    """
    for w in range(bad_W.size):
        bad_W[w] = masked_NW[target, w] if masked_NW.size else np.uint64(0)
    for cell in cells_K:
        missing_W = missing_DW[cell]
        for w in range(bad_W.size):
            bad_W[w] |= missing_W[w]


@compiled
def list_rows(m: Moments, bad_W: Words, count_R: Counts, place_R: Counts, row_Q: Counts, weight_Q: Floats) -> int:
    """List the rows that are not marked.

    Parameters
    ----------
    m
        Moments of the sample.
    bad_W
        Marked rows; no words when none is.
    count_R
        Receives the weight of each row, 0 where it is marked.
    place_R
        Receives the place of each row in the list; R for the marked ones.
    row_Q, weight_Q
        Receive the rows of the list and their weights; as long as all rows.

    Returns
    -------
    int
        Length of the list.
    """
    rows = m.time_R.size
    q = 0
    for r in range(rows):
        bad = bad_W.size > 0 and (bad_W[r >> 6] >> np.uint64(r & 63)) & np.uint64(1) != np.uint64(0)
        row_Q[q] = r
        weight_Q[q] = m.weight_R[r]
        count_R[r] = np.uint32(0 if bad else m.weight_R[r])
        place_R[r] = rows if bad else q
        q += 0 if bad else 1
    return q


@compiled
def write_column(
    m: Moments,
    cell: int,
    count_R: Counts,
    place_R: Counts,
    row_Q: Counts,
    weight_Q: Floats,
    score_M: Floats,
    raw_R: Floats,
    out_Q: Floats,
) -> None:
    """Write a cell's values, or normal scores, on some rows: centred, times the root of the weight.

    Parameters
    ----------
    m
        Moments of the sample.
    cell
        The lagged cell.
    count_R, place_R, row_Q, weight_Q
        The rows, from `list_rows`.
    score_M
        Normal scores of their weight, for the robust test.
    raw_R
        Overwritten; one longer than all rows.
    out_Q
        Receives the column; its length is the number of rows.
    """
    n = m.x_NT.shape[0]
    x_T, lag = m.x_NT[cell % n], cell // n
    total = 0.0
    for q in range(out_Q.size):
        total += weight_Q[q]
    if m.robust and m.order_DR.size:
        order_R = m.order_DR[cell][: m.size_D[cell]]
        score_rows(order_R, m.end_DR[cell], m.tied_D[cell] > 0, count_R, place_R, score_M, raw_R)
    elif m.robust:
        order_R, end_R = np.empty(m.time_R.size, np.uint32), np.empty(m.time_R.size, np.uint32)
        order_R = order_R[: sort_rows(m.order_NS[cell % n], lag, m.row_T, order_R)]
        tied = mark_ties(x_T, lag, m.time_R, order_R, end_R)
        score_rows(order_R, end_R, tied, count_R, place_R, score_M, raw_R)
    else:
        for q in range(out_Q.size):
            raw_R[q] = x_T[m.time_R[row_Q[q]] - lag]
    centre(raw_R, weight_Q, total, out_Q)


@compiled
def _columns(m: Moments, cells_K: Integers, bad_W: Words) -> tuple[Floats, float]:
    """Columns of a test, and the weight of its rows; without columns where that is too small."""
    rows = m.time_R.size
    count_R, place_R, row_Q = np.empty(rows, np.uint32), np.empty(rows, np.uint32), np.empty(rows, np.uint32)
    weight_Q, raw_R = np.empty(rows), np.empty(rows + 1)
    good = list_rows(m, bad_W, count_R, place_R, row_Q, weight_Q)
    total = weight_Q[:good].sum()
    if total < cells_K.size + 1:
        return np.empty((0, 0)), total
    score_M = np.empty(int(total) + 1 if m.robust else 0)
    if m.robust:
        write_scores(int(total), score_M)
    columns_KR = np.empty((cells_K.size, good))
    for c in range(cells_K.size):
        write_column(m, cells_K[c], count_R, place_R, row_Q, weight_Q, score_M, raw_R, columns_KR[c])
    return columns_KR, total


@compiled
def _submatrix(gram_DD: Floats, cells_K: Integers) -> Floats:
    k = cells_K.size
    moment_KK = np.empty((k, k))
    for a in range(k):
        for b in range(k):
            moment_KK[a, b] = gram_DD[cells_K[a], cells_K[b]]
    return moment_KK


@compiled
def _products(columns_KR: Floats) -> Floats:
    """Lower triangle of the products of all pairs of columns."""
    k = columns_KR.shape[0]
    moment_KK = np.empty((k, k))
    for a in range(k):
        for b in range(a + 1):
            moment_KK[a, b] = dot(columns_KR[a], columns_KR[b])
    return moment_KK


@compiled
def from_moments(moment_KK: Floats) -> tuple[float, bool]:
    """Partial correlation of the last two cells given the others.

    Parameters
    ----------
    moment_KK
        Centred products of the cells, of which the lower triangle is read; overwritten.

    Returns
    -------
    tuple
        The value, and False where a pivot is too small.
    """
    k = moment_KK.shape[0]
    for a in range(k):
        pivot = moment_KK[a, a]
        for b in range(a):
            s = moment_KK[a, b]
            for c in range(b):
                s -= moment_KK[a, c] * moment_KK[b, c]
            s /= moment_KK[b, b]
            moment_KK[a, b] = s
            pivot -= s * s
        if not pivot > COLLINEAR * moment_KK[a, a]:
            return 0.0, False
        moment_KK[a, a] = math.sqrt(pivot)
    across = moment_KK[k - 1, k - 2]
    along = moment_KK[k - 1, k - 1]
    return across / math.sqrt(across * across + along * along), True


@compiled
def _from_columns(columns_KR: Floats) -> float:
    """Partial correlation of the last two columns given the others by Gram-Schmidt, each projection done twice.

    Conditions in the span of those before them are left out; X or Y in the span of the conditions gives 0.
    """
    k, rows = columns_KR.shape
    kept_K = np.zeros(k, np.bool_)
    for c in range(k):
        size = math.sqrt(dot(columns_KR[c], columns_KR[c]))
        for _ in range(2):
            for b in range(min(c, k - 2)):
                if kept_K[b]:
                    share = dot(columns_KR[b], columns_KR[c])
                    for r in range(rows):
                        columns_KR[c, r] -= share * columns_KR[b, r]
        left = math.sqrt(dot(columns_KR[c], columns_KR[c]))
        if left > SPANNED * size:
            kept_K[c] = True
            for r in range(rows):
                columns_KR[c, r] /= left
    if not (kept_K[k - 2] and kept_K[k - 1]):
        return 0.0
    return min(1.0, max(-1.0, dot(columns_KR[k - 2], columns_KR[k - 1])))


@compiled
def measure_cells(m: Moments, cells_K: Integers) -> tuple[float, float, int]:
    """Test the last two cells for independence given the others.

    Parameters
    ----------
    m
        Moments of the sample.
    cells_K
        Conditions, then X, then Y; the mask of Y's variable is used.

    Returns
    -------
    tuple
        Partial correlation, sample size, and a status: ``OK``, ``TOO_FEW``, ``CONSTANT_X`` or ``CONSTANT_Y``.
    """
    k = cells_K.size
    if m.complete:
        if m.total < k + 1:
            return 0.0, m.total, TOO_FEW
        value, solved = from_moments(_submatrix(m.gram_DD, cells_K))
        if solved:
            return value, m.total, OK
    # From the columns themselves where rows differ by test or a pivot is small.
    bad_W = np.empty(m.missing_DW.shape[1], np.uint64)
    if not m.complete:
        unusable_rows(m.missing_DW, m.masked_NW, cells_K, cells_K[-1] % m.x_NT.shape[0], bad_W)
    columns_KR, total = _columns(m, cells_K, bad_W)
    if total < k + 1:
        return 0.0, total, TOO_FEW
    moment_KK = _products(columns_KR)
    if moment_KK[k - 2, k - 2] == 0.0:
        return 0.0, total, CONSTANT_X
    if moment_KK[k - 1, k - 1] == 0.0:
        return 0.0, total, CONSTANT_Y
    value, solved = from_moments(moment_KK)
    if not solved:
        value = _from_columns(columns_KR)
    return value, total, OK


def raise_fault(names: tuple[str, ...], status: int, samples: int, conditions: int, x: int, y: int) -> None:
    """Raise the error of a test that could not be done.

    Parameters
    ----------
    names
        Names of the variables.
    status
        ``TOO_FEW``, ``CONSTANT_X`` or ``CONSTANT_Y``; with ``OK`` nothing is raised.
    samples, conditions
        Sample size of the test and the number of its conditions.
    x, y
        Cells of the test.

    Raises
    ------
    TooFewSamples, ConstantVariable
        Naming the link.
    """
    if status == OK:
        return
    (x_lag, i), (y_lag, j) = divmod(x, len(names)), divmod(y, len(names))
    link = link_name(names[i], names[j], x_lag)
    if status == TOO_FEW:
        raise TooFewSamples(link, found=samples, needed=conditions + 3, conditions=conditions)
    flat = cell_name(names[i], x_lag) if status == CONSTANT_X else cell_name(names[j], y_lag)
    raise ConstantVariable(
        f"{link}: {flat} is constant over the {samples} samples that mask and missing values leave: it has no"
        " correlation. Leave the variable out or use another mask."
    )


def partial_correlation(
    sample: LaggedSample,
    x: tuple[int, int],
    y: tuple[int, int],
    conditions: Sequence[tuple[int, int]] = (),
) -> TestResult:
    """Test one pair of lagged variables for independence given others.

    Parameters
    ----------
    sample
        The lagged sample.
    x, y
        (variable, lag), lag counted in steps back from the target time.
    conditions
        (variable, lag) of each condition.

    Returns
    -------
    TestResult
        Value, p-value, sample size and degrees of freedom.

    Raises
    ------
    TooFewSamples, ConstantVariable
        When the samples left cannot carry the test; the message names the link.
    """
    cells = np.array([sample.cell(*c) for c in (*conditions, x, y)], dtype=np.int64)
    if len(set(cells.tolist())) != cells.size:
        raise ValueError(f"X {x}, Y {y} and the conditions {list(conditions)} must be different cells")
    value, total, status = measure_cells(sample.moments, cells)
    raise_fault(sample.names, status, int(total), len(conditions), int(cells[-2]), int(cells[-1]))
    df = int(total) - 2 - len(conditions)
    return TestResult(float(value), float(two_sided_p(value, float(df))), int(total), df)
