"""Measures of segmentation: hand-computed values, the empty union, and what the two means disagree about."""

import numpy as np
import pytest

from stages.metrics.segmentation import ious, mean_iou, overall_iou, overlaps, precision_at


def test_overlaps_are_counted_in_pixels() -> None:
    left = np.array([[[1, 1, 0], [0, 0, 0]]], bool)
    right = np.array([[[0, 1, 1], [0, 0, 0]]], bool)
    shared, either = overlaps(left, right)
    assert (shared.tolist(), either.tolist()) == ([1], [3])


def test_overall_iou_weighs_by_area_and_mean_iou_does_not() -> None:
    shared, either = [90, 0], [100, 10]
    assert overall_iou(shared, either) == pytest.approx(90 / 110)
    assert mean_iou(shared, either) == pytest.approx(0.45)


@pytest.mark.parametrize(("empty", "expected"), [(1.0, 1.0), (0.0, 2 / 3)])
def test_an_empty_union_counts_as_the_convention_says_and_leaves_overall_iou_alone(
    empty: float, expected: float
) -> None:
    shared, either = [5, 7, 0], [5, 7, 0]
    assert mean_iou(shared, either, empty=empty) == pytest.approx(expected)
    assert overall_iou(shared, either, empty=empty) == 1.0
    assert np.isfinite(ious(shared, either, empty=empty)).all()


def test_all_unions_empty_is_the_convention_and_not_nan() -> None:
    assert overall_iou([0], [0], empty=0.0) == 0.0
    assert overall_iou([0], [0], empty=1.0) == 1.0


def test_precision_counts_what_is_above_a_level() -> None:
    found = precision_at([5, 6, 10], [10, 10, 10], (0.5, 0.6, 0.9))
    assert found == {0.5: pytest.approx(2 / 3), 0.6: pytest.approx(1 / 3), 0.9: pytest.approx(1 / 3)}


def test_precision_falls_with_the_level() -> None:
    rng = np.random.default_rng(0)
    either = rng.integers(1, 100, 200)
    found = list(precision_at((either * rng.random(200)).astype(int), either).values())
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("shared", [[11], [-1]])
def test_an_intersection_outside_its_union_is_refused(shared: list[int]) -> None:
    with pytest.raises(ValueError, match="an intersection lies outside 0 to its union"):
        ious(shared, [10])
