"""Breakdowns: a car of the demand that stops on its lane for some minutes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.runtime import random_numbers
from stages.simulate.traffic.demand import CAR, SECONDS_PER_HOUR, THROUGH, Day, Traffic, rate
from stages.simulate.traffic.network import KMH, section_at, sections
from stages.simulate.traffic.options import CLEARANCE_M, Corridor, Simulation

#: A driver needs this distance from the start of the freeway to stop in any lane, m.
FIRST_M = 400.0
MERGE = "merge"
DRAWS_PER_HOUR = 60


@dataclass(frozen=True)
class Incident:
    """A stop on the freeway.

    Attributes
    ----------
    start
        Second of the day.
    lane
        From the right, from 1.
    """

    start: float
    seconds: float
    place_m: float
    lane: int


def draw(simulation: Simulation, of_day: Day) -> tuple[Incident, ...]:
    """Draw the incidents of a day, in their order: a Poisson process whose rate follows the demand.

    Those outside the hours that are simulated are left out.
    """
    rng = random_numbers(simulation.seed, "incidents", f"{of_day.number}")
    options = simulation.incidents
    hour_T = np.arange(24 * DRAWS_PER_HOUR) / DRAWS_PER_HOUR
    weight_T = rate(simulation.demand, of_day, hour_T)
    if not weight_T.any():
        return ()
    hours = rng.choice(hour_T, size=rng.poisson(options.per_day), p=weight_T / weight_T.sum())
    found = []
    for hour in sorted(hours[(hours >= simulation.hours[0]) & (hours < simulation.hours[1])]):
        place_m = _place(simulation.corridor, rng)
        section = section_at(simulation.corridor, place_m)
        found.append(
            Incident(
                start=float(round(hour * SECONDS_PER_HOUR)),
                seconds=float(round(60 * rng.uniform(*options.minutes))),
                place_m=place_m,
                lane=int(rng.integers(1, section.lanes + 1)),
            )
        )
    return tuple(found)


def _place(corridor: Corridor, rng: np.random.Generator) -> float:
    """A place on a through lane, in whole metres, away from ramps and the lane drop."""
    stretches = [
        (max(section.start_m, FIRST_M) + CLEARANCE_M, section.stop_m - CLEARANCE_M)
        for section in sections(corridor)
        if section.edge != MERGE
    ]
    stretches = [(start_m, stop_m) for start_m, stop_m in stretches if start_m < stop_m]
    length = np.array([stop_m - start_m for start_m, stop_m in stretches])
    start_m, stop_m = stretches[rng.choice(len(stretches), p=length / length.sum())]
    return float(round(rng.uniform(start_m, stop_m)))


def stops(corridor: Corridor, vehicles: Traffic, incidents: tuple[Incident, ...]) -> dict[int, ET.Element]:
    """SUMO's stop of each vehicle that breaks down, by its place in ``vehicles``.

    The vehicle is the first car on the through route that can be there in time; without one there is no incident.
    """
    found: dict[int, ET.Element] = {}
    for incident in incidents:
        travel = incident.place_m / corridor.speed_limit_kmh * KMH
        fit_V = (
            (vehicles.depart_V >= incident.start - travel)
            & (vehicles.route_V == THROUGH)
            & (vehicles.kind_V == CAR)
            & ~np.isin(np.arange(vehicles.depart_V.size), list(found))
        )
        if fit_V.any():
            section = section_at(corridor, incident.place_m)
            place = {"lane": f"{section.edge}_{incident.lane - 1}", "endPos": f"{incident.place_m - section.start_m:g}"}
            found[int(np.argmax(fit_V))] = ET.Element("stop", place | {"duration": f"{incident.seconds:g}"})
    return found


def happened(file: Path, corridor: Corridor, zero: int, end: int) -> list[dict[str, float | int]]:
    """What SUMO's stop output says of the stops: second of the day, minutes, place and lane, in their order.

    Parameters
    ----------
    zero, end
        Second of the day at which SUMO's clock starts, and at which the day ends: a stop that goes on then ends there.
    """
    start_m = {section.edge: section.start_m for section in sections(corridor)}
    found = []
    for stop in ET.parse(file).getroot().iter("stopinfo"):
        edge, _, index = stop.attrib["lane"].rpartition("_")
        started, ended = float(stop.attrib["started"]) + zero, float(stop.attrib["ended"]) + zero
        ended = end if ended < started else ended
        found.append(
            {
                "start": started,
                "minutes": round((ended - started) / 60, 2),
                "place_m": round(start_m[edge] + float(stop.attrib["pos"])),
                "lane": int(index) + 1,
            }
        )
    return sorted(found, key=lambda incident: (incident["start"], incident["place_m"]))
