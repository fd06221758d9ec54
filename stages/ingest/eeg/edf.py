"""EDF, EDF+ and BDF files under one folder: whole recordings, or the trials that events mark in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.errors import DataError
from stages.ingest.eeg import recordings
from stages.ingest.eeg.config import Bids, Edf
from stages.ingest.eeg.recordings import EDF_SUFFIXES, Event, Recording, Stretch
from stages.ingest.eeg.schema import Unit
from stages.ingest.eeg.trials import Corpus, OpenCorpus, Trial, natural


@dataclass(frozen=True)
class Source:
    """A recording with its place: whose it is, and in which session of that subject, by the name it has there."""

    subject: str
    session: str
    recording: Recording


def open_recordings(path: Path, options: Edf) -> OpenCorpus:
    """Open all EDF and BDF files under a folder, or one.

    Raises
    ------
    DataError
        There is none, a file has another name than the pattern says, or is not as it should be.
    """
    root = path.parent if path.is_file() else path
    every = [path] if path.is_file() else path.rglob("*")
    files = sorted(
        (file for file in every if file.suffix.lower() in EDF_SUFFIXES and not file.name.startswith(".")),
        key=lambda file: natural(file.relative_to(root).as_posix()),
    )
    if not files:
        raise DataError(path, found="no .edf or .bdf file", expected="recordings", remedy="Correct `path`.")
    trigger = options.events.channel if options.events else None
    sources = []
    for file in files:
        name = file.relative_to(root).as_posix()
        match = re.match(options.pattern, file.name)
        if match is None:
            raise DataError(
                file,
                found="a name that the pattern does not match",
                expected=options.pattern,
                remedy="Correct `format.pattern` in params.yaml.",
            )
        recording = recordings.open_recording(file, name, options.channels, trigger)
        sources.append(Source(match["subject"], match.groupdict().get("session") or "", recording))
    return corpus_of(sources, [_events(source.recording, options) for source in sources], options, "EDF recordings", ())


def _events(recording: Recording, options: Edf) -> list[Event]:
    if options.events is None:
        return []
    if options.events.channel is not None:
        return recordings.triggers(recording, options.events.channel)
    return recordings.annotated(recording)


def corpus_of(
    sources: Sequence[Source],
    events: Sequence[Sequence[Event]],
    options: Edf | Bids,
    title: str,
    notes: Sequence[str],
) -> OpenCorpus:
    """The corpus of recordings: sessions are counted in order of their names, trials in order of time."""
    label = options.label if isinstance(options, Edf) else None
    trials: dict[str, list[Trial]] = {subject: [] for subject in sorted({s.subject for s in sources}, key=natural)}
    ordinals, told = _ordinals(sources)
    unit: Unit = "counts" if options.unit == "counts" else "uV"
    for source, happened in zip(sources, events, strict=True):
        recording = source.recording
        whole = [Stretch(0, recording.samples, label, None)]
        cuts = recordings.stretches(recording, happened, options.events) if options.events else whole
        session = ordinals[source.subject, source.session]
        before = sum(trial.session == session for trial in trials[source.subject])
        for number, cut in enumerate(cuts, start=before + 1):
            trials[source.subject].append(_trial(source, session, number, cut, unit, options))
    names = dict.fromkeys(name for source in sources for name in source.recording.selection.names)
    rates = {source.recording.rate for source in sources}
    labels = options.events.labels.values() if options.events else [label] if label else []
    twice = [
        f"{source.recording.name}: {', '.join(found)} stands twice, the first is taken"
        for source in sources
        if (found := source.recording.selection.duplicates)
    ]
    corpus = Corpus(
        key="",
        reader=options.reader,
        title=title,
        kind="signals",
        subjects=tuple(trials),
        label_names=tuple(dict.fromkeys(labels)),
        channels=tuple(names),
        rate=rates.pop() if len(rates) == 1 else None,
        unit=unit,
        non_eeg=tuple(dict.fromkeys(name for source in sources for name in source.recording.selection.unknown)),
        files=tuple(source.recording.name for source in sources),
        notes=(*notes, *told, *twice),
    )
    return OpenCorpus(corpus, lambda subject: trials[subject])


def _trial(source: Source, session: str, number: int, cut: Stretch, unit: Unit, options: Edf | Bids) -> Trial:
    recording = source.recording
    values = list(dict.fromkeys(options.events.labels.values())) if options.events else []
    return Trial(
        subject=source.subject,
        session=session,
        trial=number,
        stimulus=cut.what,
        label=cut.label,
        label_value=values.index(cut.label) if cut.label in values else None,
        rate=recording.rate,
        channels=recording.selection.names,
        unit=unit,
        source_file=recording.name,
        signal=recordings.signal(recording, cut, options.unit),
        unknown_channels=recording.selection.unknown,
        duplicate_channels=recording.selection.duplicates,
    )


def _ordinals(sources: Sequence[Source]) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Ordinal of each session of each subject, and a note where that is not the name it has in the files."""
    names: dict[str, set[str]] = {}
    for source in sources:
        names.setdefault(source.subject, set()).add(source.session)
    found, notes = {}, []
    for subject, sessions in names.items():
        for ordinal, session in enumerate(sorted(sessions, key=natural), start=1):
            found[subject, session] = str(ordinal)
            if session and session != str(ordinal):
                notes.append(f"subject {subject}: session {session} of the files is session {ordinal}")
    return found, notes
