"""The picture of a scene: background, patterns, grain, light, noise."""

# Shapes: H row, W column, C red, green and blue; colours and textures from 0 to 1.

from __future__ import annotations

import colorsys
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.simulate.refcoco.options import Look
from stages.simulate.refcoco.scenes import Scene, Shape
from stages.simulate.refcoco.textures import texture

Image = NDArray[np.float32]
Bytes = NDArray[np.uint8]
#: Hue, saturation and value of each colour, and how far each may wander.
COLOURS: dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "red": ((0.99, 0.85, 0.75), (0.012, 0.1, 0.12)),
    "orange": ((0.075, 0.92, 0.92), (0.01, 0.08, 0.08)),
    "yellow": ((0.155, 0.85, 0.92), (0.012, 0.1, 0.08)),
    "green": ((0.34, 0.75, 0.6), (0.04, 0.15, 0.12)),
    "blue": ((0.61, 0.8, 0.75), (0.025, 0.15, 0.15)),
    "purple": ((0.78, 0.65, 0.6), (0.025, 0.12, 0.12)),
    "white": ((0.1, 0.04, 0.97), (0.1, 0.03, 0.03)),
    "black": ((0.6, 0.1, 0.1), (0.3, 0.1, 0.04)),
}
#: Value of the second shade in a pattern, as a share of the colour's; white and black stay light and dark.
SECOND = {"white": 0.6, "black": 3.6}
DARKER = 0.45
#: Share of a pixel that its four neighbours give, as a lens does.
BLUR = 0.12


def draw(rng: np.random.Generator, scene: Scene, look: Look, photographs: Sequence[Bytes]) -> Bytes:
    """Draw a scene (H, W, C)."""
    image_HWC = background(rng, scene.height, scene.width, photographs)
    grain_HW = texture(rng, scene.height, scene.width, photographs).mean(axis=2)
    grain_HW = 1 + look.grain * (grain_HW - grain_HW.mean())
    lamp = rng.uniform(0, 2 * np.pi)
    for shape, visible_HW in zip(scene.shapes, scene.visible_OHW, strict=True):
        rows, columns = np.nonzero(visible_HW)
        right, down = (columns + 0.5 - shape.x) / shape.radius, (rows + 0.5 - shape.y) / shape.radius
        shade = 1 + 0.18 * (right * np.cos(lamp) + down * np.sin(lamp))
        colour_NC = surface(rng, shape, right, down)
        image_HWC[rows, columns] = colour_NC * (shade * grain_HW[rows, columns])[:, None]
    return finish(rng, image_HWC, look, lamp)


def background(rng: np.random.Generator, height: int, width: int, photographs: Sequence[Bytes]) -> Image:
    """A texture in weak colours of middle brightness, from which all colours of objects differ."""
    texture_HWC = texture(rng, height, width, photographs)
    grey_HW1 = texture_HWC.mean(axis=2, keepdims=True)
    tint = np.array(colorsys.hsv_to_rgb(rng.random(), rng.uniform(0, 0.25), 1.0), dtype=np.float32)
    weak_HWC = grey_HW1 + 0.4 * (texture_HWC - grey_HW1)
    return np.asarray((0.28 + rng.uniform(0.25, 0.5) * weak_HWC) * tint, dtype=np.float32)


def surface(rng: np.random.Generator, shape: Shape, right_N: Any, down_N: Any) -> Image:
    """Colours (N, C) of an object at places in radii from its middle: its colour, with a second shade in a pattern."""
    (hue, saturation, value), spread = COLOURS[shape.colour]
    wander = rng.uniform(-1, 1, 3) * spread
    hue, saturation, value = (
        (hue + wander[0]) % 1,
        float(np.clip(saturation + wander[1], 0, 1)),
        float(np.clip(value + wander[2], 0, 1)),
    )
    other = SECOND.get(shape.colour, DARKER) * value
    first, second = (np.array(colorsys.hsv_to_rgb(hue, saturation, v), dtype=np.float32) for v in (value, other))
    angle = np.deg2rad(rng.uniform(0, 180))
    # In px, no finer than can be seen in a small object.
    period = max(5.0, shape.radius * 0.5) / shape.radius
    along = (right_N * np.cos(angle) + down_N * np.sin(angle)) / period
    across = (down_N * np.cos(angle) - right_N * np.sin(angle)) / period
    match shape.pattern:
        case "striped":
            dark_N = along % 1 < 0.5
        case "checked":
            dark_N = (np.floor(2 * along) + np.floor(2 * across)) % 2 == 0
        case "spotted":
            dark_N = np.hypot(along % 1 - 0.5, across % 1 - 0.5) < 0.33
        case _:
            dark_N = np.zeros(len(along), dtype=bool)
    return np.where(dark_N[:, None], second, first)


def finish(rng: np.random.Generator, image_HWC: Image, look: Look, lamp: float) -> Bytes:
    """Light from one side, the blur of a lens, and noise."""
    height, width, _ = image_HWC.shape
    right_W, down_H = np.linspace(-1, 1, width), np.linspace(-1, 1, height)
    strength = rng.uniform(0, look.light) / 2
    light_HW = 1 + strength * (right_W[None] * np.cos(lamp) + down_H[:, None] * np.sin(lamp)) / np.sqrt(2)
    image_HWC = image_HWC * light_HW[..., None].astype(np.float32)
    padded = np.pad(image_HWC, ((1, 1), (1, 1), (0, 0)), mode="edge")
    around_HWC = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    image_HWC = (1 - 4 * BLUR) * image_HWC + BLUR * around_HWC
    image_HWC = image_HWC + rng.uniform(0, look.noise) * rng.standard_normal(image_HWC.shape, dtype=np.float32)
    return np.asarray(np.rint(255 * image_HWC.clip(0, 1)), dtype=np.uint8)


def jpeg(image_HWC: Bytes, quality: int) -> bytes:
    """The image as a JPEG file."""
    import PIL.Image

    stream = io.BytesIO()
    PIL.Image.fromarray(image_HWC).save(stream, format="JPEG", quality=quality)
    return stream.getvalue()
