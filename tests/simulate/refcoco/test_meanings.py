"""What sentences are true of, in scenes put together by hand."""

from __future__ import annotations

import pytest

from stages.simulate.refcoco.meanings import (
    Described,
    Excepted,
    Extreme,
    Located,
    Meaning,
    Ordinal,
    Related,
    named,
    names,
)
from tests.simulate.refcoco.conftest import facts, shape

BALL, STAR = Described("ball"), Described("star")
#: Three balls in a row from the left, a star above the middle one.
ROW = facts(
    shape("small red plain ball", 20, 60),
    shape("small red striped ball", 50, 60),
    shape("large blue plain ball", 80, 60, 16),
    shape("small green plain star", 50, 36),
)


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Described(), {0, 1, 2, 3}),
        (BALL, {0, 1, 2}),
        (Described(colour="red"), {0, 1}),
        (Described("ball", pattern="striped"), {1}),
        (Described(size="large"), {2}),
        (Described(group="angular"), {3}),
        (Described("ball", "green"), set()),
        (Located(BALL, ("left",)), {0}),
        (Located(BALL, ("right",)), {2}),
        (Located(BALL, ("top",)), set()),
        (Located(Described(), ("top",)), {3}),
        (Located(BALL, ()), {1}),
        (Located(Described(), ("bottom", "left")), {0}),
        (Extreme(BALL, largest=True), {2}),
        (Extreme(STAR, largest=True), set()),
        (Extreme(Described(colour="red"), largest=False), set()),
        (Ordinal(BALL, 2, "left"), {1}),
        (Ordinal(BALL, 3, "left"), {2}),
        (Ordinal(BALL, 3, "right"), {0}),
        (Ordinal(Described(colour="red"), 2, "left"), set()),
        (Related(BALL, "below", STAR), {1}),
        (Related(STAR, "above", Described("ball", pattern="striped")), {3}),
        (Related(BALL, "right of", Located(BALL, ("left",))), {1, 2}),
        (Related(BALL, "left of", Described(colour="blue")), {0, 1}),
        (Related(BALL, "left of", BALL), set()),
        (Excepted(BALL, Described(colour="red")), {2}),
        (Excepted(Described(colour="red"), Described(pattern="striped")), {0}),
    ],
)
def test_a_meaning_names(meaning: Meaning, expected: set[int]) -> None:
    assert names(ROW, meaning) == expected


def test_before_and_behind_follow_the_order_of_painting() -> None:
    found = facts(
        shape("small red plain square", 40, 50, 12),
        shape("small blue plain square", 52, 50, 12),
        shape("small red plain square", 85, 50, 12),
    )
    red, blue = Described(colour="red"), Described(colour="blue")
    assert names(found, Related(red, "behind", blue)) == {0}
    assert names(found, Related(red, "in front of", blue)) == set()
    assert named(found, Related(blue, "in front of", Located(red, ("left",)))) == 1
    assert named(found, Related(red, "behind", blue)) == 0


def test_next_to_is_near_and_what_is_half_near_is_a_doubt() -> None:
    def beside(x: float) -> int | None:
        found = facts(
            shape("small red plain square", 30, 50),
            shape("small blue plain square", x, 50),
            shape("small red plain square", 90, 90),
        )
        return named(found, Related(Described(colour="red"), "next to", Described(colour="blue")))

    # Half a side of each square is 6.2 px: gaps of about 2 and 20 px.
    assert beside(45) == 0
    assert beside(63) is None


def test_a_doubtful_sentence_names_nobody() -> None:
    near = facts(shape("small red plain ball", 20, 50), shape("small blue plain ball", 23, 80))
    left = Located(BALL, ("left",))
    assert names(near, left) == set()
    assert names(near, left, clear=False) == {0, 1}
    assert named(near, left) is None
    clear = facts(shape("small red plain ball", 20, 50), shape("small blue plain ball", 60, 80))
    assert named(clear, left) == 0


def test_a_clear_object_beside_a_half_clear_one_is_a_doubt() -> None:
    # One ball is well left of the star; the other is hardly, and somebody could mean it.
    found = facts(
        shape("small red plain ball", 20, 50),
        shape("small blue plain ball", 56, 80),
        shape("small green plain star", 60, 50),
    )
    meaning = Related(BALL, "left of", STAR)
    assert names(found, meaning) == {0}
    assert names(found, meaning, clear=False) == {0, 1}
    assert named(found, meaning) is None


def test_the_largest_is_so_in_what_one_sees_and_as_a_whole() -> None:
    # The large square loses most of its pixels to the one before it.
    found = facts(
        shape("large red plain square", 50, 50, 20),
        shape("large blue plain square", 64, 50, 20),
        shape("medium red plain square", 15, 15, 13),
    )
    assert names(found, Extreme(Described(colour="red"), largest=True)) == set()
    assert named(found, Extreme(Described("square"), largest=False)) is None
