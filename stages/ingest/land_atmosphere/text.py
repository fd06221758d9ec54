"""Delimited text, read in blocks: only the wanted columns are parsed, by type of the schema and never by inference."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.ingest.land_atmosphere.header import read_header
from stages.ingest.land_atmosphere.lines import Parsed, Parser, blocks
from stages.ingest.land_atmosphere.members import Member
from stages.ingest.land_atmosphere.tables import Layout, Table, blank_sentinels, require_once

#: A block costs polars half a millisecond beside its parsing, and three times its size in memory.
BLOCK_BYTES = 1 << 21


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


class _Places:
    """The line of each row, for errors; it outlives the columns and so holds none of them."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._origins: list[int | NDArray[np.int64]] = []

    def append(self, start: int, origin: int | NDArray[np.int64]) -> None:
        """Note the line of row ``start``, or of each row from it on."""
        self._starts.append(start)
        self._origins.append(origin)

    def of(self, row: int) -> str:
        """The line of a row."""
        block = bisect_right(self._starts, row) - 1
        origin, inside = self._origins[block], row - self._starts[block]
        return f"line {origin + inside if isinstance(origin, int) else origin[inside]}"


class _Columns:
    """Columns of a file as its blocks come in."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.rows = 0
        self._growing: list[_Growing] = []
        self._stamps: dict[str, list[pl.Series]] = {name: [] for name in parser.stamps}
        self._places = _Places()

    def append(self, parsed: Parsed) -> None:
        """Take over the columns of one block, NaN where a number means missing."""
        frame, parser = parsed.frame, self.parser
        if not self._growing:
            guess = int(1.02 * parser.member.size() * frame.height / max(parsed.size, 1)) + 16
            self._growing = [_Growing(guess) for _ in parser.numbers]
        for column, name in zip(self._growing, parser.numbers, strict=True):
            values = frame[parser.alias[name]].to_numpy(writable=True)
            blank_sentinels(values, parser.layout.sentinels)
            column.append(values)
        for name, blocks_of in self._stamps.items():
            blocks_of.append(frame[parser.alias[name]])
        self._places.append(self.rows, parsed.origin)
        self.rows += frame.height

    def table(self) -> Table:
        """The columns, joined."""
        numbers = {name: column.finish() for name, column in zip(self.parser.numbers, self._growing, strict=False)}
        stamps = {name: pl.concat(series) if series else pl.Series() for name, series in self._stamps.items()}
        return Table(self.parser.member, self.rows, numbers, stamps, self._places.of)


def read(member: Member, layout: Layout, numbers: Sequence[str], stamps: Sequence[str]) -> Table:
    """Read columns of a delimited text; peak memory is the result and a few blocks.

    A block is parsed while the next one is read.

    Raises
    ------
    DataError
        A line is cut or has another number of fields, or a cell is no number; the message names line and column.
    """
    header = read_header(member, layout)
    require_once(member, header.names, [*stamps, *numbers])
    parser = Parser(member, layout, header, numbers, stamps)
    columns = _Columns(parser)
    before: Future[Parsed] | None = None
    with ThreadPoolExecutor(1) as pool:
        for block in blocks(member, header, BLOCK_BYTES):
            parser.decide(block.data)
            parsing = pool.submit(parser.parse, block)
            if before is not None:
                columns.append(before.result())
            before = parsing
        if before is not None:
            columns.append(before.result())
    return columns.table()
