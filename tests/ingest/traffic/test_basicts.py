"""BasicTS, the older layout and the newer one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.errors import DataError
from tests.ingest.traffic.layouts import STATIONS, adj_mx, basicts_new, basicts_old, opened

SPEED = {"reader": "basicts", "unit": "mph"}


@pytest.mark.parametrize("kind", ["dat", "npz"])
def test_the_older_layout(tmp_path: Path, kind: str) -> None:
    values = basicts_old(tmp_path, kind=kind)
    traffic = opened(tmp_path, SPEED | {"start": "2012-03-01"})
    expected = values.astype(np.float32)
    expected[3, 2] = np.nan  # desc.json states the null value 0
    np.testing.assert_array_equal(traffic.variables["speed"], expected)
    assert traffic.null == {"speed": 0.0}
    assert traffic.sensor_ids == STATIONS
    assert traffic.graph.weight_E.tolist() == [0.5, 0.25, 0.75]
    assert (traffic.step_minutes, traffic.clock, str(traffic.time_T[1])) == (5, True, "2012-03-01T00:05")
    assert f"data.{kind}: the features time of day, day of week are not read" in traffic.notes
    assert any("states the null value 0; if 0 is a measurement" in note for note in traffic.notes)


def test_a_null_value_that_is_a_measurement(tmp_path: Path) -> None:
    values = basicts_old(tmp_path)
    traffic = opened(tmp_path, SPEED | {"null_value": float("nan")})
    np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
    assert not traffic.clock


def test_the_newer_layout(tmp_path: Path) -> None:
    values = basicts_new(tmp_path)
    traffic = opened(tmp_path, SPEED)
    np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
    assert (traffic.sensor_ids, traffic.null, traffic.clock) == (("0", "1", "2"), {"speed": None}, False)
    assert traffic.graph.kind == "none"


def edit(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


class TestBroken:
    def test_another_size_than_described(self, tmp_path: Path) -> None:
        basicts_old(tmp_path)
        edit(tmp_path / "desc.json", shape=[25, 3, 3])
        with pytest.raises(DataError, match=r"data\.dat: found 864 bytes; expected 900: float32 of shape \(25, 3, 3\)"):
            opened(tmp_path, SPEED)

    def test_parts_that_overlap(self, tmp_path: Path) -> None:
        values = basicts_new(tmp_path)
        np.save(tmp_path / "val_data.npy", values[12:24].astype(np.float32))
        with pytest.raises(DataError, match=r"meta\.json, shape: found 30 steps; expected 36"):
            opened(tmp_path, SPEED)

    def test_parts_that_do_not_follow_each_other(self, tmp_path: Path) -> None:
        basicts_new(tmp_path)
        stamps = np.load(tmp_path / "test_timestamps.npy")
        np.save(tmp_path / "test_timestamps.npy", stamps + np.float32(10 / 288))
        with pytest.raises(DataError, match=r"test_timestamps\.npy, row 0: found a time of day 55 minutes behind"):
            opened(tmp_path, SPEED)

    def test_parts_of_different_sets(self, tmp_path: Path) -> None:
        basicts_new(tmp_path)
        np.save(tmp_path / "test_data.npy", np.zeros((6, 4), dtype=np.float32))
        with pytest.raises(DataError, match=r"test_data\.npy: found an array of shape \(6, 4\); expected \(6, 3\)"):
            opened(tmp_path, SPEED)

    def test_a_graph_of_fewer_sensors(self, tmp_path: Path) -> None:
        basicts_old(tmp_path)
        adj_mx(tmp_path / "adj_mx.pkl", np.eye(2), STATIONS[:2])
        with pytest.raises(DataError, match=r"adj_mx\.pkl: found 2 sensors; expected 3, as in data\.dat"):
            opened(tmp_path, SPEED)

    def test_no_step(self, tmp_path: Path) -> None:
        basicts_old(tmp_path)
        edit(tmp_path / "desc.json", **{"frequency (minutes)": "5min"})
        with pytest.raises(DataError, match=r"desc\.json, frequency \(minutes\): found '5min'"):
            opened(tmp_path, SPEED)
        assert opened(tmp_path, SPEED | {"step_minutes": 5}).step_minutes == 5

    def test_no_description(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"found no file like meta\.json or desc\.json"):
            opened(tmp_path, SPEED)
        (tmp_path / "desc.json").write_text("{")
        with pytest.raises(DataError, match=r"desc\.json: found no JSON"):
            opened(tmp_path, SPEED)
        (tmp_path / "desc.json").write_text("{}")
        with pytest.raises(DataError, match=r"desc\.json, shape: found None; expected the shape"):
            opened(tmp_path, SPEED)
