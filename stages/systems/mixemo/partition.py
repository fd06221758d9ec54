"""Partition of training windows into subsets: principal components and k-means of all folds at once.

Shape suffixes: F fold, R restart, N window, H unit of the representation, P component, K subset, Y class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

ITERATIONS = 30


def one_hot(place_FN: Tensor, width: int, filled_FN: Tensor) -> Tensor:
    """Membership as 0 and 1, shape (fold, window, width); all 0 where nothing is filled in."""
    return functional.one_hot(place_FN, width).to(torch.float32) * filled_FN[..., None]


def group_means(values_FND: Tensor, member_FNK: Tensor) -> Tensor:
    """Mean of the members of each group, shape (fold, group, feature); 0 for an empty group."""
    count_FK = member_FNK.sum(dim=1).clamp(min=1)
    return torch.bmm(member_FNK.transpose(1, 2), values_FND) / count_FK[..., None]


def class_centred(values_FND: Tensor, label_FNY: Tensor) -> Tensor:
    """Values less the mean of their class, so that clusters are no classes."""
    return values_FND - torch.bmm(label_FNY, group_means(values_FND, label_FNY))


def principal_components(values_FNH: Tensor, filled_FN: Tensor, components: int) -> Tensor:
    """Scores on the leading principal components of each fold, shape (fold, window, component).

    A component's sign is such that its largest loading is positive.
    """
    mask = filled_FN[..., None].to(values_FNH.dtype)
    count = mask.sum(dim=1, keepdim=True).clamp(min=2)
    centred = (values_FNH - (values_FNH * mask).sum(dim=1, keepdim=True) / count) * mask
    covariance = torch.bmm(centred.transpose(1, 2), centred).to(torch.float64) / (count - 1)
    _, vectors = torch.linalg.eigh(covariance)
    kept = min(components, vectors.shape[2])
    leading = vectors.flip(2)[..., :kept]
    largest = leading.gather(1, leading.abs().argmax(dim=1, keepdim=True))
    return torch.bmm(centred, (leading * torch.sign(largest)).to(values_FNH.dtype))


def k_means(
    values_FNP: Tensor, filled_FN: Tensor, subsets: int, restarts: int, generators: Sequence[np.random.Generator]
) -> Tensor:
    """Subset of each window (Lloyd's algorithm from k-means++ starts), shape (fold, window).

    Parameters
    ----------
    values_FNP
        What is clustered.
    filled_FN
        False where a fold has fewer windows than the largest.
    subsets
        Number of subsets; a subset can end up empty where a fold has fewer distinct windows.
    restarts
        Starts; the one with the least sum of squares stays.
    generators
        One for each fold.
    """
    folds, windows, width = values_FNP.shape
    place = values_FNP.device
    uniform = np.stack([rng.random((restarts, subsets)) for rng in generators]).astype(np.float32)
    centres = _spread_starts(values_FNP, filled_FN, torch.from_numpy(uniform).to(place))
    flat = values_FNP[:, None].expand(folds, restarts, windows, width).reshape(folds * restarts, windows, width)
    mask = filled_FN[:, None].expand(folds, restarts, windows).reshape(folds * restarts, windows)
    centres = centres.reshape(folds * restarts, subsets, width)
    for _ in range(ITERATIONS):
        member = one_hot(_distances(flat, centres).argmin(dim=2), subsets, mask)
        # An empty subset keeps its centre.
        moved = torch.where(member.sum(dim=1)[..., None] > 0, group_means(flat, member), centres)
        if torch.equal(moved, centres):
            break
        centres = moved
    nearest, assigned = _distances(flat, centres).min(dim=2)
    spread = (nearest * mask).sum(dim=1).reshape(folds, restarts)
    best = spread.argmin(dim=1)
    return assigned.reshape(folds, restarts, windows)[torch.arange(folds, device=place), best]


def _distances(values: Tensor, centres: Tensor) -> Tensor:
    """Squared distances, shape (batch, window, centre)."""
    cross = torch.bmm(values, centres.transpose(1, 2))
    return values.square().sum(dim=2)[..., None] - 2 * cross + centres.square().sum(dim=2)[:, None]


def _spread_starts(values_FNP: Tensor, filled_FN: Tensor, uniform_FRK: Tensor) -> Tensor:
    """Starts of k-means++ (Arthur and Vassilvitskii 2007): each next one drawn by squared distance to those before."""
    folds, restarts, subsets = uniform_FRK.shape
    rows = torch.arange(folds, device=values_FNP.device)[:, None]
    chance = filled_FN[:, None].expand(folds, restarts, -1).to(torch.float32)
    centres: list[Tensor] = []
    for k in range(subsets):
        total = chance.cumsum(dim=2)
        wanted = uniform_FRK[..., k : k + 1] * total[..., -1:]
        drawn = torch.searchsorted(total, wanted, right=True).clamp(max=chance.shape[2] - 1)[..., 0]
        centres.append(values_FNP[rows, drawn])
        far = (values_FNP[:, None] - centres[-1][:, :, None]).square().sum(dim=3) * filled_FN[:, None]
        chance = far if k == 0 else torch.minimum(chance, far)
    return torch.stack(centres, dim=2)


def shuffled(subset_FN: Tensor, filled_FN: Tensor, generators: Sequence[np.random.Generator]) -> Tensor:
    """The same subset sizes with members drawn at random: subsets that are i.i.d. samples of the whole."""
    mixed = subset_FN.clone()
    for fold, rng in enumerate(generators):
        there = filled_FN[fold].nonzero()[:, 0]
        mixed[fold, there] = subset_FN[fold, there[torch.from_numpy(rng.permutation(len(there))).to(there.device)]]
    return mixed


def renumbered(place_FN: Tensor) -> tuple[Tensor, int]:
    """Numbers of each fold as 0, 1, ... without gaps, and how many the richest fold has."""
    rows = [torch.unique(row, return_inverse=True) for row in place_FN]
    return torch.stack([inverse for _, inverse in rows]), max(len(found) for found, _ in rows)
