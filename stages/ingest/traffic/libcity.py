"""LibCity's atomic files: NAME.geo (sensors), NAME.rel (edges), NAME.dyna (values, a line for each sensor and time).

The .dyna file is read twice, in blocks: once for its times, once for its values, so that memory grows with the result
alone. LibCity's converters write local times with a `Z` behind them; they are taken as local.

Shapes: T time, S sensor.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic import delimited, sensors, stamps
from stages.ingest.traffic.assembly import Parts, assemble
from stages.ingest.traffic.config import LibCity
from stages.ingest.traffic.folder import Folder
from stages.ingest.traffic.graph import Edge, from_edges
from stages.ingest.traffic.schema import MINUTES_PER_DAY, Variable
from stages.ingest.traffic.sets import Array, Graph, TrafficSet
from stages.ingest.traffic.tables import AGAIN, Stamps, Table, distinct, listed, row_place, station

#: Names that LibCity's converters give the variables.
COLUMNS: dict[str, Variable] = {
    "traffic_speed": "speed",
    "speed": "speed",
    "traffic_flow": "flow",
    "flow": "flow",
    "traffic_occupancy": "occupancy",
    "occupancy": "occupancy",
}


def read(path: Path, options: LibCity) -> TrafficSet:
    """Read the atomic files of one set of sensors.

    Raises
    ------
    DataError
        A file is missing or lacks a column, or names a sensor that .geo does not have.
    """
    folder = Folder(path)
    notes: list[str] = []
    dyna = folder.one(f"{options.name}.dyna" if options.name else None, "name", ["*.dyna"], "one .dyna file")
    settings = _settings(folder, dyna)
    geo = folder.named(f"{settings.get('geo_file', dyna.stem)}.geo", "name")
    ids, known = _places(geo)
    tables = _values(dyna, folder.relative(dyna), options, ids, settings, notes)
    given = folder.maybe(options.sensors, "sensors", ["sensors.csv"], "a table of sensors")
    if given is not None:
        for name, row in sensors.read(given, ids, notes).items():
            known[name] = known.get(name, {}) | row
    return assemble(
        Parts(
            reader=options.reader,
            tables=tables,
            null=options.null_value,
            timezone=options.timezone,
            step_minutes=options.step_minutes or _step(settings),
            notes=notes,
            files=folder.read,
        ),
        sensors.table(ids, known),
        _graph(folder, options, dyna, settings, ids, notes),
    )


def _settings(folder: Folder, dyna: Path) -> dict[str, Any]:
    """The block ``info`` of config.json, empty where there is none."""
    file = dyna.parent / "config.json"
    if not file.is_file():
        return {}
    try:
        content = json.loads(folder.taken(file).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(file, found=f"no JSON ({error})", expected="LibCity's config", remedy=AGAIN) from None
    info = content.get("info", {}) if isinstance(content, dict) else {}
    return info if isinstance(info, dict) else {}


def _step(settings: Mapping[str, Any]) -> int | None:
    seconds = settings.get("time_intervals")
    minutes = seconds / 60 if isinstance(seconds, (int, float)) else 0
    return int(minutes) if minutes >= 1 and minutes == int(minutes) and MINUTES_PER_DAY % int(minutes) == 0 else None


def _rows(file: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each line, after a look at whether the columns that are needed are there."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        reader = csv.DictReader(stream)
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise DataError(
                file,
                record="line 1",
                found=f"the columns {listed(list(reader.fieldnames or ()), 8)}",
                expected=f"also {', '.join(missing)}",
                remedy="Name the set under `format.name`; sets of a grid, of trips or of areas are not read.",
            )
        for row in reader:
            yield reader.line_num, {name: cell or "" for name, cell in row.items() if isinstance(cell, str)}


def _places(file: Path) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
    """Sensors in order, and where they stand (the middle of a line)."""
    names, known = [], {}
    for line, row in _rows(file, ("geo_id",)):
        name = station(row["geo_id"])
        names.append(name)
        try:
            points = np.array(json.loads(row.get("coordinates") or "[]"), dtype=np.float64).reshape(-1, 2)
        except (ValueError, TypeError):
            raise DataError(
                file,
                record=f"line {line}, column 'coordinates'",
                found=repr(row.get("coordinates", "")[:40]),
                expected="[longitude, latitude], or a list of such points",
                remedy="Mend the cell.",
            ) from None
        if len(points):
            longitude, latitude = points.mean(axis=0)
            known[name] = {"longitude": float(longitude), "latitude": float(latitude)}
    return distinct(names, file, "rows"), known


def _values(
    file: Path, name: str, options: LibCity, ids: tuple[str, ...], settings: Mapping[str, Any], notes: list[str]
) -> list[Table]:
    dialect = delimited.look(file, delimiter=",", header=True)
    header = dialect.names or ()
    columns = _columns(file, header, options, settings, notes)
    time, entity = (_column(file, header, wanted) for wanted in ("time", "entity_id"))
    times = _times(dialect, time)
    order = np.argsort(times["minute"].to_numpy(), kind="stable")
    minutes = times["minute"].to_numpy()[order]
    slots = dict(zip(times["text"].to_numpy()[order].tolist(), range(len(minutes)), strict=True))
    place = {sensor: index for index, sensor in enumerate(ids)}
    values: list[Array] = [np.full((len(minutes), len(ids)), np.nan, dtype=np.float32) for _ in columns]
    seen_TS = np.zeros((len(minutes), len(ids)), dtype=np.bool_)
    for block in delimited.blocks(dialect, list(columns), [time, entity]):
        row_T = _codes(block.texts[f"column_{time + 1}"], slots)
        column_S = _sensors(file, block, entity, place)
        _put(file, block, (row_T, column_S), values, seen_TS, notes)
    silent = np.flatnonzero(~seen_TS.any(axis=0))
    without = [ids[index] for index in silent]
    if without:
        notes.append(f"{name}: no value for {len(without)} of {len(ids)} sensors: {listed(without)}")
    units = options.units.model_dump()
    return [
        Table(str(file), name, variable, units[variable], ids, values_TS, Stamps(minutes), row_place)
        for variable, values_TS in zip(columns.values(), values, strict=True)
    ]


def _columns(
    file: Path, header: tuple[str, ...], options: LibCity, settings: Mapping[str, Any], notes: list[str]
) -> dict[int, Variable]:
    """Columns that are variables, by the options or by the names that LibCity uses."""
    wanted: dict[str, Variable] = dict(options.columns)
    if not wanted:
        stated = settings.get("data_col", [])
        for column in [stated] if isinstance(stated, str) else [*stated, *header]:
            if column in COLUMNS and column in header and COLUMNS[column] not in wanted.values():
                wanted[column] = COLUMNS[column]
    if not wanted:
        raise DataError(
            file,
            record="line 1",
            found=f"the columns {listed(list(header), 8)}",
            expected=f"one of {', '.join(COLUMNS)}",
            remedy="Say which column is what: `columns: {COLUMN: speed}` under `format`.",
        )
    rest = [name for name in header if name not in wanted and name not in ("dyna_id", "type", "time", "entity_id")]
    if rest:
        notes.append(f"{file.name}: the columns {listed(rest, 8)} are not read")
    return {_column(file, header, name): variable for name, variable in wanted.items()}


def _column(file: Path, header: tuple[str, ...], name: str) -> int:
    if name not in header:
        raise DataError(
            file,
            record="line 1",
            found=f"the columns {listed(list(header), 8)}",
            expected=f"a column {name!r}",
            remedy="Correct `format.columns`; sets of a grid or of trips are not read.",
        )
    return header.index(name)


def _times(dialect: delimited.Dialect, column: int) -> pl.DataFrame:
    """Each text of a time once, with its minute; two texts of one minute are one time."""
    texts = pl.Series("text", [], dtype=pl.String)
    for block in delimited.blocks(dialect, [], [column]):
        texts = pl.concat([texts, block.texts.to_series().unique(maintain_order=True).alias("text")]).unique(
            maintain_order=True
        )
    local = texts.str.replace("Z$", "")
    found = stamps.of_series(local, None, str(dialect.file), lambda row: f"time {texts[row]!r}")
    frame = pl.DataFrame({"text": texts, "minute": found.minutes_R})
    twice = frame.filter(pl.col("minute").is_duplicated())
    if twice.height:
        raise DataError(
            dialect.file,
            found=f"the times {listed(twice['text'].to_list()[:2])} for one moment",
            expected="one way of writing a time",
            remedy="Write all times alike.",
        )
    return frame


def _codes(texts: pl.Series, codes: Mapping[str, int]) -> NDArray[np.int64]:
    return texts.replace_strict(codes, default=-1, return_dtype=pl.Int64).to_numpy()


def _sensors(file: Path, block: delimited.Block, entity: int, place: Mapping[str, int]) -> NDArray[np.int64]:
    names = block.texts[f"column_{entity + 1}"]
    column_S = _codes(names, place)
    unknown = np.flatnonzero(column_S < 0)
    if unknown.size:
        row = int(unknown[0])
        raise DataError(
            file,
            record=f"line {block.lines_R[row]}",
            found=f"the sensor {names[row]!r}, which .geo does not have",
            expected=f"one of its {len(place)} sensors",
            remedy="Complete the .geo file, or take the sensor out of the .dyna file.",
        )
    return column_S


def _put(
    file: Path,
    block: delimited.Block,
    at: tuple[NDArray[np.int64], NDArray[np.int64]],
    values: list[Array],
    seen_TS: NDArray[np.bool_],
    notes: list[str],
) -> None:
    """Put the rows of a block in their places; a place that is filled already must hold the same values."""
    width = seen_TS.shape[1]
    _, first = np.unique(at[0] * width + at[1], return_index=True)
    fresh = np.zeros(len(at[0]), dtype=np.bool_)
    fresh[first] = True
    fresh &= ~seen_TS[at]
    new = at[0][fresh], at[1][fresh]
    numbers_RN = block.numbers_RN.astype(np.float32)
    for index, values_TS in enumerate(values):
        values_TS[new] = numbers_RN[fresh, index]
    seen_TS[new] = True
    for row in np.flatnonzero(~fresh):
        spot = int(at[0][row]), int(at[1][row])
        held = np.array([values_TS[spot] for values_TS in values])
        if not np.array_equal(held, numbers_RN[row], equal_nan=True):
            raise DataError(
                file,
                record=f"line {block.lines_R[row]}",
                found=f"{listed([f'{value:g}' for value in numbers_RN[row]])} where a line before has "
                f"{listed([f'{value:g}' for value in held])} for the same sensor and time",
                expected="one line for each sensor and time",
                remedy="Delete the wrong one. Nothing is averaged.",
            )
        notes.append(f"{file.name}, line {block.lines_R[row]}: repeats a line before; merged")


def _graph(
    folder: Folder, options: LibCity, dyna: Path, settings: Mapping[str, Any], ids: tuple[str, ...], notes: list[str]
) -> Graph | None:
    """Edges of the .rel file; weights are distances where LibCity is told to turn them into weights."""
    file = dyna.parent / f"{settings.get('rel_file', dyna.stem)}.rel"
    if not file.is_file():
        return None
    folder.taken(file)
    needed = ("origin_id", "destination_id")
    weight = options.weight or settings.get("weight_col")
    weight = weight[0] if isinstance(weight, list) and weight else weight
    edges = []
    for line, row in _rows(file, (*needed, str(weight)) if weight else needed):
        text = row[str(weight)] if weight else "1"
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not np.isfinite(value) or value < 0:
            raise DataError(
                file,
                record=f"line {line}, column {str(weight)!r}",
                found=repr(text[:40]),
                expected="a weight or a distance",
                remedy="Mend or delete the line.",
            )
        edges.append(Edge(station(row["origin_id"]), station(row["destination_id"]), value, f"line {line}"))
    kind = "distance" if weight and settings.get("calculate_weight_adj") is True else "adjacency"
    if kind == "adjacency":
        edges = [edge for edge in edges if edge.weight > 0]
    return from_edges(file, edges, ids, dyna.name, directed=options.directed, notes=notes, kind=kind)
