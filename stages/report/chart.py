"""Where the marks of an estimate, its interval and its baseline lie on an axis; the template draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stages.metrics.summary import Headline
from stages.report.figures import decimals_for, number, ticks

MARGIN = 0.12  # of the range, on both sides


@dataclass(frozen=True)
class Tick:
    """A label on the axis; ``at`` is a percentage of its length."""

    at: float
    label: str


@dataclass(frozen=True)
class Chart:
    """Positions in percent of the width, so that lines stretch with the page and the text keeps its size."""

    value: float | None
    low: float | None
    high: float | None
    baseline: float | None
    ticks: tuple[Tick, ...]


def chart_of(headline: Headline) -> Chart | None:
    """Positions for a headline; None where nothing is defined."""
    known = [
        number
        for number in (headline.value, headline.low, headline.high, headline.baseline_value)
        if number is not None and math.isfinite(number)
    ]
    if not known:
        return None
    low, high = min(known), max(known)
    margin = (high - low) * MARGIN or abs(high) * MARGIN or 1.0
    start, end = low - margin, high + margin
    if low >= 0:
        start = max(start, 0.0)  # no axis of a length or a share begins below zero

    def at(position: float | None) -> float | None:
        return None if position is None else round(100 * (position - start) / (end - start), 2)

    marks = ticks(start, end)
    step = marks[1] - marks[0] if len(marks) > 1 else abs(marks[0]) if marks else 1.0
    decimals = decimals_for(step, significant=1)
    if not math.isclose(step * 10**decimals, round(step * 10**decimals)):
        decimals += 1  # steps of 0.25
    labels = tuple(Tick(position, number(mark, decimals)) for mark in marks if (position := at(mark)) is not None)
    return Chart(at(headline.value), at(headline.low), at(headline.high), at(headline.baseline_value), labels)
