"""What training says about itself: config.json, history.parquet, graph.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stages.systems.minitraffic.settings import BASELINES, Train, sources

if TYPE_CHECKING:
    import polars as pl

    from stages.systems.minitraffic.clustering import Graph
    from stages.systems.minitraffic.problem import Target
    from stages.systems.minitraffic.search import Tensors

#: Names of stored arrays that were learnt; levels, scales and graphs describe the series.
LEARNT = ("network.", "dlinear.", "weights", "profile")
HEADS = ("adaptive_head.", "reduction_head.")


def describe(target: Target, train: Train, source_simulated: Sequence[bool]) -> dict[str, Any]:
    """What a target is, and what its networks were pre-trained on."""
    accepted, roads = target.accepted, sources(train, target.goal, own=True)
    return {
        "set": target.key,
        "mode": target.goal.mode,
        "variable": accepted.variable,
        "unit": accepted.unit,
        "sensors": target.sensors,
        "sensor_ids": accepted.sensors["sensor"].to_list(),
        "step_minutes": accepted.step_minutes,
        "clock": accepted.clock,
        "null": accepted.null,
        "simulated": accepted.simulated,
        "parts": accepted.parts,
        "sources": roads,
        "source_simulated": list(source_simulated),
        "own_roads": target.key in roads,
        "blocks": {},
        "chosen": {},
        "parameters": {},
        "trained": {},
    }


def learnt_numbers(tensors: Tensors) -> int:
    """Numbers of an arm that were learnt from data."""
    return sum(value.size for name, value in tensors.items() if name.startswith(LEARNT))


def trained_numbers(arm: str, mode: str, tensors: Tensors) -> int:
    """Numbers of an arm that the target's few steps may change."""
    if arm in BASELINES:
        return learnt_numbers(tensors)
    if arm == "zero_shot":
        return 0
    mine = {name.removeprefix("network."): value for name, value in tensors.items() if name.startswith("network.")}
    everything = mode == "road" or arm == "scratch"
    return sum(value.size for name, value in mine.items() if everything or name.startswith(HEADS))


def history_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows of every pre-training, fine-tuning and search; what a stage does not have is null."""
    import polars as pl

    schema: dict[str, Any] = dict.fromkeys(("target", "arm", "stage"), pl.String)
    schema |= dict.fromkeys(("share", "rate", "penalty", "pull", "loss", "validation_mae"), pl.Float64)
    schema |= {"step": pl.Int64, "windows": pl.Int64, "chosen": pl.Boolean}
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def graph_rows(graph: Graph, target: Target, share: float) -> list[dict[str, Any]]:
    """A row an edge, and one with no neighbour for a sensor that has none."""
    names = target.accepted.sensors["sensor"].to_list()
    found: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        own = {
            **{"target": target.key, "share": share, "sensor": name, "position": place},
            "cluster": int(graph.cluster_S[place]),
        }
        there = graph.there_SK[place]
        for rank, (neighbour, similarity) in enumerate(
            zip(graph.neighbour_SK[place][there], graph.similarity_SK[place][there], strict=True)
        ):
            found.append(
                own
                | {
                    **{"rank": rank, "neighbour": names[neighbour], "neighbour_position": int(neighbour)},
                    "similarity": float(similarity),
                }
            )
        if not there.any():
            found.append(own)
    return found


def graph_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Edges of the graphs of the main arm."""
    import polars as pl

    schema: dict[str, Any] = {"target": pl.String, "share": pl.Float64, "sensor": pl.String, "position": pl.Int64}
    schema |= {
        "cluster": pl.Int64,
        "rank": pl.Int64,
        "neighbour": pl.String,
        "neighbour_position": pl.Int64,
        "similarity": pl.Float64,
    }
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
