"""Sentences: each names its object alone, says it in many ways, and refcoco+ says no place."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.runtime import random_numbers
from stages.simulate.refcoco import choosing, layout, scenes, wording
from stages.simulate.refcoco.meanings import (
    Described,
    Excepted,
    Extreme,
    Facts,
    Located,
    Meaning,
    Ordinal,
    Related,
    names,
)
from stages.simulate.refcoco.options import Scene, Sentences, Simulation
from tests.simulate.refcoco.conftest import facts, shape

BALL = Described("ball")


@given(seed=st.integers(0, 10**6), places=st.booleans())
def test_a_sentence_is_true_of_its_object_alone(seed: int, places: bool) -> None:
    rng = np.random.default_rng(seed)
    scene = scenes.draw(rng, Scene(sides_px=(72, 96)))
    found = Facts(scene.shapes, scenes.measure(scene))
    chosen = choosing.choose(rng, found, range(len(scene.shapes)), Sentences(), places=places)
    if chosen is not None:
        assert names(found, chosen.meaning) == {chosen.target}
        assert names(found, chosen.meaning, clear=False) == {chosen.target}
        sentence = wording.say(rng, chosen.meaning)
        assert sentence == sentence.lower().strip()
        assert sentence.isascii()
        assert places or not set(wording.tokens(sentence)) & wording.PLACE_WORDS


def test_twins_are_told_apart_by_their_place_alone() -> None:
    twins = facts(shape("small red plain ball", 20, 50), shape("small red plain ball", 80, 50))
    rng = np.random.default_rng(0)
    for _ in range(20):
        chosen = choosing.choose(rng, twins, [1], Sentences(), places=True)
        assert chosen is not None
        assert chosen.form in ("location", "relation")
    assert choosing.choose(rng, twins, [0, 1], Sentences(), places=False) is None


def test_a_sentence_asked_to_be_ambiguous_names_others_too() -> None:
    found = facts(
        shape("small red plain ball", 20, 50),
        shape("small red plain ball", 50, 20),
        shape("small blue plain ball", 80, 80),
    )
    rng = np.random.default_rng(1)
    for _ in range(20):
        chosen = choosing.choose(rng, found, [0, 1], Sentences(ambiguous=1), places=True)
        assert chosen is not None
        assert chosen.target in names(found, chosen.meaning)
        assert len(names(found, chosen.meaning)) > 1


@pytest.fixture(scope="module")
def pictures() -> list[tuple[Facts, layout.Picture]]:
    """Scenes at default size."""
    simulation = Simulation(seed=3)
    composed = [layout.compose(random_numbers(3, f"{number}"), simulation, number, "train") for number in range(40)]
    return [(Facts(one.scene.shapes, scenes.measure(one.scene)), one) for one in composed]


def test_words_beyond_attributes_are_needed_for_all_other_forms(pictures: list[tuple[Facts, layout.Picture]]) -> None:
    forms: Counter[str] = Counter()
    for found, picture in pictures:
        for said in picture.said["refcoco"]:
            forms[said.chosen.form] += 1
            if not isinstance(meaning := said.chosen.meaning, Described):
                assert len(names(found, meaning.of)) > 1
    assert set(forms) == {"attributes", "location", "relation", "superlative", "ordinal", "negation"}
    assert forms["attributes"] < 0.4 * forms.total()


@pytest.mark.parametrize("dataset", layout.DATA_SETS)
def test_colour_and_category_find_the_object_half_the_time_at_most(
    pictures: list[tuple[Facts, layout.Picture]], dataset: str
) -> None:
    # Who knows these words alone can but guess among the objects that fit them.
    luck = []
    for found, picture in pictures:
        for said in picture.said[dataset]:
            words = said.chosen.meaning if isinstance(said.chosen.meaning, Described) else said.chosen.meaning.of
            luck.append(1 / len(names(found, Described(words.category, words.colour))))
    assert np.mean(luck) < 0.55


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Located(BALL, ("left",)), {"left ball", "leftmost circle", "disc on the left", "ball on left side"}),
        (Located(BALL, ("top", "right")), {"top right ball", "circle in the upper right corner"}),
        (Located(BALL, ()), {"middle disc", "ball in the center"}),
        (Extreme(Described("star", "red"), largest=True), {"biggest red star", "largest star that is red"}),
        (Ordinal(BALL, 2, "bottom"), {"second ball from the bottom", "2nd circle from bottom"}),
        (
            Related(BALL, "behind", Described("cross", pattern="striped")),
            {"disc partly hidden by the striped cross", "ball behind plus with stripes"},
        ),
        (Excepted(BALL, Described(colour="purple")), {"ball that is not violet", "circle not purple"}),
        (Described(group="round", size="small"), {"small round thing", "little round shape"}),
    ],
)
def test_a_meaning_is_said_in_several_ways(meaning: Meaning, expected: set[str]) -> None:
    rng = np.random.default_rng(0)
    said = {wording.say(rng, meaning).removeprefix("the ") for _ in range(1500)}
    assert expected <= said
    assert len(said) > 3


def test_what_was_typed_is_the_sentence_but_for_capitals_and_stops() -> None:
    rng = np.random.default_rng(0)
    typed = {wording.typed(rng, "left ball") for _ in range(100)}
    assert typed == {"left ball", "Left ball", "left ball.", "Left ball."}
