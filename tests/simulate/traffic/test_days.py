"""The days: vehicles are conserved, the drop makes a queue, and faults stop all."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stages.errors import StageError
from stages.simulate.traffic import days, demand, lanefiles, network, programs
from stages.simulate.traffic.options import Limits, Simulation

DAY = demand.Day(3, datetime.date(2026, 1, 11), 1.0, 0.0, 0.0)
COUNTS = days.Counts(
    demanded=1000, inserted=990, waiting=10, arrived=950, inside=40, teleported=0, collisions=0, mean_delay_s=5.0
)


@pytest.fixture(scope="module")
def result(simulation: Simulation, tmp_path_factory: pytest.TempPathFactory) -> days.Result:
    folder = tmp_path_factory.mktemp("day")
    return days.simulate_day(simulation, days.build(simulation, folder), 0, folder, lambda seconds: None)


def test_who_entered_has_left_or_is_inside(simulation: Simulation, result: days.Result) -> None:
    counts = result.counts
    assert counts.demanded == demand.traffic(simulation, result.day).depart_V.size
    assert counts.demanded == counts.inserted + counts.waiting
    assert counts.inserted == counts.arrived + counts.inside
    assert counts.arrived > 1000


def test_between_stations_without_a_ramp_no_vehicle_is_lost(result: days.Result, simulation: Simulation) -> None:
    """Stations 3 and 4 lie before and after the drop; what differs is what stands between them, 250 m of road."""
    station_D = np.array([detector.station for detector in network.detectors(simulation.corridor)])
    before, after = (result.measured.flow_TD[:, station_D == station].sum() for station in (3, 4))
    assert after > 1000
    assert abs(before - after) < 2 * 250 / 7


def test_the_drop_makes_a_queue_upstream_and_none_downstream(result: days.Result, simulation: Simulation) -> None:
    road_TK = lanefiles.road_means(result.measured.speed_TD, network.detectors(simulation.corridor))
    assert road_TK[:, :3].min() < 30
    assert road_TK[:, 3].min() > 55


def test_one_lane_lets_no_more_through_than_their_headway(result: days.Result, simulation: Simulation) -> None:
    """A car follows another by at least 1.4 s and its length: at most 3,600 / 1.4 vehicles an hour and lane."""
    station_D = np.array([detector.station for detector in network.detectors(simulation.corridor)])
    assert result.measured.flow_TD[:, station_D == 4].max() * 12 < 3600 / 1.4
    assert 0 <= result.measured.occupancy_TD.min() <= result.measured.occupancy_TD.max() <= 1


def test_in_free_traffic_the_left_lane_is_the_fastest(simulation: Simulation, tmp_path: Path) -> None:
    three = simulation.corridor.model_copy(update={"lanes": 3})
    busy = simulation.demand.model_copy(update={"midday": 1800})
    free = simulation.model_copy(update={"hours": (12, 13), "corridor": three, "demand": busy})
    road = days.build(free, tmp_path)
    measured = days.simulate_day(free, road, 0, tmp_path, lambda seconds: None).measured
    right, middle, left = np.nanmedian(measured.speed_TD[:, 3:6], axis=0)
    assert right < middle < left
    assert right > 70


def test_what_announce_raises_stops_sumo(simulation: Simulation, tmp_path: Path) -> None:
    told = []

    def stop(seconds: int) -> None:
        told.append(seconds)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        days.simulate_day(simulation, days.build(simulation, tmp_path), 0, tmp_path, stop)
    assert len(told) == 1


def test_the_error_of_one_day_is_the_error_of_all(
    simulation: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = programs.run

    def broken(program: str, *arguments: str, announce: Callable[[int], None] = lambda seconds: None) -> None:
        if any("day-1" in argument for argument in arguments):
            raise StageError("sumo stopped")
        run(program, *arguments, announce=announce)

    monkeypatch.setattr(programs, "run", broken)
    with pytest.raises(StageError, match="sumo stopped"):
        days.simulate(simulation, tmp_path)


@pytest.mark.parametrize(
    ("field", "limits", "message"),
    [
        ("teleported", Limits(teleports=0.01), "teleported 11 of 1000 vehicles, more than the limit of 0.01"),
        ("collisions", Limits(collisions=0), "collisions 11 of 1000 vehicles, more than the limit of 0"),
        ("waiting", Limits(waiting=0.01), "waiting 11 of 1000 vehicles"),
    ],
)
def test_a_day_with_too_many_faults_is_refused(field: str, limits: Limits, message: str) -> None:
    counts = days.Counts(**(vars(COUNTS) | {field: 11}))
    with pytest.raises(StageError, match=rf"day 3 \(2026-01-11\): {re.escape(message)}.*traffic\.simulated"):
        days.check(DAY, counts, limits)


def test_a_day_within_the_limits_passes() -> None:
    days.check(DAY, COUNTS, Limits(waiting=0.01, teleports=0, collisions=0))


def test_no_more_days_run_at_a_time_than_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 5, 7})
    assert (days.processes(8), days.processes(2)) == (3, 2)
