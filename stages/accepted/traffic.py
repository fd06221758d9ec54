"""A traffic set opened through its verdict: the values a system may learn from, and the parts of its time.

Shape suffixes: T time, S sensor, R road, E edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.accepted.traffic_store import NO_ROAD, VARIABLES, Edges, StoredSet, means_of_lanes, open_stored
from stages.errors import UsageError
from stages.traffic.clock import LocalTime, local_time, steps_per_day
from stages.traffic.windows import Windows

__all__ = ["NO_ROAD", "PARTS", "VARIABLES", "Accepted", "Edges", "open_set"]

DOMAIN = "traffic"
PARTS = ("train", "validation", "test")
MEAN_OF_LANES = "mean of lanes"


@dataclass(frozen=True)
class Accepted:
    """One traffic set through the eyes of its gate.

    Attributes
    ----------
    key, variable, unit
        Name of the set in params.yaml; speed, flow or occupancy, and the unit of its values.
    values_TS
        float32, shape (time, sensor); NaN where nothing was measured, and on sensor-days that are quarantined.
    time_T
        datetime64 in minutes, UTC, a regular grid.
    step_minutes, steps_per_day, clock, timezone
        Step of the grid, steps of a day; without a clock the times are counted from an arbitrary start; without a time
        zone the day is that of ``time_T``.
    sensors
        sensor, position, road, lane, lane_count, latitude, longitude, in the order of the columns.
    roads_TR, road_ids, road_of_sensor_S
        Road values, shape (time, road): those of the file, or the means of the lanes that are accepted; names of the
        roads; position of each sensor's road, -1 where it has none. Without roads: None, (), all -1.
    edges
        The graph.
    null
        What the file wrote for a missing value; it is NaN in ``values_TS``.
    parts
        Half-open ranges of steps of train, validation and test, after the gap: a window within one shares no step with
        another part. A part that the set is too short for is absent.
    simulated, lane_order
        Whether the set is simulated, and which lane number is which ("0 is the rightmost"; None without lanes).
    about
        set.json.
    """

    key: str
    variable: str
    unit: str
    values_TS: NDArray[np.float32]
    time_T: NDArray[np.datetime64]
    step_minutes: float
    steps_per_day: int
    clock: bool
    timezone: str | None
    sensors: pl.DataFrame
    roads_TR: NDArray[np.float32] | None
    road_ids: tuple[str, ...]
    road_of_sensor_S: NDArray[np.int64]
    edges: Edges
    null: float | None
    parts: dict[str, tuple[int, int]]
    simulated: bool
    lane_order: str | None
    about: dict[str, Any]

    @property
    def directed(self) -> bool:
        """Whether the graph is directed."""
        return self.edges.directed

    @property
    def is_lanes(self) -> bool:
        """Whether the sensors stand on single lanes."""
        return bool(self.sensors["lane"].count())

    def local(self) -> LocalTime:
        """Local minute of the day, weekday and day of each step."""
        return local_time(self.time_T, self.timezone, clock=self.clock)

    def windows(self, part: str, context: int, horizon: int, stride: int = 1) -> Windows[NDArray[np.float32]]:
        """Windows of the sensors that lie whole within one part."""
        return Windows(self.values_TS, context, horizon, *self.part(part), stride)

    def road_windows(self, part: str, context: int, horizon: int, stride: int = 1) -> Windows[NDArray[np.float32]]:
        """Windows of the roads that lie whole within one part.

        Raises
        ------
        UsageError
            The set has no roads.
        """
        if self.roads_TR is None:
            raise UsageError(f"{self.key} has no roads beside its sensors; its sensors are roads themselves.")
        return Windows(self.roads_TR, context, horizon, *self.part(part), stride)

    def part(self, name: str) -> tuple[int, int]:
        """Half-open range of steps of one part.

        Raises
        ------
        UsageError
            The set is too short for this part.
        """
        if name not in self.parts:
            raise UsageError(f"{self.key} has no part {name}: it is too short; it has {', '.join(self.parts)}.")
        return self.parts[name]


def open_set(
    key: str, variable: str | None = None, *, verdict: Path | None = None, splits: Path | None = None
) -> Accepted:
    """Open one traffic set.

    Parameters
    ----------
    key
        Name of the set in params.yaml.
    variable
        speed, flow or occupancy; by default the first of these that the set has.
    verdict, splits
        verdict.parquet and splits.parquet of the domain; by default those of the gate.

    Raises
    ------
    UsageError
        The gate knows no such set, or the set lacks the variable.
    DataError
        What ingest wrote is not complete.
    """
    gate = artifacts.validated(DOMAIN)
    stored = open_stored(artifacts.ingested(DOMAIN, key))
    chosen = _variable(stored, variable)
    values_TS = stored.values(chosen)
    refused = _refused(stored, verdict or gate / "verdict.parquet")
    position = {name: place for place, name in enumerate(stored.sensor_ids)}
    for sensor, start, stop in refused:
        values_TS[start:stop, position[sensor]] = np.nan
    road_of_sensor_S = stored.road_of_sensor()
    roads_TR = stored.road_values(chosen)
    if roads_TR is not None and stored.about.get("roads") == MEAN_OF_LANES:
        roads_TR = means_of_lanes(values_TS, road_of_sensor_S, len(stored.road_ids))
    lane_order = stored.about.get("lane_order")
    return Accepted(
        key=key,
        variable=chosen,
        unit=stored.units[chosen],
        values_TS=values_TS,
        time_T=stored.time_T,
        step_minutes=stored.step_minutes,
        steps_per_day=steps_per_day(stored.step_minutes),
        clock=stored.clock,
        timezone=stored.timezone,
        sensors=stored.sensors,
        roads_TR=roads_TR,
        road_ids=stored.road_ids if roads_TR is not None else (),
        road_of_sensor_S=road_of_sensor_S if roads_TR is not None else np.full_like(road_of_sensor_S, NO_ROAD),
        edges=stored.edges,
        null=stored.null(chosen),
        parts=_parts(stored, splits or gate / "splits.parquet"),
        simulated=bool(stored.about.get("simulated", False)),
        lane_order=None if lane_order is None else str(lane_order),
        about=stored.about,
    )


def _variable(stored: StoredSet, variable: str | None) -> str:
    if variable is None:
        return next(iter(stored.units))
    if variable not in stored.units:
        raise UsageError(f"{stored.key} has no {variable}; it has {', '.join(stored.units)}.")
    return variable


def _refused(stored: StoredSet, verdict: Path) -> Iterable[tuple[str, int, int]]:
    """Sensor and range of steps of the days that are not accepted; every day of the set must have been judged."""
    days = artifacts.read_table(stored.folder / "records.parquet").select("record_id", "sensor", "start", "stop")
    outcome = artifacts.read_table(verdict).select("record_id", "outcome").unique()
    frame = days.join(outcome, on="record_id", how="left", maintain_order="left").collect()
    unjudged = frame["outcome"].null_count()
    if unjudged or frame.is_empty():
        raise UsageError(
            f"The gate has no verdict on {unjudged} of {frame.height} sensor-days of {stored.key}. "
            f"Run `python -m stages validate {DOMAIN}` again."
        )
    return frame.filter(pl.col("outcome") != "accepted").select("sensor", "start", "stop").iter_rows()


def _parts(stored: StoredSet, splits: Path) -> dict[str, tuple[int, int]]:
    """First and last step of each part, over all sensors."""
    ranges = (
        artifacts.read_table(splits)
        .filter(pl.col("group").str.starts_with(f"{stored.key}/") & pl.col("part").is_in(PARTS))
        .group_by("part")
        .agg(pl.col("start").min(), pl.col("stop").max())
        .collect()
    )
    found = {part: (start, stop) for part, start, stop in ranges.iter_rows()}
    return {part: found[part] for part in PARTS if part in found}
