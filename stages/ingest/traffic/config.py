"""The format of one traffic set in params.yaml as typed objects; ``format: hdf`` is short for ``{reader: hdf}``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from stages.ingest.traffic.schema import MINUTES_PER_DAY, UNITS, Variable
from stages.params import Config

SpeedUnit = Literal["mph", "km/h", "m/s"]
FlowUnit = Literal["veh/h", "veh/step"]
OccupancyUnit = Literal["fraction", "percent"]

_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})")


def zone(name: str) -> tzinfo:
    """The time zone of a name such as ``America/Los_Angeles``, or of a fixed offset such as ``-08:00``.

    Raises
    ------
    ValueError
        No zone has this name.
    """
    if found := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"]))
        return timezone(-offset if found["sign"] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone is called {name!r}") from None


def _is_zone(name: str) -> str:
    try:
        zone(name)
    except ValueError:
        told = "is no time zone; expected a name such as America/Los_Angeles or an offset such as -08:00"
        raise PydanticCustomError("timezone", "{told}", {"told": told}) from None
    return name


def _divides_a_day(minutes: int) -> int:
    if MINUTES_PER_DAY % minutes:
        raise PydanticCustomError("step", "a step must divide a day of 1440 minutes")
    return minutes


def _lane_pattern(pattern: str) -> str:
    return _compiled(pattern, ("road", "lane"))


def _road_pattern(pattern: str) -> str:
    return _compiled(pattern, ("road",))


def _compiled(pattern: str, groups: tuple[str, ...]) -> str:
    try:
        there = re.compile(pattern).groupindex
    except re.error as error:
        raise PydanticCustomError("pattern", "is no regular expression: {told}", {"told": str(error)}) from None
    for group in groups:
        if group not in there:
            raise PydanticCustomError("pattern", "must have a group (?P<{group}>...)", {"group": group})
    return pattern


Step = Annotated[int, Field(ge=1, le=MINUTES_PER_DAY), AfterValidator(_divides_a_day)]
Zone = Annotated[str, AfterValidator(_is_zone)]
File = Annotated[str, Field(min_length=1)]


class Clock(Config):
    """Time of the rows of a file that has no stamps."""

    start: datetime | None = Field(None, description="local time of the first row; default: not known")
    step_minutes: Step = Field(description="minutes from one row to the next")


class _Set(Config):
    null_value: float | None = Field(
        None, description="value that means `not measured`; default: none, a zero is a zero"
    )
    timezone: Zone | None = Field(
        None, description="time zone of local stamps, or a fixed offset; default: stamps are kept as they are"
    )
    sensors: File | None = Field(
        None,
        description="table of sensors: sensor, road, lane, lane_count, latitude, longitude, as far as known; "
        "default: sensors.csv where there is one",
    )


class _Graph(Config):
    adjacency: File | None = Field(None, description="matrix of weights, text or pickle")
    distances: File | None = Field(None, description="list of edges: from, to, distance")
    directed: bool = Field(False, description="whether an edge holds one way only")


class _One(Config):
    """A file of one variable; its unit stands in no file."""

    variable: Variable = Field("speed", description="what the numbers are")
    unit: Literal["mph", "km/h", "m/s", "veh/h", "veh/step", "fraction", "percent"] = Field(
        description="unit of the numbers in the file"
    )

    @model_validator(mode="after")
    def _unit_of_variable(self) -> _One:
        if self.unit not in UNITS[self.variable]:
            known = ", ".join(UNITS[self.variable])
            told = f"a {self.variable} is in {known}, not in {self.unit}"
            raise PydanticCustomError("unit", "{told}", {"told": told})
        return self


class Units(Config):
    """Units of the numbers in the files, by variable."""

    speed: SpeedUnit = "mph"
    flow: FlowUnit = "veh/step"
    occupancy: OccupancyUnit = "fraction"


class Wide(_One, _Set, _Graph):
    """One table of one variable, a row for each time and a column for each sensor: csv, txt or parquet."""

    reader: Literal["wide"]
    file: File | None = Field(None, description="file under `path`; default: the only csv, txt or parquet file")
    time: str | None = Field(None, description="column of the stamps; default: none, then `clock` must be given")
    time_format: str | None = Field(None, description="strptime format of the stamps; default: ISO 8601")
    clock: Clock | None = Field(None, description="time of the rows of a file without stamps")
    step_minutes: Step | None = Field(None, description="default: the most frequent distance of the stamps")
    rows: Literal["time", "sensor"] = Field("time", description="what a row of the table is")
    header: bool | None = Field(None, description="whether the first line names the columns; default: if it has words")
    delimiter: str | None = Field(None, description="between the columns, ` ` for spaces; default: by the first line")
    decimal: Literal[".", ","] | None = Field(None, description="decimal mark; default: by the first lines")
    null_tokens: tuple[str, ...] = Field(("", "NaN", "nan", "NA", "null"), description="texts that mean missing")

    @model_validator(mode="after")
    def _timed(self) -> Wide:
        if (self.time is None) == (self.clock is None):
            raise PydanticCustomError("time", "give either `time` (column of the stamps) or `clock`")
        if self.time is not None and self.rows == "sensor":
            raise PydanticCustomError("time", "a table with a row for each sensor has no column of stamps")
        return self


class Hdf(_One, _Set, _Graph):
    """METR-LA, PEMS-BAY: a pandas frame in HDF5, with the sensor graph in files of its own."""

    reader: Literal["hdf"]
    file: File | None = Field(None, description="file under `path`; default: the only .h5 file")
    key: str | None = Field(None, description="name of the frame inside the file; default: the only one")
    unit: SpeedUnit | FlowUnit | OccupancyUnit = Field("mph", description="unit of the numbers in the file")
    ids: File | None = Field(None, description="sensor ids of the graph; default: graph_sensor_ids*.txt, if any")
    directed: bool = Field(True, description="whether an edge holds one way only")
    step_minutes: Step | None = Field(None, description="default: the most frequent distance of the stamps")


class Pems(_Set):
    """PEMS03, PEMS04, PEMS07, PEMS08: npz of (time, sensor, flow | occupancy | speed) and a csv of edges."""

    reader: Literal["pems"]
    file: File | None = Field(None, description="file under `path`; default: the only .npz file")
    variables: tuple[Variable, ...] = Field(
        ("flow", "occupancy", "speed"), min_length=1, description="what the last axis holds, in order"
    )
    units: Units = Units()
    clock: Clock | None = Field(None, description="default: 5 minutes from the published first day of the set")
    distances: File | None = Field(None, description="list of edges; default: the csv beside the npz, if there is one")
    ids: File | None = Field(None, description="station numbers in the order of the data (PEMS03.txt)")
    directed: bool = Field(True, description="whether an edge holds one way only")


class LibCity(_Set):
    """LibCity's atomic files: .geo (sensors), .rel (edges), .dyna (values), config.json."""

    reader: Literal["libcity"]
    name: str | None = Field(None, description="name of the files; default: the only .dyna file")
    units: Units = Units()
    columns: dict[str, Variable] = Field(
        {}, description="column of .dyna -> variable; default: by the names that LibCity uses"
    )
    weight: str | None = Field(None, description="column of .rel that is the weight; default: as config.json says")
    directed: bool = Field(True, description="whether an edge holds one way only")
    step_minutes: Step | None = Field(None, description="default: as config.json says, else by the stamps")


class BasicTs(_One, _Set, _Graph):
    """BasicTS: data.dat + desc.json, data.npz + desc.json, or {train,val,test}_data.npy + meta.json."""

    reader: Literal["basicts"]
    unit: SpeedUnit | FlowUnit | OccupancyUnit = Field(description="unit of the numbers in the file")
    variable: Variable = Field("speed", description="what the first feature is; features of the clock are left out")
    start: datetime | None = Field(None, description="local time of the first step; default: not known")
    step_minutes: Step | None = Field(None, description="default: `frequency (minutes)` of the description")
    ids: File | None = Field(None, description="sensor ids in the order of the data; default: positions")
    directed: bool = Field(True, description="whether an edge holds one way only")


class Lanes(_Set):
    """Lane tables: one csv for each variable, a column for each lane, with a road table and an adjacency matrix."""

    reader: Literal["lanes"]
    speed: File | None = Field(None, description="default: the csv with `speed` in its name, without `road`")
    flow: File | None = Field(None, description="default: the csv with `flow` in its name, if there is one")
    occupancy: File | None = Field(None, description="default: the csv with `occupancy` in its name, if there is one")
    road: File | None = Field(None, description="speeds of roads; default: the csv with `road` in its name, if any")
    adjacency: File | None = Field(None, description="default: the csv with `adj` in its name, if there is one")
    directed: bool = Field(False, description="whether an edge holds one way only")
    units: Units | None = Field(
        None, description="default: as simulation.json says where there is one, else mph, veh/step, fraction"
    )
    time: str = Field("Sample Time", description="column of the stamps")
    time_format: str = Field("%m/%d/%Y %H:%M", description="strptime format of the stamps")
    step_minutes: Step | None = Field(None, description="default: the most frequent distance of the stamps")
    lane_column: Annotated[str, AfterValidator(_lane_pattern)] = Field(
        r"^sensors? (?P<road>.+) Lane (?P<lane>\d+)$", description="regular expression of a lane's column"
    )
    road_column: Annotated[str, AfterValidator(_road_pattern)] = Field(
        r"^(?:Avg_)?(?P<road>.+)$", description="regular expression of a column of the road table"
    )
    lane_order: str | None = Field(
        None,
        description="how lanes are counted, in words; default: by simulation.json, else as PeMS (1) or SUMO (0)",
    )


READERS = ("wide", "hdf", "pems", "libcity", "basicts", "lanes")


def _shorthand(value: Any) -> Any:
    """A bare name is short for ``{reader: NAME}``; an unknown reader is refused at its own place."""
    block = {"reader": value} if isinstance(value, str) else value
    if isinstance(block, Mapping) and block.get("reader") not in READERS:
        reader = block.get("reader")
        close = difflib.get_close_matches(str(reader), READERS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        told = f"no reader has this name; {hint}the readers are {', '.join(READERS)}"
        fault: InitErrorDetails = {
            "type": PydanticCustomError("reader", "{told}", {"told": told}),
            "loc": ("reader",),
            "input": reader,
        }
        raise ValidationError.from_exception_data("format", [fault])
    return block


AnyFormat = Wide | Hdf | Pems | LibCity | BasicTs | Lanes
Format = Annotated[AnyFormat, Field(discriminator="reader"), BeforeValidator(_shorthand)]
