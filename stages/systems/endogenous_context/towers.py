"""All towers through all methods: the tables of a trained model.

Shape suffixes: T time on a regular clock.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from stages import artifacts
from stages.accepted.series_config import DOMAIN
from stages.accepted.tower_series import Tower, towers
from stages.causal.errors import CausalDataError
from stages.errors import DataError
from stages.runtime import progress
from stages.systems.endogenous_context.estimate import (
    METHODS,
    Attempt,
    Case,
    Draws,
    Estimate,
    resampling,
    stability,
    usable_case,
)
from stages.systems.endogenous_context.regimes import Regimes, occupancy, regimes_by_quantile

if TYPE_CHECKING:
    from stages.causal.processes import Processes
    from stages.systems.endogenous_context.train import Train

CONTEXT_VARIABLE = "SWC"
SERIES: dict[str, Any] = {
    **{"site": pl.String, "variables": pl.List(pl.String), "left_out": pl.List(pl.String), "days": pl.Int64},
    **{"resampled": pl.String, "unit": pl.String, "thresholds": pl.List(pl.Float64), "failure": pl.String},
}
ANALYSES: dict[str, Any] = {
    **{"site": pl.String, "method": pl.String, "level": pl.String, "samples": pl.Int64, "kept": pl.Float64},
    **{"adjacent": pl.List(pl.String), "failure": pl.String},
}
CONTEXT_LINKS = {
    **{"site": pl.String, "method": pl.String, "source": pl.String, "target": pl.String},
    **{"lag": pl.Int64, "mark": pl.String, "p": pl.Float64},
}
#: Resamples of one task.
CHUNK = 5
#: Measured means kept for the pictures.
SHOWN = ("SWC", "LE")


class Prepared(NamedTuple):
    """A tower whose regimes can be analysed."""

    tower: Tower
    regimes: Regimes
    case: Case


def tower_tables(train: Train, seed: int, spread: Processes) -> dict[str, pl.DataFrame]:
    """Estimate every tower.

    Returns
    -------
    dict
        series (a row a tower, with the reason where it has no regimes), regimes (occupancy by year), days (measured
        means with their regime), analyses (a row a tower, method and regime, with the error where there is no graph),
        links, context_links and bootstrap.

    Raises
    ------
    DataError
        No tower has a graph.
    """
    series, prepared = [], []
    for tower in towers(train.aggregation):
        row, ready = prepare(tower, train)
        series.append(row)
        prepared += [] if ready is None else [ready]
    attempts = [Attempt(ready.case, method, train.search) for ready in prepared for method in METHODS]
    done = list(progress(spread.map(Attempt.run, attempts), "graphs", total=len(attempts), unit="graphs"))
    found = {(task.case.site, task.method): estimate for task, estimate in zip(attempts, done, strict=True)}
    links = [
        estimate.links.select(pl.lit(site).alias("site"), pl.lit(method).alias("method"), pl.all())
        for (site, method), estimate in found.items()
        if estimate.links is not None
    ]
    if not links:
        reasons = [row["failure"] for row in series if row["failure"]] + [e.failure for e in done if e.failure]
        raise DataError(
            artifacts.ingested(DOMAIN),
            found=f"no tower with a graph of its regimes ({'; '.join(dict.fromkeys(reasons)) or 'no tower'})",
            expected="at least one tower to learn from",
            remedy="Name fewer variables, or a smaller min_days or min_samples, in params.yaml.",
        )
    return {
        "series": pl.DataFrame(series, schema=SERIES),
        "regimes": pl.concat(regime_table(ready) for ready in prepared),
        "days": pl.concat(day_table(ready) for ready in prepared),
        "analyses": pl.DataFrame(
            [row for ready in prepared for method in METHODS for row in analysis_rows(ready.case, method, found)],
            schema=ANALYSES,
        ),
        "links": pl.concat(links),
        "context_links": pl.DataFrame(
            [
                {"site": site, "method": method, **asdict(link)}
                for (site, method), estimate in found.items()
                for link in estimate.context_links
            ],
            schema=CONTEXT_LINKS,
        ),
        "bootstrap": bootstrap_table([ready.case for ready in prepared], found, train, seed, spread),
    }


def prepare(tower: Tower, train: Train) -> tuple[dict[str, Any], Prepared | None]:
    """The row of a tower in the table of series, and its case; none where it has no regimes."""
    series = tower.series(train)
    row: dict[str, Any] = {
        **{"site": tower.site, "variables": series.names, "days": series.days},
        **{"resampled": None, "unit": None, "thresholds": None, "failure": None},
        "left_out": [f"{variable}: {why}" for variable, why in series.dropped.items()],
    }
    if CONTEXT_VARIABLE not in series.names:
        why = series.dropped.get(CONTEXT_VARIABLE, "not among the variables")
        return row | {"failure": f"no regimes, {CONTEXT_VARIABLE} is {why}"}, None
    year_T = tower.dataset["time"].dt.year.to_numpy().astype(np.int64)
    soil = tower.dataset[CONTEXT_VARIABLE]
    soil_T = soil.to_numpy().astype(np.float64)
    try:
        regimes = regimes_by_quantile(
            soil_T,
            ~series.unused_T & np.isin(year_T, tower.training_Y),
            quantiles=train.context.quantiles,
            levels=train.context.levels,
            variable=CONTEXT_VARIABLE,
            unit=str(soil.attrs.get("units", "1")),
        )
    except CausalDataError as error:
        return row | {"failure": str(error)}, None
    case = Case(tower.site, series, regimes.classify(soil_T), regimes.levels, year_T, CONTEXT_VARIABLE)
    case = usable_case(case, train.search)
    row |= {
        "variables": case.series.names,
        "left_out": [f"{variable}: {why}" for variable, why in case.series.dropped.items()],
        "resampled": resampling(case, train.block),
        "unit": regimes.unit,
        "thresholds": regimes.threshold_K.tolist(),
    }
    if len(case.series.names) < 2:
        return row | {"failure": "fewer than two variables with common days"}, None
    return row, Prepared(tower, regimes, case)


def regime_table(ready: Prepared) -> pl.DataFrame:
    """Occupancy and length of each regime, by year and over all years, with its bounds."""
    case, regimes = ready.case, ready.regimes
    table = occupancy(case.level_T, case.year_T, ~case.series.unused_T, case.levels)
    bounds = [(level, *regimes.bounds(number)) for number, level in enumerate(case.levels)]
    named = pl.DataFrame(bounds, schema={"level": pl.String, "above": pl.Float64, "up_to": pl.Float64}, orient="row")
    return table.join(named, on="level", how="left", maintain_order="left").select(
        pl.lit(case.site).alias("site"), pl.all()
    )


def day_table(ready: Prepared) -> pl.DataFrame:
    """Measured soil moisture and evaporation of each day, whether it is in the season, and its regime."""
    dataset, case = ready.tower.dataset, ready.case
    shown = {
        name: dataset[name].to_numpy().astype(np.float64) if name in dataset else np.full(case.level_T.size, np.nan)
        for name in SHOWN
    }
    return pl.DataFrame(
        {
            "site": [case.site] * case.level_T.size,
            "time": dataset["time"].to_numpy().astype("datetime64[us]"),
            "season": ~case.series.unused_T,
            "level": [case.levels[k] if k >= 0 else None for k in case.level_T.tolist()],
            **shown,
        },
        schema_overrides={"level": pl.String},
    )


def analysis_rows(case: Case, method: str, found: dict[tuple[str, Any], Estimate]) -> list[dict[str, Any]]:
    """A row for each regime: its days, what the window mask keeps of them, and the error where there is no graph."""
    estimate = found[case.site, method]
    return [
        {
            **{"site": case.site, "method": method, "level": level},
            "samples": estimate.samples.get(level),
            "kept": estimate.kept.get(level),
            "adjacent": estimate.adjacent,
            "failure": estimate.failure,
        }
        for level in case.levels
    ]


def bootstrap_table(
    cases: list[Case], found: dict[tuple[str, Any], Estimate], train: Train, seed: int, spread: Processes
) -> pl.DataFrame:
    """Stability of the links of every tower and method that has a graph."""
    chunks = [range(start, min(start + CHUNK, train.resamples)) for start in range(0, train.resamples, CHUNK)]
    tasks = [
        Draws(case, method, train.search, seed, chunk, train.block)
        for case in cases
        for method in train.resampled
        if found[case.site, method].links is not None
        for chunk in chunks
    ]
    done = list(progress(spread.map(Draws.run, tasks), "resamples", total=len(tasks), unit=f"times {CHUNK} resamples"))
    parts: dict[tuple[str, str], list[Any]] = {}
    for task, part in zip(tasks, done, strict=True):
        parts.setdefault((task.case.site, task.method), []).append(part)
    by_site = {case.site: case for case in cases}
    label = {"site": pl.String, "method": pl.String, "level": pl.String, "source": pl.String, "target": pl.String}
    shares = dict.fromkeys(("frequency", "forward", "backward", "low", "high"), pl.Float64)
    schema = label | {"lag": pl.Int64} | shares | {"resamples": pl.Int64, "failed": pl.Int64}
    tables = [pl.DataFrame(schema=schema)]
    for (site, method), resamples in parts.items():
        table = stability(by_site[site], resamples)
        if table is not None:
            labelled = table.with_columns(site=pl.lit(site), method=pl.lit(method))
            tables.append(labelled.select(list(schema)).cast(pl.Schema(schema)))
    return pl.concat(tables)
