"""A small folder in REFER's layout, whole or with one thing wrong."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

from PIL import Image

IMAGES = "images/mscoco/images/train2014"
WIDTH, HEIGHT = 24, 16
SQUARE = [2, 3, 10, 3, 10, 9, 2, 9]


def name(image_id: int) -> str:
    return f"COCO_train2014_{image_id:012d}.jpg"


def encoded(image: Image.Image, form: str = "JPEG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def annotation(object_id: int, image_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": object_id,
        "image_id": image_id,
        "category_id": 1,
        "bbox": [2.0, 3.0, 8.0, 6.0],
        "area": 48.0,
        "iscrowd": 0,
        "segmentation": [SQUARE],
    } | changes


def ref(ref_id: int, object_id: int, image_id: int, *sentences: str, **changes: Any) -> dict[str, Any]:
    listed = [
        {"sent_id": 100 * ref_id + place, "sent": sentence, "raw": sentence.upper(), "tokens": sentence.split()}
        for place, sentence in enumerate(sentences)
    ]
    return {
        "ref_id": ref_id,
        "ann_id": object_id,
        "image_id": image_id,
        "category_id": 1,
        "file_name": f"COCO_train2014_{image_id:012d}_{object_id}.jpg",  # as REFER has it: with the annotation's number
        "split": "train",
        "sent_ids": [sentence["sent_id"] for sentence in listed],
        "sentences": listed,
    } | changes


def instances() -> dict[str, Any]:
    return {
        "images": [{"id": i, "file_name": name(i), "height": HEIGHT, "width": WIDTH} for i in (1, 2, 3)],
        "annotations": [annotation(11, 1), annotation(12, 1, bbox=[0, 0, 4, 4]), annotation(21, 2), annotation(31, 3)],
        "categories": [{"id": 1, "name": "person"}],
    }


def refs() -> list[dict[str, Any]]:
    return [
        ref(1, 11, 1, "left man", "the man on the left"),
        ref(2, 21, 2, "woman", split="val"),
        ref(3, 31, 3, "dog", split="testA"),
    ]


def write(
    root: Path,
    *,
    content: Any = None,
    listed: Any = None,
    dataset: str = "refcoco",
    split_by: str = "unc",
    images: dict[int, bytes] | None = None,
) -> Path:
    """Write a data set below ``root``; ``images`` replaces the bytes of some."""
    folder = root / dataset
    folder.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content or instances())
    (folder / "instances.json").write_text(text)
    raw = listed if isinstance(listed, bytes) else pickle.dumps(refs() if listed is None else listed, protocol=2)
    (folder / f"refs({split_by}).p").write_bytes(raw)
    (root / IMAGES).mkdir(parents=True, exist_ok=True)
    for image_id in (1, 2, 3):
        colour = (40 * image_id, 10, 200)
        (root / IMAGES / name(image_id)).write_bytes(
            (images or {}).get(image_id) or encoded(Image.new("RGB", (WIDTH, HEIGHT), colour))
        )
    return root
