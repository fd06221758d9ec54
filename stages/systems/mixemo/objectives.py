"""What the baselines minimise; every objective gives one loss for each fold.

Shape suffixes: F fold, S sample, C channel, T time or band, H unit of the representation, Y class, G subject.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from stages.systems.mixemo.model import (
    Layout,
    Weights,
    ensemble,
    front,
    head_logits,
    log_probabilities,
    represent,
)
from stages.systems.mixemo.problem import Batch, Draws, Problem
from stages.systems.mixemo.settings import Baselines

SMALL = 1e-6


def cross_entropy(log_p_FSY: Tensor, label_FS: Tensor) -> Tensor:
    """Cross-entropy of each sample, nats, shape (fold, sample)."""
    return -log_p_FSY.gather(2, label_FS[..., None])[..., 0]


class Objective:
    """Empirical risk: mean cross-entropy. The others differ from it in what they override."""

    def __init__(self, problem: Problem, draws: Draws) -> None:
        self.problem = problem
        self.layout: Layout = problem.layout
        self.draws = draws

    def at_step(self, step: int, weights: Weights) -> tuple[Weights, int]:
        """Do what is due before an update; returns the weights to go on with and the forward samples it took."""
        return weights, 0

    def real_samples(self, batch: int) -> int:
        """How many of the samples that pass through the network in an update are real windows."""
        return batch

    def choose(self, uniform_FS: Tensor) -> Tensor:
        """Places of the training windows of a batch, out of uniform numbers."""
        return self.problem.drawn_evenly(uniform_FS)

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        """Loss of each fold, shape (fold,)."""
        log_p = log_probabilities(weights, self.layout, batch.x_FSCT)
        return cross_entropy(log_p, batch.label_FS).mean(dim=1)


class Mixup(Objective):
    """Convex combinations of pairs of windows and of their labels (Zhang et al. 2018)."""

    def __init__(self, problem: Problem, draws: Draws, alpha: float) -> None:
        super().__init__(problem, draws)
        self.alpha = alpha

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        """Cross-entropy of mixed windows to mixed labels."""
        samples = batch.label_FS.shape[1]
        share_FS = self.draws.beta(self.alpha, samples)
        partner_FS = self.draws.permutation(samples)
        rows = torch.arange(batch.label_FS.shape[0], device=partner_FS.device)[:, None]
        share = share_FS[..., None, None]
        mixed = share * batch.x_FSCT + (1 - share) * batch.x_FSCT[rows, partner_FS]
        log_p = log_probabilities(weights, self.layout, mixed)
        other = cross_entropy(log_p, batch.label_FS[rows, partner_FS])
        return (share_FS * cross_entropy(log_p, batch.label_FS) + (1 - share_FS) * other).mean(dim=1)


class MixStyle(Objective):
    """Statistics of single windows mixed between pairs (Zhou et al. 2021), labels kept.

    The statistics are those of a band over channels, or of a channel over the samples of a signal.
    """

    def __init__(self, problem: Problem, draws: Draws, alpha: float, share: float) -> None:
        super().__init__(problem, draws)
        self.alpha, self.share = alpha, share

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        """Cross-entropy of windows in mixed styles, in a share of the updates."""
        samples = batch.label_FS.shape[1]
        weight = self.draws.beta(self.alpha, samples)[..., None, None]
        partner_FS = self.draws.permutation(samples)
        chosen = (self.draws.uniform(1) < self.share)[..., None, None]
        axis = 3 if self.layout.learned_front else 2
        mean = batch.x_FSCT.mean(dim=axis, keepdim=True)
        std = batch.x_FSCT.std(dim=axis, keepdim=True) + SMALL
        rows = torch.arange(batch.label_FS.shape[0], device=partner_FS.device)[:, None]
        new_mean = weight * mean + (1 - weight) * mean[rows, partner_FS]
        new_std = weight * std + (1 - weight) * std[rows, partner_FS]
        styled = (batch.x_FSCT - mean) / std * new_std + new_mean
        log_p = log_probabilities(weights, self.layout, torch.where(chosen, styled, batch.x_FSCT))
        return cross_entropy(log_p, batch.label_FS).mean(dim=1)


class GroupDro(Objective):
    """Losses of subjects weighted towards the worst one (Sagawa et al. 2020)."""

    def __init__(self, problem: Problem, draws: Draws, step: float) -> None:
        super().__init__(problem, draws)
        self.step = step
        self.weight_FG = torch.ones(problem.folds, problem.subjects, device=problem.x_NCT.device)

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        """Weighted sum of the subjects' mean losses."""
        each_FS = cross_entropy(log_probabilities(weights, self.layout, batch.x_FSCT), batch.label_FS)
        member = functional.one_hot(batch.subject_FS, self.problem.subjects).to(each_FS.dtype)
        count_FG = member.sum(dim=1)
        loss_FG = torch.bmm(each_FS[:, None], member)[:, 0] / count_FG.clamp(min=1)
        present = (count_FG > 0).to(each_FS.dtype)
        self.weight_FG = self.weight_FG * torch.exp(self.step * loss_FG.detach() * present)
        share_FG = self.weight_FG * present
        return (share_FG / share_FG.sum(dim=1, keepdim=True) * loss_FG).sum(dim=1)


class Coral(Objective):
    """Means and covariances of the representation pulled together between subjects (Sun and Saenko 2016)."""

    def __init__(self, problem: Problem, draws: Draws, weight: float) -> None:
        super().__init__(problem, draws)
        self.weight = weight

    def loss(self, weights: Weights, batch: Batch) -> Tensor:
        """Cross-entropy and the mean distance between the subjects of the batch."""
        h_FSH = represent(weights, front(weights, self.layout, batch.x_FSCT))
        log_p = ensemble(head_logits(weights, h_FSH, self.layout.classes))
        member = functional.one_hot(batch.subject_FS, self.problem.subjects).to(h_FSH.dtype)
        return cross_entropy(log_p, batch.label_FS).mean(dim=1) + self.weight * moment_distance(h_FSH, member)


def moment_distance(h_FSH: Tensor, member_FSG: Tensor) -> Tensor:
    """Mean over pairs of groups of the squared distance of their means and covariances, each a mean over entries.

    Groups with fewer than two samples are left out.
    """
    folds, samples, width = h_FSH.shape
    count_FG = member_FSG.sum(dim=1)
    there = (count_FG >= 2).to(h_FSH.dtype)
    mean_FGH = torch.bmm(member_FSG.transpose(1, 2), h_FSH) / count_FG.clamp(min=1)[..., None]
    rest = h_FSH - torch.bmm(member_FSG, mean_FGH)
    spread = (member_FSG[..., None] * rest[:, :, None]).reshape(folds, samples, -1)
    covariance = torch.bmm(spread.transpose(1, 2), rest).reshape(folds, -1, width * width)
    covariance = covariance / (count_FG - 1).clamp(min=1)[..., None]
    total = torch.zeros(folds, device=h_FSH.device)
    groups = there.sum(dim=1)
    for moment in (mean_FGH, covariance):
        average = (moment * there[..., None]).sum(dim=1, keepdim=True) / groups.clamp(min=1)[:, None, None]
        squares = ((moment - average).square().mean(dim=2) * there).sum(dim=1)
        total = total + 2 * squares / (groups - 1).clamp(min=1)
    return total


def baseline(method: str, problem: Problem, draws: Draws, settings: Baselines) -> Objective:
    """The objective of a baseline."""
    if method == "mixup":
        return Mixup(problem, draws, settings.mixup_alpha)
    if method == "mixstyle":
        return MixStyle(problem, draws, settings.mixstyle_alpha, settings.mixstyle_share)
    if method == "group_dro":
        return GroupDro(problem, draws, settings.group_dro_step)
    if method == "coral":
        return Coral(problem, draws, settings.coral_weight)
    return Objective(problem, draws)
