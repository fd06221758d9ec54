"""BasicTS, both layouts: data.dat (or data.npz) with desc.json, and {train,val,test}_data.npy with meta.json.

The older one holds (time, sensor, feature), where the first feature is the variable and the others tell the time of
day and the like; the newer one is cut into three parts, which follow each other. Neither says when it starts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.ingest.traffic.arrays import Source, members, read_features, read_raw, shape_of
from stages.ingest.traffic.assembly import Parts, assemble
from stages.ingest.traffic.config import BasicTs, Clock
from stages.ingest.traffic.folder import Folder
from stages.ingest.traffic.graph import nodes_of_pickle, read_adjacency, read_ids
from stages.ingest.traffic.schema import MINUTES_PER_DAY
from stages.ingest.traffic.sets import Array, Graph, TrafficSet
from stages.ingest.traffic.tables import AGAIN, Table, row_place
from stages.ingest.traffic.wide import known_sensors, named_graph

PARTS = ("train", "val", "test")


def read(path: Path, options: BasicTs) -> TrafficSet:
    """Read a set in the layout that its folder has.

    Raises
    ------
    DataError
        The description is missing, or contradicts the data.
    """
    folder = Folder(path)
    notes: list[str] = []
    described = folder.one(None, "path", ["meta.json", "desc.json"], "one meta.json or desc.json")
    told = _description(described)
    newer = described.name.lower() == "meta.json"
    values_TS, name = _newer(folder, described, told) if newer else _older(folder, described, told, notes)
    step = options.step_minutes or _step(described, told)
    null = options.null_value if options.null_value is not None else _null(told, notes, described.name)
    adjacency = folder.maybe(options.adjacency, "adjacency", ["adj_mx*.pkl"], "an adjacency matrix")
    ids = _ids(folder, options, adjacency, values_TS.shape[1], name)
    table = Table(str(folder.root / name), name, options.variable, options.unit, ids, values_TS, None, row_place)
    return assemble(
        Parts(
            reader=options.reader,
            tables=[table],
            null=null,
            timezone=options.timezone,
            clock=Clock(start=options.start, step_minutes=step),
            notes=notes,
            files=folder.read,
        ),
        known_sensors(folder, options.sensors, ids, notes),
        _graph(folder, options, adjacency, table, notes),
    )


def _description(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(file, found=f"no JSON ({error})", expected="a description", remedy=AGAIN) from None
    shape = told.get("shape") if isinstance(told, dict) else None
    if not isinstance(shape, list) or not all(isinstance(size, int) and size > 0 for size in shape):
        raise DataError(
            file,
            record="shape",
            found=repr(shape),
            expected="the shape of the data, such as [34272, 207]",
            remedy=AGAIN,
        )
    return dict(told)


def _older(folder: Folder, described: Path, told: dict[str, Any], notes: list[str]) -> tuple[Array, str]:
    """The first feature of data.dat or data.npz."""
    shape = tuple(told["shape"])
    file = folder.one(None, "path", ["data.dat", "data.npz"], "one data.dat or data.npz")
    if len(shape) != 3:
        raise DataError(
            described, record="shape", found=f"{list(shape)}", expected="[time, sensor, feature]", remedy=AGAIN
        )
    features = [str(name) for name in told.get("feature_description", [])]
    if len(features) > 1:
        notes.append(f"{file.name}: the features {', '.join(features[1:])} are not read")
    if file.suffix == ".dat":
        return read_raw(file, (shape[0], shape[1], shape[2]), 1)[0], folder.relative(file)
    names = members(file)
    source = Source(file, "data" if "data" in names else names[0] if len(names) == 1 else "data")
    if source.member not in names:
        raise DataError(file, found=f"the arrays {', '.join(names)}", expected="an array `data`", remedy=AGAIN)
    _check_shape(file, shape_of(source), shape, described)
    return read_features(source, 1)[0], folder.relative(file)


def _newer(folder: Folder, described: Path, told: dict[str, Any]) -> tuple[Array, str]:
    """The three parts, one behind the other."""
    shape = tuple(told["shape"])
    files = [folder.one(None, "path", [f"{part}_data.npy"], f"one {part}_data.npy") for part in PARTS]
    shapes = [shape_of(Source(file)) for file in files]
    for file, found in zip(files, shapes, strict=True):
        if found[1:] != shape[1:]:
            _check_shape(file, found, (found[0], *shape[1:]), described)
    steps = sum(found[0] for found in shapes)
    if steps != shape[0]:
        raise DataError(
            described,
            record="shape",
            found=f"{shape[0]} steps",
            expected=f"{steps}: those of {', '.join(file.name for file in files)} together",
            remedy="The parts must follow each other without overlap: copy all of them again.",
        )
    _check_joints(folder, told)
    values_TS: Array = np.empty((steps, shape[1]), dtype=np.float32)
    first = 0
    for file in files:
        part = read_features(Source(file), 1)[0]
        values_TS[first : first + len(part)] = part
        first += len(part)
    return values_TS, folder.relative(files[0])


def _check_joints(folder: Folder, told: dict[str, Any]) -> None:
    """Where the parts tell the time of day, one must go on where the one before it ends."""
    names = [str(name) for name in told.get("timestamps_description", [])]
    files = [folder.root / f"{part}_timestamps.npy" for part in PARTS]
    step = told.get("frequency (minutes)")
    if "time of day" not in names or not isinstance(step, (int, float)) or not all(file.is_file() for file in files):
        return
    of_day = [read_features(Source(folder.taken(file)), 1)[0][:, names.index("time of day")] for file in files]
    for before, after, file in zip(of_day[:-1], of_day[1:], files[1:], strict=True):
        gap = (float(after[0]) - float(before[-1])) * MINUTES_PER_DAY % MINUTES_PER_DAY
        if abs(gap - float(step)) > 0.5:
            raise DataError(
                file,
                record="row 0",
                found=f"a time of day {gap:.0f} minutes behind the last row of the part before",
                expected=f"{step:g} minutes: parts that follow each other",
                remedy="The parts do not belong together, or overlap: copy all of them again.",
            )


def _check_shape(file: Path, found: tuple[int, ...], expected: tuple[int, ...], described: Path) -> None:
    if found != expected:
        raise DataError(
            file,
            found=f"an array of shape {found}",
            expected=f"{expected}, as {described.name} says",
            remedy="The two files are not of one set.",
        )


def _step(file: Path, told: dict[str, Any]) -> int:
    value = told.get("frequency (minutes)")
    if not isinstance(value, (int, float)) or value != int(value) or value < 1 or MINUTES_PER_DAY % int(value):
        raise DataError(
            file,
            record="frequency (minutes)",
            found=repr(value),
            expected="whole minutes that divide a day",
            remedy="Set `step_minutes` under `format` in params.yaml.",
        )
    return int(value)


def _null(told: dict[str, Any], notes: list[str], name: str) -> float | None:
    """The null value that the description states; NaN is none."""
    settings = told.get("regular_settings")
    stated = {key.lower(): value for key, value in settings.items()} if isinstance(settings, dict) else {}
    value = stated.get("null_val")
    if not isinstance(value, (int, float)) or np.isnan(value):
        return None
    notes.append(f"{name}: states the null value {value:g}; if {value:g} is a measurement, set `null_value: .nan`")
    return float(value)


def _ids(folder: Folder, options: BasicTs, adjacency: Path | None, sensors: int, data: str) -> tuple[str, ...]:
    file = None if options.ids is None else folder.named(options.ids, "ids")
    ids = read_ids(file) if file is not None else None
    if ids is None and adjacency is not None and adjacency.suffix == ".pkl":
        file, ids = adjacency, nodes_of_pickle(adjacency)
    if ids is None or file is None:
        return tuple(str(index) for index in range(sensors))
    if len(ids) != sensors:
        raise DataError(
            file,
            found=f"{len(ids)} sensors",
            expected=f"{sensors}, as in {data}",
            remedy="The list of nodes belongs to another set, or was cut.",
        )
    return ids


def _graph(folder: Folder, options: BasicTs, adjacency: Path | None, table: Table, notes: list[str]) -> Graph | None:
    if adjacency is None:
        return named_graph(folder, options, table, notes)
    return read_adjacency(adjacency, table.sensors, table.file, directed=options.directed, notes=notes)
