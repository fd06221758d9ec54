from __future__ import annotations

import polars as pl

from stages.systems.pcmci.physics import EXPECTED, judge
from stages.systems.pcmci.scores import replication, twin_scores

LINKS = ["source", "target", "lag"]


def test_rates_of_a_graph_counted_by_hand() -> None:
    """One true link is found and one missed; one absent link is found and three are not."""
    rows = [
        ("X", "Y", 1, 0.01, True),
        ("Y", "X", 1, 0.04, False),
        ("X", "Z", 1, 0.60, True),
        ("Z", "X", 1, 0.70, False),
        ("Y", "Z", 1, 0.80, False),
        ("Z", "Y", 1, 0.90, False),
        ("X", "X", 1, 0.00, True),  # its own past does not count
        ("X", "Y", 0, 0.20, False),
    ]
    twins = pl.DataFrame(rows, schema=[*LINKS, "p", "truth"], orient="row").with_columns(
        q=pl.col("p"), seed=0, twin=pl.lit("chain"), repeat=0, method=pl.lit("m")
    )
    scores = {row["kind"]: row for row in twin_scores(twins, 0.05).iter_rows(named=True)}
    assert (scores["lagged"]["tpr"], scores["lagged"]["fpr"], scores["lagged"]["f1"]) == (1 / 2, 1 / 4, 1 / 2)
    assert [scores["contemporaneous"][rate] for rate in ("tpr", "fpr", "f1")] == [None, 0, None]


def test_a_link_is_found_again_only_with_its_sign() -> None:
    rows = [
        ("train", "X", "Y", 1, 0.3, 0.01),
        ("test", "X", "Y", 1, 0.2, 0.04),
        ("train", "Y", "Z", 1, 0.3, 0.01),
        ("test", "Y", "Z", 1, -0.2, 0.04),
        ("train", "X", "Z", 1, 0.3, 0.90),
        ("test", "X", "Z", 1, 0.2, 0.90),
        ("all", "X", "Z", 1, 0.3, 0.01),
    ]
    links = pl.DataFrame(rows, schema=["sample", *LINKS, "value", "q"], orient="row").with_columns(
        site=pl.lit("a"), method=pl.lit("m")
    )
    row = replication(links, 0.05).row(0, named=True)
    assert (row["tested"], row["found"], row["again"], row["share"]) == (3, 2, 1, 0.5)
    assert row["chance"] == 1 / 3  # two of three found in the held-out years, half of them with a given sign


def links(*rows: tuple[str, str, int, float, float]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=[*LINKS, "value", "q"], orient="row")


RAIN = next(expectation for expectation in EXPECTED if expectation.link.startswith("P → SWC"))


def test_rain_that_wets_the_soil_is_shown() -> None:
    assert judge(RAIN, links(("P", "SWC", 1, 0.4, 0.001)), 0.05) == ("shown", "lag 1: +0.40, q 0.001")


def test_a_link_at_lag_0_stands_in_either_order() -> None:
    assert judge(RAIN, links(("SWC", "P", 0, 0.4, 0.001)), 0.05)[0] == "shown"
    assert judge(RAIN, links(("SWC", "P", 1, 0.4, 0.001)), 0.05)[0] == "not tested"


def test_the_wrong_sign_a_large_q_or_a_long_lag_do_not_show() -> None:
    found = [("P", "SWC", 1, -0.4, 0.001), ("P", "SWC", 2, 0.1, 0.3), ("P", "SWC", 3, 0.4, 0.001)]
    assert judge(RAIN, links(*found), 0.05) == ("not shown", "lag 1: -0.40, q 0.001")


def test_a_variable_that_is_not_there_is_not_tested() -> None:
    assert judge(RAIN, links(("LE", "H", 1, 0.4, 0.001)), 0.05) == ("not tested", "variable not measured here")
