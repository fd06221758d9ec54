"""LibCity's atomic files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stages.errors import DataError
from stages.ingest.traffic import delimited
from tests.ingest.traffic.layouts import STATIONS, csv, libcity, opened


def test_metr_la(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = libcity(tmp_path)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 300)
    traffic = opened(tmp_path, "libcity")
    np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
    assert traffic.sensor_ids == STATIONS
    assert (traffic.step_minutes, traffic.timezone, str(traffic.time_T[0])) == (5, None, "2012-03-01T00:00")
    assert traffic.sensors["latitude"].to_list() == [34.10, 34.11, 34.12]
    assert traffic.sensors["longitude"].to_list() == [-118.30, -118.31, -118.32]
    graph = traffic.graph
    assert (graph.source_E.tolist(), graph.target_E.tolist()) == ([0, 2], [1, 1])
    assert (graph.weight_E.tolist(), graph.kind) == ([1200.5, 800.0], "distance")
    assert traffic.notes == ("METR_LA.rel: 1 of 3 edges lead from a sensor to itself; they are left out",)
    assert traffic.files == ("METR_LA.dyna", "config.json", "METR_LA.geo", "METR_LA.rel")


def test_the_z_behind_local_times_is_not_utc(tmp_path: Path) -> None:
    libcity(tmp_path)
    traffic = opened(tmp_path, {"reader": "libcity", "timezone": "America/Los_Angeles"})
    assert str(traffic.time_T[0]) == "2012-03-01T08:00"


def test_weights_that_are_used_as_they_are(tmp_path: Path) -> None:
    libcity(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    content["info"]["calculate_weight_adj"] = False
    (tmp_path / "config.json").write_text(json.dumps(content))
    assert opened(tmp_path, "libcity").graph.kind == "adjacency"


def test_lines_and_columns_of_ones_own(tmp_path: Path) -> None:
    csv(tmp_path / "a.geo", ["geo_id", "type", "coordinates"], [[7, "LineString", '"[[10.0, 50.0], [10.2, 50.4]]"']])
    rows = [[0, "state", "2020-01-01T00:00:00Z", 7, 5, 1], [1, "state", "2020-01-01T00:15:00Z", 7, "", 2]]
    csv(tmp_path / "a.dyna", ["dyna_id", "type", "time", "entity_id", "volume", "extra"], rows)
    traffic = opened(tmp_path, {"reader": "libcity", "columns": {"volume": "flow"}, "units": {"flow": "veh/h"}})
    np.testing.assert_array_equal(traffic.variables["flow"], [[5], [np.nan]])
    assert (traffic.units, traffic.step_minutes) == ({"flow": "veh h-1"}, 15)
    assert traffic.sensors.row(0)[-2:] == pytest.approx((50.2, 10.1))
    assert traffic.notes == ("a.dyna: the columns extra are not read",)
    with pytest.raises(DataError, match=r"found the columns dyna_id, type, .*; expected one of traffic_speed"):
        opened(tmp_path, "libcity")


def test_holes_and_copies(tmp_path: Path) -> None:
    values = libcity(tmp_path)
    lines = (tmp_path / "METR_LA.dyna").read_text().splitlines()
    (tmp_path / "METR_LA.dyna").write_text("\n".join([*lines[:3], *lines[4:], lines[5]]) + "\n")
    traffic = opened(tmp_path, "libcity")
    expected = values.astype(np.float32)
    expected[2, 0] = np.nan
    np.testing.assert_array_equal(traffic.variables["speed"], expected)
    assert "METR_LA.dyna, line 37: repeats a line before; merged" in traffic.notes


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("9,state,2012-03-01T00:00:00Z,773869,1.5", "where a line before has"),
        ("9,state,2012-03-01T00:00:00Z,999999,1.5", "line 38: found the sensor '999999', which .geo does not have"),
        ("9,state,yesterday,773869,1.5", "found the stamp 'yesterday'"),
        ("9,state,2012-03-01T00:00:00Z,773869,fast", "line 38, column 'traffic_speed': found 'fast'"),
        ("9,state,2012-03-01 00:00:00,773869,60", "for one moment; expected one way of writing a time"),
    ],
)
def test_broken_values(tmp_path: Path, line: str, told: str) -> None:
    libcity(tmp_path)
    file = tmp_path / "METR_LA.dyna"
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(DataError, match=r"METR_LA\.dyna") as caught:
        opened(tmp_path, "libcity")
    assert told in str(caught.value)


def test_sets_of_another_kind(tmp_path: Path) -> None:
    libcity(tmp_path)
    csv(
        tmp_path / "METR_LA.dyna",
        ["dyna_id", "type", "time", "row_id", "column_id", "flow"],
        [[0, "state", "x", 0, 0, 1]],
    )
    with pytest.raises(DataError, match=r"expected a column 'entity_id'\. .*sets of a grid or of trips are not read"):
        opened(tmp_path, {"reader": "libcity"})


def test_a_missing_file_and_a_weight_that_is_none(tmp_path: Path) -> None:
    libcity(tmp_path)
    csv(tmp_path / "METR_LA.rel", ["rel_id", "type", "origin_id", "destination_id", "cost"], [[0, "geo", 1, 2, "x"]])
    with pytest.raises(DataError, match=r"METR_LA\.rel, line 2, column 'cost': found 'x'"):
        opened(tmp_path, "libcity")
    csv(tmp_path / "METR_LA.rel", ["rel_id", "type", "origin_id", "destination_id"], [[0, "geo", 1, 2]])
    with pytest.raises(DataError, match=r"METR_LA\.rel, line 1: found the columns .*; expected also cost"):
        opened(tmp_path, "libcity")
    (tmp_path / "METR_LA.geo").unlink()
    with pytest.raises(DataError, match=r"METR_LA\.geo: found no such file"):
        opened(tmp_path, "libcity")
