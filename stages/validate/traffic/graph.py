"""What can be wrong with the graph of a set: edges that lead nowhere, weights that are none, one-way edges.

Shape suffixes: E edge, S sensor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-6  # relative difference of the two weights of an edge that stands in both directions


@dataclass(frozen=True)
class GraphFacts:
    """Counts of faulty edges, each with the first as an example (None where there is none).

    Attributes
    ----------
    outside
        Edges of a sensor that the set does not have: the graph is larger than the set.
    no_number, negative
        Edges whose weight is no number, or below 0.
    one_way
        Edges without an equal edge the other way; not counted in a directed graph.
    degree_S
        Number of neighbours of each sensor, self-loops left out.
    """

    outside: int
    no_number: int
    negative: int
    one_way: int
    examples: dict[str, tuple[int, int] | None]
    degree_S: NDArray[np.int64]


def graph_facts(
    source_E: NDArray[np.int64],
    target_E: NDArray[np.int64],
    weight_E: NDArray[np.float64],
    sensors: int,
    directed: bool,
) -> GraphFacts:
    """Count what is wrong with a list of edges between ``sensors`` sensors."""
    outside_E = (np.minimum(source_E, target_E) < 0) | (np.maximum(source_E, target_E) >= sensors)
    nan_E = ~np.isfinite(weight_E)
    negative_E = weight_E < 0
    usable_E = ~outside_E & (source_E != target_E)
    one_way_E = np.zeros(source_E.size, bool)
    if not directed:
        one_way_E[usable_E] = one_way(source_E[usable_E], target_E[usable_E], weight_E[usable_E], sensors)
    degree_S = np.zeros(sensors, np.int64)
    pairs = np.unique(
        np.concatenate(
            [
                np.stack([source_E[usable_E], target_E[usable_E]], axis=1),
                np.stack([target_E[usable_E], source_E[usable_E]], axis=1),
            ]
        ),
        axis=0,
    )
    np.add.at(degree_S, pairs[:, 0], 1)
    faults = {"outside": outside_E, "no_number": nan_E, "negative": negative_E, "one_way": one_way_E}
    counts = {name: int(fault_E.sum()) for name, fault_E in faults.items()}
    examples = {
        name: (int(source_E[fault_E][0]), int(target_E[fault_E][0])) if fault_E.any() else None
        for name, fault_E in faults.items()
    }
    return GraphFacts(**counts, examples=examples, degree_S=degree_S)


def one_way(
    source_E: NDArray[np.int64], target_E: NDArray[np.int64], weight_E: NDArray[np.float64], sensors: int
) -> NDArray[np.bool_]:
    """Which edges have no edge of the same weight the other way."""
    if not source_E.size:
        return np.zeros(0, bool)
    there_E, back_E = source_E * sensors + target_E, target_E * sensors + source_E
    order_E = np.argsort(there_E, kind="stable")
    place_E = np.minimum(np.searchsorted(there_E[order_E], back_E), there_E.size - 1)
    partner_E = order_E[place_E]
    missing_E: NDArray[np.bool_] = there_E[partner_E] != back_E
    scale_E = np.maximum(np.abs(weight_E), np.abs(weight_E[partner_E]))
    both_nan_E = ~np.isfinite(weight_E) & ~np.isfinite(weight_E[partner_E])
    unequal_E = ~both_nan_E & ~(np.abs(weight_E - weight_E[partner_E]) <= TOLERANCE * scale_E)
    return missing_E | unequal_E
