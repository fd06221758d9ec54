"""A corpus opened through its verdict, as windows and folds; subjects without labels or folds are refused by name."""

from __future__ import annotations

import sys
from typing import Literal

import numpy as np

from stages import artifacts
from stages.accepted import eeg
from stages.errors import DataError, UsageError
from stages.params import nearest
from stages.systems.mixemo.settings import DOMAIN
from stages.systems.mixemo.windows import Fold, Windows

#: Of this many subjects one is held out, one chooses, one is learnt from.
FEWEST_SUBJECTS = 3


def chosen_corpora(asked: Literal["labelled"] | list[str]) -> list[str]:
    """The corpora to learn from, the one that leads first.

    Of all labelled ones those lead that name their subjects, then real recordings, then those of more trials. A corpus
    that is left out is named on stderr.

    Raises
    ------
    DataError
        No corpus has labels and subjects enough.
    """
    if asked != "labelled":
        return asked
    found = []
    for key in _ingested():
        opened = eeg.open_corpus(key)
        if len(opened.classes) < 2 or len(opened.subjects) < FEWEST_SUBJECTS:
            told = f"{len(opened.classes)} classes, {len(opened.subjects)} {opened.split_unit}s"
            print(f"{key}: {told} accepted, not learnt from", file=sys.stderr)
            continue
        found.append((opened.split_unit != "subject", opened.simulated, -opened.trials(), key))
    if not found:
        raise DataError(
            artifacts.validated(DOMAIN) / "verdict.parquet",
            found="no corpus with labels and subjects enough",
            expected=f"accepted trials of two classes and {FEWEST_SUBJECTS} subjects",
            remedy="See `labels` under the format of your corpus in docs/domains/eeg.md.",
        )
    return [key for *_, key in sorted(found)]


def _ingested() -> list[str]:
    known = artifacts.ingested(DOMAIN)
    return sorted(path.name for path in known.iterdir() if path.is_dir()) if known.is_dir() else []


def read_windows(key: str, *, signals: bool) -> tuple[Windows, list[Fold]]:
    """All labelled windows of a corpus, and its folds of leave-one-subject-out.

    Parameters
    ----------
    key
        Name of the corpus in params.yaml.
    signals
        Whether windows hold the signals instead of differential entropies.

    Raises
    ------
    UsageError
        The corpus was not ingested.
    DataError
        It has no labels, too few subjects to hold one out, or windows of different sizes.
    """
    if key not in _ingested():
        raise UsageError(f"systems.mixemo.train.corpora: {key} was not ingested{nearest(key, _ingested())}")
    opened = eeg.open_corpus(key)
    parts = [opened.signals(name) if signals else opened.features(name) for name in opened.subjects]
    parts = [_labelled(part) for part in parts]
    subjects = [name for name, part in zip(opened.subjects, parts, strict=True) if len(part.label_W)]
    parts = [part for part in parts if len(part.label_W)]
    _check(key, opened, subjects, parts)
    first = np.cumsum([0, *(len(part.record_ids) for part in parts[:-1])])
    windows = Windows(
        corpus=key,
        x_ND=np.concatenate([part.x_WCB for part in parts]),
        label_N=np.concatenate([part.label_W for part in parts]),
        subject_N=np.repeat(np.arange(len(parts)), [len(part.label_W) for part in parts]),
        trial_N=np.concatenate([part.trial_W + begin for part, begin in zip(parts, first, strict=True)]),
        classes=opened.classes,
        subjects=tuple(subjects),
        records=tuple(name for part in parts for name in part.record_ids),
        simulated=opened.simulated,
        group_noun=opened.split_unit,
    )
    folds = [_fold(windows, fold) for fold in opened.folds() if fold.held_out in subjects]
    usable = [fold for fold in folds if len(fold.train) and len(fold.validation)]
    if not usable:
        raise DataError(
            artifacts.validated(DOMAIN) / "splits.parquet",
            record=f"corpus {key}",
            found=f"{len(folds)} folds, none with subjects to learn from and to choose by",
            expected=f"at least {FEWEST_SUBJECTS} subjects with accepted, labelled trials",
            remedy="Take the corpus out of systems.mixemo.train.corpora in params.yaml.",
        )
    return windows, usable


def _labelled(part: eeg.Windows) -> eeg.Windows:
    keep = part.label_W != eeg.UNLABELLED
    return part._replace(x_WCB=part.x_WCB[keep], label_W=part.label_W[keep], trial_W=part.trial_W[keep])


def _check(key: str, opened: eeg.Accepted, subjects: list[str], parts: list[eeg.Windows]) -> None:
    labels = {int(label) for part in parts for label in np.unique(part.label_W)}
    if len(labels) < 2:
        raise DataError(
            artifacts.ingested(DOMAIN, key) / "records.parquet",
            found=f"windows of {len(labels)} classes of {', '.join(opened.classes) or 'none'}",
            expected="accepted trials of at least two classes",
            remedy="Take the corpus out of systems.mixemo.train.corpora in params.yaml.",
        )
    shapes = {part.x_WCB.shape[1:]: name for name, part in zip(subjects, parts, strict=True)}
    if len(shapes) > 1:
        told = "; ".join(f"{channels} x {width} for {name}" for (channels, width), name in shapes.items())
        raise DataError(
            artifacts.ingested(DOMAIN, key) / "subjects",
            found=f"windows of different sizes ({told})",
            expected="the same channels and bands (or samples) for every subject",
            remedy="Set eeg.preprocessing.rate, so that all signals have one rate, and ingest again.",
        )


def _fold(windows: Windows, fold: eeg.Fold) -> Fold:
    place = {name: number for number, name in enumerate(windows.subjects)}

    def of(names: tuple[str, ...]) -> np.ndarray:
        return np.flatnonzero(np.isin(windows.subject_N, [place[name] for name in names if name in place]))

    return Fold(fold.held_out, of(fold.train), of(fold.validation), of(fold.test))
