"""What the gate says of single refs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stages.ingest.refcoco.records import RECORDS
from stages.validate import expectations, verdicts
from stages.validate.refcoco import refs
from stages.validate.refcoco.gate import Gate
from stages.validate.refcoco.refs import parts_of

GOOD: dict[str, Any] = {
    "record_id": "mine/1",
    "group": "mine/10",
    "set": "mine",
    "image_id": 10,
    "object_id": 5,
    "category": "person",
    "source_file": "refs(unc).p",
    "sha256": "a",
    "image_sha256": "i",
    "split": "train",
    "mask_area_px": 400,
    "mask_share": 0.1,
    "recorded_area_px": 395.0,
    "polygon_area_px": 395.0,
    "box_iou": 0.97,
    "outside_px": 0.0,
    "parts": 1,
    "sentences": 2,
    "shortest_tokens": 2,
    "longest_tokens": 5,
    "wordless_sentences": 0,
    "repeated_sentences": 0,
    "ambiguous_sentences": 0,
    "crowd": False,
    "object_found": True,
    "image_found": True,
    "size_as_recorded": True,
    "fault": None,
}


def judged(
    *rows: dict[str, Any], gate: Gate | None = None, known: tuple[int, ...] = (), twins: tuple[int, ...] = ()
) -> list[dict[str, Any]]:
    frame = refs.summary_frame(pl.DataFrame([GOOD | row for row in rows], schema=RECORDS), known, twins)
    suite = expectations.suite_of("mine", [*expectations.identity("ref"), *refs.rules(gate or Gate())], frame)
    return verdicts.verdicts(frame, expectations.judge(frame, suite)).to_dicts()


def test_a_good_ref() -> None:
    (found,) = judged({})
    assert found["outcome"] == "accepted"
    assert found["warnings"] is None


@pytest.mark.parametrize(
    ("change", "expectation", "text"),
    [
        ({"object_found": False}, "object found", "the annotation of mine/1 is not in the file"),
        ({"image_found": False}, "image found", "the image 10 of mine/1 is missing"),
        ({"size_as_recorded": False}, "image size", "another size than its record"),
        ({"fault": "found a polygon of 3 numbers"}, "mask readable", "a polygon of 3 numbers"),
        ({"mask_area_px": 0}, "mask", "has 0 pixels; the gate asks for at least 1"),
        ({"outside_px": 9.5}, "outside", "lie 9.5 pixels outside the image; the gate allows 5"),
        ({"box_iou": 0.1}, "box", "an IoU of 0.1; the gate asks for at least 0.3"),
        ({"recorded_area_px": 2000.0}, "area", "has 400 pixels, stated are 2000: 80% off"),
        ({"split": "somewhere"}, "split known", "the split somewhere, which is none"),
        ({"wordless_sentences": 2}, "sentences", "no sentence with a letter or digit"),
        ({"longest_tokens": 99}, "long sentence", "a sentence of 99 words; the gate allows 1 to 60"),
        ({"shortest_tokens": 0}, "short sentence", "a sentence of 0 words"),
    ],
)
def test_what_is_refused(change: dict[str, Any], expectation: str, text: str) -> None:
    (found,) = judged(change)
    assert (found["outcome"], found["expectation"]) == ("quarantined", expectation)
    assert text in found["reason"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"mask_area_px": 20, "recorded_area_px": None}, "has 20 pixels; the gate warns below 64"),
        ({"outside_px": 2.0}, "the gate warns above 1"),
        ({"box_iou": 0.6}, "warns below 0.8"),
        ({"recorded_area_px": 600.0}, "33% off"),
        ({"polygon_area_px": 800.0}, "its polygons enclose 800: 50% off; the gate warns above 0.2"),
        ({"category": None}, "the category of mine/1 is not in the file"),
        ({"crowd": True}, "is a crowd"),
        ({"wordless_sentences": 1}, "1 sentences of mine/1 have no letter"),
        ({"repeated_sentences": 1}, "stand twice"),
        ({"ambiguous_sentences": 1}, "also name another object of image 10"),
    ],
)
def test_what_is_told(change: dict[str, Any], text: str) -> None:
    (found,) = judged(change)
    assert found["outcome"] == "accepted"
    assert text in found["warnings"]


def test_small_outlines_are_not_compared_by_area() -> None:
    (found,) = judged({"mask_area_px": 30, "recorded_area_px": 10.0, "polygon_area_px": 10.0})
    assert "off" not in found["warnings"]


def test_two_annotations_of_one_mask_are_told() -> None:
    own, other = judged({}, {"record_id": "mine/2", "object_id": 6, "sha256": "b"}, twins=(6, 7))
    assert own["warnings"] is None
    assert (other["outcome"], other["warnings"]) == (
        "accepted",
        "another annotation of image 10 has the mask of mine/2",
    )


def test_a_copy_names_its_first() -> None:
    first, second = judged({}, {"record_id": "mine/2"})
    assert first["outcome"] == "accepted"
    assert second["reason"] == "mine/2 has image, mask and sentences of mine/1"
    assert judged({}, {"record_id": "mine/2"}, gate=Gate(copies="report"))[1]["outcome"] == "accepted"


def test_an_image_that_a_model_was_pre_trained_on() -> None:
    """Case 22: only what is tested counts."""
    rows = [{"split": split, "record_id": split, "sha256": split} for split in ("train", "val", "testB")]
    found = judged(*rows, gate=Gate(pretrained="quarantine"), known=(10,))
    assert [row["outcome"] for row in found] == ["accepted", "quarantined", "quarantined"]
    assert [row["outcome"] for row in judged(*rows, known=(10,))] == ["accepted"] * 3


@pytest.mark.parametrize(
    ("split", "parts"),
    [
        ("train", ["train"]),
        ("val", ["validation"]),
        ("test", ["test"]),
        ("testA", ["testA"]),
        ("testAB", ["testA", "testB"]),  # REFER takes it for both
        ("testing", []),
        ("", []),
        (None, []),
    ],
)
def test_parts_of_a_split(split: str | None, parts: list[str]) -> None:
    assert parts_of(split) == parts
