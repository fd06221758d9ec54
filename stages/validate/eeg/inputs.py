"""Inputs that tell the label alone: a trigger or a gaze channel among the electrodes, a clip's length, a gain.

Shape suffixes: N trial, F input, K class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.validate.expectations import RECORD, Rule, between


def separation(x_NF: NDArray[np.floating], label_N: NDArray[np.integer], min_trials: int) -> NDArray[np.float64]:
    """How well each input alone tells the classes apart: the area under the ROC curve of the worst pair of classes.

    An input counts as good where it rises and where it falls from one class to the other: 0.5 is chance, 1 is certain.

    Parameters
    ----------
    x_NF
        Inputs of each trial, shape (trial, input); a trial counts for an input where the value is finite.
    label_N
        Class of each trial.
    min_trials
        Fewest trials of a class that allow a judgement.

    Returns
    -------
    ndarray of float64, shape (input,)
        NaN where there is one class only, or a class with fewer trials.
    """
    worst_F = np.ones(x_NF.shape[1])
    classes = np.unique(label_N)
    if classes.size < 2:
        return np.full(x_NF.shape[1], np.nan)
    for first in range(classes.size):
        for second in range(first + 1, classes.size):
            area_F = _area(x_NF[label_N == classes[first]], x_NF[label_N == classes[second]], min_trials)
            worst_F = np.minimum(worst_F, area_F)  # NaN stays
    return worst_F


def _area(a_NF: NDArray[np.floating], b_NF: NDArray[np.floating], min_trials: int) -> NDArray[np.float64]:
    """Area under the ROC curve of each input for two classes, at least 0.5 (Mann and Whitney 1947)."""
    from scipy.stats import rankdata

    there_a_F, there_b_F = (np.isfinite(x_NF).sum(axis=0) for x_NF in (a_NF, b_NF))
    both_NF = np.concatenate([a_NF, b_NF]).astype(np.float64)
    ranks_NF = rankdata(np.where(np.isfinite(both_NF), both_NF, np.nan), axis=0, nan_policy="omit")
    sum_F = np.nansum(ranks_NF[: a_NF.shape[0]], axis=0)
    enough_F = np.minimum(there_a_F, there_b_F) >= max(1, min_trials)
    pairs_F = np.where(enough_F, there_a_F * there_b_F, 1)
    area_F = (sum_F - there_a_F * (there_a_F + 1) / 2) / pairs_F
    return np.where(enough_F, np.maximum(area_F, 1 - area_F), np.nan)


def table_of(names: Sequence[str], separation_F: NDArray[np.float64]) -> pl.DataFrame:
    """The inputs as a table to judge: record_id = name of the input, separation null where it was not judged."""
    values = [None if np.isnan(value) else float(value) for value in separation_F]
    return pl.DataFrame(
        {RECORD: list(names), "separation": values}, schema={RECORD: pl.String, "separation": pl.Float64}
    )


def rule(corpus: str, limit: float) -> Rule:
    """Rule for :func:`table_of`: no input tells the label alone."""
    return between(
        "no input tells the label alone",
        "separation",
        None,
        limit,
        severity="warning",
        reason=f"{{record_id}} alone tells the classes of {corpus} apart (area under the ROC curve {{value:.3f}} "
        f"for the worst pair; the gate reports above {limit:g}): a trigger or another channel that is no EEG?",
        observed="{value:.3f}",
    )
