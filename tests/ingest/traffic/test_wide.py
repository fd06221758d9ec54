"""Wide tables: csv, parquet and bare matrices, and each broken one with what it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from stages.errors import DataError
from stages.ingest.traffic import delimited
from tests.ingest.traffic.layouts import ADJACENCY, STATIONS, csv, opened, speeds, times, wide

TIMED = {"reader": "wide", "time": "time", "unit": "mph"}
UNTIMED = {"reader": "wide", "unit": "km/h", "clock": {"step_minutes": 10}}


def test_a_csv_as_pandas_reads_it(tmp_path: Path) -> None:
    values = speeds(30, 3)
    values[5, 1] = np.nan
    wide(tmp_path / "speed.csv", values)
    traffic = opened(tmp_path, TIMED)
    frame = pd.read_csv(tmp_path / "speed.csv", index_col="time", parse_dates=True)
    np.testing.assert_array_equal(traffic.variables["speed"], frame.to_numpy().astype(np.float32))
    assert traffic.sensor_ids == tuple(frame.columns) == STATIONS
    assert (traffic.units, traffic.step_minutes, traffic.clock) == ({"speed": "mph"}, 5, True)
    assert traffic.files == ("speed.csv",)


def test_many_blocks_give_the_same_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = speeds(300, 3)
    wide(tmp_path / "speed.csv", values)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 517)
    np.testing.assert_array_equal(opened(tmp_path, TIMED).variables["speed"], values.astype(np.float32))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_utf8_mark_semicolons_and_decimal_commas(tmp_path: Path, ends: str) -> None:
    lines = ["time;773869;767541", "2012-03-01 00:00;61,5;60", "2012-03-01 00:05;62,25;", "2012-03-01 00:10;n/a;59,5"]
    (tmp_path / "speed.csv").write_bytes(b"\xef\xbb\xbf" + ends.join(lines).encode())
    traffic = opened(tmp_path, TIMED | {"null_tokens": ["", "n/a"]})
    assert traffic.sensor_ids == ("773869", "767541")
    np.testing.assert_array_equal(traffic.variables["speed"], [[61.5, 60], [62.25, np.nan], [np.nan, 59.5]])
    assert traffic.notes == ("speed.csv: numbers have decimal commas",)


@pytest.mark.parametrize("delimiter", ["\t", " ", ";"])
def test_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    csv(tmp_path / "speed.txt", [], [[60.5, 61], [62, 63.5]], delimiter=delimiter)
    assert opened(tmp_path, UNTIMED).variables["speed"].tolist() == [[60.5, 61], [62, 63.5]]


def test_a_bare_matrix_with_a_row_for_each_sensor(tmp_path: Path) -> None:
    (tmp_path / "z_guangzhou.txt").write_text("40.03 38.17 36.65 \n46.28 47.72 45.45 \n")
    traffic = opened(tmp_path, UNTIMED | {"rows": "sensor"})
    np.testing.assert_allclose(traffic.variables["speed"], [[40.03, 46.28], [38.17, 47.72], [36.65, 45.45]], rtol=1e-6)
    assert (traffic.sensor_ids, traffic.clock, traffic.step_minutes) == (("0", "1"), False, 10)
    assert str(traffic.time_T[-1]) == "1970-01-01T00:20"
    assert traffic.units == {"speed": "km h-1"}


def test_rows_with_the_names_of_sensors(tmp_path: Path) -> None:
    csv(tmp_path / "speed.csv", ["id", "t0", "t1", "t2"], [["400001.0", 60, 61, 62], ["400017.0", 50, 51, 52]])
    traffic = opened(tmp_path, UNTIMED | {"rows": "sensor"})
    assert traffic.sensor_ids == ("400001", "400017")
    assert traffic.variables["speed"].tolist() == [[60, 50], [61, 51], [62, 52]]


def test_parquet(tmp_path: Path) -> None:
    values = speeds(12, 3)
    wide(tmp_path / "speed.parquet", values, stamps=times(12))
    traffic = opened(tmp_path, TIMED)
    np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
    zoned = pl.col("time").dt.replace_time_zone("America/Los_Angeles")
    empty = pl.lit(None, pl.Float64).alias("767541")
    pl.read_parquet(tmp_path / "speed.parquet").with_columns(zoned, empty).write_parquet(tmp_path / "speed.parquet")
    traffic = opened(tmp_path, TIMED | {"timezone": "America/Los_Angeles"})
    assert str(traffic.time_T[0]) == "2012-03-01T08:00"
    assert np.isnan(traffic.variables["speed"][:, 1]).all()


def test_zero_is_zero_unless_it_is_the_null_value(tmp_path: Path) -> None:
    wide(tmp_path / "flow.csv", np.array([[0.0, 5, 0], [0, 6, 12]]))
    flow = {"reader": "wide", "time": "time", "variable": "flow", "unit": "veh/step"}
    real = opened(tmp_path, flow)
    assert real.variables["flow"].tolist() == [[0, 5, 0], [0, 6, 12]]
    assert real.held_null == {}
    masked = opened(tmp_path, flow | {"null_value": 0})
    assert np.isnan(masked.variables["flow"]).tolist() == [[True, False, True], [True, False, False]]
    np.testing.assert_array_equal(masked.held_null["flow"], np.isnan(masked.variables["flow"]))


def test_many_zero_speeds_without_a_null_value_are_told(tmp_path: Path) -> None:
    wide(tmp_path / "speed.csv", np.where(speeds(40, 3) > 62, 0, speeds(40, 3)))
    told = opened(tmp_path, TIMED).notes
    assert len(told) == 1
    assert "of the speeds are 0 and count as measured; if 0 means `not measured`, set `null_value: 0`" in told[0]
    assert opened(tmp_path, TIMED | {"null_value": 0}).notes == ()


def test_percent_becomes_a_share(tmp_path: Path) -> None:
    wide(tmp_path / "occupancy.csv", np.array([[0.0, 50, 100], [25, 6, 12]]))
    traffic = opened(tmp_path, {"reader": "wide", "time": "time", "variable": "occupancy", "unit": "percent"})
    np.testing.assert_allclose(traffic.variables["occupancy"], [[0, 0.5, 1], [0.25, 0.06, 0.12]], rtol=1e-6)
    assert traffic.units == {"occupancy": "1"}


def test_a_graph_and_a_list_of_sensors_beside_the_table(tmp_path: Path) -> None:
    wide(tmp_path / "los_speed.csv", speeds(6, 3))
    csv(tmp_path / "los_adj.csv", [], ADJACENCY.tolist())
    csv(tmp_path / "sensors.csv", ["sensor_id", "lat", "lon", "road"], [["767541", 34.1, -118.2, "US-101"]])
    traffic = opened(tmp_path, TIMED | {"adjacency": "los_adj.csv", "directed": True})
    assert traffic.files == ("los_speed.csv", "sensors.csv", "los_adj.csv")
    assert traffic.graph.kind == "adjacency"
    assert traffic.graph.source_E.tolist() == [0, 1, 2]
    assert traffic.graph.target_E.tolist() == [1, 0, 1]
    assert traffic.graph.weight_E.tolist() == [0.5, 0.25, 0.75]
    assert traffic.sensors.row(1) == ("767541", 1, "US-101", None, None, 34.1, -118.2)
    assert "sensors.csv: nothing on 2 of 3 sensors: 773869, 767542" in traffic.notes


@pytest.mark.parametrize(
    ("header", "rows", "told"),
    [
        (["time", "a", "b"], [["2012-03-01 00:00", 60, "fast"]], "line 2, column 'b': found 'fast'; expected a number"),
        (["time", "a", "b"], [["2012-03-01 00:00", 60, "6l.5"]], "name its text under `format.null_tokens`"),
        (["time", "a", "b"], [["2012-03-01 00:00", 60, 61], ["2012-03-01 00:05", 60]], "line 3: found 2 columns"),
        (["time", "a", "b"], [["2012-03-01 00:00", 60, 61, 62], ["2012-03-01 00:05", 60]], "line 2: found 4 columns"),
        (["time", "a", "b"], [], "found no line behind the names of the columns"),
        (["stamp", "a", "b"], [["2012-03-01 00:00", 60, 61]], "found 0 columns 'time' among stamp, a, b"),
        (["time", "a", "a"], [["2012-03-01 00:00", 60, 61]], "found the sensor 'a' twice"),
        (["time", "a", ""], [["2012-03-01 00:00", 60, 61]], "column 2: found no name"),
        (["time", "400001", "400001.0"], [["2012-03-01 00:00", 60, 61]], "found the sensor '400001' twice"),
        (["time", "a", "b"], [["2012-03-01 00:00", 60, "inf"], ["2012-03-01 00:05", 1, 2]], "found the speed inf"),
    ],
)
def test_broken_tables(tmp_path: Path, header: list[str], rows: list[list[object]], told: str) -> None:
    csv(tmp_path / "speed.csv", header, rows)
    with pytest.raises(DataError, match=r"speed\.csv") as caught:
        opened(tmp_path, TIMED)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("time,a\n2012-03-01 00:00,60\n".encode("utf-16"), "found UTF-16; expected text in UTF-8"),
        (b"\x1f\x8b\x08rest", "found gzip"),
        (b"", "line 1: found an empty line"),
        (b"time;a\n2012-03-01 00:00;60.5\n2012-03-01 00:05;61,5\n", 'set `decimal: ","` under `format`'),
    ],
)
def test_broken_texts(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "speed.csv").write_bytes(content)
    with pytest.raises(DataError) as caught:
        opened(tmp_path, TIMED)
    assert told in str(caught.value)


def test_station_numbers_in_the_first_line_are_not_guessed(tmp_path: Path) -> None:
    csv(tmp_path / "los_speed.csv", STATIONS, [[64.375, 67.625, 67.125], [62.66, 68.5, 65.4]])
    with pytest.raises(
        DataError, match="line 1: found whole numbers such as 773869, which may be the numbers of"
    ) as caught:
        opened(tmp_path, UNTIMED)
    assert "Set `header: true` or `header: false`" in str(caught.value)
    assert opened(tmp_path, UNTIMED | {"header": True}).sensor_ids == STATIONS
    assert opened(tmp_path, UNTIMED | {"header": False}).variables["speed"][0, 0] == 773869


def test_which_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        opened(tmp_path / "none", TIMED)
    with pytest.raises(DataError, match=r"found no file like \*\.csv"):
        opened(tmp_path, TIMED)
    wide(tmp_path / "a.csv", speeds(3, 3))
    wide(tmp_path / "b.csv", speeds(3, 3, seed=1))
    with pytest.raises(DataError, match=r"found 2 candidates: a\.csv, b\.csv; expected one: one table"):
        opened(tmp_path, TIMED)
    assert opened(tmp_path, TIMED | {"file": "b.csv"}).files == ("b.csv",)
    assert opened(tmp_path / "a.csv", TIMED).files == ("a.csv",)
    with pytest.raises(DataError, match=r"c\.csv: found no such file; expected what `format.file` names"):
        opened(tmp_path, TIMED | {"file": "c.csv"})


def test_broken_parquet(tmp_path: Path) -> None:
    (tmp_path / "speed.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match="found no readable parquet"):
        opened(tmp_path, TIMED)
    pl.DataFrame({"time": times(2), "a": ["60", "61"]}).write_parquet(tmp_path / "speed.parquet")
    with pytest.raises(DataError, match=r"column 'a': found type String; expected numbers of one sensor"):
        opened(tmp_path, TIMED)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([["a", "34.1", "-118.2"], ["a", "34", "-118"]], "found the sensor 'a' twice"),
        ([["a", "-118.2", "34.1"]], "line 2, column 'latitude': found '-118.2'; expected a latitude"),
        ([["a", "north", "34.1"]], "line 2, column 'latitude': found 'north'"),
    ],
)
def test_broken_lists_of_sensors(tmp_path: Path, rows: list[list[str]], told: str) -> None:
    csv(tmp_path / "speed.csv", ["time", "a"], [["2012-03-01 00:00", 60], ["2012-03-01 00:05", 61]])
    csv(tmp_path / "sensors.csv", ["sensor", "latitude", "longitude"], rows)
    with pytest.raises(DataError, match=r"sensors\.csv") as caught:
        opened(tmp_path, TIMED)
    assert told in str(caught.value)


def test_a_set_of_one_variable_can_be_any(tmp_path: Path) -> None:
    values: Any = np.array([[0.0048, 0.0146], [0.0072, 0.0148]])
    csv(tmp_path / "traffic.txt", [], values.tolist(), delimiter=" ")
    clock = {"start": "2015-01-01", "step_minutes": 60}
    traffic = opened(tmp_path, {"reader": "wide", "variable": "occupancy", "unit": "fraction", "clock": clock})
    assert list(traffic.variables) == ["occupancy"]
    assert str(traffic.time_T[1]) == "2015-01-01T01:00"
    assert traffic.clock
