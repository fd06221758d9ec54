"""Pictures of the transfer study: learning curves, benefit by alignment and capacity, sharpness, similarity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.metrics.canvas import GRID, canvas
from stages.systems.rna_transfer.answers import FAMILIES
from stages.systems.rna_transfer.claims import SHORT, gap_closed
from stages.systems.rna_transfer.comparisons import MAIN, Comparison, first_score
from stages.systems.rna_transfer.estimates import Interval
from stages.systems.rna_transfer.optimisation import Optimisation
from stages.systems.rna_transfer.scored import SCORES, value_of
from stages.systems.rna_transfer.settings import ALIGNMENT, BASELINE, METRICS, TASKS, Run

#: One colour an arm in every picture; arms whose encoder is frozen are dashed.
COLOURS = {
    "random": "#6b6b6b",
    "fine_tuned": "#1b6ca8",
    "frozen": "#4aa3a3",
    "random_frozen": "#a0a0a0",
    "lower": "#8a5fa8",
    "upper": "#b8860b",
    "shuffled": "#a8436b",
    "one_hot": "#c1502e",
    "mfe": "#3f8f4f",
}
DASHED = ("frozen", "random_frozen")
MARKS = "os^D"
LOWEST = -1.0  # R2 of a start that knows nothing has no bound
MOST_NUMBERS = 8  # layers up to which cells of a heat map hold numbers


def draw_learning(path: Path, found: Comparison, optimised: Optimisation) -> None:
    """Draw the validation metric of every arm against the bases that passed: mean over seeds, a line a task."""
    tasks = found.tasks
    with canvas(path, 3.6 * min(2, len(tasks)), 2.5 * math.ceil(len(tasks) / 2) + 0.5) as figure:
        grid = figure.subplots(math.ceil(len(tasks) / 2), min(2, len(tasks)), squeeze=False)
        for axes in grid.flat[len(tasks) :]:
            axes.set_visible(False)
        for axes, task in zip(grid.flat, tasks, strict=False):
            for run in found.leading_runs(task):
                _learning_line(axes, run.arm, optimised.history(task, run))
            axes.axhline(float(np.mean(found.chances(task))), color=GRID, linewidth=1, zorder=0)
            axes.set_ylim(bottom=max(axes.get_ylim()[0], LOWEST))
            axes.set_title("\n".join(_wrapped(TASKS[task], 40)), fontsize=9, loc="left")
            axes.set(xlabel="bases that passed, thousands", ylabel=METRICS[task][0])
            axes.spines[["top", "right"]].set_visible(False)
        _legend(figure, grid.flat[: len(tasks)])


def _learning_line(axes, arm: str, history: pl.DataFrame | None) -> None:  # type: ignore[no-untyped-def]
    if history is None:
        return
    curve = (
        history.group_by("step")
        .agg(
            pl.col("seen").mean(),
            pl.col("validation_metric").mean().alias("mean"),
            pl.col("validation_metric").min().alias("low"),
            pl.col("validation_metric").max().alias("high"),
        )
        .drop_nulls("mean")
        .sort("step")
    )
    x, style = curve["seen"].to_numpy() / 1000, "--" if arm in DASHED else "-"
    axes.plot(x, curve["mean"].to_numpy(), style, color=COLOURS[arm], linewidth=1.3, label=SHORT[arm])
    if arm in (MAIN, BASELINE):
        band = curve.select("low", "high").to_numpy().T
        axes.fill_between(x, *band, color=COLOURS[arm], alpha=0.12, linewidth=0)


def _legend(figure, panels) -> None:  # type: ignore[no-untyped-def]
    named: dict[str, object] = {}
    for axes in panels:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, line)
    figure.legend(
        named.values(), named.keys(), frameon=False, fontsize=8, loc="outside lower center", ncols=min(5, len(named))
    )


def draw_differences(path: Path, found: Comparison) -> None:
    """Draw each arm's leading score less that of the random arm, with intervals: a panel a task."""
    arms = [arm for arm in found.train.arms if arm != BASELINE]
    with canvas(path, 2.0 * len(found.tasks) + 1.2, 0.9 + 0.28 * len(arms)) as figure:
        grid = figure.subplots(1, len(found.tasks), sharey=True, squeeze=False)
        for axes, task in zip(grid[0], found.tasks, strict=True):
            for row, arm in enumerate(reversed(arms)):
                _bar(axes, found.difference(task, found.run(arm), found.run(BASELINE)), row, COLOURS[arm])
            axes.axvline(0, color="#444444", linewidth=0.8, zorder=0)
            axes.set_title("\n".join(_wrapped(TASKS[task])), fontsize=8.5, loc="left")
            axes.set(xlabel=first_score(task).split(",")[0], ylim=(-0.6, len(arms) - 0.4))
            axes.spines[["top", "right"]].set_visible(False)
        grid[0, 0].set_yticks(range(len(arms)), [SHORT[arm] for arm in reversed(arms)])


def _bar(axes, found: Interval, row: float, colour: str) -> None:  # type: ignore[no-untyped-def]
    if math.isfinite(found.low):
        axes.plot([found.low, found.high], [row, row], color=colour, linewidth=2)
    if math.isfinite(found.value):
        axes.plot([found.value], [row], "o", color=colour, markersize=4)


def _wrapped(text: str, width: int = 24) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width)


def draw_alignment(path: Path, found: Comparison) -> None:
    """Draw the benefit of every task, as a share of what the random arm lacks to 1, from aligned to misaligned."""
    order = {kind: place for place, kind in enumerate(("aligned", "functional", "misaligned"))}
    tasks = sorted(found.tasks, key=lambda task: order[ALIGNMENT[task]])
    with canvas(path, 5.6, 0.9 + 0.45 * len(tasks)) as figure:
        axes = figure.subplots()
        for row, task in enumerate(reversed(tasks)):
            _bar(axes, gap_closed(found, [task]), row, COLOURS[MAIN])
        axes.axvline(0, color="#444444", linewidth=0.8, zorder=0)
        names = ["\n".join([*_wrapped(TASKS[task], 34), f"({ALIGNMENT[task]})"]) for task in reversed(tasks)]
        axes.set_yticks(range(len(tasks)), names)
        axes.set(xlabel="benefit: share of what the random arm lacks to 1", ylim=(-0.6, len(tasks) - 0.4))
        axes.spines[["top", "right"]].set_visible(False)


def draw_capacity(path: Path, found: Comparison) -> None:
    """Draw the benefit in the leading task by pre-training length, a line a size, with intervals."""
    task = found.tasks[0]
    sizes = sorted(found.train.sizes, key=found.parameters)
    with canvas(path, 5.2, 3.1) as figure:
        axes = figure.subplots()
        shades = np.linspace(0.35, 1.0, len(sizes))
        for place, (size, shade) in enumerate(zip(sizes, shades, strict=True)):
            lengths = found.lengths(size)
            gains = [found.benefit(task, size, tokens) for tokens in lengths]
            aside = 1 + 0.03 * (place - (len(sizes) - 1) / 2)
            x = np.array(lengths) * aside
            for at, gain in zip(x, gains, strict=True):
                if math.isfinite(gain.low):
                    axes.plot([at, at], [gain.low, gain.high], color=COLOURS[MAIN], alpha=shade, linewidth=1.5)
            label = f"{size}: {found.parameters(size):,} weights".replace(",", " ")
            values = [gain.value for gain in gains]
            axes.plot(x, values, f"{MARKS[place % 4]}-", color=COLOURS[MAIN], alpha=shade, markersize=5, label=label)
        axes.axhline(0, color="#444444", linewidth=0.8, zorder=0)
        axes.set_xscale("log")
        lengths = sorted({tokens for size in sizes for tokens in found.lengths(size)})
        axes.set_xticks(lengths, [_in_words(tokens) for tokens in lengths])
        axes.minorticks_off()
        axes.set(xlabel="bases of pre-training", ylabel=f"benefit, {first_score(task).split(',')[0]}")
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=min(2, len(sizes)))


def _in_words(number: int) -> str:
    return f"{number / 1e6:g} M" if number >= 1_000_000 else f"{number / 1e3:g} k"


def seed_scores(found: Comparison, task: str, run: Run) -> list[float]:
    """The leading score of a run in each seed; NaN where there is none."""
    mine = found.answered[task]
    score = next(iter(SCORES[task]))
    chosen = mine.where(FAMILIES) & mine.answered(run)
    seeds = mine.molecules["seed"].to_numpy()
    return [float(value_of(mine.sums[run][chosen & (seeds == seed)].sum(axis=0), score)) for seed in found.seeds]


def sharp_points(
    found: Comparison, optimised: Optimisation, task: str
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Largest eigenvalue at one training loss and leading test score of each arm's seeds, where both are known."""
    points = {}
    for run in found.leading_runs(task):
        x = np.array(optimised.sharpness(task, run, "sharpness"))
        y = np.array(seed_scores(found, task, run))
        there = np.isfinite(x) & np.isfinite(y) & (x > 0)
        if there.any():
            points[run.arm] = (x[there], y[there])
    return points


def draw_sharpness(path: Path, found: Comparison, optimised: Optimisation, tasks: Sequence[str]) -> None:
    """Draw the test score against the sharpness at one training loss, a point a seed and arm: a panel a task."""
    with canvas(path, 3.4 * len(tasks) + 0.4, 3.2) as figure:
        grid = figure.subplots(1, len(tasks), squeeze=False)
        for axes, task in zip(grid[0], tasks, strict=True):
            points = sharp_points(found, optimised, task)
            for arm, (x, y) in points.items():
                axes.plot(x, y, "o", color=COLOURS[arm], markersize=5, alpha=0.8, label=SHORT[arm])
            all_x = np.concatenate([x for x, _ in points.values()])
            axes.set_xscale("log")
            _few_ticks(axes, all_x)
            axes.set_title(TASKS[task], fontsize=9, loc="left")
            axes.set(xlabel="largest eigenvalue at one training loss", ylabel=first_score(task))
            axes.spines[["top", "right"]].set_visible(False)
        _legend(figure, grid[0])


def _few_ticks(axes, values: NDArray[np.float64]) -> None:  # type: ignore[no-untyped-def]
    """Ticks on a logarithmic axis that spans less than a decade or two."""
    low, high = float(values.min()) / 1.1, float(values.max()) * 1.1
    ticks = np.unique([float(f"{tick:.2g}") for tick in np.geomspace(low, high, 5)])
    axes.set_xlim(low / 1.05, high * 1.05)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def cka_panels(found: Comparison, optimised: Optimisation) -> list[tuple[str, list[str], NDArray[np.float64]]]:
    """Title, layers and matrix of what is compared in the leading task: pre-trained against random, then each arm."""
    task = found.tasks[0]
    wanted = [("frozen", "cka_pretrained_random", "pre-trained (rows), random (columns)")]
    wanted += [(arm, "cka_start", f"{SHORT[arm]}: trained (rows), start (columns)") for arm in (MAIN, BASELINE)]
    panels = []
    for arm, measure, title in wanted:
        matrix = optimised.similarity(task, found.run(arm), measure)
        if matrix is not None:
            panels.append((title, *matrix))
    return panels


def draw_similarity(path: Path, panels: Sequence[tuple[str, list[str], NDArray[np.float64]]]) -> None:
    """Draw heat maps of linear CKA between all layers."""
    with canvas(path, 2.7 * len(panels) + 0.5, 2.9) as figure:
        grid = figure.subplots(1, len(panels), squeeze=False)
        for axes, (title, layers, matrix_FS) in zip(grid[0], panels, strict=True):
            shown = axes.pcolormesh(matrix_FS, cmap="viridis", vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
            for (row, column), value in np.ndenumerate(matrix_FS):
                if math.isfinite(value) and len(layers) <= MOST_NUMBERS:
                    style = {"ha": "center", "va": "center", "color": "black" if value > 0.6 else "white"}
                    axes.text(column + 0.5, row + 0.5, f"{value:.2f}", fontsize=7, **style)
            names = [layer.removeprefix("layer_") if layer != "embedding" else "emb." for layer in layers]
            middle = np.arange(len(layers)) + 0.5
            axes.set_xticks(middle, names)
            axes.set_yticks(middle, names)
            axes.set_aspect("equal")
            axes.set_title("\n".join(_wrapped(title, 26)), fontsize=8.5, loc="left")
        figure.colorbar(shown, ax=grid[0].tolist(), shrink=0.8, label="linear CKA")
