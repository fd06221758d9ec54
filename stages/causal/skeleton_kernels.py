"""The loops of `skeleton` for linear tests on one sample, compiled, on shared Cholesky factors.

Runge 2020, UAI (PMLR 124), algorithms 1 and 2. Both modules return the same.

Shape suffixes: N variable, L lag 0 to tau_max, D lagged cell (lag * N + i), K cells of one test, P pair of a source
cell and a target (source, lag, target), B place in a subset.
"""

from __future__ import annotations

import math

import numpy as np

from stages.causal.compiled import compiled
from stages.causal.covariance import Moments
from stages.causal.partial_correlation import OK, TOO_FEW, append_row
from stages.causal.ranks import Bytes, Floats, Integers
from stages.causal.row_sets import RowSets, measure_on_rows
from stages.causal.search import (
    cells_of_test,
    conditions,
    keep_strongest,
    list_candidates,
    note_fault,
    pass_shared,
)
from stages.causal.student import critical_correlation, two_sided_p


@compiled
def select_and_report(
    m: Moments,
    s: RowSets,
    allowed_NNL: Bytes,
    required_NNL: Bytes,
    alpha: float,
    max_dim: int,
    value_NNL: Floats,
    p_NNL: Floats,
    samples_NNL: Integers,
    df_NNL: Integers,
) -> tuple[Integers, Integers, Integers]:
    """PC1 for every target; a cell that is dropped reports the test that dropped it, its largest p-value.

    Parameters
    ----------
    m, s
        The sample, and the memory of tests on the same rows.
    allowed_NNL, required_NNL
        1 where a link may exist, and where it must.
    alpha
        Level of the selection.
    max_dim
        Largest number of conditions.
    value_NNL, p_NNL, samples_NNL, df_NNL
        Receive the tests of the dropped cells.

    Returns
    -------
    tuple
        Cells of each target's parents from the strongest to the weakest, how many there are, and the fault of the
        first test that could not be done: status, samples, conditions, X, Y.
    """
    n, _, lags = allowed_NNL.shape
    width = n * max(lags - 1, 0)
    parents_ND, count_N = np.zeros((n, width), np.int64), np.zeros(n, np.int64)
    fault = np.zeros(5, np.int64)
    critical = np.full(width + 1, np.nan)
    strength, value, keep = np.empty(width), np.empty(width), np.empty(width, np.bool_)
    factor_KK = np.empty((8, 8))
    for j in range(n):
        cells = parents_ND[j]
        count = list_candidates(allowed_NNL, j, 1, cells)
        strength[:] = np.inf
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
                i, lag = cells[q] % n, cells[q] // n
                if required_NNL[i, j, lag]:
                    value[q] = np.inf  # sorted before all others
                if m.complete:
                    keep[q] = abs(value[q]) >= critical[dim]
                else:
                    keep[q] = value[q] == np.inf or two_sided_p(value[q], total - 2.0 - dim) <= alpha
                if not keep[q]:
                    value_NNL[i, j, lag] = value[q]
                    p_NNL[i, j, lag] = two_sided_p(value[q], total - 2.0 - dim)
                    samples_NNL[i, j, lag] = int(total)
                    df_NNL[i, j, lag] = int(total) - 2 - dim
            count = keep_strongest(cells, strength, value, keep, count)
        count_N[j] = count
    return parents_ND, count_N, fault


@compiled
def _factor_conditions(m: Moments, cells_K: Integers, k: int, factor_KK: Floats) -> bool:
    """Factor the first k cells; False where samples differ by test, or a pivot is too small."""
    if not m.complete:
        return False
    solved = True
    for a in range(k):
        solved = solved and append_row(factor_KK, a, m.gram_DD, cells_K, cells_K[a])
    return solved


@compiled
def _measure_after(
    m: Moments, s: RowSets, cells_K: Integers, k: int, dim: int, factored: bool, factor_KK: Floats
) -> tuple[float, float, int]:
    """Test cells k + dim and k + dim + 1 given those before, of which the first k are factored."""
    size = k + dim + 2
    if m.complete:
        if m.total < size + 1:
            return 0.0, m.total, TOO_FEW
        solved = factored
        for a in range(k, size):
            solved = solved and append_row(factor_KK, a, m.gram_DD, cells_K, cells_K[a])
        if solved:
            across, along = factor_KK[size - 1, size - 2], factor_KK[size - 1, size - 1]
            return across / math.sqrt(across * across + along * along), m.total, OK
    return measure_on_rows(m, s, cells_K[:size])


@compiled
def _sort_neighbours(linked_NNL: Bytes, strength_NN: Floats, j: int, sorted_N: Integers) -> int:
    """Write the contemporaneous neighbours of j, the strongest first, and return how many there are."""
    count = 0
    for i in range(linked_NNL.shape[0]):
        if linked_NNL[i, j, 0]:
            b = count - 1
            while b >= 0 and strength_NN[sorted_N[b], j] < strength_NN[i, j]:
                sorted_N[b + 1] = sorted_N[b]
                b -= 1
            sorted_N[b + 1] = i
            count += 1
    return count


@compiled
def _next_subset(place_B: Integers, dim: int, count: int) -> bool:
    """Advance the places of a subset to the next in lexicographic order; False after the last one."""
    b = dim - 1
    while b >= 0 and place_B[b] == count - dim + b:
        b -= 1
    if b < 0:
        return False
    place_B[b] += 1
    for c in range(b + 1, dim):
        place_B[c] = place_B[c - 1] + 1
    return True


@compiled
def separate_pairs(
    m: Moments,
    s: RowSets,
    linked_NNL: Bytes,
    required_NNL: Bytes,
    parents_ND: Integers,
    count_N: Integers,
    alpha: float,
    max_dim: int,
    max_py: int,
    max_px: int,
    value_NNL: Floats,
    p_NNL: Floats,
    samples_NNL: Integers,
    df_NNL: Integers,
) -> tuple[Bytes, Bytes, Integers]:
    """Test every link given subsets of the target's contemporaneous neighbours, of growing size.

    Parameters
    ----------
    m, s
        The sample, and the memory of tests on the same rows.
    linked_NNL
        1 where a link is left; changed.
    required_NNL
        1 where a link must exist.
    parents_ND, count_N
        Cells of each variable's parents, and how many there are.
    alpha
        Level of the tests.
    max_dim, max_py, max_px
        Largest size of a subset, and how many parents of the target and of the source serve as conditions.
    value_NNL, p_NNL, samples_NNL, df_NNL
        Receive the tests with the largest p-values.

    Returns
    -------
    tuple
        separated_NNL, 1 where a subset separated a pair; member_NNLN, 1 for the members of that subset; and the fault
        as in `select_and_report`.
    """
    n, _, lags = linked_NNL.shape
    separated_NNL, member_NNLN = np.zeros((n, n, lags), np.uint8), np.zeros((n, n, lags, n), np.uint8)
    fault = np.zeros(5, np.int64)
    most = 0
    for j in range(n):
        most = max(most, count_N[j])
    size = min(most, max_py) + min(most, max_px) + n + 2
    cells_K, factor_KK = np.empty(size, np.int64), np.empty((size, size))
    mark_D = np.zeros(n * (2 * lags - 1), np.int64)
    strength_NN = np.full((n, n), np.inf)
    sorted_N, other_N, place_B = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    stamp = 0
    for dim in range(min(n, max_dim + 1)):
        enough = False
        before_NNL = linked_NNL.copy()
        # Strengths are those of the passes before: a target's neighbours are sorted once, before its own tests.
        for j in range(n):
            count = _sort_neighbours(before_NNL, strength_NN, j, sorted_N)
            for i in range(n):
                for lag in range(lags):
                    if not before_NNL[i, j, lag]:
                        continue
                    others = 0
                    for b in range(count):
                        if lag > 0 or sorted_N[b] != i:
                            other_N[others] = sorted_N[b]
                            others += 1
                    enough = enough or others > dim
                    if others < dim:
                        continue
                    x = lag * n + i
                    stamp += 1
                    _, k = conditions(
                        n,
                        x,
                        parents_ND[j],
                        min(count_N[j], max_py),
                        parents_ND[i],
                        min(count_N[i], max_px),
                        mark_D,
                        stamp,
                        cells_K,
                    )
                    factored = _factor_conditions(m, cells_K, k, factor_KK)
                    cells_K[k + dim] = x
                    cells_K[k + dim + 1] = j
                    place_B[:dim] = np.arange(dim)
                    more = True
                    while more:
                        for b in range(dim):
                            cells_K[k + b] = other_N[place_B[b]]
                        value, total, status = _measure_after(m, s, cells_K, k, dim, factored, factor_KK)
                        if status != OK:
                            note_fault(fault, status, total, k + dim, x, j)
                            return separated_NNL, member_NNLN, fault
                        df = int(total) - 2 - k - dim
                        p = two_sided_p(value, float(df))
                        apart = p > alpha and not required_NNL[i, j, lag]
                        if apart or samples_NNL[i, j, lag] == 0 or p > p_NNL[i, j, lag]:
                            value_NNL[i, j, lag] = value
                            p_NNL[i, j, lag] = p
                            samples_NNL[i, j, lag] = int(total)
                            df_NNL[i, j, lag] = df
                        if lag == 0 and not required_NNL[i, j, 0]:
                            strength_NN[i, j] = min(strength_NN[i, j], abs(value))
                        if apart:
                            linked_NNL[i, j, lag] = 0
                            separated_NNL[i, j, lag] = 1
                            member_NNLN[i, j, lag] = 0
                            for b in range(dim):
                                member_NNLN[i, j, lag, other_N[place_B[b]]] = 1
                            if lag == 0:
                                linked_NNL[j, i, 0] = 0
                                separated_NNL[j, i, 0] = 1
                                member_NNLN[j, i, 0] = member_NNLN[i, j, 0]
                                value_NNL[j, i, 0] = value
                                p_NNL[j, i, 0] = p
                                samples_NNL[j, i, 0] = int(total)
                                df_NNL[j, i, 0] = df
                            break
                        more = _next_subset(place_B, dim, others)
        if not enough:
            break
    return separated_NNL, member_NNLN, fault


@compiled
def count_separating(
    m: Moments,
    s: RowSets,
    pair_P3: Integers,
    linked_NNL: Bytes,
    parents_ND: Integers,
    count_N: Integers,
    alpha: float,
    max_py: int,
    max_px: int,
) -> tuple[Integers, Integers, Integers]:
    """Count all subsets of contemporaneous neighbours of the target, or at lag 0 of the source, that separate pairs.

    Parameters
    ----------
    m, s
        The sample, and the memory of tests on the same rows.
    pair_P3
        Source, lag, target of each pair.
    linked_NNL
        Adjacencies.
    parents_ND, count_N
        Cells of each variable's parents, and how many there are.
    alpha
        Level of the tests.
    max_py, max_px
        How many parents of the target and of the source serve as conditions.

    Returns
    -------
    tuple
        How many subsets separate each pair, how many of them hold each variable (P x N), and the fault as in
        `select_and_report`.
    """
    n, _, lags = linked_NNL.shape
    separating_P = np.zeros(pair_P3.shape[0], np.int64)
    holding_PN = np.zeros((pair_P3.shape[0], n), np.int64)
    fault = np.zeros(5, np.int64)
    most = 0
    for j in range(n):
        most = max(most, count_N[j])
    size = min(most, max_py) + min(most, max_px) + n + 2
    cells_K, factor_KK = np.empty(size, np.int64), np.empty((size, size))
    critical_K = np.full(size, np.nan)
    mark_D = np.zeros(n * (2 * lags - 1), np.int64)
    near_N, place_B = np.empty(n, np.int64), np.empty(n, np.int64)
    for q in range(pair_P3.shape[0]):
        i, lag, j = pair_P3[q, 0], pair_P3[q, 1], pair_P3[q, 2]
        x = lag * n + i
        _, k = conditions(
            n,
            x,
            parents_ND[j],
            min(count_N[j], max_py),
            parents_ND[i],
            min(count_N[i], max_px),
            mark_D,
            q + 1,
            cells_K,
        )
        factored = _factor_conditions(m, cells_K, k, factor_KK)
        for end in range(2 if lag == 0 else 1):
            count = 0
            for c in range(n):
                if linked_NNL[c, i if end else j, 0]:
                    near_N[count] = c
                    count += 1
            for dim in range(count + 1):
                cells_K[k + dim] = x
                cells_K[k + dim + 1] = j
                place_B[:dim] = np.arange(dim)
                more = True
                while more:
                    known = end == 1
                    for b in range(dim):
                        c = near_N[place_B[b]]
                        cells_K[k + b] = c
                        known = known and linked_NNL[c, j, 0] > 0
                    if not known:
                        value, total, status = _measure_after(m, s, cells_K, k, dim, factored, factor_KK)
                        if status != OK:
                            note_fault(fault, status, total, k + dim, x, j)
                            return separating_P, holding_PN, fault
                        if m.complete:
                            if math.isnan(critical_K[k + dim]):
                                critical_K[k + dim] = critical_correlation(alpha, total - 2.0 - k - dim)
                            apart = abs(value) < critical_K[k + dim]
                        else:
                            apart = two_sided_p(value, total - 2.0 - k - dim) > alpha
                        if apart:
                            separating_P[q] += 1
                            for b in range(dim):
                                holding_PN[q, near_N[place_B[b]]] += 1
                    more = _next_subset(place_B, dim, count)
    return separating_P, holding_PN, fault
