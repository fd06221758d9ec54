"""One table of one variable, a column for each sensor: csv or other delimited text, or parquet; stamps or a clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from stages.errors import DataError
from stages.ingest.traffic import delimited, sensors, stamps
from stages.ingest.traffic.assembly import Parts, assemble
from stages.ingest.traffic.config import BasicTs, Hdf, Wide
from stages.ingest.traffic.folder import Folder
from stages.ingest.traffic.graph import from_edges, read_adjacency, read_edges
from stages.ingest.traffic.sets import Array, Graph, TrafficSet
from stages.ingest.traffic.tables import AGAIN, Table, distinct, listed, row_place, station

#: Columns of a parquet file that are converted together.
COLUMNS = 32


def read(path: Path, options: Wide) -> TrafficSet:
    """Read a wide table and, where they are named, its graph and its list of sensors.

    Raises
    ------
    DataError
        The file is not laid out as the options say.
    """
    folder = Folder(path)
    notes: list[str] = []
    beside = [folder.root / name for name in (options.adjacency, options.distances, options.sensors) if name]
    beside += folder.matching(["sensors.csv"])
    file = folder.one(options.file, "file", ["*.csv", "*.txt", "*.tsv", "*.parquet"], "one table", beside)
    name = folder.relative(file)
    table = _parquet(file, name, options) if file.suffix == ".parquet" else _text(file, name, options, notes)
    return assemble(
        Parts(
            reader=options.reader,
            tables=[table],
            null=options.null_value,
            timezone=options.timezone,
            clock=options.clock,
            step_minutes=options.step_minutes,
            notes=notes,
            files=folder.read,
        ),
        known_sensors(folder, options.sensors, table.sensors, notes),
        named_graph(folder, options, table, notes),
    )


def known_sensors(
    folder: Folder, name: str | None, ids: tuple[str, ...], notes: list[str], patterns: tuple[str, ...] = ()
) -> pl.DataFrame:
    """sensors.parquet out of the table of sensors that is named or lies there; nulls without one."""
    file = folder.maybe(name, "sensors", ["sensors.csv", *patterns], "a table of sensors")
    return sensors.table(ids, sensors.read(file, ids, notes) if file is not None else None)


def named_graph(folder: Folder, options: Wide | Hdf | BasicTs, table: Table, notes: list[str]) -> Graph | None:
    """The graph of ``format.adjacency`` or, without it, of ``format.distances``."""
    if options.adjacency is not None:
        file = folder.named(options.adjacency, "adjacency")
        return read_adjacency(file, table.sensors, table.file, directed=options.directed, notes=notes)
    if options.distances is not None:
        file = folder.named(options.distances, "distances")
        edges = read_edges(file)
        return from_edges(file, edges, table.sensors, table.file, directed=options.directed, notes=notes, others=True)
    return None


def _text(file: Path, name: str, options: Wide, notes: list[str]) -> Table:
    dialect = delimited.look(
        file,
        delimiter=options.delimiter,
        decimal=options.decimal,
        header=True if options.time is not None else options.header,
        null_tokens=options.null_tokens,
    )
    if dialect.decimal == "," and options.decimal is None:
        notes.append(f"{name}: numbers have decimal commas")
    if options.rows == "sensor":
        return _by_sensor(dialect, name, options)
    time = None if options.time is None else time_column(file, dialect.names or (), options.time)
    columns = [index for index in range(dialect.width) if index != time]
    texts, values_RS, place = delimited.read(dialect, columns, [] if time is None else [time])
    names = dialect.names
    ids = [str(index) if names is None else station(names[index]) for index in columns]
    times = None if time is None else stamps.of_series(texts.to_series(), options.time_format, str(file), place)
    return Table(str(file), name, options.variable, options.unit, distinct(ids, file), values_RS, times, place)


def time_column(file: Path, names: tuple[str, ...], wanted: str) -> int:
    """Place of the column of stamps.

    Raises
    ------
    DataError
        There is none of this name, or two.
    """
    places = [index for index, name in enumerate(names) if name == wanted]
    if len(places) != 1:
        raise DataError(
            file,
            found=f"{len(places)} columns {wanted!r} among {listed(list(names))}",
            expected="one column of time stamps",
            remedy="Correct `format.time` in params.yaml, or give `format.clock` if there are no stamps.",
        )
    return places[0]


def _by_sensor(dialect: delimited.Dialect, name: str, options: Wide) -> Table:
    """A row for each sensor; the first column is its name where there is a line of names."""
    file = dialect.file
    named = dialect.names is not None
    columns = list(range(1 if named else 0, dialect.width))
    texts, values_ST, _ = delimited.read(dialect, columns, [0] if named else [])
    ids = [station(text) for text in texts.to_series()] if named else [str(row) for row in range(len(values_ST))]
    values_TS = np.ascontiguousarray(values_ST.T)
    return Table(
        str(file), name, options.variable, options.unit, distinct(ids, file, "rows"), values_TS, None, row_place
    )


def _parquet(file: Path, name: str, options: Wide) -> Table:
    try:
        scan = pl.scan_parquet(file)
        schema = scan.collect_schema()
        rows = int(scan.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError) as error:
        told = str(error).splitlines()[0]
        raise DataError(file, found=f"no readable parquet ({told})", expected="a table", remedy=AGAIN) from None
    times = None
    if options.time is not None:
        time_column(file, tuple(schema.names()), options.time)
        column = scan.select(options.time).collect().to_series()
        times = stamps.of_series(column, options.time_format, str(file), row_place)
    columns = [column for column in schema.names() if column != options.time]
    for sensor in columns:
        if not schema[sensor].is_numeric():
            raise DataError(
                file,
                record=f"column {sensor!r}",
                found=f"type {schema[sensor]}",
                expected="numbers of one sensor",
                remedy="Name the column of the stamps under `format.time`, and take other columns out of the file.",
            )
    ids = distinct([station(column) for column in columns], file)
    values_RS: Array = np.empty((rows, len(columns)), dtype=np.float32)
    for first in range(0, len(columns), COLUMNS):
        some = columns[first : first + COLUMNS]
        part = scan.select(pl.col(some).cast(pl.Float32)).collect()
        values_RS[:, first : first + COLUMNS] = part.to_numpy()
    if options.rows == "sensor":
        values_RS, ids = np.ascontiguousarray(values_RS.T), tuple(str(row) for row in range(rows))
    return Table(str(file), name, options.variable, options.unit, ids, values_RS, times, row_place)
