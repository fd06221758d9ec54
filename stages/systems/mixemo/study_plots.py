"""Pictures of the study: gains over ERM on fresh populations, and against the number of subsets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from stages.metrics.canvas import GRID, SERIES_COLOURS, canvas
from stages.metrics.summary import Plot
from stages.systems.mixemo.scores import paired
from stages.systems.mixemo.settings import METHODS, REFERENCE
from stages.systems.mixemo.study_tables import KINDS, UNIT, compared, subset_curve
from stages.systems.mixemo.tables import rng_of


def draw(folder: Path, study: pl.DataFrame) -> list[Plot]:
    """Draw what the study has."""
    draw_gains(folder / "populations.svg", study)
    drawn = [
        Plot(
            file="populations.svg",
            title="Gain over ERM on fresh populations (simulated)",
            caption="Accuracy over windows of unseen subjects less that of ERM at the same budget; 95 % bootstrap "
            "intervals over populations.",
            on_results_page=True,
        )
    ]
    curve = subset_curve(study)
    if curve.height:
        draw_curve(folder / "subsets.svg", curve)
        drawn.append(
            Plot(
                file="subsets.svg",
                title="Gain over ERM against the number of subsets (simulated)",
                caption="Coupled populations; 95 % bootstrap intervals over populations.",
                on_results_page=True,
            )
        )
    return drawn


def draw_gains(path: Path, study: pl.DataFrame) -> None:
    """Draw the gain of each method on each kind of population."""
    kinds = [kind for kind in KINDS if kind in set(study["kind"])]
    methods = [name for name in METHODS if name in set(study["method"]) and name != REFERENCE]
    with canvas(path, 7.6, 0.9 + 0.34 * len(methods)) as figure:
        grid = figure.subplots(1, len(kinds), sharey=True, sharex=True, squeeze=False)
        for kind, axes in zip(kinds, grid[0], strict=True):
            mine = compared(study, kind)
            for row, method in enumerate(reversed(methods)):
                mean, low, high, _ = paired(mine, UNIT, method, REFERENCE, rng_of("study", kind, method, "gain"))
                if np.isfinite(low):
                    axes.plot([low, high], [row, row], color=SERIES_COLOURS[0], linewidth=2)
                axes.plot([mean], [row], "o", color=SERIES_COLOURS[0], markersize=4)
            axes.axvline(0, color=GRID, zorder=0)
            axes.set_title(kind, fontsize=9, loc="left")
            axes.set(xlabel="gain in accuracy", ylim=(-0.5, len(methods) - 0.5))
            axes.spines[["top", "right"]].set_visible(False)
        grid[0, 0].set_yticks(range(len(methods)), [METHODS[method] for method in reversed(methods)])


def draw_curve(path: Path, curve: pl.DataFrame) -> None:
    """Draw the gain against the number of subsets."""
    with canvas(path, 4.8, 3.0) as figure:
        axes = figure.subplots()
        for row in curve.iter_rows(named=True):
            axes.plot([row["subsets"]] * 2, [row["low"], row["high"]], color=SERIES_COLOURS[0], linewidth=2)
        axes.plot(curve["subsets"], curve["gain"], "o-", color=SERIES_COLOURS[0], markersize=4, linewidth=1)
        axes.axhline(0, color=GRID, zorder=0)
        axes.set_xticks(curve["subsets"].to_list())
        axes.set(xlabel="subsets", ylabel="gain in accuracy over ERM")
        axes.spines[["top", "right"]].set_visible(False)
