"""Accuracy, macro-F1 and confusion of predicted windows, and comparisons paired over held-out subjects.

Shape suffixes: N window or trial, Y class, G subject (or population).
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.metrics.intervals import bootstrap_interval

#: Up to this many subjects every pattern of signs is counted; above, this many drawn at random.
EXACT_SUBJECTS = 14
DRAWN_SIGNS = 20_000


def accuracy(label_N: NDArray[np.integer], predicted_N: NDArray[np.integer]) -> float:
    """Share of right predictions; NaN of none."""
    return float(np.mean(label_N == predicted_N)) if len(label_N) else math.nan


def macro_f1(label_N: NDArray[np.integer], predicted_N: NDArray[np.integer]) -> float:
    """Mean of F1 over the classes that occur among labels or predictions; NaN of none."""
    found = []
    for y in np.union1d(label_N, predicted_N):
        right = np.sum((label_N == y) & (predicted_N == y))
        found.append(2 * right / (np.sum(label_N == y) + np.sum(predicted_N == y)))
    return float(np.mean(found)) if found else math.nan


def confusion(label_N: NDArray[np.integer], predicted_N: NDArray[np.integer], classes: int) -> NDArray[np.int64]:
    """Counts, shape (label, prediction)."""
    return np.bincount(label_N * classes + predicted_N, minlength=classes**2).reshape(classes, classes)


def sign_flip_test(difference_G: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Two-sided p of paired differences with mean 0 if either sign is as likely: over all sign patterns, or many.

    NaN of fewer than two differences.
    """
    difference_G = difference_G[np.isfinite(difference_G)]
    groups = len(difference_G)
    if groups < 2:
        return math.nan
    if groups <= EXACT_SUBJECTS:
        bits = np.arange(2**groups)[:, None] >> np.arange(groups) & 1
        signs, extra = 1 - 2 * bits, 0
    else:
        signs, extra = rng.choice([-1, 1], size=(DRAWN_SIGNS, groups)), 1
    means = np.abs(signs @ difference_G) / groups
    beyond = np.sum(means >= np.abs(difference_G.mean()) - 1e-12)
    return float((beyond + extra) / (len(means) + extra))


def subject_scores(predictions: pl.DataFrame) -> pl.DataFrame:
    """Scores of each corpus, method, seed and held-out subject, out of predicted windows.

    Parameters
    ----------
    predictions
        corpus, method, seed, subject, record_id, label, predicted, trial_predicted: a row a window.

    Returns
    -------
    polars.DataFrame
        corpus, method, seed, subject, accuracy, trial_accuracy, macro_f1, windows, trials.
    """
    keys = ["corpus", "method", "seed", "subject"]
    rows = []
    for names, group in predictions.group_by(keys, maintain_order=True):
        label, predicted = group["label"].to_numpy(), group["predicted"].to_numpy()
        trials = group.unique("record_id", maintain_order=True)
        rows.append(
            {
                **dict(zip(keys, names, strict=True)),
                "accuracy": accuracy(label, predicted),
                "trial_accuracy": accuracy(trials["label"].to_numpy(), trials["trial_predicted"].to_numpy()),
                "macro_f1": macro_f1(label, predicted),
                "windows": group.height,
                "trials": trials.height,
            }
        )
    return pl.DataFrame(rows).sort(keys)


def over_seeds(scores: pl.DataFrame, unit: list[str]) -> pl.DataFrame:
    """Mean over seeds (or whatever else is no unit) of every score, in the order of the units."""
    numbers = [name for name in ("accuracy", "trial_accuracy", "macro_f1") if name in scores.columns]
    return scores.group_by(unit).agg(pl.col(numbers).mean()).sort(unit)


def paired(
    scores: pl.DataFrame, unit: list[str], one: str, other: str, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Mean difference of two methods' accuracies over units, its 95 % bootstrap interval, and the p of the signs.

    Parameters
    ----------
    scores
        method, accuracy, and the columns of ``unit``.
    unit
        What is resampled: held-out subjects, or populations.
    one, other
        Methods; their difference is one - other.
    """
    first, second = (
        over_seeds(scores.filter(pl.col("method") == name), unit).select(*unit, "accuracy") for name in (one, other)
    )
    together = first.join(second, on=unit, suffix="_other", validate="1:1").sort(unit)
    difference = (together["accuracy"] - together["accuracy_other"]).to_numpy().astype(np.float64)
    mean, low, high = bootstrap_interval(difference, rng)
    return mean, low, high, sign_flip_test(difference, rng)


def interval(
    scores: pl.DataFrame, unit: list[str], method: str, rng: np.random.Generator, score: str = "accuracy"
) -> tuple[float, float, float]:
    """Mean of a method's score over units with its 95 % bootstrap interval."""
    return bootstrap_interval(over_seeds(scores.filter(pl.col("method") == method), unit)[score].to_numpy(), rng)
