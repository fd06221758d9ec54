"""Rows of files with their stamps, to a regular grid of times; what is mended on the way is told one by one.

Shapes: R row of a file, T time, S sensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.schema import MINUTES_PER_DAY
from stages.ingest.traffic.sets import Array
from stages.ingest.traffic.tables import BLANK, Table
from stages.ingest.traffic.zones import Minutes, told, utc_rows

#: A grid with more empty than full slots by this factor stands for a stamp that is wrong, not for missing steps.
MOST_EMPTY = 20

#: Rows that are moved together.
BLOCK_ROWS = 2048

#: Faults of one kind in one file that are told one by one; those behind are counted.
MOST_TOLD = 500


@dataclass(frozen=True)
class Axis:
    """A regular grid: start in minutes since 1970-01-01, step in minutes, number of steps."""

    start: int
    step: int
    steps: int

    @property
    def minutes(self) -> Minutes:
        """Minutes of the steps (T)."""
        return self.start + self.step * np.arange(self.steps, dtype=np.int64)


@dataclass(frozen=True)
class Rows:
    """Rows of a table in order of time, each time once: their numbers and their minutes in UTC."""

    table: Table
    numbers: NDArray[np.intp]
    minutes: Minutes


def in_order(table: Table, timezone: str | None, notes: list[str]) -> Rows:
    """Rows of a table by time, without blank stamps and without copies of a row.

    Raises
    ------
    DataError
        Two rows of one time differ, or no row has a stamp.
    """
    utc_R = utc_rows(table, timezone)
    _tell_blank(table, utc_R, notes)
    there = np.flatnonzero(utc_R != BLANK)
    if not there.size:
        raise DataError(
            table.label,
            found="no row with a time stamp",
            expected="a stamp in each row",
            remedy="Name the column of the stamps in params.yaml.",
        )
    _tell_unsorted(table, there, utc_R, timezone, notes)
    ordered = there[np.argsort(utc_R[there], kind="stable")]
    ordered = _merged(table, ordered, utc_R, timezone, notes)
    return Rows(table, ordered, utc_R[ordered])


def common_axis(tables: Sequence[Rows], step: int | None, timezone: str | None) -> Axis:
    """The grid on which all rows lie.

    Parameters
    ----------
    step
        Minutes; None: the most frequent distance between rows.

    Raises
    ------
    DataError
        A stamp lies beside the grid or far away from all others, or the files have different steps.
    """
    steps = {rows.table.label: step or _frequent_step(rows) for rows in tables}
    (first_label, found), *others = steps.items()
    for label, other in others:
        if other != found:
            raise DataError(
                label,
                found=f"steps of {other} minutes",
                expected=f"steps of {found} minutes, as in {first_label}",
                remedy="Bring both files to one step, or set `step_minutes` in params.yaml.",
            )
    start = min(int(rows.minutes[0]) for rows in tables)
    stop = max(int(rows.minutes[-1]) for rows in tables)
    axis = Axis(start, found, (stop - start) // found + 1)
    for rows in tables:
        _check_on_grid(rows, axis, timezone)
    if axis.steps > MOST_EMPTY * max(rows.minutes.size for rows in tables):
        raise DataError(
            first_label,
            found=f"stamps from {told(start, timezone)} to {told(stop, timezone)}, which is {axis.steps} steps of "
            f"{found} minutes, for {max(rows.minutes.size for rows in tables)} rows",
            expected="rows that fill most of their range",
            remedy="Mend the first or the last stamp.",
        )
    return axis


def put(rows: Rows, axis: Axis, timezone: str | None, notes: list[str]) -> Array:
    """Values on the grid (T, S), NaN where there is no row; a table that is complete and in order is not copied."""
    slots = (rows.minutes - axis.start) // axis.step
    inside = (slots >= 0) & (slots < axis.steps)
    _tell_outside(rows, inside, timezone, notes)
    _tell_missing(rows.table, np.setdiff1d(np.arange(axis.steps), slots[inside]), axis, timezone, notes)
    values_RS = rows.table.values_RS
    if values_RS.shape[0] == axis.steps and np.array_equal(rows.numbers, slots) and bool(inside.all()):
        return values_RS
    in_order = np.array_equal(rows.numbers, np.arange(len(values_RS)))
    if in_order and bool(inside.all()) and values_RS.flags.owndata and values_RS.flags.c_contiguous:
        return _stretched(values_RS, slots, axis.steps)
    values_TS = np.full((axis.steps, values_RS.shape[1]), np.nan, dtype=np.float32)
    values_TS[slots[inside]] = values_RS[rows.numbers[inside]]
    return values_TS


def _stretched(values_RS: Array, slots: NDArray[np.int64], steps: int) -> Array:
    """Move rows in order to their slots inside their own memory: a second array would double what a large set needs."""
    rows = len(values_RS)
    values_RS.resize((steps, values_RS.shape[1]), refcheck=False)
    after = steps
    for stop in range(rows, 0, -BLOCK_ROWS):
        first = max(stop - BLOCK_ROWS, 0)
        block = values_RS[first:stop].copy()
        values_RS[slots[first] : after] = np.nan
        values_RS[slots[first:stop]] = block
        after = int(slots[first])
    return values_RS


def _frequent_step(rows: Rows) -> int:
    distances, counts = np.unique(np.diff(rows.minutes), return_counts=True)
    if not distances.size:
        raise DataError(
            rows.table.label,
            found="one row",
            expected="at least two, of which the step can be told",
            remedy="Set `step_minutes` in params.yaml.",
        )
    step = int(distances[np.argmax(counts)])
    if MINUTES_PER_DAY % step:
        raise DataError(
            rows.table.label,
            found=f"rows that are mostly {step} minutes apart",
            expected="a step that divides a day of 1440 minutes",
            remedy="Bring the rows to such a step, or set `step_minutes` in params.yaml.",
        )
    return step


def _check_on_grid(rows: Rows, axis: Axis, timezone: str | None) -> None:
    beside = np.flatnonzero((rows.minutes - axis.start) % axis.step)
    if beside.size:
        raise DataError(
            rows.table.label,
            record=rows.table.place(int(rows.numbers[beside[0]])),
            found=f"the stamp {told(int(rows.minutes[beside[0]]), timezone)}",
            expected=f"whole steps of {axis.step} minutes from {told(axis.start, timezone)}",
            remedy="Mend the stamp, or set `step_minutes` in params.yaml.",
        )


def _tell_blank(table: Table, utc_R: Minutes, notes: list[str]) -> None:
    blank = np.flatnonzero(utc_R == BLANK)
    told_ones = []
    for row in blank:
        copied = row > 0 and np.array_equal(table.values_RS[row], table.values_RS[row - 1], equal_nan=True)
        behind = f"; its values repeat those of {table.place(int(row) - 1)}" if copied else ""
        told_ones.append(f"{table.file}, {table.place(int(row))}: no time stamp, the row is left out{behind}")
    _tell(told_ones, f"{table.file}: rows without a time stamp", notes)


def _tell_unsorted(
    table: Table, there: NDArray[np.intp], utc_R: Minutes, timezone: str | None, notes: list[str]
) -> None:
    back = np.flatnonzero(np.diff(utc_R[there]) < 0) + 1
    told_ones = [
        f"{table.file}, {table.place(int(there[row]))}: {told(int(utc_R[there[row]]), timezone)} stands behind "
        f"{told(int(utc_R[there[row - 1]]), timezone)}; the rows are put in order"
        for row in back
    ]
    _tell(told_ones, f"{table.file}: rows out of order", notes)


def _merged(
    table: Table, ordered: NDArray[np.intp], utc_R: Minutes, timezone: str | None, notes: list[str]
) -> NDArray[np.intp]:
    """Row numbers with one for each time; equal rows are merged, others refused."""
    again = np.flatnonzero(np.diff(utc_R[ordered]) == 0) + 1
    told_ones = []
    for index in again:
        row, before = int(ordered[index]), int(ordered[index - 1])
        values, others = table.values_RS[row], table.values_RS[before]
        moment = told(int(utc_R[row]), timezone)
        differ = np.flatnonzero((values != others) & ~(np.isnan(values) & np.isnan(others)))
        if differ.size:
            sensor = int(differ[0])
            raise DataError(
                table.label,
                record=f"{table.place(before)} and {table.place(row)}",
                found=f"two rows for {moment}, with {others[sensor]:g} and {values[sensor]:g} for the sensor "
                f"{table.sensors[sensor]!r}",
                expected="one row for each time",
                remedy="Delete the wrong one. If clocks were put back in that hour, the stamps are ambiguous: set "
                "`timezone` in params.yaml, or export them with their offset from UTC. Nothing is averaged.",
            )
        told_ones.append(f"{table.file}, {table.place(row)}: repeats {moment} of {table.place(before)}; merged")
    _tell(told_ones, f"{table.file}: copies of rows", notes)
    return np.delete(ordered, again)


def _tell_missing(table: Table, empty: NDArray[np.int64], axis: Axis, timezone: str | None, notes: list[str]) -> None:
    told_ones = []
    for run in np.split(empty, np.flatnonzero(np.diff(empty) > 1) + 1):
        if run.size:
            first, last = (told(axis.start + axis.step * int(slot), timezone) for slot in (run[0], run[-1]))
            span = f"{first}: missing" if run.size == 1 else f"{first} to {last}: {run.size} steps missing"
            told_ones.append(f"{table.file}, {span}")
    _tell(told_ones, f"{table.file}: missing stretches", notes)


def _tell_outside(rows: Rows, inside: NDArray[np.bool_], timezone: str | None, notes: list[str]) -> None:
    told_ones = [
        f"{rows.table.file}, {rows.table.place(int(row))}: {told(int(minute), timezone)} lies outside of the sensors' "
        "times; the row is left out"
        for row, minute in zip(rows.numbers[~inside], rows.minutes[~inside], strict=True)
    ]
    _tell(told_ones, f"{rows.table.file}: rows outside of the sensors' times", notes)


def _tell(told_ones: list[str], kind: str, notes: list[str]) -> None:
    notes.extend(told_ones[:MOST_TOLD])
    if len(told_ones) > MOST_TOLD:
        notes.append(f"{kind}: {len(told_ones) - MOST_TOLD} more, {len(told_ones)} in all")
