"""``python -m stages ingest traffic@KEY``: one set to a regular grid of times, with its graph and its records."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages import artifacts, manifest
from stages.ingest.traffic.config import Format
from stages.ingest.traffic.schema import LONG_NAMES, RECORD_COLUMNS
from stages.params import StageParams, bound

if TYPE_CHECKING:
    import xarray as xr

    from stages.ingest.traffic.sets import TrafficSet
    from stages.manifest import Manifest

#: Notes that are printed; all of them stand in set.json.
PRINTED = 20


class Params(StageParams):
    """What ingest reads of params.yaml."""

    path: Path = bound("traffic.sets.{key}.path")
    format: Format = bound("traffic.sets.{key}.format")


def run(params: Params, *, name: str, key: str) -> None:
    """Read one set and write data.zarr, sensors.parquet, records.parquet, set.json and manifest.json.

    Raises
    ------
    DataError
        The files are not what they should be; nothing is written.
    """
    import zarr

    from stages.ingest.origin import origin
    from stages.ingest.traffic.records import table
    from stages.ingest.traffic.sets import open_set

    source = origin(params.path, f"{name}@{key}")
    traffic = replace(open_set(params.path, params.format, key), simulated=source.kind == "simulator")
    records = table(traffic)
    with artifacts.atomic(artifacts.ingested(name, key)) as draft:
        draft.mkdir(parents=True)
        with zarr.config.set({"async.concurrency": 1}):  # one shard in memory at a time
            artifacts.write_dataset(draft / "data.zarr", datasets(traffic))
        artifacts.write_table(draft / "sensors.parquet", traffic.sensors)
        artifacts.write_table(draft / "records.parquet", records)
        artifacts.write_json(draft / "set.json", description(traffic, source))
        manifest.write(draft, source)
    steps, sensors = next(iter(traffic.variables.values())).shape
    print(f"{key}: {', '.join(traffic.variables)}: {steps} steps of {traffic.step_minutes} min x {sensors} sensors")
    for note in traffic.notes[:PRINTED]:
        print(f"note: {key}: {note}", file=sys.stderr)
    if len(traffic.notes) > PRINTED:
        print(f"note: {key}: {len(traffic.notes) - PRINTED} more notes stand in set.json", file=sys.stderr)


def datasets(traffic: TrafficSet) -> dict[str, xr.Dataset]:
    """The groups of data.zarr: series, graph, and roads where there are some.

    Names of sensors and roads are attributes: zarr's third format has no fixed form of arrays of text yet.
    """
    import xarray as xr

    def variables(values: dict[str, Any], dimension: str) -> dict[str, Any]:
        return {
            name: (("time", dimension), values_TX, {"units": traffic.units[name], "long_name": LONG_NAMES[name]})
            for name, values_TX in values.items()
        }

    time = {"time": (("time",), traffic.time_T.astype("datetime64[ns]"))}
    about = {"clock": traffic.clock, "step_minutes": traffic.step_minutes, "timezone": traffic.timezone or ""}
    graph = traffic.graph
    groups = {
        "series": xr.Dataset(
            variables(traffic.variables, "sensor"), coords=time, attrs=about | {"sensors": list(traffic.sensor_ids)}
        ),
        "graph": xr.Dataset(
            {
                "source": (("edge",), graph.source_E),
                "target": (("edge",), graph.target_E),
                "weight": (("edge",), graph.weight_E),
            },
            attrs={"directed": graph.directed, "kind": graph.kind, "unit": graph.unit or ""},
        ),
    }
    if traffic.roads is not None:
        groups["roads"] = xr.Dataset(
            variables(traffic.roads.variables, "road"),
            coords=time,
            attrs=about | {"roads": list(traffic.roads.ids), "source": traffic.roads.source},
        )
    return groups


def description(traffic: TrafficSet, source: Manifest) -> dict[str, Any]:
    """The content of set.json."""
    return {
        "set": traffic.key,
        "reader": traffic.reader,
        "simulated": traffic.simulated,
        "variables": {name: {"units": unit, "null": traffic.null.get(name)} for name, unit in traffic.units.items()},
        "null": traffic.null,
        "steps": len(traffic.time_T),
        "sensors": len(traffic.sensor_ids),
        "step_minutes": traffic.step_minutes,
        "clock": traffic.clock,
        "start": str(traffic.time_T[0]),
        "timezone": traffic.timezone,
        "lane_order": traffic.lane_order,
        "roads": None if traffic.roads is None else traffic.roads.source,
        "graph": graph_facts(traffic),
        "split_unit": "time",
        "files": traffic.files,
        "source_files": traffic.source_files,
        "record_columns": list(RECORD_COLUMNS),
        "notes": traffic.notes,
        "citation": source.citation,
        "license": source.licence,
    }


def graph_facts(traffic: TrafficSet) -> dict[str, Any]:
    """Edges, and which sensors have none; whether every edge stands in both directions with one weight."""
    graph = traffic.graph
    weights = dict(zip(zip(graph.source_E.tolist(), graph.target_E.tolist(), strict=True), graph.weight_E, strict=True))
    isolated = np.setdiff1d(np.arange(len(traffic.sensor_ids)), np.concatenate([graph.source_E, graph.target_E]))
    return {
        "kind": graph.kind,
        "unit": graph.unit,
        "directed": graph.directed,
        "edges": len(weights),
        "symmetric": all(weights.get((target, source)) == weight for (source, target), weight in weights.items()),
        "isolated": [] if graph.kind == "none" else [traffic.sensor_ids[place] for place in isolated],
    }
