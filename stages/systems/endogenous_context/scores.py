"""How often the graphs of simulated regimes are right, and which links the towers share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from stages.metrics.intervals import bootstrap_interval

#: The two kinds of link that are scored apart.
LAGGED, CONTEMPORANEOUS = "lagged", "lag 0"
RATES = ("tpr", "fpr", "oriented_right")


def cross_links(links: pl.DataFrame) -> pl.DataFrame:
    """Links between different variables."""
    return links.filter(pl.col("source") != pl.col("target"))


def twin_scores(twins: pl.DataFrame) -> pl.DataFrame:
    """Rates of each simulated series and regime; a variable's links with its own past are left out.

    Parameters
    ----------
    twins
        One row a tested link: seed, rule, repeat, method, level, source, target, lag, mark, truth, truth_mark.

    Returns
    -------
    polars.DataFrame
        seed, rule, repeat, method, level, kind, tpr, fpr, oriented_right: of the true links at lag 0 that were found
        and oriented, the share that points the right way. A rate is null where it has no denominator.
    """
    found, truth = pl.col("mark") != "", pl.col("truth")
    pointed = (pl.col("lag") == 0) & truth & pl.col("mark").is_in(["-->", "<--"])
    key = ["seed", "rule", "repeat", "method", "level", "kind"]
    return (
        cross_links(twins)
        .with_columns(kind=pl.when(pl.col("lag") > 0).then(pl.lit(LAGGED)).otherwise(pl.lit(CONTEMPORANEOUS)))
        .group_by(key)
        .agg(
            tpr=_ratio((found & truth).sum(), truth.sum()),
            fpr=_ratio((found & ~truth).sum(), (~truth).sum()),
            oriented_right=_ratio((pointed & (pl.col("mark") == pl.col("truth_mark"))).sum(), pointed.sum()),
        )
        .sort(key)
    )


def switch_scores(twins: pl.DataFrame, levels: Sequence[str]) -> pl.DataFrame:
    """Whether SWC → LE at lag 1, the link that wet soil switches off, is found in the driest and in the wettest regime.

    Returns
    -------
    polars.DataFrame
        seed, rule, repeat, method, dry, wet, right (in the driest and not in the wettest), each 0 or 1.
    """
    key = ["seed", "rule", "repeat", "method"]
    link = (pl.col("source") == "SWC") & (pl.col("target") == "LE") & (pl.col("lag") == 1)
    found = pl.col("mark") != ""
    return (
        twins.filter(link)
        .group_by(key)
        .agg(
            dry=(found & (pl.col("level") == levels[0])).any().cast(pl.Float64),
            wet=(found & (pl.col("level") == levels[-1])).any().cast(pl.Float64),
        )
        .with_columns(right=pl.col("dry") * (1 - pl.col("wet")))
        .sort(key)
    )


def means(scores: pl.DataFrame, key: Sequence[str], rates: Sequence[str], rng: np.random.Generator) -> pl.DataFrame:
    """Mean of each rate over simulated series with its 95 % interval.

    Returns
    -------
    polars.DataFrame
        The key, rate, mean, low, high, series (those with the rate defined).
    """
    rows = []
    for group, table in scores.sort(key).group_by(key, maintain_order=True):
        for rate in rates:
            mean, low, high = bootstrap_interval(table[rate].to_numpy().astype(float), rng)
            rows.append(
                {
                    **dict(zip(key, group, strict=True)),
                    **{"rate": rate, "mean": mean, "low": low, "high": high},
                    "series": table[rate].count(),
                }
            )
    schema = {"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=schema).with_columns(pl.col(*schema).fill_nan(None))


def shared_links(links: pl.DataFrame) -> pl.DataFrame:
    """At how many towers each directed pair is linked, in each regime.

    A link counts at its strongest lag; a link at lag 0 that is not oriented counts in both directions.

    Parameters
    ----------
    links
        Tested links of one method: site, level, source, target, lag, value, mark, found, frequency; a pair at lag 0
        stands once.

    Returns
    -------
    polars.DataFrame
        source, target, level, site, found, lag, mark, value and frequency of the strongest link (of the strongest
        tested one where none was found).
    """
    turned = {"-->": "<--", "<--": "-->"}
    at_zero = links.filter(pl.col("lag") == 0)
    mirrored = at_zero.rename({"source": "target", "target": "source"}).with_columns(pl.col("mark").replace(turned))
    both = pl.concat([links, mirrored.select(links.columns)])
    directed = cross_links(both).with_columns(found=pl.col("found") & (pl.col("mark") != "<--"))
    return (
        directed.sort("found", pl.col("value").abs(), descending=True)
        .group_by("source", "target", "level", "site", maintain_order=True)
        .agg(pl.col("found", "lag", "mark", "value", "frequency").first())
        .sort("source", "target", "level", "site")
    )


def _ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    return pl.when(denominator > 0).then(numerator / denominator)
