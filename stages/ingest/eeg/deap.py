"""DEAP, preprocessed for Python: ``s01.dat`` to ``s32.dat``, pickles of Python 2.

Each holds ``data`` (40 videos, 40 channels of which 32 are EEG, 8064 samples = 3 s before the video and 60 s of it at
128 Hz) and ``labels`` (40 videos; valence, arousal, dominance, liking from 1 to 9). Both are in order of the video's
id, not in the order in which a participant saw them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest import unpickle
from stages.ingest.eeg.config import Deap
from stages.ingest.eeg.names import DEAP_32, DEAP_OTHERS
from stages.ingest.eeg.schema import TARGETS
from stages.ingest.eeg.seed_files import inside
from stages.ingest.eeg.trials import AGAIN, Array, Corpus, OpenCorpus, Trial, in_microvolts, natural

FILE = re.compile(r"^s(?P<participant>\d{2})\.dat$")
RATE = 128.0
BASELINE_SECONDS = 3
VIDEOS = 40
SCALE = (1.0, 9.0)
LABELS = ("low", "high")

#: Ratings are kept with two decimals; a sheet and a label that differ by more are not of the same trial.
TOLERANCE = 0.011

Ratings = dict[tuple[int, int], dict[str, float]]


def open_signals(path: Path, options: Deap) -> OpenCorpus:
    """Open ``data_preprocessed_python/``.

    Raises
    ------
    DataError
        There is no such file, or the sheet of ratings is not as it should be.
    """
    folder = inside(path, "data_preprocessed_python")
    files = {file.stem: file for file in folder.glob("*.dat") if FILE.match(file.name)}
    if not files:
        raise DataError(
            folder,
            found="no file s01.dat",
            expected="s01.dat to s32.dat",
            remedy="Point `path` at data_preprocessed_python/ of the published corpus.",
        )
    ratings = None if options.ratings is None else read_ratings(options.ratings)
    subjects = tuple(sorted(files, key=natural))
    cut = "kept" if options.keep_baseline else "cut off"
    corpus = Corpus(
        key="",
        reader=options.reader,
        title="DEAP",
        kind="signals",
        subjects=subjects,
        label_names=LABELS,
        channels=DEAP_32,
        rate=RATE,
        unit="counts" if options.unit == "counts" else "uV",
        non_eeg=DEAP_OTHERS,
        files=tuple(files[subject].name for subject in subjects),
        citation="Koelstra et al. 2012, doi:10.1109/T-AFFC.2011.15",
        license="given on request by Queen Mary University of London, for research; not for redistribution",
        notes=(
            f"the label is high where {options.target} > {options.threshold:g}, else low",
            f"the {BASELINE_SECONDS} s before each video are {cut}",
            "published as band-passed 4-45 Hz, averaged reference, 128 Hz: delta and the top of gamma are empty",
        ),
    )
    return OpenCorpus(corpus, lambda subject: _load(files[subject], options, ratings))


def read_ratings(file: Path) -> Ratings:
    """The sheet of ratings by participant and video; its rows are in the order in which the videos were seen.

    Raises
    ------
    DataError
        The file is absent, a column is missing, a cell is no number, or a pair stands twice.
    """
    if not file.is_file():
        raise DataError(file, found="no such file", expected="participant_ratings.csv", remedy="Correct `ratings`.")
    found: Ratings = {}
    with file.open(newline="", encoding="utf-8-sig") as stream:
        for line, row in enumerate(csv.DictReader(stream), start=2):
            cells = {str(name).strip().lower(): str(value).strip() for name, value in row.items()}
            try:
                pair = int(cells["participant_id"]), int(cells["experiment_id"])
                values = {name: float(cells[name]) for name in TARGETS}
            except (KeyError, ValueError) as error:
                raise DataError(
                    file,
                    record=f"line {line}",
                    found=f"no usable {error}",
                    expected=f"numbers in Participant_id, Experiment_id, {', '.join(map(str.title, TARGETS))}",
                    remedy="Export the sheet of the published corpus as csv.",
                ) from None
            if pair in found:
                raise DataError(
                    file,
                    record=f"line {line}",
                    found=f"participant {pair[0]}, video {pair[1]} again",
                    expected="one row for each",
                    remedy="Remove the row that is wrong.",
                )
            found[pair] = values
    return found


def _load(file: Path, options: Deap, ratings: Ratings | None) -> list[Trial]:
    content = unpickle.load(file)
    signals, labels = _arrays(file, content)
    participant = int(file.stem[1:])
    trials = []
    for index in range(VIDEOS):
        targets = {name: float(value) for name, value in zip(TARGETS, labels[index], strict=True)}
        _check_ratings(file, participant, index + 1, targets, ratings)
        rating = targets[options.target]
        trials.append(
            Trial(
                subject=file.stem,
                session="1",
                trial=index + 1,
                stimulus=f"video {index + 1}",
                label=LABELS[rating > options.threshold],
                label_value=rating,
                rate=RATE,
                channels=DEAP_32,
                unit="counts" if options.unit == "counts" else "uV",
                source_file=file.name,
                signal=_signal(file, signals, index, options),
                targets=targets,
                unknown_channels=DEAP_OTHERS,
            )
        )
    return trials


def _arrays(file: Path, content: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    if not isinstance(content, dict) or not {"data", "labels"} <= set(content):
        held = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise DataError(file, found=held, expected="a dictionary with data and labels", remedy=AGAIN)
    signals, labels = np.asarray(content["data"]), np.asarray(content["labels"])
    channels = len(DEAP_32) + len(DEAP_OTHERS)
    if signals.ndim != 3 or signals.shape[:2] != (VIDEOS, channels) or signals.shape[2] <= BASELINE_SECONDS * RATE:
        raise DataError(
            file,
            record="data",
            found=f"an array of shape {signals.shape}",
            expected=f"({VIDEOS} videos, {channels} channels, 8064 samples)",
            remedy=AGAIN,
        )
    if labels.shape != (VIDEOS, len(TARGETS)):
        raise DataError(
            file,
            record="labels",
            found=f"an array of shape {labels.shape}",
            expected=f"({VIDEOS} videos, {', '.join(TARGETS)})",
            remedy=AGAIN,
        )
    low, high = SCALE
    outside = np.argwhere(~((labels >= low) & (labels <= high)))
    if outside.size:
        video, column = outside[0]
        raise DataError(
            file,
            record=f"labels, video {video + 1}, {TARGETS[column]}",
            found=f"{labels[video, column]:g}",
            expected=f"a rating from {low:g} to {high:g}",
            remedy=AGAIN,
        )
    return signals, labels


def _check_ratings(
    file: Path, participant: int, video: int, targets: dict[str, float], ratings: Ratings | None
) -> None:
    if ratings is None:
        return
    sheet = ratings.get((participant, video))
    if sheet is None or any(abs(sheet[name] - value) > TOLERANCE for name, value in targets.items()):
        raise DataError(
            file,
            record=f"video {video}",
            found=f"ratings {targets}",
            expected=f"those of the sheet for participant {participant} and video {video}, {sheet}",
            remedy="The labels are not in order of the video's id, or the sheet is that of another corpus.",
        )


def _signal(file: Path, signals: NDArray[Any], index: int, options: Deap) -> Callable[[], Array]:
    start = 0 if options.keep_baseline else int(BASELINE_SECONDS * RATE)
    return partial(_cut, file, signals, index, start, options.unit)


def _cut(file: Path, signals: NDArray[Any], index: int, start: int, unit: str) -> Array:
    return in_microvolts(signals[index, : len(DEAP_32), start:], unit, file, f"video {index + 1}")
