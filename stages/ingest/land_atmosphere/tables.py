"""Columns of one file, whatever its container: the common result of all readers."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.land_atmosphere.members import Member, kind

if TYPE_CHECKING:
    import polars as pl


OTHER_READER = "Choose the reader `table` in params.yaml, which takes any name, or check `delimiter`."

#: Names that promise a table: a damaged one is an error, not a file to pass over.
DATA_SUFFIXES = (".csv", ".tsv", ".dat", ".parquet", ".nc", ".xlsx")


@dataclass(frozen=True)
class Layout:
    """How a delimited text is laid out, and what means missing in any table."""

    delimiter: str = ","
    comment: str = "#"
    header_line: int | None = None
    skip_lines: int = 0
    decimal: str = "."
    null_tokens: tuple[str, ...] = ("",)
    sentinels: tuple[float, ...] = (-9999.0,)


@dataclass
class Table:
    """The wanted columns of one file.

    Attributes
    ----------
    numbers
        Measured quantities and flags (row), NaN where missing.
    stamps
        Time columns (row) as integers, strings or datetimes.
    place
        Row number -> its place as the user finds it, such as ``line 17``.
    """

    member: Member
    rows: int
    numbers: dict[str, NDArray[np.float64]]
    stamps: dict[str, pl.Series]
    place: Callable[[int], str]

    def refuse(self, row: int, *, found: str, expected: str, remedy: str) -> NoReturn:
        """Raise the error of one row."""
        raise DataError(self.member.label, record=self.place(row), found=found, expected=expected, remedy=remedy)


def column_names(member: Member, layout: Layout) -> list[str]:
    """Names of the columns of a file, in its order."""
    match kind(member):
        case "text":
            from stages.ingest.land_atmosphere import header

            return header.read_header(member, layout).names
        case "parquet":
            from stages.ingest.land_atmosphere import parquet

            return parquet.column_names(member)
        case "xlsx":
            from stages.ingest.land_atmosphere import xlsx

            return xlsx.column_names(member, layout)
        case "netcdf":
            from stages.ingest.land_atmosphere import netcdf

            return netcdf.column_names(member)


def read(member: Member, layout: Layout, numbers: Sequence[str], stamps: Sequence[str]) -> Table:
    """Read the named columns of a file; all others are not even parsed.

    Raises
    ------
    DataError
        The file is damaged, a cell is no number, or there is no row.
    """
    table: Table
    match kind(member):
        case "text":
            from stages.ingest.land_atmosphere import text

            table = text.read(member, layout, numbers, stamps)
        case "parquet":
            from stages.ingest.land_atmosphere import parquet

            table = parquet.read(member, layout, numbers, stamps)
        case "xlsx":
            from stages.ingest.land_atmosphere import xlsx

            table = xlsx.read(member, layout, numbers, stamps)
        case "netcdf":
            from stages.ingest.land_atmosphere import netcdf

            table = netcdf.read(member, layout, numbers, stamps)
    if table.rows == 0:
        raise DataError(
            member.label,
            found="a header without data",
            expected="at least one row",
            remedy="Fetch or copy the file again, or remove it.",
        )
    return table


def with_columns(
    everything: Sequence[Member], layout: Layout, wanted: Sequence[str], *, every: bool
) -> tuple[list[tuple[Member, list[str]]], dict[str, str]]:
    """Files that have every (or any) wanted column, and the others of the folder with the reason.

    Raises
    ------
    DataError
        A file of a tabular kind is damaged, or the only file has not the columns.
    """
    found: list[tuple[Member, list[str]]] = []
    ignored: dict[str, str] = {}
    for member in everything:
        alone = len(everything) == 1
        try:
            names = column_names(member, layout)
        except DataError as error:
            if alone or member.base.lower().endswith(DATA_SUFFIXES):
                raise
            ignored[member.name] = str(error).removeprefix(member.label).lstrip(":, ")
            continue
        there = [name for name in wanted if name in names]
        if there and (not every or len(there) == len(wanted)):
            found.append((member, names))
        elif alone:
            remedy = "Correct the name in params.yaml." if every else OTHER_READER
            require_once(member, names, wanted[: None if every else 1], remedy)
        else:
            missing = f"column {wanted[0]}" if every else f"column {' or '.join(wanted)}"
            ignored[member.name] = f"no {missing}"
    return found, ignored


def require_once(
    member: Member, names: Sequence[str], wanted: Iterable[str], remedy: str = "Correct the name in params.yaml."
) -> None:
    """Refuse a file in which a wanted column is missing (its nearest names are given) or stands twice.

    Raises
    ------
    DataError
        Names the column.
    """
    for column in wanted:
        count = names.count(column)
        if count > 1:
            raise DataError(
                member.label,
                record=f"column {column!r}",
                found=f"{count} columns of this name",
                expected="one",
                remedy="Rename or delete all but the right one.",
            )
        if count == 0:
            close = difflib.get_close_matches(column, names, n=3, cutoff=0.5)
            raise DataError(
                member.label,
                record=f"column {column!r}",
                found=f"no such column among {len(names)}",
                expected=f"one of {', '.join(map(repr, close))}" if close else f"one of {shorten(names)}",
                remedy=remedy,
            )


def shorten(names: Sequence[str], limit: int = 12) -> str:
    """Names as a list that stays readable."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def blank_sentinels(values: NDArray[np.float64], sentinels: Sequence[float]) -> None:
    """Put NaN where a number means missing or is infinite, in place."""
    for sentinel in sentinels:
        np.copyto(values, np.nan, where=values == sentinel)
    np.copyto(values, np.nan, where=np.isinf(values))
