"""Local time and UTC, clock changes included. Times are minutes since 1970-01-01.

Shapes: R row of a file, T time, N any number.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.config import zone
from stages.ingest.traffic.schema import MINUTES_PER_DAY
from stages.ingest.traffic.tables import BLANK, Table

Minutes = NDArray[np.int64]

_EPOCH = datetime(1970, 1, 1)


def told(minute: int, name: str | None = None) -> str:
    """A time as the user reads it: local with its offset where the zone is known, else as it is."""
    moment = _EPOCH + timedelta(minutes=int(minute))
    if name is None:
        return f"{moment:%Y-%m-%d %H:%M}"
    local = moment.replace(tzinfo=UTC).astimezone(zone(name))
    return local.isoformat(sep=" ", timespec="minutes")


def utc_rows(table: Table, name: str | None) -> Minutes:
    """Minutes in UTC of the rows of a table (R); blank ones stay blank, and without a zone local ones stay local.

    A local hour that a clock change repeats is kept where its rows stand in the file twice in order, once for each
    pass; otherwise it is ambiguous.

    Raises
    ------
    DataError
        A stamp is ambiguous, or no clock of the zone ever showed it.
    """
    assert table.stamps is not None
    local_R = table.stamps.minutes_R
    if table.stamps.utc or name is None:
        return local_R
    where = zone(name)
    there = np.flatnonzero(local_R != BLANK)
    utc_R = local_R.copy()
    utc_R[there] = _to_utc(local_R[there], where, _Refusal(table, there, name))
    return utc_R


def utc_of(local: datetime, name: str | None) -> int:
    """Minute in UTC of one local time; of a repeated hour the first pass."""
    if local.tzinfo is None and name is not None:
        local = local.replace(tzinfo=zone(name))
    if local.tzinfo is not None:
        local = local.astimezone(UTC).replace(tzinfo=None)
    return int((local - _EPOCH) // timedelta(minutes=1))


def local_days(utc_T: Minutes, name: str | None) -> Minutes:
    """Number of the local day of each time since 1970-01-01 (T); without a zone the day of the time as it is."""
    if name is None:
        return utc_T // MINUTES_PER_DAY
    where = zone(name)

    def offset(minute: int, _fold: int) -> int:
        moment = (_EPOCH + timedelta(minutes=minute)).replace(tzinfo=UTC)
        return _minutes(moment.astimezone(where).utcoffset())

    first, _ = _offsets(utc_T, offset)
    return (utc_T + first) // MINUTES_PER_DAY


class _Refusal:
    """Refuses a stamp of a table by the number it has among the stamps that are not blank."""

    def __init__(self, table: Table, rows: NDArray[np.intp], name: str) -> None:
        self.table, self.rows, self.name = table, rows, name

    def impossible(self, index: int, minute: int) -> NoReturn:
        raise DataError(
            self.table.label,
            record=self.table.place(int(self.rows[index])),
            found=f"the stamp {told(minute)}, which no clock in {self.name} showed: clocks went forward over it",
            expected="local times of that zone",
            remedy="These stamps know no summer time: set `timezone` to a fixed offset such as -08:00 in params.yaml.",
        )

    def ambiguous(self, first: int, last: int, low: int, high: int) -> NoReturn:
        raise DataError(
            self.table.label,
            record=f"{self.table.place(int(self.rows[first]))} to {self.table.place(int(self.rows[last]))}",
            found=f"stamps from {told(low)} to {told(high)}, an hour that clocks in {self.name} showed twice, without "
            "an order that tells which is which",
            expected="the hour twice in order, or stamps with their offset from UTC",
            remedy="Export the stamps with their offset (2025-11-02T01:00-07:00), or delete the hour. Nothing is "
            "averaged.",
        )


def _to_utc(local_N: Minutes, where: tzinfo, refuse: _Refusal) -> Minutes:
    def offset(minute: int, fold: int) -> int:
        moment = (_EPOCH + timedelta(minutes=minute)).replace(tzinfo=where, fold=fold)
        return _minutes(moment.utcoffset())

    first, second = _offsets(local_N, offset)
    impossible = np.flatnonzero(first < second)
    if impossible.size:
        refuse.impossible(int(impossible[0]), int(local_N[impossible[0]]))
    utc_N = local_N - first
    repeated = np.flatnonzero(first > second)
    for rows in np.split(repeated, np.flatnonzero(np.diff(local_N[repeated] // MINUTES_PER_DAY)) + 1):
        if rows.size:
            utc_N[rows] = _two_passes(local_N, utc_N, rows, second, refuse)
    return utc_N


def _two_passes(local_N: Minutes, utc_N: Minutes, rows: NDArray[np.intp], second: Minutes, refuse: _Refusal) -> Minutes:
    """UTC of the rows of one repeated hour: first pass, step back, second pass, in order with their neighbours."""
    back = np.flatnonzero(np.diff(local_N[rows]) <= 0) + 1
    resolved = utc_N[rows].copy()
    if back.size == 1:
        resolved[back[0] :] = (local_N - second)[rows[back[0] :]]
    around = [*utc_N[max(rows[0] - 1, 0) : rows[0]], *resolved, *utc_N[rows[-1] + 1 : rows[-1] + 2]]
    contiguous = rows[-1] - rows[0] + 1 == rows.size
    if back.size != 1 or not contiguous or np.any(np.diff(around) <= 0):
        refuse.ambiguous(int(rows[0]), int(rows[-1]), int(local_N[rows].min()), int(local_N[rows].max()))
    return resolved


def _offsets(minutes_N: Minutes, offset: Callable[[int, int], int]) -> tuple[Minutes, Minutes]:
    """Offset from UTC of each time before and after a change; a day without a change is looked up once."""
    days, inverse = np.unique(minutes_N // MINUTES_PER_DAY, return_inverse=True)
    edges = [
        {offset(int(day) * MINUTES_PER_DAY + minute, fold) for minute in (0, MINUTES_PER_DAY - 1) for fold in (0, 1)}
        for day in days
    ]
    plain = np.array([next(iter(found)) if len(found) == 1 else 0 for found in edges], dtype=np.int64)
    changes = np.array([len(found) > 1 for found in edges], dtype=np.bool_)
    first, second = plain[inverse], plain[inverse]
    for index in np.flatnonzero(changes[inverse]):
        first[index], second[index] = (offset(int(minutes_N[index]), fold) for fold in (0, 1))
    return first, second


def _minutes(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(minutes=1)
