"""Zero-phase filters and resampling of one trial. Dimensions: C channel, T time (sample)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Largest factor of a resampling: 200 to 128 Hz is 16/25, 255 to 128 Hz 128/255.
MAX_FACTOR = 1000
#: Seconds by which a trial is continued at both ends (turned about its end values) before it is filtered.
PADDING_SECONDS = 2.0


def bridge_gaps(signal_CT: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Bridge missing samples by straight lines, for a filter would spread them over the whole trial.

    Returns
    -------
    signal_CT
        Float64, finite; a channel without any sample is zero.
    missing_CT
        True where a sample was missing.
    """
    bridged_CT = np.array(signal_CT, dtype=np.float64)
    missing_CT = ~np.isfinite(bridged_CT)
    for channel in np.flatnonzero(missing_CT.any(axis=1)):
        gap_T = missing_CT[channel]
        there = np.flatnonzero(~gap_T)
        here = np.flatnonzero(gap_T)
        bridged_CT[channel, gap_T] = np.interp(here, there, bridged_CT[channel, there]) if there.size else 0.0
    return bridged_CT, missing_CT


def resampling(rate: float, target: float | None) -> tuple[int, int, float]:
    """Factors up and down of the resampling nearest to a target rate, and the rate they give.

    The rate never rises: a signal slower than the target keeps its rate. The rate that is given is the true one: it
    differs from the target where the ratio is no ratio of whole numbers up to 1000.

    Returns
    -------
    tuple
        (up, down, rate in Hz).
    """
    if target is None or target >= rate:
        return 1, 1, rate
    ratio = Fraction(target / rate).limit_denominator(MAX_FACTOR)
    if ratio == 0:
        raise ValueError(f"from {rate} to {target} Hz: the target is less than a thousandth of the rate")
    up, down = ratio.numerator, ratio.denominator
    return up, down, target if abs(rate * up / down - target) <= 1e-9 * target else rate * up / down


def resample(signal_CT: NDArray[np.float64], rate: float, target: float | None) -> tuple[NDArray[np.float64], float]:
    """Resample by a polyphase filter of zero phase, the line between the trial's ends taken off before.

    Returns
    -------
    signal_CT
        ceil(T up / down) samples; sample i lies i / rate seconds after the first.
    rate
        The rate in Hz of what is returned; see :func:`resampling`.
    """
    up, down, given = resampling(rate, target)
    if up == down:
        return signal_CT, given
    from scipy import signal

    resampled_CT: NDArray[np.float64] = signal.resample_poly(signal_CT, up, down, axis=-1, padtype="line")
    return resampled_CT, given


def band_pass(
    signal_CT: NDArray[np.float64], rate: float, band: tuple[float, float], order: int
) -> NDArray[np.float64]:
    """Butterworth band-pass run forwards and backwards: no phase shift, the amplitude response squared.

    Parameters
    ----------
    signal_CT
        Finite samples.
    rate
        In Hz.
    band
        Edges in Hz, where the amplitude is halved. An upper edge at or above half the rate leaves a high-pass.
    order
        Order of the Butterworth prototype of one direction.
    """
    from scipy import signal

    low, high = band
    if high >= rate / 2:
        sections = signal.butter(order, low, btype="highpass", fs=rate, output="sos")
    else:
        sections = signal.butter(order, (low, high), btype="bandpass", fs=rate, output="sos")
    padding = min(signal_CT.shape[-1] - 1, round(PADDING_SECONDS * rate))
    if padding < 1:
        return np.zeros_like(signal_CT)
    centred_CT = signal_CT - signal_CT.mean(axis=-1, keepdims=True)
    passed_CT: NDArray[np.float64] = signal.sosfiltfilt(sections, centred_CT, axis=-1, padtype="odd", padlen=padding)
    return passed_CT
