"""Breakdowns: how often, when and where; and that SUMO lets them happen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stages.simulate.traffic import days, demand, incidents, network
from stages.simulate.traffic.options import Incidents, Simulation

MANY = Simulation(seed=1, incidents=Incidents(per_day=8, minutes=(5, 9)))

STOPS = """<stops>
  <stopinfo id="4" type="car" lane="before_drop_1" pos="228.00" started="900.00" ended="1500.00"/>
  <stopinfo id="9" type="car" lane="after_drop_0" pos="68.40" started="600.00" ended="-1.00"/>
</stops>
"""


def test_as_many_incidents_come_as_are_expected_and_most_by_day() -> None:
    drawn = [incidents.draw(MANY, demand.day(MANY, number)) for number in range(60)]
    assert sum(map(len, drawn)) / 60 == pytest.approx(8, abs=4 * np.sqrt(8 / 60))
    hours = np.array([incident.start / 3600 for day in drawn for incident in day])
    assert np.mean((hours > 6) & (hours < 20)) > 0.8
    minutes = [incident.seconds / 60 for day in drawn for incident in day]
    assert 5 <= min(minutes) < 6
    assert 8 < max(minutes) <= 9


def test_they_lie_on_through_lanes_away_from_ramps_and_drop() -> None:
    marks_m = np.array(MANY.corridor.marks_m)
    for number in range(20):
        for incident in incidents.draw(MANY, demand.day(MANY, number)):
            section = network.section_at(MANY.corridor, incident.place_m)
            assert section.edge != "merge"
            assert 1 <= incident.lane <= section.lanes
            assert np.abs(marks_m - incident.place_m).min() >= 50


def test_none_lies_outside_the_hours_that_are_simulated() -> None:
    morning = MANY.model_copy(update={"hours": (7, 9)})
    drawn = [incident for n in range(20) for incident in incidents.draw(morning, demand.day(morning, n))]
    assert drawn
    assert all(7 * 3600 <= incident.start < 9 * 3600 for incident in drawn)


def test_the_car_that_stops_is_on_its_way_there_at_that_time() -> None:
    vehicles = demand.Traffic(
        depart_V=np.array([0, 100, 140, 150, 160]),
        route_V=np.array(["through", "through", "exit", "through", "through"]),
        kind_V=np.array(["car", "truck", "car", "car", "car"]),
    )
    # 1,500 m at 100 km/h are 54 s.
    here = incidents.Incident(start=190.0, seconds=300.0, place_m=1500.0, lane=2)
    stops = incidents.stops(MANY.corridor, vehicles, (here, here))
    assert list(stops) == [3, 4]
    assert stops[3].attrib == {"lane": "before_drop_1", "endPos": "250", "duration": "300"}
    assert incidents.stops(MANY.corridor, vehicles, (incidents.Incident(900.0, 300.0, 1500.0, 1),)) == {}


def test_what_happened_is_told_in_the_time_and_the_places_of_the_freeway(tmp_path: Path) -> None:
    (tmp_path / "stops.xml").write_text(STOPS)
    # Before the one that had not ended at the end of the day, 6,600 s; SUMO's clock starts ten minutes before.
    assert incidents.happened(tmp_path / "stops.xml", MANY.corridor, zero=-600, end=6600) == [
        {"start": 0.0, "minutes": 110.0, "place_m": 2168, "lane": 1},
        {"start": 300.0, "minutes": 10.0, "place_m": 1478, "lane": 2},
    ]


def test_a_car_breaks_down_where_and_as_long_as_it_was_drawn(simulation: Simulation, tmp_path: Path) -> None:
    """At 600 veh/h there is no queue, so the car comes within two minutes."""
    quiet = simulation.demand.model_copy(
        update={"midday": 600, "morning": simulation.demand.morning.model_copy(update={"vehicles_per_hour": 600})}
    )
    broken = simulation.model_copy(update={"demand": quiet, "incidents": Incidents(per_day=20, minutes=(5, 9))})
    of_day = demand.day(broken, 0)
    drawn = [incident for incident in incidents.draw(broken, of_day) if incident.start < 7.7 * 3600]
    assert drawn
    result = days.simulate_day(broken, days.build(broken, tmp_path), 0, tmp_path, lambda seconds: None)
    found = {(incident["place_m"], incident["lane"]): incident for incident in result.incidents}
    for incident in drawn:
        there = found[round(incident.place_m), incident.lane]
        assert 0 <= there["start"] - incident.start < 120
        assert there["minutes"] == pytest.approx(incident.seconds / 60, abs=0.05)
