"""Downstream training: one schedule for every arm, the checked step chosen by validation molecules.

Shape suffixes: B base of the batch, D unit, M molecule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from stages.runtime import random_numbers
from stages.systems.rna_transfer.encoder import device, one_thread, pack
from stages.systems.rna_transfer.heads import start
from stages.systems.rna_transfer.pretraining import annealed
from stages.systems.rna_transfer.settings import Finetuning
from stages.systems.rna_transfer.tasks import Answer, Example, Judged, Task

#: Molecules that pass through the network at once where nothing is learnt.
TOGETHER = 64
#: Share of the updates in which the learning rates rise.
WARMUP = 0.1

Weights = dict[str, Tensor]


class Parts(NamedTuple):
    """Examples of one task. ``probe``: training molecules whose loss is followed."""

    train: list[Example]
    validation: list[Example]
    test: list[Example]
    probe: list[Example]


class Snapshot(NamedTuple):
    """Weights of encoder and head at a check, and the loss on the probe molecules there."""

    step: int
    loss: float
    weights: Weights


@dataclass(frozen=True)
class Tuned:
    """One arm of one task.

    Attributes
    ----------
    weights
        ``encoder.*`` and ``head.*`` at the chosen step.
    last
        The same at the last step.
    history
        step, epoch, seen, loss, probe_loss, validation_metric, threshold, chosen: a row a check.
    answers
        What is said of each test molecule.
    trail
        A snapshot a check, where asked for.
    """

    weights: Weights
    last: Weights
    history: list[dict[str, Any]]
    answers: list[Answer]
    trail: list[Snapshot]


class Downstream(nn.Module):
    """An encoder and the head of a task."""

    def __init__(self, encoder: nn.Module, head: nn.Module, task: Task) -> None:
        super().__init__()
        self.encoder, self.head, self.task = encoder, head, task

    def forward(self, examples: Sequence[Example]) -> Tensor:
        """Loss of a batch."""
        return self.task.loss(self.head, self.embed(examples), examples)

    def embed(self, examples: Sequence[Example]) -> Tensor:
        """Embeddings of the bases, molecule after molecule."""
        embedded: Tensor = self.encoder(pack([example.token_L for example in examples]).to(device()))
        return embedded


class _Frozen:
    """Embeddings of molecules that pass the encoder once, since it does not change."""

    def __init__(self, model: Downstream) -> None:
        self.model = model
        self.known: dict[str, Tensor] = {}

    @torch.no_grad()
    def embed(self, examples: Sequence[Example]) -> Tensor:
        """Embeddings of the bases, molecule after molecule."""
        new = [example for example in examples if example.record_id not in self.known]
        for first in range(0, len(new), TOGETHER):
            some = new[first : first + TOGETHER]
            parts = torch.split(self.model.embed(some), [len(example.token_L) for example in some])
            self.known |= {example.record_id: part for example, part in zip(some, parts, strict=True)}
        return torch.cat([self.known[example.record_id] for example in examples])


def new_model(encoder: nn.Module, task: Task, width: int, seed: int) -> Downstream:
    """An encoder and a new head: the same head for every arm with embeddings of this width."""
    head = task.head(width)
    start(head, random_numbers(seed, "head", task.name))
    return Downstream(encoder, head, task).to(device())


@one_thread()
def finetune(
    model: Downstream,
    parts: Parts,
    settings: Finetuning,
    *,
    trained: bool,
    seed: int,
    order: str = "order",
    trail: bool = False,
) -> Tuned:
    """Train a head, and the encoder with it where asked for.

    Parameters
    ----------
    model
        What it starts from; it is changed.
    parts
        Molecules to learn from, to choose by, and to answer.
    settings
        The schedule.
    trained
        Whether the encoder is trained. Where it is not, none of its weights changes.
    seed, order
        Of the order of the molecules; it is the same for every arm.
    trail
        Whether the weights of every check are kept.
    """
    run = _Run(model, parts, settings, trained, trail)
    epochs = (settings.epochs if trained else settings.frozen_epochs)[model.task.name]  # type: ignore[index]
    batches = -(-len(parts.train) // settings.batch)
    steps = epochs * batches
    checks = {round(steps * number / settings.checks) for number in range(1, settings.checks + 1)}
    run.check(0, 0.0)
    for step in range(steps):
        epoch, place = divmod(step, batches)
        if place == 0:
            order_M = random_numbers(seed, order, model.task.name, str(epoch)).permutation(len(parts.train))
        chosen_M = order_M[place * settings.batch : (place + 1) * settings.batch]
        run.update([parts.train[m] for m in chosen_M.tolist()], annealed(step / steps, WARMUP))
        if step + 1 in checks:
            run.check(step + 1, (step + 1) / batches)
    return run.ended()


class _Run:
    """A model in training, and the best that validation molecules have seen of it."""

    def __init__(self, model: Downstream, parts: Parts, settings: Finetuning, trained: bool, trail: bool) -> None:
        self.model, self.parts, self.trained, self.keeps = model, parts, trained, trail
        for weight in model.encoder.parameters():
            weight.requires_grad_(trained)
        self.embed = model.embed if trained else _Frozen(model).embed
        groups = [{"params": list(model.head.parameters()), "full": settings.head_learning_rate}]
        if trained:
            groups.append({"params": list(model.encoder.parameters()), "full": settings.learning_rate})
        self.optimiser = torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)
        self.running: list[float] = []
        self.seen = 0
        self.history: list[dict[str, Any]] = []
        self.trail: list[Snapshot] = []
        self.best: tuple[float, Weights] | None = None

    def update(self, examples: Sequence[Example], share: float) -> None:
        """One update."""
        for group in self.optimiser.param_groups:
            group["lr"] = group["full"] * share
        loss = self.model.task.loss(self.model.head, self.embed(examples), examples)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.running.append(loss.item())
        self.seen += sum(len(example.token_L) for example in examples)

    @torch.no_grad()
    def check(self, step: int, epoch: float) -> None:
        """Look at the validation molecules and at the loss of the probe molecules."""
        probe = self.parts.probe
        probe_loss = float(self.model.task.loss(self.model.head, self.embed(probe), probe))
        judged = self.model.task.judge(self.answers(self.parts.validation), self.parts.validation)
        weights = copied(self.model)
        self.history.append(
            {
                "step": step,
                "epoch": epoch,
                "seen": self.seen,
                "loss": float(np.mean(self.running)) if self.running else None,
                "probe_loss": probe_loss,
                "validation_metric": judged.metric,
                "threshold": judged.threshold,
            }
        )
        self.running = []
        if self.keeps:
            self.trail.append(Snapshot(step, probe_loss, weights))
        self.history[-1]["chosen"] = False
        # A head without training may be right by chance, and says nothing of an arm.
        if step:
            self._choose(judged, weights)

    def _choose(self, judged: Judged, weights: Weights) -> None:
        """Keep the first step with the highest metric, or the last one where the metric is not defined."""
        value = -np.inf if judged.metric is None else judged.metric
        if self.best is None or value > self.best[0] or np.isneginf(value):
            self.best = (value, weights)
            for row in self.history:
                row["chosen"] = False
            self.history[-1]["chosen"] = True

    @torch.no_grad()
    def answers(self, examples: Sequence[Example]) -> list[Answer]:
        """What the head says of each molecule."""
        found: list[Answer] = []
        for first in range(0, len(examples), TOGETHER):
            some = examples[first : first + TOGETHER]
            found += self.model.task.answers(self.model.head, self.embed(some), some)
        return found

    def ended(self) -> Tuned:
        """Put the chosen weights back and answer the test molecules."""
        last = copied(self.model)
        weights = last if self.best is None else self.best[1]
        self.model.load_state_dict(weights)
        threshold = next((row["threshold"] for row in self.history if row["chosen"]), None)
        answers = [self.model.task.final(answer, threshold) for answer in self.answers(self.parts.test)]
        return Tuned(weights, last, self.history, answers, self.trail)


def copied(model: nn.Module) -> Weights:
    """Its weights as they are now."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
