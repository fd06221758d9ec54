"""Dot-bracket files, and bpRNA's st files: a name, a sequence, and its structure in brackets below it.

A record begins at a line with '>' and a name, or at bpRNA's '#Name:'; a file with neither is one record with the file's
name. Sequence and structure may be wrapped over several lines. An energy behind a structure is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stages.errors import DataError
from stages.ingest.rna import rows, text
from stages.ingest.rna.config import BpRnaSt, DotBracket
from stages.ingest.rna.molecules import Molecule, RnaSet, set_of_files
from stages.ingest.rna.rows import Place
from stages.rna.structure import UNPAIRED

SUFFIXES = (".dbn", ".db", ".dot", ".dotbracket", ".bracket", ".fas", ".fasta", ".fa", ".txt")
ST_SUFFIXES = (".st",)

_NAME = re.compile(r"#\s*name\s*:\s*(\S.*)?$", re.IGNORECASE)
_LENGTH = re.compile(r"#\s*length\s*:[\s,]*(\d+)", re.IGNORECASE)
_ENERGY = re.compile(r"[(\[{]?\s*[-+]?\d+(\.\d+)?\b.*$")
_ONLY_STRUCTURE = set("()[]{}<>")


@dataclass
class Record:
    """One record as it stands in the file.

    Attributes
    ----------
    length
        Number of bases that a header promises; None where there is none.
    body
        Its other lines, each with its number.
    """

    place: Place
    length: int | None = None
    body: list[tuple[int, str]] = field(default_factory=list)


def open_dotbracket(path: Path, options: DotBracket, key: str) -> RnaSet:
    """Open the dot-bracket files of a folder, or one of them; raises as :func:`records`."""
    return _open(path, options, key, SUFFIXES, _of_record)


def open_st(path: Path, options: BpRnaSt, key: str) -> RnaSet:
    """Open bpRNA's st files of a folder, or one of them; raises as :func:`records`."""
    return _open(path, options, key, ST_SUFFIXES, _of_st)


def _open(
    path: Path,
    options: DotBracket | BpRnaSt,
    key: str,
    suffixes: tuple[str, ...],
    build: Callable[[Record, str | None], Molecule],
) -> RnaSet:
    files = text.files_of(path, options.files, suffixes)

    def read_file(file: Path, source: str) -> Iterator[Molecule]:
        for record in records(file, source):
            yield build(record, rows.family_of(record.place.record, options.family))

    return set_of_files(path, files, read_file, key=key, reader=options.reader, structures="molecule")


def records(file: Path, source: str) -> Iterator[Record]:
    """Records of one file, without a look inside.

    Raises
    ------
    DataError
        The file is empty, or a record has no name.
    """
    held: Record | None = None
    waiting: int | None = None
    for number, line in text.lines(file):
        name = _name(line)
        if name is not None:
            if held is not None and (held.body or line.startswith(">")):
                yield held
            held, waiting = Record(Place(file, source, name, number)), None
            if not name:
                raise held.place.fault("a record without a name", "a name", "Name it; the name is its identifier.")
        elif line.startswith("#"):
            promised = _LENGTH.match(line)
            if promised and held is not None and held.body:
                raise _glued(held.place.at(number), "a second '#Length:'")
            if promised:
                waiting = int(promised[1])
        elif line.strip():
            held = held or Record(Place(file, source, text.stem(file), number))
            held.length, waiting = waiting if waiting is not None else held.length, None
            held.body.append((number, line.strip()))
    if held is None:
        raise DataError(file, found="no record", expected="a name, a sequence and a structure", remedy=text.AGAIN)
    yield held


def _name(line: str) -> str | None:
    """Name of the record that begins on a line: the first word behind '>', the text behind '#Name:'; None elsewhere."""
    if line.startswith(">"):
        return (line[1:].split(None, 1) or [""])[0]
    match = _NAME.match(line) if line.startswith("#") else None
    return None if match is None else (match[1] or "").strip()


def _glued(place: Place, found: str) -> DataError:
    return place.fault(
        found,
        "one sequence and one structure in a record",
        "Two records are glued together, or there are lines of another kind: begin each record with '>' and its name.",
    )


def _of_record(record: Record, family: str | None) -> Molecule:
    """A molecule of a record whose structure follows its sequence.

    Raises
    ------
    DataError
        A part is missing, the two differ in length, or lines follow behind them.
    """
    place, body = record.place, record.body
    first = (
        1 if len(body) == 2 else next((index for index, (_, line) in enumerate(body) if _is_structure(line)), len(body))
    )
    if not first or first == len(body):
        missing = "sequence" if not first and body else "structure" if body else "sequence and no structure"
        raise place.fault(
            f"no {missing}",
            "a sequence, and its structure in brackets below it",
            "Complete the record. A file of sequences alone has the format `fasta`.",
        )
    row = "".join(part for _, line in body[:first] for part in line.split())
    line_of_structure = body[first][0]
    written = ""
    for number, line in body[first:]:
        if len(written) >= len(row):
            raise _glued(place.at(number), f"another line, {line[:20]!r}, behind a complete structure")
        written += _without_energy(line, place.at(number))
    return _built(record, row, written, line_of_structure, family)


def _is_structure(line: str) -> bool:
    word = line.split(None, 1)[0]
    return bool(_ONLY_STRUCTURE & set(word)) or not set(word) - set(UNPAIRED)


def _without_energy(line: str, place: Place) -> str:
    written, *rest = line.split(None, 1)
    if rest and not _ENERGY.match(rest[0]):
        raise place.fault(
            f"{rest[0][:20]!r} behind a structure",
            "an energy or nothing",
            "Take it out, or put it on a line of comment (#).",
        )
    return written


def _of_st(record: Record, family: str | None) -> Molecule:
    """A molecule of a record of four lines (sequence, brackets, kinds of loops, knots) and a list of its loops.

    Raises
    ------
    DataError
        One of the four is missing or differs in length, or another sequence follows.
    """
    place, body = record.place, record.body
    if len(body) < 4:
        raise place.fault(
            f"{len(body)} lines behind the header",
            "sequence, brackets, kinds of loops and knots, a line each",
            f"The file was cut short. {text.AGAIN}",
        )
    row = body[0][1]
    for (number, line), what in zip(body[2:4], ("kinds of loops", "knots"), strict=True):
        if len(line) != len(row):
            raise place.at(number).fault(
                f"a line of {len(line)} {what}", f"{len(row)}, one for each base", f"The line was cut. {text.AGAIN}"
            )
    for number, line in body[4:]:
        if len(line.split()) == 1:
            raise _glued(place.at(number), f"{line[:20]!r} among the loops")
    return _built(record, row, body[1][1], body[1][0], family)


def _built(record: Record, row: str, written: str, line_of_structure: int, family: str | None) -> Molecule:
    if record.length is not None and record.length != len(row):
        raise record.place.fault(
            f"a sequence of {len(row)} letters", f"{record.length}, as its '#Length:' says", f"It was cut. {text.AGAIN}"
        )
    return rows.bracketed(row, written, record.place, line_of_structure, family)
