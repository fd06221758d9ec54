"""What is expected of a set as a whole and of its sensors: two small tables, judged as all others are.

A rule about the set that refuses stops the gate; what only warns is told in the notes of the set.

Shape suffixes: T time, S sensor, R road.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.accepted.traffic_store import Edges, StoredSet, means_of_lanes
from stages.validate.expectations import RECORD, Rule, Severity, between
from stages.validate.traffic import roads, units
from stages.validate.traffic.gate import Gate, kmh, written
from stages.validate.traffic.graph import GraphFacts, graph_facts
from stages.validate.traffic.near_copies import Twin

FROM_FILE = "file"
LAG_MINUTES = 360  # how far lanes and roads are moved against each other

SET_COLUMNS = {
    RECORD: pl.String,
    "uneven_steps": pl.Int64,
    "uneven_at": pl.String,
    "unjudged_steps": pl.Int64,
    "outside_edges": pl.Int64,
    "nan_edges": pl.Int64,
    "negative_edges": pl.Int64,
    "one_way_edges": pl.Int64,
    **{f"{name}_example": pl.String for name in ("outside", "nan", "negative", "one_way")},
    "free_flow": pl.Float64,
    "free_flow_kmh": pl.Float64,
    "unit_doubt": pl.String,
    "vehicle_length": pl.Float64,
    "late_roads": pl.String,
    "null_is_zero": pl.String,
    **{f"{name}_negative_share": pl.Float64 for name in ("speed", "flow", "occupancy")},
}
SENSOR_COLUMNS = {
    RECORD: pl.String,
    "neighbours": pl.Int64,
    "zero_variable": pl.String,
    "measured_share": pl.Float64,
    "unmeasured": pl.String,
    "twin": pl.String,
}


def set_table(
    stored: StoredSet,
    values: Mapping[str, NDArray[np.float32]],
    days: Sequence[tuple[int, int]],
    day_names: Sequence[str],
    gate: Gate,
) -> pl.DataFrame:
    """One row of facts about a set; null where a fact does not apply to it.

    Parameters
    ----------
    values
        Values of each variable, shape (time, sensor).
    days, day_names
        Half-open ranges of steps of the days in records.parquet, and their names.
    """
    graph = graph_of(stored.edges, stored.sensors.height)
    facts: dict[str, Any] = dict.fromkeys(SET_COLUMNS)
    facts |= {RECORD: stored.key, **_grid(stored, days), **_edges(graph, stored)}
    facts |= {f"{name}_negative_share": units.negative_share(values_TS) for name, values_TS in values.items()}
    if "speed" in values:
        facts |= _speeds(stored, values["speed"], gate)
    if set(values) == {"speed", "flow", "occupancy"}:
        facts["vehicle_length"] = units.vehicle_length(
            values["speed"],
            values["flow"],
            values["occupancy"],
            speed_unit=stored.units["speed"],
            flow_unit=stored.units["flow"],
            step_minutes=stored.step_minutes,
            lanes_S=_lanes(stored.sensors),
        )
    facts["late_roads"] = "; ".join(late_roads(stored, values, days, day_names)) or None
    nulls = [name for name in ("flow", "occupancy") if name in values and stored.null(name) == 0]
    facts["null_is_zero"] = " and ".join(nulls) or None
    return pl.DataFrame([facts], schema=SET_COLUMNS)


def graph_of(edges: Edges, sensors: int) -> GraphFacts:
    """What is wrong with the graph of a set; nothing where it has none."""
    return graph_facts(edges.source_E, edges.target_E, edges.weight_E, sensors, edges.directed or edges.kind == "none")


def _grid(stored: StoredSet, days: Sequence[tuple[int, int]]) -> dict[str, Any]:
    minutes_T = np.diff(stored.time_T).astype("timedelta64[m]").astype(np.int64)
    uneven = np.flatnonzero(minutes_T != stored.step_minutes)
    covered_T = np.zeros(stored.time_T.size, np.int64)
    for start, stop in days:
        covered_T[start:stop] += 1
    return {
        "uneven_steps": int(uneven.size),
        "uneven_at": str(stored.time_T[uneven[0] + 1]) if uneven.size else None,
        "unjudged_steps": int((covered_T != 1).sum()),
    }


def _edges(graph: GraphFacts, stored: StoredSet) -> dict[str, Any]:
    if stored.edges.kind == "none":
        return {}
    named = {"outside": "outside", "nan": "no_number", "negative": "negative", "one_way": "one_way"}
    found: dict[str, Any] = {f"{short}_edges": getattr(graph, name) for short, name in named.items()}
    sensors = stored.sensor_ids
    for short, name in named.items():
        pair = graph.examples[name]
        if pair is not None:
            found[f"{short}_example"] = " to ".join(
                sensors[place] if 0 <= place < len(sensors) else f"number {place}" for place in pair
            )
    return found


def _speeds(stored: StoredSet, speed_TS: NDArray[np.float32], gate: Gate) -> dict[str, Any]:
    unit = stored.units["speed"]
    value = units.free_flow(speed_TS)
    if value is None:
        return {}
    on_lanes = bool(stored.sensors["lane"].count()) and unit == "km h-1"
    return {
        "free_flow": value,
        "free_flow_kmh": kmh(value, unit) if on_lanes else None,
        "unit_doubt": units.unit_doubt(value, unit, gate.free_flow(unit)),
    }


def _lanes(sensors: pl.DataFrame) -> NDArray[np.float64]:
    """Lanes that each sensor counts: one where it stands on a lane, else the lane count of its road."""
    lanes = sensors.select(pl.when(pl.col("lane").is_not_null()).then(1).otherwise("lane_count").cast(pl.Float64))
    return lanes.to_series().fill_null(float("nan")).to_numpy()


def late_roads(
    stored: StoredSet,
    values: Mapping[str, NDArray[np.float32]],
    days: Sequence[tuple[int, int]],
    day_names: Sequence[str],
) -> list[str]:
    """In words, on which days the road values of a file run late or early against the lanes."""
    if stored.about.get("roads") != FROM_FILE:
        return []
    road_of_sensor_S = stored.road_of_sensor()
    for variable, values_TS in values.items():
        road_TR = stored.road_values(variable)
        if road_TR is None:
            continue
        lanes_TR = means_of_lanes(values_TS, road_of_sensor_S, road_TR.shape[1])
        count_R = np.bincount(road_of_sensor_S[road_of_sensor_S >= 0], minlength=road_TR.shape[1])
        if variable == "flow" and roads.relation(road_TR, lanes_TR, lanes_TR * count_R) == "sum":
            lanes_TR = lanes_TR * count_R
        most = max(1, round(LAG_MINUTES / stored.step_minutes))
        return roads.told(roads.road_lags(road_TR, lanes_TR, days, most), day_names, stored.step_minutes)
    return []


def sensor_table(
    stored: StoredSet, values: Mapping[str, NDArray[np.float32]], twins: Mapping[str, Sequence[Twin]]
) -> pl.DataFrame:
    """One row of facts about each sensor: neighbours, what is 0 all the time or never measured, whom it repeats."""
    sensors = stored.sensor_ids
    degree_S = graph_of(stored.edges, len(sensors)).degree_S
    zero: list[list[str]] = [[] for _ in sensors]
    absent: list[list[str]] = [[] for _ in sensors]
    measured_S = np.zeros(len(sensors))
    for variable, values_TS in values.items():
        there_TS = np.isfinite(values_TS)
        measured_S = np.maximum(measured_S, there_TS.mean(axis=0))
        silent_S = there_TS.any(axis=0) & ~((values_TS != 0) & there_TS).any(axis=0)
        for sensor in np.flatnonzero(silent_S):
            zero[sensor].append(variable)
        for sensor in np.flatnonzero(~there_TS.any(axis=0)):
            absent[sensor].append(variable)
    told: list[str | None] = [None] * len(sensors)
    for variable, found in twins.items():
        for twin in found:
            told[twin.sensor] = told[twin.sensor] or _twin(twin, sensors, variable, stored.step_minutes)
    return pl.DataFrame(
        {
            RECORD: sensors,
            "neighbours": [None] * len(sensors) if stored.edges.kind == "none" else degree_S,
            "zero_variable": [" and ".join(names) or None for names in zero],
            "measured_share": measured_S,
            "unmeasured": [" and ".join(names) or None for names in absent],
            "twin": told,
        },
        schema=SENSOR_COLUMNS,
    )


def _twin(twin: Twin, sensors: Sequence[str], variable: str, step_minutes: float) -> str:
    later = f" {abs(twin.shift)} steps ({abs(twin.shift) * step_minutes:g} minutes)"
    when = "" if not twin.shift else f"{later} {'later' if twin.shift > 0 else 'earlier'}"
    return (
        f"{variable} of {sensors[twin.source]} times {twin.factor:.4g}{when} (correlation of the changes "
        f"{twin.correlation:.4f})"
    )


def set_rules(gate: Gate, unit_of: Mapping[str, str]) -> list[Rule]:
    """Rules for :func:`set_table`."""
    found = [
        _none(
            "uneven_steps",
            "regular grid",
            "{value} steps of {record_id} are not as long as the others, the first "
            "ends at {uneven_at}: the grid of times is not regular",
        ),
        _none(
            "unjudged_steps",
            "every step in one day",
            "{value} steps of {record_id} lie in no sensor-day of records.parquet, or in two",
        ),
        _none(
            "outside_edges",
            "graph of these sensors",
            "{value} edges of the graph of {record_id} name a sensor that "
            "the set does not have, first {outside_example}: the graph is larger than the set",
        ),
        _none(
            "nan_edges",
            "weights are numbers",
            "{value} edges of the graph of {record_id} have a weight that is no number, first {nan_example}",
        ),
        _none(
            "negative_edges",
            "weights not negative",
            "{value} edges of the graph of {record_id} have a weight below 0, first {negative_example}",
        ),
        _none(
            "one_way_edges",
            "graph symmetric or declared directed",
            "{value} edges of the graph of {record_id} have "
            "no equal edge the other way, first {one_way_example}: say `directed: true`, or mend the matrix",
        ),
        Rule(
            "lanes and roads at one time",
            "expect_column_values_to_be_null",
            {"column": "late_roads"},
            "quarantine",
            "{record_id}: {value}",
            "late",
        ),
        Rule(
            "zeros are measurements",
            "expect_column_values_to_be_null",
            {"column": "null_is_zero"},
            "warning",
            "0 is the stated null value of {value} of {record_id}: an empty road at night has a flow and an occupancy "
            "of 0, which now counts as missing",
            "0",
        ),
    ]
    for variable in unit_of:
        found.append(
            _below(
                f"{variable}_negative_share",
                gate.max_negative,
                f"{variable} not normalised",
                f"{{value:.1%}} of the values of {variable} of {{record_id}} are below 0; the gate allows "
                f"{gate.max_negative:.1%}: the values are normalised already, or a null value is not stated",
                "{value:.1%}",
            )
        )
    if "speed" in unit_of:
        found += _free_flow(gate, unit_of["speed"])
    low, high = gate.vehicle_length_m
    found.append(
        between(
            "vehicle length",
            "vehicle_length",
            low,
            high,
            severity="warning",
            reason="speed, flow and occupancy of {record_id} make vehicles {value:.1f} m long; the gate expects "
            f"{low:g} to {high:g} m: one of the three units is wrong?",
            observed="{value:.1f} m",
        )
    )
    return found


def _free_flow(gate: Gate, unit: str) -> list[Rule]:
    low, high = gate.free_flow(unit)
    name = written(unit)
    told = f"the free-flow speed of {{record_id}} (95th percentile, median of its sensors) is {{value:.1f}} {name}"
    return [
        between(
            "free-flow speed",
            "free_flow",
            low,
            high,
            severity="quarantine",
            reason=f"{told}; the gate allows {low:.3g} to {high:.3g} {name}: {{unit_doubt}}",
            observed=f"{{value:.1f}} {name}",
        ),
        between(
            "free-flow speed of lanes",
            "free_flow_kmh",
            gate.lane_free_flow_kmh,
            None,
            severity="warning",
            reason=f"{told}; lanes are mostly those of freeways, where the gate expects at least "
            f"{gate.lane_free_flow_kmh:g} km/h: mph labelled km/h?",
            observed="{value:.1f} km/h",
        ),
    ]


def sensor_rules(gate: Gate) -> list[Rule]:
    """Rules for :func:`sensor_table`; all of them only tell."""
    zero = "{value} of sensor {record_id} is 0 all the time"
    return [
        between(
            "no isolated sensors",
            "neighbours",
            1,
            None,
            severity="warning",
            reason="sensor {record_id} has no neighbour in the graph",
            observed="0 neighbours",
        ),
        Rule(
            "no sensor zero all the time",
            "expect_column_values_to_be_null",
            {"column": "zero_variable"},
            "warning",
            zero,
            "0",
        ),
        between(
            "sensors measured at all",
            "measured_share",
            gate.min_coverage,
            None,
            severity="warning",
            reason="sensor {record_id} has values in {value:.1%} of the steps",
            observed="{value:.1%}",
        ),
        Rule(
            "every variable measured",
            "expect_column_values_to_be_null",
            {"column": "unmeasured"},
            "warning",
            "sensor {record_id} never measures {value}",
            "{value}",
        ),
        Rule(
            "no near-copies of sensors",
            "expect_column_values_to_be_null",
            {"column": "twin"},
            "warning",
            "sensor {record_id} repeats {value}",
            "{value}",
        ),
    ]


def _none(column: str, name: str, reason: str, severity: Severity = "quarantine") -> Rule:
    return _below(column, 0, name, reason, "{value}", severity)


def _below(column: str, limit: float, name: str, reason: str, observed: str, severity: Severity = "quarantine") -> Rule:
    return between(name, column, None, limit, severity=severity, reason=reason, observed=observed)
