"""Parameters and FLOPs of networks whose cost is known."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from stages.systems.minitraffic import cost


def test_a_linear_layer_costs_two_flops_a_weight_and_row() -> None:
    layer = nn.Linear(12, 5)
    assert cost.flops(lambda: layer(torch.zeros(7, 12))) == 2 * 12 * 5 * 7 == cost.linear_flops(12, 5, 7)


def test_attention_costs_its_two_products_whatever_kernel_runs_it() -> None:
    query, key, value = torch.zeros(3, 2, 4, 10, 8).unbind()
    one_by_one = cost.flops(lambda: (query @ key.transpose(-1, -2)) @ value)
    assert one_by_one == 2 * (2 * 4) * (10 * 10 * 8) * 2
    with torch.no_grad():
        fused = cost.flops(lambda: functional.scaled_dot_product_attention(query, key, value))
    assert fused == one_by_one + query.numel() + key.numel()  # which it scales first


def test_products_and_sums_outside_matrices_count_so_that_graph_attention_is_not_free() -> None:
    x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    assert cost.flops(lambda: (x * y).sum(dim=-1)) == 24 + 24
    assert cost.flops(lambda: x + y) == 0


def test_parameters_are_counted_once_and_buffers_are_none() -> None:
    shared = nn.Linear(3, 2)
    module = nn.Sequential(shared, nn.BatchNorm1d(2), shared)
    assert cost.parameters(module) == 3 * 2 + 2 + 2 * 2
    shared.requires_grad_(False)
    assert cost.parameters(module, trained_only=True) == 2 * 2


def test_training_costs_three_forward_passes() -> None:
    assert cost.training_flops(forward=400, sensors=40, series=1000) == 3 * 10 * 1000


def test_the_exponent_of_a_growing_cost() -> None:
    sizes = [40, 400, 4000]
    assert cost.growth_exponent(sizes, [5 * n for n in sizes]) == pytest.approx(1)
    assert cost.growth_exponent(sizes, [n * n for n in sizes]) == pytest.approx(2)
