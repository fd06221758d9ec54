"""Small settings, panels and networks for the tests of MiniTraffic."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stages.runtime import random_numbers
from stages.systems.minitraffic.batches import Loaded, loaded
from stages.systems.minitraffic.model import MiniTraffic, initialise
from stages.systems.minitraffic.problem import Panel, level_and_scale, sensor_levels
from stages.systems.minitraffic.settings import Train

#: Sizes as in params.yaml; only the budget is small.
BLOCK: dict[str, Any] = {
    "targets": [{"set": "corridor", "mode": "lane"}, {"set": "roads", "mode": "road"}],
    "shares": [0.2],
    "arms": ["last_value", "scratch", "minitraffic", "zero_shot"],
    "context": 18,
    "horizon": 6,
    "network": {"patch": 3, "stride": 3, "width": 32, "layers": 2, "heads": 2},
    "fda": {"strength": 0.3, "frequencies": 0.5},
    "clustering": {"clusters": 4, "neighbours": 5, "temperature": 0.1, "weight": 0.1},
    "pretraining": {
        "roads": ["corridor", "elsewhere"], "steps": 6, "batch": 16, "learning_rate": 0.003, "mask": 0.4, "check": 3,
    },
    "finetuning": {
        "steps": 4, "batch": 16, "learning_rates": [0.001, 0.01], "dlinear_rates": [0.01, 0.1], "check": 2,
        "validation": 8, "windows": 4, "extension": 2,
    },
}  # fmt: skip


def settings(**changes: Any) -> Train:
    """Settings with some blocks changed."""
    return Train.model_validate(
        BLOCK | {name: BLOCK[name] | value if isinstance(value, dict) else value for name, value in changes.items()}
    )


SETTINGS = settings()


def waves(series: int = 6, steps: int = 200, seed: int = 0) -> NDArray[np.float32]:
    """Series with a rhythm of 24 steps, a level of their own, and noise."""
    rng = np.random.default_rng(seed)
    step = np.arange(steps)[:, None]
    values_TS = 50 + np.arange(series) + 10 * np.sin(2 * np.pi * step / 24 + np.arange(series) / 3)
    return (values_TS + rng.normal(size=(steps, series))).astype(np.float32)


def panel(values_TS: NDArray[np.float32], train: tuple[int, int] = (0, 120), key: str = "waves") -> Panel:
    """Series without a clock, with 40 validation steps after their training steps."""
    level, scale = level_and_scale(values_TS, train, 18)
    return Panel(
        key=key,
        values_TS=values_TS,
        clock_TF=np.zeros((len(values_TS), 3), np.float32),
        train=train,
        validation=(train[1], train[1] + 40),
        level=level,
        scale=scale,
        level_S=sensor_levels(values_TS, train, level),
    )


def on_cpu(values_TS: NDArray[np.float32], train: tuple[int, int] = (0, 120)) -> Loaded:
    """Series on the CPU."""
    return loaded(panel(values_TS, train), 18, 6, torch.device("cpu"))


def network(seed: int = 0, *, told: bool = False, train: Train = SETTINGS) -> MiniTraffic:
    """A new network; ``told``: with weights where a new one has zeros, so that its forecasts differ."""
    made = MiniTraffic(train.network, train.context, train.horizon)
    rng = random_numbers(seed, "weights")
    initialise(made, rng)
    if told:
        with torch.no_grad():
            for weight in (made.adaptive_head.weight, made.graph.out.weight):
                weight.copy_(torch.from_numpy(rng.normal(size=tuple(weight.shape)).astype(np.float32)))
    return made
