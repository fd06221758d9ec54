"""Stockholm 1.0: families as alignments, with one structure for all rows (``#=GC SS_cons``) or one for each (``#=GR``).

Structures are written in WUSS. Blocks may be wrapped: the parts of a row stand one below the other under the same name.
What an alignment says of its rows is worked out in alignment.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stages.errors import DataError
from stages.ingest.rna import text
from stages.ingest.rna.alignment import Alignment, molecules
from stages.ingest.rna.config import Stockholm
from stages.ingest.rna.molecules import Molecule, Notes, RnaSet, set_of_files
from stages.ingest.rna.rows import Place

SUFFIXES = (".stk", ".sto", ".stockholm", ".seed")
HEADER = b"# STOCKHOLM 1."
CONSENSUS = b"SS_cons"

#: Fields of a family that are read; any other is passed over.
_FIELDS = (b"AC", b"ID", b"SS", b"TP")


def open_stockholm(path: Path, options: Stockholm, key: str) -> RnaSet:
    """Open the Stockholm files of a folder, or one of them.

    Raises
    ------
    DataError
        There is no such file.
    """
    files = text.files_of(path, options.files, SUFFIXES)
    notes = Notes()

    def read_file(file: Path, source: str) -> Iterator[Molecule]:
        for number, alignment in enumerate(alignments(file), start=1):
            yield from molecules(alignment, file, source, number, notes)

    return set_of_files(path, files, read_file, key=key, reader=options.reader, structures="family", notes=notes)


def alignments(file: Path) -> Iterator[Alignment]:
    """Alignments of one file, one in memory at a time.

    Raises
    ------
    DataError
        A line is none of the format, or an alignment begins before the one above it ended, or never ends.
    """
    held: Alignment | None = None
    number = 0
    with text.open_bytes(file) as stream:
        for number, raw in enumerate(stream, start=1):
            # Most lines of Rfam describe a family in fields that are not read.
            if raw[:5] == b"#=GF " and held is not None and raw[5:10].lstrip()[:2] not in _FIELDS:
                continue
            words = raw.split(None, 4)
            if not words:
                continue
            if held is None:
                held = _begun(raw, number, file)
            elif words[0][:1] != b"#":
                if words[0] == b"//":
                    yield held
                    held = None
                else:
                    _add_row(held, words, number, file)
            elif words[0][:2] == b"#=":
                _annotate(held, words, raw, number, file)
            elif raw.startswith(HEADER):
                raise _glued(file, held, number, "another header '# STOCKHOLM' before '//'")
    if held is not None:
        raise DataError(
            file,
            record=f"family {held.name or '?'}, line {number}",
            found="the end of the file",
            expected="'//', which ends an alignment",
            remedy=f"The file was cut short. {text.AGAIN}",
        )
    if not number:
        raise DataError(file, found="an empty file", expected="'# STOCKHOLM 1.0'", remedy=text.AGAIN)


def _begun(raw: bytes, number: int, file: Path) -> Alignment:
    if not raw.removeprefix(text.BOM).startswith(HEADER):
        raise DataError(
            file,
            record=f"line {number}",
            found=repr(text.decoded(raw[:40]).strip()),
            expected="'# STOCKHOLM 1.0', with which an alignment begins",
            remedy="The file is not in Stockholm format, or a header was lost; correct `format` or the file.",
        )
    return Alignment(number)


def _add_row(held: Alignment, words: list[bytes], number: int, file: Path) -> None:
    if len(words) != 2:
        found = f"{len(words) - 1} fields behind the name" if len(words) > 2 else "a name without a row"
        raise Place(file, file.name, text.decoded(words[0]), number).fault(
            found, "a name and its row of the alignment, with spaces between", f"Correct the line. {text.AGAIN}"
        )
    name, part = words
    parts = held.rows.get(name)
    if parts is None:
        held.rows[name] = [part]
        held.row_lines.append(number)
    else:
        parts.append(part)


def _annotate(held: Alignment, words: list[bytes], raw: bytes, number: int, file: Path) -> None:
    """Keep what a line ``#=GF``, ``#=GC`` or ``#=GR`` says of family and structure."""
    kind = words[0]
    if kind == b"#=GF":
        if len(words) > 2 and words[1] in _FIELDS:
            value = text.decoded(raw.split(None, 2)[2]).strip()
            name = words[1].decode()
            if name in ("AC", "ID") and held.fields.get(name, value) != value:
                raise _glued(file, held, number, f"a second {name}, {value!r}")
            held.fields.setdefault(name, value)
    elif kind == b"#=GC" and len(words) == 3 and words[1] == CONSENSUS:
        held.consensus_line = held.consensus_line or number
        held.consensus.append(words[2])
    elif kind == b"#=GR" and len(words) == 4 and words[2] == b"SS":
        held.own.setdefault(words[1], (number, []))[1].append(words[3])


def _glued(file: Path, held: Alignment, number: int, found: str) -> DataError:
    return DataError(
        file,
        record=f"family {held.name or '?'} (from line {held.line}), line {number}",
        found=found,
        expected="one family in an alignment",
        remedy="Two records are glued together: put '//' and '# STOCKHOLM 1.0' between them.",
    )
