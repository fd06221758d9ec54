"""Identities of many pairs of sequences, compiled: a bound by bit-parallel edit distances, then the alignment.

A pair is a pattern, the shorter sequence, fitted into a text, the longer one. Pairs with the same pattern are computed
side by side. All kernels stand in this one file, as numba's cache on the disk looks at the file of a kernel only.

Shape suffixes: M sequence, F flat bases; B block of LANES sequences of neighbouring length; L lane; C code of a base;
W window or word of 64 bases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

LANES = 32
CODES = 16
PADDING = CODES - 1
WORD = 64
# Bases of the longer sequence that an alignment may skip for nothing, as a share of the shorter one's length.
SKIPPED = 0.1
# Scores of cd-hit-est: an identical base, another one, the first base of a gap and each further one.
SAME, OTHER, OPEN, EXTEND = 2, -2, -6, -1
# A cell holds score * SCORE + identical bases * IDENTICAL - skipped bases, so that its maximum settles ties.
SCORE, IDENTICAL = 2**42, 2**21
IMPOSSIBLE = -(2**62)
ROUNDING = 1e-9

P = ParamSpec("P")
R = TypeVar("R")
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Bases = NDArray[np.uint8]
Column = tuple[Words, Words, Words, Integers]

_njit: Any = numba.njit


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    return cast("Callable[P, R]", _njit(cache=True, nogil=True)(function))


class Sequences(NamedTuple):
    """Sequences by falling length, as flat codes and in blocks whose lanes are computed side by side.

    Attributes
    ----------
    base_F, start_M
        Codes one sequence after the other, and where each begins; the last entry of `start_M` is the end.
    lane_F, block_B
        Codes by block, position and lane, padded to the longest of the block, and where each block begins.
    """

    base_F: Bases
    start_M: Integers
    lane_F: Bases
    block_B: Integers


class Nearest(NamedTuple):
    """The nearest sequence so far of each query: its number (-1: none yet), unlike bases, length of the shorter."""

    number_M: Integers
    unlike_M: Integers
    length_M: Integers


@_compiled
def allowed(length: int, threshold: float) -> int:
    """Most unlike bases of a shorter sequence of this length at which identity still reaches the threshold."""
    return int(np.floor((1 - threshold) * length + ROUNDING))


@_compiled
def free_skips(length: int) -> int:
    """Bases of the longer sequence that the alignment of a shorter one of this length may skip for nothing."""
    return int(np.floor(SKIPPED * length + ROUNDING))


@_compiled
def _places(pattern: Bases, windows: int) -> Words:
    """Where each code stands in each of some windows of about equal size, as bits, shape (window, code)."""
    place_WC = np.zeros((windows, CODES), np.uint64)
    for w in range(windows):
        first = w * pattern.size // windows
        for i in range(first, (w + 1) * pattern.size // windows):
            place_WC[w, pattern[i]] |= np.uint64(1) << np.uint64(i - first)
    return place_WC


@_compiled
def _window_distances(place_C: Words, size: int, lanes: Bases, best_L: Integers, column: Column) -> None:
    """Fewest edits that turn one window into any part of each text of a block; a column is one word (Myers 1999)."""
    one, last = np.uint64(1), np.uint64(size - 1)
    equal_L, up_L, down_L, score_L = column
    for lane in range(LANES):
        up_L[lane] = ~np.uint64(0)
        down_L[lane] = np.uint64(0)
        score_L[lane] = size
        best_L[lane] = size
    for start in range(0, lanes.size, LANES):
        # In a loop of its own, so that the other one becomes vector instructions.
        for lane in range(LANES):
            equal_L[lane] = place_C[lanes[start + lane]]
        for lane in range(LANES):
            up, down, equal = up_L[lane], down_L[lane], equal_L[lane]
            vertical = equal | down
            horizontal = (((equal & up) + up) ^ up) | equal
            rise = down | ~(horizontal | up)
            fall = up & horizontal
            score = score_L[lane] + np.int64((rise >> last) & one) - np.int64((fall >> last) & one)
            # The first row is 0 everywhere: a match may begin at any base of the text.
            rise, fall = rise << one, fall << one
            up_L[lane] = fall | ~(vertical | rise)
            down_L[lane] = rise & vertical
            score_L[lane] = score
            best_L[lane] = min(best_L[lane], score)


@_compiled
def _column() -> Column:
    """Room for one column of a block: where the base stands, steps up and down, the last row."""
    return (
        np.empty(LANES, np.uint64),
        np.empty(LANES, np.uint64),
        np.empty(LANES, np.uint64),
        np.empty(LANES, np.int64),
    )


@_compiled
def _bounds(
    place_WC: Words, size: int, lanes: Bases, limit_L: Integers, bound_L: Integers, best_L: Integers, column: Column
) -> None:
    """Lower bounds of the distances of a pattern to the texts of a block, up to where all lanes exceed their limits.

    Windows are disjoint, and an alignment of the pattern aligns each: its edits are at least the sum of their fewest.
    """
    bound_L[:] = 0
    windows = len(place_WC)
    for w in range(windows):
        length = (w + 1) * size // windows - w * size // windows
        _window_distances(place_WC[w], length, lanes, best_L, column)
        going = False
        for lane in range(LANES):
            bound_L[lane] += best_L[lane]
            going |= bound_L[lane] <= limit_L[lane]
        if not going:
            return


@_compiled
def unlike(pattern: Bases, text: Bases) -> int:
    """Bases of a pattern that are not identical to those of a text, and skipped bases of the text beyond the free ones.

    The alignment is the whole pattern in any part of the text, with the highest score for gaps with an opening cost
    (Gotoh 1982).
    """
    score_T = np.zeros(text.size + 1, np.int64)
    unpaired_T = np.full(text.size + 1, IMPOSSIBLE)
    for i in range(pattern.size):
        diagonal = score_T[0]
        score_T[0] = (OPEN + i * EXTEND) * SCORE
        skipping = IMPOSSIBLE
        for j in range(1, text.size + 1):
            above = score_T[j]
            unpaired = max(unpaired_T[j] + EXTEND * SCORE, above + OPEN * SCORE)
            skipping = max(skipping + EXTEND * SCORE, score_T[j - 1] + OPEN * SCORE) - 1
            aligned = diagonal + (SAME * SCORE + IDENTICAL if pattern[i] == text[j - 1] else OTHER * SCORE)
            score_T[j] = max(aligned, max(unpaired, skipping))
            unpaired_T[j] = unpaired
            diagonal = above
    rest = score_T.max() % SCORE
    if rest > SCORE // 2:
        rest -= SCORE
    identical = (rest + IDENTICAL - 1) // IDENTICAL
    skipped = identical * IDENTICAL - rest
    return int(min(pattern.size, pattern.size - identical + max(0, skipped - free_skips(pattern.size))))


@_compiled
def _as_long(start_M: Integers, length: int) -> int:
    """How many of the sequences, which stand by falling length, have at least this one."""
    low, high = 0, start_M.size - 1
    while low < high:
        middle = (low + high) // 2
        if start_M[middle + 1] - start_M[middle] >= length:
            low = middle + 1
        else:
            high = middle
    return low


@_compiled
def _root(parent_M: Integers, number: int) -> int:
    while parent_M[number] != number:
        parent_M[number] = parent_M[parent_M[number]]
        number = parent_M[number]
    return number


@_compiled
def join(patterns: Sequences, texts: Sequences, threshold: float, parent_M: Integers) -> int:
    """Join the trees of all pairs that reach the threshold; the number of pairs that were aligned.

    Parameters
    ----------
    patterns, texts
        The same sequences in the same order, or their reverse complements.
    threshold
        Identity from which two are joined.
    parent_M
        The forest of single linkage, changed in place.
    """
    limit_L, bound_L, best_L = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    column = _column()
    aligned = 0
    for i in range(patterns.start_M.size - 1):
        pattern = patterns.base_F[patterns.start_M[i] : patterns.start_M[i + 1]]
        limit, skips = allowed(pattern.size, threshold), free_skips(pattern.size)
        windows = (pattern.size + WORD - 1) // WORD
        place_WC = _places(pattern, windows)
        longer = _as_long(texts.start_M, pattern.size)
        for block in range((longer + LANES - 1) // LANES):
            root, first, apart = _root(parent_M, i), block * LANES, 0
            for lane in range(LANES):
                open_pair = first + lane < longer and _root(parent_M, first + lane) != root
                limit_L[lane] = limit + skips if open_pair else -1
                apart += open_pair
            if apart == 0:
                continue
            lanes = texts.lane_F[texts.block_B[block] : texts.block_B[block + 1]]
            _bounds(place_WC, pattern.size, lanes, limit_L, bound_L, best_L, column)
            for lane in range(LANES):
                j = first + lane
                if bound_L[lane] > limit_L[lane] or _root(parent_M, j) == _root(parent_M, i):
                    continue
                aligned += 1
                if unlike(pattern, texts.base_F[texts.start_M[j] : texts.start_M[j + 1]]) <= limit:
                    parent_M[_root(parent_M, j)] = _root(parent_M, i)
    return aligned


@_compiled
def _limit(nearest: Nearest, query: int, length: int, threshold: float) -> int:
    """Most unlike bases at which a pair with a shorter sequence of this length is nearer than what the query has."""
    if nearest.number_M[query] < 0:
        return allowed(length, threshold)
    return int((nearest.unlike_M[query] * length - 1) // nearest.length_M[query])


@_compiled
def approach(
    patterns: Sequences,
    texts: Sequences,
    queries_are_patterns: bool,
    threshold: float,
    nearest: Nearest,
) -> None:
    """Bring the nearest sequence of each query up to date with all pairs whose pattern is no longer than its text.

    Parameters
    ----------
    patterns, texts
        Queries and references, or references and queries.
    queries_are_patterns
        Which of the two.
    threshold
        Identity that a sequence has to reach to be a query's nearest.
    nearest
        Changed in place; numbers are places in the references.
    """
    limit_L, bound_L, best_L = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    column = _column()
    for i in range(patterns.start_M.size - 1):
        pattern = patterns.base_F[patterns.start_M[i] : patterns.start_M[i + 1]]
        skips = free_skips(pattern.size)
        place_WC = _places(pattern, (pattern.size + WORD - 1) // WORD)
        longer = _as_long(texts.start_M, pattern.size)
        for block in range((longer + LANES - 1) // LANES):
            first, most = block * LANES, -1
            for lane in range(LANES):
                limit_L[lane] = -1
                if first + lane < longer:
                    query = i if queries_are_patterns else first + lane
                    limit = _limit(nearest, query, pattern.size, threshold)
                    # Nothing is nearer than a sequence without an unlike base.
                    limit_L[lane] = limit + skips if limit >= 0 else -1
                most = max(most, limit_L[lane])
            if most < 0:
                continue
            lanes = texts.lane_F[texts.block_B[block] : texts.block_B[block + 1]]
            _bounds(place_WC, pattern.size, lanes, limit_L, bound_L, best_L, column)
            for lane in range(LANES):
                j = first + lane
                if bound_L[lane] > limit_L[lane]:
                    continue
                query, reference = (i, j) if queries_are_patterns else (j, i)
                # The limit of a query that is the pattern falls with each lane that is nearer.
                limit = _limit(nearest, query, pattern.size, threshold)
                if limit < 0 or bound_L[lane] > limit + skips:
                    continue
                found = unlike(pattern, texts.base_F[texts.start_M[j] : texts.start_M[j + 1]])
                if found <= limit:
                    nearest.number_M[query] = reference
                    nearest.unlike_M[query] = found
                    nearest.length_M[query] = pattern.size
