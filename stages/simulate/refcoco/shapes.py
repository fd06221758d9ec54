"""The categories: outlines of round and angular shapes, and the pixels that lie inside an outline."""

# Shapes: P point of an outline, H row, W column.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stages.refcoco import masks

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Group = Literal["round", "angular"]


def _around(radius_P: Floats, angle_P: Floats) -> Floats:
    """Points (P, 2) at these distances and angles from 0."""
    return np.stack([radius_P * np.cos(angle_P), radius_P * np.sin(angle_P)], axis=1)


def _curve(radius: Callable[[Floats], Floats], points: int = 48) -> Floats:
    angle_P = np.linspace(0, 2 * np.pi, points, endpoint=False)
    return _around(radius(angle_P), angle_P)


def _circle(radius: float) -> Floats:
    return _curve(lambda angle: np.full_like(angle, radius))


def _crescent() -> Floats:
    """A disc of radius 1 without a smaller disc at its right."""
    radius, across = 0.85, 0.5
    x = (1 + across**2 - radius**2) / (2 * across)
    y = np.sqrt(1 - x**2)
    outer = np.linspace(np.arctan2(y, x), 2 * np.pi - np.arctan2(y, x), 36)
    tip = np.arctan2(y, x - across)
    inner = np.linspace(2 * np.pi - tip, tip, 26)[1:-1]
    return np.concatenate(
        [
            np.stack([np.cos(outer), np.sin(outer)], axis=1),
            np.stack([across + radius * np.cos(inner), radius * np.sin(inner)], axis=1),
        ]
    )


def _corners(radii: Sequence[float], first: float = -np.pi / 2) -> Floats:
    """A polygon with its corners at equal angles, the first one up."""
    angle_P = first + np.arange(len(radii)) * 2 * np.pi / len(radii)
    return _around(np.array(radii), angle_P)


def _plus(arm: float = 0.34) -> Floats:
    quarter = np.array([[arm, -1.0], [arm, -arm], [1.0, -arm]])
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    parts = [quarter]
    for _ in range(3):
        parts.append(parts[-1] @ turn)
    return np.concatenate(parts)


@dataclass(frozen=True)
class Category:
    """A kind of shape: its closed outlines about 0 with radius 1, and how far it may be turned.

    A point is inside where it is inside an odd number of outlines.
    """

    group: Group
    outlines: tuple[Floats, ...]
    turn: float = 180.0


CATEGORIES: dict[str, Category] = {
    "ball": Category("round", (_circle(0.9),)),
    "ring": Category("round", (_circle(1.0), _circle(0.52))),
    "egg": Category("round", (_circle(1.0) * [1.05, 0.66],)),
    "moon": Category("round", (_crescent(),)),
    "flower": Category("round", (_curve(lambda angle: 0.6 + 0.42 * np.abs(np.cos(2.5 * angle)), 60),)),
    "square": Category("angular", (_corners([1.1] * 4, np.pi / 4),), turn=12),
    "triangle": Category("angular", (_corners([1.1] * 3),)),
    "diamond": Category("angular", (_corners([1.15, 0.72, 1.15, 0.72]),), turn=12),
    "star": Category("angular", (_corners([1.15, 0.5] * 5),)),
    "cross": Category("angular", (_plus(),), turn=15),
}
#: Number of each category in instances.json.
CATEGORY_IDS = {name: number for number, name in enumerate(CATEGORIES, start=1)}


def placed(category: str, x: float, y: float, radius: float, turn: float) -> tuple[Floats, ...]:
    """Outlines (P, 2) of a shape in the image: x to the right, y down, px to two digits; ``turn`` in degrees."""
    angle = np.deg2rad(turn)
    rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return tuple(np.round(radius * (outline @ rotation) + [x, y], 2) for outline in CATEGORIES[category].outlines)


def inside(outlines: Sequence[Floats], height: int, width: int) -> Mask:
    """Pixels (H, W) inside an odd number of outlines, each by the rule by which COCO's polygons are read."""
    mask_HW = np.zeros((height, width), dtype=bool)
    for outline_P2 in outlines:
        mask_HW ^= masks.decode(masks.from_polygons([outline_P2.ravel()], height, width), height, width)
    return mask_HW
