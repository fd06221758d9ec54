"""Secondary structures as lists of base pairs: text to pairs and back, pseudoknot orders, checks, projection.

Positions count from 0 in arrays and from 1 in texts, as people of the field count bases.

A *helix* is a run of stacked pairs (i, j), (i + 1, j - 1), ...: another pair crosses all pairs of a helix or none. The
*order* of a pair is 0 in the nested part of its structure, 1 in the nested part of what is left, and so on. The nested
part is the largest set of pairs of which no two cross. Of several such sets it is the one that takes the helix that
starts first (5'), at the first place where they differ: of two crossing helices of equal length, the one that opens
first is nested and the other is the pseudoknot.

Shapes: N pairs, L bases, H helices, E ends of helices (2H).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Pairs (N, 2) of 0-based positions, left < right, sorted by left.
Pairs: TypeAlias = NDArray[np.int32]

#: Brackets in the order in which they are written: order 0 gets the first.
OPENING = "([{<ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CLOSING = ")]}>abcdefghijklmnopqrstuvwxyz"
#: Characters of unpaired bases and of gaps in dot-bracket text and in WUSS (Stockholm, Infernal).
UNPAIRED = ".-_,:~"

#: Crossing helices of one knot for which the largest nested set is searched exactly: 64 MiB of sums.
MAX_EXACT_HELICES = 2000

_CLOSES = dict(zip(CLOSING, OPENING, strict=True))
_KIND = {
    **dict.fromkeys(OPENING, 1),
    **dict.fromkeys(CLOSING, 2),
    **dict.fromkeys(UNPAIRED, 0),
}


class StructureError(ValueError):
    """A structure that cannot be one.

    Attributes
    ----------
    position
        0-based position of the fault.
    found, expected
        What stands there, and what should.
    """

    def __init__(self, position: int, found: str, expected: str) -> None:
        self.position = position
        self.found = found
        self.expected = expected
        super().__init__(f"position {position + 1}: found {found}; expected {expected}")


def no_pairs() -> Pairs:
    """The pairs of a structure without any."""
    return np.empty((0, 2), dtype=np.int32)


def parse(text: str) -> Pairs:
    """Pairs of a structure in dot-bracket text or WUSS.

    ``()``, ``[]``, ``{}``, ``<>`` and the letters ``Aa`` to ``Zz`` pair, each kind by itself, so that kinds may cross;
    ``.-_,:~`` do not pair.

    Returns
    -------
    Pairs
        (N, 2), in columns of the text.

    Raises
    ------
    StructureError
        A bracket has no partner, or a character is none of a structure.
    """
    open_at: dict[str, list[int]] = {}
    found: list[tuple[int, int]] = []
    for position, character in enumerate(text):
        kind = _KIND.get(character)
        if kind == 0:
            continue
        if kind == 1:
            open_at.setdefault(character, []).append(position)
        elif kind == 2:
            waiting = open_at.get(_CLOSES[character])
            if not waiting:
                raise StructureError(position, f"{character!r}", f"an opening {_CLOSES[character]!r} before it")
            found.append((waiting.pop(), position))
        else:
            raise StructureError(position, f"{character!r}", f"one of {UNPAIRED} or a bracket")
    left_open = [positions[-1] for positions in open_at.values() if positions]
    if left_open:
        first = min(left_open)
        closing = CLOSING[OPENING.index(text[first])]
        raise StructureError(first, f"{text[first]!r}", f"a closing {closing!r} behind it")
    found.sort()
    return np.array(found, dtype=np.int32).reshape(-1, 2)


def checked(pairs: NDArray[np.integer], length: int) -> Pairs:
    """Pairs in their normal form: left < right, sorted, each once.

    Raises
    ------
    StructureError
        A pair reaches beyond the molecule, pairs a base with itself, or a base is in two pairs.
    """
    array = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    outside = array[(array < 0) | (array >= length)]
    if outside.size:
        raise StructureError(int(outside[0]), f"a pair with base {int(outside[0]) + 1}", f"bases 1 to {length}")
    array = np.unique(np.sort(array, axis=1), axis=0)
    itself = array[array[:, 0] == array[:, 1], 0]
    if itself.size:
        raise StructureError(int(itself[0]), "a base paired with itself", "a pair of two bases")
    bases, counts = np.unique(array, return_counts=True)
    twice = bases[counts > 1]
    if twice.size:
        partners_of = array[(array == twice[0]).any(axis=1)].sum(axis=1) - twice[0]
        told = " and ".join(str(int(partner) + 1) for partner in partners_of)
        raise StructureError(int(twice[0]), f"a base paired with {told}", "one partner at most")
    return array.astype(np.int32)


def partners(pairs: Pairs, length: int) -> NDArray[np.int32]:
    """The partner of each base (L,), -1 where it has none."""
    partner_L = np.full(length, -1, dtype=np.int32)
    partner_L[pairs[:, 0]] = pairs[:, 1]
    partner_L[pairs[:, 1]] = pairs[:, 0]
    return partner_L


def from_partners(partner_L: NDArray[np.integer]) -> Pairs:
    """Pairs of an array of partners (L,), 0-based, negative where a base has none.

    Raises
    ------
    StructureError
        A partner does not name the base back, or lies beyond the molecule.
    """
    array = np.asarray(partner_L, dtype=np.int64)
    base_N = np.flatnonzero(array >= 0)
    partner_N = array[base_N]
    outside = base_N[partner_N >= array.size]
    if outside.size:
        first = int(outside[0])
        raise StructureError(first, f"a pair with base {int(array[first]) + 1}", f"bases 1 to {array.size}")
    itself = base_N[partner_N == base_N]
    if itself.size:
        raise StructureError(int(itself[0]), "a base paired with itself", "a pair of two bases")
    one_way = base_N[array[partner_N] != base_N]
    if one_way.size:
        first = int(one_way[0])
        back = int(array[array[first]])
        told = f"with base {back + 1}" if back >= 0 else "with none"
        raise StructureError(
            first,
            f"a pair with base {int(array[first]) + 1}, which pairs {told}",
            "two bases that name each other",
        )
    is_left = base_N < partner_N
    return np.stack([base_N[is_left], partner_N[is_left]], axis=1).astype(np.int32)


def brackets(pairs: Pairs, length: int, order_N: NDArray[np.integer] | None = None) -> str:
    """Dot-bracket text of a structure, a kind of brackets for each pseudoknot order.

    Raises
    ------
    StructureError
        The structure has more orders than there are kinds of brackets (30).
    """
    written = orders(pairs) if order_N is None else order_N
    if written.size and int(written.max()) >= len(OPENING):
        raise StructureError(
            int(pairs[int(written.argmax()), 0]),
            f"a pseudoknot of order {int(written.max())}",
            f"at most {len(OPENING) - 1}",
        )
    text = ["."] * length
    for (left, right), level in zip(pairs.tolist(), written.tolist(), strict=True):
        text[left], text[right] = OPENING[level], CLOSING[level]
    return "".join(text)


def project(pairs: Pairs, kept_C: NDArray[np.bool_]) -> tuple[Pairs, int]:
    """A structure over the columns of an alignment on the bases of one row.

    Parameters
    ----------
    pairs
        In columns.
    kept_C
        Which columns hold a base of the row.

    Returns
    -------
    tuple
        Pairs in bases of the ungapped row, and the number of pairs lost because a side is a gap.
    """
    both_N = kept_C[pairs[:, 0]] & kept_C[pairs[:, 1]]
    position_C = np.cumsum(kept_C, dtype=np.int32) - np.int32(1)
    return position_C[pairs[both_N]].astype(np.int32), int(both_N.size - np.count_nonzero(both_N))


def is_nested(pairs: Pairs) -> bool:
    """Whether no two pairs cross: walked from 5' to 3', each pair closes before the one that opened before it."""
    waiting: list[int] = []
    for left, right in pairs.tolist():
        while waiting and waiting[-1] < left:
            waiting.pop()
        if waiting and waiting[-1] < right:
            return False
        waiting.append(right)
    return True


def helix_starts(pairs: Pairs) -> NDArray[np.intp]:
    """Index of the outermost pair of each helix (H,)."""
    if not len(pairs):
        return np.empty(0, dtype=np.intp)
    stacked = (np.diff(pairs[:, 0]) == 1) & (np.diff(pairs[:, 1]) == -1)
    return np.flatnonzero(np.concatenate([[True], ~stacked]))


def orders(pairs: Pairs) -> NDArray[np.int8]:
    """Pseudoknot order of each pair (N,); see the top of the module for the rule and its ties."""
    order_N = np.zeros(len(pairs), dtype=np.int8)
    if is_nested(pairs):
        return order_N
    start_H = helix_starts(pairs)
    size_H = np.diff(np.append(start_H, len(pairs)))
    outer_H = pairs[start_H]
    order_H = np.zeros(len(start_H), dtype=np.int8)
    for knot in _knots(outer_H):
        level, rest = 0, knot
        while rest.size:
            nested = _largest_nested(outer_H[rest], size_H[rest])
            order_H[rest[nested]] = level
            level, rest = level + 1, rest[~nested]
    return np.repeat(order_H, size_H)


def _knots(outer_H: Pairs) -> list[NDArray[np.intp]]:
    """Helices that cross another, directly or through others, in groups; helices that cross none are left out."""
    group = list(range(len(outer_H)))

    def root(index: int) -> int:
        while group[index] != index:
            group[index] = group[group[index]]
            index = group[index]
        return index

    waiting: list[int] = []
    right_H = outer_H[:, 1].tolist()
    for index, (left, right) in enumerate(outer_H.tolist()):
        waiting = [other for other in waiting if right_H[other] > left]
        for other in waiting:
            if right_H[other] < right:
                group[root(index)] = root(other)
        waiting.append(index)
    members: dict[int, list[int]] = {}
    for index in range(len(outer_H)):
        members.setdefault(root(index), []).append(index)
    return [np.array(knot) for knot in members.values() if len(knot) > 1]


def _largest_nested(outer_H: Pairs, size_H: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which helices of a knot are in its largest nested set: the heaviest independent set of a circle graph.

    ``most[e, f]`` is the largest number of pairs among helices whose ends all lie among the ends e to f - 1. A helix
    that opens at end e and closes at end k is taken where that loses nothing; taking it first on a tie is the rule of
    the module.
    """
    if len(outer_H) > MAX_EXACT_HELICES:
        return _greedy_nested(outer_H, size_H)
    ends = np.argsort(outer_H, axis=None, kind="stable")
    helix_E, closes_E = np.divmod(ends, 2)
    end_of_H = np.empty_like(outer_H)
    end_of_H[helix_E, closes_E] = np.arange(ends.size)
    most = np.zeros((ends.size + 2, ends.size + 1), dtype=np.int32)
    for end in range(ends.size - 1, -1, -1):
        most[end] = most[end + 1]
        if not closes_E[end]:
            helix = helix_E[end]
            close = int(end_of_H[helix, 1])
            taken = size_H[helix] + most[end + 1, close] + most[close + 1, close + 1 :]
            most[end, close + 1 :] = np.maximum(most[end, close + 1 :], taken)
    nested_H = np.zeros(len(outer_H), dtype=np.bool_)
    spans = [(0, ends.size)]
    while spans:
        start, stop = spans.pop()
        while start < stop:
            helix = helix_E[start]
            close = int(end_of_H[helix, 1])
            if not closes_E[start] and close < stop:
                taken_here = size_H[helix] + most[start + 1, close] + most[close + 1, stop]
                if taken_here == most[start, stop]:
                    nested_H[helix] = True
                    spans.append((start + 1, close))
                    start = close
            start += 1
    return nested_H


def _greedy_nested(outer_H: Pairs, size_H: NDArray[np.integer]) -> NDArray[np.bool_]:
    """The same for a knot too large for an exact search: the longest helix first, on a tie the one that opens first."""
    nested_H = np.zeros(len(outer_H), dtype=np.bool_)
    for helix in np.lexsort((outer_H[:, 0], -size_H)):
        left, right = outer_H[helix]
        taken = outer_H[nested_H]
        inside_left = (taken[:, 0] < left) & (left < taken[:, 1])
        inside_right = (taken[:, 0] < right) & (right < taken[:, 1])
        nested_H[helix] = not (inside_left != inside_right).any()
    return nested_H
