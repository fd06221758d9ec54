"""Everything the gate learns from the series of one set: the frame of its sensor-days, its tables, and its copies.

Shape suffixes: T time, S sensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.accepted.traffic_store import StoredSet, open_stored
from stages.traffic.clock import local_time, slot_of_day, steps_per_day
from stages.validate import expectations
from stages.validate.expectations import Result
from stages.validate.traffic import near_copies, sensor_days, set_facts, time_split
from stages.validate.traffic.day_measures import DayMeasures, measure
from stages.validate.traffic.gate import Gate
from stages.validate.traffic.near_copies import Copy, Twin
from stages.validate.traffic.time_split import Splits, TimeSplit

Days = list[tuple[int, int]]


@dataclass(frozen=True)
class ToldCopy:
    """A near-copy in words, with the sensor and the steps that it is about (sensor None: all of them)."""

    sensor: str | None
    start: int
    stop: int
    told: str


@dataclass(frozen=True)
class Examined:
    """One set after its series were read once.

    Attributes
    ----------
    records
        records.parquet with what :func:`stages.validate.traffic.sensor_days.summary_frame` adds, zero_variable of the
        sensor, and, for a gate that quarantines copies, copied_block and copied_day.
    split
        The parts of its time.
    set_table, sensor_table
        Facts about the set and about each sensor.
    copies
        Blocks of a later part that repeat an earlier one.
    """

    stored: StoredSet
    records: pl.DataFrame
    split: TimeSplit
    set_table: pl.DataFrame
    sensor_table: pl.DataFrame
    copies: list[ToldCopy]

    @property
    def on_lanes(self) -> bool:
        """Whether the sensors stand on single lanes."""
        return bool(self.stored.sensors["lane"].count())


def examine(folder: Path, records: pl.DataFrame, gate: Gate, params: Splits) -> Examined:
    """Read the series of one set and measure what the gate judges.

    Raises
    ------
    DataError
        The store is not complete, or does not belong to its tables.
    """
    stored = open_stored(folder)
    split = time_split.cut(stored.time_T.size, params)
    days, names = _days(records, stored.time_T.size)
    local = local_time(stored.time_T, stored.timezone, clock=stored.clock)
    slot_T = slot_of_day(local.minute_T, stored.step_minutes)
    values: dict[str, NDArray[np.float32]] = {name: stored.values(name) for name in stored.units}
    measures: dict[str, DayMeasures] = {}
    twins: dict[str, list[Twin]] = {}
    copies: list[ToldCopy] = []
    for variable, values_TS in values.items():
        measures[variable] = measure(values_TS, days, slot_T, spike=gate.spike, zeros_run=variable == "speed")
        change_TS = near_copies.changes(values_TS, near_copies.typical_slots(local.day_T, slot_T))
        twins[variable] = near_copies.twins(change_TS, values_TS, limit=gate.sensor_correlation)
        found = near_copies.time_copies(
            change_TS,
            split.parts,
            steps_per_day(stored.step_minutes),
            one=gate.copy_correlation,
            together=gate.shared_correlation,
        )
        copies += [_told(copy, variable, stored) for copy in found]
    sensors = set_facts.sensor_table(stored, values, twins)
    frame = sensor_days.summary_frame(
        records, stored.sensor_ids, days, measures, stored.step_minutes, gate.min_shape_days
    ).join(
        sensors.select(pl.col("record_id").alias("sensor"), "zero_variable"),
        on="sensor",
        how="left",
        maintain_order="left",
    )
    if gate.near_copies == "quarantine":
        frame = _with_copies(frame, copies, split)
    set_table = set_facts.set_table(stored, values, days, names, gate)
    return Examined(stored, frame, split, set_table, sensors, copies)


def judge_tables(key: str, examined: Examined, gate: Gate) -> list[Result]:
    """Results on the set as a whole, then on its sensors."""
    tables: Sequence[tuple[pl.DataFrame, list[expectations.Rule]]] = (
        (examined.set_table, set_facts.set_rules(gate, examined.stored.units)),
        (examined.sensor_table, set_facts.sensor_rules(gate)),
    )
    found = []
    for table, rules in tables:
        found += expectations.judge(table, expectations.suite_of(key, rules, table))
    return found


def _days(records: pl.DataFrame, steps: int) -> tuple[Days, list[str]]:
    """Ranges of steps of the days in the table, in the order of time, as far as they lie in the series; their names."""
    inside = (pl.col("start") >= 0) & (pl.col("start") < pl.col("stop")) & (pl.col("stop") <= steps)
    frame = records.select("start", "stop", "day").filter(inside).unique(["start", "stop"]).sort("start", "stop")
    return list(frame.select("start", "stop").iter_rows()), [str(day) for day in frame["day"]]


def _told(copy: Copy, variable: str, stored: StoredSet) -> ToldCopy:
    sensors = stored.sensor_ids
    size = copy.stop - copy.start
    name = None if copy.sensor is None else sensors[copy.sensor]
    if copy.sensor is None or copy.source_sensor is None:
        who, whom = "all sensors together", "the steps"
    else:
        who, whom = f"sensor {name}", f"sensor {sensors[copy.source_sensor]}"
    told = (
        f"{variable} of {who} in {copy.part}, {size} steps from {_when(copy.start, stored)} on, nearly repeats {whom} "
        f"from {_when(copy.source_start, stored)} on (correlation of the changes {copy.correlation:.2f})"
    )
    return ToldCopy(name, copy.start, copy.stop, told)


def _when(step: int, stored: StoredSet) -> str:
    return f"{str(stored.time_T[step]).replace('T', ' ')} (step {step})" if stored.clock else f"step {step}"


def _with_copies(frame: pl.DataFrame, copies: Sequence[ToldCopy], split: TimeSplit) -> pl.DataFrame:
    """Add copied_block and copied_day: the near-copy that a sensor-day lies in, the earlier day of equal content."""
    lies_in: dict[tuple[str, int], str] = {}
    spans = frame.select("sensor", "start", "stop").rows()
    everyone = sorted(copies, key=lambda copy: copy.sensor is not None)
    by_sensor: Mapping[str | None, list[ToldCopy]] = {
        name: [copy for copy in everyone if copy.sensor == name] for name in {copy.sensor for copy in everyone}
    }
    for sensor, start, stop in spans:
        for copy in (*by_sensor.get(None, ()), *(by_sensor.get(sensor, ()) if sensor is not None else ())):
            if start < copy.stop and copy.start < stop:
                lies_in.setdefault((sensor, start), copy.told)
    blocks = [lies_in.get((sensor, start)) for sensor, start, _ in spans]
    part = pl.Series([split.part_of(start, stop) for _, start, stop in spans])
    days = time_split.copied_days(frame, pl.Series([True] * frame.height), part)
    return frame.with_columns(pl.Series("copied_block", blocks, dtype=pl.String)).join(
        days.select("record_id", "copied_day").unique("record_id"), on="record_id", how="left", maintain_order="left"
    )
