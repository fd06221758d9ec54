"""One continuous recording through mne, read where it is asked, and the trials inside it.

mne is imported where a file is opened: it takes a second.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.eeg import edf_header, names
from stages.ingest.eeg.config import Events
from stages.ingest.eeg.trials import AGAIN, Array, in_microvolts

EDF_SUFFIXES = (".edf", ".bdf")

#: What mne divides by to get volts, by the physical dimension of a channel.
TO_VOLTS = {"uV": 1e-6, "µV": 1e-6, "μV": 1e-6, "mV": 1e-3, "V": 1.0, "nV": 1e-9}


@dataclass(frozen=True)
class Event:
    """Something that happened in a recording, in seconds from its first sample."""

    onset: float
    duration: float
    what: str


@dataclass(frozen=True)
class Recording:
    """One file.

    Attributes
    ----------
    selection
        Which of its columns are EEG; the indices are those of ``raw``.
    units
        Unit of each EEG channel as the file declares it.
    rate
        Sampling rate in Hz as the file has it, not rounded.
    """

    file: Path
    name: str
    selection: names.Selection
    columns: tuple[str, ...]
    units: tuple[str, ...]
    rate: float
    samples: int
    raw: Any


@dataclass(frozen=True)
class Stretch:
    """The samples of one trial, from ``start`` up to ``stop``; they may reach beyond the recording."""

    start: int
    stop: int
    label: str | None
    what: str | None


def open_recording(file: Path, name: str, renamed: Mapping[str, str], trigger: str | None = None) -> Recording:
    """Look at one file.

    Parameters
    ----------
    name
        Name by which the records refer to the file.
    renamed
        Channel of the file -> name.
    trigger
        Channel that must be readable beside the EEG.

    Raises
    ------
    DataError
        The file is damaged, has a gap, no EEG channel, or EEG channels of several rates.
    """
    exclude: list[str] = []
    columns: tuple[str, ...] | None = None
    if file.suffix.lower() in EDF_SUFFIXES:
        header = edf_header.read(file)
        edf_header.require_continuous(header)
        columns, exclude = _columns(header, renamed, trigger)
    raw = _open(file, exclude)
    if columns is None:
        columns = tuple(raw.ch_names)
    if len(columns) != len(raw.ch_names):
        raise DataError(
            file,
            found=f"{len(raw.ch_names)} signals by mne",
            expected=f"the {len(columns)} of the header",
            remedy="Report this file: its header is read in two ways.",
        )
    selection = names.select(columns, renamed)
    if not selection.indices:
        raise DataError(
            file,
            found=f"channels {', '.join(columns[:12])}",
            expected="names of electrodes",
            remedy="Name the EEG channels under `format.channels` in params.yaml (`channel of the file: name`).",
        )
    declared = [str(raw._orig_units.get(raw.ch_names[index], "")) for index in selection.indices]
    units = tuple("uV" if unit in ("µV", "μV") else unit for unit in declared)
    return Recording(file, name, selection, columns, units, float(raw.info["sfreq"]), int(raw.n_times), raw)


def _columns(
    header: edf_header.Header, renamed: Mapping[str, str], trigger: str | None
) -> tuple[tuple[str, ...], list[str]]:
    """Signals that mne is to show, and those it must not, because it would resample all others to their rate."""
    signals = [index for index, name in enumerate(header.names) if name not in edf_header.ANNOTATIONS]
    chosen = names.select([header.names[index] for index in signals], renamed)
    rates = {header.samples[signals[index]]: header.names[signals[index]] for index in chosen.indices}
    if len(rates) > 1:
        (one, first), (other, second) = list(rates.items())[:2]
        raise DataError(
            header.file,
            found=f"{first} at {one / header.seconds:g} Hz and {second} at {other / header.seconds:g} Hz",
            expected="one rate for all EEG channels",
            remedy="Export the channels of one rate, or rename those that are not EEG.",
        )
    fastest = max(rates, default=0)
    faster = [header.names[index] for index in signals if rates and header.samples[index] > fastest]
    if trigger in faster:
        raise DataError(
            header.file,
            record=f"channel {trigger}",
            found="a higher rate than that of the EEG",
            expected="the same rate",
            remedy="Export the trigger at the rate of the EEG.",
        )
    return tuple(header.names[index] for index in signals if header.names[index] not in faster), faster


def _open(file: Path, exclude: Sequence[str]) -> Any:
    import mne  # type: ignore[import-untyped]

    kind = file.suffix.lower()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what mne warns of is looked at above, or is no fault of the data
            if kind in EDF_SUFFIXES:
                read = mne.io.read_raw_edf if kind == ".edf" else mne.io.read_raw_bdf
                return read(file, preload=False, exclude=list(exclude), encoding="latin1", verbose="ERROR")
            return mne.io.read_raw(file, preload=False, verbose="ERROR")
    except Exception as error:  # each format of mne has errors of its own
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            file, found=f"a file that mne cannot read ({told})", expected="a complete recording", remedy=AGAIN
        ) from None


def annotated(recording: Recording) -> list[Event]:
    """Annotations that the file itself carries."""
    return [
        Event(float(note["onset"]), float(note["duration"]), str(note["description"]))
        for note in recording.raw.annotations
    ]


def triggers(recording: Recording, channel: str) -> list[Event]:
    """Changes of a trigger channel to a value other than zero.

    Raises
    ------
    DataError
        The recording has no such channel.
    """
    if channel not in recording.columns:
        raise DataError(
            recording.file,
            found=f"channels {', '.join(recording.columns)}",
            expected=f"the trigger channel {channel!r}",
            remedy="Correct `format.events.channel` in params.yaml.",
        )
    index = recording.columns.index(channel)
    name = recording.raw.ch_names[index]
    values = recording.raw.get_data(picks=[index])[0]
    if recording.raw.get_channel_types(picks=[index]) != ["stim"]:
        values = values / TO_VOLTS.get(str(recording.raw._orig_units.get(name, "")), 1.0)
    levels = np.rint(values).astype(np.int64)
    changes = np.flatnonzero((levels != 0) & (levels != np.r_[0, levels[:-1]]))
    return [Event(int(at) / recording.rate, 0.0, str(levels[at])) for at in changes]


def stretches(recording: Recording, events: Sequence[Event], wanted: Events) -> list[Stretch]:
    """Samples of the trials: one for each event that has a label, in order of time.

    A trial is as long as ``wanted.seconds`` says, else as the event lasts, else up to the next event of any kind.

    Raises
    ------
    DataError
        None of the events has a label, or a trial has no sample.
    """
    ordered = sorted(events, key=lambda event: event.onset)
    found = []
    for index, event in enumerate(ordered):
        if event.what not in wanted.labels:
            continue
        after = [other.onset for other in ordered[index + 1 :] if other.onset > event.onset]
        end = after[0] if after else recording.samples / recording.rate
        begin = event.onset + wanted.start
        length = wanted.seconds or (event.duration if event.duration > 0 else end - begin)
        start = round(begin * recording.rate)
        stop = start + round(length * recording.rate)
        if stop <= start or start >= recording.samples or stop <= 0:
            raise DataError(
                recording.file,
                record=f"event {event.what!r} at {event.onset:g} s",
                found=f"a trial from {begin:g} s to {begin + length:g} s",
                expected=f"one inside the recording, 0 to {recording.samples / recording.rate:g} s",
                remedy="Correct `start` and `seconds` under `format.events` in params.yaml.",
            )
        found.append(Stretch(start, stop, wanted.labels[event.what], event.what))
    if not found:
        there = sorted({event.what for event in events})
        raise DataError(
            recording.file,
            found=f"events {', '.join(there)}" if there else "no event",
            expected=f"one of {', '.join(wanted.labels)}",
            remedy="Correct `format.events.labels` in params.yaml.",
        )
    return found


def signal(recording: Recording, stretch: Stretch, unit: str | None) -> Callable[[], Array]:
    """Reader of the samples of one trial; those beyond the ends of the recording are NaN."""
    return partial(_read, recording, stretch, unit)


def _read(recording: Recording, stretch: Stretch, unit: str | None) -> Array:
    start, stop = max(stretch.start, 0), min(stretch.stop, recording.samples)
    values_CT: NDArray[np.float64] = recording.raw.get_data(
        picks=list(recording.selection.indices), start=start, stop=stop
    )
    padded_CT = np.full((len(values_CT), stretch.stop - stretch.start), np.nan)
    padded_CT[:, start - stretch.start : stop - stretch.start] = values_CT
    record = f"samples {start} to {stop}"
    unknown = [
        name
        for name, declared in zip(recording.selection.names, recording.units, strict=True)
        if declared not in TO_VOLTS
    ]
    if unknown and unit is None:
        raise DataError(
            recording.file,
            record=f"channel {unknown[0]}",
            found="no physical dimension in the header",
            expected="uV, mV or V",
            remedy="Say the unit under `format.unit` in params.yaml.",
        )
    if unit is None:
        return in_microvolts(padded_CT * 1e6, "uV", recording.file, record)
    # The numbers of the file, whatever dimension its header declares.
    factors = np.array([TO_VOLTS.get(declared, 1.0) for declared in recording.units])
    return in_microvolts(padded_CT / factors[:, np.newaxis], unit, recording.file, record)
