"""What is expected of a sensor-day: the summary frame of a set, and the rules made of the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from stages.ingest.traffic.schema import RECORD_COLUMNS
from stages.validate.expectations import Rule, Severity, between
from stages.validate.traffic.day_measures import DayMeasures
from stages.validate.traffic.gate import Gate, written

KINDS = {"String": "text", "Int64": "integer", "Float64": "number"}
MEASURES = ("flat_minutes", "spikes", "shape")


def columns() -> dict[str, str]:
    """Columns the gate needs in records.parquet, each with its kind of type."""
    return {name: KINDS[dtype] for name, dtype in RECORD_COLUMNS.items()}


def summary_frame(
    records: pl.DataFrame,
    sensors: Sequence[str],
    days: Sequence[tuple[int, int]],
    measures: Mapping[str, DayMeasures],
    step_minutes: float,
    min_shape_days: int,
) -> pl.DataFrame:
    """records.parquet with what the series tells, in the order of reading.

    Adds for each variable VARIABLE_flat_minutes, VARIABLE_spikes and VARIABLE_shape (null where there is nothing to
    judge, or the set has fewer than ``min_shape_days`` days), VARIABLE_judged_coverage (the coverage; null where the
    sensor never measures this variable and does measure another), and ``moves`` (whether any variable varies that day).
    """
    grid = {
        "sensor": list(sensors) * len(days),
        "start": [start for start, _ in days for _ in sensors],
    }
    added = pl.DataFrame(grid, schema={"sensor": pl.String, "start": pl.Int64})
    for variable, found in measures.items():
        shape = found.shape_DS if len(days) >= min_shape_days else np.full_like(found.shape_DS, np.nan)
        arrays = (found.flat_steps_DS * step_minutes, found.spikes_DS, shape)
        added = added.with_columns(
            pl.Series(f"{variable}_{name}", array.ravel(), nan_to_null=True)
            for name, array in zip(MEASURES, arrays, strict=True)
        )
    deviations = [pl.col(f"{variable}_std").fill_null(0) > 0 for variable in measures]
    ever = {variable: (pl.col(f"{variable}_coverage") > 0).any().over("sensor") for variable in measures}
    silent = ~pl.any_horizontal(ever.values())
    return records.join(added, on=["sensor", "start"], how="left", maintain_order="left").with_columns(
        *(
            pl.when(there | silent).then(f"{variable}_coverage").alias(f"{variable}_judged_coverage")
            for variable, there in ever.items()
        ),
        moves=pl.any_horizontal(deviations),
    )


def rules(gate: Gate, units: Mapping[str, str], step_minutes: float, *, lanes: bool, copies: bool) -> list[Rule]:
    """The rules for the sensor-days of one set, gravest first.

    Parameters
    ----------
    units
        Unit of each variable that the set has.
    lanes
        Whether its sensors stand on single lanes.
    copies
        Whether the columns copied_block and copied_day are there, and refuse.
    """
    found = _copies() if copies else []
    if gate.zero_sensors == "quarantine":
        found.append(
            Rule(
                "sensor not zero all the time",
                "expect_column_values_to_be_null",
                {"column": "zero_variable"},
                "quarantine",
                "{value} of sensor {sensor} is 0 all the time: no detector works there",
                "0",
            )
        )
    if "speed" in units:
        found += _zeros(gate)
    for variable, unit in units.items():
        found += [
            *_range(gate, variable, unit, step_minutes, lanes),
            *_coverage(gate, variable),
            *_runs(gate, variable),
        ]
        found += [*_spikes(gate, variable), *_shape(gate, variable)]
    if "speed" in units:
        found += _road(gate, written(units["speed"]))
    return found


def _at_most(
    column: str, limit: float, name: str, reason: str, observed: str = "{value}", severity: Severity = "quarantine"
) -> Rule:
    return between(name, column, None, limit, severity=severity, reason=reason, observed=observed)


def _at_least(
    column: str, limit: float, name: str, reason: str, observed: str = "{value}", severity: Severity = "quarantine"
) -> Rule:
    return between(name, column, limit, None, severity=severity, reason=reason, observed=observed)


def _copies() -> list[Rule]:
    return [
        Rule(name, "expect_column_values_to_be_null", {"column": column}, "quarantine", reason, "{value}")
        for name, column, reason in (
            ("copy of an earlier block", "copied_block", "{record_id} lies in a near-copy: {value}"),
            ("copy of an earlier day", "copied_day", "{record_id} has the values of {value} in an earlier part"),
        )
    ]


def _range(gate: Gate, variable: str, unit: str, step_minutes: float, lanes: bool) -> list[Rule]:
    if variable == "speed":
        low, high = gate.speed(unit)
    elif variable == "flow":
        low, high = gate.flow(unit, step_minutes, lanes)
    else:
        low, high = gate.occupancy
    name = f" {written(unit)}" if written(unit) else ""
    allowed = f"the gate allows {low:.6g} to {high:.6g}{name}"
    below = ": already normalised?" if variable == "speed" else ""
    return [
        _at_least(
            f"{variable}_min",
            low,
            f"least {variable}",
            f"{variable} of {{record_id}} goes down to {{value}}{name}; {allowed}{below}",
            f"{{value}}{name}",
        ),
        _at_most(
            f"{variable}_max",
            high,
            f"largest {variable}",
            f"{variable} of {{record_id}} reaches {{value}}{name}; {allowed}: another unit?",
            f"{{value}}{name}",
        ),
    ]


def _coverage(gate: Gate, variable: str) -> list[Rule]:
    told = f"{{value:.1%}} of the steps of {{record_id}} have a {variable}"
    return [
        _at_least(
            f"{variable}_judged_coverage",
            gate.min_coverage,
            f"coverage of {variable}",
            f"{told}; the gate asks for {gate.min_coverage:.1%}",
            "{value:.1%}",
        ),
        _at_least(
            f"{variable}_judged_coverage",
            gate.low_coverage,
            f"full coverage of {variable}",
            f"{told}; the gate warns below {gate.low_coverage:.1%}",
            "{value:.1%}",
            "warning",
        ),
    ]


def _runs(gate: Gate, variable: str) -> list[Rule]:
    told = f"{variable} of {{record_id}} keeps one value for {{value}} minutes"
    return [
        _at_most(
            f"{variable}_flat_minutes",
            gate.max_flat_minutes,
            f"flat {variable}",
            f"{told}; the gate allows {gate.max_flat_minutes:g}: a detector that hangs?",
            "{value} minutes",
        ),
        _at_most(
            f"{variable}_flat_minutes",
            gate.much_flat_minutes,
            f"long run of one {variable}",
            f"{told}; the gate warns above {gate.much_flat_minutes:g}",
            "{value} minutes",
            "warning",
        ),
    ]


def _spikes(gate: Gate, variable: str) -> list[Rule]:
    return [
        _at_most(
            f"{variable}_spikes",
            gate.max_spikes,
            f"spikes of {variable}",
            f"{{value}} steps of {{record_id}} lie more than {gate.spike:g} ranges of the sensor from both neighbours; "
            f"the gate warns above {gate.max_spikes}",
            "{value} steps",
            "warning",
        )
    ]


def _shape(gate: Gate, variable: str) -> list[Rule]:
    return [
        _at_least(
            f"{variable}_shape",
            gate.min_day_shape,
            f"day shape of {variable}",
            f"{variable} of {{record_id}} has a correlation of {{value:.2f}} with the mean of the sensor's other days; "
            f"the gate warns below {gate.min_day_shape:g}: a shifted clock, or another sensor?",
            "{value:.2f}",
            "warning",
        )
    ]


def _zeros(gate: Gate) -> list[Rule]:
    told = "{value:.1%} of the steps of {record_id} have speed 0, which the set does not state as its null value"
    return [
        _at_most(
            "speed_zeros_share",
            gate.max_zero_speeds,
            "speeds of zero",
            f"{told}; the gate allows {gate.max_zero_speeds:.1%}: give `null_value: 0` if it means `not measured`",
            "{value:.1%}",
        ),
        _at_most(
            "speed_zeros_share",
            gate.many_zero_speeds,
            "few speeds of zero",
            f"{told}; the gate warns above {gate.many_zero_speeds:.1%}",
            "{value:.1%}",
            "warning",
        ),
    ]


def _road(gate: Gate, unit: str) -> list[Rule]:
    told = f"the road of {{record_id}} and the mean of its lanes are up to {{value}} {unit} apart at one time"
    return [
        _at_most(
            "road_difference",
            gate.max_road_difference,
            "lanes against their road",
            f"{told}; the gate allows {gate.max_road_difference:g}",
            f"{{value}} {unit}",
        ),
        _at_most(
            "road_difference",
            gate.much_road_difference,
            "lanes near their road",
            f"{told}; the gate warns above {gate.much_road_difference:g}",
            f"{{value}} {unit}",
            "warning",
        ),
    ]
