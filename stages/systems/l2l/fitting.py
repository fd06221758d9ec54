"""Training a network by batches that a source gives: losses, EMA teacher, looks at the validation part, checkpoints.

Shape suffixes: B sample, H W pixels.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stages.metrics.segmentation import mean_iou, overall_iou
from stages.systems.l2l import checkpoints
from stages.systems.l2l.model import Answer, L2l
from stages.systems.l2l.proposals import answers, chunks
from stages.systems.l2l.settings import Optimiser
from stages.systems.l2l.views import Batch, Loaded

Weights = dict[str, Tensor]
#: What AdamW keeps of each weight.
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
#: The learning rate ends at this share.
LAST = 0.05


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: the numbers do not depend on how many cores there are; seeds run side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Source(Protocol):
    """What a fit learns from."""

    def begin(self, step: int, teacher: L2l) -> list[dict[str, Any]]:
        """Prepare the updates up to the next look; rows of rounds.parquet."""

    def batches(self, step: int) -> list[tuple[Batch, float]]:
        """Batches of an update: samples, and by what their summed loss is divided into the whole."""


class Budget(NamedTuple):
    """Updates, updates between looks, learning rate, and the teacher's decay (ramped up from 0 where that is asked)."""

    steps: int
    check: int
    learning_rate: float
    decay: float
    ramped: bool


@dataclass
class Fitted:
    """What a fit leaves.

    Attributes
    ----------
    weights
        Those that the validation part chose.
    history, rounds
        A row a look, and a row a round.
    waited
        Share of the time that updates waited for their batches; not kept in any artifact.
    """

    weights: Weights
    history: list[dict[str, Any]]
    rounds: list[dict[str, Any]]
    waited: float = 0.0


@dataclass
class Judge:
    """The look at the validation part: mIoU and oIoU at the network's size."""

    loaded: Loaded
    sentence_V: NDArray[np.int64]
    empty: float
    _truth: Tensor | None = field(default=None, repr=False)

    def look(self, network: L2l) -> dict[str, float]:
        """Measure a network."""
        shared, either = [], []
        for part in chunks(self.sentence_V):
            mask = answers(network, self.loaded, part) > 0.5
            truth = self.loaded.truth(torch.from_numpy(part).to(self.loaded.place)) > 0
            shared.append((mask & truth).sum(dim=(1, 2)))
            either.append((mask | truth).sum(dim=(1, 2)))
        pair = torch.cat(shared).cpu().numpy(), torch.cat(either).cpu().numpy()
        return {
            "validation_miou": mean_iou(*pair, empty=self.empty),
            "validation_oiou": overall_iou(*pair, empty=self.empty),
        }


def sample_losses(answer: Answer, batch: Batch, settings: Optimiser) -> Tensor:
    """Loss of each sample (B,): cross-entropy and Dice of the answer, and cross-entropy of the coarser levels."""
    loss_B = weighted_loss(answer.logit_BHW, batch.mask_BHW, batch.weight_BHW)
    loss_B = loss_B + settings.dice * dice_loss(answer.logit_BHW, batch.mask_BHW, batch.weight_BHW)
    for logit_BHW in answer.level_BHW if settings.levels else []:
        size = (logit_BHW.shape[1], logit_BHW.shape[2])
        mask = functional.adaptive_avg_pool2d(batch.mask_BHW[:, None], size)[:, 0]
        weight = functional.adaptive_avg_pool2d(batch.weight_BHW[:, None], size)[:, 0]
        loss_B = loss_B + settings.levels * weighted_loss(logit_BHW, mask, weight)
    return loss_B


def weighted_loss(logit_BHW: Tensor, mask_BHW: Tensor, weight_BHW: Tensor) -> Tensor:
    """Cross-entropy of each sample (B,): the mean over pixels of weight times loss."""
    loss_BHW = functional.binary_cross_entropy_with_logits(logit_BHW, mask_BHW, reduction="none")
    return (loss_BHW * weight_BHW).mean(dim=(1, 2))


def dice_loss(logit_BHW: Tensor, mask_BHW: Tensor, weight_BHW: Tensor) -> Tensor:
    """1 - soft Dice of each sample (B,), over the pixels by their weight; scaled by the mean weight."""
    p_BHW = logit_BHW.sigmoid()
    shared_B = (weight_BHW * p_BHW * mask_BHW).sum(dim=(1, 2))
    total_B = (weight_BHW * (p_BHW + mask_BHW)).sum(dim=(1, 2))
    return (1 - (2 * shared_B + 1) / (total_B + 1)) * weight_BHW.mean(dim=(1, 2))


def rate(step: int, budget: Budget, warmup: int) -> float:
    """Learning rate of an update: a linear rise, then a cosine down to a twentieth."""
    if step < warmup:
        return budget.learning_rate * (step + 1) / (warmup + 1)
    turn = (step - warmup) / max(1, budget.steps - warmup)
    return budget.learning_rate * (LAST + (1 - LAST) * 0.5 * (1 + math.cos(math.pi * turn)))


@torch.no_grad()
def follow(teacher: L2l, student: L2l, decay: float) -> None:
    """Move the teacher to the student: teacher <- decay teacher + (1 - decay) student; decay 1 freezes it."""
    for mine, other in zip(teacher.parameters(), student.parameters(), strict=True):
        mine.lerp_(other, 1 - decay)


def fit(
    network: L2l,
    source: Source,
    judge: Judge,
    budget: Budget,
    settings: Optimiser,
    checkpoint: Path | None,
) -> Fitted:
    """Train a network; its EMA teacher is what is judged and kept (the student where the teacher is frozen)."""
    run = _Run(network, budget, settings)
    if checkpoint is not None and (found := checkpoints.load(checkpoint)) is not None:
        run.resume(found)
    composing, begun = 0.0, time.perf_counter()
    while run.step < budget.steps:
        if run.step % budget.check == 0:
            run.rounds += source.begin(run.step, run.teacher)
        before = time.perf_counter()
        batches = source.batches(run.step)
        composing += time.perf_counter() - before
        run.update(batches)
        if run.step % budget.check == 0 or run.step == budget.steps:
            run.look(judge)
            if checkpoint is not None:
                checkpoints.save(checkpoint, run.tensors(), run.progress())
    whole = time.perf_counter() - begun
    for row in run.history:
        row["chosen"] = row["step"] == run.best_step
    return Fitted(run.best, run.history, run.rounds, composing / whole if whole else 0.0)


class _Run:
    """A fit between two updates."""

    def __init__(self, network: L2l, budget: Budget, settings: Optimiser) -> None:
        self.network, self.budget, self.settings = network, budget, settings
        self.teacher = copy.deepcopy(network).requires_grad_(False)
        self.optimiser = torch.optim.AdamW(
            network.parameters(), lr=budget.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.step, self.best_score, self.best_step = 0, -1.0, 0
        self.best = _copied(network)
        self.history: list[dict[str, Any]] = []
        self.rounds: list[dict[str, Any]] = []
        self.losses: list[float] = []

    def update(self, batches: list[tuple[Batch, float]]) -> None:
        """One update: the losses of all batches, summed."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate(self.step, self.budget, self.settings.warmup)
        self.optimiser.zero_grad(set_to_none=True)
        total = 0.0
        for batch, divisor in batches:
            answer = self.network(batch.image_BCHW, batch.word_BL, batch.prior_BHW)
            loss = sample_losses(answer, batch, self.settings).sum() / divisor
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self.losses.append(total)
        self.step += 1
        decay = self.budget.decay
        if self.budget.ramped:
            decay = min(decay, (1 + self.step) / (10 + self.step))
        follow(self.teacher, self.network, decay)

    def look(self, judge: Judge) -> None:
        """Judge, and keep the weights where they are the best so far."""
        judged = self.network if self.budget.decay == 1 else self.teacher
        found = judge.look(judged)
        self.history.append({"step": self.step, "loss": float(np.mean(self.losses)), **found})
        self.losses = []
        if found["validation_miou"] > self.best_score:
            self.best_score, self.best_step, self.best = found["validation_miou"], self.step, _copied(judged)

    def tensors(self) -> Weights:
        """All tensors that the next update needs, and the best weights so far."""
        found = {f"best.{name}": value for name, value in self.best.items()}
        found |= {f"student.{name}": value for name, value in self.network.state_dict().items()}
        found |= {f"teacher.{name}": value for name, value in self.teacher.state_dict().items()}
        for name, weight in self.network.named_parameters():
            found |= {f"{moment}.{name}": self.optimiser.state[weight][moment] for moment in MOMENTS}
        return found

    def progress(self) -> dict[str, Any]:
        """What a checkpoint needs beside the tensors."""
        names = ("step", "best_score", "best_step", "history", "rounds")
        return {name: getattr(self, name) for name in names}

    def resume(self, found: checkpoints.Checkpoint) -> None:
        """Go on from a checkpoint."""
        for name, value in found.progress.items():
            setattr(self, name, value)
        self.best = _under(found.tensors, "best")
        self.network.load_state_dict(_under(found.tensors, "student"))
        self.teacher.load_state_dict(_under(found.tensors, "teacher"))
        kept = {moment: _under(found.tensors, moment) for moment in MOMENTS}
        for name, weight in self.network.named_parameters():
            self.optimiser.state[weight] = {moment: kept[moment][name].to(weight.device) for moment in MOMENTS}


def _copied(network: L2l) -> Weights:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _under(tensors: Mapping[str, Tensor], kind: str) -> Weights:
    return {name.removeprefix(f"{kind}."): value for name, value in tensors.items() if name.startswith(f"{kind}.")}
