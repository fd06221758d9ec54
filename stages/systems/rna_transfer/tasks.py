"""The downstream tasks: what is learnt, its loss, its answer, and the metric that validation molecules are judged by.

Shape suffixes: B base of the batch, L base of a molecule, D unit, M molecule, Y class, N pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stages.rna.alphabet import TOKENS, UNKNOWN
from stages.rna.scores import averages, count
from stages.rna.structure import Pairs
from stages.runtime import random_numbers
from stages.systems.rna_transfer.heads import BaseHead, MoleculeHead, PairsHead
from stages.systems.rna_transfer.pairs import MINIMUM_LOOP, decode
from stages.systems.rna_transfer.settings import PairHead

#: Probabilities of a pair that validation molecules choose from.
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
#: Seed of the shuffling of molecules: the same for every run.
SHUFFLE_SEED = 0


class Example(NamedTuple):
    """One molecule of a task.

    Attributes
    ----------
    record_id, family
        The molecule and the name of its group.
    token_L
        What the encoder sees.
    truth
        base_pairs: pairs (N, 2); paired: whether each base is (L,); rna_type: number of the class; gc_shuffled: (L,).
    """

    record_id: str
    family: str
    token_L: NDArray[np.uint8]
    truth: NDArray[Any]


class Answer(NamedTuple):
    """What a head says of one molecule: scores as in predictions.parquet, and pairs where the task asks for them."""

    score: NDArray[np.float32]
    pairs: Pairs | None = None


class Judged(NamedTuple):
    """A metric; None where it is not defined. ``threshold``: that of a pair, chosen here."""

    metric: float | None
    threshold: float | None = None


class Task(Protocol):
    """One task."""

    @property
    def name(self) -> str:
        """A key of ``settings.TASKS``."""

    def head(self, width: int) -> nn.Module:
        """A head without its weights."""

    def loss(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> Tensor:
        """Loss of a batch, the mean over its molecules or bases."""

    def answers(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> list[Answer]:
        """What the head says of each molecule."""

    def judge(self, answers: Sequence[Answer], examples: Sequence[Example]) -> Judged:
        """The metric, larger for better answers."""

    def final(self, answer: Answer, threshold: float | None) -> Answer:
        """An answer at the threshold that was chosen."""


@dataclass(frozen=True)
class BasePairs:
    """Which bases pair with which."""

    settings: PairHead
    name: str = "base_pairs"

    def head(self, width: int) -> nn.Module:
        """Outer concatenation and two convolutions."""
        return PairsHead(width, self.settings)

    def loss(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> Tensor:
        """Cross-entropy in nats summed over pairs that leave a loop, a base; the mean over molecules."""
        losses = []
        for x_LD, example in zip(_molecules(x_BD, examples), examples, strict=True):
            logit_LL = head(x_LD)
            size = len(x_LD)
            truth_LL = torch.zeros(size, size, device=x_LD.device)
            truth_LL[tuple(torch.from_numpy(example.truth.astype(np.int64)).T)] = 1
            counts_LL = torch.ones_like(truth_LL).triu(MINIMUM_LOOP + 1)
            known = functional.binary_cross_entropy_with_logits(logit_LL, truth_LL, counts_LL, reduction="sum")
            losses.append(known / size)
        return torch.stack(losses).mean()

    def answers(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> list[Answer]:
        """Structures at the lowest threshold, with the probability of each pair."""
        found = []
        for x_LD, example in zip(_molecules(x_BD, examples), examples, strict=True):
            probability_LL = torch.sigmoid(head(x_LD)).cpu().numpy()
            pairs, score_N = decode(
                probability_LL, example.token_L, threshold=THRESHOLDS[0], canonical=self.settings.canonical
            )
            found.append(Answer(score_N, pairs))
        return found

    def judge(self, answers: Sequence[Answer], examples: Sequence[Example]) -> Judged:
        """Mean F1 of the molecules at the threshold where it is highest; the lowest of equal ones."""
        if not examples:
            return Judged(None)
        best = Judged(-1.0)
        for threshold in THRESHOLDS:
            finals = [self.final(answer, threshold).pairs for answer in answers]
            counts = [count(e.truth, p) for p, e in zip(finals, examples, strict=True) if p is not None]
            f1 = averages(counts).mean_f1
            if f1 is not None and best.metric is not None and f1 > best.metric:
                best = Judged(f1, threshold)
        return best

    def final(self, answer: Answer, threshold: float | None) -> Answer:
        """The pairs that reach a threshold."""
        if answer.pairs is None or threshold is None:
            return answer
        reaches_N = answer.score >= np.float32(threshold)
        return Answer(answer.score[reaches_N], answer.pairs[reaches_N])


class _EveryBase:
    """Tasks with one number for each base."""

    def head(self, width: int) -> nn.Module:
        """One linear layer."""
        return BaseHead(width)

    def final(self, answer: Answer, threshold: float | None) -> Answer:
        """The answer as it is."""
        return answer


@dataclass(frozen=True)
class Paired(_EveryBase):
    """Whether a base pairs."""

    name: str = "paired"

    def loss(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> Tensor:
        """Cross-entropy in nats, the mean over bases."""
        return functional.binary_cross_entropy_with_logits(head(x_BD), _truth(examples, x_BD))

    def answers(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> list[Answer]:
        """Probability of each base to be paired."""
        return [Answer(part.cpu().numpy()) for part in _molecules(torch.sigmoid(head(x_BD)), examples)]

    def judge(self, answers: Sequence[Answer], examples: Sequence[Example]) -> Judged:
        """AUROC of all bases together."""
        if not examples:
            return Judged(None)
        return Judged(
            auroc(np.concatenate([answer.score for answer in answers]), np.concatenate([e.truth for e in examples]) > 0)
        )


@dataclass(frozen=True)
class GcShuffled(_EveryBase):
    """The GC share around each base of a shuffled molecule: nothing of its structure is left.

    Attributes
    ----------
    mean, deviation
        Of the training bases' shares; the head predicts in these units.
    """

    mean: float
    deviation: float
    name: str = "gc_shuffled"

    def loss(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> Tensor:
        """Mean squared error over bases, in the variance of the training bases."""
        wanted_B = (_truth(examples, x_BD) - self.mean) / self.deviation
        return functional.mse_loss(head(x_BD), wanted_B)

    def answers(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> list[Answer]:
        """Share around each base."""
        found_B = head(x_BD) * self.deviation + self.mean
        return [Answer(part.cpu().numpy()) for part in _molecules(found_B, examples)]

    def judge(self, answers: Sequence[Answer], examples: Sequence[Example]) -> Judged:
        """Share of the bases' variance that is explained (R2)."""
        if not examples:
            return Judged(None)
        found_B, truth_B = np.concatenate([a.score for a in answers]), np.concatenate([e.truth for e in examples])
        total = float(np.square(truth_B - truth_B.mean()).sum())
        return Judged(1 - float(np.square(found_B - truth_B).sum()) / total if total > 0 else None)


@dataclass(frozen=True)
class RnaType:
    """The kind of RNA."""

    classes: tuple[str, ...]
    name: str = "rna_type"

    def head(self, width: int) -> nn.Module:
        """One linear layer on the mean of the bases."""
        return MoleculeHead(width, len(self.classes))

    def loss(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> Tensor:
        """Cross-entropy in nats, the mean over molecules."""
        logit_MY = head(x_BD, [len(example.token_L) for example in examples])
        label_M = torch.tensor([int(example.truth) for example in examples], device=x_BD.device)
        return functional.cross_entropy(logit_MY, label_M)

    def answers(self, head: nn.Module, x_BD: Tensor, examples: Sequence[Example]) -> list[Answer]:
        """Log-probabilities of the classes."""
        logit_MY = head(x_BD, [len(example.token_L) for example in examples])
        return [Answer(row_Y) for row_Y in functional.log_softmax(logit_MY, dim=1).cpu().numpy()]

    def judge(self, answers: Sequence[Answer], examples: Sequence[Example]) -> Judged:
        """Recall of each class that is there, and their mean."""
        if not examples:
            return Judged(None)
        truth_M = np.array([int(example.truth) for example in examples])
        right_M = np.array([int(answer.score.argmax()) for answer in answers]) == truth_M
        return Judged(float(np.mean([right_M[truth_M == label].mean() for label in np.unique(truth_M)])))

    def final(self, answer: Answer, threshold: float | None) -> Answer:
        """The answer as it is."""
        return answer


def auroc(score_B: NDArray[np.floating], truth_B: NDArray[np.bool_]) -> float | None:
    """Chance that a true base has a higher score than another one, ties counted half; None with one kind only."""
    positive, negative = int(truth_B.sum()), int((~truth_B).sum())
    if not positive or not negative:
        return None
    _, inverse_B, count_U = np.unique(score_B, return_inverse=True, return_counts=True)
    # Equal scores share the mean of their ranks.
    rank_B = (np.cumsum(count_U) - (count_U - 1) / 2)[inverse_B]
    return float((rank_B[truth_B].sum() - positive * (positive + 1) / 2) / (positive * negative))


def shuffled_target(
    token_L: NDArray[np.uint8], record_id: str, window: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The bases of a molecule in random order, and the GC share around each.

    Parameters
    ----------
    token_L
        Tokens of the molecule.
    record_id
        Seeds the order, so that every run and seed has the same.
    window
        Bases on each side that count, the base itself with them; fewer at the ends. A base that is not known counts
        one half.

    Returns
    -------
    shuffled_L, share_L
    """
    rng = random_numbers(SHUFFLE_SEED, "shuffled", record_id)
    shuffled_L = token_L[rng.permutation(len(token_L))]
    is_gc_L = np.isin(shuffled_L, [TOKENS.index("G"), TOKENS.index("C")]) + 0.5 * (shuffled_L == UNKNOWN)
    total_L1 = np.concatenate([[0.0], np.cumsum(is_gc_L)])
    place_L = np.arange(len(token_L))
    first_L, stop_L = np.maximum(place_L - window, 0), np.minimum(place_L + window + 1, len(token_L))
    share_L = (total_L1[stop_L] - total_L1[first_L]) / (stop_L - first_L)
    return shuffled_L, share_L.astype(np.float32)


def _molecules(x_B: Tensor, examples: Sequence[Example]) -> Sequence[Tensor]:
    return torch.split(x_B, [len(example.token_L) for example in examples])


def _truth(examples: Sequence[Example], like: Tensor) -> Tensor:
    truth_B = np.concatenate([example.truth for example in examples]).astype(np.float32)
    return torch.from_numpy(truth_B).to(like.device)
