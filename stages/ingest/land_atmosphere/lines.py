"""Lines of a delimited text: blocks of them, parsed fast where they are well formed and exactly where they are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.land_atmosphere.header import Header, decoded, split_fields
from stages.ingest.land_atmosphere.members import Member
from stages.ingest.land_atmosphere.tables import Layout

NEWLINE = ord("\n")
PIECE = 1 << 17


@dataclass
class Block:
    """Whole lines of a file: their bytes, their count, and the number of the first."""

    data: bytes
    lines: int
    first_line: int
    last_of_file: bool


@dataclass
class Parsed:
    """Rows of a block, the line of the first (or of each), and the bytes they were parsed from."""

    frame: pl.DataFrame
    origin: int | NDArray[np.int64]
    size: int


def blocks(member: Member, header: Header, size: int) -> Iterator[Block]:
    """The lines behind the header, in blocks of about ``size`` bytes."""
    with member.open() as stream:
        _skip(stream, header.size)
        buffer = bytearray(size)  # one for all blocks: fresh memory costs more time than the copy out of it
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
                lines = count(data, NEWLINE) + (not data.endswith(b"\n"))
                yield Block(data, lines, line, last_of_file=not got)
                line += lines
            if not got:
                return
            buffer[: end - cut] = buffer[cut:end]
            carried = end - cut


def _skip(stream: IO[bytes], size: int) -> None:
    while size > 0 and (skipped := len(stream.read(size))):
        size -= skipped


def count(data: bytes, byte: int) -> int:
    """Occurrences of a byte, in pieces that stay in the cache."""
    codes = np.frombuffer(data, np.uint8)
    return sum(int(np.count_nonzero(codes[at : at + PIECE] == byte)) for at in range(0, codes.size, PIECE))


class Parser:
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
        first = split_fields(decoded(data.lstrip(b"\r\n").split(b"\n", 1)[0]), self.layout.delimiter)
        schema: dict[str, type[pl.DataType]] = {f"column_{place + 1}": pl.String for place in range(self.width)}
        for name in self.stamps:
            place = self.names.index(name)
            digits = place < len(first) and first[place].strip().isdigit()
            schema[self.alias[name]] = pl.Int64 if digits else pl.String
        for name in self.numbers:
            schema[self.alias[name]] = pl.Float64
        self._schema = schema

    def parse(self, block: Block) -> Parsed:
        """Columns of a block, as the aliases of the parser name them."""
        frame = None if b'"' in block.data else self._well_formed(block)
        if frame is not None:
            return Parsed(frame, block.first_line, len(block.data))
        frame, origin = self._mended(block)
        return Parsed(frame, origin, len(block.data))

    def _well_formed(self, block: Block) -> pl.DataFrame | None:
        """Columns of a block without quotes; None where a line or a cell is not as it should be."""
        if count(block.data, ord(self.layout.delimiter)) != block.lines * (self.width - 1):
            return None
        try:
            frame = self._parsed(block.data, self._schema)
        except pl.exceptions.PolarsError:
            return None
        # An empty cell, or a short line that a long one makes up for: only a look at each line tells.
        return None if frame[self.columns[-1]].null_count() else frame

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

    def _mended(self, block: Block) -> tuple[pl.DataFrame, int | NDArray[np.int64]]:
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
                fields = len(split_fields(decoded(line), self.layout.delimiter))
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
