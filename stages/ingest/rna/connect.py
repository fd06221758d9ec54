"""BPSEQ and CT: a line for each base with its number, its letter and the number of its partner (0: none).

A BPSEQ file is one molecule, or several with a heading, a comment or an empty line between them. A CT file has a header
with the number of bases before each structure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.ingest.rna import rows, text
from stages.ingest.rna.config import Bpseq, Ct
from stages.ingest.rna.molecules import Molecule, RnaSet, set_of_files
from stages.ingest.rna.rows import Place
from stages.rna import structure
from stages.rna.structure import StructureError

BPSEQ_SUFFIXES = (".bpseq", ".bps")
CT_SUFFIXES = (".ct", ".connect")

_ENERGY = re.compile(r"\[?\s*(energy|dg|initially)\s*=?\s*-?\d+(\.\d+)?\s*\]?(\s*kcal/mol)?", re.IGNORECASE)


@dataclass
class Table:
    """The lines of one structure: letters and partners (from 1, 0 none) of its bases, and the line of each."""

    place: Place
    letters: list[str] = field(default_factory=list)
    partner: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, letter: str, partner: int, line: int) -> None:
        """Add a base."""
        self.letters.append(letter)
        self.partner.append(partner)
        self.lines.append(line)


def open_bpseq(path: Path, options: Bpseq, key: str) -> RnaSet:
    """Open the BPSEQ files of a folder, or one of them; raises as :func:`bpseq_tables`."""
    return _open(path, options, key, BPSEQ_SUFFIXES, bpseq_tables)


def open_ct(path: Path, options: Ct, key: str) -> RnaSet:
    """Open the CT files of a folder, or one of them; raises as :func:`ct_tables`."""

    def tables(file: Path, source: str) -> Iterator[Table]:
        for number, table in enumerate(ct_tables(file, source)):
            if options.structures == "first" and number:
                return
            yield table

    return _open(path, options, key, CT_SUFFIXES, tables)


def _open(
    path: Path,
    options: Bpseq | Ct,
    key: str,
    suffixes: tuple[str, ...],
    tables: Callable[[Path, str], Iterator[Table]],
) -> RnaSet:
    files = text.files_of(path, options.files, suffixes)

    def read_file(file: Path, source: str) -> Iterator[Molecule]:
        for table in tables(file, source):
            yield molecule(table, rows.family_of(table.place.record, options.family))

    return set_of_files(path, files, read_file, key=key, reader=options.reader, structures="molecule")


def bpseq_tables(file: Path, source: str) -> Iterator[Table]:
    """Structures of one BPSEQ file.

    Raises
    ------
    DataError
        The file has no base, a line has not three fields, or numbers do not follow each other.
    """
    table = Table(Place(file, source, text.stem(file), 1))
    apart = False
    for number, line in text.lines(file):
        words = line.split()
        if not words or not words[0].isdigit():
            apart = True
            continue
        place = table.place.at(number)
        if len(words) != 3 or not _is_number(words[2]) or len(words[1]) != 1:
            raise place.fault(f"{line.strip()[:40]!r}", "a number, a letter and the partner's number", text.AGAIN)
        index = int(words[0])
        if index == 1 and table.letters:
            if not apart:
                raise _glued(place)
            yield table
            table = Table(place)
        table.place = table.place if table.letters else place
        _check_number(index, len(table.letters) + 1, place)
        table.add(words[1], int(words[2]), number)
        apart = False
    if not table.letters:
        raise DataError(
            file, found="no base", expected="a line for each base: its number, letter, partner", remedy=text.AGAIN
        )
    yield table


def ct_tables(file: Path, source: str) -> Iterator[Table]:
    """Structures of one CT file.

    Raises
    ------
    DataError
        A header or a line is not as it should be, there are more or fewer lines than a header says, or two strands.
    """
    table: Table | None = None
    length = 0
    number = 0
    for number, line in text.lines(file):
        words = line.split()
        if not words or line.startswith("#"):
            continue
        place = Place(file, source, table.place.record if table else text.stem(file), number)
        if table is None:
            table, length = _ct_header(line, words, place)
            continue
        _add_ct_row(table, words, line, length, place)
        if len(table.letters) == length:
            yield table
            table = None
    if table is not None:
        raise table.place.at(number).fault(
            f"the end of the file after {len(table.letters)} bases",
            f"{length}, as its header says",
            f"The file was cut short. {text.AGAIN}",
        )
    if not number:
        raise DataError(file, found="an empty file", expected="a header with the number of bases", remedy=text.AGAIN)


def _ct_header(line: str, words: list[str], place: Place) -> tuple[Table, int]:
    if not words[0].isdigit() or not int(words[0]):
        raise place.fault(
            f"{line.strip()[:40]!r}", "a header: the number of bases, and a title", f"Correct the file. {text.AGAIN}"
        )
    if len(words) >= 5 and len(words[1]) == 1 and all(_is_number(word) for word in words[2:5]):
        raise place.fault(
            f"the line of a base, number {words[0]}, where the structure above it is complete",
            "the header of the next structure",
            "Two records are glued together, or a header gives too few bases: put the header back.",
        )
    title = _ENERGY.sub(" ", line.split(None, 1)[1] if len(words) > 1 else "").split()
    record = title[0] if title else text.stem(place.file)
    return Table(Place(place.file, place.source, record, place.line)), int(words[0])


def _add_ct_row(table: Table, words: list[str], line: str, length: int, place: Place) -> None:
    if len(words) < 5 or len(words[1]) != 1 or not all(_is_number(word) for word in (words[0], *words[2:5])):
        raise place.fault(
            f"{line.strip()[:40]!r} after {len(table.letters)} bases",
            f"a line for each of the {length} bases of the header: number, letter, neighbours, partner",
            "The structure was cut, or glued to the next one: copy it again.",
        )
    index = int(words[0])
    _check_number(index, len(table.letters) + 1, place)
    if int(words[3]) == 0 and index < length:
        raise place.fault(
            f"the end of a strand at base {index} of {length}",
            "one strand",
            "Write each strand as a structure of its own.",
        )
    table.add(words[1], int(words[4]), place.line)


def _check_number(found: int, expected: int, place: Place) -> None:
    if found != expected:
        raise (
            _glued(place)
            if found == 1
            else place.fault(
                f"base number {found}",
                f"base number {expected}",
                "Lines were lost or stand twice: copy the record again.",
            )
        )


def _glued(place: Place) -> DataError:
    return place.fault(
        "base number 1 again",
        "one molecule, or a heading before the next one",
        "Two records are glued together: put the heading back, or an empty line in a BPSEQ file.",
    )


def _is_number(word: str) -> bool:
    return word.removeprefix("-").isdigit()


def molecule(table: Table, family: str | None) -> Molecule:
    """A molecule of its table.

    Raises
    ------
    DataError
        A letter is none, a partner lies beyond the molecule, or does not name the base back.
    """
    found = rows.bases("".join(table.letters), table.place)
    try:
        pairs = structure.from_partners(np.array(table.partner, dtype=np.int64) - 1)
    except StructureError as error:
        raise rows.structure_fault(error, table.place.at(table.lines[error.position])) from None
    return rows.paired(found, pairs, table.place, family)
