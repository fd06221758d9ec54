"""Pictures of causal graphs and of their lag functions.

A table of links has source, target, lag, value and, where the method orients links at lag 0, mark: ``-->``, ``<--``,
``o-o`` (not oriented) or ``x-x`` (conflicting). A pair at lag 0 stands once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from stages.metrics.canvas import GRID, SERIES_COLOURS, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

#: Cells of the lag functions: empty steps between two, and height in units of partial correlation.
CELL_GAP, CELL_HEIGHT = 2, 2.1
#: Links of a group of several stand this far beside each other, in steps.
GROUP_SHIFT = 0.3


def draw_graph(path: Path, names: Sequence[str], links: pl.DataFrame, auto: dict[str, float], step: str) -> None:
    """Draw a process graph: variables on a circle, an arrow for lagged links, a line for a link at lag 0.

    Parameters
    ----------
    path
        SVG to write.
    names
        Variables of the graph.
    links
        The links found: source, target, lag, value; no variable with itself.
    auto
        Partial correlation of each variable with its own past, for the colour of its node.
    step
        What one lag is, such as ``day``.
    """
    with canvas(path, 6.2, 5.6) as figure:
        axes = figure.add_subplot()
        bar = figure.colorbar(_draw_process(axes, names, links, auto), ax=axes, shrink=0.6, extend="both")
        bar.set_label(f"partial correlation (numbers: lag, {step}s)")


def draw_graphs(
    path: Path,
    names: Sequence[str],
    panels: Mapping[str, tuple[pl.DataFrame, dict[str, float]] | str],
    step: str,
) -> None:
    """Draw process graphs of the same variables side by side.

    Parameters
    ----------
    path
        SVG to write.
    names
        Variables of every graph.
    panels
        For each title the links and the nodes' colours, as in `draw_graph`, or why there is no graph.
    step
        What one lag is, such as ``day``.
    """
    from textwrap import fill

    with canvas(path, 4.6 * len(panels) + 0.9, 4.9) as figure:
        row = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, panel) in zip(row, panels.items(), strict=True):
            axes.set_title(title, fontsize=10)
            if isinstance(panel, str):
                axes.text(0.5, 0.5, fill(panel, 44), ha="center", va="center", transform=axes.transAxes, fontsize=8)
                axes.axis("off")
            else:
                _draw_process(axes, names, *panel)
        bar = figure.colorbar(_colours(), ax=list(row), shrink=0.7, extend="both")
        bar.set_label(f"partial correlation (numbers: lag, {step}s)")


def _colours() -> ScalarMappable:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    return ScalarMappable(Normalize(-0.6, 0.6), "RdBu_r")


def _rgba(value: float) -> tuple[float, ...]:
    scale = _colours()
    return tuple(np.asarray(scale.cmap(scale.norm(np.asarray(value)))).tolist())


def _draw_process(axes: Axes, names: Sequence[str], links: pl.DataFrame, auto: Mapping[str, float]) -> ScalarMappable:
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / max(1, len(names))
    place = {name: np.array([np.cos(a), np.sin(a)]) for name, a in zip(names, angles, strict=True)}
    if "mark" not in links.columns:
        links = links.with_columns(mark=pl.when(pl.col("lag") > 0).then(pl.lit("-->")).otherwise(pl.lit("o-o")))
    # Lag 0 is a line of its own; an arrow has the colour of its strongest lag above 0.
    for lagged in (False, True):
        ranked = links.filter((pl.col("lag") > 0) == lagged).sort(pl.col("value").abs(), descending=True)
        for (source, target), rows in ranked.group_by("source", "target", maintain_order=True):
            value, mark = float(rows["value"][0]), str(rows["mark"][0])
            ends = place[str(source)], place[str(target)]
            start, stop = reversed(ends) if mark == "<--" else ends
            look = {
                "arrowstyle": "-|>" if mark in ("-->", "<--") else "-",
                "linestyle": "dashed" if mark == "x-x" else "solid",
                "linewidth": 1 + 6 * abs(value),
                "color": _rgba(value),
            }
            _edge(axes, start, stop, 0.16 if lagged else 0.0, rows["lag"].to_list(), look)
    for name, (x, y) in place.items():
        axes.scatter([x], [y], s=1500, color=[_rgba(auto.get(name, 0.0))], edgecolors="#444444", zorder=3)
        dark = abs(auto.get(name, 0.0)) > 0.4
        axes.text(x, y, name, ha="center", va="center", color="white" if dark else "black", zorder=4)
    axes.set(xlim=(-1.35, 1.35), ylim=(-1.3, 1.3), aspect="equal")
    axes.axis("off")
    return _colours()


def _edge(
    axes: Axes, start: np.ndarray, stop: np.ndarray, bend: float, lags: list[int], look: Mapping[str, Any]
) -> None:
    from matplotlib.patches import FancyArrowPatch

    patch = FancyArrowPatch(
        (float(start[0]), float(start[1])),
        (float(stop[0]), float(stop[1])),
        connectionstyle=f"arc3,rad={bend}",
        mutation_scale=14,
        shrinkA=20,
        shrinkB=20,
        zorder=1,
        **look,
    )
    axes.add_patch(patch)
    middle = (start + stop) / 2 + bend / 2 * np.array([stop[1] - start[1], start[0] - stop[0]])
    label = ",".join(str(lag) for lag in sorted(lags))
    axes.text(
        float(middle[0]),
        float(middle[1]),
        label,
        fontsize=7,
        ha="center",
        va="center",
        zorder=2,
        bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8},
    )


def draw_lag_functions(
    path: Path,
    names: Sequence[str],
    links: pl.DataFrame,
    step: str,
    colours: Mapping[str, str] | None = None,
) -> None:
    """Draw the partial correlation of every link against its lag, with 95 % intervals; filled where it was found.

    Parameters
    ----------
    path
        SVG to write.
    names
        Variables: row the source, column the target.
    links
        All tested links: source, target, lag, value, low, high, found; with colours, also level.
    step
        What one lag is, such as ``day``.
    colours
        A colour for each level; the levels' links stand beside each other. Without, the links are one group.
    """
    mirrored = links.filter((pl.col("lag") == 0) & (pl.col("source") != pl.col("target")))
    links = pl.concat([links, mirrored.rename({"source": "target", "target": "source"}).select(links.columns)])
    steps = int(links["lag"].max()) + 1  # type: ignore[arg-type]
    # All cells lie in one pair of axes, each shifted to its place: forty axes take ten times as long to draw.
    place = {name: number for number, name in enumerate(names)}
    with canvas(path, 1.25 * len(names) + 0.8, 1.0 * len(names) + (0.6 if colours is None else 0.9)) as figure:
        axes = figure.add_subplot()
        for r in range(len(names)):
            for c in range(len(names)):
                left = c * (steps + CELL_GAP)
                axes.hlines([-r * CELL_HEIGHT], left - 0.5, left + steps - 0.5, color=GRID, linewidth=0.8, zorder=0)
        if colours is None:
            _draw_points(axes, place, links, steps, 0.0, (SERIES_COLOURS[0], SERIES_COLOURS[2]))
        else:
            for number, (level, colour) in enumerate(colours.items()):
                beside = GROUP_SHIFT * (number - (len(colours) - 1) / 2)
                of_level = links.filter(pl.col("level") == level)
                _draw_points(axes, place, of_level, steps, beside, (colour, colour), label=level)
            figure.legend(loc="outside upper right", ncols=len(colours), frameon=False)
        for name, number in place.items():
            centre = number * (steps + CELL_GAP) + (steps - 1) / 2
            axes.text(centre, 1.15, f"→ {name}", ha="center", fontsize=9)
        for lag_shown in (0, steps - 1):
            axes.text(lag_shown, -len(names) * CELL_HEIGHT + 0.95, str(lag_shown), ha="center", va="top", fontsize=7)
        centres = [-number * CELL_HEIGHT for number in range(len(names))]
        axes.set_yticks(
            [centre + at for centre in centres for at in (-0.5, 0, 0.5)],
            [label for name in names for label in ("−0.5", f"{name}  0", "0.5")],
            fontsize=7,
        )
        axes.set_xticks([])
        axes.set(xlim=(-1.2, len(names) * (steps + CELL_GAP) - 1), ylim=(-len(names) * CELL_HEIGHT + 0.6, 1.5))
        axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
        axes.set_xlabel(f"lag ({step}s, 0 to {steps - 1} in each cell)", fontsize=8)
        axes.set_ylabel("partial correlation", fontsize=8)


def _draw_points(
    axes: Axes,
    place: Mapping[str, int],
    links: pl.DataFrame,
    steps: int,
    beside: float,
    colours: tuple[str, str],
    label: str | None = None,
) -> None:
    """Values with their intervals; the first colour for the links found, the second for bars and the others."""
    lag, value, low, high = (links[name].to_numpy() for name in ("lag", "value", "low", "high"))
    row = np.array([place[name] for name in links["source"]], np.int64)
    column = np.array([place[name] for name in links["target"]], np.int64)
    x = column * (steps + CELL_GAP) + lag + beside
    shift = -row * CELL_HEIGHT
    found = links["found"].to_numpy()
    axes.vlines(x, low + shift, high + shift, color=colours[1], linewidth=0.8)
    axes.scatter(x[found], (value + shift)[found], s=13, color=colours[0], zorder=2, label=label)
    axes.scatter(x[~found], (value + shift)[~found], s=10, facecolors="white", edgecolors=colours[1], zorder=2)
