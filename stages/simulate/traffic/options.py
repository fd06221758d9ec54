"""Options of the simulated lanes, as they stand under ``traffic.simulated.NAME`` in params.yaml."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from stages.params import Config

#: A station keeps this distance from ramps, from the lane drop and from both ends, in metres.
CLEARANCE_M = 50.0


class Corridor(Config):
    """The freeway: an exit ramp, an entry ramp with an acceleration lane, then the lane drop; places in metres."""

    lanes: int = Field(default=3, ge=2, le=5, description="lanes before the lane drop; after it one lane fewer")
    length_m: float = Field(default=3000.0, ge=500, le=20000, description="length of the freeway, m")
    exit_m: float = Field(default=600.0, gt=0, description="where the exit ramp leaves, m from the start")
    entry_m: float = Field(default=1000.0, gt=0, description="where the entry ramp joins, m from the start")
    acceleration_m: float = Field(default=250.0, ge=100, description="length of the acceleration lane of the entry, m")
    drop_m: float = Field(default=2100.0, gt=0, description="where the rightmost lane ends, m from the start")
    speed_limit_kmh: float = Field(default=100.0, ge=60, le=140, description="speed limit of the freeway, km/h")
    stations_m: tuple[float, ...] = Field(
        default=(250.0, 500.0, 800.0, 1400.0, 1650.0, 1850.0, 2300.0, 2700.0),
        min_length=1,
        description="where the detectors stand, m from the start, one in each lane; sensors 1, 2, ... in this order",
    )

    @property
    def marks_m(self) -> tuple[float, ...]:
        """Where a section ends and the next begins, from the start to the end of the freeway."""
        return (0.0, self.exit_m, self.entry_m, self.entry_m + self.acceleration_m, self.drop_m, self.length_m)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if any(after - before < 2 * CLEARANCE_M for before, after in pairwise(self.marks_m)):
            raise ValueError(
                "expected exit_m < entry_m < entry_m + acceleration_m < drop_m < length_m, "
                f"each at least {2 * CLEARANCE_M:g} m after the one before"
            )
        if list(self.stations_m) != sorted(set(self.stations_m)):
            raise ValueError("stations_m: expected places that rise, none twice")
        for station_m in self.stations_m:
            if self.entry_m <= station_m <= self.entry_m + self.acceleration_m:
                raise ValueError(f"stations_m: {station_m:g} lies at the acceleration lane, which is no through lane")
            if min(abs(station_m - mark_m) for mark_m in self.marks_m) < CLEARANCE_M or station_m > self.length_m:
                raise ValueError(
                    f"stations_m: {station_m:g} lies outside the freeway, or less than {CLEARANCE_M:g} m from a ramp, "
                    "from the lane drop or from an end"
                )
        return self


class Peak(Config):
    """One peak of the daily demand."""

    vehicles_per_hour: float = Field(gt=0, description="demand at the height of the peak, veh/h")
    hour: float = Field(ge=0, le=24, description="time of day of the height, h")
    width_hours: float = Field(gt=0, le=6, description="standard deviation of the peak's bell, h")


class Demand(Config):
    """How many vehicles come, by time of day and day of the week."""

    night: float = Field(default=250.0, ge=0, description="demand at night, veh/h")
    midday: float = Field(default=1500.0, ge=0, description="demand between the peaks, veh/h")
    morning: Peak = Peak(vehicles_per_hour=3950.0, hour=7.75, width_hours=0.6)
    evening: Peak = Peak(vehicles_per_hour=3850.0, hour=17.25, width_hours=0.75)
    weekend: float = Field(
        default=0.5, ge=0, le=2, description="on Saturdays and Sundays a peak rises this share as high above midday"
    )
    day_spread: float = Field(default=0.03, ge=0, le=0.5, description="relative spread of the demand from day to day")
    shift_minutes: float = Field(default=8.0, ge=0, le=120, description="spread of a peak's time from day to day, min")
    entry_share: float = Field(default=0.12, ge=0, le=0.5, description="share of the vehicles that come by the entry")
    exit_share: float = Field(default=0.08, ge=0, le=0.5, description="share of the vehicles that leave by the exit")


class Vehicles(Config):
    """Who drives and how."""

    trucks: float = Field(default=0.1, ge=0, le=1, description="share of trucks")
    truck_speed_kmh: float = Field(default=85.0, ge=40, le=140, description="highest speed of a truck, km/h")
    speed_spread: float = Field(
        default=0.1, ge=0, le=0.3, description="spread of a car's desired speed, as a share of the limit"
    )
    headway_s: float = Field(default=1.4, ge=1, le=3, description="time gap a car keeps to the one ahead, s")
    imperfection: float = Field(default=0.7, ge=0, le=1, description="Krauss's sigma: 0 drives perfectly")
    cooperation: float = Field(
        default=0.5, ge=0, le=1, description="how readily a driver makes room for one who merges"
    )
    look_ahead_m: float = Field(
        default=250.0, gt=0, description="how far ahead a driver minds that a lane ends, m (about)"
    )


class Incidents(Config):
    """Vehicles that break down on a lane."""

    per_day: float = Field(
        default=1.5, ge=0, le=20, description="expected number a day, more when there is more traffic"
    )
    minutes: tuple[float, float] = Field(default=(6.0, 20.0), description="shortest and longest time on the lane, min")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 < self.minutes[0] <= self.minutes[1]:
            raise ValueError("minutes: expected [shortest, longest] with 0 < shortest ≤ longest")
        return self


class Limits(Config):
    """What a simulation may show of SUMO's own faults before it is refused."""

    teleports: float = Field(
        default=0.002, ge=0, le=1, description="largest share of a day's vehicles that SUMO moved out of a deadlock"
    )
    collisions: float = Field(default=0.001, ge=0, le=1, description="largest share of a day's vehicles that collided")
    waiting: float = Field(
        default=0.02, ge=0, le=1, description="largest share of a day's vehicles that found no room on the freeway"
    )


class Simulation(Config):
    """One simulated freeway, every lane measured by induction loops for whole days."""

    seed: int = Field(ge=0, description="seed of all its random numbers")
    days: int = Field(default=8, ge=1, le=366, description="days; each is a simulation of its own")
    first_day: datetime.date = Field(
        default=datetime.date(2026, 1, 8), description="first day, YYYY-MM-DD; it decides which days are a weekend"
    )
    interval_minutes: Literal[1, 5] = Field(default=5, description="time a detector's values are taken over, min")
    step_seconds: float = Field(default=1.0, ge=0.1, le=1, description="time step of SUMO, s")
    lead_minutes: int = Field(
        default=10, ge=0, le=120, description="time before midnight that fills the road and is not kept, min"
    )
    hours: tuple[int, int] = Field(
        default=(0, 24), description="hours of a day that are simulated: from, to; others have no rows"
    )
    corridor: Corridor = Corridor()
    demand: Demand = Demand()
    vehicles: Vehicles = Vehicles()
    incidents: Incidents = Incidents()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.lead_minutes % self.interval_minutes:
            raise ValueError(f"lead_minutes: expected a multiple of interval_minutes ({self.interval_minutes})")
        if abs(1 / self.step_seconds - round(1 / self.step_seconds)) > 1e-6:
            raise ValueError("step_seconds: expected a whole number of steps a second: 1, 0.5, 0.25, 0.2 or 0.1")
        if not 0 <= self.hours[0] < self.hours[1] <= 24:
            raise ValueError("hours: expected [from, to] with 0 ≤ from < to ≤ 24")
        return self
