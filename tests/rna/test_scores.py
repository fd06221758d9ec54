"""Scores of predicted pairs: by hand, and those published for ArchiveII."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from stages.rna.scores import Counts, averages, count
from stages.rna.structure import parse

SHARED = Path(__file__).parents[3] / "shared" / "data" / "rna"


def test_one_of_one_and_none_of_nine() -> None:
    nine = "((((((((( ....)))))))))".replace(" ", "")
    scores = averages([count(parse("(...)"), parse("(...)")), count(parse(nine), parse("." * len(nine)))])
    assert scores.mean_f1 == 0.5
    assert scores.pooled_f1 == pytest.approx(2 / 11)
    assert (scores.pooled_precision, scores.pooled_recall) == (1.0, 0.1)
    assert scores.molecules == 2


def test_precision_recall_and_f1_by_hand() -> None:
    found = count(parse("(((..)))..(...)"), parse("((....))..(...)"))
    assert found == Counts(true=4, predicted=3, predicted_right=3, true_found=3)
    assert (found.precision, found.recall) == (1.0, 0.75)
    assert found.f1 == pytest.approx(6 / 7)


def test_a_shifted_helix_is_wrong_strictly_and_right_with_a_slack_of_one() -> None:
    truth, shifted = parse("((...)).."), parse("((....)).")
    assert count(truth, shifted).f1 == 0
    assert count(truth, shifted, slack=1).f1 == 1


def test_slack_moves_one_side_only() -> None:
    assert count(parse("(....).."), parse(".(....).")).predicted_right == 0
    assert count(parse("(....).."), parse(".(....)."), slack=1).predicted_right == 0
    assert count(parse("(....).."), parse(".(...).."), slack=1).predicted_right == 1


def test_slack_does_not_reach_around_the_ends() -> None:
    # (1, 9) and (2, 1) would be neighbours if rows of the pair matrix were laid end to end.
    assert count(np.array([[0, 8]]), np.array([[1, 2]]), slack=1).predicted_right == 0


def test_two_predicted_pairs_near_one_true_pair_find_it_once() -> None:
    found = count(parse("..(....).."), np.array([[1, 7], [2, 8]], dtype=np.int32), slack=1)
    assert found == Counts(true=1, predicted=2, predicted_right=2, true_found=1)


def test_empty_structures() -> None:
    none, some = parse("......"), parse("(....)")
    assert count(none, none).f1 == 1
    assert count(some, none).f1 == count(none, some).f1 == 0
    assert averages([]).mean_f1 is None


def test_slack_of_two_does_not_exist() -> None:
    with pytest.raises(ValueError, match="slack 2"):
        count(parse("(.)"), parse("(.)"), slack=2)


@pytest.mark.shared
def test_f1_equals_all_published_values_of_linearpartition_on_archiveii() -> None:
    if not SHARED.is_dir():
        pytest.skip("the developers' data folder is not beside the checkout")
    with (SHARED / "archiveii" / "ArchiveII.csv").open(encoding="utf-8") as stream:
        truth = {row["id"]: parse(row["structure"]) for row in csv.DictReader(stream)}
    with (SHARED / "answers" / "archiveii_linearpartition_c.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    counted = [count(truth[row["id"]], parse(row["folding"])) for row in rows]
    assert len(counted) == 3864
    published = [float(row["published_f1"]) for row in rows]
    assert max(abs(found.f1 - value) for found, value in zip(counted, published, strict=True)) <= 1e-15
    mean = averages(counted).mean_f1
    assert mean is not None
    assert math.isclose(mean, 0.618335, abs_tol=5e-7)
