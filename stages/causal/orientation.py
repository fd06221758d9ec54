"""Directions of contemporaneous links: unshielded triples, colliders, conflicts, and the rules R1 to R3.

Runge 2020, UAI (PMLR 124), its collider and rule phases; Meek 1995, UAI, for the rules.

Shape suffixes: N variable, L lag 0 to tau_max; [i, j, lag] is the link from i, lag steps before, to j.
A triple (i, lag, k, j) is i, lag steps before, adjacent to k, and k adjacent to j at lag 0, where i and j are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stages.causal.covariance import Booleans

Triple = tuple[int, int, int, int]
Marks = NDArray[np.str_]
ColliderRule = Literal["none", "conservative", "majority"]

COLLIDER_RULES: tuple[str, ...] = get_args(ColliderRule)


def initial_marks(linked_NNL: Booleans, directed_NN: Booleans) -> Marks:
    """Write the edge marks before any orientation: time orders lagged links, assumptions some contemporaneous ones.

    Parameters
    ----------
    linked_NNL
        Adjacencies, symmetric at lag 0.
    directed_NN
        True where a contemporaneous link is assumed to point from i to j.

    Returns
    -------
    ndarray
        graph_NNL, of strings.
    """
    graph_NNL = np.where(linked_NNL, "-->", "")
    graph_NNL[:, :, 0] = np.where(linked_NNL[:, :, 0], "o-o", "")
    graph_NNL[:, :, 0][linked_NNL[:, :, 0] & directed_NN] = "-->"
    graph_NNL[:, :, 0][linked_NNL[:, :, 0] & directed_NN.T] = "<--"
    return graph_NNL


def unshielded_triples(graph_NNL: Marks) -> list[Triple]:
    """List the unshielded triples that may be colliders: no assumed arrow leaves their middle, or enters the target.

    A contemporaneous triple stands in both orders, because its tests have a target.

    Parameters
    ----------
    graph_NNL
        Edge marks before any orientation.

    Returns
    -------
    list
        (source, lag, middle, target), by target, middle, source, lag.
    """
    linked_NNL = graph_NNL != ""
    into_NNL = linked_NNL & (graph_NNL != "<--")
    triples = []
    for j in range(linked_NNL.shape[0]):
        for k in np.flatnonzero(graph_NNL[:, j, 0] == "o-o").tolist():
            for i, lag in np.argwhere(into_NNL[:, k]).tolist():
                if not linked_NNL[i, j, lag] and (lag or i != j):
                    triples.append((i, lag, k, j))
    return triples


def judge(rule: str, separating: int, with_middle: int) -> bool | None:
    """Say whether the separating sets of a triple make it a collider.

    Parameters
    ----------
    rule
        ``conservative``: all of them must agree; ``majority``: more than half.
    separating, with_middle
        How many sets separate its ends, and how many of them hold its middle.

    Returns
    -------
    bool or None
        True for a collider; None when the sets do not agree, or when there is none.
    """
    if separating == 0:
        return None
    if rule == "conservative":
        return None if 0 < with_middle < separating else with_middle == 0
    return None if 2 * with_middle == separating else 2 * with_middle < separating


def orient_colliders(
    graph_NNL: Marks, colliders: Iterable[Triple], directed_NN: Booleans, conflict_resolution: bool
) -> None:
    """Point the contemporaneous links of every collider at its middle.

    Parameters
    ----------
    graph_NNL
        Edge marks, changed.
    colliders
        The triples.
    directed_NN
        Assumed directions; no collider changes them.
    conflict_resolution
        Mark links that two colliders point opposite ways with ``x-x``; else the first one counts.
    """
    arrows = []
    for i, lag, k, j in colliders:
        arrows.append((j, k))
        if lag == 0:
            arrows.append((i, k))
    _point(graph_NNL[:, :, 0], arrows, directed_NN, conflict_resolution)


def orient_rest(
    graph_NNL: Marks, ambiguous: Collection[Triple], directed_NN: Booleans, conflict_resolution: bool
) -> None:
    """Apply the rules R1 to R3 until none of them changes a link.

    Parameters
    ----------
    graph_NNL
        Edge marks, changed.
    ambiguous
        Triples that no rule may use.
    directed_NN, conflict_resolution
        As in `orient_colliders`.
    """
    ambiguous = set(ambiguous)
    rules = (_rule_1, _rule_2, _rule_3)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            arrows = rule(graph_NNL, ambiguous)
            changed |= _point(graph_NNL[:, :, 0], arrows, directed_NN, conflict_resolution)


def _point(mark_NN: Marks, arrows: Iterable[tuple[int, int]], directed_NN: Booleans, conflict_resolution: bool) -> bool:
    """Draw arrows and say whether anything changed; opposite ones make a conflict, but an assumed one stays."""
    changed = False
    for i, j in arrows:
        if mark_NN[i, j] == "o-o":
            mark_NN[i, j], mark_NN[j, i] = "-->", "<--"
            changed = True
        elif mark_NN[i, j] == "<--" and conflict_resolution and not directed_NN[j, i]:
            mark_NN[i, j] = mark_NN[j, i] = "x-x"
            changed = True
    return changed


def _rule_1(graph_NNL: Marks, ambiguous: Collection[Triple]) -> list[tuple[int, int]]:
    """R1: i -> k o-o j, i and j not adjacent: k -> j, because k is no collider."""
    mark_NN = graph_NNL[:, :, 0]
    arrows = []
    for j, k in np.argwhere(mark_NN.T == "o-o").tolist():
        for i, lag in np.argwhere(graph_NNL[:, k] == "-->").tolist():
            if (lag or i != j) and not graph_NNL[i, j, lag] and (i, lag, k, j) not in ambiguous:
                arrows.append((k, j))
    return arrows


def _rule_2(graph_NNL: Marks, ambiguous: Collection[Triple]) -> list[tuple[int, int]]:
    """R2: i -> k -> j and i o-o j: i -> j, because the graph has no cycle."""
    mark_NN = graph_NNL[:, :, 0]
    ahead_NN = mark_NN == "-->"
    return [(i, j) for j, i in np.argwhere(mark_NN.T == "o-o").tolist() if (ahead_NN[i] & ahead_NN[:, j]).any()]


def _rule_3(graph_NNL: Marks, ambiguous: Collection[Triple]) -> list[tuple[int, int]]:
    """R3: i o-o k -> j, i o-o l -> j, k and l not adjacent, i o-o j: i -> j."""
    mark_NN = graph_NNL[:, :, 0]
    arrows = []
    for j, i in np.argwhere(mark_NN.T == "o-o").tolist():
        middles = np.flatnonzero((mark_NN[i] == "o-o") & (mark_NN[:, j] == "-->")).tolist()
        if any(not mark_NN[k, m] and (k, 0, i, m) not in ambiguous for k in middles for m in middles if k < m):
            arrows.append((i, j))
    return arrows
