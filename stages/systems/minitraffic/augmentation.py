"""Frequency-domain stability augmentation (FDA), and the extension and pooling that replace it for roads.

Shape suffixes: X any leading dimensions, T step of a window, F frequency, E copy.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional


def drawn_noise(
    shape: tuple[int, ...], steps: int, share: float, rng: np.random.Generator
) -> tuple[NDArray[np.complex64], NDArray[np.bool_]]:
    """Draw noise for :func:`perturbed`: a point of the unit disc and a spectral mask for each frequency.

    Parameters
    ----------
    shape
        Leading dimensions X.
    steps
        Steps of a window.
    share
        Probability that a frequency above 0 gets noise. Frequency 0 never does: it is the mean, which instance
        normalisation takes away.
    rng
        Random numbers.

    Returns
    -------
    noise_XF, mask_XF
        Complex numbers of modulus at most 1, and which frequencies they are for.
    """
    frequencies = steps // 2 + 1
    radius, angle, uniform = rng.random((3, *shape, frequencies), np.float32)
    mask_XF = uniform < share
    mask_XF[..., 0] = False
    return (np.sqrt(radius) * np.exp(2j * np.pi * angle)).astype(np.complex64), mask_XF


def perturbed(x_XT: Tensor, noise_XF: Tensor, mask_XF: Tensor, strength: float) -> Tensor:
    """Windows with bounded noise on some of their frequencies: roads that fluctuate as single lanes do.

    Source: MiniTraffic's FDA (real Fourier transform, noise of at most lambda times the largest amplitude where a
    spectral mask says so, inverse transform). The largest amplitude is that of the frequencies above 0, so that a high
    mean brings no high noise. Whole windows are transformed: patches of 3 steps
    have one frequency beside their mean.

    Parameters
    ----------
    x_XT
        Windows without missing values, shape (..., step).
    noise_XF, mask_XF
        From :func:`drawn_noise`.
    strength
        Lambda; 0 changes nothing.
    """
    spectrum_XF = torch.fft.rfft(x_XT)
    largest_X1 = spectrum_XF[..., 1:].abs().amax(dim=-1, keepdim=True)
    noise = torch.where(mask_XF, noise_XF, torch.zeros_like(noise_XF)) * (strength * largest_X1)
    return torch.as_tensor(torch.fft.irfft(spectrum_XF + noise, n=x_XT.shape[-1]))


def extended(x_XT: Tensor, copies: int) -> Tensor:
    """Copies of a window, the n-th averaged over its last n steps, shape (copy, ..., step).

    The window is extended by its first value so that its length stays; the first copy is the window itself.
    """
    found = [x_XT]
    for width in range(2, copies + 1):
        longer = torch.cat([x_XT[..., :1].expand(*x_XT.shape[:-1], width - 1), x_XT], dim=-1)
        flat = longer.reshape(1, -1, longer.shape[-1])
        found.append(functional.avg_pool1d(flat, width, stride=1).reshape(x_XT.shape))
    return torch.stack(found)
