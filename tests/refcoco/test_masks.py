"""Masks as run lengths: hand-computed cases, and what must hold for every mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.refcoco import masks
from stages.refcoco.masks import MaskError


@st.composite
def pixels(draw: st.DrawFn) -> NDArray[np.bool_]:
    """A small mask (H, W)."""
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    return np.array(draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width))).reshape(
        height, width
    )


def test_the_union_of_two_polygons() -> None:
    """Case 17: the overlap counts once."""
    run_R = masks.from_polygons([[0, 0, 4, 0, 4, 4, 0, 4], [2, 0, 6, 0, 6, 4, 2, 4]], 4, 8)
    assert masks.area(run_R) == 24
    assert masks.decode(run_R, 4, 8).tolist() == [[True] * 6 + [False] * 2] * 4


def test_run_lengths_go_down_the_columns() -> None:
    """Case 18."""
    assert masks.decode(masks.from_counts([2, 1, 3], 2, 3), 2, 3).tolist() == [[False, True, False], [False] * 3]


@pytest.mark.parametrize(
    ("polygon", "height", "width", "packed"),
    [
        # Printed by pycocotools 2.0 for the same polygons.
        ([1.5, 1.5, 7.25, 2.0, 4.0, 8.75], 10, 10, "f0283M1ON2Mo0"),
        ([-3.0, -3.0, 4.0, -3.0, 4.0, 30.0], 12, 9, "0`1l1"),
    ],
)
def test_polygons_as_coco_rasterises_them(polygon: list[float], height: int, width: int, packed: str) -> None:
    run_R = masks.from_polygons([polygon], height, width)
    assert int(run_R.sum()) == height * width
    assert masks.to_packed(run_R) == packed


@given(pixels())
def test_every_form_holds_the_same_mask(mask_HW: NDArray[np.bool_]) -> None:
    height, width = mask_HW.shape
    run_R = masks.from_mask(mask_HW)
    assert np.array_equal(masks.decode(run_R, height, width), mask_HW)
    assert np.array_equal(masks.from_packed(masks.to_packed(run_R), height, width), run_R)
    assert np.array_equal(masks.from_counts(run_R.tolist(), height, width), run_R)
    assert masks.area(run_R) == mask_HW.sum()


@given(pixels(), st.integers(1, 6), st.integers(1, 6))
def test_a_small_mask_is_the_nearest_pixel(mask_HW: NDArray[np.bool_], height: int, width: int) -> None:
    run_F, start_M = masks.flat([masks.from_mask(mask_HW), masks.from_mask(~mask_HW)])
    size_M2 = np.array([mask_HW.shape] * 2)
    small_Mhw = masks.decode_small(run_F, start_M, size_M2, height, width)
    row_h = (2 * np.arange(height) + 1) * mask_HW.shape[0] // (2 * height)
    column_w = (2 * np.arange(width) + 1) * mask_HW.shape[1] // (2 * width)
    nearest_hw = mask_HW[np.ix_(row_h, column_w)]
    assert np.array_equal(small_Mhw, np.stack([nearest_hw, ~nearest_hw]))


@given(pixels())
def test_areas_and_boxes(mask_HW: NDArray[np.bool_]) -> None:
    run_F, start_M = masks.flat([masks.from_mask(mask_HW)])
    area_M, box_M4 = masks.areas_and_boxes(run_F, start_M, np.array([mask_HW.shape[0]]))
    assert area_M[0] == mask_HW.sum()
    if not mask_HW.any():
        assert box_M4[0].tolist() == [0, 0, 0, 0]
        return
    left, top, width, height = box_M4[0].tolist()
    row_N, column_N = np.nonzero(mask_HW)
    assert [left, top] == [column_N.min(), row_N.min()]
    assert [left + width - 1, top + height - 1] == [column_N.max(), row_N.max()]


@given(pixels(), st.integers(0, 2**32 - 1))
def test_intersection_over_union(mask_HW: NDArray[np.bool_], seed: int) -> None:
    other_HW = np.random.default_rng(seed).random(mask_HW.shape) < 0.5
    union = (mask_HW | other_HW).sum()
    expected = (mask_HW & other_HW).sum() / union if union else 0.25
    found = masks.iou(masks.from_mask(mask_HW), masks.from_mask(other_HW), empty=0.25)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("segmentation", "text"),
    [
        ([[0, 0, 1, 1]], "a polygon of 4 numbers; expected an even number of them, for three points or more"),
        ([[0, 0, 1, 1, 2, float("nan")]], "a coordinate that is no place"),
        ([["a", "b"] * 3], "a polygon that is no list of numbers"),
        ({"counts": [1]}, "an RLE without size"),
        ({"size": [4, 5], "counts": [20]}, r"an RLE of size \[4, 5\]; expected that of the image, \[4, 4\]"),
        ({"size": [4, 4], "counts": [3, 4]}, "an RLE of 7 pixels; expected 4 x 4 = 16"),
        ({"size": [4, 4], "counts": [-3, 19]}, "counts that are damaged"),
        ({"size": [4, 4], "counts": [1.5]}, "counts that are no whole numbers"),
        ({"size": [4, 4], "counts": "0P"}, "counts that are damaged"),
        ({"size": [4, 4], "counts": "\u00e9"}, "counts that are damaged"),
        (None, "a segmentation of type NoneType"),
    ],
)
def test_a_segmentation_that_is_none(segmentation: Any, text: str) -> None:
    with pytest.raises(MaskError, match=text):
        masks.read_segmentation(segmentation, 4, 4)


def test_both_forms_of_run_lengths_and_a_list_are_read() -> None:
    """Case 19."""
    mask_HW = np.array([[0, 1], [1, 1]], bool)
    run_R = masks.from_mask(mask_HW)
    packed = masks.to_packed(run_R)
    for value, form in (
        ({"size": [2, 2], "counts": run_R.tolist()}, "rle"),
        ({"size": [2, 2], "counts": packed}, "compressed rle"),
        ({"size": [2, 2], "counts": packed.encode()}, "compressed rle"),
    ):
        found, name = masks.read_segmentation(value, 2, 2)
        assert name == form
        assert np.array_equal(found, run_R)
    assert masks.read_segmentation([], 2, 2)[0].tolist() == [4]  # no polygon: an empty mask, for the gate to refuse
