"""The tables, claims and figures of PCMCI's metrics.json, out of its links and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stages.metrics.intervals import bootstrap_interval
from stages.metrics.summary import Claim, Headline, Table, Verdict
from stages.systems.pcmci.physics import EXPECTED, judge
from stages.systems.pcmci.scores import LAGGED, cross_links

#: Method -> how the report names it. The first is the one that towers are read with, the last the baseline.
METHODS = {
    "pcmci_robust": "PCMCI, RobustParCorr",
    "pcmci_parcorr": "PCMCI, ParCorr",
    "correlation": "lagged correlation",
}
MAIN, BASELINE = "pcmci_robust", "correlation"
CHAIN, BUCKET = "VAR chain", "bucket model"
#: Share of the bucket's series in which its lagged link should be found.
FOUND_SHARE = 0.8


def link_table(links: pl.DataFrame, bootstrap: pl.DataFrame) -> pl.DataFrame:
    """All tested links of all towers, samples and methods, with the share of resamples that find each.

    The estimates do not depend on the seed, so one seed's links stand for all; the resamples of all seeds count.
    """
    key = ["site", "sample", "method", "source", "target", "lag"]
    frequency = bootstrap.group_by(key).agg(
        pl.col("frequency").mean(),
        pl.col("low").mean().alias("bootstrap_low"),
        pl.col("high").mean().alias("bootstrap_high"),
    )
    one = links.filter(pl.col("seed") == links["seed"].min()).drop("seed")
    return one.join(frequency, on=key, how="left").sort(key)


def rates(scores: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Mean rates with 95 % intervals over simulated series: twin, kind, method, rate, mean, low, high, series."""
    rows = []
    for (twin, kind, method), group in scores.sort("twin", "kind", "method").group_by(
        "twin", "kind", "method", maintain_order=True
    ):
        for rate in ("tpr", "fpr", "f1"):
            mean, low, high = bootstrap_interval(group[rate].to_numpy().astype(float), rng)
            known = int(group[rate].is_not_null().sum())
            rows.append(
                {
                    **{"twin": twin, "kind": kind, "method": METHODS[str(method)], "rate": rate},
                    **{"mean": mean, "low": low, "high": high, "series": known},
                }
            )
    schema = {"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=schema).with_columns(pl.col(*schema).fill_nan(None))


def headline(scores: pl.DataFrame, seeds: int, rng: np.random.Generator) -> Headline:
    """F1 of lagged links on the VAR chain, beside the baseline on the same series."""
    lagged = scores.filter((pl.col("kind") == LAGGED) & (pl.col("twin") == CHAIN))
    value, low, high = bootstrap_interval(lagged.filter(pl.col("method") == MAIN)["f1"].to_numpy().astype(float), rng)
    baseline, _, _ = bootstrap_interval(lagged.filter(pl.col("method") == BASELINE)["f1"].to_numpy().astype(float), rng)
    series = lagged.select("seed", "twin", "repeat").unique().height
    return Headline(
        metric="F1 of lagged links between variables (FDR), on VAR chains with a known graph",
        unit="1",
        value=value,
        low=low,
        high=high,
        baseline="lagged correlation, same series, lags and level",
        baseline_value=baseline,
        records=series,
        groups=series,
        split_unit="simulated series",
        seeds=seeds,
        simulated=True,
    )


def claims(
    rates_table: pl.DataFrame, links: pl.DataFrame, series: pl.DataFrame, alpha: float, tolerance: float
) -> list[Claim]:
    """What PCMCI and physics claim, and whether it shows here."""
    said = [_controls(rates_table, twin, alpha, tolerance) for twin in (CHAIN, BUCKET)]
    chain = {method: _rate(rates_table, CHAIN, LAGGED, METHODS[method], "fpr") for method in (MAIN, BASELINE)}
    apart = chain[MAIN][2] < chain[BASELINE][1]
    said.append(
        Claim(
            claim="Conditioning removes the false links that plain lagged correlation finds (VAR chain, simulated)",
            verdict="shown" if apart else "not shown",
            evidence="; ".join(f"{METHODS[method]}: FPR {_interval(*chain[method])}" for method in chain),
        )
    )
    found = {method: _rate(rates_table, BUCKET, LAGGED, name, "tpr") for method, name in METHODS.items()}
    said.append(
        Claim(
            claim=f"SWC → LE, the bucket model's lagged link, is found in {FOUND_SHARE:.0%} of its series (simulated)",
            verdict="shown" if found[MAIN][1] >= FOUND_SHARE else "not shown",
            evidence="; ".join(f"{METHODS[method]}: TPR {_interval(*found[method])}" for method in found),
        )
    )
    sites = sorted(series["site"].unique())
    for expectation in EXPECTED:
        judged = {site: judge(expectation, links.filter(pl.col("site") == site), alpha) for site in sites}
        tested = {site: verdict for site, (verdict, _) in judged.items() if verdict != "not tested"}
        overall: Verdict = "not tested"
        if tested:
            overall = "shown" if all(verdict == "shown" for verdict in tested.values()) else "not shown"
        said.append(
            Claim(
                claim=f"{expectation.link}: {expectation.why}, at every tower that measures both",
                verdict=overall,
                evidence="; ".join(f"{site} {verdict} ({evidence})" for site, (verdict, evidence) in judged.items()),
            )
        )
    return said


def _controls(rates_table: pl.DataFrame, twin: str, alpha: float, tolerance: float) -> Claim:
    mean, low, high = _rate(rates_table, twin, LAGGED, METHODS[MAIN], "fpr")
    return Claim(
        claim=f"False lagged links stay near the level alpha = {alpha:g} under autocorrelation ({twin}, simulated)",
        verdict="shown" if high <= alpha + tolerance else "not shown",
        evidence=f"FPR {_interval(mean, low, high)}; allowed {alpha + tolerance:g}",
    )


def _rate(rates_table: pl.DataFrame, twin: str, kind: str, method: str, rate: str) -> tuple[float, float, float]:
    row = rates_table.filter(
        (pl.col("twin") == twin) & (pl.col("kind") == kind) & (pl.col("method") == method) & (pl.col("rate") == rate)
    ).row(0, named=True)
    # A single series has a mean and no interval.
    mean = row["mean"]
    return mean, mean if row["low"] is None else row["low"], mean if row["high"] is None else row["high"]


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def series_table(series: pl.DataFrame, links: pl.DataFrame, alpha: float) -> Table:
    """What each tower's graph was estimated from, and how large it became."""
    rows: list[list[str | float | int | bool | None]] = []
    one = series.filter((pl.col("sample") == "all") & (pl.col("seed") == pl.col("seed").min()))
    for row in one.sort("site").iter_rows(named=True):
        of_site = links.filter(pl.col("site") == row["site"])
        found = of_site.filter(pl.col("q") <= alpha)
        own = found.filter(pl.col("source") == pl.col("target")).height
        cross = cross_links(found)
        rows.append(
            [
                row["site"],
                ", ".join(row["variables"]),
                "; ".join(row["left_out"]) or "-",
                row["days"],
                of_site["samples"].min(),  # type: ignore[list-item]
                cross.filter(pl.col("lag") > 0).height,
                cross.filter(pl.col("lag") == 0).height,
                own,
            ]
        )
    return Table(
        title="Towers and the size of their graphs",
        caption="Warm-season anomalies of accepted daily means, measured values only. Missing values drop samples test "
        "by test, by clock time; the smallest sample of a test is given.",
        columns=[
            *("tower", "variables", "left out", "days with a value", "smallest sample"),
            *("lagged links", "links at lag 0", "links to own past"),
        ],
        rows=rows,
    )


def physics_table(links: pl.DataFrame, series: pl.DataFrame, alpha: float) -> Table:
    """Expected links, a row a tower and expectation."""
    rows: list[list[str | float | int | bool | None]] = []
    for site in sorted(series["site"].unique()):
        for expectation in EXPECTED:
            verdict, evidence = judge(expectation, links.filter(pl.col("site") == site), alpha)
            rows.append([site, expectation.link, expectation.why, verdict, evidence])
    return Table(
        title="Expected physics",
        caption=f"Shown: a link of the expected sign, FDR q ≤ {alpha:g}, at a lag up to 2. At lag 0 PCMCI sees a link "
        "but no direction. The graph is pooled over wet and dry days, so the two soil-moisture limits need not show.",
        columns=["tower", "link", "why", "verdict", "evidence"],
        rows=rows,
    )


def found_links(links: pl.DataFrame, alpha: float, stable_share: float) -> list[Table]:
    """A table a tower: its links between variables, the strongest first."""
    tables = []
    for site in sorted(links["site"].unique()):
        found = cross_links(links.filter((pl.col("site") == site) & (pl.col("q") <= alpha)))
        found = found.sort(pl.col("value").abs(), descending=True)
        tables.append(
            Table(
                title=f"{site}: links",
                caption=f"FDR q ≤ {alpha:g} over the tower's tested links, RobustParCorr. Stable: found by at "
                f"least {stable_share:.0%} of the block-bootstrap resamples. At lag 0 there is no direction. All "
                "tested links of all methods and samples of years stand in links.parquet.",
                columns=[
                    *("source", "target", "lag", "partial correlation", "low", "high", "p", "q", "samples"),
                    *("resamples that find it", "stable"),
                ],
                rows=[
                    [
                        *(
                            row[name]
                            for name in ("source", "target", "lag", "value", "low", "high", "p", "q", "samples")
                        ),
                        row["frequency"],
                        (row["frequency"] or 0) >= stable_share,
                    ]
                    for row in found.iter_rows(named=True)
                ],
            )
        )
    return tables


def replication_table(again: pl.DataFrame) -> Table:
    """Links of the training years that held-out years show too."""
    return Table(
        title="Links found again in held-out years",
        caption="Of the links between variables found in the training years, those found with the same sign in the "
        "held-out years. By chance: what as many links picked at random would reach. Lagged correlation finds most "
        "links again because it finds most links: read its share beside its chance.",
        columns=["tower", "method", "links tested", "found in training years", "found again", "share", "by chance"],
        rows=[
            [
                row["site"],
                METHODS[row["method"]],
                row["tested"],
                row["found"],
                row["again"],
                row["share"],
                row["chance"],
            ]
            for row in again.iter_rows(named=True)
        ],
    )


def known_graphs_table(rates_table: pl.DataFrame, alpha: float) -> Table:
    """Rates on the twins, a row a twin, kind of link and method."""
    rows: list[list[str | float | int | bool | None]] = []
    keys = rates_table.select("twin", "kind", "method").unique(maintain_order=True)
    for twin, kind, method in keys.rows():
        cells: list[str | float | int | bool | None] = [twin, kind, method]
        for rate in ("tpr", "fpr", "f1"):
            row = rates_table.filter(
                (pl.col("twin") == twin)
                & (pl.col("kind") == kind)
                & (pl.col("method") == method)
                & (pl.col("rate") == rate)
            ).row(0, named=True)
            cells += [row["mean"], row["low"], row["high"]]
        rows.append(cells)
    return Table(
        title="Series with a known graph (simulated)",
        caption="Mean over series with 95 % bootstrap intervals; a variable's links with its own past left out. "
        f"TPR and FPR at p ≤ {alpha:g}, F1 of the graph at FDR q ≤ {alpha:g}. PCMCI "
        "does not condition on contemporaneous parents, so common drivers at lag 0 leave false links at lag 0.",
        columns=[
            *("twin", "links", "method", "TPR", "TPR low", "TPR high", "FPR", "FPR low", "FPR high"),
            *("F1", "F1 low", "F1 high"),
        ],
        rows=rows,
    )


def figures(rates_table: pl.DataFrame, links: pl.DataFrame, again: pl.DataFrame, alpha: float) -> dict[str, Any]:
    """Flat figures for ``dvc metrics``."""
    lagged = rates_table.filter(pl.col("kind") == LAGGED)
    known = {
        _slug(twin): {
            label: {
                row["rate"]: row["mean"]
                for row in of_twin.filter(pl.col("method") == METHODS[method]).iter_rows(named=True)
            }
            for label, method in (("pcmci", MAIN), ("baseline", BASELINE))
        }
        for (twin,), of_twin in lagged.group_by("twin", maintain_order=True)
    }
    found = cross_links(links.filter(pl.col("q") <= alpha))
    towers = {
        site: {
            "lagged_links": found.filter((pl.col("site") == site) & (pl.col("lag") > 0)).height,
            "links_at_lag_0": found.filter((pl.col("site") == site) & (pl.col("lag") == 0)).height,
            "found_again": next(
                (row["share"] for row in again.iter_rows(named=True) if (row["site"], row["method"]) == (site, MAIN)),
                None,
            ),
        }
        for site in sorted(links["site"].unique())
    }
    return {"known_graphs": known, "towers": towers}


def _slug(text: object) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in str(text).lower()).split())
