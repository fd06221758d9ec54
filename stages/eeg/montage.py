"""Channels of trials put on one axis, and the average reference. Dimensions: C channel, T time (sample)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def union(montages: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """All channels of several trials, each once, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for montage in montages for name in montage))


def align(values: NDArray[Any], channels: Sequence[str], wanted: Sequence[str], *, axis: int = 0) -> NDArray[Any]:
    """Put values on another axis of channels; one that is not there is NaN, one that is not wanted is left out.

    Parameters
    ----------
    values
        Floating point, the channels along ``axis``.
    channels
        Names along the axis, each once.
    wanted
        Names of the axis that is returned.

    Raises
    ------
    ValueError
        A name stands twice, or the names are not as many as the axis is long.
    """
    if len(channels) != values.shape[axis] or len(set(channels)) != len(channels):
        raise ValueError(f"{len(channels)} names, {len(set(channels))} different, for {values.shape[axis]} channels")
    if tuple(channels) == tuple(wanted):
        return values
    place = {name: index for index, name in enumerate(channels)}
    there = [index for index, name in enumerate(wanted) if name in place]
    shape = list(values.shape)
    shape[axis] = len(wanted)
    aligned = np.full(shape, np.nan, dtype=values.dtype)
    taken = np.take(values, [place[wanted[index]] for index in there], axis=axis)
    aligned[(slice(None),) * (axis % values.ndim) + (there,)] = taken
    return aligned


def average_reference(signal_CT: NDArray[np.float64], good_C: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Subtract the mean of the good channels from each of them; bad channels neither count nor change.

    With fewer than two good channels the signal stays as it is, for its mean would be itself.
    """
    if np.count_nonzero(good_C) < 2:
        return signal_CT
    mean_T = signal_CT[good_C].mean(axis=0)
    return np.where(good_C[:, None], signal_CT - mean_T, signal_CT)
