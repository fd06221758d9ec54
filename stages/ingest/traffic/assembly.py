"""Tables of one set, each with its own rows and sensors, to one TrafficSet.

Shapes: T time, S sensor, R road.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.config import Clock
from stages.ingest.traffic.grid import Axis, common_axis, in_order, put
from stages.ingest.traffic.schema import FACTORS, UNITS
from stages.ingest.traffic.sets import Array, Graph, Roads, TrafficSet
from stages.ingest.traffic.tables import Table, listed
from stages.ingest.traffic.zones import utc_of

#: Steps looked at together, so that masks stay small.
BLOCK_STEPS = 4096

#: Share of zero speeds from which on a set without a null value is told of.
MANY_ZEROS = 0.005


@dataclass
class Parts:
    """What a reader hands over.

    Attributes
    ----------
    tables
        Variables with the sensors as columns; the first one leads.
    roads
        A table with roads as columns.
    clock
        Time of the rows where the tables have no stamps.
    """

    reader: str
    tables: list[Table]
    null: float | None = None
    timezone: str | None = None
    clock: Clock | None = None
    step_minutes: int | None = None
    notes: list[str] = field(default_factory=list)
    files: Sequence[str] = ()
    roads: Table | None = None


def sensor_ids(tables: Sequence[Table]) -> tuple[str, ...]:
    """Sensors of all tables: those of the first, and then those that others add."""
    return tuple(dict.fromkeys(name for table in tables for name in table.sensors))


def assemble(
    parts: Parts, sensors: pl.DataFrame, graph: Graph | None = None, *, lane_order: str | None = None
) -> TrafficSet:
    """Put all tables on one grid of times and one list of sensors; the null value becomes NaN.

    Parameters
    ----------
    sensors
        Columns of ``schema.SENSOR_COLUMNS``, in the order of :func:`sensor_ids`.

    Raises
    ------
    DataError
        The files contradict each other, or hold an infinite value.
    """
    order = sensor_ids(parts.tables)
    notes = parts.notes
    axis, on_grid, roads = _gridded(parts)
    variables: dict[str, Array] = {}
    held: dict[str, NDArray[np.bool_]] = {}
    null = None if parts.null is None or np.isnan(parts.null) else parts.null
    for table, values_TS in zip(parts.tables, on_grid, strict=True):
        mask_TS = _without_null(table, values_TS, null)
        variables[table.variable] = _spread(table, values_TS, order, notes)
        if mask_TS is not None:
            held[table.variable] = _spread_mask(table, mask_TS, order)
        _tell_zeros(table, values_TS, null, notes)
    stamped = parts.tables[0].stamps is not None
    return TrafficSet(
        key="",
        reader=parts.reader,
        time_T=axis.minutes.astype("datetime64[m]"),
        variables=variables,
        units={table.variable: UNITS[table.variable][table.unit] for table in parts.tables},
        sensors=sensors,
        step_minutes=axis.step,
        clock=stamped or (parts.clock is not None and parts.clock.start is not None),
        timezone=parts.timezone,
        null={table.variable: null for table in parts.tables},
        held_null=held,
        graph=graph or Graph.none(),
        roads=roads,
        lane_order=lane_order,
        files=tuple(parts.files),
        source_files={table.variable: table.file for table in parts.tables},
        notes=tuple(notes),
    )


def _gridded(parts: Parts) -> tuple[Axis, list[Array], Roads | None]:
    """The axis, the values of each table on it, and those of the roads."""
    tables, notes = parts.tables, parts.notes
    if any((table.stamps is None) != (tables[0].stamps is None) for table in tables):
        raise DataError(
            tables[0].label,
            found="stamps in one file and none in another",
            expected="stamps in both: rows are joined by time, never by their number",
            remedy="Add the stamps to the file that lacks them.",
        )
    if tables[0].stamps is None:
        axis = _clock_axis(parts)
        if parts.roads is not None:
            raise DataError(
                parts.roads.label,
                found="roads beside sensors without stamps",
                expected="stamps in both: rows are joined by time, never by their number",
                remedy="Add the stamps to the file that lacks them.",
            )
        return axis, [table.values_RS for table in tables], None
    rows = [in_order(table, parts.timezone, notes) for table in tables]
    axis = common_axis(rows, parts.step_minutes, parts.timezone)
    on_grid = [put(each, axis, parts.timezone, notes) for each in rows]
    return axis, on_grid, _roads(parts, axis)


def _clock_axis(parts: Parts) -> Axis:
    clock = parts.clock
    assert clock is not None
    first, *others = parts.tables
    for table in others:
        if len(table.values_RS) != len(first.values_RS):
            raise DataError(
                table.label,
                found=f"{len(table.values_RS)} rows",
                expected=f"{len(first.values_RS)}, as in {first.label}: without stamps rows cannot be joined by time",
                remedy="Add stamps to both files.",
            )
    start = 0 if clock.start is None else utc_of(clock.start, parts.timezone)
    return Axis(start, clock.step_minutes, len(first.values_RS))


def _roads(parts: Parts, axis: Axis) -> Roads | None:
    table = parts.roads
    if table is None:
        return None
    if table.stamps is None:
        raise DataError(
            table.label,
            found=f"{len(table.values_RS)} rows without stamps",
            expected="stamps: roads and lanes are joined by time, never by row",
            remedy="Add the column of stamps.",
        )
    values_TR = put(in_order(table, parts.timezone, parts.notes), axis, parts.timezone, parts.notes)
    null = None if parts.null is None or np.isnan(parts.null) else parts.null
    _without_null(table, values_TR, null)
    return Roads(table.sensors, {table.variable: values_TR}, "file")


def _without_null(table: Table, values_TS: Array, null: float | None) -> NDArray[np.bool_] | None:
    """Turn the null value into NaN in place and say where it stood; convert a percentage; refuse infinities."""
    factor = np.float32(FACTORS.get(table.unit, 1.0))
    mask_TS = None if null is None else np.zeros(values_TS.shape, dtype=np.bool_)
    for first in range(0, len(values_TS), BLOCK_STEPS):
        part = values_TS[first : first + BLOCK_STEPS]
        infinite = np.isinf(part)
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise DataError(
                table.label,
                record=f"step {first + row}, sensor {table.sensors[column]!r}",
                found=f"the {table.variable} {part[row, column]}",
                expected="a finite number, or NaN where nothing was measured",
                remedy="Mend the value in the file.",
            )
        if mask_TS is not None:
            held = part == np.float32(null or 0.0)
            part[held] = np.nan
            mask_TS[first : first + BLOCK_STEPS] = held
        if factor != 1:
            part *= factor
    return mask_TS


def _spread(table: Table, values_TS: Array, order: Sequence[str], notes: list[str]) -> Array:
    """Columns in the order of all sensors, NaN for a sensor that the table does not have."""
    if table.sensors == tuple(order):
        return values_TS
    without = [name for name in order if name not in set(table.sensors)]
    if without:
        notes.append(
            f"{table.file}: {len(table.sensors)} of {len(order)} sensors have a {table.variable}; missing for "
            f"{listed(without)}"
        )
    spread_TS = np.full((len(values_TS), len(order)), np.nan, dtype=np.float32)
    spread_TS[:, _positions(table, order)] = values_TS
    return spread_TS


def _spread_mask(table: Table, mask_TS: NDArray[np.bool_], order: Sequence[str]) -> NDArray[np.bool_]:
    if table.sensors == tuple(order):
        return mask_TS
    spread_TS = np.zeros((len(mask_TS), len(order)), dtype=np.bool_)
    spread_TS[:, _positions(table, order)] = mask_TS
    return spread_TS


def _positions(table: Table, order: Sequence[str]) -> list[int]:
    place = {name: index for index, name in enumerate(order)}
    return [place[name] for name in table.sensors]


def _tell_zeros(table: Table, values_TS: Array, null: float | None, notes: list[str]) -> None:
    if table.variable != "speed" or null is not None or not values_TS.size:
        return
    zeros = sum(
        int(np.count_nonzero(values_TS[first : first + BLOCK_STEPS] == 0))
        for first in range(0, len(values_TS), BLOCK_STEPS)
    )
    if zeros > MANY_ZEROS * values_TS.size:
        notes.append(
            f"{table.file}: {zeros / values_TS.size:.1%} of the speeds are 0 and count as measured; if 0 means `not "
            "measured`, set `null_value: 0` under `format`"
        )
