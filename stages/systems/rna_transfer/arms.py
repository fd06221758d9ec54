"""What each arm starts from: random or pre-trained weights, by layers, or shuffled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

Weights = Mapping[str, Tensor]

_LAYER = re.compile(r"(?:^|\.)layers?\.(\d+)\.")
_FIRST = re.compile(r"(?:^|\.)embeddings?\.|^embeddings?\b")


def is_lower(name: str, lower_layers: int) -> bool:
    """Whether a weight lies below a border: the embedding and the first layers; all others lie above."""
    found = _LAYER.search(name)
    return int(found.group(1)) < lower_layers if found else _FIRST.search(name) is not None


def layer_of(name: str) -> str:
    """Name of the part that a weight belongs to: embedding, layer_1, ..., top."""
    found = _LAYER.search(name)
    if found:
        return f"layer_{int(found.group(1)) + 1}"
    return "embedding" if _FIRST.search(name) else "top"


def layers_in(names: Iterable[str]) -> int:
    """Number of layers that weights of these names have."""
    return len({found.group(1) for found in map(_LAYER.search, names) if found})


def lower_layers(layers: int, share: float) -> int:
    """How many layers count as lower ones: at least one, and not all where there are two."""
    return min(max(1, round(layers * share)), max(1, layers - 1))


def shuffled(weights: Weights, rng: np.random.Generator) -> dict[str, Tensor]:
    """Each tensor's values in random order: its statistics stay, what was learnt goes."""
    return {
        name: weight.flatten()[torch.from_numpy(rng.permutation(weight.numel()))].view(weight.shape)
        for name, weight in weights.items()
    }


def starting_weights(
    arm: str, fresh: Weights, pretrained: Weights | None, *, lower_share: float, rng: np.random.Generator
) -> dict[str, Tensor]:
    """State dict that an arm starts from.

    Parameters
    ----------
    arm
        A key of ``settings.ARMS`` that has an encoder.
    fresh
        Random weights, the same for every arm.
    pretrained
        Pre-trained weights of the same names; None for random arms.
    lower_share
        Share of the layers that are lower ones.
    rng
        Of the shuffling.

    Raises
    ------
    ValueError
        The arm needs pre-trained weights and there are none, or has no encoder.
    """
    if arm in ("random", "random_frozen"):
        return dict(fresh)
    if pretrained is None:
        raise ValueError(f"arm {arm} without pre-trained weights")
    if arm in ("fine_tuned", "frozen"):
        return dict(pretrained)
    if arm == "shuffled":
        return shuffled(pretrained, rng)
    if arm in ("lower", "upper"):
        border = lower_layers(layers_in(fresh), lower_share)
        kept = {name for name in fresh if is_lower(name, border) == (arm == "lower")}
        return {name: (pretrained if name in kept else fresh)[name] for name in fresh}
    raise ValueError(f"arm {arm} has no encoder")
