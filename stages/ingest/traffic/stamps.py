"""Texts and columns of time stamps to minutes since 1970-01-01."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.tables import BLANK, Stamps

#: Formats tried on texts without a declared one; all are unambiguous.
ISO_FORMATS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d")
_OFFSET = r"(Z|[+-]\d\d:?\d\d)$"
_EPOCH = datetime(1970, 1, 1)


def of_series(column: pl.Series, form: str | None, label: str, place: Callable[[int], str]) -> Stamps:
    """Stamps of a column of texts, dates or datetimes; a null or empty one is blank.

    Parameters
    ----------
    form
        strptime format of texts; None: ISO 8601, with an offset from UTC or without.

    Raises
    ------
    DataError
        A stamp cannot be read, is no whole minute, or some have an offset and some have none.
    """
    if column.dtype == pl.String:
        return _of_texts(column, form, label, place)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if isinstance(column.dtype, pl.Datetime):
        zoned = column.dtype.time_zone is not None
        return Stamps(_minutes(column.cast(pl.Datetime("us")).dt.epoch("us"), label, place), utc=zoned)
    raise DataError(
        label,
        record=f"column {column.name!r}",
        found=f"type {column.dtype}",
        expected="stamps: texts, dates or datetimes",
        remedy="Name the column of the stamps under `format.time` in params.yaml.",
    )


def of_integers(values_R: NDArray[np.int64], unit: str, label: str, *, utc: bool) -> Stamps:
    """Stamps of integers since 1970-01-01 in ``unit`` (ns, us, ms or s); the smallest integer (NaT) is blank."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    minutes, rest = np.divmod(values_R, 60 * per_second)
    blank = values_R == np.iinfo(np.int64).min
    _refuse_odd(~blank & (rest != 0), values_R / per_second, label, lambda row: f"row {row}")
    return Stamps(np.where(blank, BLANK, minutes), utc=utc)


def _of_texts(column: pl.Series, form: str | None, label: str, place: Callable[[int], str]) -> Stamps:
    texts = column.str.strip_chars()
    texts = texts.set(texts == "", None)
    zoned = texts.str.contains(_OFFSET) if form is None else pl.Series([form.endswith("%z")] * texts.len())
    there = texts.is_not_null()
    utc = bool((zoned & there).any())
    if utc and not bool((zoned | ~there).all()):
        row = int((~zoned & there).arg_true()[0])
        raise DataError(
            label,
            record=place(row),
            found=f"{texts[row]!r}, a stamp without an offset from UTC",
            expected="an offset, as in other rows",
            remedy="Write all stamps with an offset, or all without.",
        )
    parsed = _zoned(texts, form) if utc else _plain(texts, form)
    bad = (parsed.is_null() & there).arg_true()
    if bad.len():
        row = int(bad[0])
        raise DataError(
            label,
            record=place(row),
            found=f"the stamp {texts[row]!r}",
            expected=f"a stamp of the form {form}" if form else "ISO 8601 such as 2017-02-05 00:05",
            remedy="Mend this line" + ("." if form else ", or give `format.time_format` in params.yaml."),
        )
    return Stamps(_minutes(parsed.dt.epoch("us"), label, place), utc=utc)


def _plain(texts: pl.Series, form: str | None) -> pl.Series:
    if form is not None:
        return texts.str.to_datetime(form, strict=False, time_unit="us")
    parsed = pl.Series(texts.name, [None] * texts.len(), dtype=pl.Datetime("us"))
    for candidate in ISO_FORMATS:
        if parsed.null_count() == texts.null_count():
            break
        attempt = texts.str.to_datetime(candidate, strict=False, time_unit="us")
        parsed = parsed.zip_with(parsed.is_not_null(), attempt)
    return parsed


def _zoned(texts: pl.Series, form: str | None) -> pl.Series:
    if form is not None:
        return texts.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC")
    plain = texts.str.replace("Z$", "+0000").str.replace(r"([+-]\d\d):(\d\d)$", "${1}${2}").str.replace("T", " ")
    parsed = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", strict=False, time_unit="us", time_zone="UTC")
    other = plain.str.to_datetime("%Y-%m-%d %H:%M%z", strict=False, time_unit="us", time_zone="UTC")
    return parsed.zip_with(parsed.is_not_null(), other)


def _minutes(microseconds: pl.Series, label: str, place: Callable[[int], str]) -> NDArray[np.int64]:
    blank = microseconds.is_null().to_numpy()
    values = microseconds.fill_null(0).to_numpy().astype(np.int64)
    minutes, rest = np.divmod(values, 60_000_000)
    _refuse_odd(~blank & (rest != 0), values / 1e6, label, place)
    return np.where(blank, BLANK, minutes)


def _refuse_odd(
    odd_R: NDArray[np.bool_], seconds_R: NDArray[np.float64], label: str, place: Callable[[int], str]
) -> None:
    if not odd_R.any():
        return
    row = int(np.argmax(odd_R))
    raise DataError(
        label,
        record=place(row),
        found=f"the stamp {_EPOCH + timedelta(seconds=float(seconds_R[row]))}",
        expected="a whole minute",
        remedy="Round the stamps to the steps they stand for.",
    )
