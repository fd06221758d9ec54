"""What the feature store of a subject holds for each of its trials, read one subject at a time.

Shape suffixes: W window, C channel, B band, F feature (channel * band), N trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.errors import DataError

SLACK = 1e-6  # seconds: the rounding of a start time
COLUMNS = {"stored_windows": pl.Int64, "stray_windows": pl.Int64, "masked_share": pl.Float64}


@dataclass(frozen=True)
class Stored:
    """Windows of the trials of one corpus, trial by trial in the order of records.parquet.

    Attributes
    ----------
    counts
        stored_windows; stray_windows (that reach beyond the trial); masked_share (of the features of all windows that
        are no number; null without windows).
    means_NF
        Mean of each feature over the windows that have it, shape (trial, channel * band); NaN where there is none.
    names
        Name of each feature.
    """

    counts: pl.DataFrame
    means_NF: NDArray[np.float64]
    names: tuple[str, ...]


def read_stores(folder: Path, records: pl.DataFrame) -> Stored:
    """Count the windows of every trial and average its features.

    Raises
    ------
    DataError
        A subject has no store, the store names a trial the subject does not have, or two subjects have other channels.
    """
    again = f"Run `python -m stages ingest eeg@{folder.name}` again."
    stored_N, stray_N = np.zeros((2, records.height), np.int64)
    masked_N = np.full(records.height, np.nan)
    means_NF: NDArray[np.float64] | None = None
    names: tuple[str, ...] = ()
    rows = records.select("subject", "seconds").with_row_index("row")
    for (subject,), mine in rows.group_by("subject", maintain_order=True):
        store = folder / "subjects" / f"{subject}.zarr"
        if not (store / "de").is_dir():
            raise DataError(store, found="no group `de`", expected=f"the features of subject {subject}", remedy=again)
        dataset = artifacts.open_dataset(store, "de")
        de_WCB = dataset["de"].to_numpy()
        trial_W = dataset["trial"].to_numpy()
        if trial_W.size and not (trial_W.min() >= 0 and trial_W.max() < mine.height):
            raise DataError(
                store,
                found=f"windows of trials {trial_W.min()} to {trial_W.max()}",
                expected=f"trials 0 to {mine.height - 1}, those of subject {subject} in records.parquet",
                remedy=again,
            )
        here = tuple(f"{channel} {band}" for channel in dataset.attrs["channels"] for band in dataset.attrs["bands"])
        if means_NF is None:
            means_NF, names = np.full((records.height, len(here)), np.nan), here
        elif here != names:
            raise DataError(
                store,
                found=f"{len(here)} features {_first_other(here, names)}",
                expected=f"those of the subjects before it ({len(names)})",
                remedy="All subjects of a corpus have the same channels; take this one out, or mend its files.",
            )
        end_W = dataset["start_seconds"].to_numpy() + float(dataset.attrs["window_seconds"])
        stray_W = end_W > mine["seconds"].to_numpy()[trial_W] + SLACK
        row_N = mine["row"].to_numpy()
        stored_N[row_N] = np.bincount(trial_W, minlength=mine.height)
        stray_N[row_N] = np.bincount(trial_W[stray_W], minlength=mine.height)
        means_NF[row_N], masked_N[row_N] = _averages(de_WCB.reshape(len(de_WCB), -1), trial_W, mine.height)
    columns = (stored_N, stray_N, masked_N)
    frame = pl.DataFrame(dict(zip(COLUMNS, columns, strict=True)), schema=COLUMNS, nan_to_null=True)
    return Stored(frame, np.empty((records.height, 0)) if means_NF is None else means_NF, names)


def _averages(
    feature_WF: NDArray[np.float32], trial_W: NDArray[np.integer], trials: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of each feature over the windows of each trial that have it, and the share of the values that are none."""
    means_NF = np.full((trials, feature_WF.shape[1]), np.nan)
    masked_N = np.full(trials, np.nan)
    for trial in np.unique(trial_W):
        mine_WF = feature_WF[trial_W == trial]
        there_WF = np.isfinite(mine_WF)
        count_F = there_WF.sum(axis=0)
        sum_F = np.where(there_WF, mine_WF, 0).sum(axis=0, dtype=np.float64)
        means_NF[trial] = np.where(count_F > 0, sum_F / np.maximum(count_F, 1), np.nan)
        masked_N[trial] = 1 - there_WF.mean()
    return means_NF, masked_N


def _first_other(here: tuple[str, ...], names: tuple[str, ...]) -> str:
    other = next((name for name in here if name not in names), None)
    return "in another order, or fewer" if other is None else f"with {other}"
