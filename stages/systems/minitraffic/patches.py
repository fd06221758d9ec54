"""What the network sees of a window: instance normalisation (RevIN), patches, and which of them are masked.

Shape suffixes: B window, S sensor, L step of the context, P patch, W step of a patch, H step of the horizon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Added to a window's standard deviation, a share of the set's typical one: a flat window does not divide by 0, and
#: the noise of a quiet one is not blown up. A share, so that km/h, mph and occupancy are treated alike.
FLOOR = 0.05


class Normalised(NamedTuple):
    """Windows in units of their own standard deviation.

    Attributes
    ----------
    x_BSL
        Values less the mean of the window, by its standard deviation; 0 where missing.
    there_BSL
        Which values were measured.
    mean_BS, sd_BS
        Moments of the measured values, in the data's unit; ``sd_BS`` with its floor. A window without a value has the
        level of its sensor.
    last_BS
        The last measured value of the window, in the data's unit.
    """

    x_BSL: Tensor
    there_BSL: Tensor
    mean_BS: Tensor
    sd_BS: Tensor
    last_BS: Tensor


def normalise(context_BSL: Tensor, level_S: Tensor, scale: float) -> Normalised:
    """Instance normalisation of windows with missing values (NaN).

    Parameters
    ----------
    context_BSL
        Windows in the data's unit.
    level_S
        What a sensor without a value in the window is taken to be at.
    scale
        The set's typical standard deviation, in the data's unit.
    """
    there = torch.isfinite(context_BSL)
    count_BS = there.sum(dim=-1)
    filled = torch.where(there, context_BSL, torch.zeros_like(context_BSL))
    some_BS = count_BS > 0
    mean_BS = torch.where(some_BS, filled.sum(dim=-1) / count_BS.clamp(min=1), level_S)
    centred = torch.where(there, context_BSL - mean_BS[..., None], torch.zeros_like(context_BSL))
    sd_BS = (centred.square().sum(dim=-1) / count_BS.clamp(min=1)).sqrt() + FLOOR * scale
    last_BS = torch.where(some_BS, last_measured(context_BSL, there), mean_BS)
    return Normalised(centred / sd_BS[..., None], there, mean_BS, sd_BS, last_BS)


def denormalise(x_BSL: Tensor, normalised: Normalised) -> Tensor:
    """Back to the data's unit: the inverse of :func:`normalise` where a value was measured."""
    return x_BSL * normalised.sd_BS[..., None] + normalised.mean_BS[..., None]


def last_measured(context_BSL: Tensor, there_BSL: Tensor) -> Tensor:
    """The last value of each window that is not missing; of a window without one, an arbitrary finite number."""
    steps = torch.arange(1, context_BSL.shape[-1] + 1, device=context_BSL.device)
    place = (there_BSL * steps).amax(dim=-1, keepdim=True).sub(1).clamp(min=0)
    return context_BSL.gather(-1, place)[..., 0].nan_to_num()


def patches(x_BSL: Tensor, patch: int, stride: int) -> Tensor:
    """Windows cut into patches, shape (window, sensor, patch, step of the patch)."""
    return x_BSL.unfold(-1, patch, stride)


def patch_count(context: int, patch: int, stride: int) -> int:
    """Number of patches of a window."""
    return (context - patch) // stride + 1


def masked_count(count: int, share: float) -> int:
    """How many of a series' patches are masked: the nearest whole number, at least one and not all."""
    return min(max(1, round(share * count)), count - 1) if count > 1 else 0


def drawn_mask(shape: tuple[int, ...], count: int, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Patches to mask, exactly :func:`masked_count` of each series, shape (..., patch)."""
    rank = rng.random((*shape, count), np.float32).argsort(axis=-1).argsort(axis=-1)
    return np.asarray(rank < masked_count(count, share))


def masked_error(predicted_BSPW: Tensor, target_BSPW: Tensor, there_BSPW: Tensor, mask_BSP: Tensor) -> Tensor:
    """Mean absolute error over measured values of masked patches alone; 0 where there is none."""
    counted = there_BSPW & mask_BSP[..., None]
    error = torch.where(counted, (predicted_BSPW - target_BSPW).abs(), torch.zeros_like(target_BSPW))
    return error.sum() / counted.sum().clamp(min=1)
