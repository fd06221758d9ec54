"""Batches of sentences as tensors: plain ones, and strong views that leave colours and sides what they are called.

Shape suffixes: B sample, L word, C channel, H W pixels; S sentence, I image, O object of a set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stages.systems.l2l.pictures import Pictures
from stages.systems.l2l.priors import Priors
from stages.systems.l2l.settings import Views


@dataclass(frozen=True)
class Batch:
    """Samples: images in [0, 1], words, priors in [0, 1], masks of 0 and 1, and what each pixel counts."""

    image_BCHW: Tensor
    word_BL: Tensor
    prior_BHW: Tensor
    mask_BHW: Tensor
    weight_BHW: Tensor


class Loaded:
    """A set and its priors on the device, as bytes."""

    def __init__(self, pictures: Pictures, priors: Priors, place: torch.device) -> None:
        self.place = place
        self.image_ICHW = torch.from_numpy(pictures.image_IHWC).to(place).permute(0, 3, 1, 2)
        self.mask_OHW = torch.from_numpy(pictures.mask_OHW).to(place)
        self.prior_SHW = torch.from_numpy(priors.map_SHW).to(place)
        self.word_SL = torch.from_numpy(pictures.word_SL).to(place)
        self.confidence_S = torch.from_numpy(priors.confidence_S).to(place)
        self.image_S = torch.from_numpy(pictures.image_S).to(place)
        self.object_S = torch.from_numpy(pictures.object_S).to(place)

    def batch(self, sentence_B: NDArray[np.int64]) -> Batch:
        """Sentences with their true masks."""
        mine = torch.from_numpy(sentence_B).to(self.place)
        prior_BHW = self.prior_SHW[mine].to(torch.float32) / 255
        return Batch(
            self.image_ICHW[self.image_S[mine]].to(torch.float32) / 255,
            self.word_SL[mine],
            prior_BHW,
            self.truth(mine).to(torch.float32),
            torch.ones_like(prior_BHW),
        )

    def truth(self, sentence_B: Tensor) -> Tensor:
        """True masks (B, H, W), bytes."""
        return self.mask_OHW[self.object_S[sentence_B]]


def relabelled(batch: Batch, mask_BHW: Tensor, weight_BHW: Tensor) -> Batch:
    """The same samples with other masks."""
    return replace(batch, mask_BHW=mask_BHW.to(torch.float32), weight_BHW=weight_BHW.to(torch.float32))


def strong(batch: Batch, views: Views, rng: np.random.Generator) -> Batch:
    """A strong view: shifted, zoomed, in other light, with noise, without some words, at times without the prior."""
    count, _, height, width = batch.image_BCHW.shape
    place = batch.image_BCHW.device
    drawn_B7 = torch.from_numpy(rng.uniform(-1, 1, (count, 7)).astype(np.float32)).to(place)
    lost_BL = torch.from_numpy(rng.random(tuple(batch.word_BL.shape)) < views.words).to(place)
    noise = torch.Generator(place).manual_seed(int(rng.integers(1 << 62)))
    moved = _moved(batch, 1 + views.zoom * drawn_B7[:, 0], 2 * views.shift * drawn_B7[:, 1:3], (height, width))
    bright_B, contrast_B = views.light * drawn_B7[:, 3], 1 + views.light * drawn_B7[:, 4]
    image_BCHW = moved.image_BCHW
    mean_B111 = image_BCHW.mean(dim=(1, 2, 3), keepdim=True)
    image_BCHW = (image_BCHW - mean_B111) * _wide(contrast_B) + mean_B111 * (1 + _wide(bright_B))
    image_BCHW = image_BCHW + views.noise * torch.randn(image_BCHW.shape, generator=noise, device=place)
    # A sentence keeps a word, whatever is lost.
    lost_BL = lost_BL & ~(lost_BL | (batch.word_BL == 0)).all(dim=1, keepdim=True)
    kept_B11 = ((drawn_B7[:, 5] + 1) / 2 >= views.prior).to(torch.float32)[:, None, None]
    return replace(
        moved,
        image_BCHW=image_BCHW.clamp(0, 1),
        word_BL=torch.where(lost_BL, 0, batch.word_BL),
        prior_BHW=moved.prior_BHW * kept_B11,
    )


def _moved(batch: Batch, scale_B: Tensor, shift_B2: Tensor, size: tuple[int, int]) -> Batch:
    """Image, prior, mask and weights, all moved alike; what comes in from outside repeats the edge."""
    theta_B23 = torch.zeros(len(scale_B), 2, 3, device=scale_B.device)
    theta_B23[:, 0, 0] = theta_B23[:, 1, 1] = scale_B
    theta_B23[:, :, 2] = shift_B2
    planes = torch.cat(
        [batch.image_BCHW, batch.prior_BHW[:, None], batch.mask_BHW[:, None], batch.weight_BHW[:, None]], dim=1
    )
    grid = functional.affine_grid(theta_B23, [len(scale_B), planes.shape[1], *size], align_corners=False)
    found = functional.grid_sample(planes, grid, mode="bilinear", padding_mode="border", align_corners=False)
    image_BCHW = found[:, :-3]
    prior_BHW, mask_BHW, weight_BHW = found[:, -3:].unbind(dim=1)
    return replace(
        batch,
        image_BCHW=image_BCHW,
        prior_BHW=prior_BHW,
        mask_BHW=(mask_BHW > 0.5).to(torch.float32),
        weight_BHW=weight_BHW,
    )


def _wide(value_B: Tensor) -> Tensor:
    return value_B[:, None, None, None]


def draws(pool: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``count`` sentences of a pool: every one before any comes again."""
    rounds = math.ceil(count / len(pool))
    return np.concatenate([rng.permutation(pool) for _ in range(rounds)])[:count]
