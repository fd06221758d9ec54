"""PEMS03, PEMS04, PEMS07, PEMS08: arrays without a clock, edges by position or by station number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stages.errors import DataError
from tests.ingest.traffic.layouts import csv, opened, pems, speeds


def test_pems04_has_flow_occupancy_and_speed(tmp_path: Path) -> None:
    data = pems(tmp_path)
    traffic = opened(tmp_path, "pems")
    for place, name in enumerate(("flow", "occupancy", "speed")):
        np.testing.assert_array_equal(traffic.variables[name], data[:, :, place].astype(np.float32))
    assert traffic.units == {"flow": "veh per step", "occupancy": "1", "speed": "mph"}
    assert (traffic.clock, traffic.step_minutes, str(traffic.time_T[0])) == (True, 5, "2018-01-01T00:00")
    assert "PEMS04 as published starts on 2018-01-01" in traffic.notes[-1]
    assert traffic.graph.weight_E.tolist() == [100.5, 101.5, 102.5]
    assert (traffic.graph.kind, traffic.graph.directed) == ("distance", True)


def test_pems03_has_flow_alone_and_station_numbers(tmp_path: Path) -> None:
    data = pems(tmp_path, "PEMS03", variables=1)
    traffic = opened(tmp_path, "pems")
    np.testing.assert_array_equal(traffic.variables["flow"], data[:, :, 0].astype(np.float32))
    assert list(traffic.variables) == ["flow"]
    assert traffic.sensor_ids == ("313344", "313354", "313364", "313374")
    assert traffic.graph.target_E.tolist() == [1, 2, 3]
    assert str(traffic.time_T[0]) == "2018-09-01T00:00"


@pytest.mark.parametrize(("name", "start"), [("PEMS07", "2017-05-01"), ("pems08", "2016-07-01")])
def test_first_days_as_published(tmp_path: Path, name: str, start: str) -> None:
    pems(tmp_path, name)
    assert str(opened(tmp_path, "pems").time_T[0]) == f"{start}T00:00"


def test_a_clock_of_ones_own(tmp_path: Path) -> None:
    pems(tmp_path, "mine")
    with pytest.raises(DataError, match="a name that is none of PEMS03, PEMS04, PEMS07, PEMS08"):
        opened(tmp_path, "pems")
    traffic = opened(tmp_path, {"reader": "pems", "clock": {"start": "2020-01-01", "step_minutes": 15}})
    assert [str(moment) for moment in traffic.time_T[:2]] == ["2020-01-01T00:00", "2020-01-01T00:15"]
    assert not opened(tmp_path, {"reader": "pems", "clock": {"step_minutes": 15}}).clock


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_order_and_type(tmp_path: Path, order: str) -> None:
    values = speeds(10, 3).astype(np.float32)
    np.savez(tmp_path / "PEMS08.npz", data=np.asarray(values[:, :, None], order=order))  # type: ignore[call-overload]
    np.testing.assert_array_equal(opened(tmp_path, "pems").variables["flow"], values)


class TestBroken:
    def test_station_numbers_without_their_list(self, tmp_path: Path) -> None:
        pems(tmp_path, "PEMS03", variables=1)
        (tmp_path / "PEMS03.txt").unlink()
        with pytest.raises(DataError, match=r"PEMS03\.csv, line 2: found the sensor '313344', which") as caught:
            opened(tmp_path, "pems")
        assert "give the station numbers under `format.ids`" in str(caught.value)

    def test_a_list_shorter_than_the_data(self, tmp_path: Path) -> None:
        pems(tmp_path, "PEMS03", variables=1)
        (tmp_path / "PEMS03.txt").write_text("313344\n313354\n")
        with pytest.raises(DataError, match="found 2 station numbers; expected 4, one for each sensor"):
            opened(tmp_path, "pems")

    def test_edges_of_another_set(self, tmp_path: Path) -> None:
        pems(tmp_path)
        csv(tmp_path / "PEMS04.csv", ["from", "to", "cost"], [[0, 306, 1.5]])
        with pytest.raises(DataError, match=r"found the sensor '306', which PEMS04\.npz does not have"):
            opened(tmp_path, "pems")

    def test_no_data_in_it(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "PEMS04.npz", flow=speeds(4, 3))
        with pytest.raises(DataError, match="found the arrays flow; expected an array `data`"):
            opened(tmp_path, "pems")

    def test_more_variables_than_names(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "PEMS04.npz", data=np.zeros((4, 3, 5)))
        with pytest.raises(DataError, match="found 5 variables; expected flow, occupancy, speed at most"):
            opened(tmp_path, "pems")

    def test_objects_are_not_read(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "PEMS04.npz", data=np.array([[1, "a"]], dtype=object))
        with pytest.raises(DataError, match=r"data: found an array of shape \(1, 2\) and type object"):
            opened(tmp_path, "pems")

    def test_cut_short(self, tmp_path: Path) -> None:
        pems(tmp_path)
        file = tmp_path / "PEMS04.npz"
        file.write_bytes(file.read_bytes()[:-200])
        with pytest.raises(DataError, match=r"PEMS04\.npz: found no readable npz file"):
            opened(tmp_path, "pems")
