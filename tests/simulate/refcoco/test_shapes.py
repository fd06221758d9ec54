"""The categories: areas as geometry has them, and a place in one of two groups."""

from __future__ import annotations

import numpy as np
import pytest

from stages.simulate.refcoco import shapes

RADIUS = 40.0


def pixels(category: str, turn: float = 0.0) -> shapes.Mask:
    return shapes.inside(shapes.placed(category, 50, 50, RADIUS, turn), 100, 100)


@pytest.mark.parametrize(
    ("category", "area"),
    [
        ("ball", np.pi * 0.9**2),
        ("ring", np.pi * (1 - 0.52**2)),
        ("egg", np.pi * 1.05 * 0.66),
        ("square", 2 * 1.1**2),
        ("triangle", 3 * np.sqrt(3) / 4 * 1.1**2),
        ("diamond", 2 * 1.15 * 0.72),
        ("star", 10 * 0.5 * 1.15 * 0.5 * np.sin(np.pi / 5)),
        # Two bars of 2 x 0.68, and their middle once.
        ("cross", 2 * 2 * 0.68 - 0.68**2),
    ],
)
def test_an_area_is_that_of_geometry(category: str, area: float) -> None:
    assert pixels(category).sum() == pytest.approx(area * RADIUS**2, rel=0.025)


def test_a_moon_is_a_disc_without_another() -> None:
    distance = 0.5
    first, second = 1.0, 0.85
    # The lens that two discs share.
    x = (distance**2 + first**2 - second**2) / (2 * distance)
    lens = (
        first**2 * np.arccos(x / first)
        + second**2 * np.arccos((distance - x) / second)
        - distance * np.sqrt(first**2 - x**2)
    )
    assert pixels("moon").sum() == pytest.approx((np.pi * first**2 - lens) * RADIUS**2, rel=0.025)


def test_a_ring_has_a_hole_and_a_ball_has_none() -> None:
    assert not pixels("ring")[50, 50]
    assert pixels("ring")[50, 20]
    assert pixels("ball")[50, 50]


@pytest.mark.parametrize("category", shapes.CATEGORIES)
def test_turning_keeps_the_area(category: str) -> None:
    assert pixels(category, 33).sum() == pytest.approx(pixels(category).sum(), rel=0.03)


def test_a_square_is_turned_as_a_square() -> None:
    np.testing.assert_array_equal(pixels("square", 90), pixels("square"))
    assert (pixels("square", 45) != pixels("square")).sum() > 500


def test_a_triangle_points_up() -> None:
    rows = pixels("triangle").sum(axis=1)
    filled = rows[rows > 0]
    assert filled[0] < 5
    assert filled[-1] > 70


def test_five_round_categories_and_five_angular_ones() -> None:
    groups = [category.group for category in shapes.CATEGORIES.values()]
    assert (groups.count("round"), groups.count("angular")) == (5, 5)
    assert list(shapes.CATEGORY_IDS.values()) == list(range(1, 11))


def test_what_lies_outside_the_frame_is_cut() -> None:
    assert shapes.inside(shapes.placed("square", 0, 0, 20, 0), 60, 60).sum() == pytest.approx(
        shapes.inside(shapes.placed("square", 30, 30, 20, 0), 60, 60).sum() / 4, rel=0.1
    )
    assert not shapes.inside(shapes.placed("ball", -50, 30, 20, 0), 60, 60).any()
