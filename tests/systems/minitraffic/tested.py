"""A small lane set, forecasts of it whose errors are known, and their table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

from stages.accepted.traffic import Accepted, Edges
from stages.systems.minitraffic import problem
from stages.systems.minitraffic.comparisons import Comparison, Tested
from stages.systems.minitraffic.forecasts import Forecasts
from stages.systems.minitraffic.predictions import arm_errors, open_test_part
from stages.systems.minitraffic.problem import Target
from stages.systems.minitraffic.scores_by_block import ErrorTable
from stages.systems.minitraffic.settings import ARMS, Goal, Train

CONTEXT, HORIZON = 6, 3
LANES, ROADS = 2, 3
SETTINGS = Train.model_validate(
    {
        "targets": [{"set": "roads", "mode": "road"}, {"set": "corridor", "mode": "lane"}],
        "shares": [0.2, 1.0],
        "arms": list(ARMS),
        "context": CONTEXT,
        "horizon": HORIZON,
        "network": {"patch": 3, "stride": 3, "width": 8, "layers": 1, "heads": 2},
        "fda": {"strength": 0.3, "frequencies": 0.5},
        "clustering": {"clusters": 2, "neighbours": 2, "temperature": 0.2, "weight": 0.1},
        "pretraining": {
            "roads": ["corridor", "roads"], "steps": 6, "batch": 16, "learning_rate": 0.003, "mask": 0.4, "check": 3,
        },
        "finetuning": {
            "steps": 4, "batch": 16, "learning_rates": [0.001], "dlinear_rates": [0.01], "check": 2, "validation": 8,
            "windows": 12, "extension": 2,
        },
    }
)  # fmt: skip


def accepted(*, days: int = 8, step_minutes: float = 60, clock: bool = True, seed: int = 0) -> Accepted:
    """Lanes of three roads with a daily rhythm, the last 40 % of the time for testing, one value missing there."""
    rng = np.random.default_rng(seed)
    per_day = round(1440 / step_minutes)
    steps, sensors = days * per_day, LANES * ROADS
    hour = np.arange(steps)[:, None] * step_minutes / 60
    values = 60 - 15 * np.exp(-(((hour % 24) - 8) ** 2) / 4) - np.arange(sensors) + rng.normal(size=(steps, sensors))
    values_TS = values.astype(np.float32)
    parts = {
        "train": (0, steps // 2),
        "validation": (steps // 2, round(0.6 * steps)),
        "test": (round(0.6 * steps), steps),
    }
    values_TS[parts["test"][0] + CONTEXT + 4, 0] = np.nan
    road_S = np.repeat(np.arange(ROADS), LANES)
    roads_TR = np.stack([np.nanmean(values_TS[:, road_S == road], axis=1) for road in range(ROADS)], axis=1)
    return Accepted(
        key="corridor",
        variable="speed",
        unit="mph",
        values_TS=values_TS,
        time_T=np.datetime64("2024-01-01", "m") + (np.arange(steps) * step_minutes).astype("timedelta64[m]"),
        step_minutes=step_minutes,
        steps_per_day=per_day,
        clock=clock,
        timezone="UTC",
        sensors=pl.DataFrame(
            {
                "sensor": [f"r{road} lane {lane}" for road in range(ROADS) for lane in range(LANES)],
                "position": range(sensors),
                "road": [f"r{road}" for road in road_S],
                "lane": list(range(LANES)) * ROADS,
                "lane_count": [LANES] * sensors,
                "latitude": [None] * sensors,
                "longitude": [None] * sensors,
            },
            schema_overrides={"latitude": pl.Float64, "longitude": pl.Float64},
        ),
        roads_TR=roads_TR.astype(np.float32),
        road_ids=tuple(f"r{road}" for road in range(ROADS)),
        road_of_sensor_S=road_S,
        edges=Edges(np.array([0]), np.array([1]), np.array([1.0]), directed=False, kind="adjacency"),
        null=None,
        parts=parts,
        simulated=True,
        lane_order="0 is the rightmost",
        about={},
    )


def target(mode: str = "lane", **options: Any) -> Target:
    """The set as a target."""
    found = accepted(**options)
    goal = Goal.model_validate({"set": "corridor", "mode": mode})
    with mock.patch.object(problem, "open_set", return_value=found):
        return problem.open_target(goal, SETTINGS)


def forecasts(found: Target, error: float, *, noise: float = 0.0, batch: int = 7, seed: int = 0) -> Iterator[Forecasts]:
    """Forecasts of the test part that lie above the truth by ``error``, and by noise that grows with the lead."""
    windows = found.windows("test")
    rng = np.random.default_rng(seed)
    for indices, _, truth_BSH in windows.batches(batch):
        observed = truth_BSH.swapaxes(1, 2)
        wrong = rng.normal(scale=noise, size=observed.shape) * np.arange(1, HORIZON + 1)[:, None]
        forecast = np.nan_to_num(observed, nan=50) + error + wrong
        yield Forecasts(windows.starts_W[indices] + CONTEXT, forecast.astype(np.float32), observed)


def comparison(errors: dict[str, float], shares: tuple[float, ...] = (0.05,), seeds: int = 2) -> Comparison:
    """A table of arms whose forecasts are wrong by so much; MiniTraffic needs no more data, the others do."""
    found = target()
    part = open_test_part(found)
    rows = []
    for arm, error in errors.items():
        for share in shares:
            for seed in range(seeds):
                made = arm_errors(forecasts(found, error, noise=0.3, seed=seed), part)
                labels = {"target": found.key, "share": share, "arm": arm, "seed": seed}
                rows.append(made.select(*(pl.lit(value).alias(name) for name, value in labels.items()), pl.all()))
    return Comparison(ErrorTable(pl.concat(rows)), {found.key: about(found, tuple(errors), shares)})


def about(found: Target, arms: tuple[str, ...], shares: tuple[float, ...]) -> Tested:
    """What the set is."""
    part = open_test_part(found)
    return Tested(
        key=found.key,
        mode=found.goal.mode,
        unit="mph",
        simulated=True,
        sensor_ids=tuple(found.accepted.sensors["sensor"]),
        windows=len(part.start_W),
        stride=1,
        blocks=part.blocks.number,
        block_noun=part.blocks.noun,
        records=18,
        step_minutes=60,
        clock=True,
        horizon=HORIZON,
        sources=("corridor (simulated)", "elsewhere"),
        own_roads=True,
        few=dict.fromkeys(shares, (24, 16)),
        arms=arms,
    )
