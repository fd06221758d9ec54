"""``ingest refcoco@KEY``: what it writes of a whole set, and of one in which things are missing or odd."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

from stages import artifacts
from stages.ingest.refcoco import stage
from stages.ingest.refcoco.schema import RECORD_COLUMNS
from tests.ingest.refcoco.refer_files import (
    HEIGHT,
    IMAGES,
    WIDTH,
    annotation,
    encoded,
    instances,
    name,
    ref,
    refs,
    write,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "own"


def ingest(path: Path, form: Any = "refer", longest: int = 640) -> Path:
    block = {"sets": {"mine": {"path": str(path), "format": form}}, "images": {"longest": longest}}
    Path("params.yaml").write_text(yaml.safe_dump({"refcoco": block}))
    stage.run(stage.Params.read(name="refcoco", key="mine"), name="refcoco", key="mine")
    return artifacts.ingested("refcoco", "mine")


def records(path: Path) -> dict[str, dict[str, Any]]:
    return {row["record_id"]: row for row in pl.read_parquet(path / "records.parquet").iter_rows(named=True)}


def images(path: Path) -> dict[int, dict[str, Any]]:
    return {row["image_id"]: row for row in pl.read_parquet(path / "images" / "*.parquet").iter_rows(named=True)}


def decoded(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def test_a_whole_set(folder: Path) -> None:
    written = ingest(write(folder))
    table = pl.read_parquet(written / "records.parquet")
    assert table.columns == list(RECORD_COLUMNS)
    first = records(written)["mine/1"]
    assert (first["mask_area_px"], first["polygon_area_px"], first["recorded_area_px"]) == (48, 48.0, 48.0)
    assert (first["box_iou"], first["outside_px"], first["sentences"], first["longest_tokens"]) == (1.0, 0.0, 2, 5)
    assert first["mask_share"] == pytest.approx(48 / (HEIGHT * WIDTH))
    raw = (folder / IMAGES / name(1)).read_bytes()
    stored = images(written)[1]
    assert stored["image"] == raw  # the file's own bytes
    assert stored["sha256"] == hashlib.sha256(raw).hexdigest()
    assert stored["note"] is None
    about = artifacts.read_json(written / "set.json")
    assert (about["refs"], about["sentences"], about["images"], about["objects"]) == (3, 4, 3, 4)
    assert about["parts"] == {"testA": 1, "train": 1, "val": 1}
    sentences = pl.read_parquet(written / "sentences.parquet")
    assert sentences.filter(pl.col("record_id") == "mine/1")["tokens"].to_list()[0] == ["left", "man"]


def test_equal_input_gives_equal_bytes(folder: Path) -> None:
    first = artifacts.sha256_tree(ingest(write(folder)))
    assert artifacts.sha256_tree(ingest(folder)) == first


def test_a_ref_without_annotation_or_image_is_kept_for_the_gate(folder: Path) -> None:
    write(folder, listed=[*refs(), ref(4, 99, 1, "nobody"), ref(5, 21, 1, "of another image")])
    (folder / IMAGES / name(2)).unlink()
    found = records(ingest(folder))
    assert len(found) == 5
    assert [found[f"mine/{i}"]["object_found"] for i in (1, 4, 5)] == [True, False, False]
    assert [found[f"mine/{i}"]["image_found"] for i in (1, 2)] == [True, False]
    assert found["mine/4"]["mask_area_px"] is None


@pytest.mark.parametrize(
    ("image", "note"),
    [
        (encoded(Image.new("L", (WIDTH, HEIGHT), 90)), "grey to RGB"),
        (encoded(Image.new("CMYK", (WIDTH, HEIGHT))), "CMYK to RGB"),
        (encoded(Image.new("P", (WIDTH, HEIGHT)), "PNG"), "palette to RGB"),
        (encoded(Image.new("I;16", (WIDTH, HEIGHT), 40_000), "PNG"), "16 bit grey to RGB"),
    ],
)
def test_other_kinds_of_colour(folder: Path, image: bytes, note: str) -> None:
    stored = images(ingest(write(folder, images={1: image})))[1]
    assert stored["note"] == note
    with decoded(stored["image"]) as opened:
        assert (opened.mode, opened.size) == ("RGB", (WIDTH, HEIGHT))


def turned(size: tuple[int, int]) -> bytes:
    """A photograph whose EXIF says: turn a quarter."""
    image = Image.fromarray(np.arange(size[0] * size[1] * 3, dtype=np.uint8).reshape(size[1], size[0], 3))
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(image, exif=exif)


def test_a_photograph_turned_by_exif(folder: Path) -> None:
    """Turned, unless the annotations are in the frame of its pixels."""
    stored = images(ingest(write(folder, images={1: turned((HEIGHT, WIDTH)), 2: turned((WIDTH, HEIGHT))})))
    assert stored[1]["note"] == "turned upright by EXIF"
    assert stored[2]["note"].startswith("EXIF orientation passed over")
    for one in (1, 2):
        with decoded(stored[one]["image"]) as opened:
            assert opened.size == (WIDTH, HEIGHT)
            assert opened.getexif().get(0x0112, 1) == 1


def test_an_image_of_another_size_than_its_record(folder: Path) -> None:
    written = ingest(write(folder, images={1: encoded(Image.new("RGB", (30, 20)))}))
    assert images(written)[1]["note"] == "20 x 30 pixels, recorded 16 x 24"
    assert [records(written)[f"mine/{i}"]["size_as_recorded"] for i in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    "raw", [b"\x00", b"no image", encoded(Image.effect_noise((WIDTH, HEIGHT), 80).convert("RGB"))[:300]]
)
def test_a_file_that_is_no_image(folder: Path, raw: bytes) -> None:
    written = ingest(write(folder, images={1: raw}))
    assert images(written)[1]["note"].startswith("no image (")
    assert records(written)["mine/1"]["image_found"] is False


def test_a_large_image_shrinks_and_its_masks_keep_their_frame(folder: Path) -> None:
    written = ingest(write(folder), longest=16)
    stored = images(written)[1]
    assert (stored["height"], stored["width"]) == (HEIGHT, WIDTH)
    assert (stored["stored_height"], stored["stored_width"]) == (11, 16)
    assert records(written)["mine/1"]["mask_area_px"] == 48


def test_a_file_name_that_leads_out_of_the_folder(folder: Path) -> None:
    content = instances()
    content["images"][0]["file_name"] = "../../../../../secret.jpg"
    write(folder, content=content)
    (folder.parent / "secret.jpg").write_bytes(encoded(Image.new("RGB", (WIDTH, HEIGHT))))
    assert "leads out" in images(ingest(folder))[1]["note"]


def test_a_segmentation_that_is_none_is_told(folder: Path) -> None:
    content = instances()
    content["annotations"][0] = annotation(11, 1, segmentation=[[1, 2, 3]])
    found = records(ingest(write(folder, content=content)))["mine/1"]
    assert "a polygon of 3 numbers" in found["fault"]
    assert found["mask_area_px"] is None


def test_sentences_that_say_nothing_or_too_much(folder: Path) -> None:
    listed = [
        ref(1, 11, 1, "?!", "Left man", "left man"),
        ref(2, 12, 1, "left man"),
        ref(3, 21, 2, *(f"woman {i}" for i in range(10_000)), split="val") | {"ref_id": 10_000},
    ]
    for place, sentence in enumerate(listed[2]["sentences"]):
        sentence["sent_id"] = 10_000 + place
    found = records(ingest(write(folder, listed=listed)))
    first = found["mine/1"]
    assert (first["wordless_sentences"], first["repeated_sentences"], first["ambiguous_sentences"]) == (1, 1, 2)
    assert found["mine/2"]["ambiguous_sentences"] == 1
    assert found["mine/10000"]["sentences"] == 10_000


def test_coco_style_json_with_expressions(folder: Path) -> None:
    import json

    write(folder)
    for part, image_id in (("train", 1), ("val", 2)):
        content = instances()
        content["images"] = [image for image in content["images"] if image["id"] == image_id]
        content["annotations"] = [
            one | {"refexp": ["The man's hat", "hat"]} if one["id"] % 10 == 1 else one
            for one in content["annotations"]
            if one["image_id"] == image_id
        ]
        (folder / f"{part}.json").write_text(json.dumps(content))
    form = {
        "reader": "coco",
        "files": {"train": "train.json", "val": "val.json"},
        "images": IMAGES,
        "expressions": "refexp",
    }
    written = ingest(folder, form)
    found = records(written)
    assert {key: row["split"] for key, row in found.items()} == {"mine/11": "train", "mine/21": "val"}
    assert found["mine/11"]["source_file"] == "train.json"
    sentences = pl.read_parquet(written / "sentences.parquet")
    assert sentences["sentence_id"].to_list() == [0, 1, 2, 3]
    assert sentences["tokens"].to_list()[0] == ["the", "man's", "hat"]


SHARED = Path(__file__).parents[4] / "shared" / "data" / "refcoco" / "coco128"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the developers' data folder")
def test_real_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pl.read_parquet(ingest(SHARED) / "records.parquet")
    assert table.height == 363
    assert table["sentences"].sum() == 481
    assert table["image_found"].all()
    assert table["size_as_recorded"].all()
    assert table["box_iou"].min() > 0.9  # type: ignore[operator]
    assert (table["mask_area_px"] == table["recorded_area_px"]).all()
