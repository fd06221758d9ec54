"""A traffic set in memory, whatever the layout on disk.

Shapes: T time, S sensor, R road, E edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.config import AnyFormat
from stages.ingest.traffic.schema import MINUTES_PER_DAY

if TYPE_CHECKING:
    import polars as pl

Array: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Graph:
    """Edges between sensors, as a list; a self-loop is no edge.

    Attributes
    ----------
    source_E, target_E
        Positions of the sensors at the two ends.
    weight_E
        Adjacency (larger is nearer) or distance, as ``kind`` says.
    directed
        Whether an edge holds one way only; otherwise every edge should stand in both directions.
    """

    source_E: NDArray[np.int64]
    target_E: NDArray[np.int64]
    weight_E: NDArray[np.float64]
    directed: bool = False
    kind: Literal["adjacency", "distance", "none"] = "none"
    unit: str | None = None

    @classmethod
    def none(cls) -> Graph:
        """No edges: the files say nothing of a graph."""
        positions = np.empty(0, dtype=np.int64)
        return cls(positions, positions, np.empty(0))


@dataclass(frozen=True)
class Roads:
    """Values of whole roads (time, road), on the same steps as those of the lanes.

    Attributes
    ----------
    source
        ``file``, or ``mean of lanes`` where no file gives them and they are the means of the lanes there are.
    """

    ids: tuple[str, ...]
    variables: dict[str, Array]
    source: Literal["file", "mean of lanes"]


@dataclass(frozen=True)
class TrafficSet:
    """One set on a regular grid of times.

    Attributes
    ----------
    time_T
        datetime64[m] in UTC, regular. Without a zone, local time as it stands in the file; without a clock, from
        1970-01-01.
    variables
        speed, flow, occupancy, as far as there are: (time, sensor), NaN where nothing was measured.
    units
        Stored unit of each variable.
    held_null
        Where the file held the null value (time, sensor), for the variables of which it held any.
    sensors
        Columns of ``schema.SENSOR_COLUMNS``, in the order of the sensors.
    null
        The value that meant `not measured`, by variable; None where there is none.
    clock
        Whether the times are known; without a clock days are counted from the first step.
    timezone
        Zone of the local day; None: the day of ``time_T``.
    lane_order
        How lanes are counted, in words.
    source_files
        File of each variable, relative to the set's folder.
    notes
        What was repaired or passed over, one by one.
    """

    key: str
    reader: str
    time_T: NDArray[np.datetime64]
    variables: dict[str, Array]
    units: dict[str, str]
    sensors: pl.DataFrame
    step_minutes: int
    clock: bool = True
    timezone: str | None = None
    null: dict[str, float | None] = field(default_factory=dict)
    held_null: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    graph: Graph = field(default_factory=Graph.none)
    roads: Roads | None = None
    lane_order: str | None = None
    files: tuple[str, ...] = ()
    source_files: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    simulated: bool = False

    @property
    def sensor_ids(self) -> tuple[str, ...]:
        """Names of the sensors, in order."""
        return tuple(self.sensors["sensor"].to_list())

    @property
    def steps_per_day(self) -> int:
        """Steps of a day without a clock change."""
        return MINUTES_PER_DAY // self.step_minutes


def open_set(path: Path, options: AnyFormat, key: str = "") -> TrafficSet:
    """Read one set.

    Parameters
    ----------
    path
        Folder or file of the set.
    options
        The block ``format`` of params.yaml.
    key
        Name of the set in params.yaml.

    Raises
    ------
    DataError
        The files are not laid out as the format says, or contradict each other.
    """
    if not path.exists():
        raise DataError(
            path,
            found="no such file or folder",
            expected=f"a traffic set in the layout `{options.reader}`",
            remedy="Correct `path` in params.yaml, or bring the data with `dvc pull`.",
        )
    return replace(_reader(options)(path), key=key)


def _reader(options: AnyFormat) -> Callable[[Path], TrafficSet]:
    # The readers import polars or h5py: each is loaded when its layout is asked for.
    from stages.ingest.traffic import config

    match options:
        case config.Wide():
            from stages.ingest.traffic import wide

            return lambda path: wide.read(path, options)
        case config.Hdf():
            from stages.ingest.traffic import hdf

            return lambda path: hdf.read(path, options)
        case config.Pems():
            from stages.ingest.traffic import pems

            return lambda path: pems.read(path, options)
        case config.LibCity():
            from stages.ingest.traffic import libcity

            return lambda path: libcity.read(path, options)
        case config.BasicTs():
            from stages.ingest.traffic import basicts

            return lambda path: basicts.read(path, options)
        case config.Lanes():
            from stages.ingest.traffic import lanes

            return lambda path: lanes.read(path, options)
