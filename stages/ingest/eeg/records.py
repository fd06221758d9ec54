"""records.parquet: one row for each trial, in one schema for all corpora.

Statistics describe the samples as read, before any filter. Dimensions: C channel, T time (sample).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.eeg.entropy import band_variances
from stages.eeg.filters import bridge_gaps
from stages.ingest.eeg.schema import RECORD_COLUMNS, TARGETS
from stages.ingest.eeg.trials import Corpus, Trial

#: Frequencies of the mains in Hz, and how far from them power counts as theirs.
MAINS = (50.0, 60.0)
MAINS_WIDTH = 1.0
#: Seconds of a window in which line noise is measured; a shorter trial is one window.
SPECTRUM_SECONDS = 2.0
#: Lowest frequency in Hz of the power of which line noise is a share.
LOWEST = 1.0
DRIFT_PARTS = 5


def identity(corpus: Corpus, trial: Trial) -> dict[str, Any]:
    """The columns that say what a trial is."""
    return {
        "record_id": f"{corpus.key}/{trial.trial_id}",
        "group": f"{corpus.key}/{trial.subject}",
        "corpus": corpus.key,
        "subject": trial.subject,
        "session": trial.session,
        "trial": trial.trial,
        "stimulus": trial.stimulus,
        "label": trial.label,
        "label_value": None if trial.label_value is None else float(trial.label_value),
        **{name: trial.targets.get(name) for name in TARGETS},
        "source_file": trial.source_file,
        "unit": trial.unit,
        "channels": len(trial.channels),
        "missing_channels": len(set(corpus.channels) - set(trial.channels)),
        "unknown_channels": len(trial.unknown_channels),
        "duplicate_channels": len(trial.duplicate_channels),
    }


def of_signal(recorded_CT: NDArray[Any], rate: float) -> dict[str, Any]:
    """Size, digest and statistics of a trial's samples as read; null where a statistic is undefined."""
    samples = recorded_CT.shape[-1]
    return {
        "sha256": artifacts.sha256_arrays({"signal": np.ascontiguousarray(recorded_CT, dtype=np.float32)}),
        "original_rate": rate,
        "samples": samples,
        "seconds": samples / rate,
        **statistics(recorded_CT, rate),
    }


def of_features(feature_WCF: NDArray[Any], seconds: float | None) -> dict[str, Any]:
    """Size and digest of a trial that a corpus ships as features.

    Parameters
    ----------
    feature_WCF
        (window, channel, band).
    seconds
        Length of a window.
    """
    return {
        "sha256": artifacts.sha256_arrays({"features": np.ascontiguousarray(feature_WCF, dtype=np.float32)}),
        "seconds": None if seconds is None else len(feature_WCF) * seconds,
        "nan_share": _share(~np.isfinite(feature_WCF)),
    }


def statistics(recorded_CT: NDArray[Any], rate: float) -> dict[str, float | int | None]:
    """Statistics of one trial, in the unit of its samples; see ``schema.STATISTICS``."""
    bridged_CT, missing_CT = bridge_gaps(recorded_CT)
    there_C = ~missing_CT.all(axis=1) if missing_CT.size else np.zeros(len(recorded_CT), dtype=np.bool_)
    present_CT = np.where(missing_CT, np.nan, bridged_CT)[there_C]
    if not present_CT.size:
        return {"flat_channels": 0, "nan_share": _share(missing_CT)}
    middle_C = np.nanmedian(present_CT, axis=1, keepdims=True)
    low_C, high_C = np.nanmin(present_CT, axis=1), np.nanmax(present_CT, axis=1)
    return {
        "std_uv": float(np.median(np.nanstd(present_CT, axis=1))),
        "max_abs_uv": float(np.nanmax(np.abs(present_CT - middle_C))),
        "flat_channels": int(np.count_nonzero(high_C == low_C)),
        "saturated_share": _saturated(present_CT, low_C, high_C),
        "line_noise_share": line_noise_share(bridged_CT[there_C], rate),
        "drift_uv": _drift(bridged_CT[there_C]),
        "nan_share": _share(missing_CT),
    }


def _share(mask: NDArray[np.bool_]) -> float:
    return float(mask.mean()) if mask.size else 0.0


def _saturated(present_CT: NDArray[np.float64], low_C: NDArray[Any], high_C: NDArray[Any]) -> float:
    """Samples that repeat, one after the other, the extreme value of a channel that is not flat."""
    same_CT = present_CT[:, 1:] == present_CT[:, :-1]
    extreme_CT = (present_CT == low_C[:, None]) | (present_CT == high_C[:, None])
    varies_C = (high_C > low_C)[:, None]
    return float(np.count_nonzero(same_CT & extreme_CT[:, 1:] & varies_C) / present_CT.size)


def _drift(bridged_CT: NDArray[np.float64]) -> float | None:
    part = bridged_CT.shape[-1] // DRIFT_PARTS
    if not part:
        return None
    return float(np.abs(bridged_CT[:, -part:].mean(axis=1) - bridged_CT[:, :part].mean(axis=1)).max())


def line_noise_share(bridged_CT: NDArray[np.float64], rate: float) -> float | None:
    """Share of the power from 1 Hz to half the rate that lies within 1 Hz of 50 or of 60 Hz, whichever is more.

    Returns
    -------
    float or None
        None where the rate is too low to see the mains, or nothing varies.
    """
    seconds = min(SPECTRUM_SECONDS, bridged_CT.shape[-1] / rate)
    resolution = 1 / seconds
    lines = [(line - MAINS_WIDTH, line + MAINS_WIDTH + 0.01 * resolution) for line in MAINS]
    lines = [line for line in lines if line[1] <= rate / 2]
    if not lines:
        return None
    power_B = band_variances(bridged_CT, rate, [(LOWEST, rate / 2), *lines], seconds).sum(axis=(0, 1))
    return float(power_B[1:].max() / power_B[0]) if power_B[0] > 0 else None


def table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a frame with the columns of ``schema.RECORD_COLUMNS``; what a row lacks is null, and so is NaN."""
    schema = {name: getattr(pl, kind) for name, kind in RECORD_COLUMNS.items()}
    plain = [{name: _defined(row.get(name)) for name in RECORD_COLUMNS} for row in rows]
    return pl.DataFrame(plain, schema=schema, orient="row")


def _defined(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
