"""Whether the values of a set can be in the unit they are labelled with, judged by the whole set.

Shape suffixes: T time, S sensor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.validate.traffic.gate import KMH_PER_MPH, kmh, written

FREE = 95  # percentile of a sensor's speeds that is called free flow
METRES_PER_KM = 1000.0


def free_flow(speed_TS: NDArray[np.float32]) -> float | None:
    """Free-flow speed of a set: the median over its sensors of the 95th percentile of their speeds, in their unit."""
    found = []
    for sensor in range(speed_TS.shape[1]):
        there = speed_TS[:, sensor][np.isfinite(speed_TS[:, sensor])]
        if there.size:
            found.append(float(np.percentile(there, FREE)))
    return float(np.median(found)) if found else None


def unit_doubt(value: float, unit: str, bounds: tuple[float, float]) -> str:
    """What an implausible free-flow speed may be, in words."""
    low, high = bounds
    name = written(unit)
    if 0 <= value <= low and value <= 1.5:
        return f"scaled values, not {name}?"
    if value > high and unit == "mph":
        return f"km/h labelled mph? That would be {value / KMH_PER_MPH:.0f} mph"
    if value < low and unit == "km h-1":
        return f"mph or m/s labelled km/h? That would be {value * KMH_PER_MPH:.0f} or {value * 3.6:.0f} km/h"
    if value < low and unit == "mph":
        return f"m/s labelled mph? That would be {kmh(value, 'm s-1') / KMH_PER_MPH:.0f} mph"
    if value > high and unit == "m s-1":
        return f"km/h or mph labelled m/s? That would be {value / 3.6:.0f} or {value / 2.237:.0f} m/s"
    return "another unit?"


def negative_share(values_TS: NDArray[np.float32]) -> float:
    """Share of the measured values that are below 0."""
    there = int(np.isfinite(values_TS).sum())
    return float((values_TS < 0).sum() / there) if there else 0.0


def vehicle_length(
    speed_TS: NDArray[np.float32],
    flow_TS: NDArray[np.float32],
    occupancy_TS: NDArray[np.float32],
    *,
    speed_unit: str,
    flow_unit: str,
    step_minutes: float,
    lanes_S: NDArray[np.float64],
) -> float | None:
    """Effective length of a vehicle in metres, the median of occupancy * speed / flow of a lane.

    Occupancy is the share of time a detector is covered, so it equals flow * length / speed (length of the vehicle and
    of the detector together). A wrong unit of one of the three shows as a length no traffic has.

    Parameters
    ----------
    lanes_S
        Lanes that a sensor counts together; NaN where that is not known, and then the sensor is left out.
    """
    per_hour = 60 / step_minutes if flow_unit == "veh per step" else 1.0
    known_S = np.isfinite(lanes_S) & (lanes_S > 0)
    lengths = []
    for sensor in np.flatnonzero(known_S):
        flow_T = flow_TS[:, sensor].astype(np.float64) * per_hour / lanes_S[sensor]
        busy_T = (flow_T > 0) & (occupancy_TS[:, sensor] > 0) & (speed_TS[:, sensor] > 0)
        speed_T = kmh(1.0, speed_unit) * METRES_PER_KM * speed_TS[busy_T, sensor].astype(np.float64)
        lengths.append(occupancy_TS[busy_T, sensor] * speed_T / flow_T[busy_T])
    every = np.concatenate(lengths) if lengths else np.empty(0)
    return float(np.median(every)) if every.size else None
