"""The files: REFER's layout, exact masks, parts that share no image, equal bytes, and RefCOCO's own reader."""

from __future__ import annotations

import hashlib
import json
import pickletools
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import yaml

from stages import manifest
from stages.errors import StageError, UsageError
from stages.ingest import unpickle
from stages.ingest.refcoco.config import Refer
from stages.ingest.refcoco.sets import open_set
from stages.refcoco import masks
from stages.runtime import random_numbers
from stages.simulate.refcoco import layout, stage, wording
from stages.simulate.refcoco.options import Design, Scene, Simulation
from stages.simulate.refcoco.shapes import CATEGORIES

Refs = list[dict[str, Any]]
NUMBERS = {"train": 16, "val": 4, "testA": 6, "testB": 6}


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def read(written: Path, name: str) -> Refs:
    found: Refs = unpickle.load(written / name / "refs(unc).p")
    return found


def decoded(annotation: dict[str, Any], image: dict[str, Any]) -> masks.Mask:
    height, width = image["height"], image["width"]
    return masks.decode(masks.read_segmentation(annotation["segmentation"], height, width)[0], height, width)


def test_the_layout_is_that_of_refer(written: Path, instances: dict[str, Any]) -> None:
    names = {path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file()}
    images = {f"images/mscoco/images/train2014/COCO_train2014_{number:012d}.jpg" for number in range(1, 33)}
    tables = {f"{name}/{file}" for name in ("refcoco", "refcoco+") for file in ("instances.json", "refs(unc).p")}
    assert names == images | tables | {"simulation.json"}
    assert set(instances) == {"info", "licenses", "images", "annotations", "categories"}
    assert set(instances["images"][0]) == {"id", "file_name", "height", "width"}
    fields = {"id", "image_id", "category_id", "segmentation", "area", "bbox", "iscrowd"}
    assert all(set(one) == fields for one in instances["annotations"])
    assert instances["categories"][0] == {"supercategory": "round", "id": 1, "name": "ball"}
    assert (written / "refcoco+/instances.json").read_bytes() == (written / "refcoco/instances.json").read_bytes()


def test_images_have_the_recorded_size(written: Path, instances: dict[str, Any]) -> None:
    for image in instances["images"]:
        with PIL.Image.open(written / layout.IMAGES / image["file_name"]) as opened:
            assert (opened.format, opened.mode) == ("JPEG", "RGB")
            assert opened.size == (image["width"], image["height"])


def test_a_ref_has_the_fields_of_refer(refs: Refs, instances: dict[str, Any]) -> None:
    annotations = {one["id"]: one for one in instances["annotations"]}
    for number, ref in enumerate(refs):
        assert set(ref) == {
            *("sent_ids", "file_name", "ann_id", "ref_id", "image_id", "split", "sentences", "category_id")
        }
        assert ref["ref_id"] == number
        assert ref["file_name"] == f"COCO_train2014_{ref['image_id']:012d}_{ref['ann_id']}.jpg"
        own = annotations[ref["ann_id"]]
        assert (own["image_id"], own["category_id"]) == (ref["image_id"], ref["category_id"])
        assert ref["sent_ids"] == [sentence["sent_id"] for sentence in ref["sentences"]]
        for sentence in ref["sentences"]:
            assert set(sentence) == {"tokens", "raw", "sent_id", "sent"}
            assert sentence["tokens"] == sentence["sent"].split()
            assert sentence["raw"].lower().rstrip(".") == sentence["sent"]
    assert [number for ref in refs for number in ref["sent_ids"]] == list(range(64))


def test_an_image_has_its_sentences_and_one_part(refs: Refs) -> None:
    sentences: Counter[int] = Counter()
    parts = defaultdict(set)
    for ref in refs:
        sentences[ref["image_id"]] += len(ref["sentences"])
        parts[ref["split"]].add(ref["image_id"])
    assert dict(sentences) == dict.fromkeys(range(1, 33), 2)
    assert {part: len(images) for part, images in parts.items()} == NUMBERS
    assert sum(len(images) for images in parts.values()) == len(set.union(*parts.values()))


def test_a_test_part_names_one_group_of_shapes(refs: Refs, instances: dict[str, Any]) -> None:
    groups = {one["id"]: one["supercategory"] for one in instances["categories"]}
    found = defaultdict(set)
    for ref in refs:
        found[ref["split"]].add(groups[ref["category_id"]])
    assert (found["testA"], found["testB"], found["train"]) == ({"round"}, {"angular"}, {"round", "angular"})


def test_refcoco_plus_has_no_word_of_place(written: Path) -> None:
    said = {
        name: {word for ref in read(written, name) for one in ref["sentences"] for word in one["tokens"]}
        for name in layout.DATA_SETS
    }
    assert not said["refcoco+"] & wording.PLACE_WORDS
    assert {"left", "right", "top"} <= said["refcoco"]


def test_masks_boxes_and_areas_are_exact(instances: dict[str, Any]) -> None:
    forms = set()
    for image in instances["images"]:
        covered_HW = np.zeros((image["height"], image["width"]), dtype=int)
        for annotation in (one for one in instances["annotations"] if one["image_id"] == image["id"]):
            mask_HW = decoded(annotation, image)
            rows, columns = np.nonzero(mask_HW)
            left, top, width, height = annotation["bbox"]
            assert annotation["area"] == mask_HW.sum()
            assert (left, top) == (columns.min(), rows.min())
            assert (left + width, top + height) == (columns.max() + 1, rows.max() + 1)
            assert annotation["iscrowd"] == 0
            covered_HW += mask_HW
            segmentation = annotation["segmentation"]
            forms.add("polygon" if isinstance(segmentation, list) else type(segmentation["counts"]).__name__)
        assert covered_HW.max() == 1
    assert forms == {"polygon", "str", "list"}


def test_a_category_said_alone_is_there_once(refs: Refs, instances: dict[str, Any]) -> None:
    # Told from the words and the files alone: "star", "leftmost ball".
    nouns = {word: name for name, words in wording.NOUNS.items() for word in words}
    ids = {one["name"]: one["id"] for one in instances["categories"]}
    checked = 0
    for ref in refs:
        there = [one for one in instances["annotations"] if one["image_id"] == ref["image_id"]]
        for sentence in ref["sentences"]:
            words = [word for word in sentence["tokens"] if word != "the"]
            if words[-1] not in nouns:
                continue
            own = [one for one in there if one["category_id"] == ids[nouns[words[-1]]]]
            if len(words) == 1:
                assert [one["id"] for one in own] == [ref["ann_id"]]
                checked += 1
            elif words[:-1] == ["leftmost"]:
                assert min(own, key=lambda one: one["bbox"][0] + one["bbox"][2] / 2)["id"] == ref["ann_id"]
    assert checked > 0


def test_the_pickle_is_one_of_plain_values_that_python_2_reads(written: Path) -> None:
    for name in layout.DATA_SETS:
        content = (written / name / "refs(unc).p").read_bytes()
        assert content.startswith(b"\x80\x02")
        found = {opcode.name for opcode, _, _ in pickletools.genops(content)}
        assert not found & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "SHORT_BINBYTES"}
        assert max(opcode.proto for opcode, _, _ in pickletools.genops(content)) <= 2


def test_equal_values_give_equal_pickles_whichever_are_one_object() -> None:
    word = "".join(["sta", "r"])
    one: Refs = [{"sent": word, "raw": word}]
    two: Refs = [{"sent": "".join(["st", "ar"]), "raw": "".join(["s", "tar"])}]
    assert layout.pickled(one) == layout.pickled(two)


def test_equal_options_give_equal_bytes_and_another_seed_others(
    written: Path, simulation: Simulation, tmp_path: Path
) -> None:
    layout.write(tmp_path / "again", simulation)
    assert digests(tmp_path / "again") == digests(written)
    layout.write(tmp_path / "other", simulation.model_copy(update={"seed": 8}))
    assert not {digest for name, digest in digests(tmp_path / "other").items() if name.endswith(("jpg", ".p"))} & set(
        digests(written).values()
    )


def test_more_training_images_leave_the_others_as_they_are(simulation: Simulation) -> None:
    more = simulation.model_copy(update={"design": simulation.design.model_copy(update={"train": 99})})
    first, second = (
        layout.compose(random_numbers(options.seed, "testA", "3"), options, 20, "testA")
        for options in (simulation, more)
    )
    assert first.said == second.said
    np.testing.assert_array_equal(first.scene.visible_OHW, second.scene.visible_OHW)


def test_the_default_size_has_over_4000_sentences() -> None:
    design = Design()
    sizes = Counter(split for split, _ in layout.parts(design))
    assert sizes == {"train": 2400, "val": 300, "testA": 250, "testB": 250}
    assert sum(sizes.values()) * design.sentences >= 4000


def test_photographs_change_the_images_alone(simulation: Simulation, written: Path, tmp_path: Path) -> None:
    photograph = np.random.default_rng(0).integers(0, 256, (90, 90, 3), dtype=np.uint8)
    np.savez(tmp_path / "photograph.npz", rgb=photograph)
    look = simulation.look.model_copy(update={"textures": tmp_path / "photograph.npz"})
    layout.write(tmp_path / "scenes", simulation.model_copy(update={"look": look}))
    before, after = digests(written), digests(tmp_path / "scenes")
    assert {name for name in before if before[name] != after[name]} == {name for name in before if "jpg" in name}


def test_simulation_json_says_what_the_scenes_are(written: Path) -> None:
    text = (written / "simulation.json").read_text()
    found = json.loads(text)
    assert found["simulated"] is True
    assert found["test_parts"] == {"testA": "round", "testB": "angular"}
    for name in layout.DATA_SETS:
        told = found["data_sets"][name]
        assert told["sentences"] == {part: 2 * number for part, number in NUMBERS.items()}
        assert sum(told["forms"].values()) == 64
    assert set(found["data_sets"]["refcoco+"]["forms"]) <= {"attributes", "relation", "superlative", "negation"}
    assert str(written) not in text


@pytest.mark.parametrize("dataset", layout.DATA_SETS)
def test_the_reader_of_refcoco_reads_it(written: Path, dataset: str) -> None:
    found = open_set(written, Refer(reader="refer", dataset=dataset, split_by="unc"), "scenes")
    assert len(found.images) == 32
    assert set(found.categories.values()) == set(CATEGORIES)
    assert sum(len(ref.sentences) for ref in found.refs) == 64


def test_scenes_that_cannot_be_described_are_an_error_not_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "TRIES", 3)
    crowd = Simulation(seed=0, design=Design(sentences=6, one_object=0), scene=Scene(objects=(3, 4)))
    with pytest.raises(StageError, match=r"none of 3 scenes of split val has an object for each of 6 sentences.*lower"):
        layout.compose(np.random.default_rng(0), crowd, 1, "val")


def write_params(block: dict[str, object]) -> None:
    Path("params.yaml").write_text(yaml.safe_dump({"refcoco": {"simulated": {"small": block}}}))


def test_the_stage_writes_a_manifest_that_says_simulator(workspace: Path, simulation: Simulation) -> None:
    block = simulation.model_dump(mode="json") | {"design": {"train": 2, "validation": 1, "test_a": 1, "test_b": 1}}
    write_params(block)
    stage.run(stage.Params.read(name="refcoco", key="small"), name="refcoco", key="small")
    found = manifest.verify(Path("data/raw/small"))
    assert (found.kind, found.source) == ("simulator", "small")
    assert (found.origin["module"], found.origin["seed"]) == ("stages.simulate.refcoco", 7)
    assert len(found.files) == 5 + 5
    assert all(path.stat().st_mode & 0o777 == 0o444 for path in Path("data/raw/small").rglob("*.jpg"))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"desing": {}}, r"refcoco.simulated.small.desing is not a known key; did you mean 'design'"),
        ({"design": {"train": 0}}, r"refcoco.simulated.small.design.train: found 0"),
        ({"scene": {"sides_px": [90, 80]}}, r"sides_px: expected \[shortest, longest\]"),
        ({"scene": {"objects": [1, 3]}}, r"objects: expected \[fewest, most\]"),
        ({"look": {"jpeg_quality": [0, 50]}}, r"jpeg_quality: expected \[lowest, highest\]"),
        (
            {"sentences": {"forms": {"location": 1}}},
            r"forms: expected weights of 0 or more, that of attributes above 0",
        ),
    ],
)
def test_options_that_cannot_be(workspace: Path, block: dict[str, object], message: str) -> None:
    write_params({"seed": 5, **block})
    with pytest.raises(UsageError, match=message):
        stage.Params.read(name="refcoco", key="small")
