"""DREAMER.mat: one structure of 23 subjects, each with 18 clips of (samples, 14 channels) at 128 Hz.

Subjects are read one after the other out of the compressed stream: the file is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.eeg import mat, mat_stream
from stages.ingest.eeg.config import Dreamer
from stages.ingest.eeg.names import DREAMER_14
from stages.ingest.eeg.trials import AGAIN, Array, Corpus, OpenCorpus, Trial, in_microvolts

NAME = "DREAMER.mat"
RATE = 128.0
SCALE = (1.0, 5.0)
TARGETS = ("valence", "arousal", "dominance")
LABELS = ("low", "high")


def open_signals(path: Path, options: Dreamer) -> OpenCorpus:
    """Open DREAMER.mat of version 5 or 7.3.

    Raises
    ------
    DataError
        There is no such file, or it is laid out otherwise.
    """
    file = path / NAME if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            path,
            found=f"no {NAME}",
            expected="the file of the published corpus",
            remedy="Correct `path` in params.yaml.",
        )
    reader = _Version5(file) if mat.version(file) == "5" else _Version73(file)
    subjects = tuple(f"{number:02d}" for number in range(1, reader.count() + 1))
    corpus = Corpus(
        key="",
        reader=options.reader,
        title="DREAMER",
        kind="signals",
        subjects=subjects,
        label_names=LABELS,
        channels=DREAMER_14,
        rate=RATE,
        unit="counts" if options.unit == "counts" else "uV",
        files=(file.name,),
        citation="Katsigiannis and Ramzan 2018, doi:10.1109/JBHI.2017.2688239",
        license="CC BY-NC-SA 4.0, given on request through Zenodo",
        notes=(
            f"the label is high where {options.target} > {options.threshold:g}, else low",
            "the clips (stimuli) are read; the neutral clip before each (baseline) is not",
        ),
    )
    return OpenCorpus(corpus, lambda subject: _trials(file, reader.subject(int(subject) - 1), subject, options))


class _Version5:
    """Subjects of a file of version 5; those that are asked for in order are read in one pass."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.stream: Iterator[Any] | None = None
        self.next = 0

    def count(self) -> int:
        return mat_stream.count(self.file, "DREAMER", "Data")

    def subject(self, index: int) -> dict[str, list[NDArray[Any]]]:
        if self.stream is None or self.next != index:
            self.stream = mat_stream.cells(self.file, "DREAMER", "Data", index)
        self.next = index + 1
        content = next(self.stream)
        if self.next == self.count():
            self.stream = None
        try:
            clips = np.atleast_1d(content.EEG.stimuli)
            parts = [clips] if clips.dtype != object else list(clips)
            scores = {name: np.atleast_1d(getattr(content, f"Score{name.title()}")) for name in TARGETS}
        except AttributeError as error:
            raise _otherwise(self.file, index, str(error)) from None
        return {"stimuli": parts, **{name: list(values) for name, values in scores.items()}}


class _Version73:
    """Subjects of a file of version 7.3, which is read where it is asked."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def count(self) -> int:
        with mat.open73(self.file) as store:
            return int(self._data(store).size)

    def subject(self, index: int) -> dict[str, list[NDArray[Any]]]:
        try:
            with mat.open73(self.file) as store:
                content = store[self._data(store)[()].ravel()[index]]
                clips = content["EEG"]["stimuli"]
                parts = [mat.value73(store[reference]) for reference in clips[()].ravel()]
                scores = {name: mat.value73(content[f"Score{name.title()}"]).ravel() for name in TARGETS}
        except (KeyError, TypeError) as error:
            raise _otherwise(self.file, index, str(error)) from None
        return {"stimuli": parts, **{name: list(values) for name, values in scores.items()}}

    def _data(self, store: Any) -> Any:
        try:
            return store["DREAMER"]["Data"]
        except (KeyError, TypeError):
            raise _otherwise(self.file, None, f"variables {', '.join(store)}") from None


def _otherwise(file: Path, index: int | None, told: str) -> DataError:
    return DataError(
        file,
        record=None if index is None else f"subject {index + 1}",
        found=told,
        expected="DREAMER.Data{subject} with EEG.stimuli, ScoreValence, ScoreArousal and ScoreDominance",
        remedy="Use the file of the published corpus.",
    )


def _trials(file: Path, content: dict[str, list[NDArray[Any]]], subject: str, options: Dreamer) -> list[Trial]:
    clips = content["stimuli"]
    low, high = SCALE
    trials = []
    for name in TARGETS:
        if len(content[name]) != len(clips):
            raise DataError(
                file,
                record=f"subject {subject}",
                found=f"{len(clips)} clips and {len(content[name])} scores of {name}",
                expected="one score for each clip",
                remedy=AGAIN,
            )
    for index, values_TC in enumerate(clips):
        record = f"subject {subject}, clip {index + 1}"
        if values_TC.ndim != 2 or values_TC.shape[1] != len(DREAMER_14):
            raise DataError(
                file,
                record=record,
                found=f"an array of shape {values_TC.shape}",
                expected=f"(samples, {len(DREAMER_14)} channels)",
                remedy=AGAIN,
            )
        targets = {name: float(content[name][index]) for name in TARGETS}
        wrong = [name for name, value in targets.items() if not low <= value <= high]
        if wrong:
            raise DataError(
                file,
                record=record,
                found=f"{wrong[0]} {targets[wrong[0]]:g}",
                expected=f"a score from {low:g} to {high:g}",
                remedy=AGAIN,
            )
        trials.append(
            Trial(
                subject=subject,
                session="1",
                trial=index + 1,
                stimulus=f"clip {index + 1}",
                label=LABELS[targets[options.target] > options.threshold],
                label_value=targets[options.target],
                rate=RATE,
                channels=DREAMER_14,
                unit="counts" if options.unit == "counts" else "uV",
                source_file=file.name,
                signal=_signal(file, values_TC, options.unit, record),
                targets=targets,
            )
        )
    return trials


def _signal(file: Path, values_TC: NDArray[Any], unit: str, record: str) -> Callable[[], Array]:
    return partial(_cut, file, values_TC, unit, record)


def _cut(file: Path, values_TC: NDArray[Any], unit: str, record: str) -> Array:
    return in_microvolts(values_TC.T, unit, file, record)
