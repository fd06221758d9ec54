"""What tests on the same rows share, where missing values and masks give every test rows of its own.

A test may use the rows in which all its cells are present and its target is not masked. Many tests have the same such
set of rows: all whose cells add no further gap. Each set is kept with the columns of its cells (ranked and centred
within it) and their products, so that a further test on it is a small Cholesky factor. Where the linear test drops few
rows, the products are those of all rows less those of the dropped ones.

Nothing here changes a number: what does not fit is forgotten and made again.

Shape suffixes: S set of rows, D lagged cell, W word of 64 rows, R row of the sample, Q row of the set, A arena, H slot
of a hash table, M sample size, K cells of one test.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from stages.causal.compiled import compiled
from stages.causal.covariance import Moments, Words, dot
from stages.causal.partial_correlation import (
    CONSTANT_X,
    CONSTANT_Y,
    OK,
    TOO_FEW,
    from_moments,
    list_rows,
    measure_cells,
    unusable_rows,
    write_column,
)
from stages.causal.ranks import Counts, Floats, Integers, write_scores

_first_bit = cast("Any", trailing_zeros)

# Capacities: sets, their columns (8 bytes a value), pairs of cells, and values of score tables.
_SETS, _ARENA, _PAIRS, _SCORES = 1 << 10, 1 << 19, 1 << 15, 1 << 18
# Places in `head`.
_SET_COUNT, _ARENA_USED, _PAIR_COUNT, _LISTED, _SCORES_USED = 0, 1, 2, 3, 4
_HASH = np.uint64(0x9E3779B97F4A7C15)


class RowSets(NamedTuple):
    """Memory of `measure_on_rows`: sets of rows, columns of cells on them, products of pairs, tables of normal scores.

    The rows listed are those of the set ``head[_LISTED]``. One thread may use it at a time.
    """

    head: Integers
    set_H: Integers
    bad_SW: Words
    total_S: Floats
    good_S: Integers
    start_SD: Integers
    column_A: Floats
    pair_H: Integers
    product_H: Floats
    bad_W: Words
    count_R: Counts
    place_R: Counts
    row_Q: Counts
    weight_Q: Floats
    raw_R: Floats
    table_M: Integers
    score_A: Floats


def row_sets(m: Moments, most: int) -> RowSets:
    """Make the memory for samples no larger than a given one.

    Parameters
    ----------
    m
        The sample; a complete one needs no memory.
    most
        Largest sum of weights of any sample it will serve.

    Returns
    -------
    RowSets
        Empty memory.
    """
    sets, arena, pairs = (0, 0, 0) if m.complete else (_SETS, _ARENA, _PAIRS)
    rows, words = (0, 0) if m.complete else (m.time_R.size, m.missing_DW.shape[1])
    scores = max(_SCORES, most + 1) if m.robust and not m.complete else 0
    return RowSets(
        head=np.zeros(5, np.int64),
        set_H=np.empty(2 * sets, np.int64),
        bad_SW=np.empty((sets, words), np.uint64),
        total_S=np.empty(sets),
        good_S=np.empty(sets, np.int64),
        start_SD=np.empty((sets, m.missing_DW.shape[0]), np.int64),
        column_A=np.empty(arena),
        pair_H=np.empty(2 * pairs, np.int64),
        product_H=np.empty(2 * pairs),
        bad_W=np.empty(words, np.uint64),
        count_R=np.empty(rows, np.uint32),
        place_R=np.empty(rows, np.uint32),
        row_Q=np.empty(rows, np.uint32),
        weight_Q=np.empty(rows),
        raw_R=np.empty(rows + 1),
        table_M=np.full(most + 1 if scores else 0, -1, np.int64),
        score_A=np.empty(scores),
    )


@compiled
def forget(s: RowSets) -> None:
    """Empty the memory, as before the first test of another sample; tables of normal scores are kept.

    Parameters
    ----------
    s
        The memory.
    """
    s.head[:_SCORES_USED] = 0
    s.head[_LISTED] = -1
    s.set_H[:] = -1
    s.pair_H[:] = -1


@compiled
def _place_of_set(set_H: Integers, bad_SW: Words, bad_W: Words) -> int:
    """Slot of a set of unmarked rows in the hash table, or the empty slot where it belongs."""
    key = np.uint64(bad_W.size)
    for w in range(bad_W.size):
        key = (key ^ bad_W[w]) * _HASH
        key ^= key >> np.uint64(29)
    mask = set_H.size - 1
    h = int(key >> np.uint64(32)) & mask
    while set_H[h] >= 0:
        known_W = bad_SW[set_H[h]]
        differing = np.uint64(0)
        for w in range(bad_W.size):
            differing |= known_W[w] ^ bad_W[w]
        if differing == np.uint64(0):
            break
        h = (h + 1) & mask
    return h


@compiled
def _enter_set(m: Moments, s: RowSets, h: int, bad_W: Words) -> int:
    """Enter a new set of rows at a slot, without columns, and return its index."""
    new = int(s.head[_SET_COUNT])
    s.head[_SET_COUNT] = new + 1
    s.set_H[h] = new
    s.start_SD[new] = -1
    total = m.total
    good = m.time_R.size
    for w in range(bad_W.size):
        word = bad_W[w]
        s.bad_SW[new, w] = word
        while word:
            total -= m.weight_R[64 * w + np.int64(_first_bit(word))]
            good -= 1
            word &= word - np.uint64(1)
    s.total_S[new] = total
    s.good_S[new] = good
    return new


@compiled
def _list_set(m: Moments, s: RowSets, index: int, bad_W: Words, downdated: bool) -> None:
    """List the rows of a set, or the dropped ones with the roots of their weights where products are downdated."""
    s.head[_LISTED] = index
    if not downdated:
        list_rows(m, bad_W, s.count_R, s.place_R, s.row_Q, s.weight_Q)
        return
    q = 0
    for w in range(bad_W.size):
        word = bad_W[w]
        while word:
            r = 64 * w + np.int64(_first_bit(word))
            s.row_Q[q] = r
            s.weight_Q[q] = math.sqrt(m.weight_R[r])
            q += 1
            word &= word - np.uint64(1)


@compiled
def _scores(s: RowSets, total: int) -> Floats:
    """Normal scores of the counts 0 to total."""
    if s.table_M[total] < 0:
        if s.head[_SCORES_USED] + total + 1 > s.score_A.size:
            s.table_M[:] = -1
            s.head[_SCORES_USED] = 0
        start = s.head[_SCORES_USED]
        s.table_M[total] = start
        s.head[_SCORES_USED] = start + total + 1
        write_scores(total, s.score_A[start : start + total + 1])
    start = s.table_M[total]
    return s.score_A[start : start + total + 1]


@compiled
def _write_column(m: Moments, s: RowSets, index: int, bad_W: Words, cell: int, downdated: bool) -> int:
    """Write a cell's column on a set and return its start.

    Where products are downdated these are its sum on the set, then its values on the dropped rows.
    """
    if s.head[_LISTED] != index:
        _list_set(m, s, index, bad_W, downdated)
    start = int(s.head[_ARENA_USED])
    s.start_SD[index, cell] = start
    good = s.good_S[index]
    if downdated:
        dropped = m.time_R.size - good
        n = m.x_NT.shape[0]
        x_T, lag = m.x_NT[cell % n], cell // n
        lost_Q = s.column_A[start + 1 : start + 1 + dropped]
        for q in range(dropped):
            lost_Q[q] = x_T[m.time_R[s.row_Q[q]] - lag] * s.weight_Q[q]
        s.column_A[start] = m.sum_D[cell] - dot(lost_Q, s.weight_Q[:dropped])
        s.head[_ARENA_USED] = start + 1 + dropped
    else:
        score_M = _scores(s, int(s.total_S[index])) if m.robust else s.score_A
        column_Q = s.column_A[start : start + good]
        write_column(m, cell, s.count_R, s.place_R, s.row_Q, s.weight_Q, score_M, s.raw_R, column_Q)
        s.head[_ARENA_USED] = start + good
    return start


@compiled
def _place_of_pair(pair_H: Integers, pair: int) -> int:
    """Slot of a pair in the hash table, or the empty slot where it belongs."""
    mask = pair_H.size - 1
    h = int((np.uint64(pair) * _HASH) >> np.uint64(32)) & mask
    while pair_H[h] != pair and pair_H[h] >= 0:
        h = (h + 1) & mask
    return h


@compiled
def measure_on_rows(m: Moments, s: RowSets, cells_K: Integers) -> tuple[float, float, int]:
    """Test as `measure_cells` does, with what earlier tests on the same rows have left.

    Parameters
    ----------
    m
        Moments of the sample.
    s
        Memory, emptied by `forget` since the last test of another sample.
    cells_K
        Conditions, then X, then Y.

    Returns
    -------
    tuple
        Partial correlation, sample size and status.
    """
    k = cells_K.size
    if m.complete:
        return measure_cells(m, cells_K)
    rows = m.time_R.size
    bad_W = s.bad_W[: m.missing_DW.shape[1]]
    unusable_rows(m.missing_DW, m.masked_NW, cells_K, cells_K[-1] % m.x_NT.shape[0], bad_W)
    if s.head[_SET_COUNT] == s.good_S.size:
        forget(s)
    h = _place_of_set(s.set_H, s.bad_SW, bad_W)
    index = s.set_H[h] if s.set_H[h] >= 0 else _enter_set(m, s, h, bad_W)
    total, good = s.total_S[index], s.good_S[index]
    if total < k + 1:
        return 0.0, total, TOO_FEW
    # Products on the set are those of all rows less those of the dropped ones, where that is less work.
    downdated = not m.robust and rows - good <= good
    length = rows - good if downdated else good
    room, pairs = k * (length + 1), s.pair_H.size // 2
    if room > s.column_A.size or k * k > pairs:
        return measure_cells(m, cells_K)
    if s.head[_ARENA_USED] + room > s.column_A.size or s.head[_PAIR_COUNT] + k * k > pairs:
        forget(s)
        index = _enter_set(m, s, _place_of_set(s.set_H, s.bad_SW, bad_W), bad_W)
    moment_KK = np.empty((k, k))
    exact = True
    cells = m.missing_DW.shape[0]
    pair_H, product_H, start_D, column_A = s.pair_H, s.product_H, s.start_SD[index], s.column_A
    for i in range(k):
        a = cells_K[i]
        for j in range(i + 1):
            b = cells_K[j]
            pair = (index * cells + max(a, b)) * cells + min(a, b)
            h = _place_of_pair(pair_H, pair)
            if pair_H[h] < 0:
                at = start_D[a] if start_D[a] >= 0 else _write_column(m, s, index, bad_W, a, downdated)
                bt = start_D[b] if start_D[b] >= 0 else _write_column(m, s, index, bad_W, b, downdated)
                if downdated:
                    lost = dot(column_A[at + 1 : at + 1 + length], column_A[bt + 1 : bt + 1 + length])
                    product_H[h] = m.gram_DD[a, b] - lost - column_A[at] * column_A[bt] / total
                else:
                    product_H[h] = dot(column_A[at : at + length], column_A[bt : bt + length])
                pair_H[h] = pair
                s.head[_PAIR_COUNT] += 1
            moment_KK[i, j] = product_H[h]
        exact = exact and (not downdated or moment_KK[i, i] > 1e-3 * m.gram_DD[a, a])
    if not downdated and moment_KK[k - 2, k - 2] == 0.0:
        return 0.0, total, CONSTANT_X
    if not downdated and moment_KK[k - 1, k - 1] == 0.0:
        return 0.0, total, CONSTANT_Y
    if exact:
        value, solved = from_moments(moment_KK)
        if solved:
            return value, total, OK
    return measure_cells(m, cells_K)
