"""The tables, claims and figures of the evaluation of regimes, out of links and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from stages.metrics.summary import Claim, Table, Verdict
from stages.systems.endogenous_context.physics import EXPECTED, Expectation, judge
from stages.systems.endogenous_context.scores import cross_links

#: Method -> how the report names it. The first is the one that towers are read with.
METHODS = {
    "A": "A, persistence",
    "B": "B, sparsity",
    "intersection": "PCMCI+, intersection",
    "masked": "PCMCI+, masked",
    "pooled": "PCMCI+, pooled",
}
MAIN = "A"

Judged = dict[tuple[str, str, str], tuple[Verdict, str]]
Cell = str | float | int | bool | None


def link_table(links: pl.DataFrame, bootstrap: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """All tested links, with the share of the resamples that find each, and whether each is found.

    A link is found where the method's graph has an edge and its q is at most alpha. The estimates do not depend on the
    seed, so one seed's links stand for all; the resamples of all seeds count.
    """
    key = ["site", "method", "level", "source", "target", "lag"]
    shares = bootstrap.group_by(key).agg(
        *(pl.col(name).mean() for name in ("frequency", "forward", "backward")),
        pl.col("low").mean().alias("bootstrap_low"),
        pl.col("high").mean().alias("bootstrap_high"),
        pl.col("resamples", "failed").sum(),
    )
    one = links.filter(pl.col("seed") == links["seed"].min()).drop("seed")
    found = (pl.col("mark") != "") & (pl.col("q") <= alpha)
    return one.with_columns(found=found).join(shares, on=key, how="left").sort(key)


def judgements(links: pl.DataFrame, sites: Sequence[str], levels: Sequence[str], alpha: float) -> Judged:
    """Verdict and evidence of each expectation: by its link, the tower and the method."""
    return {
        (expectation.link, site, method): judge(
            expectation, links.filter((pl.col("site") == site) & (pl.col("method") == method)), levels, alpha
        )
        for expectation in EXPECTED
        for site in sites
        for method in METHODS
    }


def tower_claims(judged: Judged, sites: Sequence[str], levels: Sequence[str]) -> list[Claim]:
    """Whether each expectation shows at every tower that can be asked, by the main method."""
    said = []
    for expectation in EXPECTED:
        of_sites = {site: judged[expectation.link, site, MAIN] for site in sites}
        tested = [verdict for verdict, _ in of_sites.values() if verdict != "not tested"]
        overall: Verdict = "not tested"
        if tested:
            overall = "shown" if all(verdict == "shown" for verdict in tested) else "not shown"
        said.append(
            Claim(
                claim=f"{_expected(expectation, levels)}, at every tower that measures both ({tested.count('shown')} "
                f"of {len(tested)} show it)",
                verdict=overall,
                evidence=" | ".join(f"{site} {verdict} ({why})" for site, (verdict, why) in of_sites.items()),
            )
        )
    return said


def regimes_table(series: pl.DataFrame, regimes: pl.DataFrame, analyses: pl.DataFrame) -> Table:
    """The regimes of each tower: bounds, occupancy, persistence, and the days that can be used."""
    rows: list[list[Cell]] = []
    for tower in series.sort("site").iter_rows(named=True):
        left_out = "; ".join(tower["left_out"]) or "none"
        if tower["failure"]:
            rows.append([tower["site"], ", ".join(tower["variables"]), left_out, tower["failure"], *[None] * 8])
            continue
        of_site = regimes.filter((pl.col("site") == tower["site"]) & pl.col("year").is_null())
        for row in of_site.iter_rows(named=True):
            used = analyses.filter(
                (pl.col("site") == tower["site"]) & (pl.col("method") == MAIN) & (pl.col("level") == row["level"])
            ).row(0, named=True)
            bounds = [None if np.isinf(row[edge]) else row[edge] for edge in ("above", "up_to")]
            rows.append(
                [
                    *(tower["site"], ", ".join(tower["variables"]), left_out, row["level"], *bounds),
                    *(row["days"], row["occupancy"], row["spells"], row["mean_spell"]),
                    *(used["kept"], used["samples"]),
                ]
            )
    units = ", ".join(sorted({unit for unit in series["unit"].to_list() if unit})) or "1"
    return Table(
        title="Soil-moisture regimes",
        caption="Regimes by quantile of measured soil moisture in the season of the training years. Kept: share of a "
        "regime's days with that regime over the whole lag window, which is what persistence means here; the days used "
        "are those. A spell is a run of days of the season.",
        columns=[
            *("tower", "variables", "left out", "regime", f"SWC above ({units})", f"SWC up to ({units})"),
            *("days", "share of days", "spells", "mean spell (days)", "kept", "days used"),
        ],
        rows=rows,
    )


def assumptions_table(
    series: pl.DataFrame, analyses: pl.DataFrame, context_links: pl.DataFrame, levels: Sequence[str]
) -> Table:
    """Which of the two assumptions a tower supports: persistence of the regimes, few links at the context."""
    rows: list[list[Cell]] = []
    for site in analyses["site"].unique().sort():
        of_site = analyses.filter(pl.col("site") == site)
        of_main = of_site.filter(pl.col("method") == MAIN)
        kept: list[Cell] = [of_main.filter(pl.col("level") == level)["kept"].to_list()[0] for level in levels]
        sparse = of_site.filter((pl.col("method") == "B") & pl.col("failure").is_null())
        names = series.filter(pl.col("site") == site)["variables"][0].to_list()
        if sparse.is_empty():
            rows.append([site, *kept, None, len(names), None])
            continue
        adjacent = sparse["adjacent"][0].to_list()
        found = context_links.filter(pl.col("site") == site).sort("p")
        told = [
            f"{row['source']} {row['mark']} {row['target']}, lag {row['lag']}, p {row['p']:.2g}"
            for row in found.iter_rows(named=True)
        ]
        rows.append([site, *kept, len(adjacent), len(names), "; ".join(told) or ", ".join(adjacent)])
    return Table(
        title="What the two algorithms assume, and what the data say of it",
        caption="A assumes that regimes persist: the nearer the share of days that keep their regime over the whole "
        "lag window is to 1, the fewer days it loses. B assumes that few variables are linked to the context: those it "
        "finds adjacent, soil moisture included, which defines it; with all of them adjacent B does what A does.",
        columns=[
            *("tower", *(f"days kept, {level}" for level in levels)),
            *("adjacent to the context", "of", "links at the context"),
        ],
        rows=rows,
    )


def methods_table(links: pl.DataFrame, analyses: pl.DataFrame, levels: Sequence[str]) -> Table:
    """How many links each method finds in each regime of each tower, and what it says where it finds no graph."""
    rows: list[list[Cell]] = []
    found = cross_links(links).filter("found")
    for site in analyses["site"].unique().sort():
        for method, name in METHODS.items():
            here = analyses.filter((pl.col("site") == site) & (pl.col("method") == method))
            failure = here["failure"][0]
            of_method = found.filter((pl.col("site") == site) & (pl.col("method") == method))
            counts = [None if failure else of_method.filter(pl.col("level") == level).height for level in levels]
            per_link = of_method.group_by("source", "target", "lag").agg(pl.col("level").n_unique())
            shared = None if failure else per_link.filter(pl.col("level") == len(levels)).height
            rows.append([site, name, *counts, shared, failure])
    return Table(
        title="Links by regime and method",
        caption="Links between variables with an edge and FDR q at most alpha over the tests of a regime. A method "
        "that finds too few days in a regime has no graph, and says why; the others go on. Pooled PCMCI+ cannot tell "
        "regimes apart. Intersection: links of the pooled graph that PCMCI+ on a regime's days finds too.",
        columns=[
            "tower",
            "method",
            *(f"links, {level}" for level in levels),
            "in all",
            "no graph because",
        ],
        rows=rows,
    )


def physics_table(judged: Judged, sites: Sequence[str], levels: Sequence[str], alpha: float) -> Table:
    """Expected links, a row a tower and expectation, with the verdict of every method."""
    rows: list[list[Cell]] = [
        [
            *(site, expectation.link, expectation.place(levels), expectation.why),
            *(judged[expectation.link, site, method][0] for method in METHODS),
            judged[expectation.link, site, MAIN][1],
        ]
        for site in sites
        for expectation in EXPECTED
    ]
    return Table(
        title="Expected physics, by regime",
        caption=f"A link counts with the expected sign, FDR q ≤ {alpha:g} and a lag up to 2, not pointing the other "
        "way at lag 0. A link that is not found may still be there: the interval of its partial correlation and the "
        f"number of days say how much could have been missed. Evidence: {METHODS[MAIN]}, with 95 % intervals.",
        columns=["tower", "link", "expected in", "why", *METHODS.values(), "evidence"],
        rows=rows,
    )


def found_links(links: pl.DataFrame, levels: Sequence[str], stable_share: float) -> list[Table]:
    """A table a tower: the links between variables of the main method, by regime, the strongest first."""
    tables = []
    order = {level: number for number, level in enumerate(levels)}
    main = cross_links(links).filter((pl.col("method") == MAIN) & pl.col("found"))
    for site in main["site"].unique().sort():
        of_site = main.filter(pl.col("site") == site).with_columns(
            order=pl.col("level").replace_strict(order, return_dtype=pl.Int64), size=pl.col("value").abs()
        )
        ranked = of_site.sort("order", "size", descending=[False, True])
        tables.append(
            Table(
                title=f"{site}: links by regime",
                caption=f"{METHODS[MAIN]}. Stable: found by at least {stable_share:.0%} of the resamples. All tested "
                "links of all methods stand in links.parquet.",
                columns=[
                    *("regime", "source", "edge", "target", "lag", "partial correlation", "low", "high", "p", "q"),
                    *("samples", "resamples that find it", "stable"),
                ],
                rows=[
                    [
                        *(row[name] for name in ("level", "source", "mark", "target", "lag", "value", "low", "high")),
                        *(row[name] for name in ("p", "q", "samples", "frequency")),
                        None if row["frequency"] is None else row["frequency"] >= stable_share,
                    ]
                    for row in ranked.iter_rows(named=True)
                ],
            )
        )
    return tables


def sites_table(shared: pl.DataFrame, levels: Sequence[str]) -> Table:
    """Of the towers that test a link, how many find it in each regime."""
    rows: list[list[Cell]] = []
    counts = shared.group_by("source", "target", "level").agg(
        found=pl.col("found").sum(), tested=pl.len(), mean=pl.col("value").filter("found").mean()
    )
    ranked = counts.group_by("source", "target").agg(pl.col("found").sum()).filter(pl.col("found") > 0)
    for source, target, _ in ranked.sort(["found", "source", "target"], descending=[True, False, False]).rows():
        cells: list[Cell] = []
        for level in levels:
            row = counts.filter(
                (pl.col("source") == source) & (pl.col("target") == target) & (pl.col("level") == level)
            ).row(0, named=True)
            cells += [row["found"], row["tested"], row["mean"]]
        rows.append([f"{source} → {target}", *cells])
    return Table(
        title="Links shared by the towers",
        caption=f"{METHODS[MAIN]}: at how many of the towers that test a link it is found, at any lag; a link at lag 0 "
        "that is not oriented counts in both directions. Mean: of its strongest partial correlations where found.",
        columns=["link", *(f"{level}: {word}" for level in levels for word in ("found", "of", "mean"))],
        rows=rows,
    )


def figures(
    judged: Judged, links: pl.DataFrame, switches: pl.DataFrame, sites: Sequence[str], levels: Sequence[str]
) -> dict[str, Any]:
    """Flat figures for ``dvc metrics``."""
    found = cross_links(links).filter(pl.col("found") & (pl.col("method") == MAIN))
    known = switches.filter((pl.col("rule") == "critical") & (pl.col("rate") == "right"))
    return {
        "towers": {
            site: {
                "links": {
                    level: found.filter((pl.col("site") == site) & (pl.col("level") == level)).height
                    for level in levels
                },
                "physics_shown": sum(judged[e.link, site, MAIN][0] == "shown" for e in EXPECTED),
                "physics_tested": sum(judged[e.link, site, MAIN][0] != "not tested" for e in EXPECTED),
            }
            for site in sites
        },
        "bucket_switch_right": {row["method"]: row["mean"] for row in known.iter_rows(named=True)},
    }


def _expected(expectation: Expectation, levels: Sequence[str]) -> str:
    return f"{expectation.link} in {expectation.place(levels)}: {expectation.why}"
