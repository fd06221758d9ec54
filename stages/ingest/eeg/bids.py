"""A BIDS folder: recordings by subject, session and run, with their events and the types of their channels.

``*_channels.tsv`` says which columns are EEG, ``*_events.tsv`` what happened, ``*_eeg.json`` the sampling rate; the
first file of that kind on the way from the recording up to the root counts, as the inheritance principle of BIDS has
it.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from stages.errors import DataError
from stages.ingest.eeg import names, recordings
from stages.ingest.eeg.config import Bids
from stages.ingest.eeg.edf import Source, corpus_of
from stages.ingest.eeg.recordings import Event, Recording
from stages.ingest.eeg.trials import OpenCorpus, natural

SUFFIXES = (".edf", ".bdf", ".vhdr", ".set")
ENTITY = re.compile(r"(?:^|_)(?P<key>[a-zA-Z]+)-(?P<value>[a-zA-Z0-9+]+)")
#: Rates that differ by less than this share are one rate, written with fewer digits.
SAME_RATE = 1e-9


def open_recordings(path: Path, options: Bids) -> OpenCorpus:
    """Open the EEG of a BIDS folder.

    Raises
    ------
    DataError
        There is no EEG recording of the task, or a file is not as it should be.
    """
    files = [
        file
        for file in path.rglob("*_eeg.*")
        if file.suffix.lower() in SUFFIXES and file.parent.name == "eeg" and "derivatives" not in file.parts
    ]
    chosen = [file for file in files if options.task in (None, entities(file).get("task"))]
    if not chosen:
        tasks = sorted({entities(file).get("task", "?") for file in files})
        raise DataError(
            path,
            found=f"recordings of the tasks {', '.join(tasks)}" if tasks else "no file sub-*/eeg/*_eeg.edf",
            expected=f"recordings of the task {options.task}" if options.task else "EEG in BIDS",
            remedy="Correct `path` or `format.task` in params.yaml.",
        )
    sources, events, notes = [], [], []
    for file in sorted(chosen, key=lambda file: natural(file.relative_to(path).as_posix())):
        keys = entities(file)
        name = file.relative_to(path).as_posix()
        types = _types(file, path)
        trigger = options.events.channel if options.events else None
        recording = recordings.open_recording(file, name, {**_declared(types), **options.channels}, trigger)
        recording = _only_eeg(recording, types)
        sources.append(Source(keys.get("sub", ""), keys.get("ses", ""), recording))
        events.append(_events(file, path, recording, options))
        notes.extend(_rate_notes(file, path, recording))
    return corpus_of(sources, events, options, f"BIDS folder {path.name}", notes)


def entities(file: Path) -> dict[str, str]:
    """Entities of a file name: ``sub-01_ses-2_task-rest_eeg.edf`` has sub, ses and task."""
    return {match["key"]: match["value"] for match in ENTITY.finditer(file.name)}


def _beside(file: Path, root: Path, ending: str) -> Path | None:
    """The metadata file of a recording: the nearest one upwards whose entities are all those of the recording."""
    mine = entities(file).items()
    for folder in (file.parent, *file.parent.parents):
        fitting = [one for one in sorted(folder.glob(f"*{ending}")) if entities(one).items() <= mine]
        if fitting:
            return max(fitting, key=lambda one: len(entities(one)))
        if folder == root:
            break
    return None


def _rows(file: Path, column: str) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream, delimiter="\t")
        if column not in (reader.fieldnames or []):
            raise DataError(
                file,
                found=f"columns {', '.join(reader.fieldnames or [])}",
                expected=f"a column {column}, apart from others by tabs",
                remedy="Correct the file, or the name of the column in params.yaml.",
            )
        return [{str(key): str(value) for key, value in row.items()} for row in reader]


def _types(file: Path, root: Path) -> dict[str, str]:
    beside = _beside(file, root, "_channels.tsv")
    return {} if beside is None else {row["name"]: row.get("type", "EEG").upper() for row in _rows(beside, "name")}


def _declared(types: dict[str, str]) -> dict[str, str]:
    """Columns that are EEG because channels.tsv says so, whatever their names."""
    return {name: names.standard(name) or name for name, kind in types.items() if kind == "EEG"}


def _only_eeg(recording: Recording, types: dict[str, str]) -> Recording:
    """Leave out electrodes that channels.tsv calls something else, such as an Fp1 that serves as EOG."""
    chosen = recording.selection
    columns = [recording.columns[index] for index in chosen.indices]
    kept = [at for at, column in enumerate(columns) if types.get(column, "EEG") == "EEG"]
    if len(kept) == len(columns):
        return recording
    others = tuple(column for at, column in enumerate(columns) if at not in kept)
    selection = names.Selection(
        tuple(chosen.indices[at] for at in kept),
        tuple(chosen.names[at] for at in kept),
        (*chosen.unknown, *others),
        chosen.duplicates,
    )
    return Recording(
        **{**recording.__dict__, "selection": selection, "units": tuple(recording.units[at] for at in kept)}
    )


def _events(file: Path, root: Path, recording: Recording, options: Bids) -> list[Event]:
    if options.events is None:
        return []
    if options.events.channel is not None:
        return recordings.triggers(recording, options.events.channel)
    beside = _beside(file, root, "_events.tsv")
    if beside is None:
        raise DataError(
            file,
            found="no events.tsv",
            expected="one beside the recording",
            remedy="Add it, or name a trigger channel.",
        )
    found = []
    for line, row in enumerate(_rows(beside, options.events.column), start=2):
        if row[options.events.column] not in options.events.labels and row.get("onset") in ("n/a", ""):
            continue
        found.append(
            Event(
                _seconds(beside, line, row, "onset"),
                _seconds(beside, line, row, "duration"),
                row[options.events.column],
            )
        )
    return found


def _seconds(file: Path, line: int, row: dict[str, str], column: str) -> float:
    text = row.get(column, "n/a")
    if column == "duration" and text in ("n/a", ""):
        return 0.0
    try:
        return float(text)
    except ValueError:
        raise DataError(
            file, record=f"line {line}, column {column}", found=repr(text), expected="seconds", remedy="Correct it."
        ) from None


def _rate_notes(file: Path, root: Path, recording: Recording) -> list[str]:
    beside = _beside(file, root, "_eeg.json")
    if beside is None:
        return []
    try:
        content: Any = json.loads(beside.read_text(encoding="utf-8"))
        said = float(content["SamplingFrequency"])
    except (ValueError, KeyError, TypeError):
        return [f"{beside.name} has no SamplingFrequency"]
    if abs(said - recording.rate) <= SAME_RATE * recording.rate:
        return []
    drift = abs(said / recording.rate - 1) * recording.samples / recording.rate
    return [
        f"{recording.name}: {beside.name} says {said!r} Hz, the recording has {recording.rate!r} Hz, which counts; "
        f"an event placed by the other rate is up to {drift:.3g} s off at the end"
    ]
