"""FDA: identity, bound, untouched frequencies; extension and pooling."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stages.systems.minitraffic.augmentation import drawn_noise, extended, perturbed
from tests.systems.minitraffic.small import waves


def windows(steps: int = 18) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(waves(steps=steps).T))


def noise(x_XT: torch.Tensor, share: float = 0.5, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    drawn, mask = drawn_noise(tuple(x_XT.shape[:-1]), x_XT.shape[-1], share, np.random.default_rng(seed))
    return torch.from_numpy(drawn), torch.from_numpy(mask)


@pytest.mark.parametrize("steps", [3, 17, 18])
def test_without_noise_a_window_stays_as_it_is(steps: int) -> None:
    x_XT = windows(steps) / 50
    torch.testing.assert_close(perturbed(x_XT, *noise(x_XT), 0.0), x_XT, atol=1e-6, rtol=0)


@given(
    strength=st.floats(0.01, 2), share=st.floats(0, 1), seed=st.integers(0, 99), steps=st.sampled_from([3, 12, 17, 18])
)
def test_a_frequency_moves_by_at_most_lambda_times_the_largest_amplitude(
    strength: float, share: float, seed: int, steps: int
) -> None:
    x_XT = windows(steps).double()
    drawn, mask = noise(x_XT, share, seed)
    moved = torch.fft.rfft(perturbed(x_XT, drawn.to(torch.complex128), mask, strength)) - torch.fft.rfft(x_XT)
    largest = torch.fft.rfft(x_XT)[:, 1:].abs().amax(dim=-1, keepdim=True)
    assert (moved.abs() <= strength * largest * (1 + 1e-6) + 1e-9).all()


def test_frequencies_outside_the_spectral_mask_stay_and_the_mean_is_never_in_it() -> None:
    x_XT = windows()
    drawn, mask = noise(x_XT)
    assert mask.any()
    assert not mask[:, 0].any()
    moved_XT = perturbed(x_XT, drawn, mask, 0.3)
    difference = (torch.fft.rfft(moved_XT) - torch.fft.rfft(x_XT)).abs()
    assert difference[~mask].max() < 1e-3
    assert difference[mask].max() > 1
    torch.testing.assert_close(moved_XT.mean(dim=-1), x_XT.mean(dim=-1))


def test_the_output_is_real_and_as_long_as_the_window() -> None:
    for steps in (3, 17, 18):
        moved_XT = perturbed(windows(steps), *noise(windows(steps), 1.0), 0.3)
        assert moved_XT.dtype == torch.float32
        assert moved_XT.shape == (6, steps)


def test_noise_points_fill_the_unit_disc() -> None:
    drawn, mask = drawn_noise((4000,), 18, 0.5, np.random.default_rng(0))
    assert np.abs(drawn).max() <= 1
    assert np.abs(drawn).mean() == pytest.approx(2 / 3, abs=0.01)  # mean distance from the centre of a disc
    assert mask[:, 1:].mean() == pytest.approx(0.5, abs=0.01)


def test_the_first_copy_is_the_road_and_the_second_its_average_over_two_steps() -> None:
    x_XT = torch.tensor([[2.0, 4.0, 8.0]])
    assert extended(x_XT, 1).tolist() == [[[2, 4, 8]]]
    assert extended(x_XT, 2).tolist() == [[[2, 4, 8]], [[2, 3, 6]]]


def test_a_flat_road_has_copies_like_itself() -> None:
    flat = torch.full((2, 3, 18), 7.0)
    torch.testing.assert_close(extended(flat, 4), flat.expand(4, 2, 3, 18))
