"""One trial from samples as recorded to filtered samples, features and flags. Dimensions as in the package's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stages.eeg import artifacts
from stages.eeg.entropy import Band, Definition, Taper, band_entropies
from stages.eeg.filters import band_pass, bridge_gaps, resample
from stages.eeg.montage import average_reference

Reference = Literal["average", "recorded"]

#: Share of the samples (missing) or of the windows' channels (flat) from which a channel does not count in the average.
BAD_SHARE = 0.5


@dataclass(frozen=True)
class Steps:
    """What is done to a trial, in this order: gaps bridged, resampled, band-passed, referenced, gaps put back.

    Attributes
    ----------
    rate
        Sampling rate in Hz afterwards; a slower trial keeps its own.
    band
        Edges of the band-pass in Hz.
    order
        Order of the Butterworth prototype of one direction.
    reference
        Average of the good channels, or as recorded.
    reference_channels
        Fewest channels for an average; with fewer the recorded reference stays.
    """

    rate: float | None
    band: Band
    order: int
    reference: Reference
    reference_channels: int


@dataclass(frozen=True)
class Windows:
    """How windows are measured and judged.

    Attributes
    ----------
    seconds
        Length of a window.
    bands
        Edges in Hz.
    definition, taper
        See :mod:`stages.eeg.entropy`.
    limits
        Rules for artifacts.
    """

    seconds: float
    bands: tuple[Band, ...]
    definition: Definition
    taper: Taper
    limits: artifacts.Limits


@dataclass(frozen=True)
class Processed:
    """One trial.

    Attributes
    ----------
    signal_CT
        Filtered samples, NaN where one was missing.
    rate
        In Hz.
    entropy_WCB
        Differential entropy in nats; NaN where a channel was flat or has missing samples in the window.
    kinds_WC
        Artifacts as bits, see :data:`stages.eeg.artifacts.KINDS`.
    """

    signal_CT: NDArray[np.float32]
    rate: float
    entropy_WCB: NDArray[np.float32]
    kinds_WC: NDArray[np.uint8]


def process(recorded_CT: NDArray[Any], rate: float, steps: Steps, windows: Windows) -> Processed:
    """Filter one trial and measure its windows.

    Parameters
    ----------
    recorded_CT
        Samples as recorded, NaN where one is missing; amplitudes of ``windows.limits`` are in their unit.
    rate
        In Hz.
    steps, windows
        What to do.
    """
    bridged_CT, missing_CT = bridge_gaps(recorded_CT)
    resampled_CT, given = resample(bridged_CT, rate, steps.rate)
    passed_CT = band_pass(resampled_CT, given, steps.band, steps.order)
    bad_C = bad_channels(recorded_CT, windows.limits.flat)
    passed_CT[bad_C] = 0.0
    if steps.reference == "average" and len(passed_CT) >= steps.reference_channels:
        passed_CT = average_reference(passed_CT, ~bad_C)
    found = artifacts.flags(recorded_CT, rate, passed_CT, given, windows.seconds, windows.limits, steps.band)
    entropy_WCB = band_entropies(
        passed_CT, given, windows.bands, windows.seconds, definition=windows.definition, taper=windows.taper
    )
    entropy_WCB[found.masked] = np.nan
    signal_CT = passed_CT.astype(np.float32)
    if missing_CT.any():
        signal_CT[missing_at(missing_CT, rate, given, signal_CT.shape[-1])] = np.nan
    return Processed(signal_CT, given, entropy_WCB, found.kinds)


def bad_channels(recorded_CT: NDArray[Any], flat: float) -> NDArray[np.bool_]:
    """Channels of a trial that hold no signal: range within ``flat``, or half the samples missing.

    Returns
    -------
    NDArray
        (channel,) of bool.
    """
    missing_CT = ~np.isfinite(recorded_CT)
    low_C = np.where(missing_CT, np.inf, recorded_CT).min(axis=1, initial=np.inf)
    high_C = np.where(missing_CT, -np.inf, recorded_CT).max(axis=1, initial=-np.inf)
    return np.asarray((high_C <= low_C + flat) | (missing_CT.mean(axis=1) >= BAD_SHARE))


def missing_at(missing_CT: NDArray[np.bool_], rate: float, given: float, samples: int) -> NDArray[np.bool_]:
    """Samples at another rate that have a missing sample next to them on either side.

    Returns
    -------
    NDArray
        (channel, sample) at the rate ``given``.
    """
    place_T = np.arange(samples) * rate / given
    last = missing_CT.shape[-1] - 1
    before_T = np.minimum(np.floor(place_T + 1e-6).astype(np.int64), last)
    after_T = np.minimum(np.ceil(place_T - 1e-6).astype(np.int64), last)
    return np.asarray(missing_CT[:, before_T] | missing_CT[:, after_T])
