"""The claim and tables of the simulated bucket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from stages.metrics.summary import Claim, Table
from stages.systems.endogenous_context.tables import MAIN, METHODS, Cell

#: Share of the bucket's series in which what is claimed should be found.
FOUND_SHARE = 0.8
RULE_NAMES = {"critical": "the critical moisture, known", "quantile": "quantiles, as for towers"}


def claims(switches: pl.DataFrame) -> list[Claim]:
    """Whether the main method finds the bucket's switched link in dry soil only, on series with a known threshold.

    Parameters
    ----------
    switches
        Means of `scores.switch_scores`: rule, method, rate, mean, low, high.
    """
    rates = {
        (row["method"], row["rate"]): row for row in switches.filter(pl.col("rule") == "critical").iter_rows(named=True)
    }
    if (MAIN, "right") not in rates:
        return []
    evidence = "; ".join(
        f"{METHODS[method]}: dry {rates[method, 'dry']['mean']:.2f}, wet {rates[method, 'wet']['mean']:.2f}, "
        f"right {_interval(rates[method, 'right'])}"
        for method in METHODS
        if (method, "right") in rates
    )
    right = rates[MAIN, "right"]
    return [
        Claim(
            claim=f"SWC → LE of the bucket model is found in dry soil and not in wet soil in {FOUND_SHARE:.0%} of its "
            "series (simulated)",
            verdict="shown" if _low(right) >= FOUND_SHARE else "not shown",
            evidence=evidence,
        )
    ]


def rate_tables(rates: pl.DataFrame, switches: pl.DataFrame) -> list[Table]:
    """Rates on the simulated bucket, and where its switched link is found."""
    key = ["rule", "kind", "level", "method"]
    wide: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rates.iter_rows(named=True):
        wide.setdefault(tuple(row[name] for name in key), {})[row["rate"]] = row
    rows: list[list[Cell]] = [
        [RULE_NAMES[rule], kind, level, METHODS[method]]
        + [of_rate[rate][bound] for rate in ("tpr", "fpr", "oriented_right") for bound in ("mean", "low", "high")]
        for (rule, kind, level, method), of_rate in wide.items()
    ]
    where: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in switches.iter_rows(named=True):
        where.setdefault((row["rule"], row["method"]), {})[row["rate"]] = row
    switch_rows: list[list[Cell]] = [
        [RULE_NAMES[rule], METHODS[method], found["dry"]["mean"], found["wet"]["mean"]]
        + [found["right"][bound] for bound in ("mean", "low", "high")]
        + [found["right"]["series"]]
        for (rule, method), found in where.items()
    ]
    return [
        Table(
            title="The link that wet soil switches off (bucket model, simulated)",
            caption="Share of the series in which SWC → LE, lag 1, is found in dry and in wet soil; right: in dry "
            "only. With quantiles as regimes the wet one can reach below the critical moisture, and the link then "
            "belongs in both. 95 % intervals over series.",
            columns=["regimes by", "method", "in dry", "in wet", "right", "low", "high", "series"],
            rows=switch_rows,
        ),
        Table(
            title="Rates on the bucket model (simulated)",
            caption="Means over series with 95 % bootstrap intervals, a variable's links with its own past left out. "
            "Oriented right: of the true links at lag 0 that were found and oriented.",
            columns=[
                *(
                    "regimes by",
                    "links",
                    "regime",
                    "method",
                    "TPR",
                    "TPR low",
                    "TPR high",
                    "FPR",
                    "FPR low",
                    "FPR high",
                ),
                *("oriented right", "oriented low", "oriented high"),
            ],
            rows=rows,
        ),
    ]


def _interval(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return f"{row['mean']:.2f}"
    return f"{row['mean']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _low(row: Mapping[str, Any]) -> float:
    return float(row["mean"] if row["low"] is None else row["low"])


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
