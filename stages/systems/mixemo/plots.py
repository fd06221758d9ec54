"""Pictures of the corpora: held-out subjects, confusion matrices, subsets with their prototypes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from stages.metrics.canvas import GRID, SERIES_COLOURS, canvas
from stages.systems.mixemo.scores import confusion, over_seeds
from stages.systems.mixemo.settings import METHODS

#: Colours of subsets, used again from the start where there are more.
SUBSET_COLOURS = (
    *("#1b6ca8", "#c1502e", "#3f8f4f", "#8a5fa8", "#b8860b", "#4aa3a3", "#a8436b", "#6b6b6b"),
    *("#7a9e2e", "#2e4a7a", "#d08770", "#5e5346"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")


def draw_subjects(path: Path, scores: pl.DataFrame, methods: list[str], noun: str) -> None:
    """Draw the accuracy of each held-out subject under some methods, in the order of the first method."""
    found = [over_seeds(scores.filter(pl.col("method") == method), ["subject"]) for method in methods]
    order = found[0].sort("accuracy", "subject")["subject"].to_list()
    with canvas(path, 1.6 + 0.35 * max(len(order), 8), 3.2) as figure:
        axes = figure.subplots()
        for place, (method, table) in enumerate(zip(methods, found, strict=True)):
            accuracy = dict(table.select("subject", "accuracy").rows())
            x = np.arange(len(order)) + 0.18 * (place - (len(methods) - 1) / 2)
            colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
            axes.plot(x, [accuracy[name] for name in order], "o", color=colour, markersize=4, label=METHODS[method])
            axes.axhline(float(np.mean(list(accuracy.values()))), color=colour, linewidth=0.8, alpha=0.6)
        axes.set_xticks(range(len(order)), order, rotation=90 if len(order) > 12 else 0)
        axes.grid(axis="x", color=GRID, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set(ylabel="accuracy over windows", xlabel=f"held-out {noun}; lines: means")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def draw_confusions(path: Path, predictions: pl.DataFrame, methods: list[str], classes: list[str]) -> None:
    """Draw a matrix a method: the share of the windows of a class that is predicted as each class."""
    with canvas(path, 0.8 + 2.4 * len(methods), 2.6) as figure:
        grid = figure.subplots(1, len(methods), squeeze=False)
        for place, (method, axes) in enumerate(zip(methods, grid[0], strict=True)):
            mine = predictions.filter(pl.col("method") == method)
            counts = confusion(
                mine["label"].to_numpy().astype(np.int64), mine["predicted"].to_numpy().astype(np.int64), len(classes)
            )
            share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
            axes.imshow(share, vmin=0, vmax=1, cmap="Blues")
            for row, column in np.ndindex(share.shape):
                dark = share[row, column] > 0.6
                axes.text(
                    column, row, f"{share[row, column]:.2f}", ha="center", va="center", fontsize=8,
                    color="white" if dark else "black",
                )  # fmt: skip
            axes.set_xticks(range(len(classes)), classes, rotation=90 if len(classes) > 4 else 0, fontsize=8)
            axes.set_yticks(range(len(classes)), classes if place == 0 else [""] * len(classes), fontsize=8)
            axes.set_title(METHODS[method], fontsize=9)
            axes.set_xlabel("predicted")
        grid[0, 0].set_ylabel("class")


def draw_prototypes(path: Path, windows: pl.DataFrame) -> None:
    """Draw training windows in two components, coloured by subset, and each subset's prototype.

    Parameters
    ----------
    path
        SVG to write.
    windows
        class, subset, first, second: a row a window; at most about 2000 of them, evenly taken, are drawn.
    """
    classes = sorted(windows["class"].unique())
    shown = windows.gather_every(max(1, windows.height // 2000))
    with canvas(path, 5.6, 4.2) as figure:
        axes = figure.subplots()
        for (subset,), of_subset in shown.group_by("subset", maintain_order=True):
            colour = SUBSET_COLOURS[int(subset) % len(SUBSET_COLOURS)]
            for place, name in enumerate(classes):
                mine = of_subset.filter(pl.col("class") == name)
                axes.plot(
                    mine["first"], mine["second"], MARKERS[place % len(MARKERS)],
                    color=colour, markersize=2.5, alpha=0.45, markeredgewidth=0, rasterized=False,
                )  # fmt: skip
        for (_subset,), of_subset in windows.group_by("subset", maintain_order=True):
            x, y = of_subset["first"].to_numpy(), of_subset["second"].to_numpy()
            axes.errorbar(x.mean(), y.mean(), xerr=x.std(), yerr=y.std(), color="black", linewidth=1.4, capsize=2)
        for place, name in enumerate(classes):
            axes.plot([], [], MARKERS[place % len(MARKERS)], color="#6b6b6b", markersize=4, label=name)
        axes.set(xlabel="first component", ylabel="second component")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, title="class", loc="upper left", bbox_to_anchor=(1.0, 1.0))
