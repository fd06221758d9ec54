"""Made-up trials of EEG in the layout ingest writes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xarray as xr

from stages import artifacts
from stages.ingest.eeg.schema import BANDS, RECORD_COLUMNS
from stages.validate.eeg.stage import Params

CHANNELS = ("Fp1", "Cz", "Oz")
LABELS = ("negative", "neutral", "positive")
WINDOWS = 4
RATE = 128


def trial(corpus: str, subject: str, session: int, number: int, /, **changed: Any) -> dict[str, Any]:
    """A sound trial of four seconds, with some columns changed."""
    record = f"{corpus}/{subject}/{session}/{number}"
    row: dict[str, Any] = dict.fromkeys(RECORD_COLUMNS)
    row |= {
        "record_id": record,
        "group": f"{corpus}/{subject}",
        "corpus": corpus,
        "subject": subject,
        "session": str(session),
        "trial": number,
        "stimulus": f"clip {number}",
        "label": LABELS[number % 3],
        "label_value": float(number % 3 - 1),
        "source_file": f"{subject}_{session}.mat",
        "sha256": hashlib.sha256(record.encode()).hexdigest(),
        "unit": "uV",
        "rate": float(RATE),
        "original_rate": 200.0,
        "samples": WINDOWS * RATE,
        "seconds": float(WINDOWS),
        "channels": len(CHANNELS),
        "missing_channels": 0,
        "unknown_channels": 0,
        "duplicate_channels": 0,
        "std_uv": 18.0 + number % 4,
        "max_abs_uv": 95.0,
        "flat_channels": 0,
        "saturated_share": 0.004,
        "line_noise_share": 0.02,
        "drift_uv": 12.0,
        "nan_share": 0.0,
        "artifact_share": 0.25,
        "windows": WINDOWS,
    }
    return row | changed


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    """records.parquet of these trials."""
    return pl.DataFrame(list(rows), schema={name: getattr(pl, kind) for name, kind in RECORD_COLUMNS.items()})


def subjects(corpus: str, names: Sequence[str], trials: int = 6, /, **changed: Any) -> list[dict[str, Any]]:
    """Sound trials of some subjects, one session each."""
    return [trial(corpus, name, 1, number, **changed) for name in names for number in range(1, trials + 1)]


def features(records: pl.DataFrame, seed: int = 0) -> xr.Dataset:
    """Features of the trials of one subject, four windows of one second each; the last of each holds an artifact."""
    shape = (records.height * WINDOWS, len(CHANNELS), len(BANDS))
    de_WCB = np.random.default_rng(seed).normal(3, 1, shape).astype(np.float32)
    return xr.Dataset(
        {
            "de": (("window", "channel", "band"), de_WCB, {"units": "nat"}),
            "trial": ("window", np.repeat(np.arange(records.height), WINDOWS)),
            "start_seconds": ("window", np.tile(np.arange(WINDOWS, dtype=np.float64), records.height)),
            "artifact": ("window", np.tile(np.arange(WINDOWS) == WINDOWS - 1, records.height)),
        },
        attrs={"window_seconds": 1.0, "channels": list(CHANNELS), "bands": list(BANDS)},
    )


def signal(records: pl.DataFrame) -> xr.Dataset:
    """Samples of the trials of one subject, each equal to its place in the recording."""
    length = WINDOWS * RATE
    start = np.arange(records.height) * length
    values = np.tile(np.arange(records.height * length, dtype=np.float32), (len(CHANNELS), 1))
    return xr.Dataset(
        {
            "signal": (("channel", "time"), values, {"units": "uV"}),
            "trial_start": ("trial", start),
            "trial_stop": ("trial", start + length),
        },
        attrs={"rate": float(RATE), "channels": list(CHANNELS)},
    )


def about(corpus: str, **changed: Any) -> dict[str, Any]:
    """A corpus.json."""
    return {
        "corpus": corpus,
        "reader": "seed",
        "kind": "signals",
        "label_names": list(LABELS),
        "split_unit": "subject",
        "channels": list(CHANNELS),
        "rates": [float(RATE)],
        "unit": "uV",
        "notes": ["made up"],
        "simulated": True,
    } | changed


def ingested(corpus: str, records: pl.DataFrame, stores: dict[str, xr.Dataset] | None = None, **changed: Any) -> Path:
    """Lay a corpus where ingest would, under the working directory; ``stores`` replaces the features of subjects."""
    folder = artifacts.ingested("eeg", corpus)
    artifacts.write_table(folder / "records.parquet", records)
    for place, ((subject,), mine) in enumerate(records.group_by("subject", maintain_order=True)):
        dataset = (stores or {}).get(str(subject), features(mine, seed=place))
        store = folder / "subjects" / f"{subject}.zarr"
        artifacts.write_dataset(store, {"de": dataset, "signal": signal(mine)})
    artifacts.write_json(folder / "corpus.json", about(corpus, **changed))
    source = {"source": corpus, "kind": "simulator", "origin": {"seed": 0}, "files": [], "licence": "Apache-2.0"}
    artifacts.write_json(folder / "manifest.json", source)
    return folder


def params(*corpora: str, gate: dict[str, Any] | None = None, **blocks: Any) -> Params:
    """Params with these corpora; ``blocks`` gives the block of a corpus by its name with ``_`` for ``-``."""
    return Params.model_validate(
        {
            "corpora": {key: blocks.get(key.replace("-", "_"), {"path": "x", "format": "seed"}) for key in corpora},
            "gate": gate or {},
            "splits": {"seed": 0, "validation": 0.2},
        }
    )


PEOPLE = tuple(f"s{number:02d}" for number in range(1, 7))


def two_corpora() -> Params:
    """Six people and one recording of another, with one bad trial and a copy."""
    rows = subjects("six", PEOPLE)
    rows[3] |= {"std_uv": 2310.0}
    rows[20] |= {"sha256": rows[2]["sha256"]}
    ingested("six", frame(*rows))
    ingested("lone", frame(trial("lone", "S001", 1, 1, label=None, stimulus=None)), label_names=[])
    return params("six", "lone", lone={"licence": "CC0"})
