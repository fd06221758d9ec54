"""The part of metrics.json that is the same for every system; the report's overview is made of nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from stages import artifacts
from stages.params import Config

Verdict = Literal["shown", "not shown", "not tested"]


class Headline(Config):
    """The one figure of a system, with what is needed to judge it.

    ``low`` and ``high`` bound the 95 % interval; ``groups`` is what was resampled for it, ``split_unit`` what never
    straddled training and test; ``baseline`` names the baseline with the same budget.
    """

    metric: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    baseline: str
    baseline_value: float | None
    records: int
    groups: int
    split_unit: str
    seeds: int
    simulated: bool


class Claim(Config):
    """One claim, whether it showed, and the figures that say so."""

    claim: str
    verdict: Verdict
    evidence: str


class Table(Config):
    """A table of the report: rows of cells under named columns (units in the names)."""

    title: str
    caption: str
    columns: list[str]
    rows: list[list[str | float | int | bool | None]]


class Plot(Config):
    """A picture of the report: a file in plots/ beside metrics.json; the page of results shows those that say so."""

    file: str
    title: str
    caption: str
    on_results_page: bool = False


class Summary(Config):
    """What a system's metrics.json holds."""

    system: str
    title: str
    domain: str
    headline: Headline
    claims: list[Claim]
    tables: list[Table]
    plots: list[Plot]
    #: Flat figures for ``dvc metrics show`` and ``dvc metrics diff``.
    figures: dict[str, Any]
    citations: list[str]


def round_figures(value: Any, digits: int = 6) -> Any:
    """Round every float of a nested structure to significant digits, so that machines agree on the bytes."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: round_figures(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [round_figures(item, digits) for item in value]
    return value


def write_summary(folder: Path, summary: Summary) -> None:
    """Write metrics.json into the folder of an evaluation."""
    artifacts.write_json(folder / "metrics.json", round_figures(summary.model_dump()))


def read_summary(folder: Path) -> Summary:
    """Read and check the metrics.json of an evaluation."""
    return Summary.model_validate(artifacts.read_json(folder / "metrics.json"))
