"""Batches of a panel on the device of the network.

Shape suffixes: B window, S sensor, L step of the context, H step of the horizon, F feature of the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.systems.minitraffic.patches import Normalised, normalise
from stages.systems.minitraffic.problem import Panel, Range
from stages.traffic.windows import Windows

#: Series that pass through the network at once where nothing is learned.
CHUNK = 8192


class Batch(NamedTuple):
    """Some windows of a panel: contexts and targets in the data's unit, and the clock at the end of each context."""

    context_BSL: Tensor
    target_BSH: Tensor
    clock_BF: Tensor


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: the numbers do not depend on how many cores there are; seeds run side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True)
class Loaded:
    """A panel on a device."""

    panel: Panel
    values_TS: Tensor
    clock_TF: Tensor
    level_S: Tensor
    context: int
    horizon: int

    @property
    def series(self) -> int:
        """Number of series."""
        return int(self.values_TS.shape[1])

    def windows(self, steps: Range, stride: int = 1) -> Windows[Tensor]:
        """Windows within a range of steps."""
        return Windows(self.values_TS, self.context, self.horizon, *steps, stride)

    def batch(self, windows: Windows[Tensor], indices: NDArray[np.int64]) -> Batch:
        """Some of these windows, with their clock."""
        return self.at(windows.starts_W[indices])

    def at(self, starts_B: NDArray[np.int64]) -> Batch:
        """Windows that start at some steps, with their clock."""
        steps_BT = torch.from_numpy(starts_B[:, None] + np.arange(self.context + self.horizon)).to(
            self.values_TS.device
        )
        rows_BST = self.values_TS[steps_BT].swapaxes(1, 2)
        return Batch(
            rows_BST[..., : self.context].contiguous(),
            rows_BST[..., self.context :].contiguous(),
            self.clock_TF[steps_BT[:, self.context - 1]],
        )

    def normalised(self, context_BSL: Tensor) -> Normalised:
        """Windows in their own units."""
        return normalise(context_BSL, self.level_S, self.panel.scale)

    def passes(self, batch: int) -> int:
        """Windows of an update that holds about ``batch`` series; at least one."""
        return max(1, batch // self.series)


def loaded(panel: Panel, context: int, horizon: int, place: torch.device) -> Loaded:
    """Put a panel on a device."""
    return Loaded(
        panel=panel,
        values_TS=torch.from_numpy(np.ascontiguousarray(panel.values_TS)).to(place),
        clock_TF=torch.from_numpy(panel.clock_TF).to(place),
        level_S=torch.from_numpy(panel.level_S).to(place),
        context=context,
        horizon=horizon,
    )


def spread(count: int, wanted: int) -> NDArray[np.int64]:
    """Up to ``wanted`` numbers out of 0 to ``count - 1``, spread evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).round().astype(np.int64))
