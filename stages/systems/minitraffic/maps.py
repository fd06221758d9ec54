"""Pictures of places: speed over space and time in truth and forecast, and the learned graph.

Shape suffixes: T time, S sensor, E edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.metrics.canvas import canvas
from stages.systems.minitraffic.settings import ARMS

#: Colours of clusters, used again from the start where there are more.
CLUSTER_COLOURS = (
    *("#1b6ca8", "#c1502e", "#3f8f4f", "#8a5fa8", "#b8860b", "#4aa3a3", "#a8436b", "#6b6b6b"),
    *("#7a9e2e", "#2e4a7a", "#d08770", "#5e5346"),
)
MISSING = "#e6e6e6"


def corridor(sensors: pl.DataFrame) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
    """Order of the rows of a space-time map, and where each lane begins.

    Lanes stand one below the other, each along the roads in the order of the file; sensors without lanes stand in the
    order of the file.

    Parameters
    ----------
    sensors
        road, lane and position of each sensor.
    """
    if not sensors["lane"].count():
        return np.arange(sensors.height), []
    roads = {road: place for place, road in enumerate(sensors["road"].unique(maintain_order=True))}
    ordered = sensors.with_columns(along=pl.col("road").replace_strict(roads, return_dtype=pl.Int64)).sort(
        "lane", "along", "position", nulls_last=True
    )
    lanes = ordered["lane"].to_list()
    begins = [row for row in range(len(lanes)) if row == 0 or lanes[row] != lanes[row - 1]]
    return ordered["position"].to_numpy().astype(np.int64), [
        (row, "no lane" if lanes[row] is None else f"lane {lanes[row]}") for row in begins
    ]


def draw_space_time(
    path: Path,
    truth_TS: NDArray[np.float32],
    forecasts: Mapping[str, NDArray[np.float32]],
    sensors: pl.DataFrame,
    *,
    hours_T: NDArray[np.float64],
    variable: str,
    unit: str,
) -> None:
    """Draw one day of all sensors: the truth, and forecasts of the same steps below it.

    Parameters
    ----------
    path
        SVG to write.
    truth_TS
        Values of the day, NaN where missing, shape (step, sensor).
    forecasts
        Arm -> its forecasts, same shape.
    sensors
        road, lane and position of each sensor.
    hours_T
        Hour of each step, ascending.
    variable, unit
        What the colours mean. Low speed, and high flow or occupancy, are red.
    """
    order, lanes = corridor(sensors)
    pictures = {"observed": truth_TS} | {ARMS[arm]: values for arm, values in forecasts.items()}
    known = truth_TS[np.isfinite(truth_TS)]
    low, high = np.quantile(known, [0.01, 0.99]) if known.size else (0.0, 1.0)
    step = float(hours_T[1] - hours_T[0]) if len(hours_T) > 1 else 1.0
    extent = (float(hours_T[0]), float(hours_T[-1]) + step, len(order) - 0.5, -0.5)
    with canvas(path, 8.0, 0.5 + 1.75 * len(pictures)) as figure:
        grid = figure.subplots(len(pictures), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, values_TS) in zip(grid, pictures.items(), strict=True):
            axes.set_facecolor(MISSING)
            image = axes.imshow(
                np.ma.masked_invalid(values_TS[:, order].T),
                aspect="auto",
                interpolation="nearest",
                extent=extent,
                cmap="RdYlBu" if variable == "speed" else "RdYlBu_r",
                vmin=low,
                vmax=high,
            )
            for row, _ in lanes[1:]:
                axes.axhline(row - 0.5, color="white", linewidth=1)
            ends = [row for row, _ in lanes[1:]] + [len(order)]
            middle = [(row + end - 1) / 2 for (row, _), end in zip(lanes, ends, strict=False)]
            axes.set_yticks(middle, [label for _, label in lanes])
            axes.tick_params(axis="y", length=0)
            axes.set_title(name, fontsize=9, loc="left")
            if not lanes:
                axes.set_ylabel("sensors", fontsize=8)
        grid[-1].set_xlabel("hour of the day, local time" if hours_T[0] < 24 else "hours")
        figure.colorbar(image, ax=list(grid), shrink=0.6, label=f"{variable}, {unit}" if unit else variable)


def layout(sensors: pl.DataFrame, cluster_S: NDArray[np.int64]) -> tuple[NDArray[np.float64], str]:
    """Where each sensor is drawn, shape (sensor, 2), and what kind of drawing that is.

    A grid of roads and lanes; else a map, where all coordinates are known; else a circle in the order of the clusters.
    """
    if sensors["lane"].count() == sensors.height:
        roads = {road: place for place, road in enumerate(sensors["road"].unique(maintain_order=True))}
        along = [roads[road] for road in sensors["road"]]
        return np.column_stack([along, sensors["lane"].to_numpy()]).astype(np.float64), "grid"
    where = sensors.select("longitude", "latitude")
    if not where.null_count().sum_horizontal().item():
        return where.to_numpy().astype(np.float64), "map"
    place_S = np.empty(len(cluster_S))
    place_S[np.lexsort((np.arange(len(cluster_S)), cluster_S))] = np.arange(len(cluster_S))
    angle_S = 2 * np.pi * place_S / len(cluster_S)
    return np.column_stack([np.cos(angle_S), np.sin(angle_S)]), "circle"


def draw_graph(
    path: Path, sensors: pl.DataFrame, cluster_S: NDArray[np.int64], edges: Sequence[tuple[int, int]]
) -> None:
    """Draw sensors coloured by cluster, and a line from each to its neighbours.

    Parameters
    ----------
    path
        SVG to write.
    sensors
        road, lane, latitude and longitude of each sensor.
    cluster_S
        Cluster of each sensor.
    edges
        Positions of a sensor and of a neighbour.
    """
    at_S2, kind = layout(sensors, cluster_S)
    size = (7.6, 3.4) if kind == "grid" else (5.6, 5.0)
    with canvas(path, *size) as figure:
        axes = figure.subplots()
        _draw_edges(axes, at_S2, edges, [_colour(cluster_S[source]) for source, _ in edges], kind)
        for cluster in np.unique(cluster_S):
            mine = at_S2[cluster_S == cluster]
            label = f"cluster {cluster + 1}: {len(mine)}"
            axes.plot(mine[:, 0], mine[:, 1], "o", color=_colour(cluster), markersize=7 if kind == "grid" else 4,
                      markeredgecolor="white", markeredgewidth=0.6, label=label, zorder=3)  # fmt: skip
        axes.spines[:].set_visible(False)
        if kind == "grid":
            roads = sensors["road"].unique(maintain_order=True).to_list()
            axes.set_xticks(range(len(roads)), [str(road) for road in roads], fontsize=8,
                            rotation=90 if max(len(str(road)) for road in roads) > 4 else 0)  # fmt: skip
            lanes = sorted(sensors["lane"].unique())
            axes.set_yticks(lanes, [f"lane {lane}" for lane in lanes])
            axes.set_xlabel("road, in the order of the file")
            axes.tick_params(length=0)
            axes.margins(0.06, 0.18)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_aspect("equal" if kind == "circle" else "auto")
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=4)


def _colour(cluster: int) -> str:
    return CLUSTER_COLOURS[int(cluster) % len(CLUSTER_COLOURS)]


def _draw_edges(
    axes: Any, at_S2: NDArray[np.float64], edges: Sequence[tuple[int, int]], colours: Sequence[str], kind: str
) -> None:
    """Straight lines; on a grid bent ones, so that sensors in one row do not hide each other's edges."""
    from matplotlib.collections import LineCollection

    part = np.linspace(0, 1, 9 if kind == "grid" else 2)[:, None]
    lines = []
    for source, target in edges:
        start, end = at_S2[source], at_S2[target]
        aside = np.array([end[1] - start[1], start[0] - end[0]]) * (0.12 if kind == "grid" else 0.0)
        lines.append(start + part * (end - start) + 4 * part * (1 - part) * aside)
    alpha = 0.4 if kind == "grid" else 0.2
    axes.add_collection(LineCollection(lines, colors=list(colours), alpha=alpha, linewidths=0.9, zorder=1))
