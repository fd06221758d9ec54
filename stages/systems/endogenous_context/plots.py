"""Pictures of a tower's regimes, of its evaporation in them, of which links hold where, and of the twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.metrics.canvas import GRID, SERIES_COLOURS, canvas
from stages.systems.endogenous_context.scores import RATES

#: The driest and the wettest regime; those between are drawn in shades between.
DRY, BETWEEN, WET = "#b5651d", ("#8f8a55", "#6f9a8d", "#9c8f6a"), "#1b6ca8"
#: Years of one row of a time series.
ROW_YEARS = 3
#: Classes of soil moisture whose median evaporation is drawn.
CLASSES = 12
RATE_NAMES = {"tpr": "true links found", "fpr": "false links found", "oriented_right": "oriented rightly"}


def regime_colours(levels: Sequence[str]) -> dict[str, str]:
    """A colour for each regime, brown the driest, blue the wettest."""
    between = [BETWEEN[k % len(BETWEEN)] for k in range(len(levels) - 2)]
    return dict(zip(levels, [DRY, *between, WET], strict=True))


def draw_regimes(path: Path, days: pl.DataFrame, levels: Sequence[str], thresholds: Sequence[float], unit: str) -> None:
    """Draw soil moisture over the years, the days of the season shaded by their regime.

    Parameters
    ----------
    path
        SVG to write.
    days
        One tower: time, season, level, SWC; NaN or null where missing.
    levels
        Names of the regimes.
    thresholds, unit
        Where soil moisture is cut, and its unit.
    """
    time, soil = days["time"].to_numpy(), days["SWC"].fill_null(np.nan).to_numpy()
    year = days["time"].dt.year().to_numpy()
    season, level = days["season"].to_numpy(), days["level"].fill_null("").to_numpy()
    years = np.unique(year[np.isfinite(soil)])
    rows = [years[start : start + ROW_YEARS] for start in range(0, len(years), ROW_YEARS)]
    low, high = np.nanmin(soil), np.nanmax(soil)
    with canvas(path, 8.6, 0.7 + 1.15 * len(rows)) as figure:
        grid = figure.subplots(len(rows), 1, sharey=True, squeeze=False)[:, 0]
        for axes, of_row in zip(grid, rows, strict=True):
            inside = np.isin(year, of_row)
            for name, colour in regime_colours(levels).items():
                here = inside & season & (level == name)
                axes.fill_between(
                    time[inside], 0, 1, where=here[inside], step="mid", color=colour, alpha=0.3, linewidth=0,
                    transform=axes.get_xaxis_transform(), label=name,
                )  # fmt: skip
            axes.plot(time[inside], soil[inside], color="#222222", linewidth=0.8)
            for threshold in thresholds:
                axes.axhline(threshold, color=SERIES_COLOURS[2], linewidth=0.7, linestyle="dashed")
            axes.set_xlim(np.datetime64(f"{of_row[0]}-01-01"), np.datetime64(f"{of_row[0] + ROW_YEARS}-01-01"))
            axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
            axes.spines[["top", "right"]].set_visible(False)
        grid[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(levels), frameon=False, fontsize=8)
        figure.supylabel(f"soil moisture ({unit})", fontsize=9)


def draw_evaporation(
    path: Path, days: pl.DataFrame, levels: Sequence[str], thresholds: Sequence[float], unit: str
) -> None:
    """Draw daily latent heat against soil moisture in the season, by regime, with the medians of classes.

    Parameters
    ----------
    path
        SVG to write.
    days
        One tower: season, level, SWC, LE; NaN or null where missing.
    levels
        Names of the regimes.
    thresholds, unit
        Where soil moisture is cut, and its unit.
    """
    shown = days.with_columns(pl.col("SWC", "LE").fill_nan(None)).filter(pl.col("season")).drop_nulls(["SWC", "LE"])
    with canvas(path, 5.6, 3.9) as figure:
        axes = figure.add_subplot()
        for name, colour in regime_colours(levels).items():
            of_level = shown.filter(pl.col("level") == name)
            axes.scatter(
                of_level["SWC"], of_level["LE"], s=7, color=colour, alpha=0.45, linewidths=0,
                label=f"{name}: {of_level.height} days",
            )  # fmt: skip
        for threshold in thresholds:
            axes.axvline(threshold, color=SERIES_COLOURS[2], linewidth=0.8, linestyle="dashed")
        soil, heat = shown["SWC"].to_numpy(), shown["LE"].to_numpy()
        if soil.size >= 2 * CLASSES:
            # Classes of equal numbers of days.
            parts = np.array_split(np.argsort(soil, kind="stable"), CLASSES)
            middle, quartiles = zip(
                *((np.median(soil[part]), np.quantile(heat[part], [0.25, 0.5, 0.75])) for part in parts), strict=True
            )
            lower, median, upper = np.array(quartiles).T
            axes.fill_between(middle, lower, upper, color="#222222", alpha=0.15, linewidth=0)
            axes.plot(middle, median, color="#222222", linewidth=1.6, label="median and quartiles")
        axes.set_xlabel(f"soil moisture ({unit})")
        axes.set_ylabel("latent heat (W m$^{-2}$)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)


def draw_where(path: Path, shared: pl.DataFrame, levels: Sequence[str], sites: Sequence[str]) -> None:
    """Draw which links hold where: a row a link, a column a tower and regime.

    The colour is the partial correlation, the size the share of the resamples that find the link. A disc is directed, a
    square is not; a ring is a tested link that was not found, and nothing a pair that was not measured. Links found
    nowhere are left out.

    Parameters
    ----------
    path
        SVG to write.
    shared
        What `scores.shared_links` returns.
    levels, sites
        The regimes, from the driest, and the towers.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    found = shared.filter("found")
    ranked = found.group_by("source", "target").len().sort(["len", "source", "target"], descending=[True, False, False])
    pairs = ranked.select("source", "target").rows()
    row_of = {pair: number for number, pair in enumerate(pairs)}
    column_of = {
        (site, level): s * (len(levels) + 0.6) + k for s, site in enumerate(sites) for k, level in enumerate(levels)
    }
    scale = ScalarMappable(Normalize(-0.6, 0.6), "RdBu_r")
    with canvas(path, 2.4 + 0.45 * len(column_of) + 0.3 * len(sites), 1.6 + 0.24 * max(1, len(pairs))) as figure:
        axes = figure.add_subplot()
        for row in shared.iter_rows(named=True):
            if (row["source"], row["target"]) not in row_of:
                continue
            x, y = column_of[row["site"], row["level"]], row_of[row["source"], row["target"]]
            if row["found"]:
                share = 1.0 if row["frequency"] is None else row["frequency"]
                colour = scale.cmap(scale.norm(np.asarray(row["value"])))
                marker = "o" if row["mark"] == "-->" else "s"
                size = 25 + 95 * share
                axes.scatter([x], [y], s=size, color=[colour], marker=marker, edgecolors="#444444", linewidths=0.6)
            else:
                axes.scatter([x], [y], s=9, facecolors="none", edgecolors=SERIES_COLOURS[2], linewidths=0.6)
        colours = regime_colours(levels)
        axes.set_xticks(list(column_of.values()), [level for _, level in column_of], rotation=90, fontsize=8)
        for tick, (_, level) in zip(axes.get_xticklabels(), column_of, strict=True):
            tick.set_color(colours[level])
        axes.set_yticks(range(len(pairs)), [f"{source} → {target}" for source, target in pairs], fontsize=8)
        for s, site in enumerate(sites):
            centre = s * (len(levels) + 0.6) + (len(levels) - 1) / 2
            axes.text(centre, -1.0, site, ha="center", va="bottom", fontsize=9)
        axes.set(xlim=(-0.7, max(column_of.values()) + 0.7), ylim=(max(1, len(pairs)) - 0.3, -1.0))
        axes.grid(axis="y", color=GRID, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        figure.colorbar(scale, ax=axes, shrink=0.5, extend="both").set_label("partial correlation")


def draw_twin(path: Path, rates: pl.DataFrame, methods: Mapping[str, str], levels: Sequence[str]) -> None:
    """Draw rates on the simulated bucket with 95 % intervals, a panel a rule and kind of link, a colour a regime.

    Parameters
    ----------
    path
        SVG to write.
    rates
        rule, method, level, kind, rate, mean, low, high.
    methods
        Method -> its name, from the top.
    levels
        Names of the regimes.
    """
    panels = rates.select("rule", "kind").unique().sort("rule", "kind", descending=[False, True]).rows()
    shown = [rate for rate in RATES if rates.filter((pl.col("rate") == rate) & pl.col("mean").is_not_null()).height]
    with canvas(path, 2.2 + 2.3 * len(shown), 0.9 + 1.35 * len(panels)) as figure:
        grid = figure.subplots(len(panels), len(shown), sharex=True, sharey=True, squeeze=False)
        for (rule, kind), row in zip(panels, grid, strict=True):
            for rate, axes in zip(shown, row, strict=True):
                here = (pl.col("rule") == rule) & (pl.col("kind") == kind) & (pl.col("rate") == rate)
                _draw_rates(axes, rates.filter(here), list(methods), regime_colours(levels))
                axes.set_title(f"{RATE_NAMES[rate]}, {kind}, {rule}", fontsize=8, loc="left")
                axes.set_yticks(range(len(methods)), list(methods.values()), fontsize=8)
                if not rates.filter(here & pl.col("mean").is_not_null()).height:
                    axes.set_visible(False)
        grid[0, 0].set(xlim=(-0.03, 1.03), ylim=(len(methods) - 0.5, -0.5))
        figure.supxlabel(", ".join(f"{level}: {_word(colour)}" for level, colour in regime_colours(levels).items()))


def _draw_rates(axes: Any, rates: pl.DataFrame, methods: list[str], colours: Mapping[str, str]) -> None:
    for number, (level, colour) in enumerate(colours.items()):
        for row in rates.filter((pl.col("level") == level) & pl.col("mean").is_not_null()).iter_rows(named=True):
            y = methods.index(row["method"]) + 0.2 * (number - (len(colours) - 1) / 2)
            if row["low"] is not None:
                axes.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=2)
            axes.plot([row["mean"]], [y], "o", color=colour, markersize=4)
    axes.grid(axis="x", color=GRID, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _word(colour: str) -> str:
    return {DRY: "brown", WET: "blue"}.get(colour, "between")
