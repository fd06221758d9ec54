from __future__ import annotations

from typing import Any

import numpy as np

from stages.validate.traffic.graph import GraphFacts, graph_facts


def facts(edges: list[tuple[int, int, float]], sensors: int = 4, directed: bool = False) -> GraphFacts:
    columns: Any = list(zip(*edges, strict=True)) or [(), (), ()]
    source, target = (np.array(column, np.int64) for column in columns[:2])
    return graph_facts(source, target, np.array(columns[2], np.float64), sensors, directed)


def test_a_symmetric_graph_has_no_fault() -> None:
    found = facts([(0, 1, 2.0), (1, 0, 2.0), (1, 2, 0.5), (2, 1, 0.5)])
    assert (found.outside, found.no_number, found.negative, found.one_way) == (0, 0, 0, 0)
    assert found.degree_S.tolist() == [1, 2, 1, 0]


def test_an_edge_without_its_equal_back_is_one_way_unless_the_graph_is_directed() -> None:
    edges = [(0, 1, 2.0), (1, 0, 3.0), (2, 3, 1.0)]
    found = facts(edges)
    assert (found.one_way, found.examples["one_way"]) == (3, (0, 1))
    assert facts(edges, directed=True).one_way == 0


def test_self_loops_are_neither_neighbours_nor_one_way() -> None:
    found = facts([(0, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0)])
    assert found.one_way == 0
    assert found.degree_S.tolist() == [0, 1, 1, 0]


def test_weights_that_are_none_and_sensors_that_are_not_there() -> None:
    found = facts([(0, 1, np.nan), (1, 0, np.nan), (3, 4, 1.0), (-1, 2, -2.0)])
    assert (found.no_number, found.examples["no_number"]) == (2, (0, 1))
    assert (found.outside, found.examples["outside"]) == (2, (3, 4))
    assert (found.negative, found.one_way) == (1, 0)


def test_no_edges_are_no_fault() -> None:
    found = facts([])
    assert (found.outside, found.one_way) == (0, 0)
    assert found.degree_S.tolist() == [0] * 4
