"""The offline prior: a weak grounder that knows words for colour, size and shape, and what an image shows.

It seeks regions of one colour, measures them, and scores each by the first word of each kind in the sentence. It has
seen no mask and no sentence before, and it knows neither where left is nor what "next to" means.

Shape suffixes: H W pixels, C red green blue, K colour, R region, F feature of a region's form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
#: Colour -> red, green, blue of a typical one, as people name them.
COLOURS = {
    "red": (200, 30, 40),
    "orange": (235, 130, 30),
    "yellow": (235, 220, 50),
    "green": (50, 150, 60),
    "blue": (50, 90, 200),
    "purple": (130, 60, 160),
    "pink": (240, 150, 180),
    "brown": (120, 75, 40),
    "grey": (128, 128, 128),
    "white": (245, 245, 245),
    "black": (20, 20, 25),
}
OTHER_NAMES = {"violet": "purple", "gray": "grey", "tan": "brown", "blonde": "yellow"}
COLOUR_WORDS = {name: name for name in COLOURS} | OTHER_NAMES
SIZE_WORDS = {
    **dict.fromkeys(("large", "big", "largest", "biggest", "tall", "huge"), 1),
    **dict.fromkeys(("small", "little", "smallest", "tiny", "tiniest", "short"), -1),
}
#: Form -> share of the box that is filled, hole as a share of the filled region, longer by shorter axis, roundness.
FORMS = {
    "disc": (0.78, 0.0, 1.0, 1.0),
    "ring": (0.5, 0.4, 1.0, 0.75),
    "oval": (0.75, 0.0, 1.6, 0.95),
    "crescent": (0.5, 0.0, 1.7, 0.6),
    "square": (0.9, 0.0, 1.0, 0.95),
    "triangle": (0.55, 0.0, 1.1, 0.8),
    "diamond": (0.55, 0.0, 1.3, 0.9),
    "star": (0.42, 0.0, 1.0, 0.6),
    "cross": (0.56, 0.0, 1.0, 0.7),
    "blossom": (0.65, 0.0, 1.0, 0.85),
    "upright": (0.6, 0.0, 2.2, 0.7),
}
FORM_WORDS = {
    **dict.fromkeys(("disc", "ball", "circle", "orange", "clock", "frisbee", "pizza", "plate"), "disc"),
    **dict.fromkeys(("ring", "donut", "hoop", "tire", "wheel"), "ring"),
    **dict.fromkeys(("oval", "egg", "ellipse"), "oval"),
    **dict.fromkeys(("crescent", "moon", "banana"), "crescent"),
    **dict.fromkeys(("square", "box", "tv", "screen", "laptop", "book"), "square"),
    **dict.fromkeys(("triangle",), "triangle"),
    **dict.fromkeys(("diamond", "rhombus", "kite"), "diamond"),
    **dict.fromkeys(("star",), "star"),
    **dict.fromkeys(("cross", "plus"), "cross"),
    **dict.fromkeys(("flower", "blossom"), "blossom"),
    **dict.fromkeys(("person", "man", "woman", "guy", "girl", "lady", "boy", "giraffe", "bottle"), "upright"),
}
#: A region of which less than this share is left without its edge is an edge itself.
CORE = 0.1
#: How far a form may be off, for each of its features.
FORM_WIDTH = (0.12, 0.15, 0.3, 0.15)
#: Regions below this share of the image, or above the second, are none.
SMALLEST, LARGEST = 0.004, 0.5
#: Colours that lightness tells apart. A region that makes up more of the rim than the second is background.
HUELESS, RIM = ("grey", "white", "black", "brown"), 0.25
#: What a kind of word may weigh against: a region that fits one word not at all keeps this much.
DOUBT = 0.08
#: A colour that is so far from that of the border stands out.
APART = 0.5


@dataclass(frozen=True)
class Regions:
    """Regions of one image.

    Attributes
    ----------
    mask_RHW, colour_RK, area_R, form_RF, apart_R
        Pixels; how well each colour fits; share of the image; features of the form as in ``FORMS``; how far the colour
        is from that of the image's border.
    """

    mask_RHW: NDArray[np.bool_]
    colour_RK: Floats
    area_R: Floats
    form_RF: Floats
    apart_R: Floats


def regions(image_HWC: NDArray[np.uint8]) -> Regions:
    """Regions of one colour, but those that the image's border runs through."""
    from scipy import ndimage

    seen_HWC = perceived(image_HWC)
    colour_HWK = colour_fit(seen_HWC)
    named_HW = colour_HWK.argmax(axis=2)
    height, width = named_HW.shape
    masks = []
    for colour in np.unique(named_HW):
        label_HW, count = ndimage.label(named_HW == colour)
        area_R = np.bincount(label_HW.ravel(), minlength=count + 1)[1:]
        rim_R = np.bincount(rim(label_HW), minlength=count + 1)[1:]
        kept = (area_R >= SMALLEST * height * width) & (area_R <= LARGEST * height * width)
        kept &= rim_R <= RIM * 2 * (height + width)
        boxes = ndimage.find_objects(label_HW)
        for region in np.flatnonzero(kept):
            box_HW = label_HW[boxes[region]] == region + 1
            if ndimage.binary_erosion(box_HW).sum() >= CORE * area_R[region]:
                mask_HW = np.zeros((height, width), bool)
                mask_HW[boxes[region]] = box_HW
                masks.append(mask_HW)
    mask_RHW = np.array(masks, bool).reshape(-1, height, width)
    flat_RN = mask_RHW.reshape(len(mask_RHW), height * width).astype(np.float32)
    total_R1 = flat_RN.sum(axis=1, keepdims=True).clip(min=1)
    border_C = np.median(seen_HWC.reshape(-1, 3)[rim(np.arange(height * width).reshape(height, width))], axis=0)
    mean_RC = flat_RN @ seen_HWC.reshape(height * width, -1) / total_R1
    return Regions(
        mask_RHW,
        (flat_RN @ colour_HWK.reshape(height * width, -1) / total_R1).astype(np.float32),
        (total_R1[:, 0] / (height * width)).astype(np.float32),
        np.array([form(mask_HW) for mask_HW in mask_RHW], np.float32).reshape(-1, 4),
        np.asarray(np.abs(mean_RC - border_C).max(axis=1), np.float32),
    )


def rim(value_HW: NDArray[np.int64]) -> NDArray[np.int64]:
    """Values along the four edges."""
    return np.concatenate([value_HW[0], value_HW[-1], value_HW[:, 0], value_HW[:, -1]])


def perceived(image_HWC: NDArray[np.uint8]) -> Floats:
    """Lightness and two opponent colours as :func:`opponent` has them; a blur takes the grain away."""
    from scipy import ndimage

    return opponent(ndimage.uniform_filter(image_HWC.astype(np.float32) / 255, size=(3, 3, 1)))


def opponent(rgb: NDArray[np.floating]) -> Floats:
    """Lightness, red against green, yellow against blue; the latter two by brightness: shade changes neither."""
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    bright = np.maximum(rgb.max(axis=-1), 0.25)
    light = 0.3 * red + 0.59 * green + 0.11 * blue
    return np.stack([light, (red - green) / bright, ((red + green) / 2 - blue) / bright], axis=-1).astype(np.float32)


def colour_fit(seen_HWC: Floats) -> Floats:
    """How well each colour of ``COLOURS`` fits each pixel, sum 1, (H, W, K)."""
    typical_KC = opponent(np.array(list(COLOURS.values()), np.float64) / 255)
    weight_KC = np.where(np.isin(list(COLOURS), HUELESS)[:, None], [1.0, 1.2, 1.2], [0.4, 1.0, 1.0])
    off_HWK = np.stack(
        [
            (((seen_HWC - typical_C) * weight_C.astype(np.float32)) ** 2).sum(axis=2)
            for typical_C, weight_C in zip(typical_KC, weight_KC, strict=True)
        ],
        axis=2,
    )
    fit_HWK = np.exp(-off_HWK / (2 * 0.15**2)) + 1e-6
    return np.asarray(fit_HWK / fit_HWK.sum(axis=2, keepdims=True), np.float32)


def form(mask_HW: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """Features of a region's form, as in ``FORMS``."""
    from scipy import ndimage

    row_N, column_N = np.nonzero(mask_HW)
    top, left = row_N.min(), column_N.min()
    box_HW = np.pad(mask_HW[top : row_N.max() + 1, left : column_N.max() + 1], 1)
    filled_HW = ndimage.binary_fill_holes(box_HW)
    area, solid = int(box_HW.sum()), int(filled_HW.sum())
    covered = (box_HW.shape[0] - 2) * (box_HW.shape[1] - 2)
    if area > 2:
        spread = np.linalg.eigvalsh(np.cov(np.stack([row_N, column_N])) + np.eye(2) / 12)
        longer = float(np.sqrt(spread[1] / max(spread[0], 1e-6)))
    else:
        longer = 1.0
    inner = int(ndimage.binary_erosion(filled_HW).sum())
    # A disc of this area has a rim of so many pixels.
    round_rim = 2 * np.sqrt(np.pi * solid)
    return area / covered, 1 - area / solid, min(longer, 3.0), min(1.0, 0.9 * round_rim / max(solid - inner, 1))


def first_words(tokens: Sequence[str]) -> dict[str, str]:
    """The first word for colour, for size, and for a form; later ones are often said of another object."""
    found: dict[str, str] = {}
    for token in tokens:
        word = token.lower()
        for kind, known in (("colour", COLOUR_WORDS), ("size", SIZE_WORDS), ("form", FORM_WORDS)):
            if word in known and kind not in found:
                found[kind] = word
    return found


def scores(found: Regions, tokens: Sequence[str]) -> Floats:
    """How well each region fits the words, sum 1, (R,)."""
    words = first_words(tokens)
    fit_R = DOUBT + np.clip(found.apart_R / APART, 0, 1).astype(np.float64)
    if "colour" in words:
        place = list(COLOURS).index(COLOUR_WORDS[words["colour"]])
        fit_R *= DOUBT + found.colour_RK[:, place]
    if "form" in words:
        typical_F = np.array(FORMS[FORM_WORDS[words["form"]]])
        off_R = (((found.form_RF - typical_F) / FORM_WIDTH) ** 2).sum(axis=1)
        fit_R *= DOUBT + np.exp(-off_R / 4)
    if "size" in words:
        rank_R = np.argsort(np.argsort(found.area_R)) / max(1, len(found.area_R) - 1)
        fit_R *= DOUBT + (rank_R if SIZE_WORDS[words["size"]] > 0 else 1 - rank_R)
    else:
        fit_R *= np.sqrt(found.area_R)  # nobody speaks of a speck
    return np.asarray(fit_R / max(fit_R.sum(), 1e-12), np.float32)


def ground(found: Regions, tokens: Sequence[str], side: int) -> tuple[Floats, float]:
    """The prior of one sentence: a soft map (side, side) and its confidence, the share of the best region.

    The best region counts fully where it is the only one that fits; regions that fit as well share the doubt.
    """
    size = found.mask_RHW.shape[1]
    if not len(found.area_R):
        return np.zeros((side, side), np.float32), 0.0
    score_R = scores(found, tokens)
    map_HW = np.tensordot(score_R, found.mask_RHW.astype(np.float32), axes=1)
    best = float(score_R.max())
    # The likelier of two readings should be on the side of the mask, however many regions share the rest.
    map_HW = np.clip(map_HW / best, 0, 1) ** 1.5 * (0.5 + 0.5 * best)
    return shrunk(map_HW, size, side), best


def shrunk(map_HW: NDArray[np.floating], size: int, side: int) -> Floats:
    """A square map brought to another side by areas or by the nearest pixel."""
    if size % side == 0:
        times = size // side
        return np.asarray(map_HW.reshape(side, times, side, times).mean(axis=(1, 3)), np.float32)
    place = ((np.arange(side) + 0.5) * size / side).astype(np.int64)
    return np.asarray(map_HW[place][:, place], np.float32)
