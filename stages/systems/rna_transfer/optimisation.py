"""What the histories and the geometry of all seeds say: convergence, distances, similarity of layers, sharpness.

Shape suffixes: G seed, F layer of the trained encoder, S layer of the one it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.systems.rna_transfer.convergence import Convergence, steps_to_level
from stages.systems.rna_transfer.estimates import NOTHING, Interval, over_seeds, ratio_over_seeds
from stages.systems.rna_transfer.settings import Run

#: Measures of geometry.parquet that say how sharp a solution is, in words; the first one decides.
SHARPNESS = {
    "sharpness": "largest eigenvalue of the Hessian",
    "trace": "trace of the Hessian",
    "ball": "rise to the worst loss nearby",
}
#: Arms are matched where their losses differ from the level by this share at most.
MATCHED = 0.05
#: An eigenvalue counts where its residual is this share of it at most.
RESIDUAL = 0.1


class Reached(NamedTuple):
    """How soon an arm reaches the baseline's level, over the seeds.

    Attributes
    ----------
    levels
        Level of each seed in which the baseline leaves chance.
    steps, baseline_steps
        Updates in these seeds; None where it is never reached.
    change
        Updates more than the baseline's, as a share of the baseline's: -0.5 is half of them. Nothing where the arm
        once does not reach the level.
    """

    levels: list[float]
    steps: list[int | None]
    baseline_steps: list[int | None]
    change: Interval

    @property
    def never(self) -> int:
        """Seeds in which the arm never reaches the level."""
        return sum(step is None for step in self.steps)

    @property
    def median(self) -> float | None:
        """Median of the updates; None where it lies among seeds that never reach the level."""
        ordered = sorted(math.inf if step is None else step for step in self.steps)
        found = float(np.median(ordered)) if ordered else math.inf
        return found if math.isfinite(found) else None


class Optimisation:
    """history.parquet and geometry.parquet of all seeds, each with a column ``seed``."""

    def __init__(self, history: pl.DataFrame, geometry: pl.DataFrame, seeds: Sequence[int]) -> None:
        self.seeds = list(seeds)
        self._history = history.sort("seed", "step").partition_by("task", "model", "tokens", "arm", as_dict=True)
        self._geometry = geometry.partition_by("task", "model", "tokens", "arm", "measure", as_dict=True)

    def history(self, task: str, run: Run) -> pl.DataFrame | None:
        """Checks of a run, all seeds."""
        return self._history.get((task, *run))

    def reached(self, task: str, run: Run, baseline: Run, chances: Sequence[float]) -> Reached:
        """Updates of a run to 90 % of what the baseline gains over chance, which is one number a seed."""
        levels, steps, before = [], [], []
        for seed, chance in zip(self.seeds, chances, strict=True):
            found = self._seed(task, run, baseline, seed, chance)
            if found is not None and found.level is not None:
                levels.append(found.level)
                steps.append(found.step)
                before.append(found.baseline_step)
        told = [(a, b) for a, b in zip(steps, before, strict=True) if a is not None and b]
        change = over_seeds([(a - b) / b for a, b in told]) if len(told) == len(steps) else NOTHING
        return Reached(levels, steps, before, change)

    def _seed(self, task: str, run: Run, baseline: Run, seed: int, chance: float) -> Convergence | None:
        histories = [self.history(task, each) for each in (run, baseline)]
        rows = [None if h is None else h.filter(pl.col("seed") == seed).to_dicts() for h in histories]
        if rows[0] is None or rows[1] is None:
            return None
        return steps_to_level(rows[0], rows[1], chance)

    def measured(self, task: str, run: Run, measure: str, layer: str | None = None) -> list[float]:
        """A measure of each seed; NaN where there is none."""
        table = self._geometry.get((task, *run, measure))
        if table is None:
            return [math.nan] * len(self.seeds)
        mine = table.filter(pl.col("layer").is_null() if layer is None else pl.col("layer") == layer)
        by_seed = dict(mine.select("seed", "value").drop_nulls().iter_rows())
        return [float(by_seed.get(seed, math.nan)) for seed in self.seeds]

    def sharpness(self, task: str, run: Run, measure: str) -> list[float]:
        """A measure of sharpness of each seed, NaN where the loss is not matched or the eigenvalue not found."""
        values = np.array(self.measured(task, run, measure))
        level_G, loss_G = (np.array(self.measured(task, run, name)) for name in ("matched_loss", "loss_at"))
        counts_G = np.abs(loss_G - level_G) <= MATCHED * np.abs(level_G)
        if measure == "sharpness":
            counts_G &= self._residuals(task, run) <= RESIDUAL * np.abs(values)
        return [float(value) for value in np.where(counts_G, values, math.nan)]

    def _residuals(self, task: str, run: Run) -> NDArray[np.float64]:
        table = self._geometry.get((task, *run, "sharpness"))
        known = {} if table is None else dict(table.select("seed", "error").drop_nulls().iter_rows())
        return np.array([known.get(seed, math.nan) for seed in self.seeds])

    def sharper(self, task: str, run: Run, other: Run, measure: str) -> tuple[Interval, int]:
        """Sharpness of a run over that of another at one training loss, and the number of seeds that count."""
        pairs = list(zip(self.sharpness(task, run, measure), self.sharpness(task, other, measure), strict=True))
        known = [(a, b) for a, b in pairs if a > 0 and b > 0]
        return ratio_over_seeds([a for a, _ in known], [b for _, b in known]), len(known)

    def layers(self, task: str, run: Run, measure: str) -> list[str]:
        """Layers that a measure has, from the embedding up."""
        table = self._geometry.get((task, *run, measure))
        names = [] if table is None else table["layer"].drop_nulls().unique().to_list()
        return sorted(names, key=_height)

    def similarity(self, task: str, run: Run, measure: str) -> tuple[list[str], NDArray[np.float64]] | None:
        """Layers and the mean over seeds of linear CKA (F, S); None where it was not measured."""
        table = self._geometry.get((task, *run, measure))
        if table is None:
            return None
        layers = self.layers(task, run, measure)
        mean = table.group_by("layer", "other_layer").agg(pl.col("value").mean())
        known = {(layer, other): value for layer, other, value in mean.iter_rows()}
        cells = [[known.get((layer, other)) for other in layers] for layer in layers]
        return layers, np.array(cells, dtype=np.float64)


def _height(layer: str) -> tuple[int, int]:
    if layer == "embedding":
        return 0, 0
    number = layer.removeprefix("layer_")
    return (1, int(number)) if number.isdigit() else (2, 0)
