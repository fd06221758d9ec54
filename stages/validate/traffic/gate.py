"""Limits of the traffic gate: what is expected of one sensor-day, and of a set as a whole, in physical units.

They ask whether a detector on a road can have given this. Those that only warn were set by looking at freeway lanes of
California, roads of Los Angeles and of Guangzhou: a sound day of these stays within them nearly always.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stages.params import Config

KMH_PER_MPH = 1.609344
KMH_PER_MS = 3.6

Share = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[float, Field(gt=0)]
Correlation = Annotated[float, Field(ge=-1, le=1)]


def _ascending(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"the lower bound {bounds[0]:g} is above the upper bound {bounds[1]:g}")
    return bounds


Bounds = Annotated[tuple[float, float], AfterValidator(_ascending)]


class Gate(Config):
    """Limits of the gate. A set's own gate names only those it changes."""

    max_quarantined: Share = Field(0.2, description="share of a set's sensor-days, and of all")
    min_coverage: Share = Field(0.5, description="share of a day's steps that are measured")
    low_coverage: Share = Field(0.9, description="the same; below: warning")
    speed_mph: Bounds = Field((0.0, 120.0), description="mph")
    speed_kmh: Bounds = Field((0.0, 200.0), description="km/h; a set in m/s is judged by the same limits")
    flow_per_hour: Bounds = Field((0.0, 25_000.0), description="vehicles an hour past a sensor of a whole road")
    lane_flow_per_hour: Bounds = Field((0.0, 4_000.0), description="vehicles an hour past a sensor of one lane")
    occupancy: Bounds = Field((0.0, 1.0), description="share of a step")
    max_flat_minutes: Limit = Field(720.0, description="longest run of one value; a zero is no run, but for speed")
    much_flat_minutes: Limit = Field(240.0, description="the same; above: warning")
    max_zero_speeds: Share = Field(0.25, description="share of a day's speeds that are 0: a null value not stated?")
    many_zero_speeds: Share = Field(0.02, description="the same; above: warning")
    zero_sensors: Literal["quarantine", "report"] = Field("quarantine", description="a sensor that is 0 all the time")
    spike: Limit = Field(1.5, description="distance from both neighbours, in ranges (5 to 95 %) of the sensor")
    max_spikes: int = Field(2, ge=0, description="steps of a day; above: warning")
    min_day_shape: Correlation = Field(-0.3, description="of a day with its sensor's mean day; below: warning")
    min_shape_days: int = Field(5, ge=2, description="days of a sensor below which no shape is judged")
    max_road_difference: Limit = Field(30.0, description="speed of a road against its lanes, unit of the set")
    much_road_difference: Limit = Field(5.0, description="the same; above: warning")
    free_flow_mph: Bounds = Field((15.0, 85.0), description="mph; 95th percentile, median of the sensors; else stop")
    free_flow_kmh: Bounds = Field((20.0, 140.0), description="km/h; the same")
    lane_free_flow_kmh: Limit = Field(75.0, description="km/h; the same where lanes are measured; below: reported")
    vehicle_length_m: Bounds = Field(
        (4.0, 9.5), description="m; effective length, occupancy * speed / flow of a lane; outside: reported"
    )
    max_negative: Share = Field(0.001, description="share of a set's values below 0; above: stop")
    near_copies: Literal["stop", "quarantine", "report"] = Field(
        "stop", description="what follows when a block of one part of the time is a near-copy of another part"
    )
    copy_correlation: Correlation = Field(0.85, description="of the changes of one sensor in two blocks: a near-copy")
    shared_correlation: Correlation = Field(0.6, description="the same, mean of all sensors")
    sensor_correlation: Correlation = Field(0.98, description="of the changes of two sensors: a copy; reported")

    def overridden(self, override: Gate | None) -> Gate:
        """These limits with those that a set's own gate sets."""
        if override is None:
            return self
        return Gate.model_validate(self.model_dump() | override.model_dump(exclude_unset=True))

    def speed(self, unit: str) -> tuple[float, float]:
        """Range of speeds in a unit of speed."""
        return _in_unit(unit, self.speed_mph, self.speed_kmh)

    def free_flow(self, unit: str) -> tuple[float, float]:
        """Range of free-flow speeds in a unit of speed."""
        return _in_unit(unit, self.free_flow_mph, self.free_flow_kmh)

    def flow(self, unit: str, step_minutes: float, lanes: bool) -> tuple[float, float]:
        """Range of flows in a unit of flow: a count of a step is longer the longer the step."""
        low, high = self.lane_flow_per_hour if lanes else self.flow_per_hour
        factor = step_minutes / 60 if unit == "veh per step" else 1.0
        return low * factor, high * factor


def _in_unit(unit: str, mph: tuple[float, float], kmh: tuple[float, float]) -> tuple[float, float]:
    if unit == "mph":
        return mph
    return (kmh[0] / KMH_PER_MS, kmh[1] / KMH_PER_MS) if unit == "m s-1" else kmh


def kmh(value: float, unit: str) -> float:
    """A speed in km/h."""
    return value * {"mph": KMH_PER_MPH, "m s-1": KMH_PER_MS}.get(unit, 1.0)


def written(unit: str) -> str:
    """A unit as people write it."""
    return {"km h-1": "km/h", "m s-1": "m/s", "veh h-1": "veh/h", "veh per step": "vehicles a step", "1": ""}.get(
        unit, unit
    )
