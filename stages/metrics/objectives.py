"""A loss as a function of named weights: its gradient and its Hessian-vector products, batch by batch.

The Hessian is never formed. A product costs about three gradients; memory is that of one batch. Attention runs with
the math kernel, the only one of torch's that can be differentiated twice.

Shape suffixes: P weight, all tensors one after the other; K vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor

Weights = Mapping[str, Tensor]
Loss = Callable[[Weights], Tensor]


def math_attention() -> AbstractContextManager[None]:
    """Scaled dot-product attention by plain matrix products."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    context: AbstractContextManager[None] = sdpa_kernel(SDPBackend.MATH)
    return context


class Space:
    """Named tensors of one floating dtype and device as one vector.

    Parameters
    ----------
    like
        The tensors whose names, order and shapes it keeps.

    Raises
    ------
    ValueError
        Where there is no weight, or tensors differ in dtype or device, or hold no floating numbers.
    """

    def __init__(self, like: Weights) -> None:
        kinds = {(tensor.dtype, tensor.device) for tensor in like.values()}
        self.shapes = {name: tensor.shape for name, tensor in like.items()}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        self.size = sum(self.sizes)
        if len(kinds) != 1 or self.size == 0:
            found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds)) or "no tensor"
            raise ValueError(f"weights: {self.size} numbers, {found}; expected some, of one dtype on one device")
        self.dtype, self.device = kinds.pop()
        if not self.dtype.is_floating_point:
            raise ValueError(f"weights are {self.dtype}; expected real floating numbers")

    def vector(self, tensors: Weights) -> Tensor:
        """All tensors as a new vector, shape (weight,).

        Raises
        ------
        ValueError
            Where names or shapes are others.
        """
        if tensors.keys() != self.shapes.keys():
            odd = sorted(tensors.keys() ^ self.shapes.keys())
            raise ValueError(f"weights {', '.join(odd)} stand on one side only")
        for name, shape in self.shapes.items():
            if tensors[name].shape != shape:
                raise ValueError(f"{name} has shape {tuple(tensors[name].shape)}; expected {tuple(shape)}")
        return torch.cat([tensors[name].detach().reshape(-1) for name in self.shapes])

    def named(self, x_P: Tensor) -> dict[str, Tensor]:
        """The parts of a vector by name, each a view in its own shape."""
        parts = torch.split(x_P, self.sizes)
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def normal(self, generator: torch.Generator) -> Tensor:
        """Standard normal numbers, shape (weight,); drawn on the CPU, so that every device gets the same."""
        return torch.randn(self.size, generator=generator, dtype=torch.float64).to(self.device, self.dtype)


class Objective:
    """The weighted mean of the losses of some batches.

    Parameters
    ----------
    losses
        One function of the named weights, or one for each batch; each returns a finite scalar, the same one each time
        (no dropout), and reads its batch when called, so that one batch is in memory at a time.
    weights
        What each loss counts, e.g. the number of samples that it is a mean over; by default all the same. They are
        divided by their sum.

    Raises
    ------
    ValueError
        Where there is no loss, or the weights are not as many positive numbers.
    """

    def __init__(self, losses: Loss | Sequence[Loss], weights: Sequence[float] | None = None) -> None:
        self.losses: tuple[Loss, ...] = (losses,) if callable(losses) else tuple(losses)
        counts = [1.0] * len(self.losses) if weights is None else [float(weight) for weight in weights]
        if not self.losses or len(counts) != len(self.losses):
            raise ValueError(f"{len(self.losses)} losses with {len(counts)} weights; expected as many, at least one")
        if not all(0 < count < math.inf for count in counts):
            raise ValueError(f"weights of the losses: {counts}; expected positive numbers")
        total = sum(counts)
        self.shares = [count / total for count in counts]

    def value(self, at: Weights) -> float:
        """The loss at some weights."""
        with torch.no_grad():
            return math.fsum(share * float(loss) for share, loss in self._terms(at))

    def gradient(self, at: Weights) -> tuple[float, Tensor]:
        """The loss and its gradient, shape (weight,)."""
        space = Space(at)
        total, gradient_P = [], torch.zeros(space.size, dtype=space.dtype, device=space.device)
        leaves = differentiable(at)
        for share, loss in self._terms(leaves):
            total.append(share * float(loss.detach()))
            gradient_P += share * flat(derivatives(loss, leaves, create_graph=False))
        return math.fsum(total), gradient_P

    def hessian(self, at: Weights) -> Hessian:
        """The Hessian at some weights, as products."""
        return Hessian(self, at)

    def _terms(self, at: Weights) -> Iterator[tuple[float, Tensor]]:
        """Share and loss of each batch."""
        for number, (share, loss) in enumerate(zip(self.shares, self.losses, strict=True)):
            value = loss(at)
            if value.numel() != 1:
                raise ValueError(f"the loss of batch {number} has shape {tuple(value.shape)}; expected a scalar")
            if not bool(torch.isfinite(value.detach())):
                raise ValueError(f"the loss of batch {number} is {float(value.detach())}; expected a finite number")
            yield share, value.reshape(())


class Hessian:
    """Products of the Hessian of an objective with vectors, by differentiating twice (Pearlmutter 1994).

    Parameters
    ----------
    objective
        The loss.
    at
        The weights where it is expanded; the Hessian is in these alone, what else the loss uses is constant.
    """

    def __init__(self, objective: Objective, at: Weights) -> None:
        self.objective = objective
        self.space = Space(at)
        self.leaves = differentiable(at)
        self.products = 0
        self._kept: list[Tensor] | None = None

    def product(self, v_P: Tensor) -> Tensor:
        """The Hessian times one vector, shape (weight,)."""
        self.products += 1
        total_P = torch.zeros_like(v_P)
        for share, gradients in self._graphs():
            total_P += share * self._once(gradients, v_P)
        return total_P

    def quadratic_forms(self, v_KP: Tensor) -> Tensor:
        """Summands by tensor of v' H v for each vector v: their sum is v' H v. Float64, shape (vector, tensor).

        The gradient of a batch is built once for all vectors.
        """
        self.products += len(v_KP)
        forms = torch.zeros(len(v_KP), len(self.space.sizes), dtype=torch.float64)
        for share, gradients in self._graphs():
            for k, v_P in enumerate(v_KP):
                summands = (v_P * self._once(gradients, v_P)).split(self.space.sizes)
                forms[k] += share * torch.stack([part.sum(dtype=torch.float64) for part in summands]).cpu()
        return forms

    def _graphs(self) -> Iterator[tuple[float, list[Tensor]]]:
        """Share and differentiable gradient of each batch; with a single batch it is kept for the next product."""
        if self._kept is not None:
            yield 1.0, self._kept
            return
        with math_attention():
            for share, loss in self.objective._terms(self.leaves):
                gradients = derivatives(loss, self.leaves, create_graph=True)
                if len(self.objective.losses) == 1:
                    self._kept = gradients
                yield share, gradients

    def _once(self, gradients: list[Tensor], v_P: Tensor) -> Tensor:
        parts = self.space.named(v_P).values()
        # A gradient that does not depend on the weights adds nothing.
        pairs = [(gradient, part) for gradient, part in zip(gradients, parts, strict=True) if gradient.requires_grad]
        if not pairs:
            return torch.zeros_like(v_P)
        outputs, along = zip(*pairs, strict=True)
        second = torch.autograd.grad(
            outputs, list(self.leaves.values()), along, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return flat(second)


def differentiable(at: Weights) -> dict[str, Tensor]:
    """Copies that gradients are taken in."""
    return {name: tensor.detach().clone().requires_grad_() for name, tensor in at.items()}


def derivatives(loss: Tensor, leaves: Weights, *, create_graph: bool) -> list[Tensor]:
    """Gradient of a loss by tensor; zero where the loss does not depend on one."""
    if not loss.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves.values()]
    found = torch.autograd.grad(
        loss, list(leaves.values()), create_graph=create_graph, allow_unused=True, materialize_grads=True
    )
    return list(found)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one after the other as one vector."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
