"""Tables in Excel workbooks; the first sheet is read."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.land_atmosphere.members import AGAIN, Member
from stages.ingest.land_atmosphere.tables import Layout, Table, blank_sentinels, require_once


def _rows(member: Member) -> Iterator[tuple[Any, ...]]:
    import openpyxl

    try:
        book = openpyxl.load_workbook(member.everything(), read_only=True, data_only=True)
        try:
            yield from book.worksheets[0].iter_rows(values_only=True)
        finally:
            book.close()
    except (zipfile.BadZipFile, KeyError, EOFError, ValueError) as error:
        raise DataError(
            member.label,
            found=f"a damaged or incomplete workbook ({error})",
            expected="a complete xlsx file",
            remedy=AGAIN,
        ) from None


def _header(member: Member, layout: Layout, rows: Iterator[tuple[Any, ...]]) -> tuple[list[str], int]:
    for number, cells in enumerate(rows, start=1):
        first = str(cells[0] or "").strip() if cells else ""
        if layout.header_line is not None:
            if number < layout.header_line:
                continue
        elif not any(cell is not None for cell in cells) or (layout.comment and first.startswith(layout.comment)):
            continue
        for _ in range(layout.skip_lines):
            next(rows, None)
        return ["" if cell is None else str(cell).strip() for cell in cells], number + layout.skip_lines
    raise DataError(member.label, found="an empty sheet", expected="a row of column names", remedy=AGAIN)


def column_names(member: Member, layout: Layout) -> list[str]:
    """Names in the header row of the first sheet."""
    return _header(member, layout, _rows(member))[0]


def read(member: Member, layout: Layout, numbers: Sequence[str], stamps: Sequence[str]) -> Table:
    """Read columns of the first sheet.

    Raises
    ------
    DataError
        A cell is no number; the message names its row and column.
    """
    rows = _rows(member)
    names, above = _header(member, layout, rows)
    require_once(member, names, [*stamps, *numbers])
    cells: dict[str, list[Any]] = {name: [] for name in [*stamps, *numbers]}
    places = {name: names.index(name) for name in cells}
    lines: list[int] = []
    for line, row in enumerate(rows, start=above + 1):
        if all(cell is None for cell in row):
            continue
        lines.append(line)
        for name, place in places.items():
            cells[name].append(row[place] if place < len(row) else None)
    values = {}
    for name in numbers:
        column = _numbers(member, name, cells[name], lines, layout)
        blank_sentinels(column, layout.sentinels)
        values[name] = column
    typed = {name: _stamps(name, cells[name]) for name in stamps}
    return Table(member, len(lines), values, typed, lambda row: f"row {lines[row]}")


def _numbers(
    member: Member, name: str, cells: Sequence[Any], lines: Sequence[int], layout: Layout
) -> NDArray[np.float64]:
    values = np.full(len(cells), np.nan)
    for index, cell in enumerate(cells):
        if cell is None or (isinstance(cell, str) and cell.strip() in layout.null_tokens):
            continue
        try:
            values[index] = float(cell)
        except (TypeError, ValueError):
            raise DataError(
                member.label,
                record=f"row {lines[index]}, column {name!r}",
                found=repr(cell),
                expected="a number",
                remedy="Mend the cell, or name its text under `null_tokens` if it means missing.",
            ) from None
    return values


def _stamps(name: str, cells: Sequence[Any]) -> pl.Series:
    """Integers where all cells are whole numbers or digits, datetimes where all are, else texts."""
    if all(isinstance(cell, datetime.datetime) for cell in cells):
        return pl.Series(name, cells, dtype=pl.Datetime("us"))
    texts = [_digits(cell) for cell in cells]
    if all(text is not None and text.isdigit() for text in texts):
        return pl.Series(name, [int(text or 0) for text in texts], dtype=pl.Int64)
    return pl.Series(name, texts, dtype=pl.String)


def _digits(cell: Any) -> str | None:
    if cell is None:
        return None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()
