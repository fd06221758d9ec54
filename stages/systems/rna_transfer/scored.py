"""Scores of answers as sums over molecules, so that any part of them is a ratio of sums and can be resampled.

Two averages are named apart everywhere: the mean of the molecules' own scores, and the score of all pairs or bases
together (pooled).

Shape suffixes: N answered molecule, C sum, L base of a molecule, E bin of scores, Y class; (..., C) any leading ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stages.rna.scores import averages, count
from stages.rna.structure import Pairs
from stages.systems.rna_transfer.tasks import auroc

Floats = NDArray[np.float64]

#: Task -> its scores and how the report names them; the first leads. All are better where larger.
SCORES = {
    "base_pairs": {
        "f1": "F1, mean over molecules",
        "f1_pooled": "F1, all pairs together",
        "f1_slack": "F1, mean over molecules, one position may be off by one",
        "precision": "precision, mean over molecules",
        "recall": "recall, mean over molecules",
    },
    "paired": {
        "auroc_pooled": "AUROC, all bases together",
        "auroc": "AUROC, mean over molecules",
    },
    "rna_type": {
        "type_recall": "recall, mean over types",
        "accuracy": "share of the molecules that are right",
    },
    "gc_shuffled": {
        "r2_pooled": "R2, all bases together",
        "r2": "R2, mean over molecules",
    },
}
#: Task -> the score of a single molecule in scores.parquet.
OWN = {"base_pairs": "F1", "paired": "AUROC", "rna_type": "right", "gc_shuffled": "R2"}
#: Bins of the pooled AUROC, each with as many bases: a wrong order inside a bin counts one half.
BINS = 100

#: Places of the sums.
_MOLECULES, _DEFINED, OWN_SUM = 0, 1, 2
_PAIRS = {"f1_slack": 3, "precision": 4, "recall": 5}
TRUE, _PREDICTED, _RIGHT = 6, 7, 8
_BASES, _Y, _YY, _MISSED = 3, 4, 5, 6


def pair_sums(truths: Sequence[Pairs], found: Sequence[Pairs | None]) -> Floats:
    """Sums of base pairs (N, C); a row of NaN where nothing was answered."""
    rows = np.full((len(truths), 9), np.nan)
    for n, (truth, pairs) in enumerate(zip(truths, found, strict=True)):
        if pairs is None:
            continue
        strict, slack = count(truth, pairs), count(truth, pairs, slack=1)
        own = averages([strict])
        means = (1, 1, own.mean_f1, slack.f1, own.mean_precision, own.mean_recall)
        rows[n] = [*means, strict.true, strict.predicted, strict.predicted_right]
    return rows


def paired_sums(truths: Sequence[NDArray[np.bool_]], scores: Sequence[NDArray[np.floating] | None]) -> Floats:
    """Sums of paired bases (N, C): the molecules' own AUROC, and how many bases of each kind lie in each bin.

    The bins are those of one arm and seed, whose scores are on one scale.
    """
    there = [n for n, score in enumerate(scores) if score is not None]
    rows = np.full((len(truths), 3 + 2 * BINS), np.nan)
    if not there:
        return rows
    edges_E = np.quantile(np.concatenate([scores[n] for n in there]), np.arange(1, BINS) / BINS)
    for n in there:
        score_L, truth_L = np.asarray(scores[n]), truths[n]
        own = auroc(score_L, truth_L)
        bin_L = np.searchsorted(edges_E, score_L)
        counts = [np.bincount(bin_L[truth_L == kind], minlength=BINS) for kind in (True, False)]
        rows[n] = np.concatenate([[1, own is not None, own or 0.0], *counts])
    return rows


def type_sums(truths: Sequence[int], found: Sequence[int | None], classes: int) -> Floats:
    """Sums of RNA types (N, C): molecules and right ones, in all and of each class."""
    rows = np.full((len(truths), 3 + 2 * classes), np.nan)
    for n, (truth, label) in enumerate(zip(truths, found, strict=True)):
        if label is not None:
            rows[n] = 0.0
            rows[n, [_MOLECULES, _DEFINED, 3 + truth]] = 1
            rows[n, [OWN_SUM, 3 + classes + truth]] = label == truth
    return rows


def share_sums(truths: Sequence[NDArray[np.floating]], found: Sequence[NDArray[np.floating] | None]) -> Floats:
    """Sums of the GC share (N, C): the molecules' own R2, and bases, truth, its square and the squared error."""
    rows = np.full((len(truths), 7), np.nan)
    for n, (truth, share) in enumerate(zip(truths, found, strict=True)):
        if share is None:
            continue
        y_L = np.asarray(truth, dtype=np.float64)
        missed = float(np.square(np.asarray(share, dtype=np.float64) - y_L).sum())
        total = float(np.square(y_L - y_L.mean()).sum())
        own = 1 - missed / total if total > 0 else None
        rows[n] = [1, own is not None, own or 0.0, len(y_L), y_L.sum(), np.square(y_L).sum(), missed]
    return rows


def value_of(sums_C: Floats, score: str) -> Floats:
    """A score out of sums, shape (..., C) -> (...); NaN where it is not defined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if score in ("f1", "auroc", "accuracy", "r2"):
            return np.asarray(sums_C[..., OWN_SUM] / sums_C[..., _DEFINED])
        if score in _PAIRS:
            return np.asarray(sums_C[..., _PAIRS[score]] / sums_C[..., _DEFINED])
        if score == "f1_pooled":
            counted = sums_C[..., TRUE] + sums_C[..., _PREDICTED]
            nothing = np.where(sums_C[..., _DEFINED] > 0, 1.0, np.nan)  # both empty
            return np.where(counted > 0, 2 * sums_C[..., _RIGHT] / counted, nothing)
        if score == "auroc_pooled":
            return _binned_auroc(sums_C[..., 3 : 3 + BINS], sums_C[..., 3 + BINS :])
        if score == "type_recall":
            return _mean_recall(sums_C)
        if score == "r2_pooled":
            total = sums_C[..., _YY] - np.square(sums_C[..., _Y]) / sums_C[..., _BASES]
            return np.where(total > 0, 1 - sums_C[..., _MISSED] / total, np.nan)
    raise ValueError(f"no score {score}")


def own_value(sums_NC: Floats) -> Floats:
    """Each molecule's own score (N,); NaN where there is none."""
    defined = sums_NC[:, _DEFINED] > 0
    return np.where(defined, sums_NC[:, OWN_SUM], np.nan)


def empty_share(sums_NC: Floats) -> float:
    """Share of molecules without a true pair: the mean F1 of an answer that never pairs; NaN without a molecule."""
    return float(np.mean(sums_NC[:, TRUE] == 0)) if len(sums_NC) else float("nan")


def _binned_auroc(positive_E: Floats, negative_E: Floats) -> Floats:
    """Chance that a paired base lies in a higher bin than an unpaired one, equal bins counted half."""
    below_E = np.cumsum(negative_E, axis=-1) - negative_E / 2
    kinds = positive_E.sum(axis=-1) * negative_E.sum(axis=-1)
    return np.where(kinds > 0, (positive_E * below_E).sum(axis=-1) / kinds, np.nan)


def _mean_recall(sums_C: Floats) -> Floats:
    """Mean over the classes that are there of the share of their molecules that are right."""
    classes = (sums_C.shape[-1] - 3) // 2
    there_Y, right_Y = sums_C[..., 3 : 3 + classes], sums_C[..., 3 + classes :]
    recall_Y = np.where(there_Y > 0, right_Y / there_Y, 0.0)
    return np.asarray(recall_Y.sum(axis=-1) / (there_Y > 0).sum(axis=-1))
