"""A scene: shapes painted one over the other, and what can be measured of them exactly."""

# Shapes: O object in painting order (the last one is in front), H row, W column.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.simulate.refcoco import shapes
from stages.simulate.refcoco.options import Scene as Options
from stages.simulate.refcoco.shapes import CATEGORIES, Floats, Mask

Ints = NDArray[np.int64]
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "white", "black")
PATTERNS = ("plain", "striped", "spotted", "checked")
#: Most objects are plain, as most sentences then need another word.
PATTERN_SHARES = (0.55, 0.15, 0.15, 0.15)
#: Radius as a share of the image's shorter side; no size lies between two words.
SIZES = {"small": (0.08, 0.1), "medium": (0.125, 0.15), "large": (0.185, 0.215)}
#: Places that are tried for one object before the scene is begun again.
TRIES = 40


@dataclass(frozen=True)
class Shape:
    """One object: its words, and where it is; x, y of its middle and its radius in px, its turn in degrees."""

    category: str
    colour: str
    pattern: str
    size: str
    x: float
    y: float
    radius: float
    turn: float


@dataclass(frozen=True)
class Scene:
    """The objects of an image.

    Attributes
    ----------
    full_OHW, visible_OHW
        Pixels of each object, and those that no object in front hides; the latter are disjoint.
    """

    height: int
    width: int
    shapes: tuple[Shape, ...]
    full_OHW: Mask
    visible_OHW: Mask

    @property
    def shorter(self) -> int:
        """The shorter side, px."""
        return min(self.height, self.width)


@dataclass(frozen=True)
class Measures:
    """What sentences are judged by.

    Attributes
    ----------
    x_O, y_O
        Middle of the visible pixels, as a share of width and height.
    area_O, full_area_O
        Visible pixels, and all of them.
    gap_OO
        Distance between the boxes of two objects, as a share of the shorter side; 0 where they overlap.
    hidden_OO
        Pixels of the first object at which the second is what one sees.
    """

    x_O: Floats
    y_O: Floats
    area_O: Ints
    full_area_O: Ints
    gap_OO: Floats
    hidden_OO: Ints


def paint(height: int, width: int, objects: Sequence[Shape]) -> Scene:
    """Put objects into a frame, each over those before it."""
    scene = Scene(height, width, (), *np.zeros((2, 0, height, width), dtype=bool))
    for shape in objects:
        scene = over(scene, shape)
    return scene


def over(scene: Scene, shape: Shape) -> Scene:
    """The scene with one more object, in front of all others."""
    outlines = shapes.placed(shape.category, shape.x, shape.y, shape.radius, shape.turn)
    full_1HW = shapes.inside(outlines, scene.height, scene.width)[None]
    return Scene(
        scene.height,
        scene.width,
        (*scene.shapes, shape),
        np.concatenate([scene.full_OHW, full_1HW]),
        np.concatenate([scene.visible_OHW & ~full_1HW, full_1HW]),
    )


def box(mask_HW: Mask) -> tuple[int, int, int, int]:
    """First column, first row, width and height of the pixels of a mask that has some."""
    rows, columns = np.flatnonzero(mask_HW.any(axis=1)), np.flatnonzero(mask_HW.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1] - columns[0] + 1), int(rows[-1] - rows[0] + 1)


def measure(scene: Scene) -> Measures:
    """Measure the objects of a scene, each of which has a visible pixel."""
    count = len(scene.shapes)
    area_O = scene.visible_OHW.sum(axis=(1, 2))
    column_OW, row_OH = scene.visible_OHW.sum(axis=1), scene.visible_OHW.sum(axis=2)
    boxes = np.array([box(mask_HW) for mask_HW in scene.visible_OHW])
    low_O2, high_O2 = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    apart_OO2 = np.maximum(low_O2[:, None] - high_O2[None], low_O2[None] - high_O2[:, None]).clip(min=0)
    flat_OP = scene.full_OHW.reshape(count, -1).astype(np.float32)
    seen_OP = scene.visible_OHW.reshape(count, -1).astype(np.float32)
    return Measures(
        x_O=column_OW @ (np.arange(scene.width) + 0.5) / area_O / scene.width,
        y_O=row_OH @ (np.arange(scene.height) + 0.5) / area_O / scene.height,
        area_O=area_O,
        full_area_O=scene.full_OHW.sum(axis=(1, 2)),
        gap_OO=np.hypot(apart_OO2[..., 0], apart_OO2[..., 1]) / scene.shorter,
        hidden_OO=np.rint(flat_OP @ seen_OP.T).astype(np.int64),
    )


def draw(rng: np.random.Generator, options: Options) -> Scene:
    """Draw a scene: objects that resemble each other, some of them partly hidden."""
    low, high = options.sides_px
    height, width = (int(side) for side in rng.integers(low, high + 1, 2))
    while True:
        scene = _attempt(rng, options, height, width)
        if scene is not None:
            return scene


def _attempt(rng: np.random.Generator, options: Options, height: int, width: int) -> Scene | None:
    """One attempt; None where an object found no place."""
    scene = paint(height, width, ())
    for _ in range(int(rng.integers(options.objects[0], options.objects[1] + 1))):
        words = _words(rng, options, scene.shapes)
        for _ in range(TRIES):
            tried = over(scene, _place(rng, options, scene.shapes, words, height, width))
            if _clear(tried, options.least_visible):
                scene = tried
                break
        else:
            return None
    return scene


def _words(rng: np.random.Generator, options: Options, there: tuple[Shape, ...]) -> tuple[str, str, str, str]:
    """Category, colour, pattern and size of a further object."""
    category, colour = str(rng.choice(list(CATEGORIES))), str(rng.choice(COLOURS))
    if there and rng.random() < options.same_kind:
        category = there[rng.integers(len(there))].category
    if there and rng.random() < options.same_colour:
        colour = there[rng.integers(len(there))].colour
    return category, colour, str(rng.choice(PATTERNS, p=PATTERN_SHARES)), str(rng.choice(list(SIZES)))


def _place(
    rng: np.random.Generator,
    options: Options,
    there: tuple[Shape, ...],
    words: tuple[str, str, str, str],
    height: int,
    width: int,
) -> Shape:
    category, colour, pattern, size = words
    radius = float(rng.uniform(*SIZES[size])) * min(height, width)
    turn = float(rng.uniform(-1, 1)) * CATEGORIES[category].turn
    x, y = rng.uniform(0.8 * radius, [width - 0.8 * radius, height - 0.8 * radius])
    if there and rng.random() < options.touching:
        other = there[rng.integers(len(there))]
        angle, distance = rng.uniform(0, 2 * np.pi), rng.uniform(0.6, 1.1) * (radius + other.radius)
        x = np.clip(other.x + distance * np.cos(angle), 0.8 * radius, width - 0.8 * radius)
        y = np.clip(other.y + distance * np.sin(angle), 0.8 * radius, height - 0.8 * radius)
    return Shape(category, colour, pattern, size, float(x), float(y), radius, turn)


def _clear(scene: Scene, least: float) -> bool:
    """Whether enough of each object is visible, and no two objects of one colour run into one."""
    visible_O, full_O = scene.visible_OHW.sum(axis=(1, 2)), scene.full_OHW.sum(axis=(1, 2))
    if (visible_O < least * full_O).any() or visible_O.min() == 0:
        return False
    new = scene.shapes[-1]
    alike = [one.colour == new.colour for one in scene.shapes[:-1]]
    return not (scene.full_OHW[:-1][alike] & scene.full_OHW[-1]).any()
