"""The vehicles of a day: two peaks, weekends, shares, and seeds."""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from stages.simulate.traffic import demand
from stages.simulate.traffic.options import Demand, Peak, Simulation

SIMULATION = Simulation(seed=3)
HOUR_T = np.arange(0, 24, 1 / 60)
THURSDAY, SATURDAY = datetime.date(2026, 1, 8), datetime.date(2026, 1, 10)


def plain(date: datetime.date) -> demand.Day:
    return demand.Day(0, date, factor=1.0, morning_later=0.0, evening_later=0.0)


def heights(rate_T: NDArray[np.float64]) -> list[float]:
    """Hours of the maxima over an hour to both sides."""
    around = range(60, HOUR_T.size - 60)
    return [float(HOUR_T[t]) for t in around if t == t - 60 + np.argmax(rate_T[t - 60 : t + 61]) and rate_T[t] > 1700]


def test_a_working_day_has_two_peaks_of_the_height_and_at_the_time_that_are_asked_for() -> None:
    rate_T = demand.rate(SIMULATION.demand, plain(THURSDAY), HOUR_T)
    at = heights(rate_T)
    assert at == pytest.approx([7.75, 17.25], abs=0.1)
    assert [float(np.interp(hour, HOUR_T, rate_T)) for hour in at] == pytest.approx([3950, 3850], rel=0.02)
    assert float(np.interp(12.5, HOUR_T, rate_T)) == pytest.approx(1500, rel=0.01)
    assert float(np.interp(2.0, HOUR_T, rate_T)) == pytest.approx(250, rel=0.01)


def test_the_profile_is_smooth_and_closes_at_midnight() -> None:
    rate_T = demand.rate(SIMULATION.demand, plain(THURSDAY), HOUR_T)
    assert np.abs(np.diff(rate_T)).max() < 100
    assert rate_T[0] == pytest.approx(rate_T[-1], abs=30)


def test_weekend_peaks_are_lower_and_the_first_one_later() -> None:
    rate_T = demand.rate(SIMULATION.demand, plain(SATURDAY), HOUR_T)
    assert heights(rate_T) == pytest.approx([10.25, 17.25], abs=0.1)
    assert rate_T.max() == pytest.approx(1500 + 0.5 * (3950 - 1500), rel=0.02)


def test_a_week_has_two_days_of_weekend() -> None:
    week = [demand.day(SIMULATION, number) for number in range(7)]
    assert [day.weekend for day in week] == [False, False, True, True, False, False, False]
    assert [day.date.day for day in week] == list(range(8, 15))
    assert len({day.factor for day in week}) == 7


def test_as_many_vehicles_come_as_the_demand_says() -> None:
    of_day = demand.day(SIMULATION, 1)
    vehicles = demand.traffic(SIMULATION, of_day)
    expected = float(demand.rate(SIMULATION.demand, of_day, HOUR_T).mean() * 24)
    kept = vehicles.depart_V[vehicles.depart_V >= 0]
    assert abs(kept.size - expected) < 4 * np.sqrt(expected)
    assert (np.diff(vehicles.depart_V) >= 0).all()
    assert vehicles.depart_V.min() >= -600
    assert np.mean(vehicles.route_V == "entry") == pytest.approx(0.12, abs=0.01)
    assert np.mean(vehicles.route_V == "exit") == pytest.approx(0.08, abs=0.01)
    assert np.mean(vehicles.kind_V == "truck") == pytest.approx(0.1, abs=0.01)


def test_a_longer_simulation_leaves_the_first_days_as_they_were() -> None:
    longer = SIMULATION.model_copy(update={"days": 30})
    assert demand.day(longer, 2) == demand.day(SIMULATION, 2)
    first, again, next_day = (
        demand.traffic(simulation, demand.day(simulation, number)).depart_V
        for simulation, number in ((SIMULATION, 0), (longer, 0), (SIMULATION, 1))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, next_day)


def test_sumo_is_told_of_every_vehicle_from_its_own_zero_on() -> None:
    small = SIMULATION.model_copy(update={"hours": (3, 4)})
    vehicles = demand.traffic(small, demand.day(small, 0))
    tree = demand.document(small, vehicles, {2: ET.Element("stop")}, zero=3 * 3600 - 600)
    listed = tree.findall("vehicle")
    assert [int(vehicle.attrib["depart"]) for vehicle in listed] == (vehicles.depart_V - 10200).tolist()
    assert int(listed[0].attrib["depart"]) >= 0
    assert [vehicle.attrib["id"] for vehicle in tree.iterfind("vehicle[stop]")] == ["2"]


def test_trucks_are_slower_than_cars_and_keep_more_distance() -> None:
    kinds = demand.kinds(SIMULATION.vehicles, 100.0)
    assert kinds["truck"]["speedFactor"].startswith("normc(0.85,")
    assert kinds["car"]["speedFactor"].startswith("normc(1.03,")
    assert float(kinds["truck"]["tau"]) > float(kinds["car"]["tau"])


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"lead_minutes": 7}, "a multiple of interval_minutes"),
        ({"hours": [9, 9]}, r"expected \[from, to\]"),
        ({"hours": [0, 25]}, r"expected \[from, to\]"),
        ({"step_seconds": 0.3}, "a whole number of steps a second"),
        ({"interval_minutes": 2}, "1 or 5"),
        ({"incidents": {"minutes": [9, 3]}}, r"expected \[shortest, longest\]"),
    ],
)
def test_a_simulation_that_cannot_be(block: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Simulation.model_validate({"seed": 0} | block)


def test_no_demand_is_never_below_zero() -> None:
    falling = Demand(night=0, midday=2000, morning=Peak(vehicles_per_hour=1, hour=3, width_hours=1))
    assert demand.rate(falling, plain(THURSDAY), HOUR_T).min() == 0
