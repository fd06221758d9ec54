"""What a burn-in and a round of self-training learn from: labelled sentences, and pseudo-labels that a rule accepts.

All arms of a seed draw the same sentences and the same views; an arm without a rule is supervised training.

Shape suffixes: S sentence of a set, B sample of an update, H W pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.runtime import random_numbers
from stages.systems.l2l.model import L2l
from stages.systems.l2l.policy import REFUSE
from stages.systems.l2l.proposals import chunks, picked, propose
from stages.systems.l2l.selection import Rule, Tally
from stages.systems.l2l.settings import SelfTraining, Views
from stages.systems.l2l.views import Batch, Loaded, draws, relabelled, strong

Sentences = NDArray[np.int64]


class Supervised:
    """Labelled sentences in strong views."""

    def __init__(self, loaded: Loaded, labelled: Sentences, batch: int, steps: int, views: Views, seed: int) -> None:
        self.loaded, self.views, self.seed, self.batch = loaded, views, seed, batch
        self._order = draws(labelled, steps * batch, random_numbers(seed, "labelled"))

    def begin(self, step: int, teacher: L2l) -> list[dict[str, Any]]:
        """Nothing is prepared."""
        return []

    def batches(self, step: int) -> list[tuple[Batch, float]]:
        """The labelled sentences of an update; the loss is their mean."""
        mine = self._order[step * self.batch : (step + 1) * self.batch]
        view = strong(self.loaded.batch(mine), self.views, random_numbers(self.seed, "labelled", str(step)))
        return [(view, float(self.batch))]


class SelfTrained:
    """Labelled sentences, and pseudo-labels that are made at the start of each round."""

    def __init__(
        self,
        loaded: Loaded,
        labelled: Sentences,
        unlabelled: Sentences,
        settings: SelfTraining,
        views: Views,
        seed: int,
        rule: Rule,
        fusion: float,
        words: int,
    ) -> None:
        steps = settings.rounds * settings.steps
        self._supervised = Supervised(loaded, labelled, settings.labelled, steps, views, seed)
        self._order = draws(unlabelled, steps * settings.unlabelled, random_numbers(seed, "unlabelled"))
        self.loaded, self.settings, self.views, self.seed = loaded, settings, views, seed
        self.rule, self.fusion, self.words = rule, fusion, words
        self._first = 0
        self._action = self._mask = self._weight = torch.zeros(0)

    def begin(self, step: int, teacher: L2l) -> list[dict[str, Any]]:
        """The teacher labels the sentences of the round, and the rule decides."""
        settings, loaded = self.settings, self.loaded
        self._first = step * settings.unlabelled
        mine = self._order[self._first : self._first + settings.steps * settings.unlabelled]
        actions, masks, weights, tally = [], [], [], Tally()
        for part in chunks(mine):
            place = torch.from_numpy(part).to(loaded.place)
            found = propose(
                teacher,
                loaded.batch(part),
                loaded.confidence_S[place],
                self.fusion,
                self.words,
                two_views=self.rule.two_views,
            )
            truth_BHW = loaded.truth(place)
            decision = self.rule.decide(found, truth_BHW)
            tally.add(found, decision, truth_BHW)
            actions.append(decision.action_N)
            masks.append(picked(found.masks, decision.action_N))
            weights.append((255 * decision.weight_NHW).round().to(torch.uint8))
        self._action, self._mask, self._weight = torch.cat(actions), torch.cat(masks), torch.cat(weights)
        return [{"round": step // settings.steps, **tally.row()}]

    def batches(self, step: int) -> list[tuple[Batch, float]]:
        """Labelled sentences, and those pseudo-labels of the update that were accepted.

        The pseudo-label loss is a mean over all unlabelled sentences of the update: what is refused counts 0.
        """
        found = self._supervised.batches(step)
        count = self.settings.unlabelled
        begin = step * count - self._first
        accepted_B = self._action[begin : begin + count] != REFUSE
        if self.settings.weight == 0 or not bool(accepted_B.any()):
            return found
        some = self._some(self._order[step * count : (step + 1) * count], begin, step)
        kept = torch.nonzero(accepted_B)[:, 0]
        return [*found, (_chosen(some, kept), count / self.settings.weight)]

    def _some(self, sentence_B: Sentences, begin: int, step: int) -> Batch:
        """Strong views of all unlabelled sentences of an update: an arm's views do not depend on what it accepts."""
        batch = self.loaded.batch(sentence_B)
        span = slice(begin, begin + len(sentence_B))
        batch = relabelled(batch, self._mask[span], self._weight[span].to(torch.float32) / 255)
        return strong(batch, self.views, random_numbers(self.seed, "unlabelled", str(step)))


def _chosen(batch: Batch, place: Tensor) -> Batch:
    return Batch(
        batch.image_BCHW[place],
        batch.word_BL[place],
        batch.prior_BHW[place],
        batch.mask_BHW[place],
        batch.weight_BHW[place],
    )
