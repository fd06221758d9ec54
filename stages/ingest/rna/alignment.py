"""The rows of an alignment as molecules: gaps taken out, the family's consensus structure projected on each row.

A pair of the consensus of which a row has a gap on one side or both is lost in that row, and counted. Rows are worked
out many at a time, as matrices.

Shapes: S rows, C columns of the alignment, P pairs of the consensus, K pairs kept in all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, repeat
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stages.ingest.rna import rows, text
from stages.ingest.rna.molecules import Molecule, Notes
from stages.ingest.rna.rows import Place
from stages.rna import alphabet, structure
from stages.rna.structure import Pairs, StructureError

#: Letters worked out at once; their matrices take about 10 bytes a letter.
BLOCK = 1 << 20

_GAPS = alphabet.GAPS.encode()
_IS_BASE = np.ones(256, dtype=np.bool_)
_IS_BASE[np.frombuffer(_GAPS, dtype=np.uint8)] = False

_make_molecule = partial(tuple.__new__, Molecule)
#: Sequences, position maps, numbers of gaps, pairs, where these come from, pairs lost: one entry a row.
_Columns: TypeAlias = tuple[
    list[str],
    list[NDArray[np.int32] | None],
    list[int],
    list[Pairs | None],
    list[str | None],
    list[int | None],
]


@dataclass
class Alignment:
    """One alignment as it stands in the file; the parts of wrapped rows are still apart.

    Attributes
    ----------
    line
        Line of its header.
    rows, row_lines
        Parts of each row by name, and the line on which each row begins, in the same order.
    consensus, consensus_line
        Parts of SS_cons, and the line of the first.
    own
        Parts of a row's own structure by the row's name, with the line of the first.
    fields
        First line of each of AC, ID, SS and TP.
    """

    line: int
    rows: dict[bytes, list[bytes]] = field(default_factory=dict)
    row_lines: list[int] = field(default_factory=list)
    consensus: list[bytes] = field(default_factory=list)
    consensus_line: int = 0
    own: dict[bytes, tuple[int, list[bytes]]] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str | None:
        """Accession, or else name."""
        return self.fields.get("AC") or self.fields.get("ID")


def molecules(alignment: Alignment, file: Path, source: str, number: int, notes: Notes) -> Iterator[Molecule]:
    """The rows of an alignment as molecules, in their order.

    Parameters
    ----------
    number
        Its number in the file, from 1: part of the family's name where it has none of its own.

    Raises
    ------
    DataError
        It has no row, its rows or structures differ in length, a letter is none, or a structure cannot be one.
    """
    family = alignment.name
    if family is None:
        family = f"{text.stem(file)}#{number}"
        notes.add(f"{source}: has alignments without AC and ID; each is a family with the file's name and its number")
    place = Place(file, source, family, alignment.line)
    if not alignment.rows:
        raise place.fault(
            "no row: the family is empty", "at least one row", "Take the family out of the file, or copy it again."
        )
    joined = [parts[0] if len(parts) == 1 else b"".join(parts) for parts in alignment.rows.values()]
    columns = _columns(alignment, joined, place)
    consensus = _consensus(alignment, columns, place)
    names = text.decoded(b"\n".join(alignment.rows)).split("\n")
    own = {name: _own(alignment, name, columns, place) for name in alignment.own}
    structures = [own.get(name) for name in alignment.rows] if own else [None] * len(names)
    evidence = alignment.fields.get("SS", "").split(";")[0].strip() or None
    rna_type = alignment.fields.get("TP", "").strip().rstrip(";") or None
    of_family = [repeat(fact) for fact in (evidence, family, alignment.fields.get("ID"), rna_type)]
    step = max(1, BLOCK // columns)
    for start in range(0, len(joined), step):
        part = slice(start, start + step)
        sequences, *facts = _projected(joined[part], consensus, structures[part])
        if not all(sequences):
            notes.add(f"{source}: has rows of gaps alone, which the gate judges")
        lines = alignment.row_lines[part]
        fields = zip(names[part], sequences, repeat(source), lines, *facts, *of_family, strict=False)
        yield from map(_make_molecule, fields)


def _columns(alignment: Alignment, joined: list[bytes], place: Place) -> int:
    """Number of columns, the same in all rows, after a look at their letters."""
    columns = len(joined[0])
    if set(map(len, joined)) != {columns}:
        names = list(alignment.rows)
        index = next(index for index, row in enumerate(joined) if len(row) != columns)
        blocks, expected = (len(alignment.rows[name]) for name in (names[index], names[0]))
        raise _of_row(alignment, names[index], place).fault(
            f"{len(joined[index])} columns in {blocks} blocks",
            f"{columns} columns in {expected} blocks, as in row {text.decoded(names[0])!r}",
            "A line was lost, or two rows have one name: give each its own.",
        )
    if b"".join(joined).translate(None, alphabet.LETTERS + _GAPS):
        for name, row in zip(alignment.rows, joined, strict=True):
            if row.translate(None, alphabet.LETTERS + _GAPS):
                raise rows.unknown_letter(row, _of_row(alignment, name, place))
    return columns


def _of_row(alignment: Alignment, name: bytes, place: Place) -> Place:
    line = alignment.row_lines[list(alignment.rows).index(name)]
    return Place(place.file, place.source, f"{text.decoded(name)} of {place.record}", line)


def _consensus(alignment: Alignment, columns: int, place: Place) -> Pairs | None:
    if not alignment.consensus:
        return None
    return _parsed(alignment.consensus, columns, place.at(alignment.consensus_line))


def _own(alignment: Alignment, name: bytes, columns: int, place: Place) -> Pairs:
    line, parts = alignment.own[name]
    row = Place(place.file, place.source, f"{text.decoded(name)} of {place.record}", line)
    if name not in alignment.rows:
        raise row.fault("a structure of a row that is not there", "the row itself", "Correct the name, or add the row.")
    return _parsed(parts, columns, row)


def _parsed(parts: list[bytes], columns: int, place: Place) -> Pairs:
    written = text.decoded(b"".join(parts))
    if len(written) != columns:
        kind = "shorter" if len(written) < columns else "longer"
        raise place.fault(
            f"a structure of {len(written)} columns, {kind} than its rows",
            f"{columns}, as in the rows",
            "A line of the structure was lost or cut: copy the family again.",
        )
    try:
        return structure.parse(written)
    except StructureError as error:
        raise rows.structure_fault(error, place) from None


def _projected(joined: list[bytes], consensus: Pairs | None, structures: Sequence[Pairs | None]) -> _Columns:
    """Sequences of some rows, and their fields of a molecule up to ``pairs_lost``."""
    sequences = b">".join(joined).translate(alphabet.UPPER, _GAPS).decode("ascii").split(">")
    is_base_SC = _IS_BASE[np.frombuffer(b"".join(joined), dtype=np.uint8).reshape(len(joined), -1)]
    columns = is_base_SC.shape[1]
    column_L = np.broadcast_to(np.arange(columns, dtype=np.int32), is_base_SC.shape)[is_base_SC]
    bounds = [0, *np.cumsum(np.count_nonzero(is_base_SC, axis=1)).tolist()]
    maps = [None if stop - start == columns else column_L[start:stop] for start, stop in pairwise(bounds)]
    gaps = [columns - len(sequence) for sequence in sequences]
    pairs: list[Pairs | None] = [None] * len(joined)
    origin: list[str | None] = [None] * len(joined)
    lost: list[int | None] = [None] * len(joined)
    if consensus is not None:
        pairs[:], lost[:] = _of_consensus(is_base_SC, consensus)
        origin[:] = ["consensus"] * len(joined)
    for index, own in enumerate(structures):
        if own is not None:
            pairs[index], lost[index] = structure.project(own, is_base_SC[index])
            origin[index] = "file"
    return sequences, maps, gaps, pairs, origin, lost


def _of_consensus(is_base_SC: NDArray[np.bool_], consensus: Pairs) -> tuple[list[Pairs], list[int]]:
    """Pairs of each row in its own positions, and the number it has lost."""
    left_P, right_P = consensus[:, 0], consensus[:, 1]
    bases_SC = np.cumsum(is_base_SC, axis=1, dtype=np.int32)
    kept_SP = is_base_SC.take(left_P, axis=1) & is_base_SC.take(right_P, axis=1)
    counts = np.count_nonzero(kept_SP, axis=1)
    bounds = [0, *np.cumsum(counts).tolist()]
    pairs_K2 = np.empty((bounds[-1], 2), dtype=np.int32)
    np.subtract(bases_SC.take(left_P, axis=1)[kept_SP], 1, out=pairs_K2[:, 0])
    np.subtract(bases_SC.take(right_P, axis=1)[kept_SP], 1, out=pairs_K2[:, 1])
    return [pairs_K2[start:stop] for start, stop in pairwise(bounds)], (len(consensus) - counts).tolist()
