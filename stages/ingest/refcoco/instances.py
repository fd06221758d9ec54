"""COCO's instances JSON: the image table, the annotations and the categories."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stages.errors import DataError
from stages.ingest.refcoco.annotations import AGAIN, Image, Object, entry, text, twice, whole


def load(file: Path) -> Mapping[str, Any]:
    """The content of a JSON file with images, annotations and categories.

    Raises
    ------
    DataError
        It is absent, no JSON, or no such block.
    """
    try:
        with file.open("rb") as stream:
            content = json.load(stream)
    except FileNotFoundError:
        raise DataError(
            file,
            found="no such file",
            expected="COCO's instances as JSON",
            remedy="Correct `path` or `format` in params.yaml, or bring the data with `dvc pull`.",
        ) from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(file, found=f"no JSON ({error})", expected="COCO's instances as JSON", remedy=AGAIN) from None
    for key in ("images", "annotations", "categories"):
        if not isinstance(entry(content, key, file, "the file"), list):
            raise DataError(file, record=key, found="no list", expected="a list of blocks", remedy="Correct the file.")
    return content  # type: ignore[no-any-return]


def images(content: Mapping[str, Any], file: Path) -> dict[int, Image]:
    """The image table by id; raises DataError for an id that stands twice and for a block without a size."""
    found: dict[int, Image] = {}
    for number, block in enumerate(content["images"]):
        place = f"images[{number}]"
        image_id = whole(entry(block, "id", file, place), file, place, "id")
        place = f"image {image_id}"
        if image_id in found:
            raise twice(file, place, "id")
        height, width = (whole(entry(block, side, file, place), file, place, side) for side in ("height", "width"))
        if min(height, width) < 1:
            raise DataError(
                file,
                record=place,
                found=f"{height} x {width} pixels",
                expected="1 or more",
                remedy="Correct the file.",
            )
        found[image_id] = Image(
            image_id, text(entry(block, "file_name", file, place), file, place, "file_name"), height, width
        )
    return found


def categories(content: Mapping[str, Any], file: Path) -> dict[int, str]:
    """Names of the categories by id."""
    found = {}
    for number, block in enumerate(content["categories"]):
        place = f"categories[{number}]"
        category_id = whole(entry(block, "id", file, place), file, place, "id")
        found[category_id] = text(entry(block, "name", file, place), file, place, "name")
    return found


def objects(content: Mapping[str, Any], file: Path) -> Iterator[tuple[Object, Mapping[str, Any]]]:
    """The annotations in order, each with its block; raises DataError for an id that stands twice."""
    seen = set()
    for number, block in enumerate(content["annotations"]):
        place = f"annotations[{number}]"
        object_id = whole(entry(block, "id", file, place), file, place, "id")
        place = f"annotation {object_id}"
        if object_id in seen:
            raise twice(file, place, "id")
        seen.add(object_id)
        area = block.get("area")
        yield (
            Object(
                object_id,
                whole(entry(block, "image_id", file, place), file, place, "image_id"),
                whole(entry(block, "category_id", file, place), file, place, "category_id"),
                _box(block.get("bbox"), file, place),
                float(area) if isinstance(area, int | float) and math.isfinite(area) else None,
                bool(block.get("iscrowd", 0)),
                block.get("segmentation"),
            ),
            block,
        )


def _box(value: Any, file: Path, place: str) -> tuple[float, float, float, float] | None:
    if value is None:
        return None
    right = isinstance(value, list) and len(value) == 4 and all(isinstance(side, int | float) for side in value)
    if not right or not all(math.isfinite(side) for side in value):
        raise DataError(
            file,
            record=place,
            found=f"bbox = {value!r}",
            expected="left, top, width and height in pixels",
            remedy="Correct the file.",
        )
    return (float(value[0]), float(value[1]), float(value[2]), float(value[3]))
