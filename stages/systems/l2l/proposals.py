"""What may be accepted of a sample: the teacher's map, the prior, their fusion; what the policy sees of them; rewards.

What the policy sees is made of maps, images and words, and of no unit of a network: the networks of the two half-label
burn-ins, whose samples it learns from, do not share their units.

Shape suffixes: N sample, C channel, H W pixels, L word, F feature of a state, P feature of a pixel's state, A action, M
candidate (teacher, prior, fusion).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.systems.l2l.model import L2l
from stages.systems.l2l.settings import Reward, Selection, State
from stages.systems.l2l.views import Batch, Loaded

#: Samples that pass through a network at once where nothing is learned.
CHUNK = 128
CANDIDATES = ("teacher", "prior", "fusion")
STATISTICS = (
    *(f"{name}_{what}" for name in CANDIDATES for what in ("area", "inside", "highest", "entropy")),
    *("prior_confidence", "difference", "teacher_prior_iou", "teacher_fusion_iou", "prior_fusion_iou", "views_iou"),
)
PIXEL_FEATURES = 6


@dataclass(frozen=True)
class Proposals:
    """Maps of samples in [0, 1], and what the policy sees beside them.

    Attributes
    ----------
    map_MNHW
        Teacher, prior, fusion.
    moved_NHW
        The teacher's map of a moved image, moved back; the teacher's own map where it was not asked for.
    confidence_N, image_NCHW, present_NW, length_N
        The prior's confidence; images; which frequent words stand in the sentence, and how many words.
    """

    map_MNHW: Tensor
    moved_NHW: Tensor
    confidence_N: Tensor
    image_NCHW: Tensor
    present_NW: Tensor
    length_N: Tensor

    @property
    def masks(self) -> Tensor:
        """Candidates as masks (M, N, H, W)."""
        return self.map_MNHW > 0.5


def chunks(sentence_N: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Sentences in pieces that pass through a network at once."""
    for begin in range(0, len(sentence_N), CHUNK):
        yield sentence_N[begin : begin + CHUNK]


@torch.no_grad()
def answers(network: L2l, loaded: Loaded, sentence_N: NDArray[np.int64]) -> Tensor:
    """Probability of each pixel (N, H, W) of plain views."""
    parts = [_probability(network, loaded.batch(part)) for part in chunks(sentence_N)]
    side = loaded.prior_SHW.shape[1:]
    return torch.cat(parts) if parts else torch.zeros((0, *side), device=loaded.place)


def _probability(network: L2l, batch: Batch) -> Tensor:
    return torch.sigmoid(network(batch.image_BCHW, batch.word_BL, batch.prior_BHW).logit_BHW)


@torch.no_grad()
def propose(
    network: L2l, batch: Batch, confidence_N: Tensor, fusion: float, words: int, *, two_views: bool
) -> Proposals:
    """Candidates of a batch by a teacher.

    Parameters
    ----------
    fusion
        Weight of the teacher in the fusion.
    words
        Most frequent words whose presence is told.
    two_views
        Whether the teacher also answers a moved image, which costs as much again.
    """
    teacher_NHW = _probability(network, batch)
    moved_NHW = teacher_NHW
    if two_views:
        by = batch.prior_BHW.shape[1] // 16
        shift = (by, -by)
        image = torch.roll(batch.image_BCHW, shift, dims=(2, 3))
        prior = torch.roll(batch.prior_BHW, shift, dims=(1, 2))
        seen = torch.sigmoid(network(image, batch.word_BL, prior).logit_BHW)
        moved_NHW = torch.roll(seen, (-by, by), dims=(1, 2))
    present_NW = torch.zeros(len(teacher_NHW), words + 2, device=teacher_NHW.device)
    known = torch.where(batch.word_BL < words + 2, batch.word_BL, 0)
    present_NW.scatter_(1, known, 1.0)
    return Proposals(
        torch.stack([teacher_NHW, batch.prior_BHW, fusion * teacher_NHW + (1 - fusion) * batch.prior_BHW]),
        moved_NHW,
        confidence_N,
        batch.image_BCHW,
        present_NW[:, 2:],
        (batch.word_BL > 0).sum(dim=1).to(torch.float32),
    )


def states(found: Proposals, state: State) -> Tensor:
    """What the policy sees of each sample (N, F): statistics of the maps; embeddings add image, sentence and masks."""
    parts = [_statistics(found)]
    if state == "embeddings":
        parts += [_image_embedding(found), found.present_NW, found.length_N[:, None]]
        parts += [_mask_embedding(found, mask_NHW) for mask_NHW in found.map_MNHW]
    return torch.cat(parts, dim=1)


def _statistics(found: Proposals) -> Tensor:
    mask_MNHW = found.masks
    columns = []
    for map_NHW, mask_NHW in zip(found.map_MNHW, mask_MNHW, strict=True):
        area_N = mask_NHW.sum(dim=(1, 2))
        inside_N = (map_NHW * mask_NHW).sum(dim=(1, 2)) / area_N.clamp(min=1)
        share_N = area_N / mask_NHW[0].numel()
        columns += [share_N.sqrt(), inside_N, map_NHW.amax(dim=(1, 2)), uncertainty(map_NHW).mean(dim=(1, 2))]
    teacher, prior, fusion = mask_MNHW
    columns += [found.confidence_N, (found.map_MNHW[0] - found.map_MNHW[1]).abs().mean(dim=(1, 2))]
    columns += [mask_iou(teacher, prior), mask_iou(teacher, fusion), mask_iou(prior, fusion)]
    columns.append(mask_iou(teacher, found.moved_NHW > 0.5))
    return torch.stack(columns, dim=1)


def _image_embedding(found: Proposals) -> Tensor:
    return torch.cat([found.image_NCHW.mean(dim=(2, 3)), found.image_NCHW.std(dim=(2, 3))], dim=1)


def _mask_embedding(found: Proposals, map_NHW: Tensor) -> Tensor:
    """Colours inside and around a map, where it lies, and how far it spreads."""
    _, height, width = map_NHW.shape
    total_N1 = map_NHW.sum(dim=(1, 2))[:, None].clamp(min=1e-3)
    colour_NC = torch.einsum("nchw,nhw->nc", found.image_NCHW, map_NHW) / total_N1
    row_H = torch.linspace(-1, 1, height, device=map_NHW.device)
    column_W = torch.linspace(-1, 1, width, device=map_NHW.device)
    places = []
    for mass_NK, place_K in ((map_NHW.sum(dim=2), row_H), (map_NHW.sum(dim=1), column_W)):
        middle_N1 = (mass_NK * place_K).sum(dim=1, keepdim=True) / total_N1
        spread_N1 = (mass_NK * (place_K - middle_N1) ** 2).sum(dim=1, keepdim=True) / total_N1
        places += [middle_N1, spread_N1.sqrt()]
    return torch.cat([colour_NC, colour_NC - found.image_NCHW.mean(dim=(2, 3)), *places], dim=1)


def pixel_states(found: Proposals, action_N: Tensor) -> Tensor:
    """What the policy sees of each pixel (N, H, W, P), given the candidate that was accepted."""
    teacher_NHW, prior_NHW, _ = found.map_MNHW
    accepted_NHW = picked(found.map_MNHW, action_N)
    planes = [
        2 * (accepted_NHW - 0.5).abs(),
        uncertainty(teacher_NHW),
        prior_NHW,
        (teacher_NHW - prior_NHW).abs(),
        (accepted_NHW > 0.5).to(torch.float32),
        (teacher_NHW - found.moved_NHW).abs(),
    ]
    return torch.stack(planes, dim=3)


def picked(value_MNHW: Tensor, action_N: Tensor) -> Tensor:
    """The accepted candidate of each sample; that of the fusion where it was refused."""
    place_N = action_N.clamp(max=len(CANDIDATES) - 1)
    return value_MNHW[place_N, torch.arange(len(action_N), device=action_N.device)]


def uncertainty(map_NHW: Tensor) -> Tensor:
    """Entropy of each pixel, 1 where it is undecided."""
    p = map_NHW.clamp(1e-6, 1 - 1e-6)
    return -(p * p.log2() + (1 - p) * (1 - p).log2())


def mask_iou(mask_NHW: Tensor, other_NHW: Tensor) -> Tensor:
    """IoU of pairs of masks (N,); 0 where both are empty."""
    shared_N = (mask_NHW & other_NHW).sum(dim=(1, 2))
    either_N = (mask_NHW | other_NHW).sum(dim=(1, 2))
    return shared_N / either_N.clamp(min=1)


def fusion_confidence(found: Proposals) -> Tensor:
    """Mean of the fusion inside its mask (N,); 0 where the mask is empty."""
    map_NHW = found.map_MNHW[2]
    mask_NHW = map_NHW > 0.5
    return (map_NHW * mask_NHW).sum(dim=(1, 2)) / mask_NHW.sum(dim=(1, 2)).clamp(min=1)


def candidate_ious(found: Proposals, truth_NHW: Tensor) -> Tensor:
    """True IoU of each candidate (N, M)."""
    return torch.stack([mask_iou(mask_NHW, truth_NHW > 0) for mask_NHW in found.masks], dim=1)


def rewards(
    found: Proposals, truth_NHW: Tensor, reward: Reward, settings: Selection, threshold: float | None
) -> Tensor:
    """Reward of each action (N, A); refusing earns nothing.

    ``gain`` takes off what the fixed threshold's own action earns: the same for all actions of a sample, so that the
    expected gradient stays and only its spread changes.
    """
    if reward == "agreement":
        agreed_N = mask_iou(found.masks[0], found.masks[1]) - settings.cost
        return torch.stack([agreed_N, agreed_N, agreed_N, torch.zeros_like(agreed_N)], dim=1)
    earned_NA = torch.nn.functional.pad(candidate_ious(found, truth_NHW) - settings.cost, (0, 1))
    if reward == "gain":
        fixed_N = (fusion_confidence(found) > (1.0 if threshold is None else threshold)).to(torch.float32)
        return earned_NA - (fixed_N * earned_NA[:, CANDIDATES.index("fusion")])[:, None]
    return earned_NA
