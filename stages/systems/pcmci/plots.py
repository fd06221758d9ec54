"""Picture of how well known graphs are found."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stages.metrics.canvas import GRID, SERIES_COLOURS, canvas


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
