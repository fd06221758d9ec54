from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.errors import DataError, GateStopped, UsageError
from stages.report.gate import read_gate
from stages.validate import expectations
from stages.validate.traffic import stage
from stages.validate.traffic.stage import Params
from tests.conftest import ROOT
from tests.validate.traffic.fakes import DAYS, SENSORS, STEPS, flows, ingested, params, records, speeds

pytestmark = pytest.mark.usefixtures("workspace")


def run(params: Params) -> dict[str, Any]:
    stage.run(params, name="traffic", key="")
    return written()


def written() -> dict[str, Any]:
    summary: dict[str, Any] = artifacts.read_json(artifacts.validated("traffic") / "summary.json")
    return summary


def table(name: str) -> pl.DataFrame:
    return artifacts.read_table(artifacts.validated("traffic") / f"{name}.parquet").collect()


def refused() -> list[tuple[str, str]]:
    return table("verdict").filter(pl.col("outcome") == "quarantined").select("record_id", "reason").rows()


def two_sets() -> Params:
    speed = speeds()
    speed[200, 1] = 160
    speed[300:400, 2] = np.nan
    ingested("roads", {"speed": speed})
    ingested("night", {"flow": flows()}, edges=())
    return params("roads", "night", night={"licence": "CC0"})


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two sets went through the gate."""
    folder = tmp_path_factory.mktemp("passed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(two_sets())
    return folder


@pytest.fixture
def sets(passed: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Work in that folder; its summary. Only for reading."""
    monkeypatch.chdir(passed)
    return written()


def test_accepted_and_quarantined_are_all_that_was_ingested(sets: dict[str, Any]) -> None:
    assert (sets["outcome"], sets["noun"]) == ("pass with quarantine", "sensor-day")
    assert (sets["ingested"], sets["accepted"], sets["quarantined"]) == (80, 78, 2)
    assert table("verdict")["record_id"].n_unique() == 80
    assert refused() == [
        ("roads/a1/day-002", "speed of roads/a1/day-002 reaches 160 mph; the gate allows 0 to 120 mph: another unit?"),
        ("roads/b0/day-003", "12.5% of the steps of roads/b0/day-003 have a speed; the gate asks for 50.0%"),
    ]
    assert sets["sites"]["night"]["source"]["licence"] == "CC0"


def test_a_night_without_a_vehicle_is_no_fault(sets: dict[str, Any]) -> None:
    assert (flows() == 0).mean() > 0.2
    assert sets["sites"]["night"]["failed"] == {}
    assert sets["sites"]["night"]["warned"] == 0


def test_the_parts_are_steps_of_the_whole_set_with_a_gap_of_a_window(sets: dict[str, Any]) -> None:
    found = table("splits")
    assert found.columns == ["record_id", "group", "split", "part", "start", "stop"]
    assert set(found["record_id"]) == set(table("verdict")["record_id"])
    bounds = (
        found.filter(pl.col("group") == "roads/a0").group_by("part").agg(pl.col("start").min(), pl.col("stop").max())
    )
    assert sorted(bounds.filter(pl.col("part") != "gap").rows(), key=lambda row: row[1]) == [
        ("train", 0, 672),
        ("validation", 696, 768),
        ("test", 792, 960),
    ]
    covered = found.filter(pl.col("group") == "roads/a0").sort("start").select("start", "stop").rows()
    assert [start for start, _ in covered] == [0, *(stop for _, stop in covered[:-1])]
    assert sets["leakage"] == {"by time, night": [], "by time, roads": []}


def test_a_day_across_a_boundary_has_a_row_in_each_part(sets: dict[str, Any]) -> None:
    rows = table("splits").filter(pl.col("record_id") == "roads/a0/day-007").select("part", "start", "stop").rows()
    assert rows == [("gap", 672, 696), ("validation", 696, 768)]


def test_the_report_reads_the_summary(sets: dict[str, Any]) -> None:
    gate = read_gate(artifacts.validated("traffic"))
    assert (gate.domain, gate.noun) == ("traffic", "sensor-day")
    assert gate.sites["roads"].about.resolution == "15 minutes"
    assert gate.sites["roads"].about.start == "2024-01-01T00:00"
    assert gate.sites["night"].about.variables["flow"].unit == "veh per step"
    assert list(gate.splits["by time, roads"].parts) == ["train", "validation", "test"]
    assert gate.splits["by time, roads"].parts["test"].groups == ["4 sensors, steps 792 to 960"]


def test_json_holds_null_and_the_pages_need_no_network(sets: dict[str, Any]) -> None:
    folder = artifacts.validated("traffic")
    json.loads((folder / "summary.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert sorted(path.name for path in (folder / "docs").glob("*.html")) == ["index.html", "night.html", "roads.html"]
    for page in (folder / "docs").glob("*.html"):
        text = page.read_text()
        assert not re.search(r"https?:|//|<script|@import|url\(", text)
        for target in re.findall(r'href="([^"]+)"', text):
            assert (folder / "docs" / target).is_file()
    assert 'title="a1 day-002: quarantined"' in (folder / "docs" / "roads.html").read_text()


def test_the_saved_suite_gives_the_verdict_that_was_written(sets: dict[str, Any]) -> None:
    judged = stage.judge_set("roads", params("roads"))
    saved = json.loads((artifacts.validated("traffic") / "docs" / "suites" / "roads.json").read_text())
    assert expectations.judge(judged.records, saved) == [r for r in judged.results if r.rule.name != "columns"]


def test_too_many_refused_days_stop_and_the_verdict_is_kept() -> None:
    speed = speeds()
    speed[:, 1] = np.nan
    ingested("roads", {"speed": speed})
    with pytest.raises(GateStopped, match=r"roads: 10 of 40 records are quarantined \(25.0%\); the gate allows 20.0%"):
        run(params("roads"))
    assert len(refused()) == 10
    assert run(params("roads", gate={"max_quarantined": 0.3}))["outcome"] == "pass with quarantine"


def test_negative_speeds_are_refused_as_normalised() -> None:
    speed = speeds()
    ingested("roads", {"speed": (speed - speed.mean()) / speed.std()})
    with pytest.raises(GateStopped, match=r"of the values of speed of roads are below 0; .*normalised already"):
        run(params("roads"))
    assert len(refused()) == 40
    assert refused()[0][1].endswith("the gate allows 0 to 120 mph: already normalised?")


def test_km_per_hour_labelled_mph_stop_in_words() -> None:
    ingested("roads", {"speed": speeds() * np.float32(1.609344)})
    told = r"free-flow speed of roads .* is 10\d\.\d mph; the gate allows 15 to 85 mph: km/h labelled mph\? .* 6\d mph"
    with pytest.raises(GateStopped, match=told):
        run(params("roads"))
    ingested("right", {"speed": speeds() * np.float32(1.609344)}, units={"speed": "km h-1"})
    assert run(params("right"))["outcome"] == "pass"


def test_mph_labelled_km_per_hour_are_told_where_lanes_are_measured() -> None:
    speed = speeds()
    roads = {"speed": np.stack([speed[:, :2].mean(axis=1), speed[:, 2:].mean(axis=1)], axis=1)}
    ingested("lanes", {"speed": speed}, roads=roads, units={"speed": "km h-1"})
    summary = run(params("lanes"))
    assert summary["outcome"] == "pass"
    (told,) = [note for note in summary["sites"]["lanes"]["about"]["notes"] if "free-flow" in note]
    assert told.endswith("the gate expects at least 75 km/h: mph labelled km/h?")


def test_a_sensor_that_is_zero_all_the_time_is_told_by_its_id_and_shown_apart() -> None:
    flow = flows()
    flow[:, 2] = 0
    ingested("night", {"flow": flow})
    with pytest.raises(GateStopped, match=r"night: 10 of 40 records"):
        run(params("night"))
    assert {reason for _, reason in refused()} == {"flow of sensor b0 is 0 all the time: no detector works there"}
    summary = run(params("night", night={"gate": {"zero_sensors": "report"}}))
    assert (summary["outcome"], summary["quarantined"]) == ("pass", 0)
    assert "flow of sensor b0 is 0 all the time" in summary["sites"]["night"]["about"]["notes"]


def test_speeds_of_zero_are_suspected_of_being_a_null_value() -> None:
    speed = speeds()
    speed[100:160, 0] = 0
    ingested("roads", {"speed": speed})
    run(params("roads"))
    assert refused()[0][1].split(" | ") == [
        "62.5% of the steps of roads/a0/day-001 have speed 0, which the set does not state as its null value; the gate "
        "allows 25.0%: give `null_value: 0` if it means `not measured`",
        "speed of roads/a0/day-001 keeps one value for 900 minutes; the gate allows 720: a detector that hangs?",
    ]


def test_zero_as_the_null_value_of_a_flow_is_told() -> None:
    ingested("night", {"flow": flows()}, null={"flow": 0.0})
    notes = run(params("night"))["sites"]["night"]["about"]["notes"]
    assert any(note.startswith("0 is the stated null value of flow of night: an empty road at night") for note in notes)


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        (((0, 1, np.nan), (1, 0, np.nan)), r"2 edges .* have a weight that is no number, first a0 to a1"),
        (((0, 9, 1.0), (9, 0, 1.0)), r"2 edges .* sensor that the set does not have, first a0 to number 9"),
        (((0, 1, 1.0),), r"1 edges .* have no equal edge the other way, first a0 to a1: say `directed: true`"),
        (((0, 1, 1.0), (1, 0, 0.5)), r"2 edges .* have no equal edge the other way"),
        (((0, 1, -1.0), (1, 0, -1.0)), r"2 edges .* have a weight below 0"),
    ],
)
def test_a_faulty_graph_stops(edges: tuple[tuple[int, int, float], ...], told: str) -> None:
    ingested("roads", edges=edges)
    with pytest.raises(GateStopped, match=told):
        run(params("roads"))


def test_a_directed_graph_may_have_one_way_edges_and_isolated_sensors_are_told_by_id() -> None:
    ingested("roads", edges=((0, 1, 1.0), (1, 2, 0.5)), directed=True)
    summary = run(params("roads"))
    assert summary["outcome"] == "pass"
    assert "sensor b1 has no neighbour in the graph" in summary["sites"]["roads"]["about"]["notes"]


def test_a_grid_that_is_not_regular_stops() -> None:
    time = np.datetime64("2024-01-01T00:00", "ns") + np.arange(DAYS * STEPS) * np.timedelta64(15, "m")
    time[500:] += np.timedelta64(5, "m")
    ingested("roads", time=time)
    told = r"1 steps of roads are not as long as the others, the first ends at 2024-01-06T05:05"
    with pytest.raises(GateStopped, match=told):
        run(params("roads"))


def test_roads_that_were_paired_by_row_are_named_with_their_shift() -> None:
    speed = speeds()
    road = np.stack([speed[:, :2].mean(axis=1), speed[:, 2:].mean(axis=1)], axis=1)
    ingested("lanes", {"speed": speed}, roads={"speed": road})
    assert run(params("lanes"))["outcome"] == "pass"
    late = road.copy()
    late[6 * STEPS + 2 :] = road[6 * STEPS : -2]
    ingested("lanes", {"speed": speed}, roads={"speed": late})
    told = (
        r"lanes: the road values run 2 steps \(30 minutes\) late against their lanes on 4 days, day-006 to day-009: "
        r"mean difference \S+ on the same times and \S+ when moved; were the tables paired by row\?"
    )
    with pytest.raises(GateStopped, match=told):
        run(params("lanes"))


def test_lanes_far_from_their_road_are_refused() -> None:
    rows = records("lanes", {"speed": speeds()}).with_columns(
        road_difference=pl.when(pl.col("day") == "day-003").then(51.0).otherwise(0.1)
    )
    speed = speeds()
    road = np.stack([speed[:, :2].mean(axis=1), speed[:, 2:].mean(axis=1)], axis=1)
    ingested("lanes", {"speed": speed}, table=rows, roads={"speed": road})
    run(params("lanes"))
    assert refused()[0] == (
        "lanes/a0/day-003",
        "the road of lanes/a0/day-003 and the mean of its lanes are up to 51 mph apart at one time; the gate allows 30",
    )


def repeated() -> np.ndarray:
    """A day and a half of all sensors stands a week later, in the test part, with noise and another level."""
    speed = speeds()
    noise = np.random.default_rng(1).normal(0, 0.3, (144, len(SENSORS)))
    speed[800:944] = 0.95 * speed[128:272] + noise
    return speed


def test_a_test_block_that_repeats_a_training_block_stops() -> None:
    ingested("roads", {"speed": repeated()})
    told = (
        r"the split by time, roads leaks: speed of all sensors together in test, 168 steps from 2024-01-09 06:00 "
        r"\(step 792\) on, nearly repeats the steps from 2024-01-02 06:00 \(step 120\) on \(correlation of the changes"
    )
    with pytest.raises(GateStopped, match=told):
        run(params("roads"))


def test_a_near_copy_is_quarantined_or_reported_where_the_gate_says_so() -> None:
    ingested("roads", {"speed": repeated()})
    summary = run(params("roads", roads={"gate": {"near_copies": "quarantine"}}))
    assert summary["outcome"] == "pass with quarantine"
    assert {record.split("/")[2] for record, _ in refused()} == {"day-008", "day-009"}
    assert refused()[0][1].startswith("roads/a0/day-008 lies in a near-copy: speed of all sensors together in test")
    summary = run(params("roads", roads={"gate": {"near_copies": "report"}}))
    assert (summary["outcome"], summary["leakage"]) == ("pass", {"by time, roads": []})
    assert any("nearly repeats the steps" in note for note in summary["sites"]["roads"]["about"]["notes"])


def test_a_day_whose_bytes_stand_in_training_leaks() -> None:
    speed = speeds()
    speed[9 * STEPS :, 0] = speed[2 * STEPS : 3 * STEPS, 3]
    ingested("roads", {"speed": speed})
    with pytest.raises(
        GateStopped, match=r"roads/a0/day-009 has the values of roads/b1/day-002 in train, byte for byte"
    ):
        run(params("roads"))
    run(params("roads", roads={"gate": {"near_copies": "quarantine"}}))
    assert refused() == [("roads/a0/day-009", "roads/a0/day-009 has the values of roads/b1/day-002 in an earlier part")]


def test_days_that_are_zero_throughout_are_equal_by_nature() -> None:
    flow = flows()
    flow[2 * STEPS : 3 * STEPS, 0] = 0
    flow[9 * STEPS :, 0] = 0
    ingested("night", {"flow": flow})
    assert run(params("night"))["leakage"] == {"by time, night": []}


def test_a_sensor_that_repeats_another_is_told() -> None:
    speed = speeds()
    speed[:, 3] = speed[:, 0] * np.float32(0.9)
    ingested("roads", {"speed": speed})
    summary = run(params("roads"))
    assert summary["outcome"] == "pass"
    notes = summary["sites"]["roads"]["about"]["notes"]
    assert "sensor b1 repeats speed of a0 times 0.9 (correlation of the changes 1.0000)" in notes


def test_a_variable_that_some_sensors_never_measure_refuses_none_of_them() -> None:
    flow = flows()
    flow[:, 2:] = np.nan
    ingested("both", {"speed": speeds(), "flow": flow})
    summary = run(params("both"))
    assert (summary["outcome"], summary["quarantined"]) == ("pass", 0)
    assert "sensor b0 never measures flow" in summary["sites"]["both"]["about"]["notes"]


def test_vehicles_of_an_impossible_length_are_told() -> None:
    speed, flow = speeds(), flows() + 1
    occupancy = (flow * 4 * 6.5 / (speed * 1609.344)).astype(np.float32)
    roads = {"speed": speed[:, ::2]}
    values = {"speed": speed, "flow": flow, "occupancy": occupancy}
    ingested("lanes", values, roads=roads, edges=())
    gate = {"gate": {"max_road_difference": 200.0}}
    notes = run(params("lanes", lanes=gate))["sites"]["lanes"]["about"]["notes"]
    assert not any("vehicles" in note for note in notes)
    ingested("lanes", values | {"occupancy": occupancy * np.float32(2)}, roads=roads, edges=())
    notes = run(params("lanes", lanes=gate))["sites"]["lanes"]["about"]["notes"]
    assert any("make vehicles 13.0 m long; the gate expects 4 to 9.5 m" in note for note in notes)


def test_two_sets_with_the_same_data_are_told_of() -> None:
    ingested("roads")
    ingested("twin")
    notes = run(params("roads", "twin"))["sites"]["roads"]["about"]["notes"]
    assert notes[-1].startswith("40 sensor-days have equal content in twin")


def test_a_set_too_short_for_a_window_says_so() -> None:
    ingested("short", {"speed": speeds(steps=STEPS)})
    notes = run(params("short"))["splits"]["by time, short"]["notes"]
    assert "validation holds no window of 24 steps: 0 of the set's 96 lie in it" in notes


def test_a_column_of_another_type_stops_the_set() -> None:
    rows = records("roads", {"speed": speeds()}).with_columns(pl.col("speed_max").cast(pl.String))
    ingested("roads", table=rows)
    with pytest.raises(
        GateStopped, match=r"column speed_max of roads/records.parquet is text; the gate expects number"
    ):
        run(params("roads"))
    assert table("verdict")["outcome"].to_list() == ["quarantined"] * 40
    assert table("splits")["part"].null_count() == 40


def test_an_empty_set_and_no_set_stop() -> None:
    ingested("roads", table=records("roads", {"speed": speeds()}).clear())
    with pytest.raises(GateStopped, match=r"roads/records.parquet has 0 records; the gate asks for at least 1"):
        run(params("roads"))
    with pytest.raises(GateStopped, match=r"traffic.sets in params.yaml names no set"):
        run(params())


def test_days_missing_from_the_table_stop() -> None:
    rows = records("roads", {"speed": speeds()}).filter(pl.col("day") != "day-004")
    ingested("roads", table=rows)
    with pytest.raises(GateStopped, match=r"96 steps of roads lie in no sensor-day of records.parquet, or in two"):
        run(params("roads"))


def test_what_ingest_did_not_write_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ingested("roads")
    with pytest.raises(UsageError, match=r"traffic.sets.other of params.yaml was not ingested"):
        run(params("other"))
    assert "data/ingested/traffic/roads is not a set of params.yaml (traffic.sets)" in capsys.readouterr().err
    (folder / "data.zarr" / "graph").rename(folder / "unused")
    with pytest.raises(
        DataError, match=r"data.zarr: found no group `graph`; expected what ingest writes for every set"
    ):
        run(params("roads"))
    artifacts.write_table(folder / "sensors.parquet", pl.read_parquet(folder / "sensors.parquet")[:3])
    (folder / "unused").rename(folder / "data.zarr" / "graph")
    with pytest.raises(DataError, match=r"found 4 columns of values; expected the 3 sensors of sensors.parquet"):
        run(params("roads"))


PARAMS = """
traffic:
  sets:
    roads: {path: data/external/roads, format: wide, gate: {max_quarantined: 0.1}}
  gate: {speed_mph: [0, 60]}
  splits: {train: 0.7, validation: 0.1, test: 0.2, window: 24}
"""


def test_the_command_ends_with_code_3_when_the_gate_stops_and_2_when_a_limit_is_misspelt(workspace: Path) -> None:
    ingested("roads")

    def command(text: str) -> subprocess.CompletedProcess[str]:
        (workspace / "params.yaml").write_text(text)
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "10000"}
        words = [sys.executable, "-m", "stages", "validate", "traffic"]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    stopped = command(PARAMS)
    assert (stopped.returncode, "The gate stops traffic. roads: 40 of 40 records" in stopped.stderr) == (3, True)
    wrong = command(PARAMS.replace("speed_mph", "speed_mhp"))
    assert wrong.returncode == 2
    assert "traffic.gate.speed_mhp is not a known key; did you mean 'speed_mph'?" in wrong.stderr
