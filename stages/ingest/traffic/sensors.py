"""sensors.parquet: where each sensor stands, as far as the files say.

A table of sensors (csv) has a column ``sensor`` or ``sensor_id``, and any of road, lane, lane_count, latitude and
longitude; the list of PEMS-BAY has no line of names: id, latitude, longitude.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import DataError
from stages.ingest.traffic.schema import SENSOR_COLUMNS
from stages.ingest.traffic.tables import distinct, listed, station

_OTHER_NAMES = {"sensor_id": "sensor", "id": "sensor", "lat": "latitude", "lon": "longitude", "lng": "longitude"}
_READ = ("sensor", "road", "lane", "lane_count", "latitude", "longitude")
_LIMITS = {"latitude": 90.0, "longitude": 180.0}


def table(sensors: Sequence[str], known: Mapping[str, Mapping[str, Any]] | None = None) -> pl.DataFrame:
    """Columns of ``schema.SENSOR_COLUMNS``, a row for each sensor in order; what is not known is null.

    The number of lanes of a road is that of its sensors where it is not given.
    """
    known = known or {}
    rows = [{"sensor": name, "position": place, **known.get(name, {})} for place, name in enumerate(sensors)]
    schema = {name: getattr(pl, kind) for name, kind in SENSOR_COLUMNS.items()}
    frame = pl.DataFrame([{name: row.get(name) for name in SENSOR_COLUMNS} for row in rows], schema=schema)
    of_road = pl.col("lane").count().over("road").cast(pl.Int64)
    lanes = pl.when(pl.col("road").is_not_null() & pl.col("lane").is_not_null()).then(of_road)
    return frame.with_columns(lane_count=pl.coalesce("lane_count", lanes))


def read(file: Path, sensors: Sequence[str], notes: list[str]) -> dict[str, dict[str, Any]]:
    """What a table of sensors says of the sensors of a set.

    Raises
    ------
    DataError
        It has no column of sensors, a sensor stands twice, or a value cannot be.
    """
    from stages.ingest.traffic.delimited import look, split

    first = look(file, header=False)
    with file.open(encoding="utf-8-sig", errors="replace") as stream:
        lines = [(number, split(line.rstrip("\r\n"), first.delimiter)) for number, line in enumerate(stream, 1)]
    lines = [(number, cells) for number, cells in lines if any(cell.strip() for cell in cells)]
    names = [_OTHER_NAMES.get(cell.strip().lower(), cell.strip().lower()) for cell in lines[0][1]]
    if "sensor" in names:
        lines = lines[1:]
    elif len(names) == 3 and _float(names[0]) is not None:
        names = ["sensor", "latitude", "longitude"]
    else:
        raise DataError(
            file,
            record="line 1",
            found=f"the columns {listed(names)}",
            expected=f"`sensor`, and any of {', '.join(_READ[1:])}",
            remedy="Name the columns so, or name another file under `format.sensors`.",
        )
    found = {}
    for number, cells in lines:
        row = _row(file, number, dict(zip(names, cells, strict=False)))
        found[row["sensor"]] = row
    distinct([station(cells[names.index("sensor")]) for _, cells in lines], file, "sensors")
    beside = [name for name in found if name not in set(sensors)]
    without = [name for name in sensors if name not in found]
    if beside:
        notes.append(f"{file.name}: {len(beside)} sensors that the data do not have: {listed(beside)}")
    if without:
        notes.append(f"{file.name}: nothing on {len(without)} of {len(sensors)} sensors: {listed(without)}")
    return {name: row for name, row in found.items() if name in set(sensors)}


def _row(file: Path, number: int, cells: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"sensor": station(cells["sensor"])}
    for name in _READ[1:]:
        text = cells.get(name, "").strip()
        if not text:
            continue
        if name == "road":
            row[name] = station(text)
            continue
        value = _float(text)
        whole = name in ("lane", "lane_count")
        if value is None or abs(value) > _LIMITS.get(name, 1e9) or (whole and not value.is_integer()):
            raise DataError(
                file,
                record=f"line {number}, column {name!r}",
                found=repr(text),
                expected=f"a {name.replace('_', ' ')}",
                remedy="Mend the cell; latitude comes before longitude where there are no names.",
            )
        row[name] = int(value) if whole else value
    return row


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
