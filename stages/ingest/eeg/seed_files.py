"""What the files of SEED and SEED-IV have in common: sessions by date, trials by number, labels by trial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.errors import DataError
from stages.ingest.eeg import mat
from stages.ingest.eeg.names import SEED_62
from stages.ingest.eeg.trials import AGAIN, natural

FILE = re.compile(r"^(?P<subject>[^_]+)_(?P<date>\d{8})\.mat$")
LABEL_FILE = "label.mat"
CHANNELS = len(SEED_62)

#: Classes of SEED by the number in label.mat, in the order of the numbers.
SEED_LABELS = {-1: "negative", 0: "neutral", 1: "positive"}

#: Classes of SEED-IV, and the class of each of the 24 clips of its three sessions (they are not in the files).
SEED_IV_LABELS = {0: "neutral", 1: "sad", 2: "fear", 3: "happy"}
SEED_IV_SESSIONS: dict[str, tuple[int, ...]] = {
    "1": (1, 2, 3, 0, 2, 0, 0, 1, 0, 1, 2, 1, 1, 1, 2, 3, 2, 2, 3, 3, 0, 3, 0, 3),
    "2": (2, 1, 3, 0, 0, 2, 0, 2, 3, 3, 2, 3, 2, 0, 1, 1, 2, 1, 0, 3, 0, 1, 3, 1),
    "3": (1, 2, 2, 1, 3, 3, 3, 1, 1, 2, 1, 0, 2, 3, 3, 0, 2, 3, 0, 0, 2, 0, 1, 0),
}

SEED_TITLE = "SEED"
SEED_CITATION = "Zheng and Lu 2015, doi:10.1109/TAMD.2015.2431497"
SEED_IV_TITLE = "SEED-IV"
SEED_IV_CITATION = "Zheng, Liu, Lu, Lu and Cichocki 2019, doi:10.1109/TCYB.2018.2797176"
LICENSE = "given on request by BCMI, Shanghai Jiao Tong University, for research; not for redistribution"


@dataclass(frozen=True)
class TrialKey:
    """One trial of a session file: its number, the variable that holds it, the shape of that variable, its class."""

    trial: int
    variable: str
    shape: tuple[int, ...]
    label_value: int


@dataclass(frozen=True)
class Session:
    """One file: a session of a subject."""

    subject: str
    session: str
    file: Path
    name: str
    trials: tuple[TrialKey, ...]


@dataclass(frozen=True)
class Sessions:
    """All sessions of a corpus, by subject in natural order and by session."""

    all: tuple[Session, ...]
    notes: tuple[str, ...]

    @property
    def subjects(self) -> tuple[str, ...]:
        """Subjects in natural order."""
        return tuple(dict.fromkeys(session.subject for session in self.all))

    def of(self, subject: str) -> list[Session]:
        """The sessions of a subject in order."""
        return [session for session in self.all if session.subject == subject]


def inside(path: Path, name: str) -> Path:
    """The folder ``name`` of a corpus, whether ``path`` is that folder or the one around it.

    Raises
    ------
    DataError
        ``path`` is a file.
    """
    if path.is_file():
        raise DataError(
            path, found="a file", expected=f"the folder {name}/ or the one around it", remedy="Correct `path`."
        )
    return path / name if (path / name).is_dir() else path


def seed_sessions(folder: Path, key: re.Pattern[str], axes: int) -> Sessions:
    """The session files of SEED: those of one subject are its sessions in order of date.

    Parameters
    ----------
    folder
        Preprocessed_EEG/ or ExtractedFeatures/.
    key
        Pattern of a variable's name, with a group ``trial``.
    axes
        Number of dimensions of a trial's array, the first of which are the channels.

    Raises
    ------
    DataError
        There is no session file or no label.mat, or one is not as it should be.
    """
    files, notes = _session_files(folder)
    classes = seed_labels(folder / LABEL_FILE)
    dated: dict[str, list[tuple[str, Path]]] = {}
    for subject, date, file in files:
        dated.setdefault(subject, []).append((date, file))
    found = []
    for subject in sorted(dated, key=natural):
        for ordinal, (_, file) in enumerate(sorted(dated[subject]), start=1):
            trials = _trials(file, key, axes, classes)
            found.append(Session(subject, str(ordinal), file, file.relative_to(folder).as_posix(), trials))
            notes.extend(_missing(found[-1], len(classes)))
    return Sessions(tuple(found), tuple(notes))


def seed_iv_sessions(folder: Path, key: re.Pattern[str], axes: int) -> Sessions:
    """The session files of SEED-IV, one folder for each session; arguments and errors as :func:`seed_sessions`."""
    found: list[Session] = []
    notes: list[str] = []
    there = [name for name in SEED_IV_SESSIONS if (folder / name).is_dir()]
    if not there:
        raise DataError(
            folder,
            found="no folder 1, 2 or 3",
            expected="a folder for each session of SEED-IV",
            remedy="Point `path` at eeg_raw_data/ or eeg_feature_smooth/, or at the folder around it.",
        )
    notes.extend(f"session {name} is not there" for name in SEED_IV_SESSIONS if name not in there)
    for name in there:
        files, told = _session_files(folder / name)
        notes.extend(told)
        once: dict[str, Path] = {}
        for subject, _, file in files:
            if subject in once:
                raise DataError(
                    folder / name,
                    found=f"{once[subject].name} and {file.name}",
                    expected="one file for each subject in a session",
                    remedy="Remove the one that does not belong here.",
                )
            once[subject] = file
            trials = _trials(file, key, axes, SEED_IV_SESSIONS[name])
            found.append(Session(subject, name, file, file.relative_to(folder).as_posix(), trials))
            notes.extend(_missing(found[-1], len(SEED_IV_SESSIONS[name])))
    found.sort(key=lambda session: (natural(session.subject), session.session))
    subjects = dict.fromkeys(session.subject for session in found)
    for subject in subjects:
        lacking = set(there) - {session.session for session in found if session.subject == subject}
        notes.extend(f"subject {subject}: session {name} is not there" for name in sorted(lacking))
    return Sessions(tuple(found), tuple(notes))


def seed_labels(file: Path) -> tuple[int, ...]:
    """The class of each trial, -1, 0 or 1, from numbers or from the names of the classes.

    Raises
    ------
    DataError
        The file is absent, or holds anything else.
    """
    if not file.is_file():
        raise DataError(
            file,
            found="no such file",
            expected="the labels of the trials beside the session files",
            remedy="Put label.mat of the published corpus there.",
        )
    by_name = {name: value for value, name in SEED_LABELS.items()}
    found = []
    for number, value in enumerate(mat.labels(file, "label"), start=1):
        try:
            known = by_name[value.lower()] if isinstance(value, str) and value.lower() in by_name else float(value)
        except ValueError:
            known = float("nan")
        if known not in SEED_LABELS:
            raise DataError(
                file,
                record=f"trial {number}",
                found=f"label {value!r}",
                expected="-1, 0 or 1 (negative, neutral, positive)",
                remedy="Use label.mat of the published corpus.",
            )
        found.append(int(known))
    return tuple(found)


def _session_files(folder: Path) -> tuple[list[tuple[str, str, Path]], list[str]]:
    files: list[tuple[str, str, Path]] = []
    notes: list[str] = []
    for file in sorted(folder.glob("*.mat")):
        match = FILE.match(file.name)
        if match:
            files.append((match["subject"], match["date"], file))
        elif file.name != LABEL_FILE:
            notes.append(f"{file.name} is passed over: its name is not SUBJECT_YYYYMMDD.mat")
    if not files:
        raise DataError(
            folder,
            found=f"{len(notes)} other .mat files" if notes else "no .mat file",
            expected="files named SUBJECT_YYYYMMDD.mat",
            remedy="Point `path` at the folder of the published corpus.",
        )
    return files, notes


def _trials(file: Path, key: re.Pattern[str], axes: int, classes: Sequence[int]) -> tuple[TrialKey, ...]:
    found: dict[int, TrialKey] = {}
    shapes = mat.variables(file)
    for name, shape in shapes.items():
        match = key.fullmatch(name)
        if match is None:
            continue
        number = int(match["trial"])
        if number in found:
            raise DataError(
                file,
                found=f"{found[number].variable} and {name}",
                expected=f"one variable for trial {number}",
                remedy="Two recordings were saved into one file: split them.",
            )
        if not 1 <= number <= len(classes):
            raise DataError(
                file,
                record=f"variable {name}",
                found=f"trial {number}",
                expected=f"trials 1 to {len(classes)}, those that have a label",
                remedy=AGAIN,
            )
        if len(shape) != axes or shape[0] != CHANNELS:
            rest = ", windows, bands" if axes == 3 else ", samples"
            raise DataError(
                file,
                record=f"variable {name}",
                found=f"an array of shape {shape}",
                expected=f"({CHANNELS}{rest})",
                remedy="The channels must be those of the published corpus, in its order and along the first axis.",
            )
        found[number] = TrialKey(number, name, shape, classes[number - 1])
    if not found:
        raise DataError(
            file,
            found=f"variables {', '.join(list(shapes)[:8]) or 'none'}",
            expected=f"variables named {key.pattern}",
            remedy="Use the reader of this part of the corpus: signals and features have readers of their own.",
        )
    return tuple(found[number] for number in sorted(found))


def _missing(session: Session, count: int) -> list[str]:
    there = {trial.trial for trial in session.trials}
    lacking = [str(number) for number in range(1, count + 1) if number not in there]
    return [f"{session.name}: trials {', '.join(lacking)} are not there"] if lacking else []
