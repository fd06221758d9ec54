"""Scenes: what is in front hides what is behind, to the pixel."""

from __future__ import annotations

import numpy as np
import pytest

from stages.simulate.refcoco import scenes
from stages.simulate.refcoco.options import Scene
from stages.simulate.refcoco.scenes import Shape

#: Half a side of a square of radius 10 is 7.78: 16 x 16 px about a middle on a corner of pixels.
BACK = Shape("square", "red", "plain", "small", 30, 30, 10.0, 0)
FRONT = Shape("square", "blue", "plain", "small", 38, 30, 10.0, 0)


def test_the_front_hides_the_back_where_they_overlap() -> None:
    scene = scenes.paint(60, 60, [BACK, FRONT])
    assert scene.full_OHW.sum(axis=(1, 2)).tolist() == [256, 256]
    assert scene.visible_OHW.sum(axis=(1, 2)).tolist() == [128, 256]
    found = scenes.measure(scene)
    assert found.hidden_OO.tolist() == [[128, 128], [0, 256]]
    assert scenes.box(scene.visible_OHW[0]) == (22, 22, 8, 16)
    assert scenes.box(scene.visible_OHW[1]) == (30, 22, 16, 16)
    np.testing.assert_allclose(found.x_O, [26 / 60, 38 / 60])
    np.testing.assert_allclose(found.y_O, [0.5, 0.5])


def test_a_gap_is_between_boxes() -> None:
    far = Shape("square", "blue", "plain", "small", 49, 54, 10.0, 0)
    found = scenes.measure(scenes.paint(100, 100, [BACK, far]))
    # Boxes from 22 to 38 and, to the right and below, from 41 and 46 on: 3 and 8 px apart.
    assert found.gap_OO[0, 1] == found.gap_OO[1, 0] == pytest.approx(np.hypot(3, 8) / 100)
    assert found.gap_OO[0, 0] == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_drawn_scene_keeps_its_promises(seed: int) -> None:
    options = Scene(sides_px=(80, 120), objects=(3, 5), touching=0.9, least_visible=0.6)
    scene = scenes.draw(np.random.default_rng(seed), options)
    assert 80 <= scene.height <= 120
    assert 80 <= scene.width <= 120
    assert 3 <= len(scene.shapes) <= 5
    assert scene.visible_OHW.sum(axis=0).max() == 1
    np.testing.assert_array_equal(scene.visible_OHW.any(axis=0), scene.full_OHW.any(axis=0))
    assert (scene.visible_OHW.sum(axis=(1, 2)) >= 0.6 * scene.full_OHW.sum(axis=(1, 2))).all()
    for shape in scene.shapes:
        low, high = scenes.SIZES[shape.size]
        assert low <= shape.radius / scene.shorter <= high


def test_no_two_objects_of_one_colour_run_into_each_other() -> None:
    options = Scene(same_colour=1, touching=1)
    for seed in range(8):
        scene = scenes.draw(np.random.default_rng(seed), options)
        assert len({shape.colour for shape in scene.shapes}) == 1
        assert scene.full_OHW.sum(axis=0).max() == 1


def test_objects_resemble_each_other_as_often_as_asked() -> None:
    def kinds(chance: float) -> float:
        drawn = [scenes.draw(np.random.default_rng(seed), Scene(same_kind=chance)) for seed in range(30)]
        return float(np.mean([len({one.category for one in scene.shapes}) / len(scene.shapes) for scene in drawn]))

    assert kinds(1.0) < 0.35
    assert kinds(0.0) > 0.75
