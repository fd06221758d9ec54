"""Delimited text, read in blocks: only the wanted columns are parsed, by type of the schema and never by inference."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.land_atmosphere.members import Member
from stages.ingest.land_atmosphere.tables import Layout, Table, blank_sentinels, require_once

BLOCK_BYTES = 1 << 21
THREADS = 2
NEWLINE = 10
PIECE = 1 << 17
BOM = b"\xef\xbb\xbf"
OTHER_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Header:
    """Column names, how many lines stand before the data, and the bytes of those lines."""

    names: list[str]
    lines: int
    size: int


def read_header(member: Member, layout: Layout) -> Header:
    """Find the line of column names behind comments and blank lines.

    Raises
    ------
    DataError
        No such line, or its delimiter is another one.
    """
    head = member.head()
    if b"\n" not in head and b"\r" in head:
        raise DataError(
            member.label,
            found="lines that end in a carriage return alone",
            expected="lines that end in a newline",
            remedy=r"Convert it: `tr '\r' '\n' < OLD > NEW`.",
        )
    size = 0
    for number, line in enumerate(head.split(b"\n"), start=1):
        size += len(line) + 1
        text = _decoded(line.removeprefix(BOM) if number == 1 else line)
        if _is_header(text, number, layout):
            names = [name.strip() for name in _fields(text, layout.delimiter)]
            _check_delimiter(member, text, names, layout)
            for _ in range(layout.skip_lines):
                size = head.find(b"\n", size) + 1 or len(head)
            return Header(names, number + layout.skip_lines, min(size, len(head)))
    raise DataError(
        member.label,
        found="comments and blank lines only",
        expected="a line of column names",
        remedy="Correct `comment` and `header_line` in params.yaml, or fetch the file again.",
    )


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        return line.decode("latin-1").rstrip("\r")


def _fields(text: str, delimiter: str) -> list[str]:
    """The fields of one line; a carriage return inside it is a blank."""
    return next(csv.reader([text.replace("\r", " ")], delimiter=delimiter))


def _is_header(text: str, number: int, layout: Layout) -> bool:
    if layout.header_line is not None:
        return number == layout.header_line
    plain = text.strip().lstrip('"')
    return bool(plain.strip(f"{layout.delimiter} ")) and not (layout.comment and plain.startswith(layout.comment))


def _check_delimiter(member: Member, text: str, names: Sequence[str], layout: Layout) -> None:
    if len(names) > 1:
        return
    for other in OTHER_DELIMITERS:
        if other != layout.delimiter and text.count(other) > 1:
            raise DataError(
                member.label,
                record="the line of column names",
                found=f"columns separated by {other!r}",
                expected=f"{layout.delimiter!r}",
                remedy=f"Set `delimiter: {other!r}` under `format` in params.yaml.",
            )


class _Growing:
    """A column of unknown length; memory that is not written to is not resident."""

    def __init__(self, guess: int) -> None:
        self._values: NDArray[np.float64] = np.empty(max(guess, 1))
        self._used = 0

    def append(self, block: NDArray[np.float64]) -> None:
        end = self._used + block.size
        if end > self._values.size:
            grown = np.empty(max(end, self._values.size * 3 // 2))
            grown[: self._used] = self._values[: self._used]
            self._values = grown
        self._values[self._used : end] = block
        self._used = end

    def finish(self) -> NDArray[np.float64]:
        return self._values[: self._used]


@dataclass
class _Block:
    """Whole lines of a file: their bytes, their count, and the number of the first."""

    data: bytes
    lines: int
    first_line: int
    last_of_file: bool


@dataclass
class _Parsed:
    """Columns of a block: numbers (row, name), stamps, and the line of the first row (or of each)."""

    numbers_RN: NDArray[np.float64]
    stamps: list[pl.Series]
    origin: int | NDArray[np.int64]


class _Columns:
    """Columns of a file as its blocks come in."""

    def __init__(self, member: Member, parser: _Parser) -> None:
        self.member = member
        self.parser = parser
        self.rows = 0
        self._growing: list[_Growing] = []
        self._stamps: dict[str, list[pl.Series]] = {name: [] for name in parser.stamps}
        self._starts: list[int] = []
        self._origins: list[int | NDArray[np.int64]] = []

    def append(self, size: int, parsed: _Parsed) -> None:
        """Take over the columns of one block of ``size`` bytes."""
        rows = parsed.numbers_RN.shape[0]
        if not self._growing:
            guess = int(1.02 * self.member.size() * rows / max(size, 1)) + 16
            self._growing = [_Growing(guess) for _ in self.parser.numbers]
        for column, block_R in zip(self._growing, parsed.numbers_RN.T, strict=True):
            column.append(block_R)
        for blocks, stamps in zip(self._stamps.values(), parsed.stamps, strict=True):
            blocks.append(stamps)
        self._starts.append(self.rows)
        self._origins.append(parsed.origin)
        self.rows += rows

    def place(self, row: int) -> str:
        """The line of a row."""
        block = bisect_right(self._starts, row) - 1
        origin, inside = self._origins[block], row - self._starts[block]
        return f"line {origin + inside if isinstance(origin, int) else origin[inside]}"

    def table(self) -> Table:
        """The columns, joined."""
        numbers = {name: column.finish() for name, column in zip(self.parser.numbers, self._growing, strict=False)}
        stamps = {name: pl.concat(blocks) if blocks else pl.Series() for name, blocks in self._stamps.items()}
        return Table(self.member, self.rows, numbers, stamps, self.place)


def read(member: Member, layout: Layout, numbers: Sequence[str], stamps: Sequence[str]) -> Table:
    """Read columns of a delimited text; peak memory is the result and a few blocks.

    Blocks are parsed by a few threads and joined in the order of the file.

    Raises
    ------
    DataError
        A line is cut or has another number of fields, or a cell is no number; the message names line and column.
    """
    header = read_header(member, layout)
    require_once(member, header.names, [*stamps, *numbers])
    parser = _Parser(member, layout, header, numbers, stamps)
    columns = _Columns(member, parser)
    pending: deque[tuple[int, Future[_Parsed]]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        for block in _blocks(member, header):
            parser.decide(block.data)
            pending.append((len(block.data), pool.submit(parser.columns_of, block)))
            if len(pending) > THREADS:
                size, parsed = pending.popleft()
                columns.append(size, parsed.result())
        for size, parsed in pending:
            columns.append(size, parsed.result())
    return columns.table()


def _blocks(member: Member, header: Header) -> Iterator[_Block]:
    with member.open() as stream:
        _skip(stream, header.size)
        buffer = bytearray(BLOCK_BYTES)
        view = memoryview(buffer)
        carried = 0
        line = header.lines + 1
        while True:
            if carried == len(buffer):  # a line longer than a block
                view.release()
                buffer.extend(bytes(len(buffer)))
                view = memoryview(buffer)
            got = stream.readinto(view[carried:])  # type: ignore[attr-defined]
            end = carried + got
            cut = buffer.rfind(b"\n", 0, end) + 1 if got else end
            data = bytes(view[:cut])
            if data and (got or data.strip()):
                count = _count(data, NEWLINE) + (not data.endswith(b"\n"))
                yield _Block(data, count, line, last_of_file=not got)
                line += count
            if not got:
                return
            buffer[: end - cut] = buffer[cut:end]
            carried = end - cut


def _count(data: bytes, byte: int) -> int:
    """Occurrences of a byte, in pieces that stay in the cache."""
    codes = np.frombuffer(data, np.uint8)
    return sum(int(np.count_nonzero(codes[at : at + PIECE] == byte)) for at in range(0, codes.size, PIECE))


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (skipped := len(stream.read(size))):
        size -= skipped


class _Parser:
    """Parses blocks of one file, fast where they are well formed, exactly where they are not."""

    def __init__(
        self, member: Member, layout: Layout, header: Header, numbers: Sequence[str], stamps: Sequence[str]
    ) -> None:
        self.member = member
        self.layout = layout
        self.names = header.names
        self.width = len(header.names)
        self.numbers = tuple(numbers)
        self.stamps = tuple(stamps)
        places = {name: header.names.index(name) for name in [*stamps, *numbers]}
        self.alias = {name: f"column_{place + 1}" for name, place in places.items()}
        self.columns = [f"column_{place + 1}" for place in sorted(places.values())]
        self._schema: dict[str, type[pl.DataType]] = {}
        self._null_values: list[str] | None = None

    def decide(self, data: bytes) -> None:
        """Fix the type of each column once: stamps are integers where the first one is made of digits alone."""
        if self._schema:
            return
        first = _fields(_decoded(data.lstrip(b"\r\n").split(b"\n", 1)[0]), self.layout.delimiter)
        schema: dict[str, type[pl.DataType]] = {f"column_{place + 1}": pl.String for place in range(self.width)}
        for name in self.stamps:
            place = self.names.index(name)
            digits = place < len(first) and first[place].strip().isdigit()
            schema[self.alias[name]] = pl.Int64 if digits else pl.String
        for name in self.numbers:
            schema[self.alias[name]] = pl.Float64
        self._schema = schema

    def columns_of(self, block: _Block) -> _Parsed:
        """Columns of a block as arrays, NaN where a number means missing."""
        frame, origin = self.parse(block)
        if self.numbers:
            numbers_RN = frame.select([self.alias[name] for name in self.numbers]).to_numpy(
                order="fortran", writable=True
            )
            blank_sentinels(numbers_RN, self.layout.sentinels)
        else:
            numbers_RN = np.empty((frame.height, 0))
        return _Parsed(numbers_RN, [frame[self.alias[name]] for name in self.stamps], origin)

    def parse(self, block: _Block) -> tuple[pl.DataFrame, int | NDArray[np.int64]]:
        """Columns of a block, and the line number of its first row (or of each row)."""
        quoted = b'"' in block.data
        if quoted or _count(block.data, ord(self.layout.delimiter)) != block.lines * (self.width - 1):
            return self._mended(block)
        try:
            frame = self._parsed(block.data, self._schema)
        except pl.exceptions.PolarsError:
            return self._mended(block)
        if frame[self.columns[-1]].null_count():
            # An empty cell, or a short line that a long one makes up for: only a look at each line tells.
            return self._mended(block)
        return frame, block.first_line

    def _attempted(self, data: bytes, origin: int | NDArray[np.int64]) -> pl.DataFrame:
        try:
            return self._parsed(data, self._schema)
        except pl.exceptions.PolarsError:
            frame = self._parsed_carefully(data, origin)
            # What stopped the fast way were texts that mean missing: name them to it from now on.
            self._null_values = [token for token in self.layout.null_tokens if token]
            return frame

    def _parsed(self, data: bytes, schema: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
        return pl.read_csv(
            data,
            has_header=False,
            schema=schema,
            columns=self.columns,
            separator=self.layout.delimiter,
            null_values=self._null_values,
            decimal_comma=self.layout.decimal == ",",
            encoding="utf8-lossy",
        )

    def _mended(self, block: _Block) -> tuple[pl.DataFrame, int | NDArray[np.int64]]:
        """Parse after a look at the fields of each line; blank lines are left out."""
        lines = block.data.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        delimiter = self.layout.delimiter.encode()
        kept: list[bytes] = []
        numbers: list[int] = []
        for offset, line in enumerate(lines):
            fields = line.count(delimiter) + 1
            if fields != self.width:
                if not line.strip():
                    continue
                fields = len(_fields(_decoded(line), self.layout.delimiter))
                if fields != self.width:
                    cut = block.last_of_file and offset == len(lines) - 1 and fields < self.width
                    self._refuse_line(block.first_line + offset, fields, cut=cut)
            kept.append(line)
            numbers.append(block.first_line + offset)
        if len(kept) == len(lines):
            return self._attempted(block.data, block.first_line), block.first_line
        origin = np.array(numbers, dtype=np.int64)
        return self._attempted(b"\n".join(kept) + b"\n", origin), origin

    def _refuse_line(self, line: int, fields: int, *, cut: bool) -> NoReturn:
        raise DataError(
            self.member.label,
            record=f"line {line}",
            found=f"{fields} fields" + (" in the last line: the file is cut short" if cut else ""),
            expected=f"{self.width}, as in the line of column names",
            remedy="Fetch or copy the file again." if cut else "Mend this line, or check `delimiter` in params.yaml.",
        )

    def _parsed_carefully(self, data: bytes, origin: int | NDArray[np.int64]) -> pl.DataFrame:
        """Parse by way of texts: spaces around numbers are allowed, and a bad cell is named."""
        texts = self._parsed(data, dict.fromkeys(self._schema, pl.String))
        names = {alias: name for name, alias in self.alias.items()}
        columns = []
        for alias in self.columns:
            text = texts[alias].str.strip_chars()
            text = text.set(text.is_in(self.layout.null_tokens).fill_null(True), None)
            kind = self._schema[alias]
            if kind == pl.String:
                columns.append(text)
                continue
            if self.layout.decimal == ",":
                text = text.str.replace(",", ".", literal=True)
            values = text.cast(pl.Float64, strict=False)
            if kind == pl.Int64:
                whole = values.cast(pl.Int64, strict=False)
                values = whole.set((whole.cast(pl.Float64) != values).fill_null(False), None)
            bad = (values.is_null() & text.is_not_null()).arg_true()
            if bad.len():
                self._refuse_cell(int(bad[0]), origin, names[alias], str(text[int(bad[0])]), kind == pl.Int64)
            columns.append(values)
        return pl.DataFrame(columns)

    def _refuse_cell(self, row: int, origin: int | NDArray[np.int64], name: str, cell: str, stamp: bool) -> NoReturn:
        line = origin + row if isinstance(origin, int) else int(origin[row])
        raise DataError(
            self.member.label,
            record=f"line {line}, column {name!r}",
            found=repr(cell),
            expected="a stamp such as 201501010030" if stamp else "a number",
            remedy="Mend the cell."
            if stamp
            else "Mend the cell, or add its text to `null_tokens` if it means missing.",
        )
