"""Instance normalisation inverts, masks are exact, and the loss is that of masked values alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from stages.systems.minitraffic.patches import (
    denormalise,
    drawn_mask,
    last_measured,
    masked_count,
    masked_error,
    normalise,
    patch_count,
    patches,
)
from tests.systems.minitraffic.small import waves

NAN = float("nan")


def contexts() -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(waves(steps=18).T))[None]


def test_instance_normalisation_inverts() -> None:
    context_BSL = contexts()
    seen = normalise(context_BSL, torch.zeros(6), 5.0)
    torch.testing.assert_close(denormalise(seen.x_BSL, seen), context_BSL)


def test_a_normalised_window_does_not_know_its_level_nor_its_unit() -> None:
    kmh_BSL = contexts()
    mph_BSL, level_S = kmh_BSL * 0.621371, torch.zeros(6)
    torch.testing.assert_close(
        normalise(kmh_BSL, level_S, 5.0).x_BSL, normalise(mph_BSL, level_S, 5.0 * 0.621371).x_BSL
    )
    torch.testing.assert_close(
        normalise(kmh_BSL + 30, level_S, 5.0).x_BSL, normalise(kmh_BSL, level_S, 5.0).x_BSL, atol=1e-4, rtol=0
    )


def test_missing_values_are_marked_and_count_in_no_moment() -> None:
    context = torch.tensor([[[10.0, NAN, 20.0, NAN]]])
    seen = normalise(context, torch.tensor([99.0]), 2.0)
    assert seen.mean_BS.item() == 15
    assert seen.sd_BS.item() == pytest.approx(5 + 0.05 * 2)
    assert seen.there_BSL.tolist() == [[[True, False, True, False]]]
    assert seen.x_BSL[0, 0, [1, 3]].tolist() == [0, 0]
    assert seen.last_BS.item() == 20


def test_a_window_without_a_value_has_the_level_of_its_sensor() -> None:
    seen = normalise(torch.full((1, 1, 4), NAN), torch.tensor([42.0]), 2.0)
    assert (seen.mean_BS.item(), seen.last_BS.item()) == (42, 42)
    assert torch.isfinite(seen.x_BSL).all()


def test_a_flat_window_is_zero_and_does_not_divide_by_zero() -> None:
    seen = normalise(torch.full((1, 1, 4), 60.0), torch.zeros(1), 2.0)
    assert seen.x_BSL.abs().max() == 0
    assert seen.sd_BS.item() == pytest.approx(0.1)


def test_the_last_measured_value() -> None:
    context = torch.tensor([[1.0, 2.0, NAN], [NAN, 5.0, 6.0], [7.0, NAN, NAN]])
    assert last_measured(context, torch.isfinite(context)).tolist() == [2, 6, 7]


def test_patches_of_stride_three_tile_the_context_and_share_no_step() -> None:
    x = torch.arange(18.0).reshape(1, 1, 18)
    assert patches(x, 3, 3).reshape(-1).tolist() == list(range(18))
    assert patch_count(18, 3, 3) == 6
    assert patch_count(18, 3, 1) == 16


@pytest.mark.parametrize(("count", "share", "expected"), [(6, 0.4, 2), (16, 0.4, 6), (5, 0.01, 1), (5, 0.99, 4)])
def test_exactly_so_many_patches_of_every_series_are_masked(count: int, share: float, expected: int) -> None:
    mask = drawn_mask((50, 7), count, share, np.random.default_rng(0))
    assert masked_count(count, share) == expected
    assert (mask.sum(axis=-1) == expected).all()
    assert (mask.mean(axis=(0, 1)) > 0).all()  # no place is spared


def test_the_loss_is_that_of_masked_and_measured_values_alone() -> None:
    target = torch.tensor([[[[1.0, 1.0], [5.0, 5.0]]]])
    predicted = torch.tensor([[[[4.0, 99.0], [99.0, 99.0]]]], requires_grad=True)
    there = torch.tensor([[[[True, False], [True, True]]]])
    mask = torch.tensor([[[True, False]]])
    loss = masked_error(predicted, target, there, mask)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 3
    assert predicted.grad is not None
    assert predicted.grad.reshape(-1).tolist() == [1, 0, 0, 0]


def test_nothing_masked_is_no_loss() -> None:
    nothing = torch.zeros(1, 1, 2, dtype=torch.bool)
    x = torch.ones(1, 1, 2, 3)
    assert masked_error(x, 2 * x, torch.ones_like(x, dtype=torch.bool), nothing).item() == 0
