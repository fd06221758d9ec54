"""Scores of predictions, and populations with known states."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from stages.systems.mixemo import scores
from stages.systems.mixemo.populations import simulate
from stages.systems.mixemo.predictions import prediction_table
from tests.systems.mixemo.small import folds_of, population


def test_accuracy_and_macro_f1_by_hand() -> None:
    label, predicted = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0])
    assert scores.accuracy(label, predicted) == pytest.approx(3 / 5)
    assert scores.macro_f1(label, predicted) == pytest.approx((2 * 1 / 4 + 2 * 2 / 5 + 0) / 3)
    assert scores.confusion(label, predicted, 3).tolist() == [[1, 1, 0], [0, 2, 0], [1, 0, 0]]
    assert math.isnan(scores.accuracy(label[:0], predicted[:0]))


def test_ten_gains_of_one_sign_have_p_2_over_1024() -> None:
    rng = np.random.default_rng(0)
    assert scores.sign_flip_test(np.full(10, 0.02), rng) == pytest.approx(2 / 2**10)
    assert scores.sign_flip_test(np.array([0.1, -0.1, 0.1, -0.1]), rng) == 1.0
    assert math.isnan(scores.sign_flip_test(np.array([0.1]), rng))
    assert scores.sign_flip_test(np.full(40, 0.1), rng) < 0.001


def test_a_comparison_is_paired_over_subjects_with_seeds_averaged_first() -> None:
    frame = pl.DataFrame(
        {
            "method": ["a"] * 4 + ["b"] * 4,
            "seed": [0, 0, 1, 1] * 2,
            "subject": ["x", "y"] * 4,
            "accuracy": [0.5, 0.9, 0.7, 0.9, 0.5, 0.8, 0.5, 0.8],
        }
    )
    mean, low, high, p = scores.paired(frame, ["subject"], "a", "b", np.random.default_rng(0))
    assert (mean, low, high) == pytest.approx((0.1, 0.1, 0.1))
    assert p == 0.5


def test_a_trial_is_predicted_by_the_mean_of_its_windows() -> None:
    windows = population()
    fold = folds_of(windows)[0]
    chance = np.full((len(fold.test), 3), 0.05, np.float32)
    chance[:, 0] = 0.9
    chance[:4] = [[0.4, 0.6, 0], [0.4, 0.6, 0], [0.4, 0.6, 0], [1, 0, 0]]  # most windows say b, the mean says a
    with np.errstate(divide="ignore"):
        table = prediction_table(windows, [fold], [np.log(chance)])
    first = table.filter(pl.col("record_id") == "small/0")
    assert first["predicted"].to_list() == [1, 1, 1, 0]
    assert first["trial_predicted"].to_list() == [0, 0, 0, 0]
    assert first["window"].to_list() == [0, 1, 2, 3]
    found = scores.subject_scores(table.with_columns(corpus=pl.lit("small"), method=pl.lit("erm"), seed=pl.lit(0))).row(
        0, named=True
    )
    assert (found["windows"], found["trials"]) == (24, 6)
    assert found["trial_accuracy"] == pytest.approx(2 / 6)
    assert found["accuracy"] == pytest.approx((1 + 4) / 24)


def test_subjects_of_the_control_share_one_distribution_and_of_the_others_do_not() -> None:
    spread = {}
    for kind in ("control", "shifts"):
        windows = simulate(kind, np.random.default_rng(0), name="p", subjects=6, trials=30, windows=4)
        means = np.stack([windows.x_ND[windows.subject_N == g].mean(axis=0) for g in range(6)])
        spread[kind] = means.std(axis=0).mean()
    assert spread["shifts"] > 3 * spread["control"]


def test_states_depend_on_subject_and_class_where_they_are_coupled() -> None:
    def largest_share(kind: str) -> float:
        made = simulate(kind, np.random.default_rng(1), name="p", subjects=4, trials=90, windows=2)  # type: ignore[arg-type]
        assert made.state_N is not None
        shares = []
        for subject in range(4):
            for label in range(3):
                mine = (made.subject_N == subject) & (made.label_N == label)
                shares.append(np.bincount(made.state_N[mine]).max() / mine.sum())
        return float(np.mean(shares))

    assert largest_share("coupled") > 0.5
    assert largest_share("uncoupled") < 0.4
