"""``validate refcoco`` on small sets: parts, leaks, labelled images, and the sets opened through their verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

from stages import artifacts
from stages.accepted import refcoco
from stages.errors import DataError, GateStopped, UsageError
from stages.ingest.refcoco import stage as ingest
from stages.refcoco import masks
from stages.validate.refcoco import division, stage
from stages.validate.refcoco.gate import Labelled
from tests.ingest.refcoco.refer_files import HEIGHT, IMAGES, WIDTH, annotation, encoded, instances, name, ref, write


def content(count: int) -> dict[str, Any]:
    found = instances()
    found["images"] = [{"id": i, "file_name": name(i), "height": HEIGHT, "width": WIDTH} for i in range(1, count + 1)]
    found["annotations"] = [annotation(10 * i + 1, i) for i in range(1, count + 1)]
    return found


def photographs(root: Path, count: int) -> None:
    for i in range(1, count + 1):
        image = Image.fromarray(np.random.default_rng(i).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8))
        (root / IMAGES / name(i)).write_bytes(encoded(image))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve images with a ref each: nine train, and one each of val, testA and testAB."""
    monkeypatch.chdir(tmp_path)
    splits = ["train"] * 9 + ["val", "testA", "testAB"]
    listed = [ref(i, 10 * i + 1, i, f"thing {i}", split=split) for i, split in enumerate(splits, start=1)]
    root = write(tmp_path / "own", content=content(12), listed=listed)
    photographs(root, 12)
    return root


def validate(path: Path, **gate: Any) -> dict[str, Any]:
    block = {
        "sets": {"mine": {"path": str(path), "format": "refer", "gate": {}}},
        "images": {"longest": 640},
        "gate": {"small_mask": 0, **gate},
        "labelled": {"shares": [0.01, 0.5, 1.0], "draws": 2},
    }
    Path("params.yaml").write_text(yaml.safe_dump({"refcoco": block}))
    ingest.run(ingest.Params.read(name="refcoco", key="mine"), name="refcoco", key="mine")
    stage.run(stage.Params.read(name="refcoco", key="0"), name="refcoco", key="0")
    found: dict[str, Any] = artifacts.read_json(artifacts.validated("refcoco") / "summary.json")
    return found


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
    with pytest.raises(GateStopped, match="leaks: image mine/1 lies in test and train"):
        validate(own)
    summary = validate(own, shared_images="allow")
    assert summary["outcome"] == "pass"
    assert "1 images lie in two of train" in " ".join(summary["splits"]["as the file says, mine"]["notes"])


def test_an_image_under_two_ids_stops(own: Path) -> None:
    """RefCOCO has one photograph of each id; a copy under another name leaks as well."""
    (own / IMAGES / name(11)).write_bytes((own / IMAGES / name(1)).read_bytes())
    with pytest.raises(GateStopped, match=r"the image of sha256 [0-9a-f]{12} lies in test and train"):
        validate(own)


def test_a_quarantined_ref_leaks_nothing(own: Path) -> None:
    listed = [ref(i, 10 * i + 1, i, f"thing {i}") for i in range(1, 10)]
    listed += [ref(20, 999, 1, "its annotation is missing", split="testA"), ref(21, 101, 10, "val", split="val")]
    write(own, content=content(12), listed=listed)
    photographs(own, 12)
    summary = validate(own)
    assert (summary["outcome"], summary["quarantined"]) == ("pass with quarantine", 1)


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


def test_a_set_opened_through_its_verdict(own: Path) -> None:
    listed = [ref(i, 10 * i + 1, i, f"thing {i}", "it is blue") for i in range(1, 9)]
    listed += [ref(20, 999, 1, "lost", split="train"), ref(21, 101, 10, "val", split="val")]
    write(own, content=content(12), listed=listed)
    photographs(own, 12)
    validate(own)
    found = refcoco.open_set("mine")
    assert "mine/20" not in found.record_S
    assert found.image_id_I.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert len(found.part("train")) == 16
    assert [found.sentence_S[s] for s in found.part("validation")] == ["val"]
    place = int(found.part("validation")[0])
    mask_HW = masks.decode(
        found.run_F[found.start_O1[found.object_S[place]] : found.start_O1[found.object_S[place] + 1]],
        *found.size_I2[found.image_O[found.object_S[place]]],
    )
    assert mask_HW.sum() == 48
    assert found.categories == ("person",)
    assert found.labelled(0.5, 0).sum() == 4
    assert not found.labelled(1.0, 0)[found.image_id_I == 10].any()  # validation is never labelled training data
    with pytest.raises(UsageError, match=r"share of 0\.2 and draw 0; there are the shares \[0\.01, 0\.5, 1\.0\]"):
        found.labelled(0.2, 0)
    with pytest.raises(UsageError, match="no part testC; it has train, validation"):
        found.part("testC")


def test_a_set_that_was_not_judged(own: Path) -> None:
    validate(own)
    verdict = artifacts.validated("refcoco") / "verdict.parquet"
    artifacts.write_table(verdict, pl.read_parquet(verdict).head(5))
    with pytest.raises(UsageError, match="no verdict on 7 of 12 refs of mine"):
        refcoco.open_set("mine")
    with pytest.raises(UsageError, match="The set other was not ingested"):
        refcoco.open_set("other")


@pytest.mark.parametrize("text", ["[9, 11]", "9\n11\n", "COCO_train2014_000000000009.jpg\n000000000011.jpg\n"])
def test_a_list_of_pre_training_images(own: Path, text: str) -> None:
    Path("seen.txt").write_text(text)
    summary = validate(own, pretraining_images="seen.txt", pretrained="quarantine")
    assert summary["sites"]["mine"]["failed"] == {"pre-training image": 1}  # 9 is a training image


def test_a_list_that_is_none(own: Path) -> None:
    Path("seen.txt").write_text(json.dumps([1, "photo"]))
    with pytest.raises(DataError, match="entry 2: found 'photo'"):
        validate(own, pretraining_images="seen.txt")
    with pytest.raises(DataError, match="expected a file of image ids"):
        validate(own, pretraining_images="nowhere.txt")
