"""The UEA archive of time series: ``NAME_TRAIN.ts`` and ``NAME_TEST.ts``, trials of many channels without subjects.

A line is one trial: its dimensions apart by colons, their values by commas, its class at the end. Nothing says who was
recorded, and a file may be sorted by class, each class in order of recording. So each file is cut into blocks, block k
being the k-th contiguous stretch of each class: neighbours in time stay together, and every block has every class.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.ingest.eeg import names
from stages.ingest.eeg.config import Uea
from stages.ingest.eeg.schema import Unit
from stages.ingest.eeg.trials import AGAIN, Array, Corpus, OpenCorpus, Trial, in_microvolts, natural

SUFFIXES = ("_TRAIN.ts", "_TEST.ts")
MISSING = {"?": "nan", "": "nan"}


class _File:
    """One .ts file: its classes, and where each of its trials stands."""

    def __init__(self, path: Path, part: str) -> None:
        self.path = path
        self.part = part
        self.classes: tuple[str, ...] = ()
        self.offsets: list[int] = []
        self.labels: list[str | None] = []
        self.dimensions = 0
        self._scan()

    def line(self, row: int) -> list[bytes]:
        """Dimensions of a trial as they stand in the file."""
        with self.path.open("rb") as stream:
            stream.seek(self.offsets[row])
            parts = stream.readline().strip().split(b":")
        return parts[:-1] if self.classes else parts

    def _scan(self) -> None:
        started = False
        position = 0
        with self.path.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                line = raw.strip()
                if started and line and not line.startswith(b"#"):
                    self._trial(line, number, position)
                elif line.lower().startswith(b"@data"):
                    started = True
                elif line.startswith(b"@"):
                    self._declare(line.decode("latin1").split(), number)
                position += len(raw)
        if not self.offsets:
            raise DataError(
                self.path,
                found="no trial" if started else "no line @data",
                expected="trials behind the line @data",
                remedy=AGAIN,
            )

    def _declare(self, words: list[str], number: int) -> None:
        key, *values = words
        if key.lower() == "@timestamps" and values[:1] == ["true"]:
            raise DataError(
                self.path,
                record=f"line {number}",
                found="series with time stamps",
                expected="samples at one rate",
                remedy="Export the series without stamps.",
            )
        if key.lower() == "@classlabel" and values[:1] == ["true"]:
            self.classes = tuple(values[1:])

    def _trial(self, line: bytes, number: int, position: int) -> None:
        parts = line.split(b":")
        label = parts[-1].decode("latin1").strip() if self.classes else None
        count = len(parts) - (1 if self.classes else 0)
        if label is not None and label not in self.classes:
            raise DataError(
                self.path,
                record=f"line {number}",
                found=f"class {label[:40]!r}",
                expected=f"one of {', '.join(self.classes)} behind the last colon",
                remedy=f"The line is incomplete, or of another file. {AGAIN}",
            )
        self.dimensions = self.dimensions or count
        if count != self.dimensions:
            raise DataError(
                self.path,
                record=f"line {number}",
                found=f"{count} dimensions",
                expected=f"{self.dimensions}, as in the trials before",
                remedy=AGAIN,
            )
        self.offsets.append(position)
        self.labels.append(label)


def open_signals(path: Path, options: Uea) -> OpenCorpus:
    """Open the two files of a data set, or one of them.

    Raises
    ------
    DataError
        There is no such file, or it is no .ts file of one rate.
    """
    files = _files(path)
    first = files[0]
    for other in files[1:]:
        if (other.dimensions, other.classes) != (first.dimensions, first.classes):
            raise DataError(
                other.path,
                found=f"{other.dimensions} dimensions, classes {', '.join(other.classes)}",
                expected=f"{first.dimensions} and {', '.join(first.classes)}, as in {first.path.name}",
                remedy="The two files are not of one data set.",
            )
    channels = _channels(first, options)
    known = [options.labels.get(name, name) for name in first.classes]
    unit: Unit = "counts" if options.unit == "counts" else "uV"
    blocks = {f"{file.part}-{index + 1}": rows for file in files for index, rows in enumerate(_blocks(file, options))}
    of_file = {file.part: file for file in files}
    corpus = Corpus(
        key="",
        reader=options.reader,
        title=first.path.name.removesuffix(SUFFIXES[0]).removesuffix(SUFFIXES[1]).removesuffix(".ts"),
        kind="signals",
        subjects=tuple(blocks),
        label_names=tuple(dict.fromkeys(known)),
        channels=channels,
        rate=options.rate,
        unit=unit,
        split_unit="block",
        files=tuple(file.path.name for file in files),
        citation="Bagnall et al. 2018, arXiv:1811.00075, and the data set's own page",
        license="that of the data set's owners",
        notes=(
            "the files do not say who was recorded: groups are blocks of contiguous trials of each class, not subjects",
            *(() if options.channels else ("the dimensions have no names: ch1, ch2, ... have no position",)),
        ),
    )

    def load(block: str) -> list[Trial]:
        file = of_file[block.rsplit("-", 1)[0]]
        return [
            Trial(
                subject=block,
                session="1",
                trial=row + 1,
                stimulus=None,
                label=None if (label := file.labels[row]) is None else options.labels.get(label, label),
                label_value=None if label is None else file.classes.index(label),
                rate=options.rate,
                channels=channels,
                unit=unit,
                source_file=file.path.name,
                signal=partial(_read, file, row, options.unit),
            )
            for row in blocks[block]
        ]

    return OpenCorpus(corpus, load)


def _files(path: Path) -> list[_File]:
    if path.is_file():
        return [_File(path, "test" if path.name.endswith(SUFFIXES[1]) else "train")]
    train, test = (sorted(path.rglob(f"*{suffix}"), key=lambda file: natural(file.name)) for suffix in SUFFIXES)
    if max(len(train), len(test)) != 1:
        there = [file.name for file in (*train, *test)]
        raise DataError(
            path,
            found=", ".join(there) or "no .ts file",
            expected="NAME_TRAIN.ts and NAME_TEST.ts of one data set",
            remedy="Point `path` at the folder of that data set.",
        )
    return [*(_File(file, "train") for file in train), *(_File(file, "test") for file in test)]


def _blocks(file: _File, options: Uea) -> list[list[int]]:
    """Rows of each block, in order."""
    rows: list[list[int]] = [[] for _ in range(options.blocks)]
    labels = np.array([label or "" for label in file.labels])
    for name in dict.fromkeys(labels.tolist()):
        for block, part in zip(rows, np.array_split(np.flatnonzero(labels == name), options.blocks), strict=True):
            block.extend(part.tolist())
    if not all(rows):
        raise DataError(
            file.path,
            found=f"{labels.size} trials",
            expected=f"at least one for each of {options.blocks} blocks",
            remedy="Make `format.blocks` smaller.",
        )
    return [sorted(block) for block in rows]


def _channels(file: _File, options: Uea) -> tuple[str, ...]:
    if options.channels is None:
        return tuple(f"ch{index + 1}" for index in range(file.dimensions))
    chosen = tuple(names.standard(name) or name for name in options.channels)
    if len(chosen) != file.dimensions or len(set(chosen)) != len(chosen):
        raise DataError(
            file.path,
            found=f"{file.dimensions} dimensions",
            expected=f"one for each of the different names {', '.join(chosen)}",
            remedy="Correct `format.channels` in params.yaml.",
        )
    return chosen


def _read(file: _File, row: int, unit: str) -> Array:
    record = f"trial {row + 1}"
    series = []
    for index, part in enumerate(file.line(row)):
        cells = part.decode("latin1").split(",")
        try:
            series.append(np.array([MISSING.get(cell.strip(), cell) for cell in cells], dtype=np.float64))
        except ValueError as error:
            raise DataError(
                file.path,
                record=f"{record}, dimension {index + 1}",
                found=str(error),
                expected="numbers apart by commas",
                remedy=AGAIN,
            ) from None
    if len({values.size for values in series}) != 1:
        raise DataError(
            file.path,
            record=record,
            found=f"dimensions of {', '.join(str(values.size) for values in series)} samples",
            expected="one length in all dimensions of a trial",
            remedy=AGAIN,
        )
    return in_microvolts(np.stack(series), unit, file.path, record)
