"""Predicted windows and trials of held-out subjects as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.systems.mixemo.windows import Fold, Windows


def prediction_table(windows: Windows, folds: Sequence[Fold], log_p: Sequence[NDArray[np.float32]]) -> pl.DataFrame:
    """A row a test window: subject, record_id, window, label, predicted, trial_predicted.

    A trial is predicted by the mean of the class probabilities of its windows; ``window`` counts within the trial.
    """
    parts = []
    for fold, log_p_NY in zip(folds, log_p, strict=True):
        trial_N = windows.trial_N[fold.test]
        _, place_N = np.unique(trial_N, return_inverse=True)
        total_TY = np.zeros((place_N.max() + 1 if len(place_N) else 0, log_p_NY.shape[1]))
        np.add.at(total_TY, place_N, np.exp(log_p_NY.astype(np.float64)))
        parts.append(
            pl.DataFrame(
                {
                    "subject": [fold.held_out] * len(trial_N),
                    "record_id": [windows.records[trial] for trial in trial_N],
                    "label": windows.label_N[fold.test].astype(np.int16),
                    "predicted": log_p_NY.argmax(axis=1).astype(np.int16),
                    "trial_predicted": total_TY.argmax(axis=1)[place_N].astype(np.int16),
                }
            )
        )
    table = pl.concat(parts)
    return table.with_columns(window=pl.int_range(pl.len(), dtype=pl.Int32).over("record_id"))
