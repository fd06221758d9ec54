from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.accepted.traffic import Accepted, open_set
from stages.errors import DataError, UsageError
from stages.validate.traffic import stage
from tests.validate.traffic.fakes import SENSORS, STEPS, flows, ingested, params, speeds

pytestmark = pytest.mark.usefixtures("workspace")


def lanes_and_roads() -> tuple[np.ndarray, np.ndarray]:
    speed = speeds()
    speed[250, 1] = 160  # mph: no vehicle; the day is refused
    speed[5, 0] = np.nan
    return speed, np.stack([np.nanmean(speed[:, :2], axis=1), speed[:, 2:].mean(axis=1)], axis=1)


@pytest.fixture
def lanes(workspace: Path) -> Accepted:
    """Four lanes of two roads, one lane-day refused."""
    speed, road = lanes_and_roads()
    ingested("lanes", {"speed": speed, "flow": flows()}, roads={"speed": road}, null={"speed": None, "flow": -1.0})
    stage.run(params("lanes"), name="traffic", key="")
    return open_set("lanes")


def test_what_the_set_is(lanes: Accepted) -> None:
    assert (lanes.key, lanes.variable, lanes.unit) == ("lanes", "speed", "mph")
    assert (lanes.step_minutes, lanes.steps_per_day, lanes.clock, lanes.timezone) == (15, STEPS, True, None)
    assert (lanes.simulated, lanes.lane_order, lanes.is_lanes) == (True, "0 is the rightmost", True)
    assert lanes.sensors["sensor"].to_list() == list(SENSORS)
    assert lanes.time_T[0] == np.datetime64("2024-01-01T00:00")
    assert (lanes.null, open_set("lanes", "flow").null) == (None, -1)


def test_a_quarantined_sensor_day_is_missing_and_nothing_else(lanes: Accepted) -> None:
    speed, _ = lanes_and_roads()
    speed[2 * STEPS : 3 * STEPS, 1] = np.nan
    np.testing.assert_array_equal(lanes.values_TS, speed)
    assert lanes.values_TS.dtype == np.float32


def test_a_refused_day_is_missing_in_every_variable(lanes: Accepted) -> None:
    flow = open_set("lanes", "flow")
    assert flow.unit == "veh per step"
    assert np.isnan(flow.values_TS[2 * STEPS : 3 * STEPS, 1]).all()
    assert np.isfinite(flow.values_TS).mean() == 1 - 1 / 40


def test_roads_of_a_file_stay_as_they_are(lanes: Accepted) -> None:
    assert lanes.road_ids == ("a", "b")
    assert lanes.road_of_sensor_S.tolist() == [0, 0, 1, 1]
    assert lanes.roads_TR is not None
    np.testing.assert_array_equal(lanes.roads_TR, lanes_and_roads()[1])
    assert open_set("lanes", "flow").roads_TR is None


def test_roads_that_are_means_of_lanes_are_means_of_the_accepted_ones() -> None:
    speed, road = lanes_and_roads()
    ingested("lanes", {"speed": speed}, roads={"speed": road})
    about = artifacts.ingested("traffic", "lanes") / "set.json"
    artifacts.write_json(about, artifacts.read_json(about) | {"roads": "mean of lanes"})
    stage.run(params("lanes"), name="traffic", key="")
    found = open_set("lanes")
    assert found.roads_TR is not None
    np.testing.assert_array_equal(found.roads_TR[2 * STEPS : 3 * STEPS, 0], speed[2 * STEPS : 3 * STEPS, 0])
    np.testing.assert_allclose(found.roads_TR[:, 1], road[:, 1], rtol=1e-6)


def test_the_graph(lanes: Accepted) -> None:
    edges = lanes.edges
    found = list(zip(edges.source_E.tolist(), edges.target_E.tolist(), edges.weight_E.tolist(), strict=True))
    assert found == [(0, 1, 1.0), (1, 0, 1.0), (2, 3, 0.5), (3, 2, 0.5)]
    assert (edges.kind, edges.unit, lanes.directed) == ("adjacency", None, False)


def test_windows_of_a_part_share_no_step_with_another_part(lanes: Accepted) -> None:
    assert lanes.parts == {"train": (0, 672), "validation": (696, 768), "test": (792, 960)}
    used = []
    for part in lanes.parts:
        windows = lanes.windows(part, 18, 6)
        used.append(set(windows.steps(range(len(windows))).ravel().tolist()))
    assert not used[0] & used[1]
    assert not used[1] & used[2]
    assert len(lanes.windows("test", 18, 6)) == 168 - 24 + 1
    assert len(lanes.windows("train", 18, 6)) == 672 - 24 + 1
    context, _ = lanes.road_windows("test", 18, 6).batch([0])
    assert lanes.roads_TR is not None
    np.testing.assert_array_equal(context[0], lanes.roads_TR[792:810].T)


def test_local_time(lanes: Accepted) -> None:
    local = lanes.local()
    assert local.minute_T[[0, 1, 95, 96]].tolist() == [0, 15, 1425, 0]
    assert local.weekday_T[0] == 0  # 2024-01-01 is a Monday


def test_what_is_not_there_is_an_error(lanes: Accepted) -> None:
    with pytest.raises(UsageError, match=r"lanes has no occupancy; it has speed, flow"):
        open_set("lanes", "occupancy")
    with pytest.raises(UsageError, match=r"The traffic set roads was not ingested"):
        open_set("roads")
    with pytest.raises(UsageError, match=r"lanes has no part dev: it is too short; it has train, validation, test"):
        lanes.part("dev")
    with pytest.raises(UsageError, match=r"lanes has no roads beside its sensors"):
        open_set("lanes", "flow").road_windows("test", 18, 6)


def test_a_set_that_was_not_judged_is_an_error(lanes: Accepted) -> None:
    ingested("later")
    with pytest.raises(UsageError, match=r"The gate has no verdict on 40 of 40 sensor-days of later"):
        open_set("later")


def test_a_store_without_its_tables_is_an_error(lanes: Accepted) -> None:
    (artifacts.ingested("traffic", "lanes") / "sensors.parquet").unlink()
    with pytest.raises(DataError, match=r"sensors.parquet: found no such file"):
        open_set("lanes")


def test_sensors_without_roads_have_none() -> None:
    ingested("roads")
    stage.run(params("roads"), name="traffic", key="")
    found = open_set("roads")
    assert (found.roads_TR, found.road_ids, found.is_lanes) == (None, (), False)
    assert found.road_of_sensor_S.tolist() == [-1] * 4
    assert isinstance(found.sensors, pl.DataFrame)
