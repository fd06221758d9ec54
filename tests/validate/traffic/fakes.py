"""Made-up traffic sets in the layout ingest writes: ten days of quarter-hours, four sensors on two roads."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xarray as xr

from stages import artifacts
from stages.ingest.traffic.schema import RECORD_COLUMNS, SENSOR_COLUMNS
from stages.validate.traffic.stage import Params

STEP = 15
STEPS = 96  # of a day
DAYS = 10
SENSORS = ("a0", "a1", "b0", "b1")
ROADS = ("a", "b")
UNITS = {"speed": "mph", "flow": "veh per step", "occupancy": "1"}
EDGES = ((0, 1, 1.0), (1, 0, 1.0), (2, 3, 0.5), (3, 2, 0.5))
SPLITS = {"train": 0.7, "validation": 0.1, "test": 0.2, "window": 24}


def days(steps: int = DAYS * STEPS) -> list[tuple[int, int]]:
    """Ranges of the steps of each day; the last may be short."""
    return [(start, min(start + STEPS, steps)) for start in range(0, steps, STEPS)]


def speeds(seed: int = 0, steps: int = DAYS * STEPS, sensors: int = len(SENSORS)) -> np.ndarray:
    """Free flow of 62 mph, two rush hours, and noise that has a memory."""
    random = np.random.default_rng(seed)
    hour = np.arange(steps)[:, None] * STEP / 60 % 24
    rush = 25 * np.exp(-((hour - 8) ** 2) / 2) + 20 * np.exp(-((hour - 17) ** 2) / 3)
    noise = random.normal(0, 2, (steps, sensors))
    for step in range(1, steps):
        noise[step] += 0.6 * noise[step - 1]
    return (62 - rush + noise).astype(np.float32)


def flows(seed: int = 0, steps: int = DAYS * STEPS, sensors: int = len(SENSORS)) -> np.ndarray:
    """Vehicles of a quarter of an hour: none in some hours of the night."""
    random = np.random.default_rng(seed)
    hour = np.arange(steps)[:, None] * STEP / 60 % 24
    mean = np.maximum(0, 200 * np.sin(np.pi * (hour - 4) / 18)) * (hour > 4) * (hour < 22)
    return random.poisson(np.broadcast_to(mean, (steps, sensors))).astype(np.float32)


def records(key: str, values: dict[str, np.ndarray], sensors: tuple[str, ...] = SENSORS) -> pl.DataFrame:
    """records.parquet of these series."""
    rows = []
    steps = len(next(iter(values.values())))
    for place, sensor in enumerate(sensors):
        for day, (start, stop) in enumerate(days(steps)):
            row: dict[str, Any] = dict.fromkeys(RECORD_COLUMNS)
            row |= {
                "record_id": f"{key}/{sensor}/day-{day:03d}",
                "group": f"{key}/{sensor}",
                "set": key,
                "sensor": sensor,
                "day": f"day-{day:03d}",
                "start": start,
                "stop": stop,
                "source_file": "speed.csv",
                "sha256": hashlib.sha256(b"".join(v[start:stop, place].tobytes() for v in values.values())).hexdigest(),
            }
            for variable, values_TS in values.items():
                mine = values_TS[start:stop, place].astype(np.float64)
                there = mine[np.isfinite(mine)]
                row |= {
                    f"{variable}_coverage": there.size / mine.size,
                    f"{variable}_zeros_share": float((mine == 0).mean()),
                    f"{variable}_null_share": 0.0,
                }
                if there.size:
                    row |= {
                        f"{variable}_min": float(there.min()),
                        f"{variable}_max": float(there.max()),
                        f"{variable}_mean": float(there.mean()),
                        f"{variable}_std": float(there.std()),
                    }
            rows.append(row)
    return pl.DataFrame(rows, schema={name: getattr(pl, kind) for name, kind in RECORD_COLUMNS.items()})


def sensor_table(sensors: tuple[str, ...] = SENSORS, lanes: bool = False) -> pl.DataFrame:
    """sensors.parquet: two lanes of each of two roads, or sensors of which nothing is known."""
    rows = [
        {
            "sensor": name,
            "position": place,
            "road": name[0] if lanes else None,
            "lane": place % 2 if lanes else None,
            "lane_count": 2 if lanes else None,
        }
        for place, name in enumerate(sensors)
    ]
    return pl.DataFrame(rows, schema={name: getattr(pl, kind) for name, kind in SENSOR_COLUMNS.items()})


def ingested(
    key: str,
    values: dict[str, np.ndarray] | None = None,
    *,
    table: pl.DataFrame | None = None,
    edges: tuple[tuple[int, int, float], ...] = EDGES,
    directed: bool = False,
    roads: dict[str, np.ndarray] | None = None,
    units: dict[str, str] | None = None,
    time: np.ndarray | None = None,
    **about: Any,
) -> Path:
    """Lay a set where ingest would, under the working directory."""
    values = {"speed": speeds()} if values is None else values
    units = UNITS | (units or {})
    folder = artifacts.ingested("traffic", key)
    steps = len(next(iter(values.values())))
    time = (
        np.datetime64("2024-01-01T00:00", "ns") + np.arange(steps) * np.timedelta64(STEP, "m") if time is None else time
    )

    def group(arrays: dict[str, np.ndarray], dimension: str, names: tuple[str, ...]) -> xr.Dataset:
        return xr.Dataset(
            {name: (("time", dimension), array, {"units": units[name]}) for name, array in arrays.items()},
            coords={"time": time},
            attrs={f"{dimension}s": list(names)},
        )

    graph = xr.Dataset(
        {
            "source": ("edge", np.array([edge[0] for edge in edges], np.int64)),
            "target": ("edge", np.array([edge[1] for edge in edges], np.int64)),
            "weight": ("edge", np.array([edge[2] for edge in edges], np.float64)),
        },
        attrs={"directed": directed, "kind": "adjacency" if edges else "none", "unit": ""},
    )
    groups = {"series": group(values, "sensor", SENSORS), "graph": graph}
    if roads is not None:
        groups["roads"] = group(roads, "road", ROADS)
    artifacts.write_dataset(folder / "data.zarr", groups)
    artifacts.write_table(folder / "sensors.parquet", sensor_table(lanes=roads is not None))
    artifacts.write_table(folder / "records.parquet", records(key, values) if table is None else table)
    description = {
        "set": key,
        "reader": "wide",
        "simulated": True,
        "null": dict.fromkeys(values),
        "step_minutes": STEP,
        "clock": True,
        "timezone": None,
        "lane_order": "0 is the rightmost" if roads is not None else None,
        "roads": "file" if roads is not None else None,
        "notes": ["made up"],
    }
    artifacts.write_json(folder / "set.json", description | about)
    source = {"source": key, "kind": "simulator", "origin": {"seed": 0}, "files": [], "licence": "Apache-2.0"}
    artifacts.write_json(folder / "manifest.json", source)
    return folder


def params(*sets: str, gate: dict[str, Any] | None = None, **blocks: Any) -> Params:
    """Params with these sets; ``blocks`` gives the block of a set by its name with ``_`` for ``-``."""
    return Params.model_validate(
        {
            "sets": {key: blocks.get(key.replace("-", "_"), {"path": "x", "format": "wide"}) for key in sets},
            "gate": gate or {},
            "splits": SPLITS,
        }
    )
