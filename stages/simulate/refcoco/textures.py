"""Textures: cuts of photographs where there are some, cloudy noise else."""

# Shapes: H row, W column, C red, green and blue.

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError

Image = NDArray[np.float32]
Bytes = NDArray[np.uint8]
SUFFIXES = (".npz", ".jpg", ".jpeg", ".png")
ARRAY = "rgb"
#: Least side of a photograph, px.
LEAST = 64
REMEDY = "Correct look.textures under refcoco.simulated in params.yaml, or set it to null."


def photographs(path: Path | None) -> list[Bytes]:
    """Read the photographs (H, W, C) of a file or of a folder and those below it; none for None.

    Raises
    ------
    DataError
        There is none, or a file is no photograph.
    """
    if path is None:
        return []
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES) if path.is_dir() else [path]
    if not files or not path.exists():
        raise DataError(
            path,
            found="no photograph" if path.exists() else "no such file or folder",
            expected=f"photographs ({', '.join(SUFFIXES)})",
            remedy=REMEDY,
        )
    return [_read(file) for file in files]


def _read(file: Path) -> Bytes:
    import PIL.Image

    try:
        if file.suffix.lower() == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                image: Any = arrays[ARRAY]
        else:
            with PIL.Image.open(file) as opened:
                image = np.asarray(opened.convert("RGB"))
    # Anything can be raised by a file that is not what it claims to be.
    except Exception as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(file, found=f"no photograph ({told})", expected=_expected(file), remedy=REMEDY) from None
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or min(image.shape[:2]) < LEAST:
        raise DataError(file, found=f"an array {image.dtype} {image.shape}", expected=_expected(file), remedy=REMEDY)
    return np.asarray(image, dtype=np.uint8)


def _expected(file: Path) -> str:
    array = f"an array {ARRAY!r} of" if file.suffix.lower() == ".npz" else "an image of"
    return f"{array} (height, width, 3) bytes, at least {LEAST} px high and wide"


def texture(rng: np.random.Generator, height: int, width: int, photographs: Sequence[Bytes]) -> Image:
    """A texture (H, W, C) from 0 to 1: a cut of a photograph of any size, or cloudy noise in two colours."""
    if not photographs:
        mix_HW1 = cloud(rng, height, width)[..., None]
        first, second = rng.random((2, 3)).astype(np.float32)
        return np.asarray(mix_HW1 * first + (1 - mix_HW1) * second, dtype=np.float32)
    import PIL.Image

    photograph = photographs[int(rng.integers(len(photographs)))]
    side = rng.uniform(0.3, 0.9) * min(photograph.shape[:2])
    cut_width, cut_height = side * width / max(height, width), side * height / max(height, width)
    left = rng.uniform(0, photograph.shape[1] - cut_width)
    top = rng.uniform(0, photograph.shape[0] - cut_height)
    cut = PIL.Image.fromarray(photograph).resize(
        (width, height), PIL.Image.Resampling.BILINEAR, box=(left, top, left + cut_width, top + cut_height)
    )
    flipped = np.asarray(cut, dtype=np.float32)[:: rng.choice([-1, 1]), :: rng.choice([-1, 1])]
    return np.asarray(flipped / 255, dtype=np.float32)


def cloud(rng: np.random.Generator, height: int, width: int) -> Image:
    """Noise (H, W) from 0 to 1 with coarse and fine parts."""
    noise_HW = np.zeros((height, width), dtype=np.float32)
    for cells, weight in ((3, 0.5), (8, 0.3), (24, 0.2)):
        coarse = rng.random((cells, cells), dtype=np.float32)
        noise_HW += weight * (_between(height, cells) @ coarse @ _between(width, cells).T)
    low, high = noise_HW.min(), noise_HW.max()
    return np.asarray((noise_HW - low) / (high - low), dtype=np.float32)


def _between(points: int, cells: int) -> Image:
    """Weights (points, cells) of linear interpolation between cells."""
    place = np.linspace(0, cells - 1, points)
    return np.asarray(np.maximum(0, 1 - np.abs(place[:, None] - np.arange(cells))), dtype=np.float32)
