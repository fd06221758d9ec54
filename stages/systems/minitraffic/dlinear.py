"""DLinear: a moving average and what is left of it, each through a linear map (Zeng et al. 2023).

Shape suffixes: B window, S sensor, L step of the context, H step of the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.systems.minitraffic.baselines import carried_forward
from stages.systems.minitraffic.batches import one_thread
from stages.systems.minitraffic.search import Floats, Tensors
from stages.traffic.scores import masked_l1
from stages.traffic.windows import Windows

#: Steps of the moving average, odd; contexts here are short.
AVERAGE = 7


@dataclass(frozen=True)
class Plan:
    """One training: learning rate, updates, windows in an update, updates between looks."""

    rate: float
    steps: int
    windows: int
    check: int


class DLinear(nn.Module):
    """Shared by all sensors; inputs and outputs are standardised by sensor."""

    def __init__(self, context: int, horizon: int) -> None:
        super().__init__()
        self.trend = nn.Linear(context, horizon)
        self.rest = nn.Linear(context, horizon)
        with torch.no_grad():
            for layer in (self.trend, self.rest):
                layer.weight.fill_(1 / context)
                layer.bias.zero_()

    def forward(self, x_BSL: Tensor) -> Tensor:
        """Forecast, shape (window, sensor, step of the horizon)."""
        half = AVERAGE // 2
        longer = functional.pad(x_BSL, (half, half), mode="replicate")
        trend_BSL = functional.avg_pool1d(longer, AVERAGE, stride=1)
        return torch.as_tensor(self.trend(trend_BSL) + self.rest(x_BSL - trend_BSL))


def restored(tensors: Tensors) -> DLinear:
    """A trained model out of what is stored."""
    weights = {name.removeprefix("dlinear."): torch.from_numpy(value) for name, value in tensors.items()}
    weights = {name: value for name, value in weights.items() if "." in name}
    horizon, context = weights["trend.weight"].shape
    model = DLinear(context, horizon)
    model.load_state_dict(weights)
    return model


def standardised(filled_BSL: Floats, mean_S: Floats, scale_S: Floats) -> Tensor:
    """Contexts without missing values in units of their sensor."""
    return torch.from_numpy(np.ascontiguousarray((filled_BSL - mean_S[:, None]) / scale_S[:, None]))


@one_thread()
@torch.no_grad()
def forecast(model: DLinear, filled_BSL: Floats, mean_S: Floats, scale_S: Floats) -> Floats:
    """Forecast in the data's unit."""
    z_BSH = model(standardised(filled_BSL, mean_S, scale_S)).numpy()
    return np.asarray(z_BSH * scale_S[:, None] + mean_S[:, None], dtype=np.float32)


def snapshots(
    windows: Windows[Floats], level_S: Floats, mean_S: Floats, scale_S: Floats, plan: Plan, rng: np.random.Generator
) -> Iterator[tuple[int, float, DLinear]]:
    """Train by the mean absolute error, and yield step, loss and model at each look, the one before training first."""
    context, horizon = windows.context, windows.horizon
    model = DLinear(context, horizon)
    optimiser = torch.optim.Adam(model.parameters(), lr=plan.rate)
    yield 0, float("nan"), model
    running: list[float] = []
    for step in range(1, plan.steps + 1):
        context_BSL, target_BSH = windows.batch(rng.integers(0, len(windows), plan.windows))
        x_BSL = standardised(carried_forward(context_BSL, level_S), mean_S, scale_S)
        truth_BSH = standardised(target_BSH, mean_S, scale_S)
        with one_thread():  # here, not as a decorator: that would end before a generator begins
            loss = masked_l1(model(x_BSL), truth_BSH)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        running.append(loss.item())
        if step % plan.check == 0 or step == plan.steps:
            yield step, float(np.mean(running)), model
            running = []
