"""The harmonised schema of a flux tower: variables, units, flags and the columns of records.parquet.

Plain constants and the standard library only, so that the gate can import them without the readers.
"""

from __future__ import annotations

from typing import Literal

#: Variables in the order in which they are written.
Variable = Literal["SWC", "P", "LE", "H", "G", "NETRAD", "SW_IN", "VPD", "TA"]
VARIABLES = ("SWC", "P", "LE", "H", "G", "NETRAD", "SW_IN", "VPD", "TA")

#: Unit of each variable in every ingested data set. P is the sum of the step, all others are means of the step.
UNITS = {
    "SWC": "m3 m-3",
    "P": "mm",
    "LE": "W m-2",
    "H": "W m-2",
    "G": "W m-2",
    "NETRAD": "W m-2",
    "SW_IN": "W m-2",
    "VPD": "hPa",
    "TA": "degC",
}

LONG_NAMES = {
    "SWC": "volumetric soil water content",
    "P": "precipitation, sum of the step",
    "LE": "latent heat flux",
    "H": "sensible heat flux",
    "G": "soil heat flux",
    "NETRAD": "net radiation",
    "SW_IN": "incoming shortwave radiation",
    "VPD": "vapour pressure deficit",
    "TA": "air temperature",
}

#: Variables that add up over a period; all others are averaged.
SUMMED = ("P",)

#: Values other than the declared missing value that stand for "missing" somewhere and are impossible as a measurement.
SUSPECT_SENTINELS = (-99999.0, -9999.9, -9999.0, -8888.0, -7777.0, -6999.0, -999.9, -999.0, 9999.0, 99999.0)

#: Nominal step in minutes of the resolutions of FLUXNET2015; months and years have no fixed length.
RESOLUTION_MINUTES: dict[str, int | None] = {"HH": 30, "HR": 60, "DD": 1440, "WW": 10080, "MM": None, "YY": None}

#: First day of the three-day periods: day 0 of the Unix epoch, so that the periods of all sites and years coincide.
THREE_DAY_EPOCH = "1970-01-01"

#: Statistics of one variable in one site-month, and what they mean.
STATISTICS = {
    "coverage": "measured steps as a share of the steps of the calendar month",
    "filled": "gap-filled steps as a share of the steps of the calendar month",
    "minimum": "smallest measured value, in the unit of the variable",
    "maximum": "largest measured value, in the unit of the variable",
    "mean": "mean of the measured values, in the unit of the variable (P: mean of the steps)",
    "sentinel": "steps that hold a sentinel other than the declared one, as a share of the steps of the month",
    "constant_hours": "longest run of one identical non-zero measured value, in hours",
}

#: Digest of the measured values of one variable in one site-month, by which the gate finds one tower under two names;
#: null where fewer than :data:`MIN_DISTINCT` values differ: two towers may share these by chance (a dry month).
DIGEST = "sha256"
MIN_DISTINCT = 20

#: Columns of records.parquet and their polars types; the same for every site, null where a variable is absent.
RECORD_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "group": "String",
    "year": "Int64",
    "month": "Int64",
    "source_file": "String",
    "sha256": "String",
    "resolution_minutes": "Int64",
    "expected_steps": "Int64",
    "present_steps": "Int64",
    "duplicate_stamps": "Int64",
    "conflicting_stamps": "Int64",
    "unsorted_stamps": "Int64",
    **{f"{statistic}_{variable}": "Float64" for variable in VARIABLES for statistic in STATISTICS},
    **{f"{DIGEST}_{variable}": "String" for variable in VARIABLES},
    "sw_in_peak_hour": "Float64",
    "energy_balance_steps": "Int64",
    "energy_balance_ratio": "Float64",
}
