"""Pictures of a tower's causal graph, of its lag functions, and of how well known graphs are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERIES_COLOURS = ("#1b6ca8", "#c1502e", "#6b6b6b")
GRID = "#d9d9d9"
#: Cells of the lag functions: empty steps between two, and height in units of partial correlation.
CELL_GAP, CELL_HEIGHT = 2, 2.1


@contextmanager
def canvas(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure of a size in inches that is saved as SVG; equal figures give equal bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "svg.hashsalt": "braid",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw_graph(path: Path, names: Sequence[str], links: pl.DataFrame, auto: dict[str, float], step: str) -> None:
    """Draw a process graph: variables on a circle, an arrow for lagged links, a line for a link at lag 0.

    Parameters
    ----------
    path
        SVG to write.
    names
        Variables of the graph.
    links
        The links found: source, target, lag, value; lag 0 once a pair, no variable with itself.
    auto
        Partial correlation of each variable with its own past, for the colour of its node.
    step
        What one lag is, such as ``day``.
    """
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours, scale = mpl.colormaps["RdBu_r"], Normalize(-0.6, 0.6)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / max(1, len(names))
    place = {name: np.array([np.cos(a), np.sin(a)]) for name, a in zip(names, angles, strict=True)}
    with canvas(path, 6.2, 5.6) as figure:
        axes = figure.add_subplot()
        # Lag 0 is a plain line of its own; an arrow has the colour of its strongest lag above 0.
        for kind in (pl.col("lag") == 0, pl.col("lag") > 0):
            ranked = links.filter(kind).sort(pl.col("value").abs(), descending=True)
            for (source, target), rows in ranked.group_by("source", "target", maintain_order=True):
                value, lags = float(rows["value"][0]), rows["lag"].to_list()
                _edge(axes, place[str(source)], place[str(target)], colours(scale(value)), abs(value), lags)
        for name, (x, y) in place.items():
            axes.scatter([x], [y], s=1500, color=[colours(scale(auto.get(name, 0.0)))], edgecolors="#444444", zorder=3)
            dark = abs(auto.get(name, 0.0)) > 0.4
            axes.text(x, y, name, ha="center", va="center", color="white" if dark else "black", zorder=4)
        axes.set(xlim=(-1.35, 1.35), ylim=(-1.3, 1.3), aspect="equal")
        axes.axis("off")
        bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, shrink=0.6, extend="both")
        bar.set_label(f"partial correlation (numbers: lag, {step}s)")


def _edge(
    axes: Axes, start: np.ndarray, stop: np.ndarray, colour: tuple[float, ...], strength: float, lags: list[int]
) -> None:
    from matplotlib.patches import FancyArrowPatch

    directed = any(lag > 0 for lag in lags)
    bend = 0.16 if directed else 0.0
    patch = FancyArrowPatch(
        (float(start[0]), float(start[1])),
        (float(stop[0]), float(stop[1])),
        arrowstyle="-|>" if directed else "-",
        connectionstyle=f"arc3,rad={bend}",
        mutation_scale=14,
        shrinkA=20,
        shrinkB=20,
        linewidth=1 + 6 * strength,
        color=colour,
        zorder=1,
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


def draw_lag_functions(path: Path, names: Sequence[str], links: pl.DataFrame, alpha: float, step: str) -> None:
    """Draw the partial correlation of every link against its lag, with 95 % intervals; filled where q is at most alpha.

    Parameters
    ----------
    path
        SVG to write.
    names
        Variables: row the source, column the target.
    links
        All tested links: source, target, lag, value, low, high, q; a pair at lag 0 once.
    alpha
        Level of q.
    step
        What one lag is, such as ``day``.
    """
    mirrored = links.filter((pl.col("lag") == 0) & (pl.col("source") != pl.col("target")))
    links = pl.concat([links, mirrored.rename({"source": "target", "target": "source"}).select(links.columns)])
    steps = int(links["lag"].max()) + 1  # type: ignore[arg-type]
    # All cells lie in one pair of axes, each shifted to its place: forty axes take ten times as long to draw.
    place = {name: number for number, name in enumerate(names)}
    lag, value, low, high = (links[name].to_numpy() for name in ("lag", "value", "low", "high"))
    row = np.array([place[name] for name in links["source"]])
    column = np.array([place[name] for name in links["target"]])
    x = column * (steps + CELL_GAP) + lag
    shift = -row * CELL_HEIGHT
    found = links["q"].to_numpy() <= alpha
    with canvas(path, 1.25 * len(names) + 0.8, 1.0 * len(names) + 0.6) as figure:
        axes = figure.add_subplot()
        for r in range(len(names)):
            for c in range(len(names)):
                left = c * (steps + CELL_GAP)
                axes.hlines([-r * CELL_HEIGHT], left - 0.5, left + steps - 0.5, color=GRID, linewidth=0.8, zorder=0)
        axes.vlines(x, low + shift, high + shift, color=SERIES_COLOURS[2], linewidth=0.8)
        axes.scatter(x[found], (value + shift)[found], s=13, color=SERIES_COLOURS[0], zorder=2)
        axes.scatter(
            x[~found], (value + shift)[~found], s=10, facecolors="white", edgecolors=SERIES_COLOURS[2], zorder=2
        )
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


def draw_known_graphs(path: Path, rates: pl.DataFrame, alpha: float) -> None:
    """Draw true- and false-positive rates with 95 % intervals, a panel a twin and kind of link.

    Parameters
    ----------
    path
        SVG to write.
    rates
        twin, kind, method, rate (``tpr`` or ``fpr``), mean, low, high.
    alpha
        Nominal level, drawn as a line.
    """
    panels = rates.select("twin", "kind").unique().sort("twin", "kind", descending=[True, True]).rows()
    with canvas(path, 7.6, 1.0 + 1.05 * len(panels)) as figure:
        grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
        for (twin, kind), axes in zip(panels, grid[:, 0], strict=True):
            methods = rates.filter((pl.col("twin") == twin) & (pl.col("kind") == kind))
            names = sorted(methods["method"].unique())
            for place, (rate, colour) in enumerate(zip(("tpr", "fpr"), SERIES_COLOURS, strict=False)):
                rows = methods.filter(pl.col("rate") == rate)
                for row in rows.iter_rows(named=True):
                    if row["mean"] is None:
                        continue
                    y = names.index(row["method"]) + 0.16 * (place - 0.5)
                    axes.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=2)
                    axes.plot([row["mean"]], [y], "o", color=colour, markersize=4)
            axes.axvline(alpha, color=GRID, zorder=0)
            axes.set_yticks(range(len(names)), names)
            axes.set(xlim=(-0.02, 1.02), ylim=(-0.5, len(names) - 0.5))
            axes.set_title(f"{twin}, {kind} links", fontsize=9, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
        grid[-1, 0].set_xlabel(f"rate: true positives (blue), false positives (red); line at alpha = {alpha:g}")
