"""Colliders, conflicts and the rules R1 to R3 on graphs small enough to orient by hand."""

from __future__ import annotations

import numpy as np
import pytest

from stages.causal.orientation import (
    initial_marks,
    judge,
    orient_colliders,
    orient_rest,
    unshielded_triples,
)


def undirected(n: int, *pairs: tuple[int, int], lags: int = 1) -> np.ndarray:
    linked_NNL = np.zeros((n, n, lags), bool)
    for i, j in pairs:
        linked_NNL[i, j, 0] = linked_NNL[j, i, 0] = True
    return initial_marks(linked_NNL, np.zeros((n, n), bool))


def arrows(graph_NNL: np.ndarray) -> set[tuple[int, int]]:
    return {(i, j) for i, j in np.argwhere(graph_NNL[:, :, 0] == "-->").tolist()}


FREE = np.zeros((5, 5), bool)


def test_triples_of_a_chain_and_of_a_triangle() -> None:
    assert unshielded_triples(undirected(3, (0, 1), (1, 2))) == [(2, 0, 1, 0), (0, 0, 1, 2)]
    assert unshielded_triples(undirected(3, (0, 1), (1, 2), (0, 2))) == []


def test_own_past_makes_a_triple_with_a_contemporaneous_neighbour() -> None:
    graph_NNL = undirected(2, (0, 1), lags=2)
    graph_NNL[0, 0, 1] = "-->"
    assert unshielded_triples(graph_NNL) == [(0, 1, 0, 1)]


@pytest.mark.parametrize(
    ("rule", "separating", "with_middle", "verdict"),
    [
        ("majority", 0, 0, None),
        ("majority", 4, 2, None),
        ("majority", 4, 1, True),
        ("majority", 4, 3, False),
        ("conservative", 4, 0, True),
        ("conservative", 4, 1, None),
        ("conservative", 4, 4, False),
    ],
)
def test_votes(rule: str, separating: int, with_middle: int, verdict: bool | None) -> None:
    assert judge(rule, separating, with_middle) is verdict


def test_a_collider_points_both_links_at_its_middle() -> None:
    graph_NNL = undirected(3, (0, 1), (1, 2))
    orient_colliders(graph_NNL, [(0, 0, 1, 2)], FREE, True)
    assert arrows(graph_NNL) == {(0, 1), (2, 1)}
    assert graph_NNL[1, 0, 0] == "<--"


@pytest.mark.parametrize("order", [1, -1])
def test_opposite_colliders_conflict_in_either_order(order: int) -> None:
    """0 -> 1 <- 2 and 1 -> 2 <- 3 disagree about the link between 1 and 2."""
    graph_NNL = undirected(4, (0, 1), (1, 2), (2, 3))
    orient_colliders(graph_NNL, [(0, 0, 1, 2), (1, 0, 2, 3)][::order], FREE, True)
    assert graph_NNL[1, 2, 0] == graph_NNL[2, 1, 0] == "x-x"
    assert arrows(graph_NNL) == {(0, 1), (3, 2)}


def test_without_conflict_resolution_the_first_collider_counts() -> None:
    graph_NNL = undirected(4, (0, 1), (1, 2), (2, 3))
    orient_colliders(graph_NNL, [(0, 0, 1, 2), (1, 0, 2, 3)], FREE, False)
    assert arrows(graph_NNL) == {(0, 1), (2, 1), (3, 2)}


def test_an_assumed_direction_stays_against_a_collider() -> None:
    assumed_NN = np.zeros((3, 3), bool)
    assumed_NN[1, 2] = True
    graph_NNL = initial_marks(undirected(3, (0, 1), (1, 2)) != "", assumed_NN)
    orient_colliders(graph_NNL, [(0, 0, 1, 2)], assumed_NN, True)
    assert arrows(graph_NNL) == {(0, 1), (1, 2)}


def test_rule_1_leads_on_from_an_arrow_and_from_a_lagged_link() -> None:
    graph_NNL = undirected(3, (0, 1), (1, 2), lags=2)
    graph_NNL[0, 0, 1] = "-->"
    orient_rest(graph_NNL, [], FREE, True)
    assert arrows(graph_NNL) == {(0, 1), (1, 2)}


def test_rule_1_leaves_ambiguous_triples_alone() -> None:
    graph_NNL = undirected(2, (0, 1), lags=2)
    graph_NNL[0, 0, 1] = "-->"
    orient_rest(graph_NNL, [(0, 1, 0, 1)], FREE, True)
    assert graph_NNL[0, 1, 0] == "o-o"


def test_rule_2_avoids_a_cycle() -> None:
    graph_NNL = undirected(3, (0, 1), (1, 2), (0, 2))
    graph_NNL[0, 1, 0], graph_NNL[1, 0, 0] = "-->", "<--"
    graph_NNL[1, 2, 0], graph_NNL[2, 1, 0] = "-->", "<--"
    orient_rest(graph_NNL, [], FREE, True)
    assert graph_NNL[0, 2, 0] == "-->"


def test_rule_3_orients_the_diagonal_of_a_kite() -> None:
    """0 o-o 1 -> 3, 0 o-o 2 -> 3, 1 and 2 not adjacent: 3 -> 0 would make 0 a collider or a cycle."""
    graph_NNL = undirected(4, (0, 1), (0, 2), (0, 3), (1, 3), (2, 3))
    orient_colliders(graph_NNL, [(1, 0, 3, 2)], FREE, True)
    orient_rest(graph_NNL, [], FREE, True)
    assert arrows(graph_NNL) == {(1, 3), (2, 3), (0, 3)}
    assert graph_NNL[0, 1, 0] == graph_NNL[0, 2, 0] == "o-o"
