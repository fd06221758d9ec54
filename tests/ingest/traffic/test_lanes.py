"""Lane tables: join on time, roads, lane order, headers that pandas made unique."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stages.errors import DataError
from tests.ingest.traffic.layouts import csv, lane_names, lanes, opened, speeds

PEMS_LANE = Path(__file__).resolve().parents[4] / "shared/data/traffic/pems_lane"


def test_a_folder_of_lane_files(tmp_path: Path) -> None:
    values = lanes(tmp_path)
    traffic = opened(tmp_path, "lanes")
    np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
    assert traffic.units == {"speed": "mph", "flow": "veh per step"}
    assert np.isnan(traffic.variables["flow"][:, 2:]).all()
    assert np.isfinite(traffic.variables["flow"][:, :2]).all()
    assert traffic.sensor_ids == tuple(lane_names())
    assert traffic.sensors["road"].to_list() == ["1", "1", "2", "2"]
    assert traffic.sensors["lane"].to_list() == [1, 2, 1, 2]
    assert traffic.sensors["lane_count"].to_list() == [2, 2, 2, 2]
    assert traffic.lane_order == "1 is the fastest"
    assert traffic.roads is not None
    assert (traffic.roads.ids, traffic.roads.source) == (("1", "2"), "file")
    np.testing.assert_allclose(traffic.roads.variables["speed"][:, 0], values[:, :2].mean(axis=1), rtol=1e-6)
    edges = set(zip(traffic.graph.source_E.tolist(), traffic.graph.target_E.tolist(), strict=True))
    assert edges == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert not traffic.graph.directed
    assert traffic.files == ("PeMS_Speed.csv", "PeMS_flow.csv", "PeMS_road_speed.csv", "PEMS_adj.csv")
    assert "PeMS_flow.csv: 2 of 4 sensors have a flow; missing for sensors 2 Lane 1, sensors 2 Lane 2" in traffic.notes


def test_roads_are_joined_by_time_and_never_by_row(tmp_path: Path) -> None:
    values = lanes(tmp_path, steps=40, missing=(5, 17), blank=(9, 30))
    traffic = opened(tmp_path, "lanes")
    assert traffic.roads is not None
    kept = np.delete(np.arange(40), (5, 17))
    means = values.reshape(40, 2, 2).mean(axis=2)
    np.testing.assert_allclose(traffic.roads.variables["speed"][kept], means[kept], rtol=1e-6)
    assert np.isnan(traffic.roads.variables["speed"][[5, 17]]).all()
    assert np.isnan(traffic.variables["speed"][[5, 17]]).all()
    speed_notes = [note for note in traffic.notes if note.startswith("PeMS_Speed")]
    assert speed_notes == [
        "PeMS_Speed.csv, line 11: no time stamp, the row is left out; its values repeat those of line 10",
        "PeMS_Speed.csv, line 32: no time stamp, the row is left out; its values repeat those of line 31",
        "PeMS_Speed.csv, 2012-03-01 00:25: missing",
        "PeMS_Speed.csv, 2012-03-01 01:25: missing",
    ]


def test_without_a_road_file_roads_are_means_of_the_lanes_measured(tmp_path: Path) -> None:
    names = lane_names()
    rows = [["2/5/2017 0:00", 60, 50, 40, ""], ["2/5/2017 0:05", 61, "", "", ""]]
    csv(tmp_path / "speed.csv", ["Sample Time", *names], rows)
    traffic = opened(tmp_path, "lanes")
    assert traffic.roads is not None
    assert traffic.roads.source == "mean of lanes"
    np.testing.assert_array_equal(traffic.roads.variables["speed"], [[55, 40], [61, np.nan]])
    assert traffic.graph.kind == "none"


def test_lanes_counted_from_0_are_counted_from_the_right(tmp_path: Path) -> None:
    names = [f"sensors E{road} Lane {lane}" for road in (1, 2) for lane in (0, 1)]
    csv(tmp_path / "speed.csv", ["Sample Time", *names], [["2/5/2017 0:00", 1, 2, 3, 4], ["2/5/2017 0:01", 1, 2, 3, 4]])
    csv(tmp_path / "road_speed.csv", ["Sample Time", "Avg_E1", "Avg_E2"], [["2/5/2017 0:00", 1.5, 3.5]])
    traffic = opened(tmp_path, "lanes")
    assert traffic.lane_order == "0 is the rightmost"
    assert traffic.roads is not None
    assert traffic.roads.ids == ("E1", "E2")
    assert opened(tmp_path, {"reader": "lanes", "lane_order": "0 is the median"}).lane_order == "0 is the median"


def test_a_simulator_says_units_and_lane_order(tmp_path: Path) -> None:
    lanes(tmp_path)
    units = {"speed": "km/h", "flow": "veh/step", "occupancy": "fraction"}
    told = {"simulated": True, "units": units, "lane_order": "1 is the rightmost"}
    (tmp_path / "simulation.json").write_text(json.dumps(told))
    traffic = opened(tmp_path, "lanes")
    assert (traffic.units["speed"], traffic.lane_order) == ("km h-1", "1 is the rightmost")
    assert "simulation.json" in traffic.files
    assert opened(tmp_path, {"reader": "lanes", "units": {"speed": "m/s"}}).units["speed"] == "m s-1"
    (tmp_path / "simulation.json").write_text("{}")
    with pytest.raises(DataError, match=r"simulation\.json: found no units or lane order"):
        opened(tmp_path, "lanes")


def test_a_suffix_that_made_a_name_unique(tmp_path: Path) -> None:
    names = lane_names()
    rows = [["2/5/2017 0:00", *row] for row in speeds(1, 4).tolist()] + [["2/5/2017 0:05", 60, 60, 60, 60]]
    csv(tmp_path / "speed.csv", ["Sample Time", *names[:3], "sensors 2 Lane 2.1"], rows)
    traffic = opened(tmp_path, "lanes")
    assert traffic.sensor_ids == tuple(names)
    assert traffic.notes == ("speed.csv, column 'sensors 2 Lane 2.1': read as 'sensors 2 Lane 2'",)
    csv(tmp_path / "speed.csv", ["Sample Time", *names[:3], "sensors 2 Lane 1.1"], rows)
    with pytest.raises(DataError, match=r"column 'sensors 2 Lane 1\.1': found the lane 'sensors 2 Lane 1' twice"):
        opened(tmp_path, "lanes")


@pytest.mark.parametrize(
    ("file", "header", "told"),
    [
        ("PeMS_Speed.csv", ["Sample Time", "Avg_1"], "column 'Avg_1': found a name that is no lane"),
        ("PeMS_Speed.csv", ["time", "sensors 1 Lane 1"], "found 0 columns 'Sample Time' among time, sensors 1 Lane 1"),
        (
            "PeMS_road_speed.csv",
            ["Sample Time", "Avg_9"],
            "column 'Avg_9': found the road '9', of which there is no lane",
        ),
        ("PeMS_road_speed.csv", ["Avg_1", "Avg_2"], "found 0 columns 'Sample Time' among Avg_1, Avg_2"),
    ],
)
def test_columns_that_are_refused(tmp_path: Path, file: str, header: list[str], told: str) -> None:
    lanes(tmp_path)
    csv(tmp_path / file, header, [["2/5/2017 0:00", 60]])
    with pytest.raises(DataError, match=file) as caught:
        opened(tmp_path, "lanes")
    assert told in str(caught.value)


def test_no_lane_file(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ["Sample Time", "sensors 1 Lane 1"], [["2/5/2017 0:00", 60]])
    with pytest.raises(DataError, match="found no csv with speed, flow or occupancy in its name"):
        opened(tmp_path, "lanes")
    assert opened(tmp_path, {"reader": "lanes", "speed": "a.csv", "step_minutes": 5}).sensor_ids == (
        "sensors 1 Lane 1",
    )


@pytest.mark.shared
@pytest.mark.skipif(not PEMS_LANE.is_dir(), reason="needs the developers' data folder")
def test_the_public_lane_set() -> None:
    traffic = opened(PEMS_LANE, "lanes")
    assert traffic.variables["speed"].shape == (8064, 40)
    empty = np.isnan(traffic.variables["speed"]).all(axis=1)
    assert [str(moment) for moment in traffic.time_T[empty]] == [
        "2017-02-05T14:20",
        "2017-02-06T01:15",
        "2017-02-10T00:55",
        "2017-02-15T14:15",
        "2017-02-16T13:05",
        "2017-02-18T10:10",
        "2017-02-26T13:00",
    ]
    assert sum("no time stamp" in note for note in traffic.notes if note.startswith("PeMS_Speed")) == 2
    assert np.isnan(traffic.variables["flow"]).all(axis=0).sum() == 20
    assert traffic.roads is not None
    means = traffic.variables["speed"].reshape(8064, 8, 5).mean(axis=2)
    assert np.nanmax(np.abs(means - traffic.roads.variables["speed"])) < 1e-4
    assert traffic.sensors.filter(traffic.sensors["road"] == "6")["lane"].to_list() == [1, 2, 3, 4, 5]
