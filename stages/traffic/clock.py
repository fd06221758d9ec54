"""What the clock says of a step: time of day and day of week, in local time, as numbers a model reads.

Shape suffixes: T time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MINUTES_OF_DAY = 1440
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})")


class LocalTime(NamedTuple):
    """Local time of each step.

    Attributes
    ----------
    minute_T
        Minute of the day, 0 to 1439.
    weekday_T
        0 Monday to 6 Sunday; -1 where the set has no clock, and so no weekdays.
    day_T
        Number of the local day, from 0 with the first step.
    """

    minute_T: NDArray[np.int64]
    weekday_T: NDArray[np.int64]
    day_T: NDArray[np.int64]


def local_time(time_T: NDArray[np.datetime64], timezone: str | None = None, *, clock: bool = True) -> LocalTime:
    """Local time of UTC stamps; a clock change makes a day of 23 or 25 hours, and no step is lost.

    Parameters
    ----------
    time_T
        UTC, shape (time,).
    timezone
        IANA name of the local time zone, or a fixed offset such as -08:00; None: the stamps are local as they are.
    clock
        False: the stamps are counted from an arbitrary start, so that days are known and weekdays are not.
    """
    import polars as pl

    stamps_T = time_T.astype("datetime64[ms]")
    zone = timezone if clock else None
    offset = _OFFSET.fullmatch(zone or "")
    if offset is not None:
        minutes = (int(offset["hours"]) * 60 + int(offset["minutes"])) * (-1 if offset["sign"] == "-" else 1)
        stamps_T, zone = stamps_T + np.timedelta64(minutes, "m"), None
    local = pl.Series(stamps_T)
    if zone is not None:
        local = local.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None)
    minute_T = (local.dt.hour().cast(pl.Int64) * 60 + local.dt.minute()).to_numpy()
    day_T = local.dt.date().cast(pl.Int32).cast(pl.Int64).to_numpy()
    weekday_T = local.dt.weekday().cast(pl.Int64).to_numpy() - 1 if clock else np.full(len(day_T), -1, np.int64)
    return LocalTime(minute_T, weekday_T, day_T - day_T[0] if len(day_T) else day_T)


def slot_of_day(minute_T: NDArray[np.integer], step_minutes: float) -> NDArray[np.int64]:
    """Slot of the day of each step, 0 to ``steps_per_day - 1``."""
    return (minute_T // step_minutes).astype(np.int64)


def steps_per_day(step_minutes: float) -> int:
    """Steps of a day of 24 hours; at least 1."""
    return max(1, round(MINUTES_OF_DAY / step_minutes))


def day_circle(minute_T: NDArray[np.integer]) -> NDArray[np.float32]:
    """Sine and cosine of the time of day, shape (time, 2): midnight is next to 23:55."""
    angle_T = 2 * np.pi * np.asarray(minute_T, dtype=np.float64) / MINUTES_OF_DAY
    return np.stack([np.sin(angle_T), np.cos(angle_T)], axis=-1).astype(np.float32)


def weekend(weekday_T: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether each step lies on a Saturday or a Sunday; nowhere in a set without a clock."""
    return np.asarray(weekday_T) >= 5
