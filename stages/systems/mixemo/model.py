"""The backbone: one network a fold, all folds as batched products (every weight has a leading fold dimension).

Shape suffixes: F fold, S sample, C channel, T time or band, D feature (what the first dense layer sees), H hidden unit,
J head, Y class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from stages.systems.mixemo.settings import Backbone

Weights = dict[str, Tensor]

#: Added to a filter's power before the logarithm: a flat window has a finite feature.
FLOOR = 1e-4


@dataclass(frozen=True)
class Layout:
    """Sizes of a network.

    Attributes
    ----------
    shape
        Channels and bands (mlp) or samples (conv) of one window.
    classes
        Number of classes.
    backbone
        Kind and sizes of the layers.
    """

    shape: tuple[int, int]
    classes: int
    backbone: Backbone

    @property
    def features(self) -> int:
        """What the first dense layer sees: channel x band, or filter x part of the window."""
        if self.backbone.kind == "mlp":
            return self.shape[0] * self.shape[1]
        return self.backbone.filters * self.backbone.pools

    @property
    def learned_front(self) -> bool:
        """Whether features come out of learned filters."""
        return self.backbone.kind == "conv"


def device() -> torch.device:
    """The GPU that the environment gives, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def initialise(layout: Layout, generators: Sequence[np.random.Generator], place: torch.device) -> Weights:
    """Draw the weights of each fold from its own generator: a fold is the same alone and among others.

    Uniform within 1 / sqrt(inputs), biases 0.
    """
    first, second = layout.backbone.hidden
    sizes: dict[str, tuple[int, tuple[int, ...]]] = {}
    if layout.learned_front:
        channels, filters, kernel = layout.shape[0], layout.backbone.filters, layout.backbone.kernel
        sizes["front.spatial"] = (channels, (filters, channels))
        sizes["front.temporal"] = (kernel, (filters, kernel))
    sizes["first.weight"] = (layout.features, (layout.features, first))
    sizes["second.weight"] = (first, (first, second))
    sizes["head.weight"] = (second, (second, layout.classes))
    weights: Weights = {}
    for name, (inputs, shape) in sizes.items():
        bound = 1 / math.sqrt(inputs)
        drawn = np.stack([rng.uniform(-bound, bound, shape) for rng in generators]).astype(np.float32)
        weights[name] = torch.from_numpy(drawn).to(place)
    for name, width in (("first", first), ("second", second), ("head", layout.classes)):
        weights[f"{name}.bias"] = torch.zeros(len(generators), 1, width, device=place)
    return weights


def front(weights: Weights, layout: Layout, x_FSCT: Tensor) -> Tensor:
    """What the first dense layer sees of standardised windows, shape (fold, sample, feature).

    ``mlp``: the entropies themselves. ``conv``: the log power of spatially and temporally filtered signals in parts of
    the window (the layers of ShallowConvNet, Schirrmeister et al. 2017, the spatial filter first).
    """
    folds, samples = x_FSCT.shape[:2]
    if not layout.learned_front:
        return x_FSCT.reshape(folds, samples, -1)
    filters, times = layout.backbone.filters, x_FSCT.shape[3]
    source = torch.matmul(weights["front.spatial"][:, None], x_FSCT)
    lanes = source.transpose(0, 1).reshape(samples, folds * filters, times)
    kernel = weights["front.temporal"].reshape(folds * filters, 1, -1)
    filtered = functional.conv1d(lanes, kernel, groups=folds * filters)
    power = functional.adaptive_avg_pool1d(filtered.square(), layout.backbone.pools)
    return torch.log(power + FLOOR).reshape(samples, folds, -1).transpose(0, 1)


def first_layer(weights: Weights, z_FSD: Tensor) -> Tensor:
    """Output of the first dense layer, shape (fold, sample, unit)."""
    return functional.relu(torch.baddbmm(weights["first.bias"], z_FSD, weights["first.weight"]))


def second_layer(weights: Weights, h_FSH: Tensor) -> Tensor:
    """Output of the second dense layer, the representation, shape (fold, sample, unit)."""
    return functional.relu(torch.baddbmm(weights["second.bias"], h_FSH, weights["second.weight"]))


def represent(weights: Weights, z_FSD: Tensor) -> Tensor:
    """Representation of features, shape (fold, sample, unit)."""
    return second_layer(weights, first_layer(weights, z_FSD))


def head_logits(weights: Weights, h_FSH: Tensor, classes: int) -> Tensor:
    """Logits of every head, shape (fold, sample, head, class)."""
    logits = torch.baddbmm(weights["head.bias"], h_FSH, weights["head.weight"])
    return logits.reshape(*logits.shape[:2], -1, classes)


def ensemble(logits_FSJY: Tensor) -> Tensor:
    """Log of the mean over heads of their class probabilities, shape (fold, sample, class)."""
    log_p = functional.log_softmax(logits_FSJY, dim=-1)
    if log_p.shape[2] == 1:
        return log_p[:, :, 0]
    return torch.logsumexp(log_p, dim=2) - math.log(log_p.shape[2])


def log_probabilities(weights: Weights, layout: Layout, x_FSCT: Tensor) -> Tensor:
    """Log class probabilities of standardised windows, shape (fold, sample, class): the mean of the heads."""
    h_FSH = represent(weights, front(weights, layout, x_FSCT))
    return ensemble(head_logits(weights, h_FSH, layout.classes))


def with_heads(weights: Weights, heads: int) -> Weights:
    """The same network with its one head copied ``heads`` times: what it predicts stays."""
    grown = dict(weights)
    for name in ("head.weight", "head.bias"):
        grown[name] = weights[name].repeat(1, 1, heads)
    return grown
