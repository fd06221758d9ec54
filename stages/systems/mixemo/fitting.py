"""Training: all folds of one method at once, under the budget, with weights chosen by the validation subjects.

Shape suffixes: F fold, N window, S sample, C channel, T time or band, Y class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.systems.mixemo.collaboration import MixEmo, reading
from stages.systems.mixemo.model import Layout, Weights, device, initialise, log_probabilities
from stages.systems.mixemo.objectives import Objective, baseline, cross_entropy
from stages.systems.mixemo.problem import Draws, Problem, fold_generators, make_problem
from stages.systems.mixemo.settings import BASELINES, TRANSDUCTIVE, Baselines, Mixing, Training
from stages.systems.mixemo.windows import Fold, Windows, standardised_by_subject

#: Windows of a fold that pass through the network at once where nothing is learned.
CHUNK = 4096


@dataclass(frozen=True)
class Partition:
    """Subsets of the training windows of each fold: lists over the windows of a fold."""

    subset: list[NDArray[np.int64]]
    component: list[NDArray[np.float32]]


@dataclass(frozen=True)
class Fitted:
    """Networks of all folds of one method.

    Attributes
    ----------
    weights
        The weights that the validation subjects chose, and the moments that standardise a window (``mean``, ``std``);
        every array has a leading fold dimension.
    history
        fold, step, samples, loss, validation_loss, validation_accuracy, chosen: a row a fold and look at the validation
        subjects.
    partition
        Subsets of the training windows, where the method has any.
    """

    weights: Weights
    history: list[dict[str, Any]]
    partition: Partition | None


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: the products are small, and threads that wait for each other lose more than they gain.

    The numbers then do not depend on how many cores there are, and seeds can be trained side by side.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@one_thread()
def fit(
    windows: Windows,
    folds: Sequence[Fold],
    method: str,
    *,
    layout: Layout,
    training: Training,
    baselines: Baselines,
    mixing: Mixing,
    seed: int,
) -> Fitted:
    """Train one method on every fold.

    All methods of a seed start from the same weights and draw their batches from the same numbers. The windows of a
    fold's held-out subject reach nothing (but in a transductive method).
    """
    if method in TRANSDUCTIVE:
        windows = standardised_by_subject(windows)
    problem = make_problem(windows, folds, layout, device())
    place = problem.x_NCT.device
    start = initialise(layout, fold_generators(seed, "weights", windows.corpus, folds), place)
    own = Draws(fold_generators(seed, "method", windows.corpus, folds), place)
    batches = Draws(fold_generators(seed, "batches", windows.corpus, folds), place)
    objective: Objective
    if method in BASELINES or method in TRANSDUCTIVE:
        objective = baseline(method, problem, own, baselines)
    else:
        objective = MixEmo(problem, own, reading(method, mixing), mixing, training)
    weights, history = optimise(problem, objective, start, batches, training)
    for row in history:
        row["fold"] = folds[row["fold"]].held_out
    weights |= {"mean": problem.mean_FCT, "std": problem.std_FCT}
    return Fitted(weights, history, _partition_of(objective, problem))


def optimise(
    problem: Problem, objective: Objective, weights: Weights, batches: Draws, training: Training
) -> tuple[Weights, list[dict[str, Any]]]:
    """Update until the budget of forward samples is spent; keep the weights that the validation subjects choose.

    Looks before the end of the warm-up choose nothing, for any method.
    """
    budget, spent, step = training.steps * training.batch, 0, 0
    weights, optimiser = _prepared(weights, training)
    best, best_loss_F = dict(weights), torch.full((problem.folds,), torch.inf, device=problem.x_NCT.device)
    chosen_F = torch.full((problem.folds,), -1)
    history: list[dict[str, Any]] = []
    running: list[Tensor] = []
    while True:
        changed, cost = objective.at_step(step, weights)
        spent += cost
        if changed is not weights:  # new heads
            weights, optimiser = _prepared(changed, training)
            best, best_loss_F = dict(weights), torch.full_like(best_loss_F, torch.inf)
        if spent + training.batch > budget:
            break
        samples = objective.real_samples(training.batch)
        batch = problem.batch(objective.choose(batches.uniform(samples)))
        loss_F = objective.loss(weights, batch)
        optimiser.zero_grad(set_to_none=True)
        loss_F.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        running.append(loss_F.detach())
        spent, step = spent + training.batch, step + 1
        if step % training.check == 0 or spent + training.batch > budget:
            loss, right = _look(problem, weights)
            history += _rows(step, spent, torch.stack(running).mean(dim=0), loss, right)
            running = []
            if step > training.warmup:
                better = loss < best_loss_F
                best_loss_F = torch.where(better, loss, best_loss_F)
                chosen_F[better.cpu()] = step
                best = {name: _chosen(better, value.detach(), best[name].detach()) for name, value in weights.items()}
    for row in history:
        row["chosen"] = row["step"] == int(chosen_F[row["fold"]])
    return {name: value.detach().clone() for name, value in best.items()}, history


def _prepared(weights: Weights, training: Training) -> tuple[Weights, torch.optim.Optimizer]:
    leaves = {name: value.detach().clone().requires_grad_() for name, value in weights.items()}
    optimiser = torch.optim.AdamW(
        list(leaves.values()), lr=training.learning_rate, weight_decay=training.weight_decay, fused=True
    )
    return leaves, optimiser


def _chosen(better_F: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(better_F.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


@torch.no_grad()
def _look(problem: Problem, weights: Weights) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and accuracy on each fold's validation windows."""
    log_p = torch.cat(
        [
            log_probabilities(weights, problem.layout, problem.standardised(part))
            for part in torch.split(problem.validation_FM, CHUNK, dim=1)
        ],
        dim=1,
    )
    label, there = problem.label_N[problem.validation_FM], problem.validated_FM.to(torch.float32)
    count = there.sum(dim=1)
    right = (log_p.argmax(dim=2) == label).to(torch.float32)
    return (cross_entropy(log_p, label) * there).sum(dim=1) / count, (right * there).sum(dim=1) / count


def _rows(step: int, spent: int, train_F: Tensor, validation_F: Tensor, right_F: Tensor) -> list[dict[str, Any]]:
    triples = zip(train_F.tolist(), validation_F.tolist(), right_F.tolist(), strict=True)
    return [
        {
            **{"fold": fold, "step": step, "samples": spent, "loss": loss},
            **{"validation_loss": validation, "validation_accuracy": right},
        }
        for fold, (loss, validation, right) in enumerate(triples)
    ]


def _partition_of(objective: Objective, problem: Problem) -> Partition | None:
    if not isinstance(objective, MixEmo) or objective.subset_FM is None or objective.component_FMP is None:
        return None
    there = problem.trained_FM.cpu().numpy()
    subset, component = objective.subset_FM.cpu().numpy(), objective.component_FMP.cpu().numpy()
    return Partition(
        [row[mask] for row, mask in zip(subset, there, strict=True)],
        [row[mask] for row, mask in zip(component, there, strict=True)],
    )


@one_thread()
@torch.no_grad()
def predict(weights: Weights, layout: Layout, windows: Windows, folds: Sequence[Fold]) -> list[NDArray[np.float32]]:
    """Log class probabilities of each fold's test windows by that fold's network, shape (window, class) each."""
    place = device()
    found = []
    for row, fold in enumerate(folds):
        mine = {name: value[row : row + 1].to(place) for name, value in weights.items()}
        mean, std = mine.pop("mean"), mine.pop("std")
        parts = []
        for begin in range(0, len(fold.test), CHUNK):
            x_NCT = torch.from_numpy(windows.x_ND[fold.test[begin : begin + CHUNK]]).to(place)
            parts.append(log_probabilities(mine, layout, ((x_NCT - mean) / std)[None])[0].cpu().numpy())
        empty = np.zeros((0, layout.classes), np.float32)
        found.append(np.concatenate(parts) if parts else empty)
    return found
