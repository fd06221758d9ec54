"""Lane tables: one csv for each variable with a column for each lane, a csv of whole roads, an adjacency matrix.

All are joined by their stamps. A road of which no table tells is the mean of its lanes.

Shapes: T time, S sensor (lane), R road, L lane of one road.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.errors import DataError
from stages.ingest.traffic import delimited, sensors, stamps
from stages.ingest.traffic.assembly import Parts, assemble, sensor_ids
from stages.ingest.traffic.config import Lanes, Units
from stages.ingest.traffic.folder import Folder
from stages.ingest.traffic.graph import read_adjacency
from stages.ingest.traffic.schema import FASTEST_FIRST, RIGHTMOST_FIRST, VARIABLES, Variable
from stages.ingest.traffic.sets import Array, Graph, Roads, TrafficSet
from stages.ingest.traffic.tables import Table, distinct, listed, station
from stages.ingest.traffic.wide import time_column

#: Units and the order of the lanes, beside simulated tables.
SIMULATION = "simulation.json"

#: What pandas puts behind the name of a column that stands twice.
_SUFFIX = re.compile(r"(?P<name>.+)\.\d+")


def read(path: Path, options: Lanes) -> TrafficSet:
    """Read the lane tables of a folder, its road table and its graph.

    Raises
    ------
    DataError
        A column is no lane, a road is unknown, or the files contradict each other.
    """
    folder = Folder(path)
    notes: list[str] = []
    options, lane_order = _as_described(folder, options)
    files = _files(folder, options)
    tables = [_table(folder, file, variable, options, notes) for variable, file in files.items()]
    ids = sensor_ids(tables)
    known = _lanes(ids, options)
    road_file = folder.maybe(options.road, "road", ["*road*.csv"], "a road table")
    roads = None if road_file is None else _road_table(folder, road_file, options, known, notes)
    given = folder.maybe(options.sensors, "sensors", ["sensors.csv"], "a table of sensors")
    if given is not None:
        for name, row in sensors.read(given, ids, notes).items():
            known[name] = known[name] | row
    adjacency = folder.maybe(options.adjacency, "adjacency", ["*adj*.csv"], "an adjacency matrix")
    parts = Parts(
        reader=options.reader,
        tables=tables,
        null=options.null_value,
        timezone=options.timezone,
        step_minutes=options.step_minutes,
        notes=notes,
        files=folder.read,
        roads=roads,
    )
    order = lane_order or _lane_order(known)
    result = assemble(
        parts, sensors.table(ids, known), _graph(adjacency, ids, tables[0], options, notes), lane_order=order
    )
    return result if roads is not None else replace(result, roads=mean_of_lanes(result))


def _as_described(folder: Folder, options: Lanes) -> tuple[Lanes, str | None]:
    """The options with the units, and the order of the lanes, that a simulator wrote beside its tables.

    Raises
    ------
    DataError
        simulation.json is not what a simulator writes.
    """
    file = folder.root / SIMULATION
    if not file.is_file():
        return options, options.lane_order
    try:
        told: Any = json.loads(folder.taken(file).read_text(encoding="utf-8-sig"))
        units = Units.model_validate(told["units"])
        order = str(told["lane_order"])
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            file,
            found=f"no units or lane order ({' '.join(str(error).split())})",
            expected="what `python -m stages simulate` writes",
            remedy="Simulate again, or take the file away and set `units` and `lane_order` under `format`.",
        ) from None
    return options.model_copy(update={"units": options.units or units}), options.lane_order or order


def _files(folder: Folder, options: Lanes) -> dict[Variable, Path]:
    """The file of each variable, in the order of ``schema.VARIABLES``; a road table is none."""
    beside = [folder.root / name for name in (options.road, options.adjacency, options.sensors) if name]
    beside += folder.matching(["*road*.csv", "*adj*.csv", "sensors.csv"])
    if folder.path.is_file():
        return {"speed": folder.taken(folder.path)}
    found: dict[Variable, Path] = {}
    for variable in VARIABLES:
        name = getattr(options, variable)
        file = folder.maybe(name, variable, [f"*{variable}*.csv"], f"one table of {variable}s of lanes", beside)
        if file is not None:
            found[variable] = file
    if not found:
        raise DataError(
            folder.path,
            found="no csv with speed, flow or occupancy in its name",
            expected="a table of lanes",
            remedy="Name the files: `speed: FILE` under `format` in params.yaml.",
        )
    return found


def _read(folder: Folder, file: Path, variable: Variable, options: Lanes, notes: list[str], *, lanes: bool) -> Table:
    dialect = delimited.look(file, header=True)
    names = dialect.names or ()
    time = time_column(file, names, options.time)
    columns = [index for index in range(dialect.width) if index != time]
    texts, values_RS, place = delimited.read(dialect, columns, [time])
    times = stamps.of_series(texts.to_series(), options.time_format, str(file), place)
    found = [names[index] for index in columns]
    ids = _unsuffixed(file, found, options.lane_column, notes) if lanes else found
    unit = (options.units or Units()).model_dump()[variable]
    return Table(str(file), folder.relative(file), variable, unit, distinct(ids, file), values_RS, times, place)


def _table(folder: Folder, file: Path, variable: Variable, options: Lanes, notes: list[str]) -> Table:
    return _read(folder, file, variable, options, notes, lanes=True)


def _unsuffixed(file: Path, names: list[str], pattern: str, notes: list[str]) -> list[str]:
    """Names of lanes; a suffix such as `.1` that made a name unique is taken off where the name is free.

    Raises
    ------
    DataError
        A column is no lane, or its name without the suffix is taken.
    """
    result = []
    for name in names:
        bare = _SUFFIX.fullmatch(name)
        if re.fullmatch(pattern, name) is None and bare is not None and re.fullmatch(pattern, bare["name"]):
            if bare["name"] in names:
                raise DataError(
                    file,
                    record=f"column {name!r}",
                    found=f"the lane {bare['name']!r} twice",
                    expected="each lane once",
                    remedy="Delete the column that is wrong, or give it the name of its lane.",
                )
            notes.append(f"{file.name}, column {name!r}: read as {bare['name']!r}")
            name = bare["name"]
        if re.fullmatch(pattern, name) is None:
            raise DataError(
                file,
                record=f"column {name!r}",
                found="a name that is no lane",
                expected=f"names like {pattern}",
                remedy="Rename the column, or set `lane_column` under `format` in params.yaml.",
            )
        result.append(name)
    return result


def _lanes(ids: tuple[str, ...], options: Lanes) -> dict[str, dict[str, object]]:
    """Road and lane of each sensor, out of its name."""
    known: dict[str, dict[str, object]] = {}
    for name in ids:
        found = re.fullmatch(options.lane_column, name)
        assert found is not None
        known[name] = {"road": station(found["road"]), "lane": int(found["lane"])}
    return known


def _lane_order(known: dict[str, dict[str, object]]) -> str:
    """Lanes are counted from 0 at the right in SUMO, from 1 at the median in PeMS."""
    return RIGHTMOST_FIRST if min(int(str(row["lane"])) for row in known.values()) == 0 else FASTEST_FIRST


def _road_table(
    folder: Folder, file: Path, options: Lanes, known: dict[str, dict[str, object]], notes: list[str]
) -> Table:
    """Values of whole roads, their columns renamed to the roads of the lanes."""
    table = _read(folder, file, _road_variable(file), options, notes, lanes=False)
    there = {str(row["road"]) for row in known.values()}
    ids = []
    for name in table.sensors:
        found = re.fullmatch(options.road_column, name)
        road = station(found["road"]) if found is not None else name
        if road not in there:
            raise DataError(
                file,
                record=f"column {name!r}",
                found=f"the road {road!r}, of which there is no lane",
                expected=f"one of the roads {listed(sorted(there))}",
                remedy="Rename the column, or set `road_column` under `format` in params.yaml.",
            )
        ids.append(road)
    without = sorted(there - set(ids))
    if without:
        notes.append(f"{table.file}: no column for the roads {listed(without)}")
    return replace(table, sensors=distinct(ids, file))


def _road_variable(file: Path) -> Variable:
    return next((variable for variable in VARIABLES if variable in file.name.lower()), "speed")


def _graph(file: Path | None, ids: tuple[str, ...], table: Table, options: Lanes, notes: list[str]) -> Graph | None:
    if file is None:
        return None
    return read_adjacency(file, ids, table.file, directed=options.directed, notes=notes)


def mean_of_lanes(traffic: TrafficSet) -> Roads | None:
    """Each variable of a road as the mean of those of its lanes that are measured (T, R); None without roads."""
    positions = (
        traffic.sensors.filter(pl.col("road").is_not_null())
        .group_by("road", maintain_order=True)
        .agg(pl.col("position"))
    )
    if not positions.height:
        return None
    variables: dict[str, Array] = {}
    for variable, values_TS in traffic.variables.items():
        values_TR = np.empty((len(values_TS), positions.height), dtype=np.float32)
        for road, lanes in enumerate(positions["position"].to_list()):
            lanes_TL = values_TS[:, lanes]
            count_T = np.isfinite(lanes_TL).sum(axis=1)
            sum_T = np.nansum(lanes_TL, axis=1, dtype=np.float64)
            values_TR[:, road] = np.where(count_T > 0, sum_T / np.maximum(count_T, 1), np.nan)
        variables[variable] = values_TR
    return Roads(tuple(positions["road"].to_list()), variables, "mean of lanes")
