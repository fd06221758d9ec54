"""Masks as run lengths: from polygons and from COCO's two forms, measured, compared, and decoded on demand.

A mask of height H and width W in pixels is an array of run lengths down its columns, the first of them background
(COCO's RLE, uncompressed). Polygons cover the pixels that COCO's own rasteriser gives them; several of one object are
united. Shape suffixes: R runs, F runs of many masks one after the other, M masks, H W pixels, N points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.refcoco import mask_kernels as kernels

Runs = NDArray[np.uint32]
Mask = NDArray[np.bool_]


class MaskError(ValueError):
    """A segmentation that describes no mask; says what was found and what is expected."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}; expected {expected}")
        self.found, self.expected = found, expected


class Box(NamedTuple):
    """Left, top, width and height in pixels; all zero where a mask is empty."""

    left: int
    top: int
    width: int
    height: int


def read_segmentation(value: Any, height: int, width: int) -> tuple[Runs, str]:
    """Runs of what stands in an annotation's ``segmentation``, and its form.

    Parameters
    ----------
    value
        A list of polygons [x, y, x, y, ...] in pixels, or an RLE with ``size`` and ``counts``, packed or not.
    height, width
        Of the image, in pixels.

    Returns
    -------
    tuple
        Runs, and ``polygon``, ``rle`` or ``compressed rle``.

    Raises
    ------
    MaskError
        It is none of these, or an RLE of another size than the image.
    """
    if isinstance(value, Mapping):
        if "counts" not in value or "size" not in value:
            raise MaskError("an RLE without " + ("counts" if "size" in value else "size"), "size and counts")
        size = value["size"]
        if not isinstance(size, Sequence) or list(size) != [height, width]:
            raise MaskError(f"an RLE of size {size}", f"that of the image, {[height, width]}")
        counts = value["counts"]
        if isinstance(counts, str | bytes):
            return from_packed(counts, height, width), "compressed rle"
        return from_counts(counts, height, width), "rle"
    if isinstance(value, list | tuple):
        return from_polygons(value, height, width), "polygon"
    raise MaskError(f"a segmentation of type {type(value).__name__}", "a list of polygons, or an RLE")


def from_polygons(polygons: Sequence[Any], height: int, width: int) -> Runs:
    """Runs of the union of polygons [x, y, x, y, ...]; raises as :func:`read_segmentation`."""
    found = [_polygon(polygon, height, width) for polygon in polygons]
    if not found:
        return np.array([height * width], np.uint32)
    if len(found) == 1:
        return found[0]
    pixel_N = np.zeros(height * width, np.uint8)
    for run_R in found:
        pixel_N |= kernels.filled(run_R, height * width)
    return kernels.runs_of(pixel_N)


def _polygon(polygon: Any, height: int, width: int) -> Runs:
    try:
        xy_N = np.asarray(polygon, np.float64)
    except (TypeError, ValueError):
        raise MaskError("a polygon that is no list of numbers", "x, y, x, y, ... in pixels") from None
    if xy_N.ndim != 1 or len(xy_N) % 2 or len(xy_N) < 6:
        raise MaskError(f"a polygon of {xy_N.size} numbers", "an even number of them, for three points or more")
    if not np.isfinite(xy_N).all() or np.abs(xy_N).max() > MAX_COORDINATE:
        raise MaskError("a polygon with a coordinate that is no place", f"numbers within {MAX_COORDINATE}")
    return kernels.runs_between(kernels.crossings(xy_N.reshape(-1, 2), height, width))


#: A point farther out than this, in pixels, is no point of a picture.
MAX_COORDINATE = 1e6


def from_counts(counts: Any, height: int, width: int) -> Runs:
    """Runs of an uncompressed RLE; raises as :func:`read_segmentation`."""
    if isinstance(counts, list | tuple) and all(type(count) is int for count in counts):
        run_R = np.array(counts, np.int64)
    else:
        raise MaskError("counts that are no whole numbers", "run lengths in pixels")
    return _checked(run_R, height, width)


def from_packed(text: str | bytes, height: int, width: int) -> Runs:
    """Runs of COCO's packed text; raises as :func:`read_segmentation`."""
    raw = text.encode("latin1", "replace") if isinstance(text, str) else text
    return _checked(kernels.unpacked(np.frombuffer(raw, np.uint8)), height, width)


def _checked(run_R: NDArray[np.int64], height: int, width: int) -> Runs:
    if (run_R < 0).any():
        raise MaskError("counts that are damaged", "run lengths of 0 or more")
    if (total := int(run_R.sum())) != height * width:
        raise MaskError(f"an RLE of {total} pixels", f"{height} x {width} = {height * width}")
    return run_R.astype(np.uint32)


def from_mask(mask_HW: NDArray[Any]) -> Runs:
    """Runs of a mask of pixels."""
    return kernels.runs_of(np.ascontiguousarray(mask_HW.T != 0).reshape(-1).view(np.uint8))


def to_packed(run_R: Runs) -> str:
    """COCO's packed text of runs: the difference to the run two before, 5 bits a character."""
    return kernels.packed(run_R).tobytes().decode("ascii")


def decode(run_R: Runs, height: int, width: int) -> Mask:
    """All pixels of a mask (H, W)."""
    return np.asarray(kernels.filled(run_R, height * width).reshape(width, height).T, bool)


def decode_small(
    run_F: Runs, start_M: NDArray[np.int64], size_M2: NDArray[np.int64], height: int, width: int
) -> NDArray[np.uint8]:
    """Many masks at one size (M, height, width), of 0 and 1, by the nearest pixel.

    Parameters
    ----------
    run_F, start_M
        Runs of the masks one after the other, and where each begins; the last entry of ``start_M`` is the end.
    size_M2
        Height and width of each mask in pixels.
    """
    height_M, width_M = size_M2.T.astype(np.int64)
    return kernels.sampled(run_F, start_M, height_M, width_M, height, width)


def areas_and_boxes(
    run_F: Runs, start_M: NDArray[np.int64], height_M: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pixels of each mask (M,), and its box (M, 4): left, top, width, height; zeros where it is empty."""
    found = kernels.measured(run_F, start_M, height_M)
    return found[:, 0], found[:, 1:]


def area(run_R: Runs) -> int:
    """Pixels of a mask."""
    return int(run_R[1::2].sum())


def iou(run_R: Runs, other_R: Runs, *, empty: float = 0.0) -> float:
    """Intersection over union of two masks of one size; ``empty`` where neither has a pixel."""
    shared = kernels.common(run_R, other_R)
    union = area(run_R) + area(other_R) - shared
    return shared / union if union else empty


def flat(masks: Sequence[Runs]) -> tuple[Runs, NDArray[np.int64]]:
    """Runs of masks one after the other, and where each begins; the last entry is the end."""
    start_M = np.cumsum([0, *(len(run_R) for run_R in masks)], dtype=np.int64)
    return (np.concatenate(masks) if masks else np.zeros(0, np.uint32)), start_M
