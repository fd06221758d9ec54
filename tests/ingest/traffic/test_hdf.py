"""METR-LA and PEMS-BAY: both layouts of pandas in HDF5, the graph of DCRNN beside them, and broken ones."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from stages.errors import DataError
from stages.ingest.traffic import hdf
from tests.ingest.traffic.layouts import (
    ADJACENCY,
    STATIONS,
    adj_mx,
    csv,
    hdf_fixed,
    hdf_table,
    metr_la,
    opened,
    speeds,
    times,
)


@pytest.mark.parametrize("write", [hdf_fixed, hdf_table])
@pytest.mark.parametrize("ids", [STATIONS, (400001, 400017, 400030)])
def test_both_layouts_with_texts_and_numbers_as_names(tmp_path: Path, write: Any, ids: tuple[Any, ...]) -> None:
    values = speeds(40, 3)
    values[7, 2] = np.nan
    write(tmp_path / "metr-la.h5", values, ids)
    traffic = opened(tmp_path, "hdf")
    np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
    assert traffic.sensor_ids == tuple(str(name) for name in ids)
    np.testing.assert_array_equal(traffic.time_T, np.array(times(40), dtype="datetime64[m]"))
    assert (traffic.step_minutes, traffic.units, traffic.graph.kind) == (5, {"speed": "mph"}, "none")


def test_names_that_became_floats_are_station_numbers(tmp_path: Path) -> None:
    hdf_fixed(tmp_path / "pems-bay.h5", speeds(4, 3), (400001.0, 400017.0, 400030.0), key="speed")
    assert opened(tmp_path, {"reader": "hdf", "key": "speed"}).sensor_ids == ("400001", "400017", "400030")


@pytest.mark.parametrize("kind", ["datetime64", "datetime64[ns]", "datetime64[us]", "datetime64[s]"])
def test_units_of_the_index(tmp_path: Path, kind: str) -> None:
    hdf_fixed(tmp_path / "a.h5", speeds(4, 3), kind=kind)
    assert str(opened(tmp_path, "hdf").time_T[1]) == "2012-03-01T00:05"


def test_an_index_with_a_zone_is_utc(tmp_path: Path) -> None:
    zone = {"timezone": "America/Los_Angeles"}
    hdf_fixed(tmp_path / "a.h5", speeds(4, 3), tz=b"a pickle that is not opened")
    assert str(opened(tmp_path, {"reader": "hdf", **zone}).time_T[0]) == "2012-03-01T00:00"
    hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
    assert str(opened(tmp_path, {"reader": "hdf", **zone}).time_T[0]) == "2012-03-01T08:00"
    hdf_table(tmp_path / "a.h5", speeds(4, 3), info=b"(dp0\nI1\n(dp1\nVtz\np2\nVUTC\np3\nss.")
    assert str(opened(tmp_path, {"reader": "hdf", **zone}).time_T[0]) == "2012-03-01T00:00"


@pytest.mark.parametrize("write", [hdf_fixed, hdf_table])
def test_many_blocks_give_the_same_as_one(tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = speeds(100, 3)
    write(tmp_path / "a.h5", values)
    monkeypatch.setattr(hdf, "BLOCK_BYTES", 200)
    np.testing.assert_array_equal(opened(tmp_path, "hdf").variables["speed"], values.astype(np.float32))


def test_zlib_needs_nothing_more(tmp_path: Path) -> None:
    values = speeds(40, 3)
    hdf_table(tmp_path / "a.h5", values, compression="gzip")
    np.testing.assert_array_equal(opened(tmp_path, "hdf").variables["speed"], values.astype(np.float32))


def test_the_layouts_are_those_of_pandas(tmp_path: Path) -> None:
    pytest.importorskip("tables", reason="PyTables, with which pandas reads HDF5, is no dependency")
    import pandas as pd

    values = speeds(20, 3)
    for write in (hdf_fixed, hdf_table):
        write(tmp_path / "a.h5", values)
        frame = pd.read_hdf(tmp_path / "a.h5")
        np.testing.assert_array_equal(frame.to_numpy(), values)
        assert list(frame.columns) == list(STATIONS)
        assert frame.index[1] == pd.Timestamp(times(2)[1])


class TestGraph:
    def test_metr_la_as_dcrnn_ships_it(self, tmp_path: Path) -> None:
        values = metr_la(tmp_path)
        traffic = opened(tmp_path, {"reader": "hdf", "null_value": 0})
        expected = values.astype(np.float32)
        expected[4, 1] = np.nan
        np.testing.assert_array_equal(traffic.variables["speed"], expected)
        assert np.argwhere(traffic.held_null["speed"]).tolist() == [[4, 1]]
        graph = traffic.graph
        assert list(zip(graph.source_E, graph.target_E, graph.weight_E, strict=True)) == [
            (0, 1, 0.5),
            (1, 0, 0.25),
            (2, 1, 0.75),
        ]
        assert (graph.directed, graph.kind) == (True, "adjacency")
        assert traffic.sensors["latitude"].to_list() == pytest.approx([34.1, 34.11, 34.12])
        assert traffic.notes == (
            "the graph is that of adj_mx.pkl; distances_la_2012.csv is not used",
            "adj_mx.pkl: 3 weights of a sensor to itself are no edges",
        )

    def test_distances_where_there_is_no_matrix(self, tmp_path: Path) -> None:
        metr_la(tmp_path)
        (tmp_path / "sensor_graph/adj_mx.pkl").unlink()
        traffic = opened(tmp_path, "hdf")
        graph = traffic.graph
        assert (graph.source_E.tolist(), graph.target_E.tolist(), graph.weight_E.tolist()) == ([0], [1], [2610.9])
        assert graph.kind == "distance"
        assert "distances_la_2012.csv: 2 of 3 edges name sensors that the data do not have; they are left out" in (
            traffic.notes
        )

    def test_the_matrix_may_have_another_order_than_the_data(self, tmp_path: Path) -> None:
        hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
        order = [2, 0, 1]
        adj_mx(tmp_path / "adj_mx.pkl", ADJACENCY[np.ix_(order, order)], [STATIONS[place] for place in order])
        graph = opened(tmp_path, "hdf").graph
        assert sorted(zip(graph.source_E, graph.target_E, graph.weight_E, strict=True)) == [
            (0, 1, 0.5),
            (1, 0, 0.25),
            (2, 1, 0.75),
        ]

    def test_a_pickle_of_python_3(self, tmp_path: Path) -> None:
        hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
        content = (list(STATIONS), {name: place for place, name in enumerate(STATIONS)}, ADJACENCY)
        (tmp_path / "adj_mx.pkl").write_bytes(pickle.dumps(content))
        assert opened(tmp_path, "hdf").graph.weight_E.tolist() == [0.5, 0.25, 0.75]

    def test_a_pickle_that_runs_something_is_refused(self, tmp_path: Path) -> None:
        class Calls:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "trace"),)

        hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
        (tmp_path / "adj_mx.pkl").write_bytes(pickle.dumps(Calls()))
        with pytest.raises(DataError, match=r"adj_mx\.pkl: found a pickle that asks for posix\.mkdir"):
            opened(tmp_path, "hdf")
        assert not (tmp_path / "trace").exists()

    def test_a_list_of_nodes_shorter_than_the_data(self, tmp_path: Path) -> None:
        metr_la(tmp_path)
        (tmp_path / "sensor_graph/graph_sensor_ids.txt").write_text("773869,767541")
        with pytest.raises(DataError, match=r"graph_sensor_ids\.txt: found 2 nodes, none for 767542"):
            opened(tmp_path, "hdf")

    def test_nodes_that_the_data_do_not_have(self, tmp_path: Path) -> None:
        metr_la(tmp_path)
        adj_mx(tmp_path / "sensor_graph/adj_mx.pkl", ADJACENCY, ("773869", "767541", "400001"))
        with pytest.raises(DataError, match=r"found 1 nodes that metr-la\.h5 does not have: 400001") as caught:
            opened(tmp_path, "hdf")
        assert "The graph belongs to another set" in str(caught.value)

    def test_lists_that_contradict_each_other(self, tmp_path: Path) -> None:
        hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
        wrong = {STATIONS[0]: 1, STATIONS[1]: 0, STATIONS[2]: 2}
        (tmp_path / "adj_mx.pkl").write_bytes(pickle.dumps((list(STATIONS), wrong, ADJACENCY)))
        with pytest.raises(DataError, match="sensor 773869: found place 1 in id_to_ind; expected 0"):
            opened(tmp_path, "hdf")

    def test_two_graphs_are_not_guessed(self, tmp_path: Path) -> None:
        metr_la(tmp_path)
        adj_mx(tmp_path / "sensor_graph/adj_mx_bay.pkl", ADJACENCY)
        with pytest.raises(DataError, match=r"2 candidates: sensor_graph/adj_mx\.pkl, sensor_graph/adj_mx_bay\.pkl"):
            opened(tmp_path, "hdf")
        named = {"reader": "hdf", "adjacency": "sensor_graph/adj_mx.pkl"}
        assert opened(tmp_path, named).graph.kind == "adjacency"


class TestBroken:
    def test_blosc_without_its_plugin(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "a.h5"
        hdf_fixed(file, speeds(40, 3))
        with h5py.File(file, "a") as stream:
            del stream["df/block0_values"]
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((40, 3))
            plist.set_filter(hdf.BLOSC, h5py.h5z.FLAG_OPTIONAL, (2, 2, 8, 960, 5, 1))
            space = h5py.h5s.create_simple((40, 3))
            data = h5py.h5d.create(stream["df"].id, b"block0_values", h5py.h5t.IEEE_F64LE, space, plist)
            data.write_direct_chunk((0, 0), b"compressed")
        monkeypatch.setitem(sys.modules, "hdf5plugin", None)
        with pytest.raises(DataError, match="/df/block0_values: found data compressed with blosc") as caught:
            opened(tmp_path, "hdf")
        assert "pip install hdf5plugin" in str(caught.value)
        assert "complib='zlib'" in str(caught.value)

    @pytest.mark.parametrize("kept", [0, 100, 2000])
    def test_cut_short(self, tmp_path: Path, kept: int) -> None:
        hdf_fixed(tmp_path / "a.h5", speeds(400, 3))
        (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:kept])
        with pytest.raises(DataError, match=r"a\.h5: found no readable HDF5 file"):
            opened(tmp_path, "hdf")

    def test_no_frame(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as stream:
            stream["data"] = speeds(4, 3)
        with pytest.raises(DataError, match="found no pandas frame among data"):
            opened(tmp_path, "hdf")

    def test_two_frames(self, tmp_path: Path) -> None:
        hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
        with h5py.File(tmp_path / "a.h5", "a") as stream:
            stream.copy("df", "speed")
        with pytest.raises(DataError, match="found the frames df, speed; expected one frame"):
            opened(tmp_path, "hdf")
        assert opened(tmp_path, {"reader": "hdf", "key": "/speed"}).sensor_ids == STATIONS

    def test_an_index_without_times(self, tmp_path: Path) -> None:
        hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
        with h5py.File(tmp_path / "a.h5", "a") as stream:
            stream["df/axis1"].attrs["kind"] = np.bytes_(b"integer")
        with pytest.raises(DataError, match="the index: found an index of kind integer; expected times"):
            opened(tmp_path, "hdf")

    def test_a_series(self, tmp_path: Path) -> None:
        hdf_fixed(tmp_path / "a.h5", speeds(4, 3))
        with h5py.File(tmp_path / "a.h5", "a") as stream:
            stream["df"].attrs["pandas_type"] = np.bytes_(b"series")
        with pytest.raises(DataError, match="df: found a pandas series; expected a frame"):
            opened(tmp_path, "hdf")

    def test_a_table_whose_names_run_something(self, tmp_path: Path) -> None:
        hdf_table(tmp_path / "a.h5", speeds(4, 3))
        with h5py.File(tmp_path / "a.h5", "a") as stream:
            stream["df/table"].attrs["values_block_0_kind"] = np.bytes_(b"cos\nsystem\n(Vtrue\ntR.")
        with pytest.raises(DataError, match=r"values_block_0_kind: found a pickle that asks for os\.system"):
            opened(tmp_path, "hdf")


def test_pems_bay_lacks_the_spring_hour_and_has_no_gap(tmp_path: Path) -> None:
    stamps = times(288, times(1)[0].replace(year=2017, day=12))
    kept = [stamp for stamp in stamps if stamp.hour != 2]
    hdf_fixed(tmp_path / "pems-bay.h5", speeds(len(kept), 3), (400001, 400017, 400030), kept, key="speed")
    zoned = opened(tmp_path, {"reader": "hdf", "timezone": "America/Los_Angeles"})
    assert (len(zoned.time_T), zoned.notes) == (276, ())
    plain = opened(tmp_path, "hdf")
    assert (len(plain.time_T), plain.notes) == (
        288,
        ("pems-bay.h5, 2017-03-12 02:00 to 2017-03-12 02:55: 12 steps missing",),
    )


def test_a_distance_that_is_no_number(tmp_path: Path) -> None:
    metr_la(tmp_path)
    (tmp_path / "sensor_graph/adj_mx.pkl").unlink()
    csv(tmp_path / "sensor_graph/distances_la_2012.csv", ["from", "to", "cost"], [[STATIONS[0], STATIONS[1], "far"]])
    with pytest.raises(DataError, match=r"distances_la_2012\.csv, line 2: found '773869,767541,far'"):
        opened(tmp_path, "hdf")
