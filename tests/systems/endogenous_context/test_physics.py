from __future__ import annotations

import polars as pl
import pytest

from stages.systems.endogenous_context.physics import EXPECTED, judge

LEVELS = ["dry", "wet"]
RAIN, RADIATION, SOIL, HEAT = EXPECTED
SCHEMA = ["level", "source", "target", "lag", "value", "q", "mark", "frequency"]


def links(*rows: tuple[str, str, str, int, float, float, str, float | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row", infer_schema_length=None).with_columns(
        pl.col("frequency").cast(pl.Float64), low=pl.col("value") - 0.1, high=pl.col("value") + 0.1, samples=200
    )


DRY_ONLY = (("dry", "SWC", "LE", 1, 0.4, 0.001, "-->", 0.9), ("wet", "SWC", "LE", 1, 0.02, 0.8, "", 0.1))


def test_the_expectations_are_those_of_soil_physics() -> None:
    assert [(e.link, e.place(LEVELS)) for e in EXPECTED] == [
        ("P → SWC (+)", "every regime"),
        ("SW_IN → LE (+)", "wet"),
        ("SWC → LE (+)", "only dry"),
        ("SWC → H (−)", "only dry"),
    ]


def test_a_link_in_dry_soil_only_is_shown_with_its_evidence() -> None:
    verdict, evidence = judge(SOIL, links(*DRY_ONLY), LEVELS, 0.05)
    assert verdict == "shown"
    assert evidence == (
        "dry: link, lag 1 +0.40 [+0.30, +0.50], q 0.001, n 200, in 90% of the resamples; "
        "wet: none, lag 1 +0.02 [-0.08, +0.12], q 0.8, n 200, in 10% of the resamples"
    )


def test_a_link_that_wet_soil_shows_too_is_not_that_of_dry_soil() -> None:
    both = (DRY_ONLY[0], ("wet", "SWC", "LE", 2, 0.3, 0.01, "-->", None))
    assert judge(SOIL, links(*both), LEVELS, 0.05)[0] == "not shown"


def test_rain_has_to_wet_the_soil_in_every_regime() -> None:
    dry, wet = (("dry", "P", "SWC", 1, 0.4, 0.01, "-->", None), ("wet", "P", "SWC", 0, 0.4, 0.01, "-->", None))
    assert judge(RAIN, links(dry, wet), LEVELS, 0.05)[0] == "shown"
    assert judge(RAIN, links(dry, ("wet", "P", "SWC", 0, 0.1, 0.3, "", None)), LEVELS, 0.05)[0] == "not shown"


def test_radiation_is_asked_for_in_wet_soil_only() -> None:
    wet = ("wet", "SW_IN", "LE", 0, 0.4, 0.01, "o-o", None)
    verdict, evidence = judge(RADIATION, links(("dry", "SW_IN", "LE", 0, 0.0, 0.9, "", None), wet), LEVELS, 0.05)
    assert verdict == "shown"
    assert "wet: link, lag 0 not oriented" in evidence


@pytest.mark.parametrize(
    ("source", "target", "mark", "verdict"),
    [
        *(("SW_IN", "LE", "-->", "shown"), ("SW_IN", "LE", "x-x", "shown"), ("SW_IN", "LE", "<--", "not shown")),
        *(("LE", "SW_IN", "<--", "shown"), ("LE", "SW_IN", "o-o", "shown"), ("LE", "SW_IN", "-->", "not shown")),
    ],
)
def test_a_pair_at_lag_0_stands_in_either_order_and_may_not_point_back(
    source: str, target: str, mark: str, verdict: str
) -> None:
    rows = [(level, source, target, 0, 0.4, 0.01, mark, None) for level in LEVELS]
    found, evidence = judge(RADIATION, links(*rows), LEVELS, 0.05)
    assert found == verdict
    assert ("points the other way" in evidence) == (verdict == "not shown")


@pytest.mark.parametrize(
    "wrong",
    [
        ("dry", "SWC", "H", 1, 0.4, 0.001, "-->", None),  # the sign
        ("dry", "SWC", "H", 1, -0.4, 0.2, "-->", None),  # q
        ("dry", "SWC", "H", 1, -0.4, 0.001, "", None),  # not in the graph
    ],
)
def test_a_wrong_sign_a_large_q_or_no_edge_do_not_show(
    wrong: tuple[str, str, str, int, float, float, str, None],
) -> None:
    wet = ("wet", "SWC", "H", 1, 0.0, 0.9, "", None)
    assert judge(HEAT, links(wrong, wet), LEVELS, 0.05)[0] == "not shown"


def test_what_was_not_measured_or_has_no_graph_is_not_tested() -> None:
    assert judge(HEAT, links(*DRY_ONLY), LEVELS, 0.05) == ("not tested", "variable not measured here")
    assert judge(SOIL, links(), LEVELS, 0.05) == ("not tested", "no graphs")
