"""SEED and SEED-IV as signals: (62, samples) for each trial, in microvolts at 200 Hz.

In SEED the 15 clips are the same in every session, so the stimulus is the number of the trial; in SEED-IV each session
has 24 clips of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from stages.ingest.eeg import mat, seed_files
from stages.ingest.eeg.config import Seed, SeedIV
from stages.ingest.eeg.names import SEED_62
from stages.ingest.eeg.schema import Unit
from stages.ingest.eeg.seed_files import Session, TrialKey
from stages.ingest.eeg.trials import Array, Corpus, OpenCorpus, Trial, in_microvolts

KEY = re.compile(r".+_eeg(?P<trial>\d+)")


def open_signals(path: Path, options: Seed | SeedIV) -> OpenCorpus:
    """Open ``Preprocessed_EEG/`` of SEED or ``eeg_raw_data/`` of SEED-IV.

    Raises
    ------
    DataError
        The files are not laid out so.
    """
    first = isinstance(options, Seed)
    if first:
        found = seed_files.seed_sessions(seed_files.inside(path, "Preprocessed_EEG"), KEY, axes=2)
    else:
        found = seed_files.seed_iv_sessions(seed_files.inside(path, "eeg_raw_data"), KEY, axes=2)
    names = seed_files.SEED_LABELS if first else seed_files.SEED_IV_LABELS
    unit: Unit = "counts" if options.unit == "counts" else "uV"
    corpus = Corpus(
        key="",
        reader=options.reader,
        title=seed_files.SEED_TITLE if first else seed_files.SEED_IV_TITLE,
        kind="signals",
        subjects=found.subjects,
        label_names=tuple(names.values()),
        channels=SEED_62,
        rate=options.rate,
        unit=unit,
        files=tuple(session.name for session in found.all),
        citation=seed_files.SEED_CITATION if first else seed_files.SEED_IV_CITATION,
        license=seed_files.LICENSE,
        notes=found.notes,
    )

    def trial(session: Session, key: TrialKey) -> Trial:
        return Trial(
            subject=session.subject,
            session=session.session,
            trial=key.trial,
            stimulus=stimulus(session, key, shared=first),
            label=names[key.label_value],
            label_value=key.label_value,
            rate=options.rate,
            channels=SEED_62,
            unit=unit,
            source_file=session.name,
            signal=_signal(session, key, options.unit),
        )

    def load(subject: str) -> list[Trial]:
        return [trial(session, key) for session in found.of(subject) for key in session.trials]

    return OpenCorpus(corpus, load)


def stimulus(session: Session, key: TrialKey, *, shared: bool) -> str:
    """Name of the clip of a trial: the number alone where all sessions show the same clips."""
    return f"clip {key.trial}" if shared else f"session {session.session} clip {key.trial}"


def _signal(session: Session, key: TrialKey, unit: str) -> Callable[[], Array]:
    return partial(_read, session.file, key.variable, unit)


def _read(file: Path, variable: str, unit: str) -> Array:
    return in_microvolts(mat.numbers(file, variable), unit, file, f"variable {variable}")
