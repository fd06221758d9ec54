"""Small files in the exact layouts that users have; values are random speeds with a day shape, seeds are explicit.

Shapes: T time, S sensor.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import TypeAdapter

from stages.ingest.traffic.config import Format
from stages.ingest.traffic.sets import TrafficSet, open_set

Values = NDArray[np.float64]

START = datetime(2012, 3, 1)
STATIONS = ("773869", "767541", "767542")
_FORMAT: TypeAdapter[Any] = TypeAdapter(Format)


def opened(path: Path, format_: Any) -> TrafficSet:
    """A set, with the block ``format`` as it stands in params.yaml."""
    return open_set(path, _FORMAT.validate_python(format_), "lab")


def speeds(steps: int, sensors: int, seed: int = 0, step_minutes: int = 5) -> Values:
    """Speeds in mph (T, S) around 60, slower at 8 and 17 h, with two decimals."""
    random = np.random.default_rng(seed)
    hour_T = np.arange(steps) * step_minutes / 60 % 24
    slow_T = 20 * np.exp(-((hour_T - 8) ** 2)) + 25 * np.exp(-((hour_T - 17) ** 2))
    return np.round(62 - slow_T[:, None] + random.normal(0, 2, (steps, sensors)), 2)


def times(steps: int, start: datetime = START, step_minutes: int = 5) -> list[datetime]:
    return [start + timedelta(minutes=step_minutes * step) for step in range(steps)]


def csv(file: Path, header: Sequence[str], rows: Sequence[Sequence[object]], delimiter: str = ",") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [delimiter.join(header)] if header else []
    file.write_text("\n".join([*lines, *(delimiter.join(str(cell) for cell in row) for row in rows)]) + "\n")


# --- pandas in HDF5, attribute for attribute as pandas and PyTables write it


def hdf_fixed(
    file: Path,
    values: Values,
    ids: Sequence[Any] = STATIONS,
    stamps: Sequence[datetime] | None = None,
    key: str = "df",
    kind: str = "datetime64",
    **attributes: Any,
) -> None:
    """The layout of metr-la.h5 and pems-bay.h5; ``kind`` without a unit counts nanoseconds, as pandas below 3 does."""
    with h5py.File(file, "w") as stream:
        group = stream.create_group(key)
        _attributes(stream, {"CLASS": "GROUP", "VERSION": "1.0", "PYTABLES_FORMAT_VERSION": "2.1"})
        _attributes(group, {"CLASS": "GROUP", "VERSION": "1.0", "pandas_type": "frame", "encoding": "UTF-8"})
        _attributes(group, {"errors": "strict", "axis0_variety": "regular", "axis1_variety": "regular"})
        _attributes(group, {"block0_items_variety": "regular", "nblocks": np.int64(1), "ndim": np.int64(2)})
        for name in ("axis0", "block0_items"):
            _labels(group, name, ids)
        index = _array(group, "axis1", _nanoseconds(stamps or times(len(values)), kind))
        _attributes(index, {"kind": kind, "index_class": "datetime", "name": b"N."} | attributes)
        _array(group, "block0_values", np.asarray(values))


def hdf_table(
    file: Path,
    values: Values,
    ids: Sequence[Any] = STATIONS,
    stamps: Sequence[datetime] | None = None,
    key: str = "df",
    info: bytes = b"(dp0\n.",
    compression: str | None = None,
) -> None:
    """A frame that was written with ``format="table"``."""
    index = _nanoseconds(stamps or times(len(values)), "datetime64[ns]")
    rows = np.empty(len(values), dtype=[("index", "<i8"), ("values_block_0", "<f8", (values.shape[1],))])
    rows["index"], rows["values_block_0"] = index, values
    names = b"(lp0\n" + b"".join(_old_pickle(name) for name in ids) + b"."
    with h5py.File(file, "w") as stream:
        group = stream.create_group(key)
        _attributes(stream, {"CLASS": "GROUP", "VERSION": "1.0", "PYTABLES_FORMAT_VERSION": "2.1"})
        _attributes(group, {"CLASS": "GROUP", "VERSION": "1.0", "pandas_type": "frame_table", "encoding": "UTF-8"})
        _attributes(group, {"errors": "strict", "table_type": "appendable_frame", "levels": np.int64(1)})
        _attributes(group, {"nan_rep": "N.", "data_columns": b"(lp0\n.", "info": info})
        _attributes(
            group, {"index_cols": b"(lp0\n(I0\nVindex\np1\ntp2\na.", "values_cols": b"(lp0\nVvalues_block_0\np1\na."}
        )
        _attributes(group, {"non_index_axes": b"(lp0\n(I1\n(lp1\n" + names[5:-1] + b"tp9999\na."})
        table = group.create_dataset("table", data=rows, chunks=(min(len(rows), 2048),), compression=compression)
        _attributes(table, {"CLASS": "TABLE", "VERSION": "2.7", "TITLE": "", "NROWS": np.int64(len(rows))})
        _attributes(table, {"FIELD_0_NAME": "index", "FIELD_1_NAME": "values_block_0", "index_kind": "datetime64[ns]"})
        _attributes(
            table, {"values_block_0_dtype": "float64", "values_block_0_kind": names, "values_block_0_meta": "N."}
        )


def _nanoseconds(stamps: Sequence[datetime], kind: str) -> NDArray[np.int64]:
    unit = kind.partition("[")[2].rstrip("]") or "ns"
    return np.array(stamps, dtype=f"datetime64[{unit}]").astype(np.int64)


def _labels(group: Any, name: str, ids: Sequence[Any]) -> None:
    labels = np.array([each.encode() if isinstance(each, str) else each for each in ids])
    kind = {"S": "string", "i": "integer", "f": "float"}[labels.dtype.kind]
    _attributes(_array(group, name, labels), {"kind": kind, "name": b"N."})


def _array(group: Any, name: str, values: NDArray[Any]) -> Any:
    dataset = group.create_dataset(name, data=values)
    _attributes(
        dataset, {"CLASS": "ARRAY", "VERSION": "2.4", "FLAVOR": "numpy", "transposed": np.uint8(1), "TITLE": ""}
    )
    return dataset


def _attributes(thing: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, str):  # PyTables marks its texts as UTF-8
            encoded = value.encode()
            thing.attrs.create(name, encoded, dtype=h5py.string_dtype("utf-8", max(len(encoded), 1)))
        else:
            thing.attrs[name] = np.bytes_(value) if isinstance(value, bytes) else value


def _old_pickle(value: Any) -> bytes:
    return (b"I%d\na" % value) if isinstance(value, int) else b"V" + value.encode() + b"\na"


# --- pickles of Python 2


def python2(value: Any) -> bytes:
    """A pickle of protocol 2 as Python 2 and its numpy write it: lists, dictionaries, texts of bytes, ints, float32."""
    return b"\x80\x02" + _python2(value) + b"."


def _python2(value: Any) -> bytes:
    if isinstance(value, list):
        return b"](" + b"".join(_python2(each) for each in value) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(_python2(key) + _python2(held) for key, held in value.items()) + b"u"
    if isinstance(value, str):
        return _python2(value.encode("latin1"))
    if isinstance(value, bytes):
        return b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"M" + struct.pack("<H", value)
    array = np.ascontiguousarray(value, dtype=np.float32)
    shape = b"(" + b"".join(b"M" + struct.pack("<H", size) for size in array.shape) + b"t"
    kind = b"cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01" + shape + kind + b"\x89" + _python2(array.tobytes()) + b"tb"
    return b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R" + state


def adj_mx(file: Path, matrix: Values, ids: Sequence[str] = STATIONS) -> None:
    """DCRNN's adj_mx.pkl: [sensor_ids, sensor_id_to_ind, adj_mx] of Python 2."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(python2([list(ids), {name: index for index, name in enumerate(ids)}, matrix]))


ADJACENCY = np.array([[1.0, 0.5, 0.0], [0.25, 1.0, 0.0], [0.0, 0.75, 1.0]])


# --- whole sets


def metr_la(folder: Path, steps: int = 36, ids: Sequence[str] = STATIONS) -> Values:
    """metr-la.h5 with sensor_graph/{adj_mx.pkl, graph_sensor_ids.txt, distances, locations}; returns the speeds."""
    graph = folder / "sensor_graph"
    graph.mkdir(parents=True, exist_ok=True)
    values = speeds(steps, len(ids))
    values[4, 1] = 0
    hdf_fixed(folder / "metr-la.h5", values, ids)
    adj_mx(graph / "adj_mx.pkl", ADJACENCY, ids)
    (graph / "graph_sensor_ids.txt").write_text(",".join(ids))
    csv(
        graph / "distances_la_2012.csv",
        ["from", "to", "cost"],
        [["1201054", "1201054", 0.0], [ids[0], ids[1], 2610.9], [ids[1], "716331", 6460.3]],
    )
    csv(
        graph / "graph_sensor_locations.csv",
        ["index", "sensor_id", "latitude", "longitude"],
        [[index, name, 34.1 + index / 100, -118.3] for index, name in enumerate(ids)],
    )
    return values


def pems(folder: Path, name: str = "PEMS04", steps: int = 24, sensors: int = 4, variables: int = 3) -> Values:
    """NAME.npz and NAME.csv; PEMS03 with station numbers and PEMS03.txt. Returns data (T, S, variable)."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(4)
    data = np.stack(
        [random.integers(0, 300, (steps, sensors)), random.random((steps, sensors)), speeds(steps, sensors)]
    )
    data = np.moveaxis(data[:variables], 0, -1)
    np.savez_compressed(folder / f"{name}.npz", data=data)
    ids = [str(index) for index in range(sensors)]
    if name == "PEMS03":
        ids = [str(313344 + 10 * index) for index in range(sensors)]
        (folder / "PEMS03.txt").write_text("\n".join(ids) + "\n")
    edges = [[ids[index], ids[index + 1], round(100.5 + index, 1)] for index in range(sensors - 1)]
    csv(folder / f"{name}.csv", ["from", "to", "distance" if name == "PEMS03" else "cost"], edges)
    return data


def libcity(folder: Path, steps: int = 12, ids: Sequence[str] = STATIONS) -> Values:
    """NAME.geo, NAME.rel, NAME.dyna and config.json of a METR_LA in small; returns the speeds."""
    values = speeds(steps, len(ids))
    csv(
        folder / "METR_LA.geo",
        ["geo_id", "type", "coordinates"],
        [[name, "Point", f'"[-118.3{index}, 34.1{index}]"'] for index, name in enumerate(ids)],
    )
    csv(
        folder / "METR_LA.rel",
        ["rel_id", "type", "origin_id", "destination_id", "cost"],
        [[0, "geo", ids[0], ids[0], 0.0], [1, "geo", ids[0], ids[1], 1200.5], [2, "geo", ids[2], ids[1], 800.0]],
    )
    stamps = [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in times(steps)]
    csv(
        folder / "METR_LA.dyna",
        ["dyna_id", "type", "time", "entity_id", "traffic_speed"],
        [
            [sensor * steps + step, "state", stamps[step], name, values[step, sensor]]
            for sensor, name in enumerate(ids)
            for step in range(steps)
        ],
    )
    info = {"data_col": ["traffic_speed"], "weight_col": "cost", "data_files": ["METR_LA"], "geo_file": "METR_LA"}
    info |= {"rel_file": "METR_LA", "output_dim": 1, "time_intervals": 300, "init_weight_inf_or_zero": "inf"}  # type: ignore[dict-item]
    info |= {"set_weight_link_or_dist": "dist", "calculate_weight_adj": True, "weight_adj_epsilon": 0.1}  # type: ignore[dict-item]
    (folder / "config.json").write_text(json.dumps({"geo": {"including_types": ["Point"]}, "info": info}))
    return values


def basicts_old(folder: Path, steps: int = 24, ids: Sequence[str] = STATIONS, kind: str = "dat") -> Values:
    """data.dat (or data.npz), desc.json and adj_mx.pkl; returns the speeds."""
    folder.mkdir(parents=True, exist_ok=True)
    values = speeds(steps, len(ids))
    values[3, 2] = 0
    of_day = np.broadcast_to((np.arange(steps) / 288)[:, None], values.shape)
    data = np.stack([values, of_day, np.full(values.shape, 3 / 7)], axis=-1).astype(np.float32)
    if kind == "dat":
        (folder / "data.dat").write_bytes(data.tobytes())
    else:
        np.savez_compressed(folder / "data.npz", data=data)
    described = {
        "name": "METR-LA",
        "domain": "traffic speed",
        "shape": list(data.shape),
        "num_time_steps": steps,
        "num_nodes": len(ids),
        "num_features": 3,
        "feature_description": ["traffic speed", "time of day", "day of week"],
        "has_graph": True,
        "frequency (minutes)": 5,
        "regular_settings": {"INPUT_LEN": 12, "OUTPUT_LEN": 12, "RESCALE": True, "NULL_VAL": 0.0},
    }
    (folder / "desc.json").write_text(json.dumps(described))
    adj_mx(folder / "adj_mx.pkl", ADJACENCY, ids)
    return values


def basicts_new(folder: Path, steps: int = 30, sensors: int = 3) -> Values:
    """{train,val,test}_{data,timestamps}.npy and meta.json; returns the speeds."""
    folder.mkdir(parents=True, exist_ok=True)
    values = speeds(steps, sensors)
    of_day = np.stack([np.arange(steps) % 288 / 288, np.full(steps, 3 / 7)], axis=1)
    for part, (first, last) in {"train": (0, 18), "val": (18, 24), "test": (24, steps)}.items():
        np.save(folder / f"{part}_data.npy", values[first:last].astype(np.float32))
        np.save(folder / f"{part}_timestamps.npy", of_day[first:last].astype(np.float32))
    described = {
        "name": "PEMS-BAY",
        "domain": "traffic speed",
        "frequency (minutes)": 5,
        "shape": [steps, sensors],
        "timestamps_shape": [steps, 2],
        "timestamps_description": ["time of day", "day of week"],
        "num_time_steps": steps,
        "num_vars": sensors,
        "has_graph": False,
        "regular_settings": {"null_val": float("nan")},
    }
    (folder / "meta.json").write_text(json.dumps(described))
    return values


def lane_names(roads: int = 2, lanes: int = 2) -> list[str]:
    return [f"sensors {road} Lane {lane}" for road in range(1, roads + 1) for lane in range(1, lanes + 1)]


def lanes(
    folder: Path,
    steps: int = 24,
    roads: int = 2,
    count: int = 2,
    missing: Sequence[int] = (),
    blank: Sequence[int] = (),
) -> Values:
    """PeMS_Speed.csv, PeMS_flow.csv (first road only), PeMS_road_speed.csv (means) and PEMS_adj.csv.

    Rows of ``missing`` are in no file; behind a row of ``blank`` the lane files hold a copy of it without a stamp.
    Returns the speeds.
    """
    values = speeds(steps, roads * count)
    flows = np.random.default_rng(1).integers(20, 120, (steps, count))
    names = lane_names(roads, count)
    stamps = [f"{moment.month}/{moment.day}/{moment.year} {moment.hour}:{moment:%M}" for moment in times(steps)]
    rows: dict[str, list[list[object]]] = {"speed": [], "flow": [], "road": []}
    for step, stamp in enumerate(stamps):
        if step in missing:
            continue
        for label in [stamp, ""] if step in blank else [stamp]:
            rows["speed"].append([label, *values[step]])
            rows["flow"].append([label, *flows[step]])
        means = values[step].reshape(roads, count).mean(axis=1)
        rows["road"].append([stamp, *means])
    csv(folder / "PeMS_Speed.csv", ["Sample Time", *names], rows["speed"])
    csv(folder / "PeMS_flow.csv", ["Sample Time", *names[:count]], rows["flow"])
    csv(folder / "PeMS_road_speed.csv", ["Sample Time", *(f"Avg_{road + 1}" for road in range(roads))], rows["road"])
    matrix = np.eye(len(names), dtype=int) + np.eye(len(names), k=1, dtype=int) + np.eye(len(names), k=-1, dtype=int)
    csv(
        folder / "PEMS_adj.csv",
        ["", *(str(index) for index in range(len(names)))],
        [[index, *row] for index, row in enumerate(matrix)],
    )
    return values


def wide(file: Path, values: Values, ids: Sequence[str] = STATIONS, stamps: Sequence[object] | None = None) -> None:
    """A csv (or parquet) with a column ``time`` and one for each sensor."""
    labels = stamps if stamps is not None else [f"{moment:%Y-%m-%d %H:%M}" for moment in times(len(values))]
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        columns = {"time": labels} | {name: values[:, index] for index, name in enumerate(ids)}
        pl.DataFrame(columns).write_parquet(file)
    else:
        csv(file, ["time", *ids], [[label, *row] for label, row in zip(labels, values, strict=True)])
