"""Time stamps to minutes since 1970-01-01 in local standard time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.land_atmosphere.tables import Table

Minutes = NDArray[np.int64]

_NO_DAY = np.iinfo(np.int64).min

#: Formats tried on texts without a declared one; all are unambiguous.
ISO_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d")
FIRST_YEAR, LAST_YEAR = 1900, 2100
FORMS = "YYYYMMDDHHMM, YYYYMMDD, YYYYMM or YYYY"


def to_minutes(table: Table, column: str, *, form: str | None = None, utc_offset: float | None = None) -> Minutes:
    """Minutes since 1970-01-01 of each stamp of a column.

    Parameters
    ----------
    table, column
        Where the stamps stand.
    form
        strptime format of texts; None tries digits and ISO 8601.
    utc_offset
        Hours ahead of UTC; needed where the stamps themselves carry an offset.

    Raises
    ------
    DataError
        A stamp cannot be read; its line is named.
    """
    stamps = table.stamps[column]
    if stamps.dtype.is_integer() and form is None:
        return _from_digits(table, column, stamps)
    if isinstance(stamps.dtype, pl.Datetime):
        return _from_datetimes(table, column, stamps, utc_offset)
    if stamps.dtype == pl.Date:
        return _from_datetimes(table, column, stamps.cast(pl.Datetime("us")), utc_offset)
    if not (stamps.dtype == pl.String or stamps.dtype.is_integer()):
        raise DataError(
            table.member.label,
            record=f"column {column!r}",
            found=f"type {stamps.dtype}",
            expected="datetimes, texts or digits",
            remedy="Name the right time column in params.yaml.",
        )
    return _from_texts(table, column, stamps.cast(pl.String), form, utc_offset)


def joined(table: Table, columns: Sequence[str]) -> str:
    """Join a date and a time column into one and return its name."""
    name = " ".join(columns)
    texts = [table.stamps[column].cast(pl.String) for column in columns]
    table.stamps[name] = (texts[0] + " " + texts[1]).alias(name)
    return name


def _refuse(table: Table, column: str, row: int, cell: object, form: str | None) -> NoReturn:
    expected = f"a stamp of the form {form}" if form else f"{FORMS}, or ISO 8601 such as 2015-01-01 00:30"
    raise DataError(
        table.member.label,
        record=f"{table.place(row)}, column {column!r}",
        found="an empty stamp" if cell is None else repr(cell),
        expected=expected,
        remedy="Mend or delete this line" + ("." if form else ", or give the `format` of the time column."),
    )


def _from_digits(table: Table, column: str, stamps: pl.Series) -> Minutes:
    """``YYYYMMDDHHMM`` and its shorter forms as integers, in chunks that keep the memory small."""
    if stamps.null_count():
        _refuse(table, column, int(stamps.is_null().arg_true()[0]), None, None)
    digits = len(str(abs(int(stamps[0]))))
    if digits not in SHORT_FORMS:
        _refuse(table, column, 0, int(stamps[0]), None)
    minutes = np.empty(stamps.len(), dtype=np.int64)
    for first in range(0, minutes.size, CHUNK):
        part = minutes[first : first + CHUNK]
        part[:] = _minutes(stamps.slice(first, CHUNK).to_numpy(), digits)
        bad = part == _NO_DAY
        if bad.any():
            row = first + int(np.argmax(bad))
            _refuse(table, column, row, int(stamps[row]), None)
    return minutes


def _minutes(value: Minutes, digits: int) -> Minutes:
    """Minutes since 1970-01-01 of integer stamps, ``_NO_DAY`` where there is no such moment; hour 24 is midnight."""
    factor, rest = SHORT_FORMS[digits]
    length = (value >= 10 ** (digits - 1)) & (value < 10**digits)
    day, clock = np.divmod(np.where(length, value, 0).astype(np.int64) * factor + rest, 10_000)
    hour, minute = np.divmod(clock, 100)
    days = _days(day)
    bad = ~length | (days == _NO_DAY) | (minute > 59) | (hour > 24) | ((hour == 24) & (minute > 0))
    return np.where(bad, _NO_DAY, np.where(bad, 0, days) * 1440 + hour * 60 + minute)


#: Digits of a stamp -> factor and summand that make it YYYYMMDDHHMM.
SHORT_FORMS = {12: (1, 0), 8: (10**4, 0), 6: (10**6, 10**4), 4: (10**8, 10**4 + 10**6)}
CHUNK = 1 << 14


def _days(date: Minutes) -> Minutes:
    """Days since 1970-01-01 of dates YYYYMMDD; equal neighbours are computed once."""
    change = np.flatnonzero(np.diff(date, prepend=date[0] - 1))
    unique = date[change]
    year, rest = np.divmod(unique, 10_000)
    month, day = np.divmod(rest, 100)
    good = (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0)
    begin = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    days = begin + day - 1
    days = np.where(good & (days < following), days, _NO_DAY)
    return np.repeat(days, np.diff(change, append=date.size))


def _from_texts(table: Table, column: str, texts: pl.Series, form: str | None, utc_offset: float | None) -> Minutes:
    texts = texts.str.strip_chars()
    if texts.null_count():
        _refuse(table, column, int(texts.is_null().arg_true()[0]), None, form)
    if form is None and texts.str.contains(r"^\d+$").all():
        whole = texts.cast(pl.Int64, strict=False)
        table.stamps[column] = whole
        return _from_digits(table, column, whole)
    zoned = form is None and bool(texts.str.contains(r"\d(Z|[+-]\d\d:?\d\d)$").any())
    if zoned:
        parsed = _zoned(texts)
    elif form is not None:
        parsed = texts.str.to_datetime(form, strict=False, time_unit="us")
    else:
        parsed = pl.Series(texts.name, [None] * texts.len(), dtype=pl.Datetime("us"))
        for candidate in ISO_FORMATS:
            if not parsed.null_count():
                break
            attempt = texts.str.to_datetime(candidate, strict=False, time_unit="us")
            parsed = parsed.zip_with(parsed.is_not_null(), attempt)
    if parsed.null_count():
        row = int(parsed.is_null().arg_true()[0])
        _refuse(table, column, row, texts[row], form)
    return _from_datetimes(table, column, parsed, utc_offset)


def _zoned(texts: pl.Series) -> pl.Series:
    plain = texts.str.replace("Z$", "+0000").str.replace(r"([+-]\d\d):(\d\d)$", "${1}${2}").str.replace("T", " ")
    parsed = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%z", strict=False, time_unit="us", time_zone="UTC")
    other = plain.str.to_datetime("%Y-%m-%d %H:%M%z", strict=False, time_unit="us", time_zone="UTC")
    return parsed.zip_with(parsed.is_not_null(), other)


def _from_datetimes(table: Table, column: str, stamps: pl.Series, utc_offset: float | None) -> Minutes:
    if stamps.null_count():
        _refuse(table, column, int(stamps.is_null().arg_true()[0]), None, None)
    zone = stamps.dtype.time_zone if isinstance(stamps.dtype, pl.Datetime) else None
    if zone is not None:
        if utc_offset is None:
            raise DataError(
                table.member.label,
                record=f"column {column!r}",
                found=f"stamps with an offset from UTC ({zone})",
                expected="the offset of the local standard time of the tower",
                remedy="Set `utc_offset` in params.yaml, hours ahead of UTC.",
            )
        stamps = stamps.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    # Spreadsheets keep days as fractions: a stamp may be some milliseconds off its second.
    seconds = stamps.cast(pl.Datetime("ms")).cast(pl.Int64).to_numpy()
    seconds = np.floor_divide(seconds + 500, 1000)
    minutes, rest = np.divmod(seconds, 60)
    years = minutes // 525_960 + 1970
    bad = (rest != 0) | (years < FIRST_YEAR) | (years > LAST_YEAR)
    if bad.any():
        row = int(np.argmax(bad))
        table.refuse(
            row,
            found=f"the stamp {stamps[row]}",
            expected=f"whole minutes between {FIRST_YEAR} and {LAST_YEAR}",
            remedy="Mend or delete this line.",
        )
    if zone is not None:
        minutes = minutes + round(60 * float(utc_offset or 0))
    return np.asarray(minutes, dtype=np.int64)


def text_of(minute: int) -> str:
    """A minute since 1970-01-01 as the user reads it."""
    return str(np.datetime64(int(minute), "m")).replace("T", " ")
