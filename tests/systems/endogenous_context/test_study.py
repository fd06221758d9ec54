"""The synthetic study: its counts, its rates, and what it says of the methods at a small size."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from stages.systems.endogenous_context.adaptive import discover
from stages.systems.endogenous_context.models import collider_example
from stages.systems.endogenous_context.study import SCHEMA, Series, Task, score, tasks
from stages.systems.endogenous_context.study_config import COLLIDER, PROXY, RANDOM, Study
from stages.systems.endogenous_context.study_tables import (
    example_means,
    random_scores,
    study_claims,
    study_figures,
    study_headline,
    study_tables,
)

STUDY = Study(repeats=4, steps=[400], variables=[5, 6], example_steps=400, persistence=0.5, density=0.4, alpha=0.05)


@pytest.fixture(scope="module")
def study() -> pl.DataFrame:
    return pl.DataFrame([row for task in tasks(STUDY, 0) for row in task.run()], schema=SCHEMA)


def test_each_kind_of_system_is_drawn_for_each_repeat() -> None:
    found = tasks(STUDY, 0)
    assert len(found) == 4 * (1 + 4 + 1)
    assert len({(task.model, task.persistence, task.steps, task.repeat) for task in found}) == len(found)
    assert {task.model for task in found} == {RANDOM, COLLIDER, PROXY}


def test_a_task_draws_the_same_series_each_time_and_others_for_another_seed() -> None:
    one, same, other = (Task(STUDY, seed, RANDOM, 0.5, 400, 1).series() for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.data_TN, same.data_TN)
    assert one.data_TN.shape != other.data_TN.shape or not np.array_equal(one.data_TN, other.data_TN)


def test_counts_of_a_graph_by_hand() -> None:
    """Three true links between variables in level 1, two in level 0; the graphs found are the pooled one twice."""
    model = collider_example(0.5)
    data_TN, context_T = model.simulate(np.random.default_rng(0), 2000)
    truth_MNNL = model.graphs.copy()
    truth_MNNL[:, 0, 1, 0] = True  # a link X -> Y that is not in the series
    series = Series(
        COLLIDER, 0.5, 0, data_TN, context_T, truth_MNNL, None, model.names, frozenset("XY"), frozenset("W")
    )
    found = discover(data_TN, context_T, algorithm="pooled", tau_max=2, pc_alpha=0.001, names=model.names)
    zero, one = score(found, series)
    assert (zero["true"], one["true"]) == (1, 2)
    assert (zero["hits"], one["hits"]) == (0, 1)
    # 4 * 3 * 2 lagged cells and 6 pairs at lag 0 are counted.
    assert zero["absent"] == 24 + 6 - 1
    assert (zero["off"], zero["off_kept"]) == (1, 1)
    assert (one["off"], one["off_kept"]) == (0, 0)
    assert zero["pairs"] == 1
    assert zero["false_collider"] is False
    # Apart from X, Y and W only Z is left, without a pair.
    assert zero["true_apart"] == zero["absent_apart"] == 0


def test_rates_lie_between_nothing_and_everything(study: pl.DataFrame) -> None:
    rates = random_scores(study)
    assert rates.height == 4 * 5
    for name in ("tpr", "fpr", "f1", "off_kept", "oriented_right", "tpr_apart", "fpr_apart"):
        assert rates[name].drop_nulls().is_between(0, 1).all()


def test_masking_shows_the_false_link_and_a_does_not(study: pl.DataFrame) -> None:
    examples = example_means(study, np.random.default_rng(0))
    at_once = examples.filter(
        (pl.col("rate") == "false_collider") & (pl.col("persistence") == 0.0) & (pl.col("model") == COLLIDER)
    )
    share = dict(at_once.select("method", "mean").rows())
    assert share["masked"] > 0.9
    assert share["A"] < 0.2


def test_tables_claims_headline_and_figures_hold_together(study: pl.DataFrame) -> None:
    rng = np.random.default_rng(0)
    examples = example_means(study, rng)
    tables = study_tables(study, examples, 0.05, rng)
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert len(set(table.columns)) == len(table.columns)
    assert len(tables[0].rows) == 5 * 5
    assert {claim.verdict for claim in study_claims(study, examples, 0.05, rng)} <= {"shown", "not shown"}
    headline = study_headline(study, 1, rng)
    assert headline.simulated
    assert headline.records == 4
    assert headline.value is not None
    assert headline.baseline_value is not None
    figures = study_figures(study, examples)
    assert figures["false_collider_largest"]["masked"] > figures["false_collider_largest"]["A"]


def test_an_analysis_with_too_few_samples_is_counted_and_not_hidden() -> None:
    short = STUDY.model_copy(update={"steps": [60], "repeats": 1})
    rows = Task(short, 0, RANDOM, 0.5, 60, 0).run()
    failed = [row for row in rows if row.get("failure")]
    assert failed
    assert all("where R =" in str(row["failure"]) for row in failed)
    assert {row["method"] for row in rows} == {"A", "B", "pooled", "masked", "intersection"}
