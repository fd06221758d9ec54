"""The harmonised schema of a traffic set: variables, units, and the columns of the tables.

Plain constants and the standard library only, so that the gate can import them without the readers.
"""

from __future__ import annotations

from typing import Literal

Variable = Literal["speed", "flow", "occupancy"]

#: Variables of a set, in the order in which they are written; a set has at least one.
VARIABLES: tuple[Variable, ...] = ("speed", "flow", "occupancy")

LONG_NAMES: dict[str, str] = {
    "speed": "mean speed of the vehicles of a step",
    "flow": "number of vehicles that passed",
    "occupancy": "share of a step during which the detector was covered",
}

#: Unit as written in params.yaml -> unit of the values as stored. Values are never converted, but for a percentage.
SPEED_UNITS: dict[str, str] = {"mph": "mph", "km/h": "km h-1", "m/s": "m s-1"}
FLOW_UNITS: dict[str, str] = {"veh/h": "veh h-1", "veh/step": "veh per step"}
OCCUPANCY_UNITS: dict[str, str] = {"fraction": "1", "percent": "1"}
UNITS: dict[str, dict[str, str]] = {"speed": SPEED_UNITS, "flow": FLOW_UNITS, "occupancy": OCCUPANCY_UNITS}

#: Factor from the unit of the file to the stored one, where it is not 1.
FACTORS: dict[str, float] = {"percent": 0.01}

#: First moment of a set without a clock; its attribute ``clock`` is false.
NO_CLOCK_START = "1970-01-01T00:00"

MINUTES_PER_DAY = 1440

#: How lanes are counted, in words: detectors of a simulator (SUMO) and of California's freeways (PeMS).
RIGHTMOST_FIRST = "0 is the rightmost"
FASTEST_FIRST = "1 is the fastest"

#: Columns of sensors.parquet and their polars types; null where the files do not say.
SENSOR_COLUMNS: dict[str, str] = {
    "sensor": "String",
    "position": "Int64",
    "road": "String",
    "lane": "Int64",
    "lane_count": "Int64",
    "latitude": "Float64",
    "longitude": "Float64",
}

#: Statistics of one variable of one sensor-day; the column is ``VARIABLE_STATISTIC``.
STATISTICS: dict[str, str] = {
    "coverage": "share of the day's steps that are measured",
    "min": "smallest value, in the unit of the variable",
    "max": "largest value, in the unit of the variable",
    "mean": "mean of the measured values, in the unit of the variable",
    "std": "standard deviation of the measured values (divided by their count), in the unit of the variable",
    "zeros_share": "share of the day's steps that are zero and count as measured",
    "null_share": "share of the day's steps that held the set's null value (missing since)",
    "longest_flat_minutes": "longest run of one and the same value, in minutes: steps of the run x length of a step",
    "largest_jump": "largest change from one step to the next, both measured, in the unit of the variable",
}

#: Columns of records.parquet and their polars types; the same for every set, null where a value does not exist.
RECORD_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "group": "String",
    "set": "String",
    "sensor": "String",
    "day": "String",
    "start": "Int64",
    "stop": "Int64",
    "road": "String",
    "lane": "Int64",
    "source_file": "String",
    "sha256": "String",
    **{f"{variable}_{name}": "Float64" for variable in VARIABLES for name in STATISTICS},
    "road_difference": "Float64",
}
