"""What a forecast costs: parameters, and floating-point operations counted while it is made.

FLOPs are those of torch's flop counter: two for each multiplication and addition of matrix products, convolutions and
attention. Products and sums of single elements count too, one each: attention over a sparse graph is made of them.
Additions of arrays, normalisations and gathers count for no arm; arms without a product count 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: A backward pass is two products for each of the forward pass.
TRAINING_FACTOR = 3


def parameters(module: torch.nn.Module, *, trained_only: bool = False) -> int:
    """Numbers a module learns; buffers are not among them, and a shared tensor counts once."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad or not trained_only)


def flops(call: Callable[[], Any]) -> int:
    """FLOPs of the products and sums that a call runs in torch."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    single: dict[Any, Any] = {torch.ops.aten.mul: _products, torch.ops.aten.sum: _summed}
    counter = FlopCounterMode(display=False, custom_mapping=single)
    # The counter does not know every fused kernel of attention: it sees the two products of the plain one.
    with sdpa_kernel(SDPBackend.MATH), counter:
        call()
    return int(counter.get_total_flops())


def _products(*_: Any, out_shape: Sequence[int], **__: Any) -> int:
    return math.prod(out_shape)


def _summed(shape: Sequence[int], *_: Any, **__: Any) -> int:
    return math.prod(shape)


def linear_flops(inputs: int, outputs: int, series: int) -> int:
    """FLOPs of one linear map from ``inputs`` to ``outputs`` numbers for each of ``series`` sensors."""
    return 2 * inputs * outputs * series


def training_flops(forward: int, sensors: int, series: int) -> float:
    """FLOPs of a training that passed so many series forward and backward.

    Parameters
    ----------
    forward
        FLOPs of one forward pass of all sensors.
    sensors
        Sensors of that pass.
    series
        Windows of single sensors that were passed.
    """
    return TRAINING_FACTOR * forward / sensors * series


def growth_exponent(sizes: Sequence[int], counts: Sequence[int]) -> float:
    """Slope of log cost against log size, by least squares: 1 where the cost grows as the size, 2 as its square."""
    import numpy as np

    slope, _ = np.polyfit(np.log(sizes), np.log(counts), 1)
    return float(slope)
