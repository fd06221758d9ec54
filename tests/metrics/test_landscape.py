"""The worst loss in a ball, directions and barriers, against hand-computed values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stages.metrics.landscape import (
    filter_normalised_direction,
    loss_barrier,
    losses_along,
    worst_loss,
)
from stages.metrics.objectives import Objective, Weights

CENTRE = torch.tensor([[3.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
STEEPNESS = torch.tensor([[1.0, 2.0], [8.0, 4.0]], dtype=torch.float64)


def bowl(at: Weights) -> Tensor:
    """Half the sum of a (w - centre)^2."""
    return (STEEPNESS * (at["w"] - CENTRE).square()).sum() / 2


def point(*values: float) -> dict[str, Tensor]:
    return {"w": torch.tensor(values, dtype=torch.float64)}


@pytest.mark.parametrize(
    ("ball", "worst"),
    [
        # Each weight by 0.1 (|w| + 1): 0.4, 0.1, 0.1, 0.5.
        ("box", (1 * 0.16 + 2 * 0.01 + 8 * 0.01 + 4 * 0.25) / 2),
        # All by 0.1 x 5 along the steepest axis, whose curvature is 8.
        ("weights", 8 * 0.25 / 2),
        # The rows by 0.1 x 3 and 0.1 x 4, each along its steepest axis.
        ("filters", (2 * 0.09 + 8 * 0.16) / 2),
    ],
)
def test_the_worst_loss_in_each_ball_around_the_minimum_of_a_bowl(ball: Any, worst: float) -> None:
    found = worst_loss(Objective(bowl), {"w": CENTRE}, radius=0.1, seed=0, ball=ball, steps=100)
    assert found.start == 0
    assert found.worst == pytest.approx(worst, rel=1e-6)
    assert found.sharpness == pytest.approx(100 * worst, rel=1e-6)
    assert found.by_restart == pytest.approx([worst] * 3, rel=1e-6)


def test_the_ball_of_filters_does_not_see_how_a_filter_is_scaled() -> None:
    """A ReLU's incoming weights times 10 and outgoing by 10: the same function, and the same worst loss."""
    draw = torch.Generator().manual_seed(0)
    x_NI, y_N = torch.randn(30, 3, generator=draw), torch.randn(30, generator=draw)
    one = {"in": torch.randn(1, 3, generator=draw), "out": torch.randn(1, 1, generator=draw)}
    other = {"in": 10 * one["in"], "out": one["out"] / 10}
    objective = Objective(lambda at: ((x_NI @ at["in"].T).relu() @ at["out"].T - y_N[:, None]).square().mean())
    options: dict[str, Any] = {"radius": 0.05, "seed": 0, "steps": 100}
    worst = [worst_loss(objective, at, ball="filters", **options).worst for at in (one, other)]
    assert worst[0] == pytest.approx(worst[1], rel=1e-3)
    boxes = [worst_loss(objective, at, ball="weights", **options).rise for at in (one, other)]
    assert boxes[1] > 5 * boxes[0]


def test_the_worst_loss_is_never_below_the_centre_and_grows_with_the_ball() -> None:
    """Also at a maximum, where every way leads down."""
    summit = Objective(lambda at: -at["w"].square().sum())
    found = worst_loss(summit, point(0.0, 0.0), radius=0.1, seed=0)
    assert (found.worst, found.rise) == (found.start, 0)
    sizes = [worst_loss(Objective(bowl), {"w": CENTRE}, radius=radius, seed=0).rise for radius in (0.01, 0.05, 0.2)]
    assert sizes == sorted(sizes)
    assert sizes[1] == pytest.approx(25 * sizes[0], rel=1e-6)


def test_the_ascent_is_the_same_with_the_same_seed_and_counts_its_gradients() -> None:
    runs = [worst_loss(Objective(bowl), {"w": CENTRE}, radius=0.1, seed=4, steps=7) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].gradients <= 3 * 7


def test_a_direction_has_the_norm_of_each_filter() -> None:
    draw = torch.Generator().manual_seed(0)
    at = {
        "conv": torch.randn(4, 3, 2, 2, generator=draw),
        "dense": torch.zeros(2, 5),
        "bias": torch.randn(4, generator=draw),
    }
    direction = filter_normalised_direction(at, seed=1)
    torch.testing.assert_close(direction["conv"].flatten(1).norm(dim=1), at["conv"].flatten(1).norm(dim=1))
    assert not direction["dense"].any()
    assert not direction["bias"].any()
    scaled = filter_normalised_direction(at, seed=1, vectors="scaled")
    torch.testing.assert_close(scaled["bias"].norm(), at["bias"].norm())
    assert torch.equal(scaled["conv"], direction["conv"])


def test_the_loss_along_a_direction() -> None:
    slope = Objective(lambda at: at["w"].sum())
    assert losses_along(slope, point(1.0, 1.0), point(2.0, 0.0), (-1.0, 0.0, 0.5)) == (0, 2, 3)


def test_a_double_well_has_its_hump_between_the_minima() -> None:
    """(w^2 - 1)^2 from -1 to 1: the ends are 0, the middle is 1."""
    found = loss_barrier(Objective(lambda at: (at["w"].square() - 1).square().sum()), point(-1.0), point(1.0))
    assert (found.height, found.above_chord) == (1, 1)
    assert (len(found.places_A), found.losses_A[0], found.losses_A[15], found.losses_A[-1]) == (31, 0, 1, 0)


def test_the_barrier_of_an_upturned_parabola_by_hand() -> None:
    """-w^2 from -1 to 2: ends -1 and -4 (mean -2.5), largest 0 at a third, where the straight line has -2."""
    found = loss_barrier(Objective(lambda at: -at["w"].square().sum()), point(-1.0), point(2.0), points=31)
    assert found.height == pytest.approx(2.5)
    # Above the chord by 9 t (1 - t), most in the middle.
    assert found.above_chord == pytest.approx(9 / 4)


def test_a_convex_loss_has_no_barrier() -> None:
    """Nothing lies above the chord; the height is 0 between equal ends, else half their difference."""
    draw = torch.Generator().manual_seed(0)
    x_NI, label_N = torch.randn(50, 4, generator=draw), torch.randint(0, 3, (50,), generator=draw)
    logistic = Objective(lambda at: functional.cross_entropy(x_NI @ at["w"].T, label_N))
    ends = [{"w": torch.randn(3, 4, generator=draw)} for _ in range(2)]
    found = loss_barrier(logistic, *ends)
    assert found.above_chord < 0
    assert found.height == pytest.approx(abs(found.losses_A[0] - found.losses_A[-1]) / 2)
    even = loss_barrier(Objective(lambda at: at["w"].square().sum()), point(-1.0), point(1.0))
    assert (even.height, even.above_chord < 0) == (0, True)


def test_a_solution_has_no_barrier_to_itself() -> None:
    found = loss_barrier(Objective(bowl), {"w": CENTRE + 1}, {"w": CENTRE + 1})
    assert (found.height, found.above_chord) == (0, 0)


SLOPE = Objective(lambda at: at["w"].sum())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: worst_loss(SLOPE, point(1.0), radius=0, seed=0), "radius 0, 20 steps, 3 restarts; expected positive"),
        (lambda: loss_barrier(SLOPE, point(1.0), point(2.0), points=2), "2 points; expected at least 3"),
        (lambda: loss_barrier(SLOPE, point(1.0), {"v": torch.ones(1)}), "weights v, w stand on one side only"),
        (lambda: loss_barrier(SLOPE, point(1.0), point(1.0, 2.0)), r"w has shape \(2,\); expected \(1,\)"),
    ],
)
def test_what_cannot_be_answered_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
