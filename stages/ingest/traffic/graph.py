"""Sensor graphs as users have them: matrices (text, npy, pickle), lists of edges, lists of ids.

Shapes: S sensor, E edge.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.sets import Graph
from stages.ingest.traffic.tables import AGAIN, distinct, listed, station

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Edge:
    """One line of a list of edges; the ends are names of sensors."""

    source: str
    target: str
    weight: float
    place: str


def read_ids(file: Path) -> tuple[str, ...]:
    """Ids apart by commas, spaces or lines, such as graph_sensor_ids.txt or PEMS03.txt.

    Raises
    ------
    DataError
        There is none, or one stands twice.
    """
    text = file.read_text(encoding="utf-8-sig")
    names = [station(name) for name in text.replace(",", " ").replace(";", " ").split()]
    if not names:
        raise DataError(file, found="no id", expected="ids of sensors, apart by commas or lines", remedy=AGAIN)
    return distinct(names, file, "ids")


def check_ids(file: Path, nodes: Sequence[str], sensors: Sequence[str], data: str) -> None:
    """Refuse a list of nodes that is not that of the data.

    Raises
    ------
    DataError
        Nodes are unknown to the data, or sensors of the data have no node.
    """
    unknown = sorted(set(nodes) - set(sensors))
    without = sorted(set(sensors) - set(nodes))
    if unknown:
        raise DataError(
            file,
            found=f"{len(unknown)} nodes that {data} does not have: {listed(unknown)}",
            expected=f"the {len(sensors)} sensors of {data}, such as {listed(list(sensors), 2)}",
            remedy="The graph belongs to another set: name the right file, or leave those nodes out of it.",
        )
    if without:
        raise DataError(
            file,
            found=f"{len(nodes)} nodes, none for {listed(without)}",
            expected=f"a node for each of the {len(sensors)} sensors of {data}",
            remedy="Complete the list of nodes, or take the sensors without a node out of the data.",
        )


def read_adjacency(file: Path, sensors: Sequence[str], data: str, *, directed: bool, notes: list[str]) -> Graph:
    """A square matrix of weights between the sensors of ``data``, in their order or under their names.

    Raises
    ------
    DataError
        The shape is another one, a weight is no number or below zero, or a node is unknown.
    """
    nodes, weight_SS = _matrix(file)
    names = list(sensors)
    if nodes is not None and list(nodes) != [str(index) for index in range(len(names))]:
        check_ids(file, nodes, names, data)
        order = [nodes.index(name) for name in names]
        _check_shape(file, weight_SS, len(names), data)
        weight_SS = weight_SS[np.ix_(order, order)]
    _check_shape(file, weight_SS, len(names), data)
    _check_weights(file, weight_SS, names)
    loops = int(np.count_nonzero(np.diag(weight_SS)))
    if loops:
        notes.append(f"{file.name}: {loops} weights of a sensor to itself are no edges")
    source_E, target_E = (ends.astype(np.int64) for ends in np.nonzero(weight_SS - np.diag(np.diag(weight_SS))))
    return Graph(source_E, target_E, weight_SS[source_E, target_E], directed, "adjacency", "1")


def nodes_of_pickle(file: Path) -> tuple[str, ...] | None:
    """Names of the nodes of a pickled graph, None where it is a bare matrix."""
    return _pickled(file)[0]


def _check_shape(file: Path, weight_SS: Matrix, sensors: int, data: str) -> None:
    if weight_SS.shape != (sensors, sensors):
        raise DataError(
            file,
            found=f"a matrix of shape {weight_SS.shape}",
            expected=f"({sensors}, {sensors}), a row and a column for each sensor of {data}",
            remedy="The matrix belongs to another set, or its list of nodes is not that of the data.",
        )


def _check_weights(file: Path, weight_SS: Matrix, names: Sequence[str]) -> None:
    bad = np.argwhere(~(np.isfinite(weight_SS) & (weight_SS >= 0)))
    if bad.size:
        row, column = bad[0]
        raise DataError(
            file,
            record=f"row {row + 1}, column {column + 1} ({names[row]} to {names[column]})",
            found=f"the weight {weight_SS[row, column]:g} ({len(bad)} such in all)",
            expected="a number, 0 where there is no edge",
            remedy="Write 0 for pairs without an edge, or mend the weight.",
        )


def _matrix(file: Path) -> tuple[list[str] | None, Matrix]:
    if file.suffix in (".pkl", ".pickle"):
        nodes, weight_SS = _pickled(file)
        return (None if nodes is None else list(nodes)), weight_SS
    if file.suffix == ".npy":
        return None, _array(file, _load_npy(file))
    return _text(file)


def _load_npy(file: Path) -> Any:
    try:
        return np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        told = str(error).splitlines()[0]
        raise DataError(
            file, found=f"no readable array ({told})", expected="a npy file of a matrix", remedy=AGAIN
        ) from None


def _array(file: Path, value: Any) -> Matrix:
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype.kind not in "fiub":
        found = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise DataError(file, found=found, expected="a matrix of numbers", remedy="Name the file of the adjacency.")
    return value.astype(np.float64)


def _pickled(file: Path) -> tuple[tuple[str, ...] | None, Matrix]:
    """``(sensor_ids, id_to_ind, adj)`` as DCRNN wrote it with Python 2, or a bare matrix."""
    from stages.ingest import unpickle

    content = unpickle.load(file)
    if not isinstance(content, (list, tuple)):
        return None, _array(file, content)
    if len(content) != 3 or not isinstance(content[1], dict):
        raise DataError(
            file,
            found=f"a {type(content).__name__} of {len(content)}",
            expected="(sensor_ids, id_to_ind, adj) or a matrix",
            remedy="Name the file of the adjacency.",
        )
    nodes = distinct([station(name) for name in content[0]], file, "ids")
    index = {station(name): int(place) for name, place in content[1].items()}
    wrong = [name for place, name in enumerate(nodes) if index.get(name) != place]
    if wrong:
        raise DataError(
            file,
            record=f"sensor {wrong[0]}",
            found=f"place {index.get(wrong[0])} in id_to_ind",
            expected=f"{nodes.index(wrong[0])}, its place in sensor_ids",
            remedy="The two lists contradict each other: make the file again.",
        )
    return nodes, _array(file, content[2])


def _text(file: Path) -> tuple[list[str] | None, Matrix]:
    """A matrix as text, with or without a first line and column of names."""
    from stages.ingest.traffic.delimited import look, split

    dialect = look(file, header=False)
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        rows = [(split(line.rstrip("\r\n"), dialect.delimiter), number) for number, line in enumerate(stream, 1)]
    rows = [(cells, number) for cells, number in rows if any(cell.strip() for cell in cells)]
    nodes: list[str] | None = None
    first = [cell.strip() for cell in rows[0][0]]
    if first[0] == "" or not _is_number(first[0]):
        nodes = [station(cell) for cell in first[1:]]
        labels = [station(cells[0]) for cells, _ in rows[1:]]
        if labels != nodes:
            raise DataError(
                file,
                found=f"rows of {listed(labels)} and columns of {listed(nodes)}",
                expected="the same names in the same order",
                remedy="Bring rows and columns into one order.",
            )
        rows = [(cells[1:], number) for cells, number in rows[1:]]
    elif len(rows) == len(first) + 1:  # a line of names without a column of names
        nodes, rows = [station(cell) for cell in first], rows[1:]
    values = []
    for cells, number in rows:
        try:
            cells = [cell.replace(",", ".") for cell in cells] if dialect.decimal == "," else cells
            values.append([float(cell or "nan") for cell in cells])
        except ValueError as error:
            raise DataError(
                file, record=f"line {number}", found=str(error), expected="weights", remedy="Mend the line."
            ) from None
        if len(cells) != len(rows[0][0]):
            raise DataError(
                file,
                record=f"line {number}",
                found=f"{len(cells)} weights",
                expected=f"{len(rows[0][0])}, as in the line before",
                remedy=AGAIN,
            )
    return nodes, np.array(values, dtype=np.float64)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_edges(file: Path) -> list[Edge]:
    """A csv of edges: from, to, and a distance or cost in the third column, where there is one.

    Raises
    ------
    DataError
        A line has fewer than two cells, or its distance is no number.
    """
    from stages.ingest.traffic.delimited import look

    dialect = look(file, header=False)
    edges = []
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        for number, cells in enumerate(csv.reader(stream, delimiter=dialect.delimiter), 1):
            if not any(cell.strip() for cell in cells) or (number == 1 and not _is_number(cells[-1])):
                continue
            try:
                weight = float(cells[2]) if len(cells) > 2 else 1.0
            except ValueError:
                weight = np.nan
            if len(cells) < 2 or not np.isfinite(weight) or weight < 0:
                raise DataError(
                    file,
                    record=f"line {number}",
                    found=repr(dialect.delimiter.join(cells)[:60]),
                    expected="from, to, distance",
                    remedy="Mend or delete the line.",
                )
            edges.append(Edge(station(cells[0]), station(cells[1]), weight, f"line {number}"))
    return edges


def from_edges(
    file: Path,
    edges: Sequence[Edge],
    sensors: Sequence[str],
    data: str,
    *,
    directed: bool,
    notes: list[str],
    others: bool = False,
    kind: str = "distance",
    unit: str | None = None,
) -> Graph:
    """The graph of a list of edges.

    Parameters
    ----------
    others
        Whether the list may name sensors that the data do not have: their edges are passed over, and told.

    Raises
    ------
    DataError
        An edge names an unknown sensor, or a pair stands twice with two weights.
    """
    position = {name: index for index, name in enumerate(sensors)}
    found: dict[tuple[int, int], Edge] = {}
    beside = loops = copies = 0
    for edge in edges:
        ends = position.get(edge.source), position.get(edge.target)
        if ends[0] is None or ends[1] is None:
            if not others:
                name = edge.source if ends[0] is None else edge.target
                raise DataError(
                    file,
                    record=edge.place,
                    found=f"the sensor {name!r}, which {data} does not have",
                    expected=f"one of its {len(sensors)} sensors, such as {listed(list(sensors), 2)}",
                    remedy="Name the file of this set's graph, or give the station numbers under `format.ids`.",
                )
            beside += 1
            continue
        pair = ends[0], ends[1]
        if pair[0] == pair[1]:
            loops += 1
            continue
        known = found.setdefault(pair, edge)
        if known is not edge:
            _check_copy(file, known, edge)
            copies += 1
    for count, what in ((beside, "name sensors that the data do not have"), (loops, "lead from a sensor to itself")):
        if count:
            notes.append(f"{file.name}: {count} of {len(edges)} edges {what}; they are left out")
    if copies:
        notes.append(f"{file.name}: {copies} edges stand twice; merged")
    if edges and not found and beside:
        raise DataError(
            file,
            found=f"no edge between the sensors of {data}",
            expected=f"edges between sensors such as {listed(list(sensors), 2)}",
            remedy="The list belongs to another set: name the right file.",
        )
    source_E, target_E = np.array(list(found), dtype=np.int64).reshape(-1, 2).T
    weight_E = np.array([edge.weight for edge in found.values()], dtype=np.float64)
    return Graph(
        np.ascontiguousarray(source_E),
        np.ascontiguousarray(target_E),
        weight_E,
        directed,
        "adjacency" if kind == "adjacency" else "distance",
        "1" if kind == "adjacency" else unit,
    )


def _check_copy(file: Path, known: Edge, edge: Edge) -> None:
    if known.weight != edge.weight:
        raise DataError(
            file,
            record=f"{known.place} and {edge.place}",
            found=f"the edge {edge.source} to {edge.target} with {known.weight:g} and {edge.weight:g}",
            expected="each edge once",
            remedy="Delete the wrong line.",
        )
