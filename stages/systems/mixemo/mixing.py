"""Prototypes of subsets, random mixtures of them, and the move of a window to a mixture.

A prototype is the mean and standard deviation of a subset, dimension by dimension. A mixture is a weighted mean of some
prototypes; a window moves to it as in adaptive instance normalisation (Huang and Belongie 2017), with the statistics of
its *subset*: standardise with the subset's, re-scale with the mixture's.

Shape suffixes: F fold, N window, S sample, D dimension, K subset, Y class.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stages.systems.mixemo.partition import group_means

SMALL = 1e-5


@dataclass(frozen=True)
class Prototypes:
    """What the subsets of each fold look like.

    Attributes
    ----------
    centre_FYD
        What is taken off a window before its subset is looked at: the mean of its class, or 0.
    mean_FKD, std_FKD
        Mean and standard deviation of the members of each subset, less their centres.
    alive_FK
        False for a subset without members, which takes part in no mixture.
    """

    centre_FYD: Tensor
    mean_FKD: Tensor
    std_FKD: Tensor
    alive_FK: Tensor


def prototypes(values_FND: Tensor, label_FNY: Tensor, subset_FNK: Tensor, *, centred: bool) -> Prototypes:
    """Prototypes of the subsets.

    Parameters
    ----------
    values_FND
        Windows in the layer where they move.
    label_FNY, subset_FNK
        Membership in classes and subsets, 0 or 1; all 0 for gaps.
    centred
        Whether the mean of a window's class is taken off first.
    """
    centre_FYD = group_means(values_FND, label_FNY)
    if not centred:
        centre_FYD = torch.zeros_like(centre_FYD)
    residual = values_FND - torch.bmm(label_FNY, centre_FYD)
    mean = group_means(residual, subset_FNK)
    apart = (residual - torch.bmm(subset_FNK, mean)).square()
    std = group_means(apart, subset_FNK).sqrt().clamp(min=SMALL)
    return Prototypes(centre_FYD, mean, std, subset_FNK.sum(dim=1) > 0)


def mixture_weights(
    uniform_FSK: Tensor, share_FS: Tensor, allowed_FSK: Tensor, sizes: list[int], concentration_draw_FSK: Tensor
) -> Tensor:
    """Weights of random mixtures, shape (fold, sample, subset); each row sums to 1 over some allowed subsets.

    Parameters
    ----------
    uniform_FSK
        Uniform numbers whose order says which subsets take part.
    share_FS
        Uniform numbers that draw how many take part, out of ``sizes``.
    allowed_FSK
        Which subsets may take part; at least one in each row. Where fewer are allowed than drawn, all take part.
    sizes
        Numbers of prototypes, equally likely.
    concentration_draw_FSK
        Gamma variates with the Dirichlet's concentration as their shape: Dirichlet weights once they are divided by
        their sum.
    """
    wanted = torch.tensor(sizes, device=share_FS.device)[(share_FS * len(sizes)).long().clamp(max=len(sizes) - 1)]
    rank = torch.where(allowed_FSK, uniform_FSK, 2.0).argsort(dim=2).argsort(dim=2)
    taken = (rank < wanted[..., None]) & allowed_FSK
    drawn = concentration_draw_FSK.clamp(min=1e-30) * taken
    return drawn / drawn.sum(dim=2, keepdim=True)


def extrapolated(weights_FSK: Tensor, by: float) -> Tensor:
    """Weights pushed away from the even mixture of the same prototypes: w + by (w - even), still with sum 1."""
    taken = (weights_FSK > 0).to(weights_FSK.dtype)
    even = taken / taken.sum(dim=2, keepdim=True)
    return weights_FSK + by * (weights_FSK - even)


def move(
    value_FSD: Tensor,
    label_FSY: Tensor,
    subset_FSK: Tensor,
    weights_FSK: Tensor,
    found: Prototypes,
    clip: tuple[float, float] | None,
) -> Tensor:
    """Windows moved from their subset to a mixture of prototypes, shape (fold, sample, dimension).

    A window is centre + subset mean + rest; it becomes centre + mixture mean + rest x (mixture std / subset std), the
    ratio held within ``clip``. With weight 1 on its own subset it stays where it is.
    """
    centre = torch.bmm(label_FSY, found.centre_FYD)
    own_mean = torch.bmm(subset_FSK, found.mean_FKD)
    rest = value_FSD - centre - own_mean
    target_mean = torch.bmm(weights_FSK, found.mean_FKD)
    ratio = torch.bmm(weights_FSK, found.std_FKD).clamp(min=SMALL) / torch.bmm(subset_FSK, found.std_FKD)
    if clip is not None:
        ratio = ratio.clamp(*clip)
    return centre + target_mean + rest * ratio
