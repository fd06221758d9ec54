"""Artifacts of each window and channel, by rules that look at one window only. Dimensions: W window, C channel, T time.

Flags say what was seen; nothing is removed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stages.eeg.entropy import Band, band_variances, window_length, windows_of

Kind = Literal["flat", "missing", "amplitude", "gradient", "muscle"]
#: Kinds in the order of their bits in :meth:`Flags.kinds`.
KINDS: tuple[Kind, ...] = ("flat", "missing", "amplitude", "gradient", "muscle")
#: The bit of a channel of a window that has missing samples, or that the trial lacks.
MISSING = 1 << KINDS.index("missing")


@dataclass(frozen=True)
class Limits:
    """Where a channel of a window counts as an artifact; None switches a rule off.

    Attributes
    ----------
    flat
        Largest range (maximum less minimum) of a flat channel, in the unit of the signal.
    amplitude
        Largest magnitude, in the unit of the signal.
    gradient
        Largest step, in the unit of the signal per millisecond.
    muscle
        Largest share of the variance that lies above ``muscle_from`` Hz.
    """

    flat: float = 0.0
    amplitude: float | None = None
    gradient: float | None = None
    muscle: float | None = None
    muscle_from: float = 30.0


@dataclass(frozen=True)
class Flags:
    """Which rule each channel of each window breaks: arrays (window, channel)."""

    flat: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    amplitude: NDArray[np.bool_]
    gradient: NDArray[np.bool_]
    muscle: NDArray[np.bool_]

    @property
    def masked(self) -> NDArray[np.bool_]:
        """Channels of windows that hold no signal: flat, or with missing samples (window, channel)."""
        return self.flat | self.missing

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """Bit b is set where the rule ``KINDS[b]`` is broken (window, channel)."""
        bits = np.zeros(self.flat.shape, dtype=np.uint8)
        for bit, kind in enumerate(KINDS):
            bits |= np.where(getattr(self, kind), np.uint8(1 << bit), np.uint8(0))
        return bits


def flags(
    recorded_CT: NDArray[Any],
    recorded_rate: float,
    signal_CT: NDArray[np.float64],
    rate: float,
    seconds: float,
    limits: Limits,
    band: Band,
) -> Flags:
    """Look at each window.

    Parameters
    ----------
    recorded_CT
        The trial as recorded: flat and missing stretches are looked for here, for a filter and an average reference
        hide them.
    recorded_rate
        In Hz.
    signal_CT
        The same trial after filter and resampling, finite.
    rate
        In Hz.
    seconds
        Length of a window.
    limits
        The rules.
    band
        Edges in Hz of what the filter left, over which the share of muscle is taken.
    """
    length = window_length(rate, seconds)
    windows_WCN = windows_of(signal_CT, length)
    count, channels = windows_WCN.shape[:2]
    nothing_WC = np.zeros((count, channels), dtype=np.bool_)
    range_WC, missing_WC = recorded_windows(recorded_CT, recorded_rate, count, length / rate)
    amplitude_WC, gradient_WC, muscle_WC = nothing_WC, nothing_WC, nothing_WC
    if limits.amplitude is not None:
        amplitude_WC = np.abs(windows_WCN).max(axis=-1, initial=0.0) > limits.amplitude
    if limits.gradient is not None:
        step = limits.gradient * 1000 / rate
        gradient_WC = np.abs(np.diff(windows_WCN, axis=-1)).max(axis=-1, initial=0.0) > step
    if limits.muscle is not None and limits.muscle_from < (high := min(band[1], rate / 2)):
        bands = [(limits.muscle_from, high), (band[0], high)]
        variance_WCB = band_variances(signal_CT, rate, bands, seconds)
        muscle_WC = variance_WCB[..., 0] > limits.muscle * variance_WCB[..., 1]
    flat_WC = ~missing_WC & (range_WC <= limits.flat)
    there_WC = ~(flat_WC | missing_WC)
    return Flags(
        flat=flat_WC,
        missing=missing_WC,
        amplitude=amplitude_WC & there_WC,
        gradient=gradient_WC & there_WC,
        muscle=muscle_WC & there_WC,
    )


def recorded_windows(
    recorded_CT: NDArray[Any], rate: float, count: int, seconds: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Range of each window of a recording, and whether a sample is missing in it.

    Parameters
    ----------
    recorded_CT
        Samples as recorded, NaN where one is missing.
    rate
        In Hz; the windows' edges are put to the nearest sample.
    count, seconds
        Number and length of the windows.

    Returns
    -------
    range_WC, missing_WC
        The range is 0 where all samples are missing.
    """
    channels, samples = recorded_CT.shape
    if not count:
        return np.zeros((0, channels)), np.zeros((0, channels), dtype=np.bool_)
    starts_W = np.minimum(np.rint(np.arange(count) * seconds * rate).astype(np.int64), samples - 1)
    stop = min(samples, max(round(count * seconds * rate), int(starts_W[-1]) + 1))
    inside_CT = recorded_CT[:, :stop]
    missing_CT = ~np.isfinite(inside_CT)
    low_CW = np.minimum.reduceat(np.where(missing_CT, np.inf, inside_CT), starts_W, axis=1)
    high_CW = np.maximum.reduceat(np.where(missing_CT, -np.inf, inside_CT), starts_W, axis=1)
    seen_CW = high_CW >= low_CW
    range_CW = np.where(seen_CW, high_CW, 0.0) - np.where(seen_CW, low_CW, 0.0)
    missing_CW = np.logical_or.reduceat(missing_CT, starts_W, axis=1)
    return range_CW.T.astype(np.float64), missing_CW.T


def flagged_windows(kinds_WC: NDArray[np.uint8], share: float) -> NDArray[np.bool_]:
    """Windows in which more than a share of the channels break a rule; with a share of 0, any channel.

    Returns
    -------
    NDArray
        (window,) of bool.
    """
    return np.asarray((kinds_WC > 0).mean(axis=1) > share) if kinds_WC.size else np.zeros(len(kinds_WC), dtype=np.bool_)
