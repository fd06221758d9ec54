"""SEED and SEED-IV as published features: (62 channels, windows, 5 bands) for each trial."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

from stages.ingest.eeg import mat, seed_files
from stages.ingest.eeg.config import SeedFeatures, SeedIVFeatures
from stages.ingest.eeg.names import SEED_62
from stages.ingest.eeg.schema import BANDS
from stages.ingest.eeg.seed import stimulus
from stages.ingest.eeg.seed_files import Session, TrialKey
from stages.ingest.eeg.trials import Array, Corpus, OpenCorpus, Trial, checked_features

NOT_STATED = "as published; the unit of the variance and the base of the logarithm are not stated"


def open_features(path: Path, options: SeedFeatures | SeedIVFeatures) -> OpenCorpus:
    """Open ``ExtractedFeatures/`` of SEED or ``eeg_feature_smooth/`` of SEED-IV.

    Raises
    ------
    DataError
        The files are not laid out so.
    """
    first = isinstance(options, SeedFeatures)
    key = re.compile(rf"{options.feature}(?P<trial>\d+)")
    if first:
        found = seed_files.seed_sessions(seed_files.inside(path, "ExtractedFeatures"), key, axes=3)
    else:
        found = seed_files.seed_iv_sessions(seed_files.inside(path, "eeg_feature_smooth"), key, axes=3)
    names = seed_files.SEED_LABELS if first else seed_files.SEED_IV_LABELS
    corpus = Corpus(
        key="",
        reader=options.reader,
        title=seed_files.SEED_TITLE if first else seed_files.SEED_IV_TITLE,
        kind="features",
        subjects=found.subjects,
        label_names=tuple(names.values()),
        channels=SEED_62,
        rate=None,
        unit="uV",
        bands=tuple(BANDS),
        window_seconds=1.0 if first else 4.0,
        feature_unit=NOT_STATED,
        files=tuple(session.name for session in found.all),
        citation=seed_files.SEED_CITATION if first else seed_files.SEED_IV_CITATION,
        license=seed_files.LICENSE,
        notes=(*found.notes, f"the feature is {options.feature}, which was smoothed by its publisher"),
    )

    def trial(session: Session, key: TrialKey) -> Trial:
        return Trial(
            subject=session.subject,
            session=session.session,
            trial=key.trial,
            stimulus=stimulus(session, key, shared=first),
            label=names[key.label_value],
            label_value=key.label_value,
            rate=float("nan"),
            channels=SEED_62,
            unit="uV",
            source_file=session.name,
            features=partial(_read, session.file, key.variable),
        )

    def load(subject: str) -> list[Trial]:
        return [trial(session, key) for session in found.of(subject) for key in session.trials]

    return OpenCorpus(corpus, load)


def _read(file: Path, variable: str) -> Array:
    values_CWF = mat.numbers(file, variable)
    return checked_features(np.moveaxis(values_CWF, 0, 1), len(SEED_62), file, f"variable {variable}")
