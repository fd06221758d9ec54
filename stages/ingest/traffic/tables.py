"""One variable as one file gives it, before its rows are put on a grid of times.

Shapes: R row of the file, S sensor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.schema import Variable
from stages.ingest.traffic.sets import Array

AGAIN = "Copy or download it again."

#: Minute of a row without a stamp.
BLANK = np.iinfo(np.int64).min

_WHOLE = re.compile(r"(\d+)\.0+")


@dataclass(frozen=True)
class Stamps:
    """Times of the rows of a file.

    Attributes
    ----------
    minutes_R
        Minutes since 1970-01-01, ``BLANK`` where a row has no stamp.
    utc
        Whether they are in UTC; otherwise local time.
    """

    minutes_R: NDArray[np.int64]
    utc: bool = False


@dataclass(frozen=True)
class Table:
    """One variable of one file.

    Attributes
    ----------
    label
        The file as it is named in messages to the user.
    file
        Its name relative to the folder of the set.
    unit
        Unit as in params.yaml.
    values_RS
        Values, NaN where a cell is empty.
    stamps
        None where the file has no stamps.
    place
        Where a row stands in the file, such as ``line 12``.
    """

    label: str
    file: str
    variable: Variable
    unit: str
    sensors: tuple[str, ...]
    values_RS: Array
    stamps: Stamps | None
    place: Callable[[int], str]


def row_place(row: int) -> str:
    """Place of a row in a file without lines."""
    return f"row {row}"


def station(name: object) -> str:
    """A sensor's name as text: ``400001`` also where a table made a float of it (400001.0).

    Raises
    ------
    ValueError
        The name is a number that is not whole.
    """
    if isinstance(name, bytes):
        name = name.decode("utf-8")
    if isinstance(name, (float, np.floating)):
        if not float(name).is_integer():
            raise ValueError(f"{name} is no name of a sensor")
        return str(int(name))
    text = str(name).strip()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def distinct(names: Sequence[str], label: str | Path, what: str = "columns") -> tuple[str, ...]:
    """The names, after a look at whether each stands once and none is empty.

    Raises
    ------
    DataError
        The first name that stands twice, or the place of an empty one, is named.
    """
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        if not name:
            raise DataError(
                label,
                record=f"{what[:-1]} {index + 1}",
                found="no name",
                expected="the name of a sensor",
                remedy="Name it, or set `header: false` if the first line holds values.",
            )
        if name in seen:
            raise DataError(
                label,
                record=f"{what} {seen[name] + 1} and {index + 1}",
                found=f"the sensor {name!r} twice",
                expected="each sensor once",
                remedy="Delete or rename one of them.",
            )
        seen[name] = index
    return tuple(names)


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
