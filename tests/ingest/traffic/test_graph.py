"""Matrices and lists of edges as text, and what each broken one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.errors import DataError
from stages.ingest.traffic.graph import from_edges, read_adjacency, read_edges, read_ids
from tests.ingest.traffic.layouts import ADJACENCY, STATIONS, csv


def adjacency(file: Path) -> Any:
    return read_adjacency(file, STATIONS, "speed.csv", directed=True, notes=[])


def edges_of(graph: Any) -> list[tuple[int, int, float]]:
    return sorted(zip(graph.source_E.tolist(), graph.target_E.tolist(), graph.weight_E.tolist(), strict=True))


EXPECTED = [(0, 1, 0.5), (1, 0, 0.25), (2, 1, 0.75)]


def test_one_matrix_in_five_ways_of_writing(tmp_path: Path) -> None:
    plain, positions, names, turned, first_line = (tmp_path / f"{number}.csv" for number in range(5))
    csv(plain, [], ADJACENCY.tolist())
    csv(positions, ["", "0", "1", "2"], [[index, *row] for index, row in enumerate(ADJACENCY)])
    csv(names, ["id", *STATIONS], [[name, *row] for name, row in zip(STATIONS, ADJACENCY, strict=True)])
    order = [1, 2, 0]
    again = [STATIONS[place] for place in order]
    turned_SS = ADJACENCY[np.ix_(order, order)]
    csv(turned, ["id", *again], [[name, *row] for name, row in zip(again, turned_SS, strict=True)])
    csv(first_line, STATIONS, ADJACENCY.tolist())
    np.save(tmp_path / "adj.npy", ADJACENCY)
    for file in (plain, positions, names, turned, first_line, tmp_path / "adj.npy"):
        assert edges_of(adjacency(file)) == EXPECTED, file


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [[1, 0.5], [0.5, 1]],
            r"found a matrix of shape \(2, 2\); expected \(3, 3\), a row and a column for each sensor",
        ),
        ([[1, 0, 0], [0, 1, 0]], r"found a matrix of shape \(2, 3\)"),
        ([[1, "nan", 0], [0, 1, 0], [0, 0, 1]], r"row 1, column 2 \(773869 to 767541\): found the weight nan \(1 such"),
        ([[1, "", 0], [0, 1, 0], [0, 0, 1]], r"row 1, column 2 \(773869 to 767541\): found the weight nan"),
        ([[1, 0, 0], [0, 1, -0.5], [0, 0, 1]], r"row 2, column 3 \(767541 to 767542\): found the weight -0\.5"),
        ([[1, 0, 0], [0, "x", 0], [0, 0, 1]], r"line 2: found could not convert string to float: 'x'"),
        ([[1, 0, 0], [0, 1], [0, 0, 1]], r"line 2: found 2 weights; expected 3"),
    ],
)
def test_broken_matrices(tmp_path: Path, rows: list[list[object]], told: str) -> None:
    csv(tmp_path / "adj.csv", [], rows)
    with pytest.raises(DataError, match=r"adj\.csv") as caught:
        adjacency(tmp_path / "adj.csv")
    assert caught.match(told)


def test_a_matrix_for_fewer_sensors_by_name(tmp_path: Path) -> None:
    csv(tmp_path / "adj.csv", ["", *STATIONS[:2]], [[STATIONS[0], 1, 0], [STATIONS[1], 0, 1]])
    with pytest.raises(DataError, match="found 2 nodes, none for 767542; expected a node for each of the 3 sensors"):
        adjacency(tmp_path / "adj.csv")


def listed(file: Path, sensors: tuple[str, ...] = STATIONS, **options: Any) -> Any:
    notes: list[str] = []
    graph = from_edges(file, read_edges(file), sensors, "data", directed=True, notes=notes, **options)
    return graph, notes


def test_a_list_of_edges(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    csv(
        file,
        ["from", "to", "cost"],
        [["773869.0", "767541", 10.5], ["767541", "767542", 3], ["767541", "767542", 3], ["767541", "767541", 0]],
    )
    graph, notes = listed(file)
    assert edges_of(graph) == [(0, 1, 10.5), (1, 2, 3.0)]
    assert notes == [
        "edges.csv: 1 of 4 edges lead from a sensor to itself; they are left out",
        "edges.csv: 1 edges stand twice; merged",
    ]


def test_a_list_without_a_line_of_names(tmp_path: Path) -> None:
    csv(tmp_path / "edges.csv", [], [[0, 1, 7.5], [1, 2, 8]])
    assert edges_of(listed(tmp_path / "edges.csv", ("0", "1", "2"))[0]) == [(0, 1, 7.5), (1, 2, 8.0)]


def test_broken_lists_of_edges(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    csv(file, ["from", "to", "cost"], [["773869", "400001", 1]])
    with pytest.raises(DataError, match=r"edges\.csv, line 2: found the sensor '400001', which data does not have"):
        listed(file)
    with pytest.raises(DataError, match=r"edges\.csv: found no edge between the sensors of data"):
        listed(file, others=True)
    csv(file, ["from", "to", "cost"], [["773869", "767541", 1], ["773869", "767541", 2]])
    with pytest.raises(DataError, match="line 2 and line 3: found the edge 773869 to 767541 with 1 and 2"):
        listed(file)


@pytest.mark.parametrize("text", ["1,22,333", "1\n22\n333\n", "1 22 333", "\ufeff1;22;333"])
def test_ids(tmp_path: Path, text: str) -> None:
    (tmp_path / "ids.txt").write_text(text, encoding="utf-8")
    assert read_ids(tmp_path / "ids.txt") == ("1", "22", "333")


def test_broken_ids(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("\n")
    with pytest.raises(DataError, match=r"ids\.txt: found no id"):
        read_ids(tmp_path / "ids.txt")
    (tmp_path / "ids.txt").write_text("7,8,7")
    with pytest.raises(DataError, match="ids 1 and 3: found the sensor '7' twice"):
        read_ids(tmp_path / "ids.txt")
