"""What is expected of a ref: the summary frame of a set, and the rules made of the limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from stages.ingest.refcoco.schema import RECORD_COLUMNS
from stages.validate.expectations import Rule, Severity, between
from stages.validate.refcoco.gate import Choice, Gate

KINDS = {"String": "text", "Int64": "integer", "Float64": "number", "Boolean": "flag"}
#: Area in pixels from which a mask's area is compared: a smaller outline is mostly border.
COMPARED = 64


def columns() -> dict[str, str]:
    """Columns the gate needs in records.parquet, each with its kind of type."""
    return {name: KINDS[dtype] for name, dtype in RECORD_COLUMNS.items()}


def parts_of(split: str | None) -> list[str]:
    """Parts that a file's own split stands for; none for a name that is not REFER's.

    REFER takes a ref for testA where the split begins with test and has the letter A: ``testAB`` is in both.
    """
    if split is None:
        return []
    if split in ("val", "minival", "validation"):
        return ["validation"]
    if split in ("train", "test"):
        return [split]
    letters = split.removeprefix("test")
    if split.startswith("test") and letters.isalpha() and letters.isupper():
        return [f"test{letter}" for letter in letters]
    return []


def summary_frame(records: pl.DataFrame, pretraining: Collection[int], twins: Collection[int]) -> pl.DataFrame:
    """records.parquet with the figures that are judged.

    Adds area_off and polygon_off (of masks from stated areas and from polygons, from ``COMPARED`` pixels on), worded
    (sentences with words), no_object, no_image, resized and crowds (flags as 0 or 1), part (null where the split has no
    meaning), copy_of (the first ref of the same content), pretrained (1 where a validation or test image is among
    ``pretraining``) and twin (1 where the object is among ``twins``).
    """
    first = pl.col("record_id").first().over("sha256")
    parts = [parts_of(split) for split in records["split"]]
    tested = pl.Series([bool(found) and found[0] != "train" for found in parts], dtype=pl.Boolean)
    return records.with_columns(
        area_off=_off("recorded_area_px"),
        polygon_off=_off("polygon_area_px"),
        worded=pl.col("sentences") - pl.col("wordless_sentences"),
        no_object=(~pl.col("object_found")).cast(pl.Int64),
        no_image=(~pl.col("image_found")).cast(pl.Int64),
        resized=(~pl.col("size_as_recorded")).cast(pl.Int64),
        crowds=pl.col("crowd").cast(pl.Int64),
        part=pl.Series([", ".join(found) or None for found in parts], dtype=pl.String),
        copy_of=pl.when(pl.col("sha256").is_not_null() & (first != pl.col("record_id"))).then(first),
        pretrained=(tested & records["image_id"].is_in(list(pretraining))).cast(pl.Int64),
        twin=pl.col("object_id").is_in(list(twins)).cast(pl.Int64),
    )


def _off(column: str) -> pl.Expr:
    """Share by which the mask's area and another differ, of the larger; null where one is absent or both are small."""
    areas = pl.col("mask_area_px").cast(pl.Float64), pl.col(column)
    larger, smaller = pl.max_horizontal(areas), pl.min_horizontal(areas)
    both = areas[0].is_not_null() & areas[1].is_not_null()
    return pl.when(both & (larger >= COMPARED)).then((larger - smaller) / larger)


def rules(gate: Gate) -> list[Rule]:
    """The rules for the refs of one set, gravest first."""
    return [*_there(), *_masks(gate), *_sentences(gate), *_equals(gate)]


def _severity(choice: Choice) -> Severity:
    return "quarantine" if choice == "quarantine" else "warning"


def _none(name: str, column: str, reason: str, severity: Severity = "quarantine", observed: str = "{value}") -> Rule:
    return between(name, column, None, 0, severity=severity, reason=reason, observed=observed)


def _null(name: str, column: str, reason: str, severity: Severity = "quarantine") -> Rule:
    return Rule(name, "expect_column_values_to_be_null", {"column": column}, severity, reason)


def _there() -> list[Rule]:
    """What a ref needs: its annotation, its image in the size of the table, a mask that is one, a category, a part."""
    return [
        _none("object found", "no_object", "the annotation of {record_id} is not in the file, or of another image"),
        _none("image found", "no_image", "the image {image_id} of {record_id} is missing, or is no image"),
        _none(
            "image size",
            "resized",
            "the image {image_id} of {record_id} has another size than its record: masks are in another frame",
        ),
        _null("mask readable", "fault", "the segmentation of {record_id} is none: {value}"),
        Rule(
            "category known",
            "expect_column_values_to_not_be_null",
            {"column": "category"},
            "warning",
            "the category of {record_id} is not in the file",
            "null",
        ),
        Rule(
            "split known",
            "expect_column_values_to_not_be_null",
            {"column": "part"},
            "quarantine",
            "{record_id} has the split {split}, which is none of train, val, test, testA, testB, ...",
            "{split}",
        ),
    ]


def _masks(gate: Gate) -> list[Rule]:
    pixels = "the mask of {record_id} has {value} pixels"
    outside = "box or polygon of {record_id} lie {value} pixels outside the image"
    boxes = "the stated box of {record_id} and that of its mask have an IoU of {value}"
    areas = "the mask of {record_id} has {mask_area_px} pixels, stated are {recorded_area_px}: {value:.0%} off"
    return [
        *_least("mask_area_px", ("mask", "small mask"), (gate.min_mask, gate.small_mask), pixels, "{value} px"),
        *_most("outside_px", ("outside", "somewhat outside"), (gate.max_outside, gate.outside), outside, "{value} px"),
        *_least("box_iou", ("box", "box somewhat off"), (gate.min_box_iou, gate.low_box_iou), boxes, "IoU {value}"),
        *_most("area_off", ("area", "area somewhat off"), (gate.max_area_off, gate.area_off), areas, "{value:.1%}"),
        between(
            "polygon area",
            "polygon_off",
            None,
            gate.area_off,
            severity="warning",
            reason="the mask of {record_id} has {mask_area_px} pixels, its polygons enclose {polygon_area_px}: "
            f"{{value:.0%}} off; the gate warns above {gate.area_off:g}",
            observed="{value:.1%}",
        ),
        _none("same mask", "twin", "another annotation of image {image_id} has the mask of {record_id}", "warning"),
        _none("crowd", "crowds", "{record_id} is a crowd, not one object", "warning"),
    ]


SEVERITIES: tuple[Severity, Severity] = ("quarantine", "warning")


def _least(
    column: str, names: tuple[str, str], limits: tuple[float, float], reason: str, observed: str
) -> Iterator[Rule]:
    """Two rules on one figure: below one limit it is refused, below the other told."""
    for name, limit, severity, asks in zip(
        names, limits, SEVERITIES, ("asks for at least", "warns below"), strict=True
    ):
        told = f"{reason}; the gate {asks} {limit:g}"
        yield between(name, column, limit, None, severity=severity, reason=told, observed=observed)


def _most(
    column: str, names: tuple[str, str], limits: tuple[float, float], reason: str, observed: str
) -> Iterator[Rule]:
    """Two rules on one figure: above one limit it is refused, above the other told."""
    for name, limit, severity, asks in zip(names, limits, SEVERITIES, ("allows", "warns above"), strict=True):
        told = f"{reason}; the gate {asks} {limit:g}"
        yield between(name, column, None, limit, severity=severity, reason=told, observed=observed)


def _sentences(gate: Gate) -> list[Rule]:
    fewest, most = gate.words
    reason = f"{{record_id}} has a sentence of {{value}} words; the gate allows {fewest} to {most}"
    return [
        between(
            "sentences",
            "worded",
            1,
            None,
            severity="quarantine",
            reason="{record_id} has no sentence with a letter or digit",
            observed="{sentences} sentences",
        ),
        between(
            "short sentence",
            "shortest_tokens",
            fewest,
            None,
            severity="quarantine",
            reason=reason,
            observed="{value} words",
        ),
        between(
            "long sentence",
            "longest_tokens",
            None,
            most,
            severity="quarantine",
            reason=reason,
            observed="{value} words",
        ),
        _none(
            "wordless",
            "wordless_sentences",
            "{value} sentences of {record_id} have no letter or digit",
            _severity(gate.wordless),
        ),
        _none("repeated", "repeated_sentences", "{value} sentences of {record_id} stand twice", "warning"),
        _none(
            "ambiguous",
            "ambiguous_sentences",
            "{value} sentences of {record_id} also name another object of image {image_id}",
            _severity(gate.ambiguous),
        ),
    ]


def _equals(gate: Gate) -> list[Rule]:
    return [
        _null(
            "copy of a ref",
            "copy_of",
            "{record_id} has image, mask and sentences of {value}",
            _severity(gate.copies),
        ),
        _none(
            "pre-training image",
            "pretrained",
            "image {image_id} of {record_id} is on the list of images that a model was pre-trained on",
            _severity(gate.pretrained),
        ),
    ]
