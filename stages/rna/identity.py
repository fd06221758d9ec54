"""Sequence identity of RNA molecules: nearest neighbours between sets, and clusters for splits.

Identity of two molecules is the number of identical bases in their alignment / length of the shorter one, as cd-hit
counts it (its option -G 1; Li and Godzik 2006). The alignment fits the whole shorter molecule into any part of the
longer one with the highest score, with cd-hit-est's scores: identical 2, other -2, the first base of a gap -6, each
further one -1; of equally high ones, the one with the most identical and the fewest skipped bases. What the longer one
has before and after is free. Bases of the longer one that are skipped inside are free up to a tenth of the length of
the shorter one (cd-hit has its band of 20 there); each further one is taken off the identical bases. Of two molecules
of equal length either may be the one that is fitted, and the better way counts.

No pair is missed. With m the length of the shorter molecule, identity t means that at most (1 - t) m of its bases are
unlike and 0.1 m skipped: at most (1.1 - t) m edits. These are at least the sum, over windows of up to 64 bases, of the
fewest edits of each window anywhere in the longer one, which are computed for 32 molecules side by side. Pairs whose
sum is higher are left out, the others are aligned. A k-mer filter without false negatives would ask for
m - k + 1 - k (edits) common k-mers (Jokinen and Ukkonen 1991): even for 0.2 m edits that is few or none, and unrelated
molecules have as many. It refuses 11 % of the unrelated pairs of Rfam's seed alignments at best (k = 4), the windows
nearly all.

Letters are compared as they are: N is identical to N only. Case does not matter, and T is U.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stages.rna.identity_kernels import Sequences

THRESHOLD = 0.8
LETTERS = "ACGURYSWKMBDHVN"
COMPLEMENTS = "UGCAYRSWMKVHDBN"

Bases = NDArray[np.uint8]


@dataclass(frozen=True)
class Neighbours:
    """The nearest reference of each query.

    Attributes
    ----------
    index_Q
        Number of the reference; -1 where none reaches the asked identity. Of several equally near one, always the
        same.
    identity_Q
        Their identity; NaN where there is none.
    """

    index_Q: NDArray[np.int64]
    identity_Q: NDArray[np.float64]


def identity(first: str, second: str, *, reverse_complement: bool = False) -> float:
    """Identity of two molecules, from 0 to 1; see the module.

    Parameters
    ----------
    first, second
        Sequences of IUPAC letters without gaps.
    reverse_complement
        Whether the reverse complement of one is tried too, and the better counts.

    Raises
    ------
    ValueError
        Where a sequence is empty or holds another letter.
    """
    return float(nearest([first], [second], reverse_complement=reverse_complement).identity_Q[0])


def nearest(
    queries: Sequence[str], references: Sequence[str], *, at_least: float = 0.0, reverse_complement: bool = False
) -> Neighbours:
    """Find the reference with the highest identity for each query.

    Parameters
    ----------
    queries, references
        Sequences of IUPAC letters without gaps; a sequence may stand in both.
    at_least
        Identity below which no reference counts as a neighbour. Unrelated molecules reach 0.6, so that lower ones say
        little, and below 0.7 the bound leaves out few pairs: each then costs an alignment, some 15 microseconds.
    reverse_complement
        Whether the reverse complements of the references are tried too.

    Returns
    -------
    Neighbours
        In the order of the queries.

    Raises
    ------
    ValueError
        Where a sequence is empty or holds another letter, or `at_least` is not in [0, 1].
    """
    from stages.rna.identity_kernels import Nearest, approach

    if not 0 <= at_least <= 1:
        raise ValueError(f"at_least is {at_least}; expected an identity from 0 to 1")
    asked, query_order, _ = _by_length(queries, "query")
    known, reference_order, reference_M = _by_length(references, "reference")
    count = len(query_order)
    found = Nearest(np.full(count, -1), np.zeros(count, np.int64), np.ones(count, np.int64))
    strands = [known, _packed([_reversed(bases) for bases in reference_M])] if reverse_complement else [known]
    if references:
        for strand in strands:
            approach(asked, strand, True, at_least, found)
            approach(strand, asked, False, at_least, found)
    there = found.number_M >= 0
    answer = Neighbours(np.full(len(queries), -1), np.full(len(queries), np.nan))
    answer.index_Q[query_order[there]] = reference_order[found.number_M[there]]
    length_M = found.length_M[there]
    # One rounded division: 16 of 20 is the 0.8 that a threshold is.
    answer.identity_Q[query_order[there]] = (length_M - found.unlike_M[there]) / length_M
    return answer


def clusters(
    sequences: Sequence[str], *, threshold: float = THRESHOLD, reverse_complement: bool = False
) -> NDArray[np.int64]:
    """Clusters of single linkage: no molecule reaches the threshold with one of another cluster.

    Parameters
    ----------
    sequences
        Sequences of IUPAC letters without gaps.
    threshold
        Identity from which two molecules are in one cluster, above 0 and at most 1.
    reverse_complement
        Whether a molecule and another one's reverse complement count too.

    Returns
    -------
    ndarray
        A cluster number for each molecule, 0 for that of the first, in the order of their first molecules.

    Raises
    ------
    ValueError
        Where a sequence is empty or holds another letter, or the threshold is not in (0, 1].

    Notes
    -----
    Greedy clusters (cd-hit's) have fewer comparisons but hold apart only the representatives: two of their members
    may be as near as they like, which a split must not have.
    """
    from stages.rna.identity_kernels import join

    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}; expected an identity above 0 and at most 1")
    forward, order, bases_M = _by_length(sequences, "sequence")
    parent_M = np.arange(len(order))
    join(forward, forward, threshold, parent_M)
    if reverse_complement:
        join(_packed([_reversed(bases) for bases in bases_M]), forward, threshold, parent_M)
    while not np.array_equal(parent_M, parent_M[parent_M]):
        parent_M = parent_M[parent_M]
    root = np.empty(len(order), np.int64)
    root[order] = parent_M
    _, first, cluster = np.unique(root, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[cluster]


def _by_length(sequences: Sequence[str], what: str) -> tuple[Sequences, NDArray[np.int64], list[Bases]]:
    """Sequences by falling length for the kernels, with their order and codes."""
    bases_M = [_encoded(text, f"{what} {number}") for number, text in enumerate(sequences)]
    order = np.argsort([-bases.size for bases in bases_M], kind="stable").astype(np.int64)
    bases_M = [bases_M[number] for number in order]
    return _packed(bases_M), order, bases_M


def _packed(bases_M: list[Bases]) -> Sequences:
    """Sequences, by falling length, in the two layouts of the kernels."""
    from stages.rna.identity_kernels import LANES, PADDING, Sequences

    empty = np.zeros(0, np.uint8)
    start_M = np.cumsum([0, *(bases.size for bases in bases_M)], dtype=np.int64)
    blocks = []
    for first in range(0, len(bases_M), LANES):
        block = bases_M[first : first + LANES]
        lanes = np.full((block[0].size, LANES), PADDING, np.uint8)
        for lane, bases in enumerate(block):
            lanes[: bases.size, lane] = bases
        blocks.append(lanes.ravel())
    block_B = np.cumsum([0, *(lanes.size for lanes in blocks)], dtype=np.int64)
    return Sequences(np.concatenate([empty, *bases_M]), start_M, np.concatenate([empty, *blocks]), block_B)


_CODE = np.full(256, 255, np.uint8)
for _code, _letter in enumerate(LETTERS):
    _CODE[[ord(_letter), ord(_letter.lower())]] = _code
_CODE[[ord("T"), ord("t")]] = LETTERS.index("U")
_COMPLEMENT = np.array([LETTERS.index(letter) for letter in COMPLEMENTS], np.uint8)


def _encoded(text: str, name: str) -> Bases:
    codes: Bases = _CODE[np.frombuffer(text.encode("latin-1", "replace"), np.uint8)]
    if codes.size == 0:
        raise ValueError(f"{name} is empty; expected at least one base")
    if (odd := np.flatnonzero(codes == 255)).size:
        raise ValueError(f"{name} holds {text[odd[0]]!r} at base {odd[0] + 1}; expected the letters {LETTERS} or T")
    return codes


def _reversed(bases: Bases) -> Bases:
    """The reverse complement."""
    return _COMPLEMENT[bases[::-1]]
