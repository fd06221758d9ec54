"""A row of letters as it stands in a file, to bases, a position map and pairs; and what is said of a bad one.

Shapes: L bases of the ungapped row, C columns of the row as it stands, N pairs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.rna.molecules import Molecule
from stages.rna import alphabet, structure
from stages.rna.structure import Pairs, StructureError

_GAPS = alphabet.GAPS.encode()
_BRACKETS = b"()[]{}<>"


@dataclass(frozen=True)
class Place:
    """Where a record stands: the file, its name inside the set, the record's name, the line from 1."""

    file: Path
    source: str
    record: str
    line: int

    def fault(self, found: str, expected: str, remedy: str) -> DataError:
        """The error of this record."""
        record = f"record {self.record[:60]!r}, line {self.line}" if self.record else f"line {self.line}"
        return DataError(self.file, record=record, found=found, expected=expected, remedy=remedy)

    def at(self, line: int) -> Place:
        """The same record, another of its lines."""
        return Place(self.file, self.source, self.record, line)


@dataclass(frozen=True)
class Bases:
    """The bases of a row.

    Attributes
    ----------
    sequence
        (L,) letters of the alphabet.
    position_map
        (L,) column of each base; None where the row has no gap.
    columns
        C, the length of the row.
    """

    sequence: str
    position_map: NDArray[np.int32] | None
    columns: int

    @property
    def gaps(self) -> int:
        """Number of gaps of the row."""
        return self.columns - len(self.sequence)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which columns hold a base (C,)."""
        kept_C = np.full(self.columns, self.position_map is None)
        if self.position_map is not None:
            kept_C[self.position_map] = True
        return kept_C


def bases(row: str, place: Place) -> Bases:
    """Take the gaps out of a row; upper case, U for T.

    Raises
    ------
    DataError
        A character is no IUPAC code of a base and no gap; the message gives its position.
    """
    raw = row.encode("latin-1", "replace")
    if raw.translate(None, alphabet.LETTERS + _GAPS):
        raise unknown_letter(raw, place)
    sequence = raw.translate(alphabet.UPPER, _GAPS).decode("ascii")
    if len(sequence) == len(row):
        return Bases(sequence, None, len(row))
    is_base_C = np.isin(np.frombuffer(raw, dtype=np.uint8), np.frombuffer(_GAPS, dtype=np.uint8), invert=True)
    return Bases(sequence, np.flatnonzero(is_base_C).astype(np.int32), len(row))


def unknown_letter(raw: bytes, place: Place) -> DataError:
    """The error of a row that holds a character which is no base and no gap."""
    match = re.search(b"[^" + re.escape(alphabet.LETTERS + _GAPS) + b"]", raw)
    assert match is not None
    letter = match.group()
    if letter == b">":
        return place.fault(
            f"'>' at position {match.start() + 1}, inside a line",
            "'>' at the start of a line only",
            "Two records are glued together: put the line break back.",
        )
    if letter == b"&":
        return place.fault(
            f"'&' at position {match.start() + 1}: two strands",
            "one molecule a record",
            "Split the strands into records.",
        )
    remedy = "Correct the sequence; a modified base is written N or as its unmodified base."
    if letter in _BRACKETS:
        remedy = "If the file holds structures too, its format is another (dotbracket, bprna_st)."
    return place.fault(
        f"{letter.decode('latin-1')!r} at position {match.start() + 1} of the sequence",
        "A, C, G, U or T, another IUPAC code of bases, or a gap",
        remedy,
    )


def bracketed(row: str, text: str, place: Place, structure_line: int, family: str | None) -> Molecule:
    """A molecule of a row and its structure in brackets, column by column.

    Raises
    ------
    DataError
        The two differ in length, or one of them is not what it should be.
    """
    found = bases(row, place)
    at = place.at(structure_line)
    if len(text) != found.columns:
        kind = "shorter" if len(text) < found.columns else "longer"
        raise at.fault(
            f"a structure of {len(text)} characters, {kind} than its sequence",
            f"{found.columns}, one for each base",
            "The structure was cut or belongs to another sequence: copy the record again.",
        )
    try:
        pairs = structure.parse(text)
    except StructureError as error:
        raise structure_fault(error, at) from None
    return paired(found, pairs, place, family)


def paired(found: Bases, pairs: Pairs, place: Place, family: str | None) -> Molecule:
    """A molecule of its bases and the pairs of the row's columns; a pair with a gap is lost and counted."""
    lost = None
    if found.position_map is not None:
        pairs, lost = structure.project(pairs, found.kept)
    return Molecule(
        name=place.record,
        sequence=found.sequence,
        source_file=place.source,
        line=place.line,
        position_map=found.position_map,
        gaps_removed=found.gaps,
        pairs=pairs,
        structure_source="file",
        pairs_lost=lost,
        family=family,
        family_name=family,
    )


def structure_fault(error: StructureError, place: Place) -> DataError:
    """The error of a record whose structure cannot be one, with the position from 1."""
    return place.fault(
        f"{error.found} at position {error.position + 1} of the structure",
        error.expected,
        "Correct the structure, or take the record out of the file.",
    )


def family_of(name: str, pattern: str | None) -> str | None:
    """The family in a molecule's name; None where the pattern does not match or there is none."""
    match = re.search(pattern, name) if pattern else None
    return match["family"] if match else None
