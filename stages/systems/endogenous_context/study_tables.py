"""Tables, claims and the headline of the synthetic study, out of the counts of its series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from stages.metrics.intervals import bootstrap_interval
from stages.metrics.summary import Claim, Headline, Table
from stages.systems.endogenous_context.scores import means
from stages.systems.endogenous_context.study_config import COLLIDER, PROXY, RANDOM
from stages.systems.endogenous_context.tables import MAIN, METHODS

if TYPE_CHECKING:
    from pathlib import Path

SERIES_KEY = ["model", "persistence", "steps", "method"]
RANDOM_RATES = {
    "tpr": "TPR",
    "fpr": "FPR",
    "f1": "F1",
    "off_kept": "switched-off links kept",
    "oriented_right": "orientation precision",
}
APART_RATES = {"tpr_apart": "TPR", "fpr_apart": "FPR"}
EXAMPLE_RATES = {"false_collider": "false X – Y", "own": "Z → W where R is 1", "other": "Z → W where R is 0"}
CONTEXT_RATES = {
    "drivers_found": "drivers found",
    "governed_found": "governed variables found",
    "strangers": "others taken for adjacent, a series",
}
#: How far above alpha the false link of the collider example may come.
TOLERANCE = 0.02
BASELINES = ("masked", "pooled", "intersection")
Cell = str | float | int | bool | None


def random_scores(study: pl.DataFrame) -> pl.DataFrame:
    """Rates of each random system that every method could analyse, both contexts together: one row for each method."""
    counts = [name for name, kind in study.schema.items() if kind == pl.Int64 and name not in _LABELS]
    of_random = study.filter(pl.col("model") == RANDOM)
    series = ["seed", "model", "persistence", "steps", "repeat"]
    failed = of_random.filter(pl.col("failure").is_not_null()).select(series).unique()
    summed = (
        of_random.join(failed, on=series, how="anti")
        .group_by("seed", *SERIES_KEY, "repeat")
        .agg(pl.col(counts).sum())
        .sort("seed", *SERIES_KEY, "repeat")
    )
    return summed.with_columns(
        tpr=_ratio("hits", "true"),
        fpr=_ratio("false", "absent"),
        f1=2 * pl.col("hits") / (pl.col("hits") + pl.col("false") + pl.col("true")),
        off_kept=_ratio("off_kept", "off"),
        oriented_right=_ratio("right", "oriented"),
        tpr_apart=_ratio("hits_apart", "true_apart"),
        fpr_apart=_ratio("false_apart", "absent_apart"),
        drivers_found=_ratio("drivers_found", "drivers"),
        governed_found=_ratio("governed_found", "governed"),
    )


_LABELS = {"seed", "steps", "repeat", "variables", "samples"}


def example_scores(study: pl.DataFrame) -> pl.DataFrame:
    """Of each series of the collider example: share of contexts with the false link, and where Z -> W was found."""
    shown = study.filter((pl.col("model") != RANDOM) & pl.col("failure").is_null())
    return (
        shown.group_by("seed", *SERIES_KEY, "repeat")
        .agg(
            false_collider=pl.col("false_collider").mean(),
            own=pl.col("switched_link").filter(pl.col("level") == "1").first().cast(pl.Float64),
            other=pl.col("switched_link").filter(pl.col("level") == "0").first().cast(pl.Float64),
        )
        .sort("seed", *SERIES_KEY, "repeat")
    )


def example_means(study: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Means over series with intervals: model, persistence, steps, method, rate, mean, low, high, series."""
    return means(example_scores(study), SERIES_KEY, list(EXAMPLE_RATES), rng)


def study_tables(study: pl.DataFrame, examples: pl.DataFrame, alpha: float, rng: np.random.Generator) -> list[Table]:
    """The collider example, the random systems, the same apart from the context, and what B finds at it."""
    random = random_scores(study)
    failed = study.filter(pl.col("failure").is_not_null()).select("seed", *SERIES_KEY[:3], "repeat").n_unique()
    note = f" {failed} series left some method too few samples in a context and are left out for all." if failed else ""
    every = [*RANDOM_RATES, *APART_RATES, *CONTEXT_RATES]
    rates = means(random, SERIES_KEY, every, rng)
    of_b = rates.filter(pl.col("method") == "B")
    return [
        _table(
            "The collider example (simulated)",
            "X → R ← Y, and Z → W only where R is 1. A graph that joins X and Y is wrong: masking selects samples by "
            f"their common effect. One that has Z → W in both contexts is wrong, too. Level {alpha:g}; 95 % intervals "
            "over series. Proxy: R says whether a continuous variable is above a threshold." + note,
            examples,
            EXAMPLE_RATES,
        ),
        _table(
            "Random systems with an endogenous context (simulated)",
            "Adjacencies of both contexts, links to the own past left out; 95 % intervals over systems. Orientation "
            "precision: of the true links at lag 0 that were oriented, those that point the right way." + note,
            rates,
            RANDOM_RATES,
        ),
        _table(
            "The same, pairs without an end at the context",
            "Only pairs in which neither variable drives the context or is governed by it: here no link changes.",
            rates,
            APART_RATES,
        ),
        _table(
            "What B finds at the context (simulated)",
            "Links at R by a mixed test on pooled data: variables that drive it, variables whose mechanism it changes.",
            of_b,
            CONTEXT_RATES,
        ),
    ]


def study_claims(study: pl.DataFrame, examples: pl.DataFrame, alpha: float, rng: np.random.Generator) -> list[Claim]:
    """Whether what the method claims shows on systems whose graphs are known."""
    worst = (
        examples.filter((pl.col("method") == MAIN) & (pl.col("rate") == "false_collider"))
        .sort("mean")
        .row(-1, named=True)
    )
    masked = (
        examples.filter((pl.col("method") == "masked") & (pl.col("rate") == "false_collider"))
        .sort("mean")
        .row(-1, named=True)
    )
    own, other = (examples.filter((pl.col("method") == MAIN) & (pl.col("rate") == rate)) for rate in ("own", "other"))
    apart = own.join(other, on=["model", "persistence", "steps"], suffix="_other").filter(
        pl.col("low").fill_null(pl.col("mean")) <= pl.col("high_other").fill_null(pl.col("mean_other"))
    )
    said = [
        Claim(
            claim=f"Causes of the context stay apart: A's false X – Y at most alpha + {TOLERANCE:.0%}, at every "
            "persistence and with a proxy (simulated)",
            verdict="shown" if worst["mean"] <= alpha + TOLERANCE else "not shown",
            evidence=f"A, largest: {_where(worst)} {_interval(worst)}; "
            f"masking, largest: {_where(masked)} {_interval(masked)}",
        ),
        Claim(
            claim="A finds Z → W in its own context, and not in the other (simulated)",
            verdict="not shown" if apart.height else "shown",
            evidence="; ".join(
                f"{_where(row)} own {_interval(row)}, other {_interval(row, '_other')}"
                for row in own.join(other, on=["model", "persistence", "steps"], suffix="_other").iter_rows(named=True)
            ),
        ),
    ]
    random = random_scores(study)
    for words, baseline, rate in (
        ("A has fewer false links than masking", "masked", "fpr"),
        (f"A finds no fewer links than masking, within {TOLERANCE:.0%}", "masked", "tpr"),
        ("A finds more links than pooled and masked graphs have in common", "intersection", "tpr"),
    ):
        mean, low, high = _difference(random, MAIN, baseline, rate, rng)
        shown = high < 0 if rate == "fpr" else low > 0 if baseline == "intersection" else low >= -TOLERANCE
        said.append(
            Claim(
                claim=f"{words} (random systems, simulated)",
                verdict="shown" if shown else "not shown",
                evidence=f"{rate.upper()} difference over the same series: {mean:+.3f} [{low:+.3f}, {high:+.3f}]",
            )
        )
    return said


def study_headline(study: pl.DataFrame, seeds: int, rng: np.random.Generator) -> Headline:
    """F1 of the graphs of both contexts over random systems, beside the best baseline on the same series."""
    random = random_scores(study)
    by_method = {method: random.filter(pl.col("method") == method)["f1"].to_numpy() for method in METHODS}
    value, low, high = bootstrap_interval(by_method[MAIN], rng)
    found = {method: float(np.nanmean(by_method[method])) for method in BASELINES}
    best = max(found, key=lambda method: found[method])
    series = random.select("seed", "steps", "repeat").unique().height
    return Headline(
        metric="F1 of the graph of each context, random systems with an endogenous context",
        unit="1",
        value=value,
        low=None if np.isnan(low) else low,
        high=None if np.isnan(high) else high,
        baseline=f"{METHODS[best]}, the best of three, same series and level",
        baseline_value=found[best],
        records=series,
        groups=series,
        split_unit="simulated series",
        seeds=seeds,
        simulated=True,
    )


def study_figures(study: pl.DataFrame, examples: pl.DataFrame) -> dict[str, Any]:
    """Flat figures for ``dvc metrics``."""
    random = random_scores(study)
    graphs = {
        method: {rate: random.filter(pl.col("method") == method)[rate].mean() for rate in RANDOM_RATES}
        for method in METHODS
    }
    false = examples.filter(pl.col("rate") == "false_collider")
    worst = {method: false.filter(pl.col("method") == method)["mean"].max() for method in METHODS}
    return {"random_systems": graphs, "false_collider_largest": worst}


def draw_examples(path: Path, examples: pl.DataFrame, alpha: float) -> None:
    """Draw the false link of the collider example over the persistence of its context, a line a method."""
    from stages.metrics.canvas import GRID, canvas

    colours = {"A": "#1b6ca8", "B": "#4fa3d1", "intersection": "#8a8a8a", "masked": "#c1502e", "pooled": "#3a3a3a"}
    with canvas(path, 6.4, 3.0) as figure:
        axes = figure.subplots()
        axes.axhline(alpha, color="#3a3a3a", linewidth=0.8, linestyle=":")
        axes.annotate(f"alpha {alpha:g}", (1.0, alpha), xytext=(2, 2), textcoords="offset points", fontsize=7)
        false = examples.filter((pl.col("rate") == "false_collider") & (pl.col("model") == COLLIDER))
        places = {value: place for place, value in enumerate(sorted(false["persistence"].unique()))}
        for number, (method, name) in enumerate(METHODS.items()):
            of_method = false.filter(pl.col("method") == method).sort("persistence")
            x = [places[value] + 0.06 * (number - 2) for value in of_method["persistence"]]
            axes.plot(x, of_method["mean"], "o-", color=colours[method], markersize=4, linewidth=1.2, label=name)
            low, high = (of_method[side].fill_null(of_method["mean"]) for side in ("low", "high"))
            axes.vlines(x, low, high, color=colours[method], linewidth=1)
        axes.set_xticks(list(places.values()), [f"{value:g}" for value in places])
        axes.set(xlabel="persistence of the context", ylabel="share of graphs with X – Y", ylim=(-0.02, 1.02))
        axes.grid(axis="y", color=GRID, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False)


def _difference(
    random: pl.DataFrame, method: str, baseline: str, rate: str, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Mean difference of a rate over the series that both methods could analyse, with its interval."""
    key = ["seed", "persistence", "steps", "repeat"]
    one, other = (random.filter(pl.col("method") == name).select(*key, rate) for name in (method, baseline))
    both = one.join(other, on=key, suffix="_other")
    mean, low, high = bootstrap_interval((both[rate] - both[f"{rate}_other"]).to_numpy().astype(float), rng)
    return mean, mean if np.isnan(low) else low, mean if np.isnan(high) else high


def _table(title: str, caption: str, rates: pl.DataFrame, columns: dict[str, str]) -> Table:
    """A row for each kind of series and method, three cells a rate."""
    rows: list[list[Cell]] = []
    order = {method: place for place, method in enumerate(METHODS)}
    groups = rates.select(SERIES_KEY).unique().rows()
    for model, persistence, steps, method in sorted(groups, key=lambda group: (*group[:3], order[group[3]])):
        here = rates.filter(
            (pl.col("model") == model)
            & (pl.col("persistence") == persistence)
            & (pl.col("steps") == steps)
            & (pl.col("method") == method)
        )
        by_rate = {row["rate"]: row for row in here.iter_rows(named=True)}
        series = max(row["series"] for row in by_rate.values())
        cells: list[Cell] = [model, persistence, steps, METHODS[method], series]
        for rate in columns:
            cells += [by_rate[rate][name] for name in ("mean", "low", "high")]
        rows.append(cells)
    heads = [head for name in columns.values() for head in (name, "low", "high")]
    return Table(
        title=title,
        caption=caption,
        columns=["systems", "persistence", "steps", "method", "series", *_different(heads)],
        rows=rows,
    )


def _different(heads: list[str]) -> list[str]:
    """Names of the bounds with that of their rate."""
    named, last = [], ""
    for head in heads:
        last = last if head in ("low", "high") else head
        named.append(f"{last} {head}" if head in ("low", "high") else head)
    return named


def _where(row: dict[str, Any]) -> str:
    return "proxy" if row["model"] == PROXY else f"persistence {row['persistence']:g}"


def _interval(row: dict[str, Any], suffix: str = "") -> str:
    low, high = row[f"low{suffix}"], row[f"high{suffix}"]
    mean = row[f"mean{suffix}"]
    return f"{mean:.3f}" if low is None else f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def _ratio(numerator: str, denominator: str) -> pl.Expr:
    return pl.when(pl.col(denominator) > 0).then(pl.col(numerator) / pl.col(denominator))
