"""The tasks: losses, answers and metrics by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from stages.rna import alphabet, structure
from stages.systems.rna_transfer.settings import PairHead
from stages.systems.rna_transfer.tasks import (
    Answer,
    BasePairs,
    Example,
    GcShuffled,
    Paired,
    RnaType,
    auroc,
    shuffled_target,
)

BASE_PAIRS = BasePairs(PairHead(joined="product", channels=4, kernel=3, canonical=True))


class Says(nn.Module):
    """A head that says what it was told, whatever it sees."""

    def __init__(self, *told: torch.Tensor) -> None:
        super().__init__()
        self.told = list(told)

    def forward(self, *seen: object) -> torch.Tensor:
        return self.told.pop(0)


def example(sequence: str, truth: object) -> Example:
    return Example("made/a", "made/F", alphabet.encode(sequence), np.asarray(truth))


def test_the_loss_of_pairs_is_a_sum_over_pairs_with_a_loop() -> None:
    """Six bases: three pairs leave a loop of three; logits of 0 cost ln 2 each."""
    one = example("GAAAAC", [[0, 5]])
    loss = BASE_PAIRS.loss(Says(torch.zeros(6, 6)), torch.zeros(6, 2), [one])
    assert float(loss) == pytest.approx(3 * np.log(2) / 6)
    sure = torch.full((6, 6), -30.0)
    sure[0, 5] = 30
    assert float(BASE_PAIRS.loss(Says(sure), torch.zeros(6, 2), [one])) == pytest.approx(0, abs=1e-6)
    # What stands at or below the loop counts for nothing.
    sure[0, 3] = sure[5, 0] = 30
    assert float(BASE_PAIRS.loss(Says(sure), torch.zeros(6, 2), [one])) == pytest.approx(0, abs=1e-6)


def test_pairs_are_judged_by_the_threshold_that_serves_best() -> None:
    truth = structure.parse("((...))")
    one = example("GGAAACC", truth)
    answer = Answer(np.array([0.9, 0.25], np.float32), np.array([[0, 6], [1, 5]], np.int32))
    found = BASE_PAIRS.judge([answer], [one])
    assert (found.metric, found.threshold) == (1.0, 0.1)
    wrong = Answer(np.array([0.9, 0.25], np.float32), np.array([[0, 6], [2, 5]], np.int32))
    found = BASE_PAIRS.judge([wrong], [one])
    assert (found.metric, found.threshold) == (pytest.approx(2 / 3), 0.3)
    assert BASE_PAIRS.final(wrong, 0.3).pairs.tolist() == [[0, 6]]  # type: ignore[union-attr]


def test_auroc_by_hand() -> None:
    truth = np.array([True, False, True, False])
    assert auroc(np.array([4.0, 1.0, 3.0, 2.0]), truth) == 1
    assert auroc(np.array([1.0, 1.0, 1.0, 1.0]), truth) == 0.5
    assert auroc(np.array([3.0, 2.0, 1.0, 0.0]), truth) == 0.75
    assert auroc(np.array([2.0, 2.0, 3.0, 1.0]), truth) == 0.875
    assert auroc(np.array([1.0, 2.0]), np.array([True, True])) is None


def test_types_are_judged_by_the_mean_recall_of_those_there() -> None:
    """Two of three of one type are right, none of the other: 1/3."""
    task = RnaType(("A", "B", "C"))
    says = [Answer(np.log(np.array(row, np.float32))) for row in ([0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1])]
    says.append(says[0])
    truth = [example("A", label) for label in (0, 0, 0, 1)]
    assert task.judge(says, truth).metric == pytest.approx(1 / 3)
    logits = torch.tensor([[0.0, 0.0, 0.0]])
    assert float(task.loss(Says(logits), torch.zeros(1, 2), truth[:1])) == pytest.approx(np.log(3))


def test_shuffled_molecules_keep_their_bases_and_the_share_around_each_is_counted() -> None:
    token_L = alphabet.encode("GGGGCCCCAAAAUUUUN")
    shuffled_L, share_L = shuffled_target(token_L, "made/a", 1)
    assert sorted(shuffled_L.tolist()) == sorted(token_L.tolist())
    letters = alphabet.decode(shuffled_L)
    worth = [{"G": 1.0, "C": 1.0, "N": 0.5}.get(letter, 0.0) for letter in letters]
    assert share_L[0] == pytest.approx(sum(worth[:2]) / 2)
    assert share_L[7] == pytest.approx(sum(worth[6:9]) / 3)
    again, _ = shuffled_target(token_L, "made/a", 1)
    other, _ = shuffled_target(token_L, "made/b", 1)
    assert again.tolist() == shuffled_L.tolist() != other.tolist()


def test_the_mean_of_the_shares_explains_nothing_and_the_truth_all() -> None:
    task = GcShuffled(0.4, 0.2)
    one = example("ACGU", np.array([0.2, 0.4, 0.6, 0.8], np.float32))
    assert task.judge([Answer(np.full(4, 0.5, np.float32))], [one]).metric == pytest.approx(0, abs=1e-6)
    assert task.judge([Answer(one.truth)], [one]).metric == 1
    found = task.answers(Says(torch.tensor([-1.0, 0.0, 1.0, 2.0])), torch.zeros(4, 2), [one])
    np.testing.assert_allclose(found[0].score, one.truth, atol=1e-6)
    assert float(task.loss(Says(torch.tensor([-1.0, 0.0, 1.0, 2.0])), torch.zeros(4, 2), [one])) < 1e-9


def test_paired_bases_are_judged_together() -> None:
    task = Paired()
    one, two = example("AC", [1.0, 0.0]), example("GU", [0.0, 1.0])
    answers = task.answers(Says(torch.tensor([2.0, 1.0, -1.0, 0.0])), torch.zeros(4, 2), [one, two])
    assert [len(answer.score) for answer in answers] == [2, 2]
    assert task.judge(answers, [one, two]).metric == 0.75


def test_nothing_to_judge_has_no_metric() -> None:
    for task in (BASE_PAIRS, Paired(), RnaType(("A",)), GcShuffled(0, 1)):
        assert task.judge([], []).metric is None
