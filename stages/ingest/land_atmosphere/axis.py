"""The regular time axis of a tower: what is double, unsorted, off the grid or stamped with a clock that changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.land_atmosphere.stamps import Minutes, text_of

DAY = 1440
LONG_RUN = 48
MAX_EMPTY_FACTOR = 50
SUNDAY = 3  # day 3 of the epoch, 1970-01-04, was a Sunday


@dataclass(frozen=True)
class Step:
    """Length of the averaging interval: fixed minutes, or a week, month or year of the calendar."""

    minutes: int | None
    calendar: str | None = None

    def __str__(self) -> str:
        return self.calendar or f"{self.minutes} minutes"


@dataclass
class Rows:
    """Where each row of the sources stands, for messages."""

    file: Callable[[int], str]
    label: Callable[[int], str]
    place: Callable[[int], str]

    def refuse(self, row: int, *, found: str, expected: str, remedy: str) -> NoReturn:
        """Raise the error of one row."""
        raise DataError(self.label(row), record=self.place(row), found=found, expected=expected, remedy=remedy)


@dataclass
class Axis:
    """A regular axis and the row that fills each of its steps.

    Attributes
    ----------
    start
        Start of each step (time), minutes since 1970-01-01, local standard time.
    row
        Row of the source of each step (time), -1 where there is none; None where row i fills step i.
    duplicates, conflicts, unsorted
        Steps (index on the axis) with a row that was double, contradictory, or earlier than the row before it.
    """

    step: Step
    start: Minutes
    row: NDArray[np.int64] | None
    duplicates: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    conflicts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    unsorted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def present(self) -> NDArray[np.bool_]:
        """Steps (time) that have a row."""
        return np.ones(self.start.size, bool) if self.row is None else self.row >= 0

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (row) on the axis (time), NaN where there is no row."""
        if self.row is None:
            return values
        spread = np.full(self.start.size, np.nan)
        present = self.row >= 0
        spread[present] = values[self.row[present]]
        return spread


def find_step(minutes: Minutes, rows: Rows) -> Step:
    """Resolution of stamps: the most frequent distance between neighbours.

    Raises
    ------
    DataError
        No distance prevails, it does not divide a day, or the resolution changes within the file.
    """
    ordered = minutes if (np.diff(minutes) > 0).all() else np.unique(minutes)
    distances = np.diff(ordered)
    if distances.size == 0:
        rows.refuse(
            0,
            found="a single stamp",
            expected="at least two, to tell the resolution",
            remedy="Give a file with more rows.",
        )
    lengths, counts = np.unique(distances, return_counts=True)
    step = int(lengths[np.argmax(counts)])
    if counts.max() * 2 > distances.size and DAY % step:
        rows.refuse(
            0,
            found=f"steps of {step} min",
            expected="a resolution that divides a day, such as 30 min",
            remedy="Average the data to such a resolution first.",
        )
    if counts.max() * 2 <= distances.size:
        common = ", ".join(f"{lengths[i]} min ({counts[i]}x)" for i in np.argsort(-counts)[:3])
        rows.refuse(
            0,
            found=f"stamps at irregular distances: {common}",
            expected="one resolution that divides a day, such as 30 min",
            remedy="Average the data to one resolution first.",
        )
    _refuse_change(minutes, ordered, distances, step, rows)
    return Step(step)


def _refuse_change(minutes: Minutes, ordered: Minutes, distances: Minutes, step: int, rows: Rows) -> None:
    other = distances != step
    if np.count_nonzero(other) < LONG_RUN:
        return
    change = np.flatnonzero(np.diff(distances, prepend=distances[0] - 1))
    length = np.diff(change, append=distances.size)
    long = (length >= LONG_RUN) & (distances[change] != step)
    if long.any():
        first = int(change[np.argmax(long)])
        rows.refuse(
            int(np.argmax(minutes == ordered[first])),
            found=f"{int(length[np.argmax(long)])} steps of {distances[first]} min from here on",
            expected=f"steps of {step} min throughout",
            remedy="Give one file for each resolution, or average to one.",
        )


def regular(
    minutes: Minutes, step: int, columns: Sequence[NDArray[np.float64]], rows: Rows, *, check_clock: bool
) -> Axis:
    """Put rows on a regular axis.

    Parameters
    ----------
    minutes
        Start of the interval of each row (row).
    step
        Resolution in minutes.
    columns
        All values that were read (row), to tell double rows from contradictory ones.
    check_clock
        Look for the repeated and the missing hour of daylight-saving time.

    Raises
    ------
    DataError
        A stamp is off the grid, far from all others, or of a clock that changes.
    """
    distances = np.diff(minutes)
    if (distances == step).all():
        return Axis(Step(step), minutes, None)
    backwards = np.flatnonzero(distances < 0) + 1
    order = np.argsort(minutes, kind="stable")
    ordered = minutes[order]
    _refuse_off_grid(minutes, step, rows)
    size = int(ordered[-1] - ordered[0]) // step + 1
    if size > MAX_EMPTY_FACTOR * minutes.size + DAY:
        far = int(order[0] if ordered[1] - ordered[0] > ordered[-1] - ordered[-2] else order[-1])
        rows.refuse(
            far,
            found=f"the stamp {text_of(minutes[far])}, far from all others",
            expected=f"{minutes.size} rows within a few years",
            remedy="Mend or delete this line.",
        )
    kept, conflicts, duplicates = _judge_doubles(order, ordered, columns, rows)
    if check_clock:
        _refuse_clock_change(minutes, ordered, conflicts, step, rows)
    start = np.arange(size, dtype=np.int64) * step + ordered[0]
    row = np.full(size, -1, dtype=np.int64)
    row[(minutes[kept] - ordered[0]) // step] = kept
    row[(conflicts - ordered[0]) // step] = -1
    return Axis(
        Step(step),
        start,
        row,
        (duplicates - ordered[0]) // step,
        (conflicts - ordered[0]) // step,
        (minutes[backwards] - ordered[0]) // step,
    )


def _refuse_off_grid(minutes: Minutes, step: int, rows: Rows) -> None:
    phases, counts = np.unique(minutes % step, return_counts=True)
    if phases.size > 1:
        phase = int(phases[np.argmax(counts)])
        first = int(np.argmax(minutes % step != phase))
        rows.refuse(
            first,
            found=f"the stamp {text_of(minutes[first])}, off the grid like {int(counts.sum() - counts.max())} in all",
            expected=f"stamps every {step} min, {phase} min past",
            remedy="Mend or delete these lines; nothing is moved or averaged silently.",
        )


def _judge_doubles(
    order: NDArray[np.int64], ordered: Minutes, columns: Sequence[NDArray[np.float64]], rows: Rows
) -> tuple[NDArray[np.int64], Minutes, Minutes]:
    """Rows to keep; stamps whose rows contradict each other; stamps of each surplus row that does not.

    Two rows contradict each other when a column holds two different values; a missing value contradicts nothing, and
    is filled from the other row (one file with the fluxes, one with the weather).

    Raises
    ------
    DataError
        Rows of two files contradict each other; both are named.
    """
    first_of_stamp = np.r_[True, np.diff(ordered) != 0]
    if first_of_stamp.all():
        return order, np.empty(0, np.int64), np.empty(0, np.int64)
    leader = np.maximum.accumulate(np.where(first_of_stamp, np.arange(order.size), 0))
    rank = np.arange(order.size) - leader
    conflict = np.zeros(order.size, bool)
    for turn in range(1, int(rank.max()) + 1):
        at = np.flatnonzero(rank == turn)
        one, other = order[leader[at]], order[at]
        for column in columns:
            a, b = column[one], column[other]
            differ = (a != b) & np.isfinite(a) & np.isfinite(b)
            if differ.any():
                conflict[at[differ]] = True
                _refuse_two_files(one[differ], other[differ], ordered[at[differ]], rows)
            column[one] = np.where(np.isfinite(a), a, b)
    conflicts = np.unique(ordered[conflict])
    surplus = ordered[~first_of_stamp]
    return order[first_of_stamp], conflicts, surplus[~np.isin(surplus, conflicts)]


def _refuse_two_files(one: NDArray[np.int64], other: NDArray[np.int64], stamps: Minutes, rows: Rows) -> None:
    for a, b, stamp in zip(one.tolist(), other.tolist(), stamps.tolist(), strict=True):
        if rows.file(a) != rows.file(b):
            rows.refuse(
                a,
                found=f"other values at {text_of(stamp)} than {rows.label(b)} has in its {rows.place(b)}",
                expected="one file for each period, or files that agree where they overlap",
                remedy="Remove one of the two, or let `path` name the file to use.",
            )


def _refuse_clock_change(minutes: Minutes, ordered: Minutes, conflicts: Minutes, step: int, rows: Rows) -> None:
    """Refuse the signature of daylight-saving time.

    Autumn: on one night the stamps of exactly one hour before 04:00 stand twice with different values.
    Spring: exactly one hour before 04:00 on a Sunday has no stamp, while the days around it are complete.
    """
    if 60 % step:
        return
    per_hour = 60 // step
    days, counts = np.unique(conflicts // DAY, return_counts=True)
    for day in days[counts == per_hour]:
        inside = conflicts[conflicts // DAY == day]
        if inside[-1] - inside[0] == 60 - step and inside[0] % 60 == 0 and inside[-1] % DAY < 240:
            lone_hour = per_hour == 1 and (day - SUNDAY) % 7 != 0
            if not lone_hour:
                _refuse_clock(minutes, int(inside[0]), "twice, with different values", rows)
    unique = ordered[np.r_[True, np.diff(ordered) > 0]]
    gaps = np.flatnonzero(np.diff(unique) == 60 + step)
    for gap in gaps:
        missing = int(unique[gap]) + step
        before, after = max(int(gap) - DAY // step, 0), min(int(gap) + 1 + DAY // step, unique.size - 1)
        complete = int(unique[after] - unique[before]) == (after - before) * step + 60
        if missing % 60 == 0 and missing % DAY < 240 and (missing // DAY - SUNDAY) % 7 == 0 and complete:
            _refuse_clock(minutes, missing, "not at all, while the days around it are complete", rows)


def _refuse_clock(minutes: Minutes, hour: int, how_often: str, rows: Rows) -> NoReturn:
    row = int(np.argmax(minutes >= hour))
    rows.refuse(
        row,
        found=f"the hour from {text_of(hour)} {how_often}: the stamps follow daylight-saving time",
        expected="local standard time all year, without clock changes",
        remedy="Export the data in standard time; or in UTC, with `clock: utc` and `utc_offset`; or, if the stamps are "
        "standard time after all, say so with `clock: standard`.",
    )


def calendar(minutes: Minutes, unit: str, columns: Sequence[NDArray[np.float64]], rows: Rows) -> Axis:
    """Put rows on an axis of weeks, months or years of the calendar (FLUXNET2015 WW, MM, YY).

    Weeks begin on 1 January and every seven days after it; the 52nd lasts to the end of the year.
    """
    backwards = np.flatnonzero(np.diff(minutes) < 0) + 1
    order = np.argsort(minutes, kind="stable")
    ordered = minutes[order]
    start = calendar_steps(int(ordered[0]), int(ordered[-1]), unit)
    position = np.searchsorted(start, minutes)
    wrong = ~np.isin(minutes, start)
    if wrong.any():
        first = int(np.argmax(wrong))
        rows.refuse(
            first,
            found=f"the stamp {text_of(minutes[first])}",
            expected=f"the first day of a {unit}",
            remedy="Check that the file has the resolution its name says.",
        )
    kept, conflicts, duplicates = _judge_doubles(order, ordered, columns, rows)
    row = np.full(start.size, -1, dtype=np.int64)
    row[position[kept]] = kept
    row[np.searchsorted(start, conflicts)] = -1
    return Axis(
        Step(7 * DAY if unit == "week" else None, unit),
        start,
        row,
        np.searchsorted(start, duplicates),
        np.searchsorted(start, conflicts),
        position[backwards],
    )


def calendar_steps(first: int, last: int, unit: str) -> Minutes:
    """Starts of the weeks, months or years of the calendar from ``first`` to ``last`` (minutes since 1970-01-01)."""
    code = {"week": "Y", "month": "M", "year": "Y"}[unit]
    begin = np.datetime64(first, "m").astype(f"datetime64[{code}]")
    end = np.datetime64(last, "m").astype(f"datetime64[{code}]")
    starts = np.arange(begin, end + 1).astype("datetime64[m]").astype(np.int64)
    if unit == "week":
        starts = (starts[:, None] + np.arange(52) * 7 * DAY).ravel()
    return np.asarray(starts[(starts >= first) & (starts <= last)], dtype=np.int64)


def step_lengths(axis: Axis) -> NDArray[np.int64]:
    """Length of each step in minutes (time)."""
    if axis.step.calendar is None:
        return np.full(axis.start.size, axis.step.minutes, dtype=np.int64)
    following = calendar_steps(int(axis.start[0]), int(axis.start[-1]) + 400 * DAY, axis.step.calendar)[1:]
    return following[: axis.start.size] - axis.start
