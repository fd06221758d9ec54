"""Small settings and made-up scenes for the tests of L2L: coloured squares, named by their colour."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from stages.accepted.refcoco import Accepted
from stages.refcoco.masks import flat, from_mask
from stages.systems.l2l.pictures import load
from stages.systems.l2l.priors import Priors
from stages.systems.l2l.settings import Train
from stages.systems.l2l.study import Study

SIDE = 16
BLOCK: dict[str, Any] = {
    "sets": ["made"],
    "shares": [0.5],
    "arms": ["burn_in", "learned"],
    "prior": {"provider": "grounder", "side": 32},
    "fusion": 0.5,
    "decay": 0.9,
    "network": {
        "side": SIDE, "widths": [4, 4, 8], "words": 8, "groups": 2, "tokens": 6, "guidance": "maps", "rho": 0.5,
    },
    "views": {"shift": 0.1, "zoom": 0.1, "light": 0.1, "noise": 0.02, "words": 0.1, "prior": 0.1},
    "optimiser": {"learning_rate": 0.01, "weight_decay": 0.01, "warmup": 1, "dice": 1, "levels": 0.3},
    "burn_in": {"steps": 4, "half_steps": 2, "batch": 4, "check": 2, "decay": 0.9},
    "self_training": {
        "rounds": 2, "steps": 2, "labelled": 3, "unlabelled": 4, "weight": 1, "learning_rate": 0.005,
    },
    "selection": {
        "width": 4, "steps": 10, "batch": 8, "learning_rate": 0.01, "weight_decay": 0.01, "entropy": 0.01,
        "baseline": 0.9, "views": 2, "words": 6, "cost": 0.5, "pixel_cost": 0.5, "check": 5, "agreement": 0.5,
        "thresholds": [0.6, 0.8],
    },
    "validation": 6,
    "empty": 0,
}  # fmt: skip
COLOURS = {"red": (210, 30, 40), "green": (40, 150, 60), "blue": (40, 80, 210)}


def settings(**changes: Any) -> Train:
    """Settings with some blocks changed."""
    return Train.model_validate(
        BLOCK
        | {
            name: BLOCK[name] | value if isinstance(value, dict) and "provider" not in value else value
            for name, value in changes.items()
        }
    )


SETTINGS = settings()


def made(images: int = 14, *, seed: int = 0, height: int = 40, width: int = 32) -> Accepted:
    """A set of two squares an image, each named by its colour; half of the 8 or more training images are labelled."""
    rng = np.random.default_rng(seed)
    parts = ["train"] * (images - 6) + ["validation"] * 3 + ["testA"] * 2 + ["testB"]
    encoded, masks, owners, words = [], [], [], []
    for image in range(images):
        canvas = np.full((height, width, 3), 110, np.uint8)
        for place, name in enumerate(rng.permutation(list(COLOURS))[:2]):
            top, left = place * height // 2 + rng.integers(0, height // 2 - 10), rng.integers(2, width - 12)
            mask = np.zeros((height, width), bool)
            mask[top : top + 10, left : left + 10] = True
            canvas[mask] = COLOURS[name]
            masks.append(from_mask(mask))
            owners.append(image)
            words.append((str(name), "square"))
        encoded.append(png(canvas))
    run_F, start_O1 = flat(masks)
    count = len(masks)
    trained = images - 6
    return Accepted(
        key="made",
        image_id_I=np.arange(images) + 100,
        image_I=tuple(encoded),
        size_I2=np.tile([height, width], (images, 1)),
        object_id_O=np.arange(count),
        image_O=np.array(owners),
        category_O=np.zeros(count, np.int64),
        run_F=run_F,
        start_O1=start_O1,
        categories=("square",),
        sentence_id_S=np.arange(count) + 1000,
        sentence_S=tuple(" ".join(each) for each in words),
        tokens_S=tuple(words),
        object_S=np.arange(count),
        record_S=tuple(f"made/{o}" for o in range(count)),
        part_S=np.array([parts[image] for image in owners]),
        about={"simulated": True},
        _labelled=pl.DataFrame(
            {
                "set": "made",
                "image_id": np.arange(trained) + 100,
                "share": 0.5,
                "draw": 0,
                "labelled": np.arange(trained) % 2 == 0,
            }
        ),
    )


def png(image_HWC: NDArray[np.uint8]) -> bytes:
    """An encoded image."""
    stream = io.BytesIO()
    Image.fromarray(image_HWC).save(stream, "PNG")
    return stream.getvalue()


def perfect(accepted: Accepted, side: int = SIDE) -> Priors:
    """Priors that are the true masks."""
    masks = load(accepted, side, 6).mask_OHW[accepted.object_S]
    return Priors(255 * masks, np.ones(len(masks), np.float32))


def study(train: Train = SETTINGS, *, scratch: Path | None = None, priors: Priors | None = None) -> Study:
    """A study of the made-up set."""
    accepted = made()
    pictures = load(accepted, train.network.side, train.network.tokens)
    return Study(accepted, pictures, priors or perfect(accepted), train, 0.5, 0, scratch)
