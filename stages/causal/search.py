"""The loops of PCMCI, compiled: PC1 condition selection and the MCI tests, on shared Cholesky factors.

Runge et al. 2019, Science Advances 5, eaau4996, algorithms S1 and S2 with one combination per dimension.

Shape suffixes: N variable, L lag 0 to tau_max, D lagged cell (lag * N + i), K cells of one test.
"""

from __future__ import annotations

import math

import numpy as np

from stages.causal.compiled import compiled
from stages.causal.covariance import Booleans, Moments
from stages.causal.partial_correlation import COLLINEAR, OK, TOO_FEW, append_row
from stages.causal.ranks import Bytes, Floats, Integers
from stages.causal.row_sets import RowSets, measure_on_rows
from stages.causal.student import critical_correlation, two_sided_p


@compiled
def note_fault(fault: Integers, status: int, total: float, conditions: int, x: int, y: int) -> None:
    """Write the fault of a test: status, samples, conditions, X, Y."""
    fault[0] = status
    fault[1] = int(total)
    fault[2] = conditions
    fault[3] = x
    fault[4] = y


@compiled
def cells_of_test(cells: Integers, dim: int, q: int, y: int) -> Integers:
    """Write the test of cell q of the list against y, given the first dim cells of the list without q."""
    cells_K = np.empty(dim + 2, np.int64)
    k = 0
    for c in range(dim + 1):
        if c != q and k < dim:
            cells_K[k] = cells[c]
            k += 1
    cells_K[dim] = cells[q]
    cells_K[dim + 1] = y
    return cells_K


@compiled
def pass_shared(m: Moments, cells: Integers, count: int, dim: int, y: int, factor_KK: Floats, value: Floats) -> None:
    """All tests of one PC1 pass over complete samples, from one factor; NaN where a pivot is too small.

    The cells up to place dim each have all the others of that head as conditions: their values lie in the inverse of
    the head's correlation matrix with y. All cells beyond share the factor of the first dim cells.
    """
    for q in range(count):
        value[q] = np.nan
    for a in range(dim):
        if not append_row(factor_KK, a, m.gram_DD, cells, cells[a]):
            return
    y_K = np.empty(dim + 1)
    x_K = np.empty(dim + 1)
    rest_y = 1.0
    for a in range(dim):
        s = m.gram_DD[y, cells[a]]
        for b in range(a):
            s -= factor_KK[a, b] * y_K[b]
        y_K[a] = s / factor_KK[a, a]
        rest_y -= y_K[a] * y_K[a]
    if rest_y < COLLINEAR:
        return
    for q in range(dim, count):
        x = cells[q]
        rest_x = 1.0
        joint = m.gram_DD[y, x]
        for a in range(dim):
            s = m.gram_DD[x, cells[a]]
            for b in range(a):
                s -= factor_KK[a, b] * x_K[b]
            s /= factor_KK[a, a]
            x_K[a] = s
            rest_x -= s * s
            joint -= s * y_K[a]
        if rest_x >= COLLINEAR and rest_y - joint * joint / rest_x >= COLLINEAR:
            value[q] = joint / math.sqrt(rest_x * rest_y)
    if dim == 0:
        return
    if append_row(factor_KK, dim, m.gram_DD, cells, cells[dim]) and append_row(factor_KK, dim + 1, m.gram_DD, cells, y):
        _head_values(factor_KK, dim, value)


@compiled
def _head_values(factor_KK: Floats, head: int, value: Floats) -> None:
    """Partial correlations of the first cells with the last one of a factor, each given all others.

    With P the inverse of the correlation matrix, corr(a, y | rest) = -P_ay / sqrt(P_aa P_yy).
    """
    k = head + 2
    inverse_KK = np.zeros((k, k))
    for c in range(k):
        inverse_KK[c, c] = 1.0 / factor_KK[c, c]
        for a in range(c + 1, k):
            s = 0.0
            for b in range(c, a):
                s -= factor_KK[a, b] * inverse_KK[b, c]
            inverse_KK[a, c] = s / factor_KK[a, a]
    for q in range(head):
        square = 0.0
        for a in range(q, k):
            square += inverse_KK[a, q] * inverse_KK[a, q]
        value[q] = -inverse_KK[k - 1, q] / math.sqrt(square)


@compiled
def keep_strongest(cells: Integers, strength: Floats, value: Floats, keep: Booleans, count: int) -> int:
    """Drop the cells that are not kept, sort the others by their smallest |value| so far, and return how many."""
    left = 0
    for q in range(count):
        if keep[q]:
            cell, s = cells[q], min(strength[q], abs(value[q]))
            b = left - 1
            # Cells before place q are already written; equals keep their order of the pass.
            while b >= 0 and strength[b] < s:
                cells[b + 1] = cells[b]
                strength[b + 1] = strength[b]
                b -= 1
            cells[b + 1] = cell
            strength[b + 1] = s
            left += 1
    return left


@compiled
def list_candidates(candidate_NNL: Bytes, j: int, lag_low: int, cells: Integers) -> int:
    """Write the cells that may be parents of j and return how many there are."""
    n, _, lags = candidate_NNL.shape
    count = 0
    for i in range(n):
        for lag in range(lag_low, lags):
            if candidate_NNL[i, j, lag]:
                cells[count] = lag * n + i
                count += 1
    return count


@compiled
def select_conditions(
    m: Moments, s: RowSets, candidate_NNL: Bytes, alpha: float, max_dim: int, lag_low: int
) -> tuple[Integers, Integers, Integers]:
    """PC1 for every target.

    Parameters
    ----------
    m
        Moments of the sample.
    s
        Memory of tests on the same rows.
    candidate_NNL
        1 where the link from i to j at a lag may exist.
    alpha
        Level of the selection.
    max_dim
        Largest number of conditions.
    lag_low
        Smallest lag that is searched, at least 1.

    Returns
    -------
    tuple
        Cells of each target's parents from the strongest to the weakest, how many there are, and the fault of the
        first test that could not be done: status, samples, conditions, X, Y.
    """
    n, _, lags = candidate_NNL.shape
    width = n * max(lags - 1, 0)
    parents_ND = np.zeros((n, width), np.int64)
    count_N = np.zeros(n, np.int64)
    fault = np.zeros(5, np.int64)
    critical = np.full(width + 1, np.nan)
    strength, value, keep = np.empty(width), np.empty(width), np.empty(width, np.bool_)
    factor_KK = np.empty((8, 8))
    for j in range(n):
        cells = parents_ND[j]
        count = list_candidates(candidate_NNL, j, lag_low, cells)
        strength[:] = np.inf
        # A loop variable, not a counter from the literal 0: numba would compile all callees for both.
        for dim in range(min(count, max_dim + 1)):
            if dim > count - 1:
                break
            if m.complete:
                if m.total < dim + 3:
                    note_fault(fault, TOO_FEW, m.total, dim, cells[0], j)
                    return parents_ND, count_N, fault
                if dim + 2 > factor_KK.shape[0]:
                    factor_KK = np.empty((2 * dim + 8, 2 * dim + 8))
                if math.isnan(critical[dim]):
                    critical[dim] = critical_correlation(alpha, m.total - 2.0 - dim)
                pass_shared(m, cells, count, dim, j, factor_KK, value)
            for q in range(count):
                total = m.total
                if not m.complete or math.isnan(value[q]):
                    value[q], total, status = measure_on_rows(m, s, cells_of_test(cells, dim, q, j))
                    if status != OK:
                        note_fault(fault, status, total, dim, cells[q], j)
                        return parents_ND, count_N, fault
                if m.complete:
                    keep[q] = abs(value[q]) >= critical[dim]
                else:
                    keep[q] = two_sided_p(value[q], total - 2.0 - dim) <= alpha
            count = keep_strongest(cells, strength, value, keep, count)
        count_N[j] = count
    return parents_ND, count_N, fault


@compiled
def conditions(
    n: int,
    x: int,
    base: Integers,
    base_count: int,
    parents_D: Integers,
    count: int,
    mark_D: Integers,
    stamp: int,
    cells_K: Integers,
) -> tuple[int, int]:
    """Write the MCI conditions of x and return how many come from the target's parents, and how many there are.

    The target's parents without x, then the parents of x shifted by the lag of x, those already there left out.
    """
    k = 0
    for b in range(base_count):
        mark_D[base[b]] = stamp
        if base[b] != x:
            cells_K[k] = base[b]
            k += 1
    own = k
    shift = (x // n) * n
    for b in range(count):
        cell = parents_D[b] + shift
        if mark_D[cell] != stamp:
            cells_K[k] = cell
            k += 1
    return own, k


@compiled
def _measure_shared(
    m: Moments,
    x: int,
    y: int,
    own: int,
    k: int,
    base_count: int,
    base_factor_KK: Floats,
    spare_KK: Floats,
    base_ok: bool,
    cells_K: Integers,
) -> tuple[float, bool]:
    """One MCI test over a complete sample, appended to the factor of the target's parents."""
    factor_KK = base_factor_KK
    if own < base_count:
        factor_KK = spare_KK
        for a in range(own):
            if not append_row(factor_KK, a, m.gram_DD, cells_K, cells_K[a]):
                return 0.0, False
    elif not base_ok:
        return 0.0, False
    cells_K[k] = x
    for a in range(own, k + 1):
        if not append_row(factor_KK, a, m.gram_DD, cells_K, cells_K[a]):
            return 0.0, False
    if not append_row(factor_KK, k + 1, m.gram_DD, cells_K, y):
        return 0.0, False
    across, along = factor_KK[k + 1, k], factor_KK[k + 1, k + 1]
    return across / math.sqrt(across * across + along * along), True


@compiled
def measure_links(
    m: Moments,
    s: RowSets,
    candidate_NNL: Bytes,
    parents_ND: Integers,
    count_N: Integers,
    lag_low: int,
    max_py: int,
    max_px: int,
) -> tuple[Floats, Floats, Integers, Integers, Integers]:
    """MCI test of every candidate link; without parents, the plain lagged correlation.

    Parameters
    ----------
    m
        Moments of the sample.
    s
        Memory of tests on the same rows.
    candidate_NNL
        1 where the link from i to j at a lag is tested.
    parents_ND, count_N
        Parent cells of every variable and how many there are.
    lag_low
        Smallest lag that is tested.
    max_py, max_px
        How many parents of the target and of the source serve as conditions.

    Returns
    -------
    tuple
        value_NNL, p_NNL, samples_NNL, df_NNL (0, 1, 0, 0 where nothing is tested), and the fault as in
        `select_conditions`. At lag 0 both directions hold the test with the larger p-value.
    """
    n, _, lags = candidate_NNL.shape
    value_NNL = np.zeros((n, n, lags))
    p_NNL = np.ones((n, n, lags))
    samples_NNL = np.zeros((n, n, lags), np.int64)
    df_NNL = np.zeros((n, n, lags), np.int64)
    fault = np.zeros(5, np.int64)
    most = 0
    for j in range(n):
        most = max(most, count_N[j])
    size = min(most, max_py) + min(most, max_px) + 2
    base_factor_KK = np.empty((size, size))
    spare_KK = np.empty((size, size))
    cells_K = np.empty(size, np.int64)
    mark_D = np.zeros(n * (2 * lags - 1), np.int64)
    stamp = 0
    # With the same conditions and the same samples in both directions, one test serves both.
    alike = max_py >= most and max_px >= most and m.masked_NW.size == 0
    for j in range(n):
        base = parents_ND[j]
        base_count = min(count_N[j], max_py)
        base_ok = m.complete
        if m.complete:
            for a in range(base_count):
                base_ok = base_ok and append_row(base_factor_KK, a, m.gram_DD, base, base[a])
        for lag in range(lag_low, lags):
            for i in range(n):
                if not candidate_NNL[i, j, lag] or (lag == 0 and (i == j or (alike and i > j))):
                    continue
                x = lag * n + i
                stamp += 1
                own, k = conditions(
                    n, x, base, base_count, parents_ND[i], min(count_N[i], max_px), mark_D, stamp, cells_K
                )
                total = m.total
                solved = False
                value = 0.0
                if m.complete:
                    if total < k + 3:
                        note_fault(fault, TOO_FEW, total, k, x, j)
                        return value_NNL, p_NNL, samples_NNL, df_NNL, fault
                    value, solved = _measure_shared(
                        m, x, j, own, k, base_count, base_factor_KK, spare_KK, base_ok, cells_K
                    )
                if not solved:
                    cells_K[k] = x
                    cells_K[k + 1] = j
                    value, total, status = measure_on_rows(m, s, cells_K[: k + 2])
                    if status != OK:
                        note_fault(fault, status, total, k, x, j)
                        return value_NNL, p_NNL, samples_NNL, df_NNL, fault
                value_NNL[i, j, lag] = value
                p_NNL[i, j, lag] = two_sided_p(value, total - 2.0 - k)
                samples_NNL[i, j, lag] = int(total)
                df_NNL[i, j, lag] = int(total) - 2 - k
    if lag_low == 0:
        for j in range(n):
            for i in range(j):
                from_i = alike or p_NNL[i, j, 0] >= p_NNL[j, i, 0]
                a, b = (i, j) if from_i else (j, i)
                value_NNL[b, a, 0] = value_NNL[a, b, 0]
                p_NNL[b, a, 0] = p_NNL[a, b, 0]
                samples_NNL[b, a, 0] = samples_NNL[a, b, 0]
                df_NNL[b, a, 0] = df_NNL[a, b, 0]
    return value_NNL, p_NNL, samples_NNL, df_NNL, fault
