"""Pictures: colours that are their names, a background that is none of them, and textures of photographs."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from stages.errors import DataError
from stages.simulate.refcoco import drawing, scenes, textures
from stages.simulate.refcoco.options import Look
from tests.simulate.refcoco.conftest import shape

CALM = Look(grain=0, light=0, noise=0)


def photograph(height: int = 80, width: int = 100) -> textures.Bytes:
    rng = np.random.default_rng(5)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def middle(words: str, seed: int) -> tuple[float, float, float]:
    """Hue in degrees, saturation and value of the middle of a large object."""
    scene = scenes.paint(100, 100, [shape(words, 50, 50, 30)])
    image_HWC = drawing.draw(np.random.default_rng(seed), scene, CALM, [])
    red, green, blue = image_HWC[45:56, 45:56].mean(axis=(0, 1)) / 255
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    return 360 * hue, saturation, value


@pytest.mark.parametrize(
    ("colour", "low", "high"),
    [
        ("red", -12, 8),
        ("orange", 18, 38),
        ("yellow", 46, 66),
        ("green", 100, 145),
        ("blue", 205, 235),
        ("purple", 265, 295),
    ],
)
def test_a_colour_has_its_hue(colour: str, low: float, high: float) -> None:
    for seed in range(5):
        hue, saturation, value = middle(f"large {colour} plain ball", seed)
        assert low < (hue - 360 if hue > 340 else hue) < high
        assert saturation > 0.45
        assert value > 0.35


def test_white_is_light_and_black_is_dark_in_every_pattern() -> None:
    for pattern in scenes.PATTERNS:
        _, saturation, value = middle(f"large white {pattern} ball", 1)
        assert saturation < 0.15
        assert value > 0.7
        assert middle(f"large black {pattern} ball", 1)[2] < 0.35


def test_a_pattern_has_two_shades_and_a_plain_object_one() -> None:
    place = np.linspace(-1, 1, 400)
    right, down = (grid.ravel() for grid in np.meshgrid(place, place))
    shares = {}
    for pattern in scenes.PATTERNS:
        one = shape(f"large blue {pattern} ball", 50, 50, 30)
        shades, counts = np.unique(
            drawing.surface(np.random.default_rng(0), one, right, down), axis=0, return_counts=True
        )
        shares[pattern] = counts.min() / counts.sum() if len(shades) == 2 else 0.0
    assert shares["plain"] == 0
    assert shares["striped"] == pytest.approx(0.5, abs=0.05)
    assert shares["checked"] == pytest.approx(0.5, abs=0.05)
    assert shares["spotted"] == pytest.approx(np.pi * 0.33**2, abs=0.05)


@pytest.mark.parametrize("photographs", [[], [photograph()]])
def test_a_background_is_neither_white_nor_black_nor_bright_in_colour(photographs: list[textures.Bytes]) -> None:
    for seed in range(10):
        image_HWC = drawing.background(np.random.default_rng(seed), 70, 90, photographs)
        assert image_HWC.shape == (70, 90, 3)
        assert image_HWC.max(axis=2).min() > 0.2
        assert image_HWC.max() < 0.85
        assert ((image_HWC.max(axis=2) - image_HWC.min(axis=2)) / image_HWC.max(axis=2)).mean() < 0.45


def test_an_object_is_drawn_where_its_mask_is() -> None:
    star, ball = shape("large red plain star", 40, 40, 18), shape("large blue plain ball", 55, 50, 18)
    scene = scenes.paint(90, 90, [star, ball])
    image_HWC = drawing.draw(np.random.default_rng(2), scene, CALM, []).astype(int)
    red_HW, blue_HW = (image_HWC[..., 0] - image_HWC[..., 2] > 60), (image_HWC[..., 2] - image_HWC[..., 0] > 60)
    for drawn_HW, visible_HW in zip((red_HW, blue_HW), scene.visible_OHW, strict=True):
        assert (drawn_HW & visible_HW).sum() / (drawn_HW | visible_HW).sum() > 0.9


def test_noise_has_at_most_its_deviation() -> None:
    flat = np.full((80, 80, 3), 0.5, dtype=np.float32)
    deviations = [
        drawing.finish(np.random.default_rng(seed), flat, Look(light=0, noise=0.1), 0.0).std() / 255
        for seed in range(20)
    ]
    assert max(deviations) < 0.105
    assert max(deviations) > 0.05


def test_quality_decides_the_size_of_a_file() -> None:
    image = photograph()
    low, high = drawing.jpeg(image, 30), drawing.jpeg(image, 95)
    assert len(low) < len(high)
    with PIL.Image.open(io.BytesIO(high)) as opened:
        assert (opened.format, opened.mode, opened.size) == ("JPEG", "RGB", (100, 80))


def test_without_photographs_a_texture_is_between_two_colours() -> None:
    image_HWC = textures.texture(np.random.default_rng(0), 30, 50, [])
    assert image_HWC.shape == (30, 50, 3)
    assert np.linalg.matrix_rank(image_HWC.reshape(-1, 3) - image_HWC[0, 0], tol=1e-3) == 1


@pytest.mark.parametrize("size", [(64, 96), (200, 64), (64, 64)])
def test_a_cut_of_one_colour_has_this_colour(size: tuple[int, int]) -> None:
    plain = np.zeros((70, 120, 3), dtype=np.uint8) + np.array([51, 102, 204], dtype=np.uint8)
    image_HWC = textures.texture(np.random.default_rng(1), *size, [plain])
    assert image_HWC.shape == (*size, 3)
    np.testing.assert_allclose(image_HWC.reshape(-1, 3), np.tile([0.2, 0.4, 0.8], (size[0] * size[1], 1)), atol=1e-6)


def test_photographs_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    np.savez(tmp_path / "below" / "b.npz", rgb=photograph(), masks=np.zeros(3))
    PIL.Image.fromarray(photograph(70, 64)).save(tmp_path / "a.png")
    (tmp_path / "manifest.json").write_text("{}")
    first, second = textures.photographs(tmp_path)
    np.testing.assert_array_equal(first, photograph(70, 64))
    np.testing.assert_array_equal(second, photograph())
    assert textures.photographs(None) == []
    assert len(textures.photographs(tmp_path / "a.png")) == 1


def nothing(folder: Path) -> Path:
    return folder / "none"


def empty(folder: Path) -> Path:
    return folder


def text(folder: Path) -> Path:
    (folder / "a.jpg").write_text("no picture")
    return folder


def other_array(folder: Path) -> Path:
    np.savez(folder / "a.npz", image=photograph())
    return folder


def objects(folder: Path) -> Path:
    np.savez(folder / "a.npz", rgb=np.array([{"a": 1}], dtype=object))
    return folder


def real_numbers(folder: Path) -> Path:
    np.savez(folder / "a.npz", rgb=photograph() / 255)
    return folder


def tiny(folder: Path) -> Path:
    PIL.Image.fromarray(photograph(20, 30)).save(folder / "a.png")
    return folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (nothing, r"none: found no such file or folder; expected photographs"),
        (empty, r"found no photograph; expected photographs \(\.npz, \.jpg"),
        (text, r"a\.jpg: found no photograph \(cannot identify image file"),
        (other_array, r"a\.npz: found no photograph \(.*rgb.*expected an array 'rgb' of"),
        (objects, r"a\.npz: found no photograph \(Object arrays cannot be loaded"),
        (
            real_numbers,
            r"a\.npz: found an array float64 \(80, 100, 3\); expected an array 'rgb' of \(height, width, 3\)",
        ),
        (tiny, r"a\.png: found an array uint8 \(20, 30, 3\); expected an image of .* at least 64 px"),
    ],
)
def test_what_is_no_photograph(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        textures.photographs(make(tmp_path))
    assert "look.textures under refcoco.simulated in params.yaml" in str(caught.value)
