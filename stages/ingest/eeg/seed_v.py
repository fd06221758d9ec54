"""SEED-V as published features: one npz for each subject, which holds two pickles as bytes.

``data`` is a dictionary from the number of a trial, 0 to 44, to an array (windows of 4 s, 310 = 62 channels x 5 bands),
and ``label`` one from the same numbers to the class of each window. Trials 0 to 14 are session 1, and so on.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.ingest import unpickle
from stages.ingest.eeg.config import SeedV
from stages.ingest.eeg.names import SEED_62
from stages.ingest.eeg.schema import BANDS
from stages.ingest.eeg.seed_features import NOT_STATED
from stages.ingest.eeg.seed_files import LICENSE, inside
from stages.ingest.eeg.trials import AGAIN, Array, Corpus, OpenCorpus, Trial, checked_features, natural

FILE = re.compile(r"^(?P<subject>[^_]+)_123\.npz$")
LABELS = {0: "disgust", 1: "fear", 2: "sad", 3: "neutral", 4: "happy"}
TRIALS_OF_SESSION = 15
TRIALS = 3 * TRIALS_OF_SESSION
COLUMNS = len(SEED_62) * len(BANDS)


def open_features(path: Path, options: SeedV) -> OpenCorpus:
    """Open ``EEG_DE_features/`` of SEED-V.

    Raises
    ------
    DataError
        The files are not laid out so.
    """
    folder = inside(path, "EEG_DE_features")
    matched = ((FILE.match(file.name), file) for file in folder.glob("*.npz"))
    files = {match["subject"]: file for match, file in matched if match}
    if not files:
        raise DataError(
            folder,
            found="no file SUBJECT_123.npz",
            expected="one for each subject",
            remedy="Point `path` at EEG_DE_features/ of the published corpus.",
        )
    subjects = tuple(sorted(files, key=natural))
    corpus = Corpus(
        key="",
        reader=options.reader,
        title="SEED-V",
        kind="features",
        subjects=subjects,
        label_names=tuple(LABELS.values()),
        channels=SEED_62,
        rate=None,
        unit="uV",
        bands=tuple(BANDS),
        window_seconds=4.0,
        feature_unit=NOT_STATED,
        files=tuple(files[subject].name for subject in subjects),
        citation="Liu, Qiu, Zheng and Lu 2022, doi:10.1109/TCDS.2021.3071170",
        license=LICENSE,
    )
    return OpenCorpus(corpus, lambda subject: _load(files[subject], subject))


def _load(file: Path, subject: str) -> list[Trial]:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            packed = {name: archive[name].tobytes() for name in ("data", "label")}
    except Exception as error:  # zip, zlib and numpy each have errors of their own
        raise DataError(
            file,
            found=f"a damaged or other npz ({str(error).splitlines()[0]})",
            expected="an npz with `data` and `label` as bytes",
            remedy=AGAIN,
        ) from None
    # An array of bytes is padded with zeros, which a pickle never reads: it ends at its own full stop.
    data, label = (unpickle.load(file, packed[name], f"member {name}") for name in ("data", "label"))
    for name, content in (("data", data), ("label", label)):
        if not isinstance(content, dict) or not content:
            raise DataError(
                file,
                record=f"member {name}",
                found=type(content).__name__,
                expected="a dictionary by trial",
                remedy=AGAIN,
            )
    by_number = {_number(file, key): key for key in data}
    return [_trial(file, subject, number, data[key], label.get(key)) for number, key in sorted(by_number.items())]


def _number(file: Path, key: Any) -> int:
    if str(key).isdigit() and int(key) < TRIALS:
        return int(key)
    raise DataError(
        file, record="member data", found=f"trial {key!r}", expected=f"trials 0 to {TRIALS - 1}", remedy=AGAIN
    )


def _trial(file: Path, subject: str, number: int, values: Any, classes: Any) -> Trial:
    record = f"trial {number}"
    values_WN = np.asarray(values)
    if values_WN.ndim != 2 or values_WN.shape[1] != COLUMNS or values_WN.dtype.kind not in "fiu":
        raise DataError(
            file,
            record=record,
            found=f"an array of shape {values_WN.shape} and type {values_WN.dtype}",
            expected=f"numbers of shape (windows, {COLUMNS})",
            remedy=AGAIN,
        )
    known = np.unique(np.asarray([] if classes is None else classes).ravel())
    if known.size != 1 or known.dtype.kind not in "fiu" or float(known[0]) not in LABELS:
        raise DataError(
            file,
            record=record,
            found=f"labels {known.tolist()}",
            expected="one class of 0 to 4 for all windows of a trial",
            remedy=AGAIN,
        )
    value = int(known[0])
    session, inside_session = divmod(number, TRIALS_OF_SESSION)

    def features() -> Array:
        return checked_features(values_WN.reshape(-1, len(SEED_62), len(BANDS)), len(SEED_62), file, record)

    return Trial(
        subject=subject,
        session=str(session + 1),
        trial=inside_session + 1,
        stimulus=f"session {session + 1} clip {inside_session + 1}",
        label=LABELS[value],
        label_value=value,
        rate=float("nan"),
        channels=SEED_62,
        unit="uV",
        source_file=file.name,
        features=features,
    )
