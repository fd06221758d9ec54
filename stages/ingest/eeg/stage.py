"""``python -m stages ingest eeg@KEY``: one corpus to filtered signals and features, one subject in memory at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages import artifacts, manifest
from stages.errors import DataError, UsageError
from stages.ingest.eeg.config import Format
from stages.ingest.eeg.preprocessing_config import Features, Preprocessing
from stages.ingest.eeg.schema import ENTROPY_UNIT, RECORD_COLUMNS
from stages.params import StageParams, bound

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from stages.ingest.eeg.trials import Corpus, OpenCorpus, Trial
    from stages.manifest import Manifest


class Params(StageParams):
    """What ingest reads of params.yaml."""

    path: Path = bound("eeg.corpora.{key}.path")
    format: Format = bound("eeg.corpora.{key}.format")
    preprocessing: Preprocessing = bound("eeg.preprocessing")
    features: Features = bound("eeg.features")


@dataclass
class Subject:
    """One subject's trials, measured; dimensions C channel, T time, W window, B band."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    signals: list[NDArray[np.float32]] = field(default_factory=list)
    features: list[NDArray[np.float32]] = field(default_factory=list)
    kinds: list[NDArray[np.uint8]] = field(default_factory=list)
    flagged: list[NDArray[np.bool_]] = field(default_factory=list)
    rate: float | None = None


def run(params: Params, *, name: str, key: str) -> None:
    """Read one corpus and write subjects/, records.parquet, corpus.json and manifest.json.

    Raises
    ------
    UsageError
        A band of the features lies outside of what the filter leaves.
    DataError
        The files are not what they should be; nothing is written.
    """
    from stages.ingest.eeg.records import table
    from stages.ingest.eeg.trials import open_corpus
    from stages.ingest.origin import origin
    from stages.runtime import progress

    check_bands(params)
    source = origin(params.path, f"{name}@{key}")
    opened = open_corpus(params.path, params.format, key)
    rows: list[dict[str, Any]] = []
    with artifacts.atomic(artifacts.ingested(name, key)) as draft:
        (draft / "subjects").mkdir(parents=True)
        for subject in progress(opened.corpus.subjects, key, unit="subjects"):
            rows += ingest_subject(opened, subject, params, draft / "subjects")
        records = table(rows)
        artifacts.write_table(draft / "records.parquet", records)
        artifacts.write_json(draft / "corpus.json", description(opened.corpus, params, source, rows))
        manifest.write(draft, source)
    print(f"{key}: {records.height} trials of {len(opened.corpus.subjects)} {opened.corpus.split_unit}s")
    for note in opened.corpus.notes:
        print(f"note: {key}: {note}", file=sys.stderr)


def check_bands(params: Params) -> None:
    """Refuse a band of the features that the filter takes away."""
    low, high = params.preprocessing.band
    for band, edges in params.features.bands.items():
        if edges[0] < low or edges[1] > high:
            raise UsageError(
                f"params.yaml: eeg.features.bands.{band}: found {list(edges)} Hz; eeg.preprocessing.band leaves "
                f"{low} to {high} Hz. Widen the one or narrow the other."
            )


def ingest_subject(opened: OpenCorpus, subject: str, params: Params, folder: Path) -> list[dict[str, Any]]:
    """Measure one subject, write SUBJECT.zarr, and return the rows of records.parquet."""
    from stages.ingest.eeg.records import identity

    corpus = opened.corpus
    if Path(subject).name != subject or subject.startswith("."):
        raise DataError(
            params.path,
            record=f"subject {subject!r}",
            found="a name that is no file name",
            expected="letters, digits, - and _",
            remedy="Rename the subject's files, or change the pattern under `format`.",
        )
    trials = opened.load(subject)
    measured = Subject()
    for trial in trials:
        measured.rows.append(identity(corpus, trial))
        (add_signal if trial.signal is not None else add_features)(measured, corpus, trial, params)
    if not measured.rows:
        return []
    if corpus.kind == "signals":
        measured.features = smoothed(measured.features, params.features)
    artifacts.write_dataset(folder / f"{subject}.zarr", datasets(measured, corpus, params.features))
    return measured.rows


def add_signal(measured: Subject, corpus: Corpus, trial: Trial, params: Params) -> None:
    """Filter one trial and measure it."""
    from stages.eeg.artifacts import MISSING, flagged_windows
    from stages.eeg.montage import align
    from stages.eeg.preprocess import process
    from stages.ingest.eeg.records import of_signal

    assert trial.signal is not None
    recorded_CT = trial.signal()
    steps, windows = plan(params, trial.unit)
    found = process(recorded_CT, trial.rate, steps, windows)
    check_rate(measured, trial, found.rate, params)
    flagged_W = flagged_windows(found.kinds_WC, params.features.artifacts.channels)
    kinds_WC = align(found.kinds_WC.astype(np.float32), trial.channels, corpus.channels, axis=1)
    kinds_WC = np.where(np.isnan(kinds_WC), MISSING, kinds_WC).astype(np.uint8)
    measured.rows[-1] |= of_signal(recorded_CT, trial.rate) | {
        "rate": found.rate,
        "artifact_share": float(flagged_W.mean()) if flagged_W.size else None,
        "windows": len(flagged_W),
    }
    measured.signals.append(align(found.signal_CT, trial.channels, corpus.channels))
    measured.features.append(align(found.entropy_WCB, trial.channels, corpus.channels, axis=1))
    measured.kinds.append(kinds_WC)
    measured.flagged.append(flagged_W)


def add_features(measured: Subject, corpus: Corpus, trial: Trial, params: Params) -> None:
    """Take the features of one trial as the corpus ships them; there is nothing by which to judge their windows."""
    from stages.eeg.artifacts import MISSING
    from stages.eeg.montage import align
    from stages.ingest.eeg.records import of_features

    del params
    if trial.features is None:
        raise ValueError(f"{trial.trial_id}: the reader gives neither a signal nor features")
    feature_WCF = align(trial.features(), trial.channels, corpus.channels, axis=1)
    measured.rows[-1] |= of_features(feature_WCF, corpus.window_seconds) | {"windows": len(feature_WCF)}
    measured.features.append(feature_WCF)
    measured.kinds.append(np.where(np.isfinite(feature_WCF).all(axis=-1), 0, MISSING).astype(np.uint8))
    measured.flagged.append(np.zeros(len(feature_WCF), dtype=np.bool_))


def plan(params: Params, unit: str) -> tuple[Any, Any]:
    """What to do to a trial; limits in microvolts hold for signals in microvolts only."""
    from stages.eeg.artifacts import Limits
    from stages.eeg.preprocess import Steps, Windows

    block, rules = params.features, params.features.artifacts
    in_uv = unit == "uV"
    limits = Limits(
        flat=rules.flat_uv if in_uv else 0.0,
        amplitude=rules.amplitude_uv if in_uv else None,
        gradient=rules.gradient_uv if in_uv else None,
        muscle=rules.muscle,
        muscle_from=rules.muscle_from,
    )
    windows = Windows(block.window_seconds, tuple(block.bands.values()), block.definition, block.taper, limits)
    return Steps(**params.preprocessing.model_dump()), windows


def check_rate(measured: Subject, trial: Trial, rate: float, params: Params) -> None:
    """Refuse a rate too low for the bands, or unlike that of the subject's other trials.

    Raises
    ------
    DataError
        The message names the file and the trial.
    """
    highest = max(high for _, high in params.features.bands.values())
    if highest > rate / 2:
        raise DataError(
            trial.source_file,
            record=f"trial {trial.trial_id}",
            found=f"{rate:g} Hz",
            expected=f"at least {2 * highest:g} Hz for features up to {highest:g} Hz",
            remedy="Narrow eeg.features.bands and eeg.preprocessing.band in params.yaml, or raise "
            "eeg.preprocessing.rate where that is what lowers the rate.",
        )
    measured.rate = measured.rate or rate
    if rate != measured.rate:
        raise DataError(
            trial.source_file,
            record=f"trial {trial.trial_id}",
            found=f"{rate:g} Hz after resampling",
            expected=f"{measured.rate:g} Hz as in the subject's trials before it",
            remedy="Set eeg.preprocessing.rate to a rate that all recordings reach.",
        )


def smoothed(features: list[NDArray[np.float32]], block: Features) -> list[NDArray[np.float32]]:
    """Smooth the features of each trial (window, channel, band), each trial on its own."""
    from stages.eeg.smoothing import moving_average, smooth_trials

    rule = block.smoothing
    if rule.method == "moving_average":
        return [moving_average(each, rule.windows).astype(np.float32) for each in features]
    if rule.method == "lds":
        return smooth_trials(features, ratio=rule.ratio, em_steps=rule.em_steps)
    return features


def datasets(measured: Subject, corpus: Corpus, block: Features) -> dict[str, xr.Dataset]:
    """The groups of a subject's store; the lists of ``measured`` are emptied on the way.

    Names of channels and bands are attributes: zarr's third format has no fixed form of arrays of text yet.
    """
    import xarray as xr

    shipped = corpus.kind == "features"
    seconds = (corpus.window_seconds or np.nan) if shipped else _window_seconds(measured, block)
    counts = [len(each) for each in measured.features]
    start_W = np.concatenate([np.arange(count) * seconds for count in counts])
    names = {"channels": list(corpus.channels), "bands": list(corpus.bands if shipped else block.bands)}
    unit = corpus.feature_unit if shipped else ENTROPY_UNIT
    groups = {
        "de": xr.Dataset(
            {
                "de": (("window", "channel", "band"), np.concatenate(measured.features), {"units": unit or "unknown"}),
                "artifact": (("window",), np.concatenate(measured.flagged)),
                "artifact_kinds": (("window", "channel"), np.concatenate(measured.kinds)),
            },
            coords={
                "trial": (("window",), np.repeat(np.arange(len(counts)), counts)),
                "start_seconds": (("window",), start_W, {"units": "s"}),
            },
            attrs=names | {"window_seconds": float(seconds)},
        )
    }
    if measured.signals:
        bounds = np.cumsum([0, *(signal.shape[-1] for signal in measured.signals)])
        groups["signal"] = xr.Dataset(
            {"signal": (("channel", "time"), joined(measured.signals), {"units": str(measured.rows[0]["unit"])})},
            coords={"trial_start": (("trial",), bounds[:-1]), "trial_stop": (("trial",), bounds[1:])},
            attrs={"channels": names["channels"], "rate": measured.rate},
        )
    return groups


def _window_seconds(measured: Subject, block: Features) -> float:
    from stages.eeg.entropy import window_length

    rate = measured.rate or 1.0
    return window_length(rate, block.window_seconds) / rate


def joined(signals: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Trials (channel, time) one after the other; each is let go once it is copied, so that memory does not double."""
    total = sum(signal.shape[-1] for signal in signals)
    joined_CT = np.empty((signals[0].shape[0], total), dtype=np.float32)
    stop = total
    while signals:
        signal_CT = signals.pop()
        joined_CT[:, stop - signal_CT.shape[-1] : stop] = signal_CT
        stop -= signal_CT.shape[-1]
    return joined_CT


def description(corpus: Corpus, params: Params, source: Manifest, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The content of corpus.json."""
    shipped = corpus.kind == "features"
    reference = params.preprocessing.reference
    if len(corpus.channels) < params.preprocessing.reference_channels:
        reference = "recorded"
    return {
        "corpus": corpus.key,
        "title": corpus.title,
        "reader": corpus.reader,
        "kind": corpus.kind,
        "simulated": source.kind == "simulator",
        "subjects": corpus.subjects,
        "split_unit": corpus.split_unit,
        "label_names": corpus.label_names,
        "channels": corpus.channels,
        "non_eeg_channels": corpus.non_eeg,
        "montage": "standard_1005",
        "unit": corpus.unit,
        "original_rate": corpus.rate,
        "rates": sorted({row["rate"] for row in rows if row.get("rate")}),
        "reference": None if shipped else reference,
        "bands": dict.fromkeys(corpus.bands) if shipped else params.features.bands,
        "window_seconds": corpus.window_seconds if shipped else params.features.window_seconds,
        "feature": corpus.feature_unit if shipped else f"differential entropy ({ENTROPY_UNIT})",
        "smoothing": None if shipped else params.features.smoothing.model_dump(),
        "files": corpus.files,
        "record_columns": list(RECORD_COLUMNS),
        "notes": corpus.notes,
        "citation": corpus.citation or source.citation,
        "license": corpus.license or source.licence,
    }
