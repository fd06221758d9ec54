"""The lane files: one table for each variable, the road table, the adjacency matrix, and simulation.json."""

# Shapes: T interval, D detector, K station.

from __future__ import annotations

import csv
import datetime
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages import artifacts
from stages.simulate.traffic import days, network, programs
from stages.simulate.traffic.days import Result
from stages.simulate.traffic.network import Detector
from stages.simulate.traffic.options import Simulation

Floats = NDArray[np.float64]
#: File of each variable -> digits after the point.
DIGITS = {"speed": 2, "flow": 0, "occupancy": 4}
TIME = "Sample Time"
WORK = "work"


def write(folder: Path, simulation: Simulation) -> None:
    """Simulate, and write the files; equal options give equal bytes."""
    work = folder / WORK
    work.mkdir()
    results = days.simulate(simulation, work)
    shutil.rmtree(work)
    detectors = network.detectors(simulation.corridor)
    stamps = [stamp for result in results for stamp in stamps_of(simulation, result.day.date)]
    columns = [detector.column for detector in detectors]
    tables = {
        name: np.round(np.concatenate([getattr(result.measured, f"{name}_TD") for result in results]), digits)
        for name, digits in DIGITS.items()
    }
    for name, value_TD in tables.items():
        write_table(folder / f"{name}.csv", stamps, columns, value_TD)
    stations = range(1, len(simulation.corridor.stations_m) + 1)
    road_TK = road_means(tables["speed"], detectors)
    write_table(folder / "road_speed.csv", stamps, [f"Avg_{station}" for station in stations], road_TK)
    write_adjacency(folder / "adjacency.csv", detectors)
    artifacts.write_json(folder / "simulation.json", description(simulation, results))


def stamps_of(simulation: Simulation, date: datetime.date) -> list[str]:
    """Stamps of a day's intervals as lane files have them, M/D/YYYY H:MM: when an interval begins."""
    first, last = simulation.hours
    minutes = range(60 * first, 60 * last, simulation.interval_minutes)
    return [f"{date.month}/{date.day}/{date.year} {minute // 60}:{minute % 60:02d}" for minute in minutes]


def write_table(file: Path, stamps: Sequence[str], columns: Sequence[str], value_TD: Floats) -> None:
    """Write a row for each stamp; what was not measured is an empty cell."""
    rows = ([stamp, *map(cell, row.tolist())] for stamp, row in zip(stamps, value_TD, strict=True))
    _write_rows(file, [[TIME, *columns], *rows])


def cell(value: float) -> str:
    """A number as text that reads back as the same number; NaN is an empty text."""
    return "" if np.isnan(value) else repr(value)


def road_means(speed_TD: Floats, detectors: Sequence[Detector]) -> Floats:
    """Mean (T, K) over the lanes of each station that have a value; NaN where none has."""
    station_D = np.array([detector.station for detector in detectors])
    roads = []
    for station in np.unique(station_D):
        lane_TL = speed_TD[:, station_D == station]
        there_T = (~np.isnan(lane_TL)).sum(axis=1)
        roads.append(np.where(there_T > 0, np.nansum(lane_TL, axis=1) / np.maximum(there_T, 1), np.nan))
    return np.stack(roads, axis=1)


def write_adjacency(file: Path, detectors: Sequence[Detector]) -> None:
    """Write the matrix with the header of positions: 1 for a neighbour and, as in published lane files, for itself."""
    header = ["", *range(len(detectors))]
    rows = (
        [i, *(int(i == j or network.neighbours(first, second)) for j, second in enumerate(detectors))]
        for i, first in enumerate(detectors)
    )
    _write_rows(file, [header, *rows])


def _write_rows(file: Path, rows: Iterable[Sequence[object]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def description(simulation: Simulation, results: Sequence[Result]) -> dict[str, object]:
    """The content of simulation.json."""
    corridor = simulation.corridor
    stations = {
        f"{number}": {"place_m": place_m, "lanes": network.section_at(corridor, place_m).lanes}
        for number, place_m in enumerate(corridor.stations_m, start=1)
    }
    return {
        "simulated": True,
        "program": f"{programs.PACKAGE} {programs.version()}",
        "units": {"speed": "km/h", "flow": "veh/step", "occupancy": "fraction"},
        "step_minutes": simulation.interval_minutes,
        "stamp": "when the interval begins, local time without a clock change",
        "empty_cell": "no vehicle passed",
        "road": "mean of the lanes that have a value",
        "lane_order": "1 is the rightmost",
        "lane_drop_m": corridor.drop_m,
        "stations": stations,
        "days": [of_day(result) for result in results],
    }


def of_day(result: Result) -> dict[str, object]:
    """What simulation.json says of a day; clock times are H:MM:SS."""
    stops = [{**incident, "start": _clock(incident["start"])} for incident in result.incidents]
    day = result.day
    return {"date": day.date.isoformat(), "weekend": day.weekend, "vehicles": vars(result.counts), "incidents": stops}


def _clock(second: float) -> str:
    minutes, seconds = divmod(round(second), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
