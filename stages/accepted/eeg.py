"""An EEG corpus opened through its verdict: what a system may learn from, one subject in memory at a time.

Shape suffixes: W window, C channel, B band, T sample within a window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import xarray as xr
from numpy.typing import NDArray

from stages import artifacts
from stages.eeg.masking import filled
from stages.errors import DataError, UsageError

DOMAIN = "eeg"
UNLABELLED = -1


class Windows(NamedTuple):
    """Windows of the accepted trials of one subject, in the order of the trials.

    Attributes
    ----------
    x_WCB
        Differential entropy in nats (or what a corpus of features ships), float32, shape (window, channel, band), all
        finite; from
        :meth:`Accepted.signals` the samples in the unit of the corpus, shape (window, channel, sample).
    label_W
        Class of each window, an index into :attr:`Accepted.classes`; -1 in a corpus without labels.
    trial_W
        Trial of each window, an index into ``record_ids``.
    record_ids
        The accepted trials of the subject.
    """

    x_WCB: NDArray[np.float32]
    label_W: NDArray[np.int64]
    trial_W: NDArray[np.int64]
    record_ids: list[str]


@dataclass(frozen=True)
class Fold:
    """Subjects of one fold of leave-one-subject-out; only ``train`` may be learnt from."""

    held_out: str
    train: tuple[str, ...]
    validation: tuple[str, ...]

    @property
    def test(self) -> tuple[str, ...]:
        """The subject that is held out, as a part like the others."""
        return (self.held_out,)


@dataclass(frozen=True)
class Accepted:
    """One corpus through the eyes of its gate.

    Attributes
    ----------
    key
        Its name in params.yaml.
    classes
        Names of the classes, in the order of ``label_W``.
    subjects
        Subjects with an accepted trial, in the order of reading.
    channels, bands
        Names along these dimensions of the features.
    about
        corpus.json.
    """

    key: str
    classes: tuple[str, ...]
    subjects: tuple[str, ...]
    channels: tuple[str, ...]
    bands: tuple[str, ...]
    about: dict[str, Any]
    _records: pl.DataFrame
    _folds: pl.DataFrame

    @property
    def simulated(self) -> bool:
        """Whether the corpus is simulated, which every table has to say."""
        return bool(self.about.get("simulated", False))

    @property
    def split_unit(self) -> str:
        """What a group of the split is: subject, or block where the corpus does not say who was recorded."""
        return str(self.about.get("split_unit", "subject"))

    def trials(self, subjects: Iterable[str] | None = None) -> int:
        """Number of accepted trials, of all or of some subjects."""
        frame = self._records.filter("accepted")
        return frame.height if subjects is None else frame.filter(pl.col("subject").is_in(list(subjects))).height

    def folds(self) -> list[Fold]:
        """The folds, in the order of the subjects; none where no subject can be held out."""
        found = []
        for held_out in self.subjects:
            mine = self._folds.filter(pl.col("fold") == f"{self.key}/{held_out}")
            parts = {part: set(groups) for part, groups in mine.group_by("part").agg("group").iter_rows()}
            named = {
                part: tuple(s for s in self.subjects if f"{self.key}/{s}" in parts.get(part, ()))
                for part in ("train", "validation")
            }
            if mine.height:
                found.append(Fold(held_out, named["train"], named["validation"]))
        return found

    def features(self, subject: str, *, artifacts_too: bool = True) -> Windows:
        """Differential entropy of the windows of one subject.

        A value that is masked (the channel was flat, or had missing samples) is filled from the same trial, see
        :func:`stages.eeg.masking.filled`; a window that nothing in its trial can fill is left out.

        Parameters
        ----------
        artifacts_too
            Keep the windows that are flagged as artifact.

        Raises
        ------
        UsageError
            The corpus has no such subject with accepted trials.
        """
        dataset = self._store(subject, "de")
        de_WCB = dataset["de"].to_numpy()
        filled_WCB, _ = filled(de_WCB, dataset["trial"].to_numpy())
        chosen_W = np.asarray(np.isfinite(filled_WCB).all(axis=(1, 2)))
        return self._windows(subject, dataset, filled_WCB, chosen_W, artifacts_too)

    def signals(self, subject: str, *, artifacts_too: bool = True) -> Windows:
        """Samples of the same windows, shape (window, channel, sample), in microvolts (or counts).

        A window with a sample that is no number is left out.

        Raises
        ------
        DataError
            The corpus ships features and no signal.
        """
        dataset = self._store(subject, "de")
        signal = self._store(subject, "signal")
        rate = float(signal.attrs["rate"])
        samples_CT = signal["signal"].to_numpy()
        length = round(float(dataset.attrs["window_seconds"]) * rate)
        trial_W = dataset["trial"].to_numpy()
        offset_W = np.round(dataset["start_seconds"].to_numpy() * rate).astype(np.int64)
        start_W = signal["trial_start"].to_numpy()[trial_W] + offset_W
        inside_W = start_W + length <= signal["trial_stop"].to_numpy()[trial_W]
        place_WT = np.where(inside_W, start_W, 0)[:, None] + np.arange(length)
        x_WCT = np.ascontiguousarray(samples_CT[:, place_WT].transpose(1, 0, 2), dtype=np.float32)
        finite_W = np.asarray(np.isfinite(x_WCT).all(axis=(1, 2)))
        return self._windows(subject, dataset, x_WCT, inside_W & finite_W, artifacts_too)

    def _store(self, subject: str, group: str) -> xr.Dataset:
        if subject not in self.subjects:
            raise UsageError(f"{self.key} has no subject {subject} with accepted trials; it has {self.subjects}.")
        store = artifacts.ingested(DOMAIN, self.key) / "subjects" / f"{subject}.zarr"
        if not (store / group).is_dir():
            raise DataError(
                store,
                found=f"no group `{group}`",
                expected="what ingest writes for a subject; a corpus of features has no signal",
                remedy=f"Run `python -m stages ingest {DOMAIN}@{self.key}` again, or use the features.",
            )
        return artifacts.open_dataset(store, group)

    def _windows(
        self,
        subject: str,
        dataset: xr.Dataset,
        x_WCX: NDArray[np.float32],
        chosen_W: NDArray[np.bool_],
        artifacts_too: bool,
    ) -> Windows:
        mine = self._records.filter(pl.col("subject") == subject)
        accepted_N = mine["accepted"].to_numpy()
        trial_W = dataset["trial"].to_numpy()
        chosen_W = chosen_W & accepted_N[trial_W]
        if not artifacts_too:
            chosen_W &= ~dataset["artifact"].to_numpy().astype(bool)
        number = {name: place for place, name in enumerate(self.classes)}
        label_N = np.array([number.get(label, UNLABELLED) for label in mine["label"]], dtype=np.int64)
        place_N = np.cumsum(accepted_N) - 1
        kept_W = trial_W[chosen_W]
        record_ids = mine.filter("accepted")["record_id"].to_list()
        return Windows(x_WCX[chosen_W], label_N[kept_W], place_N[kept_W].astype(np.int64), record_ids)


def open_corpus(key: str, verdict: Path | None = None, splits: Path | None = None) -> Accepted:
    """Open one corpus; nothing but its tables is read until a subject is asked for.

    Parameters
    ----------
    key
        Name of the corpus in params.yaml.
    verdict, splits
        verdict.parquet and splits.parquet of the domain; by default those of the gate.

    Raises
    ------
    UsageError
        The gate knows no such corpus.
    """
    folder, gate = artifacts.ingested(DOMAIN, key), artifacts.validated(DOMAIN)
    records = artifacts.read_table(folder / "records.parquet").select("record_id", "subject", "label").collect()
    outcome = artifacts.read_table(verdict or gate / "verdict.parquet").select("record_id", "outcome")
    mine = outcome.filter(pl.col("record_id").str.starts_with(f"{key}/")).collect()
    records = records.join(mine.unique(), on="record_id", how="left", maintain_order="left")
    unjudged = records.filter(pl.col("record_id").is_not_null() & pl.col("outcome").is_null()).height
    if unjudged or not mine.height:
        raise UsageError(
            f"The gate has no verdict on {unjudged} of {records.height} trials of {key}. "
            f"Run `python -m stages validate {DOMAIN}` again."
        )
    records = records.with_columns((pl.col("outcome") == "accepted").fill_null(False).alias("accepted"))
    table = artifacts.read_table(splits or gate / "splits.parquet").select("group", "fold", "part").unique()
    about = artifacts.read_json(folder / "corpus.json")
    subjects = records.filter("accepted")["subject"].unique(maintain_order=True).to_list()
    channels, bands = _dimensions(folder, subjects)
    return Accepted(
        key=key,
        classes=tuple(str(label) for label in about.get("label_names", [])),
        subjects=tuple(subjects),
        channels=channels,
        bands=bands,
        about=about,
        _records=records,
        _folds=table.filter(pl.col("group").str.starts_with(f"{key}/")).collect(),
    )


def _dimensions(folder: Path, subjects: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not subjects:
        return (), ()
    dataset = artifacts.open_dataset(folder / "subjects" / f"{subjects[0]}.zarr", "de")
    return tuple(map(str, dataset.attrs["channels"])), tuple(map(str, dataset.attrs["bands"]))
