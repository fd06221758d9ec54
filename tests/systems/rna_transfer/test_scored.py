"""Sums of scores: the two averages of each task, against values by hand and the exact ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stages.rna.structure import no_pairs, parse
from stages.systems.rna_transfer import scored
from stages.systems.rna_transfer.scored import pair_sums, paired_sums, share_sums, type_sums, value_of
from stages.systems.rna_transfer.tasks import auroc


def test_one_of_one_and_none_of_nine_pairs_is_half_per_molecule_and_far_less_pooled() -> None:
    small, large = parse("(...)"), parse("((((((((( ... )))))))))".replace(" ", ""))
    sums = pair_sums([small, large], [small, no_pairs()])
    assert value_of(sums.sum(axis=0), "f1") == pytest.approx(0.5)
    assert value_of(sums.sum(axis=0), "f1_pooled") == pytest.approx(2 / 11)
    assert scored.own_value(sums).tolist() == [1.0, 0.0]


def test_a_pair_off_by_one_is_right_with_slack_only() -> None:
    sums = pair_sums([np.array([[0, 9]])], [np.array([[0, 8]])]).sum(axis=0)
    assert value_of(sums, "f1") == 0
    assert value_of(sums, "f1_slack") == 1
    assert value_of(sums, "precision") == value_of(sums, "recall") == 0


def test_an_answer_that_never_pairs_is_right_where_nothing_pairs() -> None:
    truths = [no_pairs(), parse("(...)"), parse("(...)"), no_pairs()]
    sums = pair_sums(truths, [no_pairs()] * 4)
    assert scored.empty_share(sums) == 0.5
    assert value_of(sums.sum(axis=0), "f1") == 0.5
    assert value_of(sums.sum(axis=0), "f1_pooled") == 0
    assert value_of(sums[[0, 3]].sum(axis=0), "f1_pooled") == 1


def test_what_was_not_answered_is_no_number() -> None:
    assert np.isnan(pair_sums([parse("(...)")], [None])).all()
    assert np.isnan(paired_sums([np.array([True])], [None])).all()
    assert np.isnan(type_sums([0], [None], 2)).all()
    assert np.isnan(share_sums([np.array([0.5])], [None])).all()


def test_auroc_over_all_bases_is_the_exact_one_but_for_the_bins() -> None:
    rng = np.random.default_rng(0)
    truths = [rng.random(40) < 0.6 for _ in range(30)]
    scores = [rng.normal(size=40) + 0.7 * truth for truth in truths]
    sums = paired_sums(truths, scores)
    exact = auroc(np.concatenate(scores), np.concatenate(truths))
    assert value_of(sums.sum(axis=0), "auroc_pooled") == pytest.approx(exact, abs=2e-3)
    own = [auroc(score, truth) for score, truth in zip(scores, truths, strict=True)]
    assert value_of(sums.sum(axis=0), "auroc") == pytest.approx(np.mean(own))  # type: ignore[arg-type]


def test_auroc_of_molecules_on_other_levels_differs_from_that_of_all_bases() -> None:
    truths = [np.array([True, False]), np.array([True, False])]
    scores = [np.array([0.9, 0.8]), np.array([0.2, 0.1])]
    sums = paired_sums(truths, scores).sum(axis=0)
    assert value_of(sums, "auroc") == 1
    assert value_of(sums, "auroc_pooled") == pytest.approx(0.75)


def test_a_molecule_whose_bases_are_all_alike_has_no_auroc_and_is_in_the_pooled_one() -> None:
    sums = paired_sums([np.array([True, True]), np.array([False, True])], [np.array([1.0, 3.0]), np.array([2.0, 4.0])])
    assert math.isnan(scored.own_value(sums)[0])
    assert value_of(sums.sum(axis=0), "auroc") == 1
    assert value_of(sums.sum(axis=0), "auroc_pooled") == pytest.approx(2 / 3)


def test_always_the_commonest_type_is_right_often_and_has_the_recall_of_chance() -> None:
    sums = type_sums([0, 0, 0, 1], [0, 0, 0, 0], 2).sum(axis=0)
    assert value_of(sums, "accuracy") == 0.75
    assert value_of(sums, "type_recall") == 0.5


def test_the_mean_of_the_truth_explains_nothing_and_the_truth_all() -> None:
    truths = [np.array([0.0, 1.0]), np.array([0.5, 0.5, 0.2])]
    mean = np.concatenate(truths).mean()
    assert value_of(share_sums(truths, [np.full(2, mean), np.full(3, mean)]).sum(axis=0), "r2_pooled") == pytest.approx(
        0
    )
    assert value_of(share_sums(truths, truths).sum(axis=0), "r2_pooled") == pytest.approx(1)
    flat = share_sums([np.array([0.5, 0.5])], [np.array([0.4, 0.6])])
    assert math.isnan(value_of(flat.sum(axis=0), "r2"))


def test_another_score_is_refused() -> None:
    with pytest.raises(ValueError, match="no score mcc"):
        value_of(np.zeros(9), "mcc")


def test_every_named_score_of_a_task_can_be_taken_from_its_sums() -> None:
    pairs = parse("(...)")
    sums = {
        "base_pairs": pair_sums([pairs], [pairs]),
        "paired": paired_sums([np.array([True, False])], [np.array([1.0, 0.0])]),
        "rna_type": type_sums([1], [1], 2),
        "gc_shuffled": share_sums([np.array([0.0, 1.0])], [np.array([0.0, 1.0])]),
    }
    for task, names in scored.SCORES.items():
        for score in names:
            assert value_of(sums[task].sum(axis=0), score) == pytest.approx(1), (task, score)
