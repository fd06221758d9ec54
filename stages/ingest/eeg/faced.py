"""FACED: one pickle for each subject, as signals (28 videos, 32 channels, 7500 samples at 250 Hz) or as features.

The features are (28 videos, 32 channels, 30 windows of 1 s, 5 bands). The last two channels lie at the ears and are
left out.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest import unpickle
from stages.ingest.eeg.config import Faced, FacedFeatures
from stages.ingest.eeg.names import FACED_30, FACED_EARS
from stages.ingest.eeg.schema import BANDS, Unit
from stages.ingest.eeg.seed_files import inside
from stages.ingest.eeg.trials import AGAIN, Array, Corpus, OpenCorpus, Trial, checked_features, in_microvolts, natural

FILE = re.compile(r"^(?P<subject>sub\d{3})(?:\.pkl){1,2}$")
RATE = 250.0
VIDEOS = 28
SAMPLES = 7500
WINDOWS = 30
CHANNELS = len(FACED_30) + len(FACED_EARS)

#: The nine classes, and how many of the 28 videos each has, in order of the videos.
LABELS = ("anger", "disgust", "fear", "sadness", "neutral", "amusement", "inspiration", "joy", "tenderness")
VIDEOS_OF_LABEL = (3, 3, 3, 3, 4, 3, 3, 3, 3)
LABEL_OF_VIDEO = tuple(value for value, count in enumerate(VIDEOS_OF_LABEL) for _ in range(count))


def open_faced(path: Path, options: Faced | FacedFeatures) -> OpenCorpus:
    """Open ``Processed_data/`` or ``EEG_Features/DE/``.

    Raises
    ------
    DataError
        There is no such file.
    """
    signals = isinstance(options, Faced)
    folder = inside(path, "Processed_data") if signals else inside(inside(path, "EEG_Features"), "DE")
    matched = ((FILE.match(file.name), file) for file in sorted(folder.glob("sub*.pkl")))
    files = {match["subject"]: file for match, file in matched if match}
    if not files:
        raise DataError(
            folder,
            found="no file of the name sub000.pkl" + ("" if signals else ".pkl"),
            expected="one for each subject",
            remedy="Point `path` at Processed_data/ or EEG_Features/DE/ of the published corpus.",
        )
    subjects = tuple(sorted(files, key=natural))
    unit: Unit = "counts" if isinstance(options, Faced) and options.unit == "counts" else "uV"
    corpus = Corpus(
        key="",
        reader=options.reader,
        title="FACED",
        kind="signals" if signals else "features",
        subjects=subjects,
        label_names=LABELS,
        channels=FACED_30,
        rate=RATE if signals else None,
        unit=unit,
        bands=() if signals else tuple(BANDS),
        window_seconds=None if signals else 1.0,
        feature_unit=None if signals else "as published, with beta up to 30 Hz and gamma 30 to 47 Hz",
        non_eeg=FACED_EARS,
        files=tuple(files[subject].name for subject in subjects),
        citation="Chen et al. 2023, doi:10.1038/s41597-023-02650-w",
        license="given on request through Synapse, for research; not for redistribution",
    )
    return OpenCorpus(corpus, lambda subject: _load(files[subject], subject, options, unit))


def _load(file: Path, subject: str, options: Faced | FacedFeatures, unit: Unit) -> list[Trial]:
    signals = isinstance(options, Faced)
    expected = (VIDEOS, CHANNELS, SAMPLES) if signals else (VIDEOS, CHANNELS, WINDOWS, len(BANDS))
    values = unpickle.load(file)
    if not isinstance(values, np.ndarray) or values.shape != expected or values.dtype.kind not in "fiu":
        found = f"an array of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise DataError(file, found=found, expected=f"numbers of shape {expected}", remedy=AGAIN)
    trials = []
    for index, value in enumerate(LABEL_OF_VIDEO):
        trials.append(
            Trial(
                subject=subject,
                session="1",
                trial=index + 1,
                stimulus=f"video {index + 1}",
                label=LABELS[value],
                label_value=value,
                rate=RATE if signals else float("nan"),
                channels=FACED_30,
                unit=unit,
                source_file=file.name,
                signal=partial(_signal, file, values, index, options.unit) if isinstance(options, Faced) else None,
                features=None if signals else partial(_features, file, values, index),
                unknown_channels=FACED_EARS,
            )
        )
    return trials


def _signal(file: Path, values: NDArray[Any], index: int, unit: str) -> Array:
    return in_microvolts(values[index, : len(FACED_30)], unit, file, f"video {index + 1}")


def _features(file: Path, values: NDArray[Any], index: int) -> Array:
    values_WCF = np.moveaxis(values[index, : len(FACED_30)], 0, 1)
    return checked_features(values_WCF, len(FACED_30), file, f"video {index + 1}")
