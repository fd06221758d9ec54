"""Measures of segmentation, from the pixels that prediction and mask share and those that either covers.

Shape suffixes: S sentence, H W pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: IoU from which a prediction counts as a hit, as in the literature on referring segmentation.
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)


def overlaps(mask_SHW: NDArray[np.bool_], other_SHW: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pixels of intersection and of union of pairs of masks, (S,) each."""
    flat = mask_SHW.reshape(len(mask_SHW), -1).astype(bool), other_SHW.reshape(len(other_SHW), -1).astype(bool)
    return (flat[0] & flat[1]).sum(axis=1), (flat[0] | flat[1]).sum(axis=1)


def ious(intersection_S: ArrayLike, union_S: ArrayLike, *, empty: float = 0.0) -> NDArray[np.float64]:
    """Intersection over union of each sentence (S,).

    Parameters
    ----------
    intersection_S, union_S
        Pixels.
    empty
        The value where prediction and mask are both empty: 0 in LAVT's convention, 1 in others. A report states it.

    Raises
    ------
    ValueError
        An intersection is larger than its union, or negative.
    """
    shared_S, either_S = np.asarray(intersection_S, np.float64), np.asarray(union_S, np.float64)
    if (shared_S < 0).any() or (shared_S > either_S).any():
        raise ValueError("an intersection lies outside 0 to its union")
    return np.where(either_S > 0, shared_S / np.where(either_S > 0, either_S, 1), empty)


def mean_iou(intersection_S: ArrayLike, union_S: ArrayLike, *, empty: float = 0.0) -> float:
    """mIoU: the mean IoU of the sentences; NaN of none at all."""
    found_S = ious(intersection_S, union_S, empty=empty)
    return float(found_S.mean()) if len(found_S) else float("nan")


def overall_iou(intersection_S: ArrayLike, union_S: ArrayLike, *, empty: float = 0.0) -> float:
    """oIoU: pixels of all intersections by those of all unions; ``empty`` where no union has a pixel."""
    either = float(np.sum(union_S))
    return float(np.sum(intersection_S)) / either if either else empty


def precision_at(
    intersection_S: ArrayLike, union_S: ArrayLike, levels: Sequence[float] = LEVELS, *, empty: float = 0.0
) -> dict[float, float]:
    """Prec@X: share of the sentences whose IoU is above each level; NaN of none at all."""
    found_S = ious(intersection_S, union_S, empty=empty)
    return {level: float((found_S > level).mean()) if len(found_S) else float("nan") for level in levels}
