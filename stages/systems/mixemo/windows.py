"""Windows of a corpus as arrays, and the folds that hold one subject out.

Shape suffixes: N window, C channel, B band, T time, D feature, G subject, F fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

#: Below this standard deviation a feature is constant: it is centred and not scaled.
CONSTANT = 1e-6


@dataclass(frozen=True)
class Windows:
    """All accepted windows of a corpus.

    Attributes
    ----------
    corpus
        Its key.
    x_ND
        Float32, shape (window, channel, band) of differential entropies in nats, or (window, channel, time) of
        signals in microvolts.
    label_N, subject_N, trial_N
        Class, subject and trial of each window: places in ``classes``, ``subjects`` and ``records``.
    classes, subjects, records
        Names of classes, held-out groups and trials.
    simulated
        Whether a simulator made the corpus.
    group_noun
        What a held-out group is: subject, or block of consecutive trials where the corpus names no subjects.
    state_N
        Hidden state of each window where a simulator knows it.
    """

    corpus: str
    x_ND: NDArray[np.float32]
    label_N: NDArray[np.int64]
    subject_N: NDArray[np.int64]
    trial_N: NDArray[np.int64]
    classes: tuple[str, ...]
    subjects: tuple[str, ...]
    records: tuple[str, ...]
    simulated: bool
    group_noun: str = "subject"
    state_N: NDArray[np.int64] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Channels and bands (or samples) of one window."""
        return int(self.x_ND.shape[1]), int(self.x_ND.shape[2])


@dataclass(frozen=True)
class Fold:
    """One subject held out: places of windows to learn from, to choose by, and to test on."""

    held_out: str
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


def leave_one_out(windows: Windows, validation: int, rng: np.random.Generator) -> list[Fold]:
    """Hold each subject out once; ``validation`` of the others, drawn anew for each fold, choose the weights.

    Used for simulated populations; a corpus has its folds from data/validated/eeg/splits.parquet.
    """
    subjects = np.arange(len(windows.subjects))
    folds = []
    for held_out in subjects:
        chosen = rng.permutation(subjects[subjects != held_out])[:validation]
        of = windows.subject_N
        part = [~np.isin(of, [held_out, *chosen]), np.isin(of, chosen), of == held_out]
        folds.append(Fold(windows.subjects[held_out], *(np.flatnonzero(mask) for mask in part)))
    return folds


def standardised_by_subject(windows: Windows) -> Windows:
    """Every feature of every subject with mean 0 and standard deviation 1 over the subject's own windows.

    No label is used, but all windows of the held-out subject are: a method on these is transductive.
    """
    x_ND = windows.x_ND.copy()
    for place in range(len(windows.subjects)):
        mine = windows.subject_N == place
        if mine.any():
            x_ND[mine] = standardise(x_ND[mine], *moments(x_ND[mine]))
    return replace(windows, x_ND=x_ND)


def moments(x_ND: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each feature over windows; constant features have 1.

    Signals are scaled by channel: their samples share one mean and one standard deviation.
    """
    mean = x_ND.mean(axis=0, dtype=np.float64)
    std = x_ND.std(axis=0, dtype=np.float64)
    return mean.astype(np.float32), np.where(std < CONSTANT, 1.0, std).astype(np.float32)


def channel_moments(x_NCT: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation of each channel over windows and samples, shape (channel, 1)."""
    mean = x_NCT.mean(axis=(0, 2), dtype=np.float64)[:, None]
    std = x_NCT.std(axis=(0, 2), dtype=np.float64)[:, None]
    return mean.astype(np.float32), np.where(std < CONSTANT, 1.0, std).astype(np.float32)


def standardise(x_ND: NDArray[np.float32], mean: NDArray[np.float32], std: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract a mean and divide by a standard deviation, feature by feature."""
    return ((x_ND - mean) / std).astype(np.float32)


def padded(places: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Lists of different lengths as one array (fold, place), and where it is filled; gaps repeat the first place."""
    width = max((len(found) for found in places), default=0)
    table_FN = np.zeros((len(places), width), np.int64)
    filled_FN = np.zeros((len(places), width), bool)
    for row, found in enumerate(places):
        table_FN[row, : len(found)] = found
        table_FN[row, len(found) :] = found[0]
        filled_FN[row, : len(found)] = True
    return table_FN, filled_FN
