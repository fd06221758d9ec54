"""Geometry of trained arms: distance from the start, similarity of layers, sharpness at matched training loss.

Sharpness falls with the training loss, so that two solutions are compared where their losses are equal: each arm is
taken at the first place of its path where the loss reaches one level, which all arms reach. The path between two checks
is the straight line.

Shape suffixes: B base, D unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from stages.metrics.curvature import hutchinson_trace, leading_eigenvalues
from stages.metrics.landscape import loss_barrier, worst_loss
from stages.metrics.objectives import Objective
from stages.metrics.similarity import linear_cka
from stages.systems.rna_transfer.arms import layer_of
from stages.systems.rna_transfer.encoder import Encoder, device, one_thread, pack
from stages.systems.rna_transfer.finetuning import Downstream, Snapshot
from stages.systems.rna_transfer.settings import Geometry, Run
from stages.systems.rna_transfer.tasks import Example

Weights = Mapping[str, Tensor]
#: Halvings in the search for the place on a line where the loss has the level.
HALVINGS = 8
#: Sums over bases depend on the number of threads in their last bits, which an artifact must not.
CKA_DECIMALS = 9


class Matched(NamedTuple):
    """An arm where its training loss has the level.

    Attributes
    ----------
    weights
        The weights that the loss depends on.
    step
        Update, between two checks.
    loss
        The loss there.
    """

    weights: dict[str, Tensor]
    step: float
    loss: float


def row(measure: str, value: float | None, **more: Any) -> dict[str, Any]:
    """One row of geometry.parquet."""
    empty = dict.fromkeys(("layer", "other_layer", "error", "converged", "note"))
    finite = None if value is None or not np.isfinite(value) else float(value)
    return {"measure": measure, **empty, "value": finite, **more}


def distances(weights: Weights, begun: Weights) -> list[dict[str, Any]]:
    """How far the encoder has gone from its start: the norm of the difference, and relative to the norm of the start.

    Parameters
    ----------
    weights, begun
        The encoder's weights that training can change, by name.
    """
    layers: dict[str | None, list[str]] = {None: list(weights)}
    for name in weights:
        layers.setdefault(layer_of(name), []).append(name)
    rows = []
    for layer, names in layers.items():
        gone = _norm([weights[name] - begun[name] for name in names])
        start = _norm([begun[name] for name in names])
        rows.append(row("distance", gone, layer=layer))
        rows.append(row("distance_relative", gone / start if start else None, layer=layer))
    return rows


def _norm(tensors: Sequence[Tensor]) -> float:
    return float(sum(float(tensor.double().square().sum()) for tensor in tensors) ** 0.5)


@torch.no_grad()
@one_thread()
def layer_features(encoder: Encoder, examples: Sequence[Example], bases: int) -> dict[str, np.ndarray[Any, Any]]:
    """Embedding and output of each layer at the first bases of some molecules, shape (base, unit) each."""
    packed = pack([example.token_L for example in examples]).to(device())
    hidden = list(encoder.hidden(packed))
    names = ["embedding", *(f"layer_{number}" for number in range(1, len(hidden)))]
    return {name: x_BD[:bases].cpu().numpy() for name, x_BD in zip(names, hidden, strict=True)}


def similarities(
    measure: str, first: Mapping[str, np.ndarray[Any, Any]], second: Mapping[str, np.ndarray[Any, Any]]
) -> list[dict[str, Any]]:
    """Linear CKA of every layer of one encoder with every layer of another, of the same bases."""
    return [
        row(measure, round(linear_cka(x_BD, y_BD), CKA_DECIMALS), layer=layer, other_layer=other)
        for layer, x_BD in first.items()
        for other, y_BD in second.items()
    ]


def objective(model: Downstream, examples: Sequence[Example]) -> Objective:
    """The loss on the probe molecules, as a function of the weights that it depends on."""

    def loss(at: Weights) -> Tensor:
        value: Tensor = functional_call(model, dict(at), (examples,))
        return value

    return Objective(loss)


def names_used(model: Downstream, examples: Sequence[Example]) -> list[str]:
    """Names of the weights that the loss depends on: not the head of language modelling."""
    named = dict(model.named_parameters())
    for weight in named.values():
        weight.requires_grad_()
    loss = model(examples)
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return [name for name, gradient in zip(named, found, strict=True) if gradient is not None]


def common_loss(trails: Sequence[Sequence[Snapshot]]) -> float:
    """The lowest loss that every arm reaches: the highest of their lowest ones.

    Raises
    ------
    ValueError
        There is no arm, or one without a snapshot.
    """
    if not trails or not all(trails):
        raise ValueError("no arm, or an arm without a snapshot")
    return max(min(snapshot.loss for snapshot in trail) for trail in trails)


def at_loss(trail: Sequence[Snapshot], level: float, loss: Objective, names: Sequence[str]) -> Matched:
    """An arm where its loss first comes down to a level.

    Parameters
    ----------
    trail
        Snapshots by step. An arm that is below the level from the start is taken there.
    level
        At least the lowest loss of the trail, see :func:`common_loss`.
    loss, names
        The loss, and the weights that it depends on.

    Raises
    ------
    ValueError
        The arm never reaches the level.
    """
    place = next((number for number, snapshot in enumerate(trail) if snapshot.loss <= level), None)
    if place is None:
        raise ValueError(f"the loss never comes down to {level}")
    after = {name: trail[place].weights[name] for name in names}
    if place == 0:
        return Matched(after, float(trail[0].step), trail[0].loss)
    before = {name: trail[place - 1].weights[name] for name in names}
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        between = {name: torch.lerp(before[name], after[name], middle) for name in names}
        low, high = (low, middle) if loss.value(between) <= level else (middle, high)
    found = {name: torch.lerp(before[name], after[name], high) for name in names}
    step = trail[place - 1].step + high * (trail[place].step - trail[place - 1].step)
    return Matched(found, step, loss.value(found))


def sharpness(loss: Objective, at: Weights, settings: Geometry, seed: int) -> Iterator[dict[str, Any]]:
    """Largest eigenvalue and trace of the Hessian, and the rise to the worst loss nearby."""
    hessian = loss.hessian(at)
    spectrum = leading_eigenvalues(hessian, seed=seed, max_products=settings.products)
    pair = spectrum.pairs[0]
    yield row("sharpness", pair.value, error=pair.residual, converged=pair.converged)
    trace = hutchinson_trace(hessian, seed=seed, probes=settings.probes)
    yield row("trace", trace.value, error=trace.standard_error)
    ball = worst_loss(loss, at, radius=settings.radius, seed=seed, ball="weights", restarts=settings.ascents)
    yield row("ball", ball.rise)


def compared(
    trails: Mapping[Run, Sequence[Snapshot]],
    twins: Mapping[Run, Sequence[Snapshot]],
    model: Downstream,
    examples: Sequence[Example],
    settings: Geometry,
    *,
    baseline: Run,
    seed: int,
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Sharpness of arms at one training loss, and barriers between them.

    Parameters
    ----------
    trails
        Snapshots of each arm.
    twins
        Snapshots of arms that were trained a second time from their start, in another order of the molecules.
    model
        Any of the arms: its weights are replaced.
    examples
        Probe molecules.
    settings, seed
        Sizes of the measures, and the seed of their random vectors.
    baseline
        Arm that the others are joined with by a line.

    Yields
    ------
    tuple
        Arm, and a row of geometry.parquet.
    """
    loss, names = objective(model, examples), names_used(model, examples)
    level = common_loss([*trails.values(), *twins.values()])
    matched = {run: at_loss(trail, level, loss, names) for run, trail in trails.items()}
    for run, found in matched.items():
        yield run, row("matched_loss", level)
        yield run, row("loss_at", found.loss, note=None if found.step else "below the level from the start")
        yield run, row("matched_step", found.step)
        for measured in sharpness(loss, found.weights, settings, seed):
            yield run, measured
        if run != baseline and baseline in matched:
            barrier = loss_barrier(loss, found.weights, matched[baseline].weights, points=settings.points)
            yield run, row("barrier_random", barrier.height)
        if run in twins:
            other = at_loss(twins[run], level, loss, names)
            barrier = loss_barrier(loss, found.weights, other.weights, points=settings.points)
            yield run, row("barrier_twin", barrier.height)
