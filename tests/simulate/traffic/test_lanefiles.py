"""The files: the layout of lane files, empty cells, equal bytes, and the same reader as for measured lanes."""

from __future__ import annotations

import csv
import datetime
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from stages import manifest
from stages.errors import UsageError
from stages.ingest.traffic.config import Lanes, Units
from stages.ingest.traffic.sets import open_set
from stages.simulate.traffic import days, lanefiles, network, stage
from stages.simulate.traffic.options import Corridor, Simulation

NAMES = ["adjacency.csv", "flow.csv", "occupancy.csv", "road_speed.csv", "simulation.json", "speed.csv"]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def rows(file: Path) -> list[list[str]]:
    with file.open(newline="") as stream:
        return list(csv.reader(stream))


def test_the_layout_is_that_of_lane_files(lane_files: Path) -> None:
    assert sorted(path.name for path in lane_files.iterdir()) == NAMES
    header, first, *_ = speed = rows(lane_files / "speed.csv")
    lanes = [(station, lane) for station, count in ((1, 2), (2, 2), (3, 2), (4, 1)) for lane in range(1, count + 1)]
    assert header == ["Sample Time", *(f"sensors {station} Lane {lane}" for station, lane in lanes)]
    assert first[0] == "1/8/2026 7:00"
    assert [row[0] for row in speed[12:14]] == ["1/8/2026 7:55", "1/9/2026 7:00"]
    assert len(speed) == 1 + 2 * 12
    assert rows(lane_files / "road_speed.csv")[0] == ["Sample Time", "Avg_1", "Avg_2", "Avg_3", "Avg_4"]


def test_stamps_of_a_day_have_no_leading_zeros_but_in_minutes() -> None:
    stamps = lanefiles.stamps_of(Simulation(seed=0, interval_minutes=1), datetime.date(2026, 11, 3))
    assert len(stamps) == 1440
    assert (stamps[0], stamps[5], stamps[-1]) == ("11/3/2026 0:00", "11/3/2026 0:05", "11/3/2026 23:59")


def test_what_was_not_measured_is_an_empty_cell(tmp_path: Path) -> None:
    lanefiles.write_table(tmp_path / "x.csv", ["1/1/2026 0:00"], ["a", "b", "c"], np.array([[61.05, np.nan, 0.0]]))
    assert (tmp_path / "x.csv").read_text() == "Sample Time,a,b,c\n1/1/2026 0:00,61.05,,0.0\n"


def test_a_road_is_the_mean_of_the_lanes_that_have_a_value() -> None:
    detectors = network.detectors(Corridor(lanes=2, stations_m=(250, 2300)))
    speed_TD = np.array([[60.0, 80.0, 90.0], [np.nan, 80.0, np.nan], [np.nan, np.nan, 70.0]])
    expected = [[70, 90], [80, np.nan], [np.nan, 70]]
    np.testing.assert_array_equal(lanefiles.road_means(speed_TD, detectors), expected)


def test_the_adjacency_is_symmetric_with_ones_on_its_diagonal(tmp_path: Path) -> None:
    detectors = network.detectors(Corridor(lanes=2, stations_m=(250, 500, 2300)))
    lanefiles.write_adjacency(tmp_path / "adjacency.csv", detectors)
    # Lanes from the right: 1 and 2 of two stations, and the one that is left after the drop.
    assert (tmp_path / "adjacency.csv").read_text().splitlines() == [
        ",0,1,2,3,4",
        "0,1,1,1,0,0",
        "1,1,1,0,1,0",
        "2,1,0,1,1,0",
        "3,0,1,1,1,1",
        "4,0,0,0,1,1",
    ]


def test_equal_options_give_equal_bytes_however_many_days_run_at_a_time(
    lane_files: Path, simulation: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "processes", lambda count: 1)
    lanefiles.write(tmp_path, simulation)
    assert digests(tmp_path) == digests(lane_files)


def test_simulation_json_says_what_the_numbers_are(lane_files: Path, tmp_path: Path) -> None:
    text = (lane_files / "simulation.json").read_text()
    found = json.loads(text)
    assert found["simulated"] is True
    assert found["units"] == {"speed": "km/h", "flow": "veh/step", "occupancy": "fraction"}
    assert (found["lane_order"], found["lane_drop_m"]) == ("1 is the rightmost", 900)
    assert found["stations"]["4"] == {"place_m": 1000, "lanes": 1}
    assert [day["date"] for day in found["days"]] == ["2026-01-08", "2026-01-09"]
    for day in found["days"]:
        counts = day["vehicles"]
        assert counts["inserted"] == counts["arrived"] + counts["inside"]
    assert str(lane_files) not in text


def test_the_reader_of_lane_files_reads_it(lane_files: Path) -> None:
    options = Lanes(reader="lanes", units=Units(speed="km/h"), lane_order="1 is the rightmost")
    opened = open_set(lane_files, options, "small")
    assert opened.units == {"speed": "km h-1", "flow": "veh per step", "occupancy": "1"}
    assert opened.sensor_ids[:3] == ("sensors 1 Lane 1", "sensors 1 Lane 2", "sensors 2 Lane 1")
    assert opened.step_minutes == 5
    assert opened.roads is not None
    assert opened.roads.source == "file"
    written = np.array([[float(cell or "nan") for cell in row[1:]] for row in rows(lane_files / "speed.csv")[1:]])
    read_TD = opened.variables["speed"]
    np.testing.assert_allclose(read_TD[:12], written[:12], rtol=1e-6)
    np.testing.assert_allclose(read_TD[-12:], written[-12:], rtol=1e-6)
    # Within a station lanes side by side, between stations those that go on; each edge both ways.
    assert opened.graph.source_E.size == 2 * ((1 + 1 + 1) + (2 + 2 + 1))


def write_params(block: dict[str, object]) -> None:
    Path("params.yaml").write_text(yaml.safe_dump({"traffic": {"simulated": {"small": block}}}))


def test_the_stage_writes_a_manifest_that_says_simulator(workspace: Path, simulation: Simulation) -> None:
    block = simulation.model_copy(update={"days": 1, "hours": (3, 4)}).model_dump(mode="json")
    write_params(block)
    stage.run(stage.Params.read(name="traffic", key="small"), name="traffic", key="small")
    found = manifest.verify(Path("data/raw/small"))
    assert (found.kind, found.source) == ("simulator", "small")
    assert (found.origin["module"], found.origin["seed"]) == ("stages.simulate.traffic", 7)
    assert found.origin["options"] == {name: value for name, value in block.items() if name != "seed"}
    assert [file.name for file in found.files] == NAMES
    assert all(path.stat().st_mode & 0o777 == 0o444 for path in Path("data/raw/small").iterdir())


def test_an_unknown_option_is_named(workspace: Path) -> None:
    write_params({"seed": 5, "vehicles": {"truks": 1}})
    with pytest.raises(
        UsageError, match=r"traffic.simulated.small.vehicles.truks is not a known key; did you mean 'tr"
    ):
        stage.Params.read(name="traffic", key="small")
