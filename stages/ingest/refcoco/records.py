"""Rows of objects.parquet, refs.parquet, sentences.parquet and records.parquet, in one schema for all sets."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from stages.ingest.refcoco.annotations import Object, Ref, RefSet
from stages.ingest.refcoco.schema import (
    IMAGE_COLUMNS,
    OBJECT_COLUMNS,
    RECORD_COLUMNS,
    REF_COLUMNS,
    SENTENCE_COLUMNS,
)
from stages.refcoco import masks
from stages.refcoco.masks import MaskError

_TYPES = {
    "String": pl.String(),
    "Int64": pl.Int64(),
    "Float64": pl.Float64(),
    "Boolean": pl.Boolean(),
    "Binary": pl.Binary(),
    "List(String)": pl.List(pl.String()),
}


def polars_schema(columns: Mapping[str, str]) -> dict[str, Any]:
    """A table's columns with their polars types."""
    return {name: _TYPES[kind] for name, kind in columns.items()}


IMAGES = polars_schema(IMAGE_COLUMNS)
OBJECTS = polars_schema(OBJECT_COLUMNS)
REFS = polars_schema(REF_COLUMNS)
SENTENCES = polars_schema(SENTENCE_COLUMNS)
RECORDS = polars_schema(RECORD_COLUMNS)


def group(key: str, image_id: int) -> str:
    """Name of an image: what must not straddle a split."""
    return f"{key}/{image_id}"


def record_id(key: str, ref_id: int) -> str:
    """Name of a ref."""
    return f"{key}/{ref_id}"


def objects(found: RefSet) -> Iterator[dict[str, Any]]:
    """Rows of objects.parquet, with each mask as run lengths; a segmentation that is none has a ``fault``."""
    for one in found.objects.values():
        image = found.images.get(one.image_id)
        row: dict[str, Any] = {
            "object_id": one.object_id,
            "image_id": one.image_id,
            "category_id": one.category_id,
            "category": found.categories.get(one.category_id),
            **dict(zip(("box_x", "box_y", "box_width", "box_height"), one.box or (None,) * 4, strict=True)),
            "recorded_area": one.area,
            "crowd": one.crowd,
        }
        if image is not None:
            row |= {"height": image.height, "width": image.width} | _mask(one, image.height, image.width)
        yield row


def _mask(one: Object, height: int, width: int) -> dict[str, Any]:
    try:
        run_R, form = masks.read_segmentation(one.segmentation, height, width)
    except MaskError as error:
        return {"fault": str(error)}
    polygons = len(one.segmentation) if form == "polygon" else None
    return {"counts": masks.to_packed(run_R), "area": masks.area(run_R), "form": form, "polygons": polygons}


def sentences(found: RefSet) -> pl.DataFrame:
    """sentences.parquet."""
    rows = [
        (
            sentence.sentence_id,
            record_id(found.key, ref.ref_id),
            place,
            sentence.sentence,
            sentence.raw,
            sentence.tokens,
        )
        for ref in found.refs
        for place, sentence in enumerate(ref.sentences)
    ]
    return pl.DataFrame(rows, schema=SENTENCES, orient="row")


def refs(found: RefSet) -> pl.DataFrame:
    """refs.parquet."""
    rows = [
        (
            record_id(found.key, ref.ref_id),
            ref.ref_id,
            ref.object_id if ref.object_id in found.objects else None,
            ref.image_id,
            ref.category_id,
            ref.split,
            len(ref.sentences),
        )
        for ref in found.refs
    ]
    return pl.DataFrame(rows, schema=REFS, orient="row")


def said(tokens: Sequence[str]) -> str:
    """A sentence as it is compared with others: its words in lower case."""
    return " ".join(tokens).lower()


def has_words(sentence: str) -> bool:
    """Whether a sentence has a letter or a digit."""
    return any(letter.isalnum() for letter in sentence)


def table(found: RefSet, held: pl.DataFrame, images: pl.DataFrame) -> pl.DataFrame:
    """records.parquet, a row a ref.

    Parameters
    ----------
    held
        objects.parquet.
    images
        image_id, found, as_recorded and sha256 of every image.
    """
    referred = held.filter(pl.col("object_id").is_in([ref.object_id for ref in found.refs]))
    by_object = {row["object_id"]: row for row in referred.iter_rows(named=True)}
    by_image = {row["image_id"]: row for row in images.iter_rows(named=True)}
    box_of = _boxes(referred)
    named = _named(found.refs)
    rows = []
    for ref in found.refs:
        one, image = by_object.get(ref.object_id), by_image.get(ref.image_id, {})
        texts = [said(sentence.tokens) for sentence in ref.sentences]
        lengths = [len(sentence.tokens) for sentence in ref.sentences]
        source = found.sources.get(ref.split) or found.sources.get("")
        row = {
            "record_id": record_id(found.key, ref.ref_id),
            "group": group(found.key, ref.image_id),
            "set": found.key,
            "image_id": ref.image_id,
            "object_id": ref.object_id if one else None,
            "category": one["category"] if one else found.categories.get(ref.category_id or -1),
            "source_file": source,
            "image_sha256": image.get("sha256"),
            "split": ref.split,
            "sentences": len(texts),
            "shortest_tokens": min(lengths, default=None),
            "longest_tokens": max(lengths, default=None),
            "wordless_sentences": sum(not has_words(sentence.sentence) for sentence in ref.sentences),
            "repeated_sentences": len(texts) - len(set(texts)),
            "ambiguous_sentences": sum(len(named[ref.image_id, text]) > 1 for text in texts),
            "object_found": one is not None,
            "image_found": bool(image.get("found")),
            "size_as_recorded": image.get("as_recorded"),
        }
        if one is not None:
            row |= _of_object(one, found.objects[ref.object_id], box_of.get(ref.object_id))
        row["sha256"] = _digest(one, image.get("sha256"), texts)
        rows.append(row)
    return pl.DataFrame(rows, schema=RECORDS)


def _named(refs: Sequence[Ref]) -> dict[tuple[int, str], set[int]]:
    """Objects of an image that a sentence names."""
    named: dict[tuple[int, str], set[int]] = defaultdict(set)
    for ref in refs:
        for sentence in ref.sentences:
            named[ref.image_id, said(sentence.tokens)].add(ref.object_id)
    return named


def _boxes(held: pl.DataFrame) -> dict[int, tuple[int, ...]]:
    """Boxes of the masks, by object."""
    whole = held.drop_nulls("counts")
    runs = [masks.from_packed(*row) for row in whole.select("counts", "height", "width").iter_rows()]
    _, box_M4 = masks.areas_and_boxes(*masks.flat(runs), whole["height"].to_numpy())
    return {one: tuple(box) for one, box in zip(whole["object_id"], box_M4.tolist(), strict=True)}


def _of_object(row: Mapping[str, Any], one: Object, box: tuple[int, ...] | None) -> dict[str, Any]:
    """Statistics of a ref's mask, polygons and box."""
    polygons = [np.asarray(polygon, float).reshape(-1, 2) for polygon in one.segmentation] if row["polygons"] else []
    height, width = row["height"], row["width"]
    found: dict[str, Any] = {
        "recorded_area_px": row["recorded_area"],
        "parts": row["polygons"],
        "crowd": row["crowd"],
        "fault": row["fault"],
    }
    if row["counts"] is None:
        return found
    corners = [*polygons, *([_corners(one.box)] if one.box else [])]
    return found | {
        "mask_area_px": row["area"],
        "mask_share": row["area"] / (height * width),
        "polygon_area_px": sum(map(_shoelace, polygons)) if polygons else None,
        "box_iou": _box_iou(one.box, box) if one.box and box else None,
        "outside_px": max((_outside(xy_P2, height, width) for xy_P2 in corners), default=None),
    }


def _corners(box: tuple[float, float, float, float]) -> np.ndarray[Any, Any]:
    left, top, width, height = box
    return np.array([[left, top], [left + width, top + height]])


def _outside(xy_P2: np.ndarray[Any, Any], height: int, width: int) -> float:
    beyond = np.maximum(-xy_P2, xy_P2 - [width, height])
    return max(float(beyond.max()), 0.0)


def _shoelace(xy_P2: np.ndarray[Any, Any]) -> float:
    x_P, y_P = xy_P2.T
    return abs(float(x_P @ np.roll(y_P, -1) - y_P @ np.roll(x_P, -1))) / 2


def _box_iou(box: tuple[float, float, float, float], other: tuple[int, ...]) -> float:
    across = min(box[0] + box[2], other[0] + other[2]) - max(box[0], other[0])
    down = min(box[1] + box[3], other[1] + other[3]) - max(box[1], other[1])
    shared = max(across, 0.0) * max(down, 0.0)
    union = box[2] * box[3] + other[2] * other[3] - shared
    return shared / union if union > 0 else 0.0


def _digest(one: Mapping[str, Any] | None, image: str | None, texts: Sequence[str]) -> str:
    """Digest of a ref's image, mask and sentences."""
    counts = "" if one is None else one["counts"] or ""
    text = "\n".join([image or "", *texts]).encode()
    return hashlib.sha256(hashlib.sha256(counts.encode()).digest() + text).hexdigest()
