"""Precision, recall and F1 of predicted base pairs, per molecule and pooled over molecules.

A predicted pair is right where the truth has it (strict), or, with a slack of 1, where the truth has a pair of which
one position is off by one and the other is the same. Two averages exist and differ: the mean of the molecules' F1, in
which a short molecule weighs as much as a long one, and the pooled F1, that of all pairs together.

Shapes: N true pairs, M predicted pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.rna.structure import Pairs


@dataclass(frozen=True)
class Counts:
    """Right and counted pairs of one molecule, or the sums over several.

    Attributes
    ----------
    true, predicted
        Number of pairs of the truth and of the prediction.
    predicted_right
        Predicted pairs that the truth has; of ``predicted``, for precision.
    true_found
        True pairs that the prediction has; of ``true``, for recall. Equal to ``predicted_right`` without slack.
    """

    true: int
    predicted: int
    predicted_right: int
    true_found: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.true + other.true,
            self.predicted + other.predicted,
            self.predicted_right + other.predicted_right,
            self.true_found + other.true_found,
        )

    @property
    def precision(self) -> float:
        """Share of predicted pairs that are right; 1 where nothing is predicted and nothing is there, else 0."""
        return self.predicted_right / self.predicted if self.predicted else float(not self.true)

    @property
    def recall(self) -> float:
        """Share of true pairs that are found; 1 where nothing is there and nothing is predicted, else 0."""
        return self.true_found / self.true if self.true else float(not self.predicted)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 where both structures are empty, 0 where only one is."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class Averages:
    """The two averages over molecules.

    Attributes
    ----------
    molecules
        Their number.
    mean_precision, mean_recall, mean_f1
        Means of the molecules' own scores; None without a molecule.
    pooled_precision, pooled_recall, pooled_f1
        Scores of all pairs together; None without a molecule.
    """

    molecules: int
    mean_precision: float | None
    mean_recall: float | None
    mean_f1: float | None
    pooled_precision: float | None
    pooled_recall: float | None
    pooled_f1: float | None


def count(truth: Pairs, predicted: Pairs, *, slack: int = 0) -> Counts:
    """Count right pairs of one molecule.

    Parameters
    ----------
    truth, predicted
        (N, 2) and (M, 2), each pair once with left < right.
    slack
        0 for strict counting; 1 counts (i, j) as right also where (i +- 1, j) or (i, j +- 1) is true (Mathews et al.
        2004, doi:10.1073/pnas.0401799101).

    Raises
    ------
    ValueError
        ``slack`` is neither 0 nor 1.
    """
    if slack not in (0, 1):
        raise ValueError(f"slack {slack}: found neither 0 nor 1")
    size = np.int64(max((int(each.max()) for each in (truth, predicted) if each.size), default=0) + 3)
    true_N, predicted_M = _keys(truth, size), _keys(predicted, size)
    shifts = np.array([0] if slack == 0 else [0, 1, -1, size, -size], dtype=np.int64)
    right_M = np.isin(predicted_M[:, None] + shifts, true_N).any(axis=1)
    found_N = right_M if slack == 0 else np.isin(true_N[:, None] + shifts, predicted_M).any(axis=1)
    return Counts(len(truth), len(predicted), int(np.count_nonzero(right_M)), int(np.count_nonzero(found_N)))


def _keys(pairs: Pairs, size: np.int64) -> NDArray[np.int64]:
    # One number a pair, positions from 1 to size - 2, so that a shift by one never reaches another row.
    shifted = pairs.astype(np.int64) + 1
    return np.asarray(shifted[:, 0] * size + shifted[:, 1], dtype=np.int64)


def averages(counts: Iterable[Counts]) -> Averages:
    """Per-molecule means and pooled scores."""
    held = list(counts)
    if not held:
        return Averages(0, None, None, None, None, None, None)
    pooled = sum(held[1:], start=held[0])
    return Averages(
        molecules=len(held),
        mean_precision=float(np.mean([each.precision for each in held])),
        mean_recall=float(np.mean([each.recall for each in held])),
        mean_f1=float(np.mean([each.f1 for each in held])),
        pooled_precision=pooled.precision,
        pooled_recall=pooled.recall,
        pooled_f1=pooled.f1,
    )
