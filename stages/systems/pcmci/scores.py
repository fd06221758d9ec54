"""How often links are found: against a known graph, and again in years that were held out."""

from __future__ import annotations

import polars as pl

#: The two kinds of link that are scored apart: PCMCI gives no direction at lag 0.
LAGGED, CONTEMPORANEOUS = "lagged", "contemporaneous"


def cross_links(links: pl.DataFrame) -> pl.DataFrame:
    """Links between different variables."""
    return links.filter(pl.col("source") != pl.col("target"))


def twin_scores(twins: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """True- and false-positive rates, and F1, of each simulated series.

    Links of a variable with its own past are left out: they are nearly always there and easy to find. The rates are at
    the level of single tests, where a false-positive rate has a nominal value; F1 judges the graph as towers are read,
    at the level of the false discovery rate.

    Parameters
    ----------
    twins
        One row a tested link: seed, twin, repeat, method, source, target, lag (steps), p, q, truth.
    alpha
        A link is found where p (for the rates) or q (for F1) is at most this.

    Returns
    -------
    polars.DataFrame
        seed, twin, repeat, method, kind, tpr, fpr, f1; a rate is null where it has no denominator.
    """
    found, truth = pl.col("p") <= alpha, pl.col("truth")
    in_graph = pl.col("q") <= alpha
    counts = (
        cross_links(twins)
        .with_columns(kind=pl.when(pl.col("lag") > 0).then(pl.lit(LAGGED)).otherwise(pl.lit(CONTEMPORANEOUS)))
        .group_by("seed", "twin", "repeat", "method", "kind")
        .agg(
            hits=(found & truth).sum(),
            misses=(~found & truth).sum(),
            false=(found & ~truth).sum(),
            rightly_absent=(~found & ~truth).sum(),
            graph_hits=(in_graph & truth).sum(),
            graph_and_truth=in_graph.sum() + truth.sum(),
        )
    )
    return counts.select(
        *("seed", "twin", "repeat", "method", "kind"),
        tpr=_ratio(pl.col("hits"), pl.col("hits") + pl.col("misses")),
        fpr=_ratio(pl.col("false"), pl.col("false") + pl.col("rightly_absent")),
        # Without a true link there is nothing to find, and F1 says nothing.
        f1=pl.when(pl.col("hits") + pl.col("misses") > 0).then(
            _ratio(2 * pl.col("graph_hits"), pl.col("graph_and_truth"))
        ),
    ).sort("seed", "twin", "repeat", "method", "kind")


def replication(links: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """Of the cross links found in training years, the share found with the same sign in the held-out years.

    Parameters
    ----------
    links
        One row a tested link: site, sample (``train`` or ``test`` among others), method, source, target, lag, value, q.
    alpha
        A link is found where q is at most this.

    Returns
    -------
    polars.DataFrame
        site, method, found (links in the training years), again, share, chance: the share of all links that are found
        with either given sign in the held-out years, which is what links picked at random would reach.
    """
    key = ["site", "method", "source", "target", "lag"]
    cross = cross_links(links)
    train, test = (cross.filter(pl.col("sample") == name).select(*key, "value", "q") for name in ("train", "test"))
    both = train.join(test, on=key, suffix="_test")
    found = pl.col("q") <= alpha
    found_test = pl.col("q_test") <= alpha
    again = found & found_test & (pl.col("value").sign() == pl.col("value_test").sign())
    return (
        both.group_by("site", "method")
        .agg(found=found.sum(), again=again.sum(), tested=pl.len(), chance=found_test.mean() / 2)
        .with_columns(share=_ratio(pl.col("again"), pl.col("found")))
        .sort("site", "method")
    )


def _ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    return pl.when(denominator > 0).then(numerator / denominator)
