"""The loss around and between solutions: the worst one in a ball, along a direction, on the line between two.

Shape suffixes: P weight, all tensors one after the other; A place on a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from stages.metrics.objectives import Objective, Space, Weights

Ball = Literal["box", "weights", "filters"]
LINE_POINTS = 31
SMALLEST_STEP = 2**-6


@dataclass(frozen=True)
class WorstLoss:
    """The largest loss that ascent found in a ball around a solution.

    Attributes
    ----------
    start, worst
        Loss at the centre and the largest one found: a lower bound of the largest one there is.
    sharpness
        100 (worst - start) / (1 + start), in percent (Keskar et al. 2017, equation 4); meant for losses of at least 0.
    by_restart
        What each ascent reached: how far they agree says how far to trust the largest.
    gradients
        Gradients that were computed.
    """

    start: float
    worst: float
    sharpness: float
    by_restart: tuple[float, ...]
    gradients: int

    @property
    def rise(self) -> float:
        """By how much the worst loss exceeds that of the centre."""
        return self.worst - self.start


@dataclass(frozen=True)
class Barrier:
    """The loss on the straight line between two solutions.

    Attributes
    ----------
    height
        Largest loss on the line, ends included, minus the mean of the ends (Frankle et al. 2020, section 2; for any
        loss). Not negative: half the difference of the ends where the line has no hump.
    above_chord
        Largest difference, at a place between the ends, of the loss and the straight line between the ends' losses
        (Entezari et al. 2022). Not positive for a convex loss.
    places_A, losses_A
        Places from 0 (first solution) to 1 (second), and the losses there.
    """

    height: float
    above_chord: float
    places_A: tuple[float, ...]
    losses_A: tuple[float, ...]


def worst_loss(
    objective: Objective,
    at: Weights,
    *,
    radius: float,
    seed: int,
    ball: Ball = "box",
    steps: int = 20,
    restarts: int = 3,
) -> WorstLoss:
    """Climb to the worst loss near a solution (Keskar et al. 2017, metric 2.1, in the full space).

    Parameters
    ----------
    objective, at
        The loss and the solution.
    radius
        Size of the ball relative to the weights, e.g. 1e-3 or 5e-4.
    seed
        Of the random points that the ascents start from.
    ball
        `box`: each weight w moves by at most `radius` (abs(w) + 1), Keskar's box. `weights`: all weights together move
        by at most `radius` times their Euclidean norm. `filters`: each filter (see :func:`filters`) moves by at most
        `radius` times its own norm, which no rescaling of a filter changes.
    steps
        Gradients of each ascent at most.
    restarts
        Number of ascents, each from another point of the ball's surface.

    Returns
    -------
    WorstLoss
        Never below the loss of the centre.

    Raises
    ------
    ValueError
        Where radius, steps or restarts are not positive.

    Notes
    -----
    Keskar et al. climb with ten iterations of L-BFGS-B. Here a step goes along the direction that is steepest in the
    ball's own norm, as long as the ball's radius, and back into the ball; the length is halved where the loss does
    not rise. On a quadratic this is power iteration.
    """
    if radius <= 0 or steps < 1 or restarts < 1:
        raise ValueError(f"radius {radius}, {steps} steps, {restarts} restarts; expected positive numbers")
    space = Space(at)
    centre_P = space.vector(at)
    shape = _Shape(space, centre_P, radius, ball)
    generator = torch.Generator().manual_seed(seed)
    start = objective.value(at)
    reached, gradients = [], 0
    for _ in range(restarts):
        best, used = _climb(objective, space, centre_P, shape.steepest(space.normal(generator)), shape, steps)
        reached.append(best)
        gradients += used
    worst = max(start, *reached)
    return WorstLoss(start, worst, 100 * (worst - start) / (1 + start), tuple(reached), gradients)


class _Shape:
    """A ball around a solution: its steepest direction for a gradient, and the way back into it."""

    def __init__(self, space: Space, centre_P: Tensor, radius: float, ball: Ball) -> None:
        self.box = ball == "box"
        if ball == "box":
            self.limit_P = radius * (centre_P.abs() + 1)
            self.part_P = torch.arange(space.size, device=centre_P.device)
        else:
            self.part_P = _filter_numbers(space) if ball == "filters" else torch.zeros_like(centre_P, dtype=torch.long)
            self.limit_P = radius * self._norm(centre_P)

    def steepest(self, gradient_P: Tensor) -> Tensor:
        """The point of the ball where a linear loss with this gradient is largest."""
        return self._scaled(gradient_P, self._norm(gradient_P))

    def inside(self, offset_P: Tensor) -> Tensor:
        """The nearest point of the ball."""
        return self._scaled(offset_P, torch.maximum(self._norm(offset_P), self.limit_P))

    def _scaled(self, x_P: Tensor, norm_P: Tensor) -> Tensor:
        return torch.where(norm_P > 0, x_P * (self.limit_P / norm_P.clamp(min=torch.finfo(x_P.dtype).tiny)), 0.0)

    def _norm(self, x_P: Tensor) -> Tensor:
        """Norm of the part that each weight belongs to, at each weight."""
        return x_P.abs() if self.box else _norms_of_parts(x_P, self.part_P)


def _climb(
    objective: Objective, space: Space, centre_P: Tensor, offset_P: Tensor, shape: _Shape, steps: int
) -> tuple[float, int]:
    """Largest loss of one ascent, and the gradients that it took."""
    value, gradient_P = objective.gradient(space.named(centre_P + offset_P))
    used, length = 1, 1.0
    while used < steps and length >= SMALLEST_STEP:
        tried_P = shape.inside(offset_P + length * shape.steepest(gradient_P))
        tried, tried_gradient_P = objective.gradient(space.named(centre_P + tried_P))
        used += 1
        if tried > value:
            value, gradient_P, offset_P = tried, tried_gradient_P, tried_P
        else:
            length /= 2
    return value, used


def filters(tensor: Tensor) -> int:
    """How many filters a tensor holds: its first axis where it has two or more, else one.

    A filter is what feeds one output: a row of a dense layer's (out, in) matrix, a convolution's (out, in, height,
    width) by its output channel, a token's embedding; a vector (bias, scale) is one filter.
    """
    return tensor.shape[0] if tensor.dim() > 1 else 1


def filter_normalised_direction(
    at: Weights, *, seed: int, vectors: Literal["fixed", "scaled"] = "fixed"
) -> dict[str, Tensor]:
    """A random direction whose filters have the norms of the weights' filters (Li et al. 2018, section 4).

    Parameters
    ----------
    at
        The solution.
    seed
        Of the normal numbers.
    vectors
        Biases and scales (tensors of at most one axis): `fixed`, no movement, as the paper's plots; `scaled`, each as
        one filter.

    Returns
    -------
    dict
        A tensor for each of `at`.
    """
    space = Space(at)
    random_P = space.normal(torch.Generator().manual_seed(seed))
    part_P, weights_P = _filter_numbers(space), space.vector(at)
    length_P = _norms_of_parts(random_P, part_P).clamp(min=torch.finfo(space.dtype).tiny)
    direction = space.named(random_P * (_norms_of_parts(weights_P, part_P) / length_P))
    if vectors == "fixed":
        return {name: x if x.dim() > 1 else torch.zeros_like(x) for name, x in direction.items()}
    return direction


def losses_along(objective: Objective, at: Weights, direction: Weights, places_A: Sequence[float]) -> tuple[float, ...]:
    """The loss at the weights plus each place times a direction."""
    space = Space(at)
    at_P, direction_P = space.vector(at), space.vector(direction)
    return tuple(objective.value(space.named(at_P + place * direction_P)) for place in places_A)


def loss_barrier(objective: Objective, first: Weights, second: Weights, *, points: int = LINE_POINTS) -> Barrier:
    """The barrier between two solutions on their straight line, in weights as they are, without permutation.

    Parameters
    ----------
    objective
        The loss; where running statistics belong to the model, it has to estimate them anew at each place.
    first, second
        Two solutions with the same names and shapes.
    points
        Evenly spaced places, ends included, at least 3.

    Returns
    -------
    Barrier
        By two definitions, with the losses.

    Raises
    ------
    ValueError
        Where names or shapes differ, or `points` is less than 3.
    """
    if points < 3:
        raise ValueError(f"{points} points; expected at least 3, the two ends and one between")
    space = Space(first)
    first_P, second_P = space.vector(first), space.vector(second)
    places = [number / (points - 1) for number in range(points)]
    losses = [objective.value(space.named(torch.lerp(first_P, second_P, place))) for place in places]
    chord = [(1 - place) * losses[0] + place * losses[-1] for place in places]
    above = max(loss - straight for loss, straight in zip(losses[1:-1], chord[1:-1], strict=True))
    return Barrier(max(losses) - (losses[0] + losses[-1]) / 2, above, tuple(places), tuple(losses))


def _filter_numbers(space: Space) -> Tensor:
    """The number of the filter that each weight belongs to, shape (weight,)."""
    numbers, first = [], 0
    for shape in space.shapes.values():
        count = shape[0] if len(shape) > 1 else 1
        numbers.append(first + torch.arange(count).repeat_interleave(shape.numel() // max(count, 1)))
        first += count
    return torch.cat(numbers).to(space.device)


def _norms_of_parts(x_P: Tensor, part_P: Tensor) -> Tensor:
    """Euclidean norm of each weight's part, at each weight."""
    squares = torch.zeros(int(part_P.max()) + 1, dtype=torch.float64, device=x_P.device)
    squares.index_add_(0, part_P, x_P.to(torch.float64).square())
    return squares.sqrt()[part_P].to(x_P.dtype)
