"""What counts as shown, what the report says of it, and its tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stages.systems.minitraffic import comparisons, tables
from stages.systems.minitraffic.comparisons import Comparison, Cost, claims, headline, headline_share, lighter
from stages.systems.minitraffic.scores_by_block import Interval
from tests.systems.minitraffic.tested import HORIZON, comparison

ERRORS = {"last_value": 3.0, "ridge": 2.5, "scratch": 2.2, "minitraffic": 1.5, "zero_shot": 1.6, "no_fda": 1.5}


@pytest.fixture(scope="module")
def found() -> Comparison:
    return comparison(ERRORS, (0.05, 1.0))


def cost(parameters: int, forward: int) -> Cost:
    return Cost(parameters, parameters, forward, 0.0, 0.0)


def test_the_headline_names_what_was_measured_on_what_and_its_best_baseline(found: Comparison) -> None:
    said = headline(found, 0.05, 2)
    assert "MAE over 3 steps ahead, lanes of corridor, learnt from 5 %" in said.metric
    assert (said.unit, said.split_unit, said.seeds, said.simulated) == ("mph", "time", 2, True)
    assert said.value == pytest.approx(1.5, abs=0.1)
    assert said.baseline_value == pytest.approx(2.2, abs=0.1)
    assert "from scratch" in said.baseline
    assert said.low is not None
    assert said.high is not None
    assert said.low <= said.value <= said.high  # type: ignore[operator]


def test_a_claim_shows_only_where_the_whole_interval_is_better(found: Comparison) -> None:
    verdicts = {claim.claim: claim.verdict for claim in claims(found, [0.05, 1.0], {})}
    beats = [verdict for claim, verdict in verdicts.items() if "every task-specific model with 5 %" in claim]
    assert beats == ["shown", "shown"]  # MAE and RMSE, at the few-shot share and not at 100 %
    assert verdicts["FDA lowers the MAE (corridor (simulated), 5 %)"] == "not shown"  # the same errors
    assert next(v for c, v in verdicts.items() if c.startswith("Pre-training on roads lowers")) == "shown"
    assert next(v for c, v in verdicts.items() if c.startswith("Clustering")) == "not tested"  # the arm was not trained


def test_one_better_baseline_is_enough_for_not_shown_and_the_report_says_which() -> None:
    found = comparison(ERRORS | {"dlinear": 1.2})
    said = claims(found, [0.05], {})
    beats = next(claim for claim in said if "lower MAE than every task-specific" in claim.claim)
    assert beats.verdict == "not shown"
    assert "DLinear +0.28" in beats.evidence
    simple = said[-1]
    assert simple.verdict == "not shown"
    assert "corridor (simulated), 5 %, MAE: DLinear is lower by 0.28" in simple.evidence
    table = tables.simple_table(found, [0.05])
    assert [row[-1] for row in table.rows] == ["baseline"] * 3


def test_no_interval_means_not_tested() -> None:
    assert comparisons.judged(Interval(-1.0, math.nan, math.nan)) == "not tested"
    assert comparisons.judged(Interval(-1.0, -2.0, 0.1)) == "not shown"
    assert comparisons.judged(Interval(-1.0, -2.0, -0.1)) == "shown"


def test_fewer_parameters_count_only_against_arms_of_the_same_error(found: Comparison) -> None:
    cheap, own, heavy = cost(100, 1000), cost(30_000, 10**6), cost(10**6, 10**8)
    worse = {"minitraffic": own, "ridge": cheap, "last_value": cost(0, 0)}
    assert lighter(found, "corridor", 0.05, worse).verdict == "not tested"  # cheaper arms, but none as good
    good = comparison({"minitraffic": 1.5, "ridge": 1.5, "dlinear": 1.4, "last_value": 3.0})
    assert lighter(good, "corridor", 0.05, {"minitraffic": own, "ridge": heavy, "dlinear": heavy}).verdict == "shown"
    said = lighter(good, "corridor", 0.05, {"minitraffic": own, "ridge": heavy, "dlinear": cheap})
    assert said.verdict == "not shown"
    assert "as good and cheaper: DLinear" in said.evidence


def test_the_share_nearest_to_five_percent_leads() -> None:
    assert headline_share([0.01, 0.05, 0.1, 1.0]) == 0.05
    assert headline_share([0.01, 0.1]) == 0.1
    assert headline_share([0.2]) == 0.2


def test_tables_have_a_cell_for_every_column_and_a_row_for_every_arm(found: Comparison) -> None:
    made = [
        tables.methods_table(found, "corridor", 0.05, [0, 1]),
        tables.share_table(found, "corridor", [0.05, 1.0]),
        tables.horizon_table(found, "corridor", 0.05),
        tables.granularity_table(found, "corridor", 0.05),
        tables.period_table(found, "corridor", 0.05),
        tables.lane_table(found, "corridor", 0.05, "0 is the rightmost"),
        tables.sensor_table(found, "corridor", 0.05, np.zeros(6, bool)),
        tables.simple_table(found, [0.05, 1.0]),
    ]
    for table in made:
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
        assert not any(isinstance(cell, float) and math.isnan(cell) for row in table.rows for cell in row)
    assert len(made[0].rows) == len(ERRORS)
    assert made[0].rows[3][-4:] == [None] * 4  # MiniTraffic is not compared with itself
    assert "The roads of corridor itself are among them" in made[0].caption
    assert made[2].columns == ["arm", "score", "60 min", "120 min", "180 min"][: 2 + HORIZON]
    assert made[5].columns == ["arm", "score", "lane 0", "lane 1"]
    assert all("simulated" in table.title for table in made[:-1])


def test_errors_grow_with_the_lead_where_the_noise_does(found: Comparison) -> None:
    rmse = next(row for row in tables.horizon_table(found, "corridor", 0.05).rows if row[1] == "RMSE, mph")[2:]
    assert rmse == sorted(rmse)  # type: ignore[type-var]


def test_a_sensor_that_never_changes_stands_apart(found: Comparison) -> None:
    constant = np.zeros(6, bool)
    constant[2] = True
    table = tables.sensor_table(found, "corridor", 0.05, constant)
    assert len(table.rows) == 5
    assert "one value or none in the test part: r1 lane 0" in table.caption
