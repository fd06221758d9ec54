from __future__ import annotations

import numpy as np
import polars as pl

from stages.systems.endogenous_context.scores import means, shared_links, switch_scores, twin_scores

KEY = {"seed": 0, "rule": "critical", "repeat": 0, "method": "A"}


def twins(*rows: tuple[str, str, str, int, str, str]) -> pl.DataFrame:
    schema = ["level", "source", "target", "lag", "mark", "truth_mark"]
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        *(pl.lit(value).alias(name) for name, value in KEY.items()), truth=pl.col("truth_mark") != ""
    )


def test_rates_counted_by_hand() -> None:
    """At lag 0 two of three true links are found, one of them turned round; at lag 1 one of two absent links is."""
    table = twins(
        ("dry", "P", "SWC", 0, "-->", "-->"),
        ("dry", "LE", "H", 0, "<--", "-->"),
        ("dry", "SW_IN", "TA", 0, "", "-->"),
        ("dry", "P", "H", 0, "", ""),
        ("dry", "SWC", "SWC", 1, "-->", "-->"),  # its own past does not count
        ("dry", "SWC", "LE", 1, "-->", "-->"),
        ("dry", "LE", "TA", 1, "-->", ""),
        ("dry", "TA", "LE", 1, "", ""),
    )
    rows = {row["kind"]: row for row in twin_scores(table).iter_rows(named=True)}
    assert [rows["lag 0"][rate] for rate in ("tpr", "fpr", "oriented_right")] == [2 / 3, 0, 1 / 2]
    assert [rows["lagged"][rate] for rate in ("tpr", "fpr", "oriented_right")] == [1, 1 / 2, None]


def test_an_edge_that_is_not_oriented_is_found_and_not_judged() -> None:
    row = twin_scores(twins(("dry", "P", "SWC", 0, "o-o", "-->"))).row(0, named=True)
    assert (row["tpr"], row["fpr"], row["oriented_right"]) == (1, None, None)


def test_the_switched_link_is_right_in_dry_soil_alone() -> None:
    def right(dry: str, wet: str) -> float:
        table = twins(("dry", "SWC", "LE", 1, dry, "-->"), ("wet", "SWC", "LE", 1, wet, ""))
        return float(switch_scores(table, ["dry", "wet"])["right"][0])

    assert [right("-->", ""), right("-->", "-->"), right("", ""), right("", "-->")] == [1, 0, 0, 0]


def test_a_mean_without_a_value_is_null() -> None:
    scores = pl.DataFrame({"method": ["A", "A"], "tpr": [0.25, 0.75], "fpr": pl.Series([None, None], dtype=pl.Float64)})
    rows = {row["rate"]: row for row in means(scores, ["method"], ["tpr", "fpr"], np.random.default_rng(0)).to_dicts()}
    assert (rows["tpr"]["mean"], rows["tpr"]["series"]) == (0.5, 2)
    assert (rows["fpr"]["mean"], rows["fpr"]["low"], rows["fpr"]["series"]) == (None, None, 0)


def test_a_link_at_lag_0_is_shared_in_the_direction_it_points() -> None:
    def found(mark: str) -> dict[tuple[str, str], bool]:
        row = {"site": "a", "level": "dry", "source": "P", "target": "SWC", "lag": 0, "value": 0.3, "mark": mark}
        table = pl.DataFrame([row | {"found": True, "frequency": 0.9}])
        return {(r["source"], r["target"]): r["found"] for r in shared_links(table).to_dicts()}

    assert found("-->") == {("P", "SWC"): True, ("SWC", "P"): False}
    assert found("<--") == {("P", "SWC"): False, ("SWC", "P"): True}
    assert found("o-o") == {("P", "SWC"): True, ("SWC", "P"): True}


def test_the_strongest_link_found_stands_for_a_pair() -> None:
    rows = [
        {"lag": 1, "value": 0.2, "mark": "-->", "found": True},
        {"lag": 2, "value": -0.3, "mark": "-->", "found": True},
        {"lag": 3, "value": 0.9, "mark": "", "found": False},
    ]
    base = {"site": "a", "level": "dry", "source": "P", "target": "SWC", "frequency": None}
    table = shared_links(pl.DataFrame([base | row for row in rows], schema_overrides={"frequency": pl.Float64}))
    assert table.select("lag", "value").rows() == [(2, -0.3)]
