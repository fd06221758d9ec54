"""Partial correlation of two lagged cells given others, from shared moments; Gram-Schmidt where they are collinear.

Shape suffixes: K the cells of one test (conditions, then X, then Y), D all lagged cells, N variable, R target time.

The Cholesky factor of the moments of (S, X, Y) holds the residuals: its last two rows give X and Y after regression on
S, so corr(X, Y | S) = l_YX / sqrt(l_YX^2 + l_YY^2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stages.causal.compiled import compiled
from stages.causal.covariance import Bytes, Floats, Integers, Moments, score_column, score_table
from stages.causal.errors import ConstantVariable, TooFewSamples, cell_name, link_name
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
def _unusable_rows(m: Moments, cells_K: Integers) -> Bytes:
    """Rows in which a cell of this test is missing, or its target is masked."""
    n = m.x_NT.shape[0]
    rows = m.weight_R.size
    bad_R = np.zeros(rows, np.uint8)
    for cell in cells_K:
        lag, i = cell // n, cell % n
        if m.gappy_N[i]:
            start = m.first - lag
            for r in range(rows):
                bad_R[r] |= m.missing_NT[i, start + r]
    if m.masked_NR.shape[1]:
        target = cells_K[-1] % n
        for r in range(rows):
            bad_R[r] |= m.masked_NR[target, r]
    return bad_R


@compiled
def _sample_size(m: Moments, bad_R: Bytes) -> tuple[float, int, int]:
    """Weight of the rows of a test, and the numbers of distinct rows in it and dropped from it."""
    total = 0.0
    good = 0
    dropped = 0
    for r in range(bad_R.size):
        if m.weight_R[r] > 0.0:
            if bad_R[r]:
                dropped += 1
            else:
                good += 1
                total += m.weight_R[r]
    return total, good, dropped


@compiled
def _columns(m: Moments, cells_K: Integers, bad_R: Bytes, total: float, good: int) -> Floats:
    """Centred columns of a test's rows, times the root of the weight; a constant column is exactly 0."""
    n = m.x_NT.shape[0]
    rows = bad_R.size
    columns_KR = np.empty((cells_K.size, good))
    weight_R = np.empty(good)
    score_M = np.empty(0)
    used_R = np.empty(0)
    column_R = np.empty(0)
    q = 0
    for r in range(rows):
        if not bad_R[r] and m.weight_R[r] > 0.0:
            weight_R[q] = m.weight_R[r]
            q += 1
    if m.robust:
        score_M = score_table(int(total))
        column_R = np.empty(rows)
        used_R = m.weight_R.copy()
        for r in range(rows):
            if bad_R[r]:
                used_R[r] = 0.0
    for c in range(cells_K.size):
        i = cells_K[c] % n
        start = m.first - cells_K[c] // n
        if m.robust:
            score_column(m.x_NT[i], m.order_NT[i], used_R, start, total, score_M, column_R)
        q = 0
        for r in range(rows):
            if not bad_R[r] and m.weight_R[r] > 0.0:
                columns_KR[c, q] = column_R[r] if m.robust else m.x_NT[i, start + r]
                q += 1
        _centre(columns_KR[c], weight_R, total)
    return columns_KR


@compiled
def _centre(column_R: Floats, weight_R: Floats, total: float) -> None:
    """Subtract the weighted mean and multiply by the root of the weight, in place."""
    origin = column_R[0]
    low = origin
    high = origin
    mean = 0.0
    for q in range(column_R.size):
        low = min(low, column_R[q])
        high = max(high, column_R[q])
        column_R[q] -= origin
        mean += weight_R[q] * column_R[q]
    mean /= total
    varies = 0.0 if low == high else 1.0
    for q in range(column_R.size):
        column_R[q] = varies * (column_R[q] - mean) * math.sqrt(weight_R[q])


@compiled
def _dot(a_R: Floats, b_R: Floats) -> float:
    s = 0.0
    for r in range(a_R.size):
        s += a_R[r] * b_R[r]
    return s


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
            moment_KK[a, b] = _dot(columns_KR[a], columns_KR[b])
    return moment_KK


@compiled
def _downdated(m: Moments, cells_K: Integers, bad_R: Bytes, total: float, dropped: int) -> tuple[Floats, bool]:
    """Centred moments of a test: the moments of all rows less those of the dropped ones; False if digits were lost."""
    n = m.x_NT.shape[0]
    k = cells_K.size
    index_R = np.empty(dropped, np.int64)
    root_R = np.empty(dropped)
    q = 0
    for r in range(bad_R.size):
        if bad_R[r] and m.weight_R[r] > 0.0:
            index_R[q] = r
            root_R[q] = math.sqrt(m.weight_R[r])
            q += 1
    lost_KR = np.empty((k, dropped))
    sum_K = np.empty(k)
    for c in range(k):
        i = cells_K[c] % n
        start = m.first - cells_K[c] // n
        for q in range(dropped):
            lost_KR[c, q] = m.x_NT[i, start + index_R[q]] * root_R[q]
        sum_K[c] = m.sum_D[cells_K[c]] - _dot(lost_KR[c], root_R)
    moment_KK = np.empty((k, k))
    exact = True
    for a in range(k):
        for b in range(a + 1):
            s = m.gram_DD[cells_K[a], cells_K[b]] - _dot(lost_KR[a], lost_KR[b]) - sum_K[a] * sum_K[b] / total
            moment_KK[a, b] = s
            moment_KK[b, a] = s
        exact = exact and moment_KK[a, a] > 1e-3 * m.gram_DD[cells_K[a], cells_K[a]]
    return moment_KK, exact


@compiled
def _from_moments(moment_KK: Floats) -> tuple[float, bool]:
    """Partial correlation of the last two cells given the others, in place; False if a pivot is too small."""
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
        size = math.sqrt(_dot(columns_KR[c], columns_KR[c]))
        for _ in range(2):
            for b in range(min(c, k - 2)):
                if kept_K[b]:
                    share = _dot(columns_KR[b], columns_KR[c])
                    for r in range(rows):
                        columns_KR[c, r] -= share * columns_KR[b, r]
        left = math.sqrt(_dot(columns_KR[c], columns_KR[c]))
        if left > SPANNED * size:
            kept_K[c] = True
            for r in range(rows):
                columns_KR[c, r] /= left
    if not (kept_K[k - 2] and kept_K[k - 1]):
        return 0.0
    return min(1.0, max(-1.0, _dot(columns_KR[k - 2], columns_KR[k - 1])))


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
    total = m.total
    if m.complete:
        if total < k + 1:
            return 0.0, total, TOO_FEW
        value, solved = _from_moments(_submatrix(m.gram_DD, cells_K))
        if solved:
            return value, total, OK
    bad_R = _unusable_rows(m, cells_K)
    total, good, dropped = _sample_size(m, bad_R)
    if total < k + 1:
        return 0.0, total, TOO_FEW
    # First from the moments of all rows; from the columns themselves where that loses digits or a pivot is small.
    shared = not m.complete and not m.robust and dropped <= good
    columns_KR = np.empty((0, 0))
    for source in range(0 if shared else 1, 2):
        if source == 0:
            moment_KK, exact = _downdated(m, cells_K, bad_R, total, dropped)
            if not exact:
                continue
        else:
            columns_KR = _columns(m, cells_K, bad_R, total, good)
            moment_KK = _products(columns_KR)
            if moment_KK[k - 2, k - 2] == 0.0:
                return 0.0, total, CONSTANT_X
            if moment_KK[k - 1, k - 1] == 0.0:
                return 0.0, total, CONSTANT_Y
        value, solved = _from_moments(moment_KK)
        if solved:
            return value, total, OK
    return _from_columns(columns_KR), total, OK


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
