"""The format of one corpus in params.yaml as typed objects; ``format: seed`` is short for ``{reader: seed}``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from stages.params import Config


class _Layout(Config):
    subjects: tuple[str, ...] | None = Field(None, min_length=1, description="subjects to read; default: all there are")
    sessions: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(
        None, min_length=1, description="sessions to read, counted from 1 in order of date; default: all there are"
    )


class _Signals(_Layout):
    unit: Literal["V", "mV", "uV", "counts"] = Field("uV", description="unit of the numbers in the files")


class Seed(_Signals):
    """SEED, ``Preprocessed_EEG/``: one file for each session of a subject, (62, n) for each trial, 200 Hz."""

    reader: Literal["seed"]
    rate: float = Field(200.0, gt=0, description="sampling rate in Hz; the files do not say it")


class SeedFeatures(_Layout):
    """SEED, ``ExtractedFeatures/``: (62, windows of 1 s, 5 bands) for each trial."""

    reader: Literal["seed_features"]
    feature: Literal["de_LDS", "de_movingAve", "psd_LDS", "psd_movingAve"] = Field(
        "de_LDS", description="which of the features of the files"
    )


class SeedIV(_Signals):
    """SEED-IV, ``eeg_raw_data/{1,2,3}/``: 24 trials of (62, n) in each session, 200 Hz."""

    reader: Literal["seed_iv"]
    rate: float = Field(200.0, gt=0, description="sampling rate in Hz; the files do not say it")


class SeedIVFeatures(_Layout):
    """SEED-IV, ``eeg_feature_smooth/{1,2,3}/``: (62, windows of 4 s, 5 bands) for each trial."""

    reader: Literal["seed_iv_features"]
    feature: Literal["de_LDS", "de_movingAve", "psd_LDS", "psd_movingAve"] = Field(
        "de_LDS", description="which of the features of the files"
    )


class SeedV(_Layout):
    """SEED-V, ``EEG_DE_features/``: one npz for each subject, 45 trials of (windows of 4 s, 62 x 5)."""

    reader: Literal["seed_v"]


class _Rated(_Signals):
    threshold: float = Field(description="a rating above it is `high`, any other is `low`")


class Deap(_Rated):
    """DEAP, ``data_preprocessed_python/``: one pickle of Python 2 for each subject, 40 trials at 128 Hz."""

    reader: Literal["deap"]
    target: Literal["valence", "arousal", "dominance", "liking"] = Field(
        "valence", description="rating that is the label"
    )
    threshold: float = Field(5.0, ge=1, le=9, description="a rating above it is `high`, any other is `low`")
    keep_baseline: bool = Field(False, description="keep the 3 s before the clip")
    ratings: Path | None = Field(
        None, description="participant_ratings.csv, against which the labels are checked by participant and video"
    )


class Dreamer(_Rated):
    """DREAMER.mat: 23 subjects, 18 clips, 14 channels at 128 Hz."""

    reader: Literal["dreamer"]
    target: Literal["valence", "arousal", "dominance"] = Field("valence", description="rating that is the label")
    threshold: float = Field(3.0, ge=1, le=5, description="a rating above it is `high`, any other is `low`")


class Faced(_Signals):
    """FACED, ``Processed_data/``: one pickle of (28, 32, 7500) for each subject, 250 Hz."""

    reader: Literal["faced"]


class FacedFeatures(_Layout):
    """FACED, ``EEG_Features/DE/``: one pickle of (28, 32, 30 windows of 1 s, 5 bands) for each subject."""

    reader: Literal["faced_features"]


class Events(Config):
    """Where the trials of a recording are; without it a recording is one trial."""

    channel: str | None = Field(None, description="trigger channel; default: annotations (edf) or events.tsv (bids)")
    column: str = Field("trial_type", description="bids: column of events.tsv that says what happened")
    labels: dict[str, str] = Field(
        min_length=1, description="value or text of an event -> label; all other events are passed over"
    )
    start: float = Field(0.0, description="seconds from the event to the first sample of its trial")
    seconds: float | None = Field(
        None, gt=0, description="length of a trial; default: the duration of the event, or up to the next event"
    )


def _compiles(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise PydanticCustomError("pattern", "is no regular expression: {told}", {"told": str(error)}) from None
    if "subject" not in groups:
        raise PydanticCustomError("pattern", "must have a group (?P<subject>...)")
    return pattern


class _Recordings(_Layout):
    unit: Literal["V", "mV", "uV", "counts"] | None = Field(
        None, description="unit of the numbers in the files; default: what the header says"
    )
    events: Events | None = Field(None, description="trials inside a recording; default: the whole recording is one")
    channels: dict[str, str] = Field({}, description="channel of the file -> name; a channel named here is EEG")


class Edf(_Recordings):
    """EDF, EDF+ and BDF files under one folder, through mne."""

    reader: Literal["edf"]
    pattern: Annotated[str, AfterValidator(_compiles)] = Field(
        r"^(?P<subject>.+?)(?:R(?P<session>\d+))?\.[^.]+$",
        description="regular expression of a file name with groups subject and, where there is one, session",
    )
    label: str | None = Field(None, description="label of a recording that is one trial")


class Bids(_Recordings):
    """A BIDS folder: ``sub-*/[ses-*/]eeg/*_eeg.{edf,bdf,vhdr,set}`` with events.tsv, through mne."""

    reader: Literal["bids"]
    task: str | None = Field(None, description="task to read; default: all there are")


class Uea(_Signals):
    """UEA archive, ``NAME_TRAIN.ts`` and ``NAME_TEST.ts``: trials of many channels without subjects."""

    reader: Literal["uea"]
    rate: float = Field(gt=0, description="sampling rate in Hz; the files do not say it")
    unit: Literal["V", "mV", "uV", "counts"] = Field("counts", description="unit of the numbers in the files")
    channels: tuple[str, ...] | None = Field(None, min_length=1, description="names of the dimensions, in their order")
    labels: dict[str, str] = Field({}, description="class of the file -> name of the label")
    blocks: int = Field(
        5, ge=1, description="blocks of each file that stand for subjects: contiguous stretches of each class"
    )


READERS = (
    "seed",
    "seed_features",
    "seed_iv",
    "seed_iv_features",
    "seed_v",
    "deap",
    "dreamer",
    "faced",
    "faced_features",
    "edf",
    "bids",
    "uea",
)


def _shorthand(value: Any) -> Any:
    """A bare name is short for ``{reader: NAME}``; an unknown reader is refused at its own place."""
    block = {"reader": value} if isinstance(value, str) else value
    if isinstance(block, Mapping) and block.get("reader") not in READERS:
        reader = block.get("reader")
        close = difflib.get_close_matches(str(reader), READERS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        told = f"no reader has this name; {hint}the readers are {', '.join(READERS)}"
        fault: InitErrorDetails = {
            "type": PydanticCustomError("reader", "{told}", {"told": told}),
            "loc": ("reader",),
            "input": reader,
        }
        raise ValidationError.from_exception_data("format", [fault])
    return block


AnyFormat = (
    Seed | SeedFeatures | SeedIV | SeedIVFeatures | SeedV | Deap | Dreamer | Faced | FacedFeatures | Edf | Bids | Uea
)
Format = Annotated[AnyFormat, Field(discriminator="reader"), BeforeValidator(_shorthand)]
