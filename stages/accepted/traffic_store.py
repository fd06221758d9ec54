"""An ingested traffic set as it lies on disk: tables and the graph are read at once, values when they are asked for.

Shape suffixes: T time, S sensor, R road, E edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xarray as xr
from numpy.typing import NDArray

from stages import artifacts
from stages.errors import DataError, UsageError

VARIABLES = ("speed", "flow", "occupancy")
NO_ROAD = -1


@dataclass(frozen=True)
class Edges:
    """The graph of a set: edge e leads from sensor ``source_E[e]`` to ``target_E[e]`` (positions) with a weight.

    ``kind`` is adjacency (a larger weight is nearer), distance (a smaller one is nearer, in ``unit``) or none.
    """

    source_E: NDArray[np.int64]
    target_E: NDArray[np.int64]
    weight_E: NDArray[np.float64]
    directed: bool
    kind: str
    unit: str | None = None


@dataclass(frozen=True)
class StoredSet:
    """One ingested set.

    Attributes
    ----------
    folder, about
        Where it lies, and its set.json.
    sensors
        sensors.parquet, in the order of the columns of the values.
    time_T
        datetime64 in minutes, UTC.
    units
        Unit of each variable, in the order speed, flow, occupancy.
    edges
        The graph; no edges where the files have none.
    road_ids
        Names of the roads that have values; empty where the sensors are roads themselves.
    """

    folder: Path
    about: dict[str, Any]
    sensors: pl.DataFrame
    time_T: NDArray[np.datetime64]
    units: dict[str, str]
    edges: Edges
    road_ids: tuple[str, ...]
    _series: xr.Dataset
    _roads: xr.Dataset | None

    @property
    def key(self) -> str:
        """Name of the set in params.yaml."""
        return self.folder.name

    @property
    def sensor_ids(self) -> list[str]:
        """Names of the sensors, in order."""
        return [str(name) for name in self.sensors["sensor"].to_list()]

    @property
    def step_minutes(self) -> float:
        """Minutes from one step to the next."""
        return float(self.about["step_minutes"])

    @property
    def clock(self) -> bool:
        """Whether the times are known, and not counted from an arbitrary start."""
        return bool(self.about.get("clock", True))

    @property
    def timezone(self) -> str | None:
        """Time zone of the local day; None: the day of ``time_T``."""
        zone = self.about.get("timezone")
        return None if zone is None else str(zone)

    def null(self, variable: str) -> float | None:
        """The value that meant `not measured` in the files; None: there is none."""
        null = self.about.get("null")
        value = null.get(variable) if isinstance(null, dict) else null
        return None if value is None else float(value)

    def values(self, variable: str) -> NDArray[np.float32]:
        """Values of one variable, shape (time, sensor), NaN where nothing was measured."""
        return np.asarray(self._series[variable].to_numpy(), dtype=np.float32)

    def road_values(self, variable: str) -> NDArray[np.float32] | None:
        """Values of the roads, shape (time, road); None where there are none."""
        if self._roads is None or variable not in self._roads:
            return None
        return np.asarray(self._roads[variable].to_numpy(), dtype=np.float32)

    def road_of_sensor(self) -> NDArray[np.int64]:
        """Position of each sensor's road in ``road_ids``, shape (sensor,); -1 where it has none."""
        place = {name: position for position, name in enumerate(self.road_ids)}
        return np.array([place.get(road, NO_ROAD) for road in self.sensors["road"].to_list()], dtype=np.int64)


def open_stored(folder: Path) -> StoredSet:
    """Open one ingested set.

    Raises
    ------
    UsageError
        The set was not ingested.
    DataError
        A file or a group is absent, or values and table of sensors do not belong together.
    """
    again = f"Run `python -m stages ingest traffic@{folder.name}` again."
    if not folder.is_dir():
        raise UsageError(f"The traffic set {folder.name} was not ingested: {folder} is missing. {again}")
    for name in ("set.json", "sensors.parquet"):
        if not (folder / name).is_file():
            raise DataError(folder / name, found="no such file", expected="what ingest writes for a set", remedy=again)
    store = folder / "data.zarr"
    for group in ("series", "graph"):
        if not (store / group).is_dir():
            raise DataError(
                store, found=f"no group `{group}`", expected="what ingest writes for every set", remedy=again
            )
    series = artifacts.open_dataset(store, "series")
    roads = artifacts.open_dataset(store, "roads") if (store / "roads").is_dir() else None
    sensors = artifacts.read_table(folder / "sensors.parquet").sort("position").collect()
    named = [str(name) for name in sensors["sensor"].to_list()]
    stored = [str(name) for name in series.attrs.get("sensors", named)]
    if stored != named or series.sizes["sensor"] != sensors.height:
        raise DataError(
            store,
            found=f"{series.sizes['sensor']} columns of values",
            expected=f"the {sensors.height} sensors of sensors.parquet beside it, in their order",
            remedy=again,
        )
    return StoredSet(
        folder=folder,
        about=artifacts.read_json(folder / "set.json"),
        sensors=sensors,
        time_T=series["time"].to_numpy().astype("datetime64[m]"),
        units={name: str(series[name].attrs["units"]) for name in VARIABLES if name in series},
        edges=_edges(artifacts.open_dataset(store, "graph")),
        road_ids=() if roads is None else tuple(str(name) for name in roads.attrs["roads"]),
        _series=series,
        _roads=roads,
    )


def _edges(graph: xr.Dataset) -> Edges:
    unit = graph.attrs.get("unit")
    return Edges(
        graph["source"].to_numpy().astype(np.int64),
        graph["target"].to_numpy().astype(np.int64),
        graph["weight"].to_numpy().astype(np.float64),
        bool(graph.attrs.get("directed", False)),
        str(graph.attrs.get("kind", "none")),
        None if unit in (None, "") else str(unit),
    )


def means_of_lanes(
    values_TS: NDArray[np.float32], road_of_sensor_S: NDArray[np.int64], roads: int
) -> NDArray[np.float32]:
    """Mean of the measured lanes of each road, shape (time, road); NaN where no lane of the road was measured."""
    means_TR = np.full((values_TS.shape[0], roads), np.nan, dtype=np.float32)
    for road in range(roads):
        lanes_TS = values_TS[:, road_of_sensor_S == road]
        there_TS = np.isfinite(lanes_TS)
        count_T = there_TS.sum(axis=1)
        sum_T = np.where(there_TS, lanes_TS, 0).sum(axis=1, dtype=np.float64)
        means_TR[:, road] = np.where(count_T > 0, sum_T / np.maximum(count_T, 1), np.nan)
    return means_TR
