"""Tables in parquet: only the wanted columns are read, and each keeps the type of its schema."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from stages.errors import DataError
from stages.ingest.land_atmosphere.members import AGAIN, Member
from stages.ingest.land_atmosphere.tables import Layout, Table, blank_sentinels, require_once


def _scan(member: Member) -> pl.LazyFrame:
    source = member.path if member.inner is None and not member.path.name.endswith(".gz") else member.everything()
    return pl.scan_parquet(source)


def _damaged(member: Member, error: Exception) -> DataError:
    return DataError(
        member.label,
        found=f"a damaged or incomplete parquet file ({str(error).splitlines()[0]})",
        expected="a complete one",
        remedy=AGAIN,
    )


def column_names(member: Member) -> list[str]:
    """Names of the columns, those of a pandas index included."""
    try:
        return _scan(member).collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(member, error) from None


def read(member: Member, layout: Layout, numbers: Sequence[str], stamps: Sequence[str]) -> Table:
    """Read columns of a parquet file."""
    require_once(member, column_names(member), [*stamps, *numbers])
    try:
        frame = _scan(member).select(list(dict.fromkeys([*stamps, *numbers]))).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged(member, error) from None
    values = {}
    for name in numbers:
        column = as_numbers(member, name, frame[name], layout).to_numpy(writable=True)
        blank_sentinels(column, layout.sentinels)
        values[name] = column
    return Table(member, frame.height, values, {name: frame[name] for name in stamps}, lambda row: f"row {row}")


def as_numbers(member: Member, name: str, column: pl.Series, layout: Layout) -> pl.Series:
    """A column as float64, null as NaN; texts are parsed by the declared null tokens.

    Raises
    ------
    DataError
        A cell is no number, or the type of the column has none (a date, a list).
    """
    if column.dtype == pl.Null:
        return pl.Series(name, np.full(column.len(), np.nan))
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        text = text.set(text.is_in(layout.null_tokens).fill_null(True), None)
        parsed = text.cast(pl.Float64, strict=False)
        bad = (parsed.is_null() & text.is_not_null()).arg_true()
        if bad.len():
            raise DataError(
                member.label,
                record=f"row {bad[0]}, column {name!r}",
                found=repr(text[int(bad[0])]),
                expected="a number",
                remedy="Mend the cell, or name its text under `null_tokens` if it means missing.",
            )
        return parsed.fill_null(float("nan"))
    if not column.dtype.is_numeric() and column.dtype != pl.Boolean:
        raise DataError(
            member.label,
            record=f"column {name!r}",
            found=f"type {column.dtype}",
            expected="numbers",
            remedy="Name another column in params.yaml.",
        )
    return column.cast(pl.Float64).fill_null(float("nan"))
