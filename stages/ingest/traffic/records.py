"""records.parquet: one row for each sensor and local day, in one schema for all sets.

Shapes: T time, D step of one day, S sensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.ingest.traffic.schema import RECORD_COLUMNS, STATISTICS, VARIABLES
from stages.ingest.traffic.sets import Array, TrafficSet
from stages.ingest.traffic.zones import local_days


def table(traffic: TrafficSet) -> pl.DataFrame:
    """The records of a set, sensor by sensor, each day by day; a statistic that is undefined is null."""
    frames = [_day(traffic, name, start, stop) for name, start, stop in days(traffic)]
    return pl.concat(frames).sort("position", "start").drop("position")


def days(traffic: TrafficSet) -> Iterator[tuple[str, int, int]]:
    """Name, first step and end of each local day; days of a set without a clock are numbered."""
    minutes_T = traffic.time_T.astype("datetime64[m]").astype(np.int64)
    day_T = local_days(minutes_T, traffic.timezone if traffic.clock else None)
    bounds = [0, *(np.flatnonzero(np.diff(day_T)) + 1).tolist(), len(day_T)]
    for start, stop in pairwise(bounds):
        day = int(day_T[start])
        yield (str(np.datetime64(day, "D")) if traffic.clock else f"day-{day:03d}"), start, stop


def _day(traffic: TrafficSet, day: str, start: int, stop: int) -> pl.DataFrame:
    """The rows of one day, a row for each sensor."""
    sensors = traffic.sensor_ids
    rows = len(sensors)
    values = {name: values_TS[start:stop] for name, values_TS in traffic.variables.items()}
    columns: dict[str, Any] = {
        "position": traffic.sensors["position"],
        "record_id": [f"{traffic.key}/{sensor}/{day}" for sensor in sensors],
        "group": [f"{traffic.key}/{sensor}" for sensor in sensors],
        "set": [traffic.key] * rows,
        "sensor": list(sensors),
        "day": [day] * rows,
        "start": [start] * rows,
        "stop": [stop] * rows,
        "road": traffic.sensors["road"],
        "lane": traffic.sensors["lane"],
        "source_file": [", ".join(dict.fromkeys(traffic.source_files.values()))] * rows,
        "sha256": _digests(values),
    }
    for variable in VARIABLES:
        if variable not in values:
            continue
        held_TS = traffic.held_null.get(variable)
        held_DS = None if held_TS is None else held_TS[start:stop]
        found = statistics(values[variable], traffic.step_minutes, held_DS)
        columns |= {f"{variable}_{name}": pl.Series(found[name]).fill_nan(None) for name in STATISTICS}
    difference_S = road_difference(traffic, start, stop)
    if difference_S is not None:
        columns["road_difference"] = pl.Series(difference_S).fill_nan(None)
    schema = {"position": pl.Int64} | {name: getattr(pl, kind) for name, kind in RECORD_COLUMNS.items()}
    return pl.DataFrame({name: columns.get(name, pl.Series([None] * rows)) for name in schema}).cast(schema)


def _digests(values: dict[str, Array]) -> list[str]:
    """Digest of each sensor's values of the day, all variables together; every NaN counts as one and the same."""
    turned = {}
    for name, values_DS in values.items():
        turned_SD = np.ascontiguousarray(values_DS.T)
        turned[name] = np.where(np.isnan(turned_SD), np.float32("nan"), turned_SD)
    sensors = next(iter(turned.values())).shape[0]
    return [
        artifacts.sha256_arrays({name: turned_SD[sensor] for name, turned_SD in turned.items()})
        for sensor in range(sensors)
    ]


def statistics(
    values_DS: Array, step_minutes: int, held_DS: NDArray[np.bool_] | None = None
) -> dict[str, NDArray[np.float64]]:
    """Statistics of one day of each sensor (S); see ``schema.STATISTICS``; NaN where one is undefined.

    Parameters
    ----------
    values_DS
        Values of the day, NaN where nothing was measured.
    held_DS
        Where the file held the null value.
    """
    there_DS = np.isfinite(values_DS)
    count_S = there_DS.sum(axis=0)
    some_S = count_S > 0
    divisor_S = np.maximum(count_S, 1)
    sum_S = np.where(there_DS, values_DS, 0).sum(axis=0, dtype=np.float64)
    mean_S = sum_S / divisor_S
    square_S = np.square(np.where(there_DS, values_DS - mean_S, 0.0)).sum(axis=0)
    jump_DS = np.abs(np.diff(values_DS.astype(np.float64), axis=0))
    jump_S = np.max(jump_DS, axis=0, initial=-np.inf, where=np.isfinite(jump_DS))
    steps = max(len(values_DS), 1)
    null_S = np.zeros(values_DS.shape[1]) if held_DS is None else held_DS.sum(axis=0) / steps
    undefined = np.where(some_S, 0.0, np.nan)
    return {
        "coverage": count_S / steps,
        "min": np.min(values_DS, axis=0, initial=np.inf, where=there_DS) + undefined,
        "max": np.max(values_DS, axis=0, initial=-np.inf, where=there_DS) + undefined,
        "mean": mean_S + undefined,
        "std": np.sqrt(square_S / divisor_S) + undefined,
        "zeros_share": (values_DS == 0).sum(axis=0) / steps,
        "null_share": null_S,
        "longest_flat_minutes": longest_run(values_DS) * float(step_minutes) + undefined,
        "largest_jump": np.where(np.isfinite(jump_S), jump_S, np.nan),
    }


def longest_run(values_DS: Array) -> NDArray[np.int64]:
    """Steps of the longest run of one value of each sensor (S); NaN ends a run."""
    run_S = np.zeros(values_DS.shape[1], dtype=np.int64)
    longest_S = run_S.copy()
    before_S = np.full(values_DS.shape[1], np.nan, dtype=values_DS.dtype)
    for value_S in values_DS:
        run_S = np.where(value_S == before_S, run_S + 1, np.isfinite(value_S))
        np.maximum(longest_S, run_S, out=longest_S)
        before_S = value_S
    return longest_S


def road_difference(traffic: TrafficSet, start: int, stop: int) -> NDArray[np.float64] | None:
    """Largest distance of the road's value from the mean of its lanes over one day, for each lane (S).

    Steps count at which the road and all its lanes are measured. None where no file gives the roads, or it gives no
    variable of the lanes.
    """
    roads = traffic.roads
    if roads is None or roads.source != "file":
        return None
    variable = next((name for name in VARIABLES if name in roads.variables and name in traffic.variables), None)
    if variable is None:
        return None
    result_S = np.full(len(traffic.sensor_ids), np.nan)
    road_of = traffic.sensors["road"].to_list()
    for index, road in enumerate(roads.ids):
        lanes = [place for place, name in enumerate(road_of) if name == road]
        if lanes:
            mean_D = traffic.variables[variable][start:stop, lanes].mean(axis=1, dtype=np.float64)
            gap_D = np.abs(roads.variables[variable][start:stop, index] - mean_D)
            gap_D = gap_D[np.isfinite(gap_D)]
            result_S[lanes] = gap_D.max() if gap_D.size else np.nan
    return result_S
