"""MixEmo: warm-up, partition, windows moved to random mixtures of prototypes, collaborative learning; and its readings.

Shape suffixes: F fold, M place in a fold's list of training windows, S sample, D dimension, H unit, J head, K subset,
Y class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from stages.systems.mixemo import one_distribution, partition
from stages.systems.mixemo.mixing import (
    Prototypes,
    extrapolated,
    mixture_weights,
    move,
    prototypes,
)
from stages.systems.mixemo.model import (
    Weights,
    ensemble,
    first_layer,
    front,
    head_logits,
    second_layer,
    with_heads,
)
from stages.systems.mixemo.objectives import Objective, cross_entropy
from stages.systems.mixemo.problem import Batch, Draws, Problem
from stages.systems.mixemo.settings import Mixing, Training


@dataclass(frozen=True)
class Reading:
    """One reading of the method.

    Attributes
    ----------
    partition
        k_means; shuffled (its subset sizes, members at random: i.i.d.); subjects; tested (split until normal).
    per_class
        Whether each class is partitioned apart, so that a subset has one class, and mixes with subsets of its class.
    layer
        Where windows move: what the first dense layer sees, or its output.
    heads
        one; own (a head for each subset, a moved window keeps its own); mixed (a moved window is predicted by its
        mixture of heads).
    augment
        Whether windows are moved at all.
    extrapolation
        How far mixture weights are pushed out of the simplex.
    clustered
        The layer whose output is partitioned.
    resample
        Whether batches are drawn with random subset weights.
    consistency, variance
        Weights of the divergence and of the variance of the subsets' losses.
    """

    partition: Literal["k_means", "shuffled", "subjects", "tested"] = "k_means"
    per_class: bool = False
    layer: Literal["input", "hidden"] = "input"
    heads: Literal["one", "own", "mixed"] = "one"
    augment: bool = True
    extrapolation: float = 0.0
    clustered: Literal["first", "second"] = "second"
    resample: bool = False
    consistency: float = 1.0
    variance: float = 0.0


def reading(method: str, settings: Mixing) -> Reading:
    """The reading that a method's name stands for."""
    main = Reading(consistency=settings.consistency)
    readings = {
        "mixemo": main,
        "mixemo_literal": replace(
            main, per_class=True, layer="hidden", heads="own", resample=True, variance=settings.variance
        ),
        "mixemo_heads": replace(main, heads="mixed"),
        "mixemo_extrapolated": replace(main, extrapolation=settings.extrapolation),
        "mixemo_first_layer": replace(main, clustered="first"),
        "no_augmentation": replace(main, augment=False),
        "no_collaboration": replace(main, consistency=0.0),
        "iid_prototypes": replace(main, partition="shuffled"),
        "subject_prototypes": replace(main, partition="subjects"),
        "tested_prototypes": replace(main, partition="tested"),
    }
    return readings[method]


class MixEmo(Objective):
    """Plain cross-entropy in the warm-up; then the partition, and the collaborative loss on real and moved windows."""

    def __init__(self, problem: Problem, draws: Draws, chosen: Reading, settings: Mixing, training: Training) -> None:
        super().__init__(problem, draws)
        self.reading, self.settings, self.warmup = chosen, settings, training.warmup
        self.moved_count = training.counted == "forward"
        self.subset_FM: Tensor | None = None
        self.component_FMP: Tensor | None = None
        self.subsets = settings.subsets
        self.found: Prototypes | None = None
        self.allowed_FYK: Tensor | None = None

    @property
    def partitioned(self) -> bool:
        """Whether there are subsets yet: one subset without moved windows is plain cross-entropy and needs none."""
        return self.subset_FM is not None

    def at_step(self, step: int, weights: Weights) -> tuple[Weights, int]:
        """Partition after the warm-up; estimate the prototypes anew where the layer they live in is learned."""
        if step == self.warmup and (self.reading.augment or self.settings.subsets > 1):
            self._partition(weights)
            if self.reading.heads != "one":
                weights = with_heads(weights, self.subsets)
            return weights, self.problem.training_windows
        learned = self.layout.learned_front or self.reading.layer == "hidden"
        if self.partitioned and learned and (step - self.warmup) % self.settings.refresh == 0:
            self._estimate(self._layers(weights)[0])
            return weights, self.problem.training_windows
        return weights, 0

    def real_samples(self, batch: int) -> int:
        """Half of the samples are moved windows once there are subsets, where moved windows count."""
        return batch // 2 if self.partitioned and self.reading.augment and self.moved_count else batch

    def choose(self, uniform_FS: Tensor) -> Tensor:
        """Places of a batch: each window equally likely, or subsets with random weights."""
        if not (self.partitioned and self.reading.resample):
            return super().choose(uniform_FS)
        member = self.membership(None)
        count_FK = member.sum(dim=1)
        weight_FK = self.draws.gamma(self.settings.concentration, self.subsets) * (count_FK > 0)
        chance_FM = torch.bmm(member, (weight_FK / count_FK.clamp(min=1))[..., None])[..., 0]
        total_FM = chance_FM.cumsum(dim=1)
        drawn = torch.searchsorted(total_FM, uniform_FS * total_FM[:, -1:], right=True)
        return torch.minimum(drawn, self.problem.trained_FM.sum(dim=1, keepdim=True) - 1)

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        """Loss of each fold; see :func:`collaborative_loss`."""
        if not self.partitioned:
            return super().loss(weights, batch)
        label = functional.one_hot(batch.label_FS, self.layout.classes).to(torch.float32)
        subset = self.membership(batch.place_FS)
        mixture = self.mixture(label) if self.reading.augment else None
        return collaborative_loss(
            weights, self.layout.classes, front(weights, self.layout, batch.x_FSCT), batch.label_FS, label, subset,
            mixture, self.found, self.reading, self.settings.clip,
        )  # fmt: skip

    def membership(self, place_FS: Tensor | None) -> Tensor:
        """Subsets of training windows at some places, or at all, as 0 and 1, shape (fold, sample, subset)."""
        assert self.subset_FM is not None
        if place_FS is None:
            return partition.one_hot(self.subset_FM, self.subsets, self.problem.trained_FM)
        return functional.one_hot(self.subset_FM.gather(1, place_FS), self.subsets).to(torch.float32)

    def mixture(self, label_FSY: Tensor) -> Tensor:
        """Draw the weights of a mixture for each sample, shape (fold, sample, subset)."""
        assert self.found is not None
        samples = label_FSY.shape[1]
        allowed = self.found.alive_FK[:, None].expand(-1, samples, -1)
        if self.allowed_FYK is not None:
            allowed = allowed & (torch.bmm(label_FSY, self.allowed_FYK) > 0)
        weights = mixture_weights(
            self.draws.uniform(samples, self.subsets),
            self.draws.uniform(samples),
            allowed,
            list(self.settings.prototypes),
            self.draws.gamma(self.settings.concentration, samples, self.subsets),
        )
        return extrapolated(weights, self.reading.extrapolation) if self.reading.extrapolation else weights

    @torch.no_grad()
    def _layers(self, weights: Weights) -> tuple[Tensor, Tensor]:
        """All training windows in the layer where they move, and in the one that is partitioned."""
        x = self.problem.standardised(self.problem.train_FM)
        z = front(weights, self.layout, x)
        first = first_layer(weights, z)
        seen = first if self.reading.clustered == "first" else second_layer(weights, first)
        return (first if self.reading.layer == "hidden" else z), seen

    def _partition(self, weights: Weights) -> None:
        """Divide the training windows by what the network makes of them now."""
        there, label = self.problem.trained_FM, self.problem.training_labels()
        layer, seen = self._layers(weights)
        components = partition.principal_components(
            partition.class_centred(seen, label), there, self.settings.components
        )
        self.component_FMP = components
        if self.reading.per_class:
            self.subset_FM = self._cells(components, label)
        elif self.reading.partition == "subjects":
            subject = self.problem.subject_N[self.problem.train_FM]
            self.subset_FM, self.subsets = partition.renumbered(subject)
        elif self.reading.partition == "tested":
            self.subset_FM = self._split_until_normal(components)
        else:
            clustered = self._clustered(components, there)
            mixed = self.reading.partition == "shuffled"
            self.subset_FM = partition.shuffled(clustered, there, self.draws.generators) if mixed else clustered
        self._estimate(layer)

    def _clustered(self, components: Tensor, there: Tensor) -> Tensor:
        generators = self.draws.generators
        return partition.k_means(components, there, self.settings.subsets, self.settings.restarts, generators)

    def _cells(self, components: Tensor, label_FMY: Tensor) -> Tensor:
        """Subsets of each class apart, numbered one class after the other."""
        classes = label_FMY.shape[2]
        cell = torch.zeros(label_FMY.shape[:2], dtype=torch.long, device=components.device)
        for y in range(classes):
            mine = label_FMY[..., y] > 0
            cell = torch.where(mine, y * self.settings.subsets + self._clustered(components, mine), cell)
        self.subsets = classes * self.settings.subsets
        own = torch.arange(self.subsets, device=cell.device) // self.settings.subsets
        allowed = functional.one_hot(own, classes).T.to(torch.float32)
        self.allowed_FYK = allowed.expand(self.problem.folds, -1, -1)
        return cell

    def _split_until_normal(self, components: Tensor) -> Tensor:
        subset = np.zeros(components.shape[:2], np.int64)
        there = self.problem.trained_FM.cpu().numpy()
        for fold, rng in enumerate(self.draws.generators):
            values = components[fold].cpu().numpy().astype(np.float64)[there[fold]]
            subset[fold, there[fold]] = one_distribution.split_until_normal(values, self.settings.subsets, rng)
        return torch.from_numpy(subset).to(components.device)

    def _estimate(self, layer_FMD: Tensor) -> None:
        label, member = self.problem.training_labels(), self.membership(None)
        self.found = prototypes(layer_FMD, label, member, centred=not self.reading.per_class)


def collaborative_loss(
    weights: Weights,
    classes: int,
    z_FSD: Tensor,
    label_FS: Tensor,
    label_FSY: Tensor,
    subset_FSK: Tensor,
    mixture_FSK: Tensor | None,
    found: Prototypes | None,
    chosen: Reading,
    clip: tuple[float, float],
) -> Tensor:
    """Loss of each fold on real windows and on the same windows moved to mixtures of prototypes.

    One head: cross-entropy of both, and the divergence of the prediction of a moved window from that of the window
    itself. A head for each subset: the mean over subsets of the cross-entropies of their heads, the variance of the
    subsets' losses, and the divergence of each head from the ensemble.

    Returns
    -------
    Tensor
        Shape (fold,); it does not depend on how subsets (and their heads) are numbered.
    """

    def predict(first_FSH: Tensor) -> Tensor:
        return head_logits(weights, second_layer(weights, first_FSH), classes)

    first = first_layer(weights, z_FSD)
    logits = [predict(first)]
    subsets = [subset_FSK]
    if mixture_FSK is not None and found is not None:
        place = first if chosen.layer == "hidden" else z_FSD
        moved = move(place, label_FSY, subset_FSK, mixture_FSK, found, clip)
        logits.append(predict(moved if chosen.layer == "hidden" else first_layer(weights, moved)))
        subsets.append(mixture_FSK if chosen.heads == "mixed" else subset_FSK)
    together = [ensemble(each) for each in logits]
    if chosen.heads == "one":
        loss = torch.stack([cross_entropy(log_p, label_FS).mean(dim=1) for log_p in together]).sum(dim=0)
        if len(together) == 2 and chosen.consistency:
            loss = loss + chosen.consistency * divergence(together[1], together[0].detach()).mean(dim=1)
        return loss
    loss = torch.zeros(z_FSD.shape[0], device=z_FSD.device)
    for logits_FSJY, log_p, weight_FSK in zip(logits, together, subsets, strict=True):
        own = of_heads(logits_FSJY, weight_FSK)
        mean_FK, there = subset_losses(cross_entropy(own, label_FS), subset_FSK)
        average = (mean_FK * there).sum(dim=1) / there.sum(dim=1)
        spread = ((mean_FK - average[:, None]).square() * there).sum(dim=1) / there.sum(dim=1)
        apart = divergence(own, log_p.detach()).mean(dim=1)
        loss = loss + average + chosen.variance * spread + chosen.consistency * apart
    return loss


def of_heads(logits_FSJY: Tensor, weight_FSK: Tensor) -> Tensor:
    """Log of the weighted mean of the heads' class probabilities, shape (fold, sample, class)."""
    log_p = functional.log_softmax(logits_FSJY, dim=-1)
    return torch.logsumexp(log_p + weight_FSK.clamp(min=1e-30).log()[..., None], dim=2)


def subset_losses(each_FS: Tensor, subset_FSK: Tensor) -> tuple[Tensor, Tensor]:
    """Mean loss of each subset, and 1 where the batch has one of its windows, both of shape (fold, subset)."""
    count_FK = subset_FSK.sum(dim=1)
    return torch.bmm(each_FS[:, None], subset_FSK)[:, 0] / count_FK.clamp(min=1), (count_FK > 0).to(each_FS.dtype)


def divergence(log_p_FSY: Tensor, log_q_FSY: Tensor) -> Tensor:
    """Kullback-Leibler divergence of p from q, nats, shape (fold, sample)."""
    return (log_p_FSY.exp() * (log_p_FSY - log_q_FSY)).sum(dim=2)
