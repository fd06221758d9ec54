"""PEMS03, PEMS04, PEMS07, PEMS08: ``data`` (time, sensor, flow | occupancy | speed) in a npz file, a csv of edges.

The files hold no times. The first day of each set is as published with it; steps are 5 minutes. PEMS03's edges name
stations, whose order in the data stands in PEMS03.txt; the others number the sensors from 0.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from stages.errors import DataError
from stages.ingest.traffic.arrays import Source, members, read_features, shape_of
from stages.ingest.traffic.assembly import Parts, assemble
from stages.ingest.traffic.config import Clock, Pems
from stages.ingest.traffic.folder import Folder
from stages.ingest.traffic.graph import from_edges, read_edges, read_ids
from stages.ingest.traffic.sets import Graph, TrafficSet
from stages.ingest.traffic.tables import Table, row_place
from stages.ingest.traffic.wide import known_sensors

STEP_MINUTES = 5

#: First day of the published sets, local time of California.
FIRST_DAY = {
    "PEMS03": datetime(2018, 9, 1),
    "PEMS04": datetime(2018, 1, 1),
    "PEMS07": datetime(2017, 5, 1),
    "PEMS08": datetime(2016, 7, 1),
}


def read(path: Path, options: Pems) -> TrafficSet:
    """Read the npz file, its edges, and its station numbers where it has some.

    Raises
    ------
    DataError
        The array is missing or of another form, or the edges name other sensors.
    """
    folder = Folder(path)
    notes: list[str] = []
    file = folder.one(options.file, "file", ["*.npz"], "one npz file")
    name = folder.relative(file)
    there = members(file)
    if "data" not in there:
        raise DataError(
            file,
            found=f"the arrays {', '.join(there) or '-'}",
            expected="an array `data` of (time, sensor, variable)",
            remedy="Name the npz file of the set under `format.file`.",
        )
    source = Source(file, "data")
    shape = shape_of(source)
    features = shape[2] if len(shape) == 3 else 1
    if features > len(options.variables):
        raise DataError(
            file,
            record="data",
            found=f"{features} variables",
            expected=f"{', '.join(options.variables)} at most",
            remedy="Name all variables in order under `format.variables`.",
        )
    arrays = read_features(source, features)
    ids = _ids(folder, options, arrays[0].shape[1], name)
    units = options.units.model_dump()
    tables = [
        Table(str(file), name, variable, units[variable], ids, values_TS, None, row_place)
        for variable, values_TS in zip(options.variables, arrays, strict=False)
    ]
    return assemble(
        Parts(
            reader=options.reader,
            tables=tables,
            null=options.null_value,
            timezone=options.timezone,
            clock=options.clock or _published(file, notes),
            notes=notes,
            files=folder.read,
        ),
        known_sensors(folder, options.sensors, ids, notes),
        _graph(folder, options, file, ids, notes),
    )


def _ids(folder: Folder, options: Pems, sensors: int, data: str) -> tuple[str, ...]:
    file = folder.maybe(options.ids, "ids", ["pems*.txt"], "the station numbers")
    if file is None:
        return tuple(str(index) for index in range(sensors))
    ids = read_ids(file)
    if len(ids) != sensors:
        raise DataError(
            file,
            found=f"{len(ids)} station numbers",
            expected=f"{sensors}, one for each sensor of {data}",
            remedy="Name the list of this set under `format.ids`.",
        )
    return ids


def _graph(folder: Folder, options: Pems, data: Path, ids: tuple[str, ...], notes: list[str]) -> Graph | None:
    beside = [folder.root / name for name in (options.sensors, "sensors.csv") if name]
    file = folder.maybe(options.distances, "distances", ["*.csv"], "a list of edges", beside)
    if file is None:
        return None
    return from_edges(file, read_edges(file), ids, data.name, directed=options.directed, notes=notes)


def _published(file: Path, notes: list[str]) -> Clock:
    """The clock of the set that the file's name says."""
    found = re.search(r"PEMS0?(3|4|7|8)(?!\d)", file.stem.upper())
    if found is None:
        raise DataError(
            file,
            found="a name that is none of PEMS03, PEMS04, PEMS07, PEMS08, and no times in the file",
            expected="the time of the first row",
            remedy="Set `clock: {start: 2018-01-01, step_minutes: 5}` under `format`; without a start days count from "
            "the first row.",
        )
    name = f"PEMS0{found[1]}"
    start = FIRST_DAY[name]
    notes.append(
        f"{file.name}: no times in the file; {name} as published starts on {start:%Y-%m-%d}, in steps of 5 min"
    )
    return Clock(start=start, step_minutes=STEP_MINUTES)
