"""FASTA: names and sequences in blocks of bytes, so that a file of any size needs no more memory than a small one.

A block ends where a record begins. Its records are found by one expression, and their letters are turned into the
alphabet and checked for the whole block at once; only a block with gaps or a fault is looked at record by record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate, repeat
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.rna import rows, text
from stages.ingest.rna.config import Fasta
from stages.ingest.rna.molecules import Molecule, Notes, RnaSet, set_of_files
from stages.rna import alphabet

SUFFIXES = (".fa", ".fasta", ".fas", ".fna", ".ffn", ".frn", ".afa")
#: Bytes read at once; a block's texts then stay in the processor's cache.
BLOCK = 1 << 16
NO_BASE = "{}: has records without any base, which the gate judges"

_RECORD = re.compile(rb"^>([^\n]*)\n?([^>]*)", re.MULTILINE)
_SPACE = b"\n\r \t"
_GAPS = alphabet.GAPS.encode()
_FAULT, _GAP = b"\0", b"-"
_make_molecule = partial(tuple.__new__, Molecule)


def _table() -> bytes:
    """Letters to the alphabet, gaps to one kind, '>' and white space to themselves, and anything else to a fault."""
    kept = alphabet.LETTERS + _SPACE + b">"
    table = bytearray(_FAULT * 256)
    for byte in kept:
        table[byte] = alphabet.UPPER[byte]
    for byte in _GAPS:
        table[byte] = _GAP[0]
    return bytes(table)


_TABLE = _table()


class Records(NamedTuple):
    """Records of a block, one after the other.

    Attributes
    ----------
    names, sequences
        Of each record.
    lines
        Line on which each begins; counted when it is asked for.
    maps, gaps
        Position map and number of gaps of each; None where no record has gaps.
    """

    names: list[str]
    sequences: list[str]
    lines: Iterator[int]
    maps: list[NDArray[np.int32] | None] | None = None
    gaps: list[int] | None = None


def open_fasta(path: Path, options: Fasta, key: str) -> RnaSet:
    """Open the FASTA files of a folder, or one of them.

    Raises
    ------
    DataError
        There is no such file.
    """
    files = text.files_of(path, options.files, SUFFIXES)
    notes = Notes()

    def read_file(file: Path, source: str) -> Iterator[Molecule]:
        found = molecules(file, source, notes)
        return found if options.family is None else _with_family(found, options.family)

    return set_of_files(path, files, read_file, key=key, reader=options.reader, structures="none", notes=notes)


def _with_family(found: Iterator[Molecule], pattern: str) -> Iterator[Molecule]:
    for molecule in found:
        family = rows.family_of(molecule.name, pattern)
        yield molecule._replace(family=family, family_name=family)


def molecules(file: Path, source: str, notes: Notes) -> Iterator[Molecule]:
    """Records of one file; raises as :func:`records`."""
    # The fields behind `gaps_removed` have their defaults.
    rest = [repeat(value) for value in list(Molecule._field_defaults.values())[2:]]
    for block in records(file, source):
        if not all(block.sequences):
            notes.add(NO_BASE.format(source))
        maps, gaps = block.maps or repeat(None), block.gaps or repeat(0)
        fields = zip(block.names, block.sequences, repeat(source), block.lines, maps, gaps, *rest, strict=False)
        yield from map(_make_molecule, fields)


def records(file: Path, source: str) -> Iterator[Records]:
    """Records of one file, a block at a time.

    Raises
    ------
    DataError
        Text before the first record, a record without a name, two records glued together, or a letter that is none.
    """
    line, first = 1, True
    with text.open_bytes(file) as stream:
        for block in _blocks(stream):
            if first:
                started = _checked_start(block, file)
                line += block[: len(block) - len(started)].count(b"\n")
                block, first = started, False
            if b"\r" in block:
                block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield _of_block(block, file, source, line)
            line += block.count(b"\n")
    if first:
        raise _no_record(file, "an empty file")


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole records; a record longer than a block is one block."""
    held: list[bytes] = []
    while chunk := stream.read(BLOCK):
        if held and held[-1].endswith(b"\n") and chunk.startswith(b">"):
            yield b"".join(held)
            held = []
        cut = chunk.rfind(b"\n>") + 1
        if cut:
            yield b"".join([*held, chunk[:cut]])
            held = []
        held.append(chunk[cut:])
    if held:
        yield b"".join(held)


def _checked_start(block: bytes, file: Path) -> bytes:
    started = block.removeprefix(text.BOM).lstrip()
    if not started.startswith(b">"):
        shown = text.decoded(started[:30].split(b"\n")[0]).strip()
        raise _no_record(file, f"{shown!r}" if shown else "an empty file")
    return started


def _no_record(file: Path, found: str) -> DataError:
    return DataError(
        file,
        record="line 1",
        found=found,
        expected="a line that begins with '>' and a name",
        remedy="The file is not FASTA, or was cut at its start; correct `format` or the file.",
    )


def _of_block(block: bytes, file: Path, source: str, line: int) -> Records:
    found = _RECORD.findall(block)
    heads, bodies = zip(*found, strict=True)
    letters = b">".join(bodies).translate(_TABLE, _SPACE)
    names = _names(heads)
    # The records are the whole block, unless '>' stands inside a line; the last header may lack its line end.
    size = sum(map(len, heads)) + sum(map(len, bodies)) + 2 * len(heads)
    if names is None or _FAULT in letters or _GAP in letters or size not in (len(block), len(block) + 1):
        return _one_by_one(block, file, source, line)
    lines = accumulate((body.count(b"\n") + 1 for body in bodies), initial=line)
    return Records(names, letters.decode("ascii").split(">"), lines)


def _names(heads: Sequence[bytes]) -> list[str] | None:
    """First word of each header; None where one has no word."""
    try:
        words = [head.split(None, 1)[0] for head in heads]
    except IndexError:
        return None
    try:
        return b"\n".join(words).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return [text.decoded(word) for word in words]


def _one_by_one(block: bytes, file: Path, source: str, line: int) -> Records:
    """The same with an eye on each line: gaps leave a position map, faults are named."""
    places: list[rows.Place] = []
    pieces: list[list[bytes]] = []
    for number, raw in enumerate(block.split(b"\n"), start=line):
        if raw.startswith(b">"):
            words = raw[1:].split(None, 1)
            places.append(rows.Place(file, source, text.decoded(words[0]) if words else "", number))
            pieces.append([])
            if not words:
                raise places[-1].fault(
                    "'>' without a name", "a name behind '>'", "Give the record a name; it becomes its identifier."
                )
        elif row := b"".join(raw.split()):
            if row.translate(None, alphabet.LETTERS + _GAPS):
                raise rows.unknown_letter(row, places[-1].at(number))
            pieces[-1].append(row)
    found = [rows.bases(b"".join(parts).decode("ascii"), place) for parts, place in zip(pieces, places, strict=True)]
    return Records(
        names=[place.record for place in places],
        sequences=[each.sequence for each in found],
        lines=iter([place.line for place in places]),
        maps=[each.position_map for each in found],
        gaps=[each.gaps for each in found],
    )
