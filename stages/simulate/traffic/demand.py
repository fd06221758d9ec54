"""Who drives on a day: a smooth daily profile with two peaks, and the vehicles that it sends."""

# Shapes: T time, V vehicle.

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.runtime import random_numbers
from stages.simulate.traffic.network import ENTRY, EXIT, KMH, routes
from stages.simulate.traffic.options import Demand, Peak, Simulation, Vehicles

Floats = NDArray[np.float64]
#: Day-time demand rises about the first hour and falls about the second; both with their width in hours.
RISE, FALL = (6.0, 0.5), (20.5, 0.8)
SATURDAY = 5
#: On a weekend the morning peak comes this much later, h.
WEEKEND_LATER = 2.5
SECONDS_PER_HOUR = 3600
CAR, TRUCK = "car", "truck"
THROUGH = "through"


@dataclass(frozen=True)
class Day:
    """What sets one day apart: the volume, and how much later than usual each peak comes."""

    number: int
    date: datetime.date
    factor: float
    morning_later: float
    evening_later: float

    @property
    def weekend(self) -> bool:
        """Saturday or Sunday."""
        return self.date.weekday() >= SATURDAY


@dataclass(frozen=True)
class Traffic:
    """The vehicles of a day in the order in which they come.

    Attributes
    ----------
    depart_V
        Seconds from midnight, whole; negative in the lead before midnight.
    route_V, kind_V
        Names of the routes and of the kinds of vehicles.
    """

    depart_V: NDArray[np.int64]
    route_V: NDArray[np.str_]
    kind_V: NDArray[np.str_]


def day(simulation: Simulation, number: int) -> Day:
    """Draw what sets day ``number`` apart, from 0; more days leave the first ones as they are."""
    rng = random_numbers(simulation.seed, "day", f"{number}")
    demand = simulation.demand
    later = demand.shift_minutes / 60 * rng.normal(size=2)
    return Day(
        number=number,
        date=simulation.first_day + datetime.timedelta(days=number),
        factor=float(np.exp(demand.day_spread * rng.normal())),
        morning_later=float(later[0]),
        evening_later=float(later[1]),
    )


def rate(demand: Demand, of_day: Day, hour_T: Floats) -> Floats:
    """Demand (T,) in veh/h at times of the day in hours: night, day and a bell for each peak."""
    light_T = _step(hour_T, *RISE) - _step(hour_T, *FALL)
    curve_T = demand.night + (demand.midday - demand.night) * light_T
    share = demand.weekend if of_day.weekend else 1.0
    later = of_day.morning_later + (WEEKEND_LATER if of_day.weekend else 0.0)
    curve_T = curve_T + share * _bell(demand.morning, demand.midday, later, hour_T)
    curve_T = curve_T + share * _bell(demand.evening, demand.midday, of_day.evening_later, hour_T)
    positive_T: Floats = np.maximum(of_day.factor * curve_T, 0.0)
    return positive_T


def _bell(peak: Peak, midday: float, later: float, hour_T: Floats) -> Floats:
    """What a peak adds to the demand between the peaks."""
    from_height_T = (hour_T - peak.hour - later) / peak.width_hours
    bell_T: Floats = (peak.vehicles_per_hour - midday) * np.exp(-np.square(from_height_T) / 2)
    return bell_T


def _step(hour_T: Floats, middle: float, width: float) -> Floats:
    step_T: Floats = 1 / (1 + np.exp(-(hour_T - middle) / width))
    return step_T


def traffic(simulation: Simulation, of_day: Day) -> Traffic:
    """Draw the vehicles of a day: a Poisson process with the day's demand."""
    rng = random_numbers(simulation.seed, "traffic", f"{of_day.number}")
    demand = simulation.demand
    start, stop = (hour * SECONDS_PER_HOUR for hour in simulation.hours)
    second_T = np.arange(start - 60 * simulation.lead_minutes, stop)
    rate_T = rate(demand, of_day, (second_T / SECONDS_PER_HOUR) % 24)
    depart_V = np.repeat(second_T, rng.poisson(rate_T / SECONDS_PER_HOUR))
    route_V = rng.choice(
        np.array([ENTRY, EXIT, THROUGH]),
        size=depart_V.size,
        p=[demand.entry_share, demand.exit_share, 1 - demand.entry_share - demand.exit_share],
    )
    trucks = simulation.vehicles.trucks
    kind_V = rng.choice(np.array([TRUCK, CAR]), size=depart_V.size, p=[trucks, 1 - trucks])
    return Traffic(depart_V, route_V, kind_V)


def document(simulation: Simulation, vehicles: Traffic, stops: dict[int, ET.Element], zero: int) -> ET.Element:
    """SUMO's file of vehicle types, routes and vehicles.

    Parameters
    ----------
    stops
        Stop of a vehicle, by its place in ``vehicles``.
    zero
        Second of the day at which SUMO's clock starts: SUMO takes no negative times.
    """
    tree = ET.Element("routes")
    for kind, attributes in kinds(simulation.vehicles, simulation.corridor.speed_limit_kmh).items():
        ET.SubElement(tree, "vType", {"id": kind} | attributes)
    for name, edges in routes(simulation.corridor).items():
        ET.SubElement(tree, "route", id=name, edges=" ".join(edges))
    columns = zip(vehicles.depart_V, vehicles.route_V, vehicles.kind_V, strict=True)
    for number, (depart, route, kind) in enumerate(columns):
        vehicle = ET.SubElement(
            tree,
            "vehicle",
            {"id": f"{number}", "type": str(kind), "route": str(route), "depart": f"{depart - zero}"}
            | {"departLane": "best", "departSpeed": "max"},
        )
        if number in stops:
            vehicle.append(stops[number])
    return tree


def kinds(vehicles: Vehicles, limit_kmh: float) -> dict[str, dict[str, str]]:
    """Attributes of SUMO's vehicle types: Krauss's model; trucks are longer, slower and keep more distance."""
    shared = {
        "sigma": f"{vehicles.imperfection:g}",
        "minGap": "2.5",
        "lcStrategic": "0.5",
        "lcCooperative": f"{vehicles.cooperation:g}",
        "lcStrategicLookahead": f"{vehicles.look_ahead_m:g}",
    }
    truck = vehicles.truck_speed_kmh / limit_kmh
    return {
        CAR: {
            **shared,
            "length": "4.6",
            "tau": f"{vehicles.headway_s:g}",
            "speedFactor": f"normc(1.03,{vehicles.speed_spread:g},0.7,1.4)",
        },
        TRUCK: {
            **shared,
            "vClass": "truck",
            "length": "14",
            "tau": f"{1.2 * vehicles.headway_s:g}",
            "accel": "1.2",
            "decel": "4",
            "maxSpeed": f"{1.05 * vehicles.truck_speed_kmh / KMH:.2f}",
            "speedFactor": f"normc({truck:.4g},0.03,{0.9 * truck:.4g},{1.1 * truck:.4g})",
        },
    }
