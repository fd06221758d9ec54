"""The cells of one field of a structure in a MATLAB file of version 5, one after the other.

scipy reads a variable whole or not at all, and a corpus that is one nested structure fills the memory with all its
subjects. Here the compressed stream is walked: what comes before a cell is skipped, and each cell is handed to scipy
alone. The layout is that of the published description of MAT-files of level 5.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import scipy.io

from stages.errors import DataError
from stages.ingest.eeg import mat

HEADER = 128
MATRIX, COMPRESSED = 14, 15
CELL_CLASS, STRUCT_CLASS = 1, 2
BLOCK = 1 << 20


class _Ended(Exception):
    """The stream ends before the element does."""


class _Stream:
    """Bytes of one top-level element, inflated as they are read."""

    def __init__(self, source: BinaryIO, length: int, compressed: bool) -> None:
        self.source = source
        self.left = length
        self.inflate = zlib.decompressobj() if compressed else None
        self.buffer = bytearray()

    def read(self, count: int) -> bytes:
        """Exactly so many bytes."""
        while len(self.buffer) < count:
            self.buffer += self._more(count - len(self.buffer))
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def skip(self, count: int) -> None:
        """Pass over so many bytes in blocks."""
        while count:
            step = min(count, BLOCK)
            self.read(step)
            count -= step

    def _more(self, count: int) -> bytes:
        if self.inflate is not None and self.inflate.unconsumed_tail:
            return self.inflate.decompress(self.inflate.unconsumed_tail, max(count, BLOCK))
        raw = self.source.read(min(self.left, BLOCK if self.inflate else min(count, BLOCK)))
        if not raw:
            raise _Ended
        self.left -= len(raw)
        return raw if self.inflate is None else self.inflate.decompress(raw, max(count, BLOCK))


@dataclass(frozen=True)
class _Head:
    """Class, dimensions and name of a matrix, and how many bytes of it they take."""

    kind: int
    shape: tuple[int, ...]
    name: str
    size: int


def count(file: Path, variable: str, field: str) -> int:
    """Number of cells; raises as :func:`cells`."""
    with file.open("rb") as source:
        _, _, cell = _find(file, source, variable, field)
        return _product(cell.shape)


def cells(file: Path, variable: str, field: str, start: int = 0) -> Iterator[Any]:
    """Values of the cells of ``variable.field`` from one on, structures as objects with attributes.

    Raises
    ------
    DataError
        The file is damaged, or has no such variable, field or cells.
    """
    with file.open("rb") as source:
        stream, order, cell = _find(file, source, variable, field)
        try:
            for index in range(_product(cell.shape)):
                kind, size = struct.unpack(order + "II", stream.read(8))
                if kind != MATRIX:
                    raise _Ended
                if index < start:
                    stream.skip(size)
                else:
                    yield _value(file, order, stream.read(size))
        except (_Ended, zlib.error, struct.error, ValueError) as error:
            raise mat.damaged(file, error if str(error) else ValueError("it ends inside a variable")) from None


def _value(file: Path, order: str, body: bytes) -> Any:
    """Let scipy read one matrix: a file of its own is put around it, and a name into the empty one of a cell."""
    head = struct.pack(order + "HH", 0x0100, 0x4D49)
    dims = struct.unpack(order + "I", body[20:24])[0]
    name = 24 + -(-dims // 8) * 8
    named = body[:name] + struct.pack(order + "I", 1 << 16 | 1) + b"x\0\0\0" + body[name + 8 :]
    whole = b" " * 124 + head + struct.pack(order + "II", MATRIX, len(named)) + named
    try:
        return scipy.io.loadmat(io.BytesIO(whole), squeeze_me=True, struct_as_record=False)["x"]
    except Exception as error:
        raise mat.damaged(file, error) from None


def _find(file: Path, source: BinaryIO, variable: str, field: str) -> tuple[_Stream, str, _Head]:
    """The stream placed before the first cell, the byte order, and the head of the array of cells."""
    order = "<" if source.read(HEADER)[126:128] == b"IM" else ">"
    there = []
    try:
        while tag := source.read(8):
            kind, size = struct.unpack(order + "II", tag)
            following = source.tell() + size
            stream = _Stream(source, size, kind == COMPRESSED)
            if kind == COMPRESSED:
                kind, _ = struct.unpack(order + "II", stream.read(8))
            if kind == MATRIX:
                head = _head(stream, order)
                there.append(head.name)
                if head.name == variable and head.kind == STRUCT_CLASS and _product(head.shape) == 1:
                    return stream, order, _field(file, stream, order, variable, field)
            source.seek(following)
    except (_Ended, zlib.error, struct.error) as error:
        raise mat.damaged(file, error if str(error) else ValueError("it ends inside a variable")) from None
    raise DataError(
        file,
        found=f"variables {', '.join(there) or 'none'}",
        expected=f"a structure {variable}",
        remedy="Point `path` at the file of the corpus as it was published.",
    )


def _field(file: Path, stream: _Stream, order: str, variable: str, field: str) -> _Head:
    width = struct.unpack(order + "I", _element(stream, order)[0][:4])[0]
    raw = _element(stream, order)[0]
    names = [raw[at : at + width].split(b"\0")[0].decode("latin1") for at in range(0, len(raw), width)]
    for name in names:
        kind, size = struct.unpack(order + "II", stream.read(8))
        if kind != MATRIX:
            raise _Ended
        if name == field:
            head = _head(stream, order)
            if head.kind == CELL_CLASS:
                return head
            break
        stream.skip(size)
    raise DataError(
        file,
        record=f"structure {variable}",
        found=f"fields {', '.join(names)}",
        expected=f"a cell array {field}",
        remedy="Point `path` at the file of the corpus as it was published.",
    )


def _head(stream: _Stream, order: str) -> _Head:
    flags, used = _element(stream, order)
    dims, more = _element(stream, order)
    name, last = _element(stream, order)
    return _Head(
        struct.unpack(order + "I", flags[:4])[0] & 0xFF,
        struct.unpack(f"{order}{len(dims) // 4}i", dims),
        name.decode("latin1"),
        used + more + last,
    )


def _element(stream: _Stream, order: str) -> tuple[bytes, int]:
    """Data of a small or a full element, and how many bytes it takes with its tag and its padding."""
    tag = stream.read(8)
    first, size = struct.unpack(order + "II", tag)
    if first >> 16:
        return tag[4 : 4 + (first >> 16)], 8
    padded = -(-size // 8) * 8
    return stream.read(padded)[:size], 8 + padded


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
