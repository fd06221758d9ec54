"""The verb: what it writes, equal bytes, and that nothing is left when it fails."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from stages import artifacts, manifest
from stages.errors import DataError
from stages.ingest.traffic.schema import RECORD_COLUMNS, SENSOR_COLUMNS
from stages.ingest.traffic.stage import Params, run
from tests.ingest.traffic.layouts import lanes, metr_la, speeds, wide

FOLDER = Path("data/ingested/traffic/lab")


def ingest(format_: Any) -> Path:
    tree = {"traffic": {"sets": {"lab": {"path": "raw", "format": format_, "gate": {}}}}}
    Path("params.yaml").write_text(yaml.safe_dump(tree))
    run(Params.read(name="traffic", key="lab"), name="traffic", key="lab")
    return artifacts.ingested("traffic", "lab")


def test_the_verb_writes_one_folder(workspace: Path, stages: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    values = metr_la(workspace / "raw", steps=576)
    block = {"path": "raw", "format": {"reader": "hdf", "null_value": 0}, "gate": {}}
    (workspace / "params.yaml").write_text(yaml.safe_dump({"traffic": {"sets": {"lab": block}}}))
    result = stages("ingest", "traffic@lab", cwd=workspace)
    assert result.returncode == 0, result.stderr
    assert "lab: speed: 576 steps of 5 min x 3 sensors" in result.stdout
    assert "note: lab: adj_mx.pkl: 3 weights of a sensor to itself are no edges" in result.stderr
    folder = workspace / FOLDER
    assert sorted(path.name for path in folder.iterdir()) == [
        "data.zarr",
        "manifest.json",
        "records.parquet",
        "sensors.parquet",
        "set.json",
    ]
    with artifacts.open_dataset(folder / "data.zarr", "series") as series:
        assert series["speed"].dims == ("time", "sensor")
        assert series["speed"].dtype == np.float32
        assert series["speed"].attrs["units"] == "mph"
        assert series.attrs["sensors"] == ["773869", "767541", "767542"]
        assert np.isnan(series["speed"].to_numpy()[4, 1])
        assert series["speed"].to_numpy()[5, 0] == np.float32(values[5, 0])
        assert str(series["time"].to_numpy()[1])[:16] == "2012-03-01T00:05"
    with artifacts.open_dataset(folder / "data.zarr", "graph") as graph:
        assert graph["source"].dtype == graph["target"].dtype == np.int64
        assert graph["weight"].to_numpy().tolist() == [0.5, 0.25, 0.75]
        assert graph.attrs == {"directed": True, "kind": "adjacency", "unit": "1"}
    records = pl.read_parquet(folder / "records.parquet")
    assert records.schema == {name: getattr(pl, kind) for name, kind in RECORD_COLUMNS.items()}
    assert records.height == 6
    assert records.filter(pl.col("speed_null_share") > 0)["record_id"].to_list() == ["lab/767541/2012-03-01"]
    table = pl.read_parquet(folder / "sensors.parquet")
    assert table.schema == {name: getattr(pl, kind) for name, kind in SENSOR_COLUMNS.items()}
    about = json.loads((folder / "set.json").read_text())
    assert about["variables"] == {"speed": {"null": 0.0, "units": "mph"}}
    assert about["graph"]["symmetric"] is False
    assert (about["step_minutes"], about["clock"], about["timezone"], about["simulated"]) == (5, True, None, False)
    assert about["split_unit"] == "time"
    origin = manifest.read(folder)
    assert origin is not None
    assert origin.origin == {"path": "raw"}


def test_lanes_have_roads_and_a_set_without_a_graph_has_no_edges(workspace: Path) -> None:
    lanes(workspace / "raw")
    (workspace / "raw/PEMS_adj.csv").unlink()
    folder = ingest("lanes")
    with artifacts.open_dataset(folder / "data.zarr", "roads") as roads:
        assert roads["speed"].dims == ("time", "road")
        assert (roads.attrs["roads"], roads.attrs["source"]) == (["1", "2"], "file")
    with artifacts.open_dataset(folder / "data.zarr", "graph") as graph:
        assert (graph.sizes["edge"], graph.attrs["kind"]) == (0, "none")
    about = artifacts.read_json(folder / "set.json")
    assert (about["roads"], about["lane_order"]) == ("file", "1 is the fastest")
    assert about["graph"] == {
        "directed": False,
        "edges": 0,
        "isolated": [],
        "kind": "none",
        "symmetric": True,
        "unit": None,
    }
    records = pl.read_parquet(folder / "records.parquet")
    assert records["road_difference"].max() < 1e-4  # type: ignore[operator]


def test_equal_inputs_give_equal_bytes(workspace: Path) -> None:
    lanes(workspace / "raw")
    first = artifacts.sha256_tree(ingest("lanes"))
    assert artifacts.sha256_tree(ingest("lanes")) == first


def test_a_failure_leaves_the_old_set(workspace: Path) -> None:
    wide(workspace / "raw/speed.csv", speeds(12, 3))
    block = {"reader": "wide", "time": "time", "unit": "mph"}
    before = artifacts.sha256_tree(ingest(block))
    (workspace / "raw/speed.csv").write_text("time,a\n2012-03-01 00:00,fast\n")
    with pytest.raises(DataError, match="found 'fast'"):
        ingest(block)
    assert artifacts.sha256_tree(FOLDER) == before
    assert not any((workspace / "data/.partial").glob("*/lab"))


def test_only_a_simulators_files_are_called_simulated(workspace: Path) -> None:
    raw = workspace / "data/raw/sim"
    wide(raw / "speed.csv", speeds(12, 3))
    written = manifest.of_path(raw, "sim").model_copy(update={"kind": "simulator", "origin": {"seed": 0}})
    manifest.write(raw, written)
    block = {"path": "data/raw/sim", "format": {"reader": "wide", "time": "time", "unit": "mph"}, "gate": {}}
    (workspace / "params.yaml").write_text(yaml.safe_dump({"traffic": {"sets": {"sim": block}}}))
    run(Params.read(name="traffic", key="sim"), name="traffic", key="sim")
    assert artifacts.read_json(artifacts.ingested("traffic", "sim") / "set.json")["simulated"] is True
