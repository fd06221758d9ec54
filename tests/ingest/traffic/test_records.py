"""Sensor-days and their statistics, by hand."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from stages.ingest.traffic import sensors
from stages.ingest.traffic.records import longest_run, statistics, table
from stages.ingest.traffic.schema import RECORD_COLUMNS
from stages.ingest.traffic.sets import Roads, TrafficSet

NAN = np.nan


def traffic_set(values: object, step_minutes: int = 720, **changes: object) -> TrafficSet:
    values_TS = np.asarray(values, dtype=np.float32)
    known = {"a": {"road": "1", "lane": 1}, "b": {"road": "1", "lane": 2}}
    return replace(
        TrafficSet(
            key="lab",
            reader="wide",
            time_T=np.datetime64("2012-03-01T00:00", "m") + step_minutes * np.arange(len(values_TS)),
            variables={"speed": values_TS},
            units={"speed": "mph"},
            sensors=sensors.table(("a", "b"), known),
            step_minutes=step_minutes,
            source_files={"speed": "speed.csv"},
        ),
        **changes,  # type: ignore[arg-type]
    )


def test_statistics_by_hand() -> None:
    day = np.array([[60, 0], [60, NAN], [NAN, 30], [64, 0], [61, 0]], dtype=np.float32)
    held = np.zeros(day.shape, dtype=bool)
    held[1, 1] = True
    found = statistics(day, 5, held)
    assert found["coverage"].tolist() == [0.8, 0.8]
    assert found["min"].tolist() == [60, 0]
    assert found["max"].tolist() == [64, 30]
    assert found["mean"].tolist() == [61.25, 7.5]
    assert found["std"] == pytest.approx([np.std([60, 60, 64, 61]), np.std([0, 30, 0, 0])])
    assert found["zeros_share"].tolist() == [0, 0.6]
    assert found["null_share"].tolist() == [0, 0.2]
    assert found["longest_flat_minutes"].tolist() == [10, 10]
    assert found["largest_jump"].tolist() == [3, 30]


def test_a_day_without_a_value_and_one_with_a_single_value() -> None:
    day = np.array([[NAN, 5], [NAN, NAN]], dtype=np.float32)
    found = statistics(day, 5)
    assert found["coverage"].tolist() == [0, 0.5]
    for name in ("min", "max", "mean", "std", "longest_flat_minutes"):
        assert np.isnan(found[name][0]), name
    assert (found["mean"][1], found["std"][1], found["longest_flat_minutes"][1]) == (5, 0, 5)
    assert np.isnan(found["largest_jump"]).all()


def test_an_all_zero_sensor_has_no_spread_and_is_flat_all_day() -> None:
    found = statistics(np.zeros((288, 1), dtype=np.float32), 5)
    assert (found["std"][0], found["zeros_share"][0], found["longest_flat_minutes"][0]) == (0, 1, 1440)


@pytest.mark.parametrize(
    ("values", "run"), [([1, 1, NAN, 1], 2), ([1, 2, 3], 1), ([2, 2, 2], 3), ([NAN, NAN], 0), ([1, NAN, 2, 2, 2, 1], 3)]
)
def test_longest_run(values: list[float], run: int) -> None:
    assert longest_run(np.array(values, dtype=np.float32)[:, None]).tolist() == [run]


def test_a_row_for_each_sensor_and_day() -> None:
    records = table(traffic_set([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]))
    assert records.columns == list(RECORD_COLUMNS)
    assert records["record_id"].to_list() == [
        f"lab/{sensor}/2012-03-0{day}" for sensor in ("a", "b") for day in (1, 2, 3)
    ]
    assert records["group"].to_list() == ["lab/a"] * 3 + ["lab/b"] * 3
    assert records.select("start", "stop").rows()[:3] == [(0, 2), (2, 4), (4, 5)]
    assert records["speed_mean"].to_list() == [2, 6, 9, 3, 7, 10]
    assert records["flow_mean"].null_count() == 6
    assert records["lane"].to_list() == [1, 1, 1, 2, 2, 2]
    assert records["road_difference"].null_count() == 6


def test_a_set_without_a_clock_numbers_its_days() -> None:
    start = np.datetime64("1970-01-01T00:00", "m")
    traffic = replace(traffic_set([[1, 2]] * 3), clock=False, time_T=start + 720 * np.arange(3), timezone="Asia/Tokyo")
    assert table(traffic)["record_id"].to_list()[:2] == ["lab/a/day-000", "lab/a/day-001"]


def test_the_digest_is_that_of_the_values_alone() -> None:
    one, other = table(traffic_set([[1, 1], [NAN, NAN], [1, 2]])), table(traffic_set([[1, 1], [NAN, NAN], [1, 2]]))
    assert one["sha256"].to_list() == other["sha256"].to_list()
    by_id = dict(zip(one["record_id"], one["sha256"], strict=True))
    assert by_id["lab/a/2012-03-01"] == by_id["lab/b/2012-03-01"]
    assert by_id["lab/a/2012-03-02"] != by_id["lab/b/2012-03-02"]
    values = np.array([1, NAN], dtype=np.float32)
    assert by_id["lab/a/2012-03-01"] == hashlib.sha256(b"speed\0<f4\0(2,)\n" + values.tobytes()).hexdigest()


def test_distance_of_a_road_from_its_lanes() -> None:
    road = np.array([[55], [50], [NAN], [70]], dtype=np.float32)
    values = [[60, 50], [NAN, 50], [40, 40], [60, 70]]
    found = table(traffic_set(values, roads=Roads(("1",), {"speed": road}, "file")))
    assert found["road_difference"].to_list() == [0, 5, 0, 5]
    found = table(traffic_set(values, roads=Roads(("1",), {"speed": road}, "mean of lanes")))
    assert found["road_difference"].null_count() == 4
