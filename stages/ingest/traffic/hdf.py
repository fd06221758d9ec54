"""METR-LA and PEMS-BAY: a pandas frame in HDF5, read through h5py in blocks of rows.

pandas keeps a frame in one of two layouts. `fixed`: the names of columns (axis0), the index (axis1), and a matrix for
each type of column (block0_values, its names in block0_items). `table`: one compound array of the index and a vector
of values, whose names stand pickled in an attribute. Times are integers; their unit is part of the kind, and without
one they are nanoseconds.

Shapes: R row, S sensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest import unpickle
from stages.ingest.traffic import stamps
from stages.ingest.traffic.assembly import Parts, assemble
from stages.ingest.traffic.config import Hdf
from stages.ingest.traffic.folder import Folder
from stages.ingest.traffic.graph import check_ids, from_edges, read_adjacency, read_edges, read_ids
from stages.ingest.traffic.sets import Array, Graph, TrafficSet
from stages.ingest.traffic.tables import AGAIN, Stamps, Table, distinct, row_place, station
from stages.ingest.traffic.wide import known_sensors

#: Bytes that are read at once.
BLOCK_BYTES = 1 << 22

#: Number of the HDF5 filter blosc, which is no part of the HDF5 library.
BLOSC = 32001

_KIND = re.compile(r"datetime64(?:\[(?P<unit>s|ms|us|ns)\])?")


def read(path: Path, options: Hdf) -> TrafficSet:
    """Read a frame and the graph that lies beside it.

    Raises
    ------
    DataError
        The file is no pandas frame of numbers by time, or is compressed in a way that HDF5 alone cannot read.
    """
    folder = Folder(path)
    notes: list[str] = []
    file = folder.one(options.file, "file", ["*.h5", "*.hdf", "*.hdf5"], "one HDF5 file")
    table = _table(file, folder.relative(file), options)
    graph = _graph(folder, options, table, notes)
    known = known_sensors(folder, options.sensors, table.sensors, notes, ("graph_sensor_locations*.csv",))
    return assemble(
        Parts(
            reader=options.reader,
            tables=[table],
            null=options.null_value,
            timezone=options.timezone,
            step_minutes=options.step_minutes,
            notes=notes,
            files=folder.read,
        ),
        known,
        graph,
    )


def _graph(folder: Folder, options: Hdf, table: Table, notes: list[str]) -> Graph | None:
    """The adjacency, else the distances; both are looked for under the names that DCRNN gave them."""
    ids = folder.maybe(options.ids, "ids", ["graph_sensor_ids*.txt"], "the ids of the graph")
    if ids is not None:
        check_ids(ids, read_ids(ids), table.sensors, table.file)
    adjacency = folder.maybe(options.adjacency, "adjacency", ["adj_mx*.pkl", "adj*.pkl"], "an adjacency matrix")
    distances = folder.maybe(options.distances, "distances", ["distances_*.csv"], "a list of distances")
    if adjacency is not None:
        if distances is not None:
            notes.append(f"the graph is that of {adjacency.name}; {distances.name} is not used")
            folder.read.remove(folder.relative(distances))
        return read_adjacency(adjacency, table.sensors, table.file, directed=options.directed, notes=notes)
    if distances is None:
        return None
    edges = read_edges(distances)
    return from_edges(distances, edges, table.sensors, table.file, directed=options.directed, notes=notes, others=True)


def _table(file: Path, name: str, options: Hdf) -> Table:
    with _opened(file) as stream:
        group = _frame(file, stream, options.key)
        ids, times, values_RS = _of_table(file, group) if "table" in group else _of_fixed(file, group)
    return Table(str(file), name, options.variable, options.unit, ids, values_RS, times, row_place)


@contextmanager
def _opened(file: Path) -> Iterator[h5py.File]:
    try:
        stream = h5py.File(file, "r")
    except OSError as error:
        told = str(error).splitlines()[0]
        raise DataError(file, found=f"no readable HDF5 file ({told})", expected="one", remedy=AGAIN) from None
    with stream:
        yield stream


def _frame(file: Path, stream: h5py.File, key: str | None) -> Any:
    """The group of the frame: the one that is named, or the only one."""
    frames: dict[str, Any] = {}

    def visit(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Group) and "pandas_type" in thing.attrs:
            frames[name] = thing

    stream.visititems(visit)
    wanted = key.strip("/") if key is not None else next(iter(frames), "")
    if wanted not in frames or (key is None and len(frames) > 1):
        raise DataError(
            file,
            found=f"the frames {', '.join(frames)}" if frames else f"no pandas frame among {', '.join(stream) or '-'}",
            expected=f"the frame {key!r}" if key is not None else "one frame",
            remedy="Name the frame under `format.key` in params.yaml.",
        )
    kind = _text(frames[wanted].attrs["pandas_type"])
    if kind not in ("frame", "frame_table"):
        raise DataError(
            file,
            record=wanted,
            found=f"a pandas {kind}",
            expected="a frame with a row for each time and a column for each sensor",
            remedy="Write the frame with `DataFrame.to_hdf`.",
        )
    return frames[wanted]


def _of_fixed(file: Path, group: Any) -> tuple[tuple[str, ...], Stamps, Array]:
    for part in ("axis0", "axis1"):
        if part not in group:
            raise DataError(
                file,
                record=group.name,
                found=f"no {part} (names of columns or index of several levels?)",
                expected="one level of columns and an index of times",
                remedy="Flatten the frame and write it again.",
            )
    names = _names(file, group["axis0"])
    times = _stamps(file, group["axis1"], _kind(group["axis1"]), utc="tz" in group["axis1"].attrs)
    place = {name: index for index, name in enumerate(names)}
    values_RS: Array = np.full((times.minutes_R.size, len(names)), np.nan, dtype=np.float32)
    for block in range(int(group.attrs.get("nblocks", 1))):
        data = group[f"block{block}_values"]
        _require_numbers(file, f"{group.name}/block{block}_values", data.dtype)
        columns = [place[name] for name in _names(file, group[f"block{block}_items"])]
        # pandas notes whether a block stands with times along its first axis.
        turned = data.shape != (len(values_RS), len(columns))
        for first, last in _row_blocks(len(values_RS), len(columns) * data.dtype.itemsize):
            rows = _read(file, data, (slice(None), slice(first, last)) if turned else slice(first, last))
            _fill(values_RS, slice(first, last), columns, rows.T if turned else rows)
    return names, times, values_RS


def _of_table(file: Path, group: Any) -> tuple[tuple[str, ...], Stamps, Array]:
    table = group["table"]
    fields = [name for name in table.dtype.names if name != "index"]
    held = {name: _pickled_names(file, table, name) for name in fields}
    ordered = _pickled(file, group.attrs["non_index_axes"], f"{group.name}, attribute non_index_axes")
    names = distinct([station(name) for name in ordered[0][1]], file)
    place = {name: index for index, name in enumerate(names)}
    utc = re.search(rb"[VS]'?tz'?\n", bytes(group.attrs["info"])) is not None if "info" in group.attrs else False
    index = np.empty(len(table), dtype=np.int64)
    values_RS: Array = np.full((len(table), len(names)), np.nan, dtype=np.float32)
    for field in fields:
        _require_numbers(file, f"{table.name}, {field}", table.dtype[field].base)
    for first, last in _row_blocks(len(table), table.dtype.itemsize):
        rows = _read(file, table, slice(first, last))
        index[first:last] = rows["index"]
        for field in fields:
            columns = [place[name] for name in held[field]]
            _fill(values_RS, slice(first, last), columns, rows[field].reshape(last - first, -1))
    kind = _text(table.attrs.get("index_kind", b""))
    return names, _of_integers(file, index, kind, utc=utc), values_RS


def _fill(values_RS: Array, rows: slice, columns: list[int], part: NDArray[Any]) -> None:
    """Copy a block of rows; columns that stand in order are copied as a slice, which is faster."""
    run = columns == list(range(columns[0], columns[0] + len(columns))) if columns else False
    values_RS[rows, slice(columns[0], columns[0] + len(columns)) if run else columns] = part


def _row_blocks(rows: int, bytes_of_row: int) -> Iterator[tuple[int, int]]:
    size = max(1, BLOCK_BYTES // max(bytes_of_row, 1))
    for first in range(0, rows, size):
        yield first, min(first + size, rows)


def _require_numbers(file: Path, record: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiu":
        raise DataError(
            file,
            record=record,
            found=f"type {dtype}",
            expected="numbers of sensors",
            remedy="Take columns that are no sensors out of the frame and write it again.",
        )


def _stamps(file: Path, index: Any, kind: str, *, utc: bool) -> Stamps:
    return _of_integers(file, _read(file, index, slice(None)), kind, utc=utc)


def _of_integers(file: Path, values_R: NDArray[Any], kind: str, *, utc: bool) -> Stamps:
    found = _KIND.fullmatch(kind)
    if found is None or values_R.dtype.kind != "i":
        raise DataError(
            file,
            record="the index",
            found=f"an index of kind {kind or values_R.dtype}",
            expected="times (a DatetimeIndex)",
            remedy="Set the times as index of the frame and write it again, or export it as csv for the reader `wide`.",
        )
    return stamps.of_integers(values_R.astype(np.int64), found["unit"] or "ns", str(file), utc=utc)


def _names(file: Path, axis: Any) -> tuple[str, ...]:
    return distinct([station(name) for name in _read(file, axis, slice(None))], file)


def _pickled_names(file: Path, table: Any, field: str) -> list[str]:
    record = f"{table.name}, attribute {field}_kind"
    return [station(name) for name in _pickled(file, table.attrs[f"{field}_kind"], record)]


def _pickled(file: Path, content: Any, record: str) -> Any:
    return unpickle.load(file, bytes(content), record)


def _kind(dataset: Any) -> str:
    return _text(dataset.attrs.get("kind", b""))


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _read(file: Path, dataset: Any, part: Any) -> NDArray[Any]:
    """Read a part of a dataset; what HDF5 lacks to do so is said in words."""
    try:
        values: NDArray[Any] = dataset[part]
    except OSError as error:
        filters = _filters(dataset)
        if any(number == BLOSC for number, _ in filters) and not _register():
            raise DataError(
                file,
                record=dataset.name,
                found="data compressed with blosc",
                expected="no compression, or zlib",
                remedy="Install the package hdf5plugin into this environment (`pip install hdf5plugin`), or write the "
                "frame again with `complib='zlib'`.",
            ) from None
        if filters:
            try:
                values = dataset[part]
            except OSError:
                raise _unreadable(file, dataset, error) from None
            return values
        raise _unreadable(file, dataset, error) from None
    return values


def _unreadable(file: Path, dataset: Any, error: OSError) -> DataError:
    names = ", ".join(name for _, name in _filters(dataset)) or "none"
    return DataError(
        file,
        record=dataset.name,
        found=f"data that cannot be read (filters: {names}; {str(error).splitlines()[0]})",
        expected="a complete file, uncompressed or with zlib",
        remedy=f"{AGAIN} If it is complete, write the frame again with `complib='zlib'`.",
    )


def _filters(dataset: Any) -> list[tuple[int, str]]:
    plist = dataset.id.get_create_plist()
    found = [plist.get_filter(index) for index in range(plist.get_nfilters())]
    return [(int(number), _text(name)) for number, _, _, name in found]


def _register() -> bool:
    """Let hdf5plugin add its filters where it is installed."""
    from importlib import import_module

    try:
        import_module("hdf5plugin")
    except ImportError:
        return False
    return True
