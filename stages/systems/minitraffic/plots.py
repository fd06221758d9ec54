"""Pictures of errors: by step ahead, by share, by time of day."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stages.metrics.canvas import GRID, canvas
from stages.systems.minitraffic.comparisons import Comparison, percent
from stages.systems.minitraffic.scores_by_block import PERIODS
from stages.systems.minitraffic.settings import ARMS, BASELINES, MAIN, REFERENCE
from stages.systems.minitraffic.tables import bounds, in_unit, shown_arms

#: One colour an arm in every picture.
COLOURS = {
    "minitraffic": "#1b6ca8",
    "scratch": "#c1502e",
    "last_value": "#6b6b6b",
    "zero_shot": "#4aa3a3",
    "historical_average": "#8a5fa8",
    "ridge": "#7a9e2e",
    "road_ridge": "#3f8f4f",
    "dlinear": "#b8860b",
}
OTHER = "#a8436b"
FAR = 1.3  # an arm this much worse than the last value would squeeze all others together


def colour_of(arm: str) -> str:
    """Colour of an arm."""
    return COLOURS.get(arm, OTHER)


def draw_horizons(path: Path, found: Comparison, key: str, share: float) -> None:
    """Draw the MAE by step ahead with intervals."""
    target = found.tested[key]
    leads = np.arange(1, target.horizon + 1)
    arms = shown_arms(found, key, share)
    with canvas(path, 6.4, 3.2) as figure:
        axes = figure.subplots()
        for place, arm in enumerate(arms):
            estimates = [bounds(found, key, share, arm, "horizon", int(lead)) for lead in leads]
            x = leads + _aside(place, len(arms), 0.07)
            _with_intervals(axes, x, estimates, arm)
        minutes = [f"{lead * target.step_minutes:g}" for lead in leads]
        axes.set_xticks(leads, minutes)
        axes.set(xlabel="minutes ahead", ylabel=f"MAE{in_unit(target)}")
        _finish(figure, axes)


def draw_shares(path: Path, found: Comparison, key: str, shares: list[float]) -> None:
    """Draw the MAE against the share that was learnt from, on a logarithmic axis, with intervals."""
    target = found.tested[key]
    some = set(shown_arms(found, key, min(shares))) | set(shown_arms(found, key, max(shares))) | {"zero_shot"}
    arms = [arm for arm in target.arms if arm in some]
    with canvas(path, 6.4, 3.4) as figure:
        axes = figure.subplots()
        for place, arm in enumerate(arms):
            estimates = [found.estimate(key, share, arm, "mae") for share in shares]
            x = np.array(shares) * np.exp(_aside(place, len(arms), 0.06))
            _with_intervals(axes, x, estimates, arm)
        axes.set_xscale("log")
        axes.set_xticks(shares, [percent(share) for share in shares])
        axes.minorticks_off()
        axes.set(xlabel="share of the training steps learnt from", ylabel=f"MAE{in_unit(target)}")
        _finish(figure, axes)


def draw_periods(path: Path, found: Comparison, key: str, share: float) -> None:
    """Draw the MAE by part of the day with intervals."""
    target = found.tested[key]
    places = found.errors.members(key, share, MAIN, "period", target.granularity)
    arms = shown_arms(found, key, share)
    with canvas(path, 6.4, 3.0) as figure:
        axes = figure.subplots()
        for place, arm in enumerate(arms):
            estimates = [bounds(found, key, share, arm, "period", period) for period in places]
            _with_intervals(axes, np.arange(len(places)) + _aside(place, len(arms), 0.12), estimates, arm, line="")
        names = list(PERIODS)
        axes.set_xticks(range(len(places)), [names[period].replace(" (", "\n(") for period in places])
        axes.set(ylabel=f"MAE{in_unit(target)}", ylim=(0, None), xlim=(-0.5, len(places) - 0.5))
        _finish(figure, axes)


def comparable(found: Comparison, key: str, share: float) -> tuple[list[str], list[str]]:
    """Arms that stand beside MiniTraffic on one axis, and those whose error is too large for it."""
    most = FAR * found.value(key, share, REFERENCE, "mae")
    arms = [arm for arm in found.tested[key].arms if arm != MAIN]
    near = [arm for arm in arms if found.value(key, share, arm, "mae") <= most]
    return near, [arm for arm in arms if arm not in near]


def draw_differences(path: Path, found: Comparison, key: str, share: float) -> None:
    """Draw MiniTraffic's MAE less that of every other comparable arm, with intervals."""
    target = found.tested[key]
    arms, _ = comparable(found, key, share)
    with canvas(path, 7.2, 0.9 + 0.3 * len(arms)) as figure:
        axes = figure.subplots()
        for row, arm in enumerate(reversed(arms)):
            (value, low, high), _ = found.difference(key, share, arm, "mae")
            colour = colour_of(MAIN) if arm in BASELINES or arm == "scratch" else OTHER
            if np.isfinite(low):
                axes.plot([low, high], [row, row], color=colour, linewidth=2)
            axes.plot([value], [row], "o", color=colour, markersize=4)
        axes.axvline(0, color="#444444", linewidth=0.8, zorder=0)
        axes.set_yticks(range(len(arms)), [ARMS[arm] for arm in reversed(arms)])
        axes.set(xlabel=f"MiniTraffic's MAE less the arm's{in_unit(target)}")
        axes.set_ylim(-0.6, len(arms) - 0.4)
        axes.spines[["top", "right"]].set_visible(False)


def _aside(place: int, count: int, step: float) -> float:
    """How far the marks of an arm stand aside, so that intervals do not cover each other."""
    return step * (place - (count - 1) / 2)


def _with_intervals(axes, x, estimates, arm: str, line: str = "-") -> None:  # type: ignore[no-untyped-def]
    for at, (_, low, high) in zip(x, estimates, strict=True):
        if np.isfinite(low):
            axes.plot([at, at], [low, high], color=colour_of(arm), linewidth=1.2, alpha=0.7)
    values = [estimate[0] for estimate in estimates]
    axes.plot(x, values, f"o{line}", color=colour_of(arm), markersize=4, linewidth=1.2, label=ARMS[arm])


def _finish(figure, axes) -> None:  # type: ignore[no-untyped-def]
    axes.grid(axis="y", color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2)
