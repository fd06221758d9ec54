"""The harmonised schema of an EEG corpus: units, bands, and the columns of records.parquet.

Plain constants and the standard library only, so that the gate can import them without the readers.
"""

from __future__ import annotations

from typing import Literal

#: Unit of a signal after reading. Raw counts of an amplifier stay counts: nothing is known that would make them volts.
Unit = Literal["uV", "counts"]

#: Microvolts in one unit of a file.
MICROVOLTS = {"uV": 1.0, "mV": 1e3, "V": 1e6}

#: Standard deviation of a recording, in microvolts, outside which its declared unit cannot be right. EEG lies between
#: 1 and 200 uV; a factor of 20 on either side leaves room for raw recordings with slow drifts and for quiet devices.
POSSIBLE_STD_UV = (0.05, 4000.0)

#: Frequency bands in Hz of the differential entropy, lower edge included.
BANDS: dict[str, tuple[float, float]] = {
    "delta": (1.0, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 14.0),
    "beta": (14.0, 31.0),
    "gamma": (31.0, 50.0),
}

#: Unit of differential entropy, 0.5 ln(2 pi e variance), with the variance in uV2.
ENTROPY_UNIT = "nat"

#: Ratings that a corpus may have beside its labels.
TARGETS = ("valence", "arousal", "dominance", "liking")

#: Summary statistics of one trial and their meaning; a share refers to the samples of all its channels.
STATISTICS = {
    "std_uv": "median over channels of the standard deviation of the signal as read, in uV (counts where unit says so)",
    "max_abs_uv": "largest magnitude of the signal as read, about the median of its channel, in uV",
    "flat_channels": "number of channels without any variation",
    "saturated_share": "share of samples that repeat the extreme value of their channel",
    "line_noise_share": "share of the power from 1 Hz to the Nyquist frequency that lies within 1 Hz of 50 or 60 Hz",
    "drift_uv": "largest change of a channel's mean from the first to the last fifth of the trial, in uV",
    "nan_share": "share of samples that are no number",
    "artifact_share": "share of windows flagged as artifact",
    "windows": "number of windows",
}

#: Columns of records.parquet and their polars types; the same for every corpus, null where a value does not exist.
RECORD_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "group": "String",
    "corpus": "String",
    "subject": "String",
    "session": "String",
    "trial": "Int64",
    "stimulus": "String",
    "label": "String",
    "label_value": "Float64",
    **dict.fromkeys(TARGETS, "Float64"),
    "source_file": "String",
    "sha256": "String",
    "unit": "String",
    "rate": "Float64",
    "original_rate": "Float64",
    "samples": "Int64",
    "seconds": "Float64",
    "channels": "Int64",
    "missing_channels": "Int64",
    "unknown_channels": "Int64",
    "duplicate_channels": "Int64",
    **{name: "Int64" if name in ("flat_channels", "windows") else "Float64" for name in STATISTICS},
}
