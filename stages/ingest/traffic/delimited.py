"""Delimited text, read in blocks of lines: numbers are parsed as such, and a bad cell is named by line and column.

Shapes: R row, N column of numbers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.sets import Array
from stages.ingest.traffic.tables import AGAIN

#: Bytes of a block; parsing takes about four times as much.
BLOCK_BYTES = 1 << 20

NULL_TOKENS = ("", "NaN", "nan", "NA", "null")

#: Whole numbers from here on may be the numbers of stations as well as values.
STATION_FROM = 1000

_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK\x03\x04": "a zip archive", b"\x1f\x8b": "gzip"}
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class Dialect:
    """How a text is written.

    Attributes
    ----------
    names
        Cells of the first line, None where it holds values.
    width
        Columns of a line.
    delimiter
        Between the columns; a space stands for any number of spaces and tabs.
    """

    file: Path
    names: tuple[str, ...] | None
    width: int
    delimiter: str
    decimal: str
    null_tokens: tuple[str, ...] = NULL_TOKENS

    def column(self, index: int) -> str:
        """A column as it is named in messages."""
        return f"column {index + 1 if self.names is None else repr(self.names[index])}"


@dataclass(frozen=True)
class Block:
    """Some rows: their texts, their numbers_RN, and their line numbers."""

    texts: pl.DataFrame
    numbers_RN: NDArray[np.float64]
    lines_R: NDArray[np.int64]


def look(
    file: Path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    null_tokens: Sequence[str] = NULL_TOKENS,
) -> Dialect:
    """Look at the first two lines of a text; a mark of UTF-8 before them is passed over.

    Raises
    ------
    DataError
        The file is empty or no text, or its first line could be names as well as values.
    """
    with file.open("rb") as stream:
        first = stream.readline()
        second = stream.readline()
    for mark, what in _MARKS.items():
        if first.startswith(mark):
            raise DataError(file, found=what, expected="text in UTF-8", remedy="Unpack it, or save it as UTF-8.")
    line = first.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    if not line.strip():
        raise DataError(
            file, record="line 1", found="an empty line", expected="names or values of columns", remedy=AGAIN
        )
    delimiter = delimiter or _delimiter(line)
    cells = split(line, delimiter)
    below = split(second.decode("utf-8", errors="replace").rstrip("\r\n"), delimiter)
    if decimal is None:
        commas = delimiter != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in (*cells, *below))
        decimal = "," if commas else "."
    named = _has_names(file, cells, decimal, null_tokens) if header is None else header
    names = tuple(cell.strip() for cell in cells) if named else None
    return Dialect(file, names, len(cells), delimiter, decimal, tuple(null_tokens))


def split(line: str, delimiter: str) -> list[str]:
    """Cells of one line, quotes removed."""
    if delimiter == " ":
        return line.split()
    return next(csv.reader([line], delimiter=delimiter), [])


def _delimiter(line: str) -> str:
    return next((mark for mark in (";", "\t", ",") if mark in line), " ")


def _has_names(file: Path, cells: Sequence[str], decimal: str, null_tokens: Sequence[str]) -> bool:
    values = [_number(cell, decimal) for cell in cells if cell.strip() not in null_tokens]
    if any(value is None for value in values):
        return True
    numbers = [value for value in values if value is not None]
    whole = all(number.is_integer() and number >= STATION_FROM for number in numbers)
    if numbers and whole and len(set(numbers)) == len(numbers):
        raise DataError(
            file,
            record="line 1",
            found=f"whole numbers such as {cells[0]}, which may be the numbers of stations or values",
            expected="one or the other",
            remedy="Set `header: true` or `header: false` under `format` in params.yaml.",
        )
    return False


def _number(cell: str, decimal: str) -> float | None:
    try:
        return float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return None


def blocks(dialect: Dialect, numbers: Sequence[int], texts: Sequence[int] = ()) -> Iterator[Block]:
    """Columns of a text, a block of lines at a time; lines without any cell are passed over.

    Parameters
    ----------
    numbers, texts
        Columns that are read as numbers (NaN where a cell is empty or a null token) and as they are.

    Raises
    ------
    DataError
        A line has another number of columns, or a cell is no number.
    """
    for data, first_line in _line_blocks(dialect):
        yield _parsed(dialect, data, first_line, tuple(numbers), tuple(texts))


def _line_blocks(dialect: Dialect) -> Iterator[tuple[bytes, int]]:
    line = 1
    carried = b""
    with dialect.file.open("rb") as stream:
        if dialect.names is not None:
            stream.readline()
            line = 2
        elif stream.read(3) != b"\xef\xbb\xbf":
            stream.seek(0)
        while True:
            read = stream.read(BLOCK_BYTES)
            data = carried + read
            cut = data.rfind(b"\n") + 1 if read else len(data)
            carried = data[cut:]
            if cut:
                yield data[:cut], line
                line += data.count(b"\n", 0, cut)
            if not read:
                return


def _parsed(dialect: Dialect, data: bytes, first_line: int, numbers: tuple[int, ...], texts: tuple[int, ...]) -> Block:
    count = data.count(b"\n") + (not data.endswith(b"\n"))
    separators = data.count(dialect.delimiter.encode())
    lines_R = np.arange(first_line, first_line + count, dtype=np.int64)
    if dialect.delimiter != " " and b'"' not in data and separators == count * (dialect.width - 1):
        schema: dict[str, type[pl.DataType]] = {f"column_{index + 1}": pl.String for index in range(dialect.width)}
        schema |= {f"column_{index + 1}": pl.Float64 for index in numbers}
        try:
            frame = pl.read_csv(
                data,
                has_header=False,
                schema=schema,
                columns=sorted({*numbers, *texts}),
                separator=dialect.delimiter,
                null_values=[token for token in dialect.null_tokens if token],
                decimal_comma=dialect.decimal == ",",
                encoding="utf8-lossy",
            )
        except pl.exceptions.PolarsError:
            frame = None
        if frame is not None and frame.height == count:
            return _block(frame, lines_R, numbers, texts)
    return _carefully(dialect, data, lines_R, numbers, texts)


def _block(frame: pl.DataFrame, lines_R: NDArray[np.int64], numbers: Sequence[int], texts: Sequence[int]) -> Block:
    values = frame.select(f"column_{index + 1}" for index in numbers)
    numbers_RN = np.ascontiguousarray(values.to_numpy(), dtype=np.float64).reshape(frame.height, len(numbers))
    return Block(frame.select(f"column_{index + 1}" for index in texts), numbers_RN, lines_R)


def _carefully(
    dialect: Dialect, data: bytes, lines_R: NDArray[np.int64], numbers: Sequence[int], texts: Sequence[int]
) -> Block:
    """Parse line by line and cell by cell, and name what is wrong."""
    rows, kept = [], []
    for line, number in zip(data.decode("utf-8", errors="replace").splitlines(), lines_R, strict=False):
        cells = split(line, dialect.delimiter)
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != dialect.width:
            raise DataError(
                dialect.file,
                record=f"line {number}",
                found=f"{len(cells)} columns",
                expected=f"{dialect.width}, as in the first line",
                remedy="Mend this line; if it is the last one, the file was cut short: copy it again.",
            )
        rows.append(cells)
        kept.append(int(number))
    columns = {}
    for index in sorted({*numbers, *texts}):
        column = pl.Series(f"column_{index + 1}", [row[index] for row in rows], dtype=pl.String).str.strip_chars()
        columns[index] = _numbers(dialect, column, index, kept) if index in numbers else column
    return _block(pl.DataFrame(list(columns.values())), np.array(kept, dtype=np.int64), numbers, texts)


def _numbers(dialect: Dialect, cells: pl.Series, index: int, lines: Sequence[int]) -> pl.Series:
    cells = cells.set(cells.is_in(list(dialect.null_tokens)).fill_null(True), None)
    plain = cells.str.replace(",", ".", literal=True) if dialect.decimal == "," else cells
    values = plain.cast(pl.Float64, strict=False)
    bad = (values.is_null() & cells.is_not_null()).arg_true()
    if bad.len():
        _refuse_cell(dialect, str(cells[int(bad[0])]), index, lines[int(bad[0])])
    return values


def _refuse_cell(dialect: Dialect, cell: str, index: int, line: int) -> NoReturn:
    advice = "name its text under `format.null_tokens` if it means missing"
    if _DECIMAL_COMMA.fullmatch(cell) and dialect.decimal == ".":
        advice = 'set `decimal: ","` under `format` if it is a decimal comma'
    raise DataError(
        dialect.file,
        record=f"line {line}, {dialect.column(index)}",
        found=repr(cell[:40]),
        expected="a number",
        remedy=f"Mend the cell, or {advice}.",
    )


class Growing:
    """Rows of float32 of unknown number; memory that is not written to is not resident."""

    def __init__(self, columns: int, guess: int) -> None:
        self._values: Array = np.empty((max(guess, 1), columns), dtype=np.float32)
        self._used = 0

    def append(self, block: NDArray[np.float64]) -> None:
        """Take over rows; a number too large for float32 becomes infinite, which is refused later."""
        stop = self._used + len(block)
        if stop > len(self._values):
            grown = np.empty((max(stop, len(self._values) * 3 // 2), self._values.shape[1]), dtype=np.float32)
            grown[: self._used] = self._values[: self._used]
            self._values = grown
        with np.errstate(over="ignore"):
            self._values[self._used : stop] = block
        self._used = stop

    def finish(self) -> Array:
        """The rows, in memory of their own size; nothing can be added to them."""
        self._values.resize((self._used, self._values.shape[1]), refcheck=False)
        return self._values


def read(dialect: Dialect, numbers: Sequence[int], texts: Sequence[int] = ()) -> tuple[pl.DataFrame, Array, Lines]:
    """Columns of a whole text: texts (R), values_RN as float32, and the line of each row; raises as :func:`blocks`."""
    growing: Growing | None = None
    parts: list[pl.DataFrame] = []
    lines: list[NDArray[np.int64]] = []
    for block in blocks(dialect, numbers, texts):
        if growing is None:
            share = dialect.file.stat().st_size / min(BLOCK_BYTES, dialect.file.stat().st_size)
            growing = Growing(len(numbers), int(1.05 * share * len(block.lines_R)) + 16)
        growing.append(block.numbers_RN)
        parts.append(block.texts)
        lines.append(block.lines_R)
    if growing is None:
        raise DataError(
            dialect.file, found="no line behind the names of the columns", expected="rows of values", remedy=AGAIN
        )
    return pl.concat(parts), growing.finish(), Lines(np.concatenate(lines))


class Lines:
    """Where rows stand in a text."""

    def __init__(self, lines_R: NDArray[np.int64]) -> None:
        self._lines_R = lines_R

    def __call__(self, row: int) -> str:
        """The line of a row."""
        return f"line {self._lines_R[row]}"
