"""The freeway: ramps, the lane drop, detectors in every lane, and what SUMO makes of it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from stages.simulate.traffic import days, network
from stages.simulate.traffic.options import Corridor, Simulation

CORRIDOR = Corridor()


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> ET.Element:
    """The network that netconvert makes."""
    return ET.parse(days.build(Simulation(seed=0), tmp_path_factory.mktemp("road"))).getroot()


def test_the_freeway_has_a_lane_more_at_the_entry_and_one_fewer_after_the_drop() -> None:
    assert [section.lanes for section in network.sections(CORRIDOR)] == [3, 3, 4, 3, 2]
    places = [(section.start_m, section.stop_m) for section in network.sections(CORRIDOR)]
    assert places == [(0, 600), (600, 1000), (1000, 1250), (1250, 2100), (2100, 3000)]


def test_the_rightmost_lane_leads_nowhere_at_the_drop(road: ET.Element) -> None:
    leads = {
        int(link.attrib["fromLane"]): int(link.attrib["toLane"])
        for link in road.iter("connection")
        if (link.attrib["from"], link.attrib["to"]) == ("before_drop", "after_drop")
    }
    assert leads == {1: 0, 2: 1}


def test_every_through_lane_goes_on_in_its_place_from_the_left(road: ET.Element) -> None:
    links = {(link.attrib["from"], link.attrib["fromLane"]): link.attrib for link in road.iter("connection")}
    place, lane = "entrance", "2"
    walked = []
    while (place, lane) in links:
        place, lane = links[place, lane]["to"], links[place, lane]["toLane"]
        walked.append((place, lane))
    assert walked == [("middle", "2"), ("merge", "3"), ("before_drop", "2"), ("after_drop", "1")]


def test_the_network_has_the_lengths_and_the_limit_that_are_asked_for(road: ET.Element) -> None:
    lanes = {lane.attrib["id"]: lane.attrib for lane in road.iter("lane")}
    for section in network.sections(CORRIDOR):
        lane = lanes[f"{section.edge}_0"]
        # A junction takes some metres of the sections that meet there, most before the exit.
        assert 0 <= section.stop_m - section.start_m - float(lane["length"]) < 35
        assert 0 <= float(lane["shape"].partition(",")[0]) - section.start_m < 5
        assert float(lane["speed"]) == pytest.approx(100 / 3.6, abs=0.01)
    assert len([edge for edge in road.iter("edge") if not edge.attrib["id"].startswith(":")]) == 7


def test_every_lane_of_a_station_has_a_detector_and_no_internal_lane_has_one(road: ET.Element) -> None:
    detectors = network.detectors(CORRIDOR)
    length = {lane.attrib["id"]: float(lane.attrib["length"]) for lane in road.iter("lane")}
    by_station = {station: [d.lane for d in detectors if d.station == station] for station in range(1, 9)}
    assert by_station == {station: [1, 2, 3] for station in range(1, 7)} | {7: [1, 2], 8: [1, 2]}
    assert not any(d.lane_id.startswith(":") for d in detectors)
    assert all(0 < d.along_m < length[d.lane_id] for d in detectors)
    assert len({d.column for d in detectors}) == len(detectors) == 22


def test_a_lane_keeps_its_neighbours_across_the_drop() -> None:
    detectors = {(d.station, d.lane): d for d in network.detectors(CORRIDOR)}

    def near(first: tuple[int, int], second: tuple[int, int]) -> bool:
        return network.neighbours(detectors[first], detectors[second])

    assert near((1, 1), (1, 2))
    assert not near((1, 1), (1, 3))
    assert near((1, 1), (2, 1))
    assert not near((1, 1), (3, 1))
    # The rightmost lane ends; the middle one becomes the rightmost.
    assert not near((6, 1), (7, 1))
    assert near((6, 2), (7, 1))
    assert near((6, 3), (7, 2))


def test_the_routes_are_paths_of_the_network(road: ET.Element) -> None:
    links = {(link.attrib["from"], link.attrib["to"]) for link in road.iter("connection")}
    routes = network.routes(CORRIDOR)
    assert set(routes) == {"through", "exit", "entry"}
    for path in routes.values():
        assert all(pair in links for pair in pairwise(path))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"drop_m": 1200}, "expected exit_m < entry_m"),
        ({"exit_m": 950}, "at least 100 m after"),
        ({"stations_m": [1100]}, "1100 lies at the acceleration lane"),
        ({"stations_m": [2080]}, "2080 lies outside the freeway, or less than 50 m from a ramp"),
        ({"stations_m": [3200]}, "3200 lies outside the freeway"),
        ({"stations_m": [500, 250]}, "expected places that rise"),
        ({"stations_m": []}, "at least 1 item"),
        ({"lanes": 1}, "greater than or equal to 2"),
    ],
)
def test_a_freeway_that_cannot_be(block: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Corridor.model_validate(block)


def test_two_lanes_become_one(tmp_path: Path) -> None:
    corridor = Corridor(lanes=2)
    assert [section.lanes for section in network.sections(corridor)] == [2, 2, 3, 2, 1]
    assert days.build(Simulation(seed=0, corridor=corridor), tmp_path).is_file()
