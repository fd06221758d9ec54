"""Trials and corpora in memory, whatever the layout on disk.

Shapes: C channels, T samples, W windows, F bands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.eeg.config import AnyFormat
from stages.ingest.eeg.schema import BANDS, MICROVOLTS, POSSIBLE_STD_UV, Unit

Array: TypeAlias = NDArray[np.float32]

AGAIN = "Copy or download it again."


@dataclass(frozen=True)
class Trial:
    """One trial of one subject; its samples are read when they are asked for.

    Attributes
    ----------
    session
        Ordinal of the session in order of date, "1" first.
    trial
        Number of the trial inside its session, the same stimulus having the same number where a corpus has one order.
    stimulus
        What was shown; trials that share it, also of other subjects, are not independent.
    label, label_value
        Name of the class, and the number that stands in the files.
    targets
        Ratings such as valence.
    rate
        Sampling rate in Hz; NaN where the corpus ships features alone.
    unknown_channels, duplicate_channels
        Columns of the file that are no EEG, and electrodes that stood twice (the first is in ``channels``).
    signal
        Reads the samples_CT in ``unit``, NaN where a value is missing.
    features
        Reads the features_WCF, in the unit of the corpus.
    """

    subject: str
    session: str
    trial: int
    stimulus: str | None
    label: str | None
    label_value: float | int | None
    rate: float
    channels: tuple[str, ...]
    unit: Unit
    source_file: str
    signal: Callable[[], Array] | None = None
    features: Callable[[], Array] | None = None
    targets: dict[str, float] = field(default_factory=dict)
    unknown_channels: tuple[str, ...] = ()
    duplicate_channels: tuple[str, ...] = ()

    @property
    def trial_id(self) -> str:
        """``SUBJECT/SESSION/TRIAL``, unique in its corpus."""
        return f"{self.subject}/{self.session}/{self.trial}"


@dataclass(frozen=True)
class Corpus:
    """What is known of a corpus before its samples are read.

    Attributes
    ----------
    label_names
        Names of the classes, in the order of their numbers.
    channels
        EEG channels of the corpus; one that a trial lacks is missing there.
    rate
        Sampling rate in Hz; None where the recordings differ or the corpus ships features alone.
    bands
        Names of the bands of shipped features; empty for signals.
    window_seconds
        Length of the windows of shipped features.
    feature_unit
        Unit of shipped features, as far as the publisher states it.
    non_eeg
        Columns of the files that are passed over.
    split_unit
        What ``subjects`` are: people, or contiguous blocks where a corpus does not say who was recorded.
    notes
        What a user should know about the way the files were read.
    """

    key: str
    reader: str
    title: str
    kind: Literal["signals", "features"]
    subjects: tuple[str, ...]
    label_names: tuple[str, ...]
    channels: tuple[str, ...]
    rate: float | None
    unit: Unit
    bands: tuple[str, ...] = ()
    window_seconds: float | None = None
    feature_unit: str | None = None
    non_eeg: tuple[str, ...] = ()
    split_unit: Literal["subject", "block"] = "subject"
    files: tuple[str, ...] = ()
    citation: str = ""
    license: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenCorpus:
    """A corpus whose trials can be read, one subject at a time."""

    corpus: Corpus
    load: Callable[[str], list[Trial]]

    def __iter__(self) -> Iterator[tuple[str, list[Trial]]]:
        """Subjects in order, each with its trials; what belongs to one is let go before the next is read."""
        for subject in self.corpus.subjects:
            yield subject, self.load(subject)


def open_corpus(path: Path, options: AnyFormat, key: str = "") -> OpenCorpus:
    """Look at the files of a corpus without reading its samples.

    Parameters
    ----------
    path
        Folder or file of the corpus, as it was unpacked.
    options
        The block ``format`` of params.yaml.
    key
        Name of the corpus in params.yaml.

    Raises
    ------
    DataError
        The files are not laid out as the format says.
    """
    if not path.exists():
        raise DataError(
            path,
            found="no such file or folder",
            expected=f"a corpus in the layout `{options.reader}`",
            remedy="Correct `path` in params.yaml, or bring the data with `dvc pull`.",
        )
    opened = _reader(options)(path)
    return _narrowed(OpenCorpus(replace(opened.corpus, key=key), opened.load), path, options)


def read_corpus(path: Path, options: AnyFormat, key: str = "") -> Corpus:
    """What is known of a corpus before its samples are read; raises as :func:`open_corpus`."""
    return open_corpus(path, options, key).corpus


def iter_subjects(path: Path, options: AnyFormat) -> Iterator[tuple[str, list[Trial]]]:
    """Subjects of a corpus, each with its trials; raises as :func:`open_corpus`."""
    yield from open_corpus(path, options)


def _reader(options: AnyFormat) -> Callable[[Path], OpenCorpus]:
    # The readers import scipy, h5py or mne: each is loaded when its layout is asked for.
    from stages.ingest.eeg import config

    match options:
        case config.Seed() | config.SeedIV():
            from stages.ingest.eeg import seed

            return lambda path: seed.open_signals(path, options)
        case config.SeedFeatures() | config.SeedIVFeatures():
            from stages.ingest.eeg import seed_features

            return lambda path: seed_features.open_features(path, options)
        case config.SeedV():
            from stages.ingest.eeg import seed_v

            return lambda path: seed_v.open_features(path, options)
        case config.Deap():
            from stages.ingest.eeg import deap

            return lambda path: deap.open_signals(path, options)
        case config.Dreamer():
            from stages.ingest.eeg import dreamer

            return lambda path: dreamer.open_signals(path, options)
        case config.Faced() | config.FacedFeatures():
            from stages.ingest.eeg import faced

            return lambda path: faced.open_faced(path, options)
        case config.Edf():
            from stages.ingest.eeg import edf

            return lambda path: edf.open_recordings(path, options)
        case config.Bids():
            from stages.ingest.eeg import bids

            return lambda path: bids.open_recordings(path, options)
        case config.Uea():
            from stages.ingest.eeg import uea

            return lambda path: uea.open_signals(path, options)


def _narrowed(opened: OpenCorpus, path: Path, options: AnyFormat) -> OpenCorpus:
    """Keep the subjects and sessions that were asked for; one that is not there is an error."""
    corpus = opened.corpus
    subjects = options.subjects or corpus.subjects
    absent = [subject for subject in subjects if subject not in corpus.subjects]
    if absent:
        raise DataError(
            path,
            found=f"no subject {', '.join(absent)}",
            expected=f"subjects of {', '.join(corpus.subjects)}",
            remedy="Correct `format.subjects` in params.yaml.",
        )
    wanted = None if options.sessions is None else {str(session) for session in options.sessions}

    def load(subject: str) -> list[Trial]:
        trials = opened.load(subject)
        if wanted is None:
            return trials
        there = {trial.session for trial in trials}
        if not wanted <= there:
            raise DataError(
                path,
                record=f"subject {subject}",
                found=f"sessions {', '.join(sorted(there))}",
                expected=f"sessions {', '.join(sorted(wanted))}",
                remedy="Correct `format.sessions` in params.yaml: sessions count from 1 in order of date.",
            )
        return [trial for trial in trials if trial.session in wanted]

    return OpenCorpus(replace(corpus, subjects=tuple(subjects)), load)


def in_microvolts(values_CT: NDArray[np.generic], unit: str, file: str | Path, record: str) -> Array:
    """Samples as float32 in microvolts (or counts), after a look at whether the declared unit can be right.

    Parameters
    ----------
    values_CT
        Samples in ``unit``; the median over channels of their standard deviation is looked at.
    unit
        V, mV, uV or counts.

    Raises
    ------
    DataError
        The signal would be larger or smaller than any EEG: its unit is not what was said. Never rescaled by guess.
    """
    if unit == "counts":
        return np.ascontiguousarray(values_CT, dtype=np.float32)
    scaled = np.asarray(values_CT, dtype=np.float64) * MICROVOLTS[unit]
    low, high = POSSIBLE_STD_UV
    spread = typical_std(scaled)
    if spread is not None and not low <= spread <= high:
        likely = [other for other, factor in MICROVOLTS.items() if low <= spread / MICROVOLTS[unit] * factor <= high]
        advice = f"`unit: {likely[-1]}`" if likely else "`unit: counts`"
        raise DataError(
            file,
            record=record,
            found=f"a standard deviation of {spread / MICROVOLTS[unit]:.3g} {unit}",
            expected="that of EEG, 1 to 200 uV (1e-6 to 2e-4 V)",
            remedy=f"The unit is not {unit}; say what it is in params.yaml under `format`, such as {advice}.",
        )
    return np.ascontiguousarray(scaled, dtype=np.float32)


def typical_std(values_CT: NDArray[np.floating]) -> float | None:
    """Median of the standard deviations of the channels that vary at all; None where none does."""
    finite = [row[np.isfinite(row)] for row in values_CT]
    spreads = [float(row.std()) for row in finite if row.size > 1]
    varying = [spread for spread in spreads if spread > 0]
    return float(np.median(varying)) if varying else None


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which ``2`` comes before ``10`` and ``s2`` before ``s10``."""
    import re

    parts = re.split(r"(\d+)", name)
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part)


def checked_features(values_WCF: NDArray[np.generic], channels: int, file: str | Path, record: str) -> Array:
    """Shipped features as float32, an infinity (the logarithm of a flat channel) as NaN.

    Raises
    ------
    DataError
        The shape is not (windows, channels, bands), or there is no window.
    """
    expected = (channels, len(BANDS))
    if values_WCF.ndim != 3 or values_WCF.shape[1:] != expected or values_WCF.shape[0] == 0:
        raise DataError(
            file,
            record=record,
            found=f"features of shape {values_WCF.shape}",
            expected=f"(windows, {channels} channels, {len(BANDS)} bands)",
            remedy=AGAIN,
        )
    values = np.ascontiguousarray(values_WCF, dtype=np.float32)
    return np.where(np.isfinite(values), values, np.float32("nan"))
