"""What a policy learns from: states of samples whose rewards are known, cross-fitted over two half-label burn-ins.

Shape suffixes: S sentence of a set, N sample, A action, P feature of a pixel's state, K pixel that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from stages.runtime import random_numbers
from stages.systems.l2l.model import L2l
from stages.systems.l2l.policy import Experience
from stages.systems.l2l.proposals import (
    candidate_ious,
    chunks,
    fusion_confidence,
    picked,
    pixel_states,
    propose,
    rewards,
    states,
)
from stages.systems.l2l.settings import Form, Train
from stages.systems.l2l.views import Loaded, strong

#: Every so many rows and columns, a pixel's state is kept.
STRIDE = 3


class Taught(NamedTuple):
    """A teacher, and sentences that it is judged on."""

    teacher: L2l
    sentence_S: NDArray[np.int64]


@torch.no_grad()
def experience(
    taught: Sequence[Taught],
    loaded: Loaded,
    form: Form,
    train: Train,
    *,
    views: int,
    threshold: float | None,
    seed: int,
) -> Experience:
    """States and rewards of sentences, each in ``views`` views, the first of them plain."""
    settings = train.selection
    parts: list[Experience] = []
    for number, (teacher, sentence_S) in enumerate(taught):
        for view in range(views):
            for begin, part in enumerate(chunks(sentence_S)):
                batch, place = loaded.batch(part), torch.from_numpy(part).to(loaded.place)
                if view:
                    rng = random_numbers(seed, "experience", str(number), str(view), str(begin))
                    batch = strong(batch, train.views, rng)
                found = propose(
                    teacher, batch, loaded.confidence_S[place], train.fusion, settings.words, two_views=True
                )
                reward_NA = rewards(found, batch.mask_BHW, form.reward, settings, threshold)
                # By agreement no mask is known: the prior stands for it.
                known = found.masks[1] if form.reward == "agreement" else batch.mask_BHW > 0.5
                action_N = reward_NA[:, :-1].argmax(dim=1)
                right = (picked(found.masks, action_N) == known).to(torch.float32)[:, ::STRIDE, ::STRIDE]
                pixel = pixel_states(found, action_N)[:, ::STRIDE, ::STRIDE]
                parts.append(Experience(states(found, form.state), reward_NA, pixel, right - settings.pixel_cost))
    return Experience(*(torch.cat(columns) for columns in zip(*parts, strict=True)))


@torch.no_grad()
def judged_candidates(taught: Taught, loaded: Loaded, train: Train) -> dict[str, torch.Tensor]:
    """Of each sentence: the fusion's confidence (N,), and the true IoU of each candidate (N, M)."""
    confidence, iou = [], []
    for part in chunks(taught.sentence_S):
        place = torch.from_numpy(part).to(loaded.place)
        found = propose(
            taught.teacher, loaded.batch(part), loaded.confidence_S[place], train.fusion, 0, two_views=False
        )
        confidence.append(fusion_confidence(found))
        iou.append(candidate_ious(found, loaded.truth(place)))
    return {"confidence": torch.cat(confidence), "iou": torch.cat(iou)}
