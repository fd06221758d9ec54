"""``validate refcoco`` on small sets: parts, leaks and labelled images."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from stages import artifacts
from stages.errors import DataError, GateStopped
from stages.validate.refcoco import division, stage
from stages.validate.refcoco.gate import Labelled
from tests.ingest.refcoco.refer_files import IMAGES, annotation, name, ref, write
from tests.validate.refcoco.fakes import content, photographs, twelve, validate


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return twelve(tmp_path / "own")


def test_parts_as_the_file_says(own: Path) -> None:
    summary = validate(own)
    assert summary["outcome"] == "pass"
    parts = summary["splits"]["as the file says, mine"]["parts"]
    assert {part: size["records"] for part, size in parts.items()} == {
        "train": 9,
        "validation": 1,
        "testA": 2,
        "testB": 1,
    }
    table = pl.read_parquet(artifacts.validated("refcoco") / "splits.parquet")
    assert table.filter(pl.col("record_id") == "mine/12")["part"].to_list() == ["testA", "testB"]
    assert (artifacts.validated("refcoco") / "docs" / "index.html").is_file()


def test_a_training_image_in_testA_stops(own: Path) -> None:  # noqa: N802
    """Case 22."""
    listed = [ref(1, 11, 1, "one"), ref(2, 11, 1, "the same", split="testA"), ref(3, 21, 2, "two", split="val")]
    write(own, content=content(12), listed=listed)
    photographs(own, 12)
    for choice in ("stop", "allow"):
        with pytest.raises(GateStopped, match="leaks: image mine/1 lies in test and train or validation"):
            validate(own, shared_images=choice)


def test_train_and_validation_share_images_where_that_is_meant(own: Path) -> None:
    """RefCOCOg by google was divided by object."""
    listed = [ref(1, 11, 1, "one"), ref(2, 11, 1, "the same", split="val"), ref(3, 21, 2, "two", split="testA")]
    write(own, content=content(12), listed=listed)
    photographs(own, 12)
    with pytest.raises(GateStopped, match=r"leaks: image mine/1 lies in train and validation; .*shared_images: allow"):
        validate(own)
    summary = validate(own, shared_images="allow")
    assert summary["outcome"] == "pass"
    notes = summary["splits"]["as the file says, mine"]["notes"]
    assert "1 images are shared by train and validation: image mine/1 lies in train and validation" in notes
    assert "1% labelled: 1 of 1 training images" in notes


def test_a_copy_in_test_of_an_image_that_train_and_validation_share(own: Path) -> None:
    listed = [ref(1, 11, 1, "one"), ref(2, 11, 1, "the same", split="val"), ref(3, 21, 2, "two", split="testA")]
    write(own, content=content(12), listed=listed)
    photographs(own, 12)
    (own / IMAGES / name(2)).write_bytes((own / IMAGES / name(1)).read_bytes())
    with pytest.raises(GateStopped, match=r"the image of sha256 [0-9a-f]{12} lies in test and train or validation"):
        validate(own, shared_images="allow")


def test_a_page_names_the_first_files_of_a_set_with_many() -> None:
    listed = [{"name": f"{i}.jpg", "sha256": "0"} for i in range(30)]
    described = {"source": {"files": listed}, "about": {"notes": []}}
    files = [text for label, text in stage.facts(described) if label == "file"]
    assert (len(files), files[-1]) == (13, "and 18 more, in manifest.json")


def test_an_image_under_two_ids_stops(own: Path) -> None:
    """RefCOCO has one photograph of each id; a copy under another name leaks as well."""
    (own / IMAGES / name(11)).write_bytes((own / IMAGES / name(1)).read_bytes())
    with pytest.raises(GateStopped, match=r"the image of sha256 [0-9a-f]{12} lies in test and train or validation"):
        validate(own)


def test_a_quarantined_ref_leaks_nothing(own: Path) -> None:
    listed = [ref(i, 10 * i + 1, i, f"thing {i}") for i in range(1, 10)]
    listed += [ref(20, 999, 1, "its annotation is missing", split="testA"), ref(21, 101, 10, "val", split="val")]
    write(own, content=content(12), listed=listed)
    photographs(own, 12)
    summary = validate(own)
    assert (summary["outcome"], summary["quarantined"]) == ("pass with quarantine", 1)


def test_two_annotations_of_one_mask(own: Path) -> None:
    """The square of object 12 is that of object 11 of the same image, not that of 21, of another."""
    doubled = content(12)
    doubled["annotations"].append(annotation(12, 1))
    write(own, content=doubled, listed=[ref(1, 11, 1, "one"), ref(2, 21, 2, "two"), ref(3, 12, 1, "three")])
    photographs(own, 12)
    assert validate(own)["sites"]["mine"]["failed"] == {"same mask": 2}


def test_objects_that_are_gone(own: Path) -> None:
    validate(own)
    (artifacts.ingested("refcoco", "mine") / "objects.parquet").unlink()
    with pytest.raises(DataError, match=r"objects\.parquet: found no such file; .*ingest refcoco@mine"):
        stage.run(stage.Params.read(name="refcoco", key="0"), name="refcoco", key="0")


def test_labelled_images_are_nested_and_drawn_by_image(own: Path) -> None:
    validate(own)
    table = pl.read_parquet(artifacts.validated("refcoco") / "labelled.parquet")
    assert table.height == 9 * 3 * 2
    chosen = {
        (share, draw): set(mine.filter("labelled")["image_id"])
        for (share, draw), mine in table.group_by("share", "draw")
    }
    for draw in (0, 1):
        assert len(chosen[0.01, draw]) == 1  # 1 % of nine images is none: one is the least
        assert len(chosen[0.5, draw]) == 5
        assert chosen[0.01, draw] < chosen[0.5, draw] < chosen[1.0, draw] == set(range(1, 10))
    assert chosen[0.5, 0] != chosen[0.5, 1]


def test_the_draw_does_not_depend_on_the_order_of_the_rows() -> None:
    records = pl.DataFrame(
        {"record_id": [f"mine/{i}" for i in range(20)], "image_id": range(20), "group": [f"g{i}" for i in range(20)]}
    ).with_columns(split=pl.lit("train"))
    options = Labelled(seed=3, shares=[0.3], draws=1)

    def drawn(frame: pl.DataFrame) -> set[int]:
        table = division.as_the_file_says(frame)
        accepted = pl.Series([True] * 20)
        return set(division.labelled("mine", frame, table, accepted, options).filter("labelled")["image_id"])

    assert drawn(records) == drawn(records.reverse())
    assert len(drawn(records)) == 6


@pytest.mark.parametrize(
    "text", ["[9, 11]", "9\n11\n", "COCO_train2014_000000000009.jpg\ntrain2014/000000000011.jpg\n"]
)
def test_a_list_of_pre_training_images(own: Path, text: str) -> None:
    Path("seen.txt").write_text(text)
    summary = validate(own, pretraining_images="seen.txt", pretrained="quarantine")
    assert summary["sites"]["mine"]["failed"] == {"pre-training image": 1}  # 9 is a training image


def test_a_list_that_is_none(own: Path) -> None:
    Path("seen.txt").write_text(json.dumps([1, "photo"]))
    with pytest.raises(DataError, match="entry 2: found 'photo'"):
        validate(own, pretraining_images="seen.txt")
    Path("seen.txt").write_text("9\n1.5\n")
    with pytest.raises(DataError, match=r"entry 2: found '1\.5'; expected the number of an image"):
        validate(own, pretraining_images="seen.txt")
    Path("seen.txt").write_text("")
    with pytest.raises(DataError, match="found no image ids; expected one or more"):
        validate(own, pretraining_images="seen.txt")
    with pytest.raises(DataError, match="expected a file of image ids"):
        validate(own, pretraining_images="nowhere.txt")
