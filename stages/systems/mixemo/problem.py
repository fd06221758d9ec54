"""All folds of a corpus as one training problem: windows, each fold's places in them, random draws.

Shape suffixes: F fold, N window of the corpus, M place in a fold's list of training windows, S sample, C channel, T
time or band, Y class, G subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.runtime import random_numbers
from stages.systems.mixemo.model import Layout
from stages.systems.mixemo.partition import one_hot
from stages.systems.mixemo.windows import Fold, Windows, channel_moments, moments, padded


class Draws:
    """Random numbers of every fold, each from a generator of its own: no fold moves another one's."""

    def __init__(self, generators: Sequence[np.random.Generator], place: torch.device) -> None:
        self.generators = generators
        self.place = place

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on [0, 1), shape (fold, ...)."""
        return self._stacked([rng.random(shape, np.float32) for rng in self.generators])

    def gamma(self, alpha: float, *shape: int) -> Tensor:
        """Gamma variates of shape parameter ``alpha``, shape (fold, ...)."""
        return self._stacked([rng.standard_gamma(alpha, shape) for rng in self.generators])

    def beta(self, alpha: float, *shape: int) -> Tensor:
        """Beta(alpha, alpha) variates, shape (fold, ...)."""
        return self._stacked([rng.beta(alpha, alpha, shape) for rng in self.generators])

    def permutation(self, size: int) -> Tensor:
        """A permutation of a batch for each fold, shape (fold, size)."""
        return torch.from_numpy(np.stack([rng.permutation(size) for rng in self.generators])).to(self.place)

    def _stacked(self, drawn: Sequence[NDArray[np.floating]]) -> Tensor:
        return torch.from_numpy(np.stack(drawn).astype(np.float32)).to(self.place)


@dataclass(frozen=True)
class Batch:
    """Samples of each fold: standardised windows, class, subject, and place among the fold's training windows."""

    x_FSCT: Tensor
    label_FS: Tensor
    subject_FS: Tensor
    place_FS: Tensor


@dataclass(frozen=True)
class Problem:
    """Training and validation windows of all folds; windows of a fold's held-out subject are in none of its lists.

    Attributes
    ----------
    layout
        Sizes of the network.
    x_NCT, label_N, subject_N
        Windows of the corpus as they were read, classes and subjects.
    mean_FCT, std_FCT
        Moments of each fold's training windows, which standardise everything the fold's network sees.
    train_FM, trained_FM
        Places of training windows, and where a fold has one.
    validation_FM, validated_FM
        The same for validation windows.
    subjects
        Number of subjects of the corpus.
    """

    layout: Layout
    x_NCT: Tensor
    label_N: Tensor
    subject_N: Tensor
    mean_FCT: Tensor
    std_FCT: Tensor
    train_FM: Tensor
    trained_FM: Tensor
    validation_FM: Tensor
    validated_FM: Tensor
    subjects: int

    @property
    def folds(self) -> int:
        """Number of folds."""
        return self.train_FM.shape[0]

    @property
    def training_windows(self) -> int:
        """Training windows of the largest fold: what one pass over them counts."""
        return self.train_FM.shape[1]

    def standardised(self, window_FS: Tensor) -> Tensor:
        """Windows as each fold's network sees them, shape (fold, sample, channel, band or time)."""
        return (self.x_NCT[window_FS] - self.mean_FCT[:, None]) / self.std_FCT[:, None]

    def batch(self, place_FS: Tensor) -> Batch:
        """The training windows at some places."""
        window_FS = self.train_FM.gather(1, place_FS)
        return Batch(self.standardised(window_FS), self.label_N[window_FS], self.subject_N[window_FS], place_FS)

    def drawn_evenly(self, uniform_FS: Tensor) -> Tensor:
        """Places of training windows, each equally likely, out of uniform numbers."""
        count_F = self.trained_FM.sum(dim=1, keepdim=True)
        return torch.minimum((uniform_FS * count_F).long(), count_F - 1)

    def training_labels(self) -> Tensor:
        """Classes of the training windows as 0 and 1, shape (fold, place, class)."""
        return one_hot(self.label_N[self.train_FM], self.layout.classes, self.trained_FM)


def make_problem(windows: Windows, folds: Sequence[Fold], layout: Layout, place: torch.device) -> Problem:
    """Put a corpus and its folds on a device; the moments are those of each fold's training windows."""
    train, trained = padded([fold.train for fold in folds])
    validation, validated = padded([fold.validation for fold in folds])
    of_windows = channel_moments if layout.learned_front else moments
    scales = [of_windows(windows.x_ND[fold.train]) for fold in folds]

    def there(array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(place)

    return Problem(
        layout=layout,
        x_NCT=there(windows.x_ND),
        label_N=there(windows.label_N),
        subject_N=there(windows.subject_N),
        mean_FCT=there(np.stack([mean for mean, _ in scales])),
        std_FCT=there(np.stack([std for _, std in scales])),
        train_FM=there(train),
        trained_FM=there(trained),
        validation_FM=there(validation),
        validated_FM=there(validated),
        subjects=len(windows.subjects),
    )


def fold_generators(seed: int, use: str, corpus: str, folds: Sequence[Fold]) -> list[np.random.Generator]:
    """A generator for each fold and use of a seed; it depends on the fold's name and on no other fold."""
    return [random_numbers(seed, use, corpus, fold.held_out) for fold in folds]
