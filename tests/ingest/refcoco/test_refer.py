"""REFER's layout as it is published, and broken."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from stages.errors import DataError
from stages.ingest.refcoco.config import Format, Refer
from stages.ingest.refcoco.refer import open_refer
from tests.ingest.refcoco.refer_files import annotation, instances, ref, refs, write

REFER = Refer(reader="refer")


def test_a_data_set(tmp_path: Path) -> None:
    found = open_refer(write(tmp_path), REFER, "mine")
    assert found.title == "refcoco (unc)"
    assert found.sources == {"": "refcoco/refs(unc).p"}
    assert [one.split for one in found.refs] == ["train", "val", "testA"]
    assert [sentence.sentence for sentence in found.refs[0].sentences] == ["left man", "the man on the left"]
    assert found.refs[0].sentences[1].raw == "THE MAN ON THE LEFT"
    assert found.images[1].file_name == "COCO_train2014_000000000001.jpg"  # not the ref's, which names the annotation
    assert sorted(found.objects) == [11, 12, 21, 31]


def test_the_bare_format_takes_what_is_there(tmp_path: Path) -> None:
    assert open_refer(write(tmp_path / "a", dataset="refcocog", split_by="umd"), REFER, "").title == "refcocog (umd)"
    both = write(write(tmp_path / "b", dataset="refcoco+"), dataset="refcoco")
    assert open_refer(both, REFER, "").title == "refcoco (unc)"
    assert open_refer(both, Refer(reader="refer", dataset="refcoco+"), "").title == "refcoco+ (unc)"
    assert open_refer(both / "refcoco+", REFER, "").title == "refcoco+ (unc)"


def test_a_choice_that_must_be_made_is_asked_for(tmp_path: Path) -> None:
    two = write(write(tmp_path / "two", dataset="refclef"), dataset="refcocog")
    with pytest.raises(DataError, match=r"no refcoco/instances\.json; data sets here: refclef, refcocog"):
        open_refer(two, REFER, "")
    split = write(write(tmp_path / "split", split_by="google"), split_by="umd")
    with pytest.raises(DataError, match=r"no refs\(unc\)\.p; refs here: google, umd.*split_by"):
        open_refer(split, REFER, "")
    with pytest.raises(DataError, match=r"data sets here: none.*refs\(SPLIT_BY\)"):
        open_refer(tmp_path / "two" / "images", REFER, "")


def test_a_byte_of_python_2_survives(tmp_path: Path) -> None:
    """Case 16: latin1."""
    listed = pickle.dumps([ref(1, 11, 1, "cafe")], protocol=2).replace(b"X\x04\x00\x00\x00cafe", b"U\x04caf\xe9")
    found = open_refer(write(tmp_path, listed=listed), REFER, "")
    assert found.refs[0].sentences[0].sentence == "caf\u00e9"


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, ("touch /tmp/was_run",)


def _without(block: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != key}


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        (pickle.dumps([Evil()], protocol=2), "a pickle that asks for posix.system"),
        (pickle.dumps(refs(), protocol=2)[:200], "a damaged or incomplete pickle"),
        (pickle.dumps({"refs": []}, protocol=2), "a pickled dict; expected a list of refs"),
        ([ref(1, 11, 1, "a"), ref(1, 21, 2, "b")], "ref 1: found an id that stands before"),
        ([ref(1, 11, 1, "a"), ref(2, 21, 2, "b") | {"sentences": ref(1, 11, 1, "a")["sentences"]}], "sentence 100"),
        ([_without(ref(1, 11, 1, "a"), "split")], "ref 1: found no split"),
        ([ref(1, 11, 1, "a") | {"image_id": "one"}], "image_id = 'one'; expected a whole number"),
        ([ref(1, 11, 1, "a", sentences=[{"sent_id": 4, "sent": None}])], "sentence 4: found sent = None"),
        (["a ref"], r"refs\[0\]: found a str"),
    ],
)
def test_refs_that_are_none(tmp_path: Path, listed: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        open_refer(write(tmp_path, listed=listed), REFER, "")
    assert not Path("/tmp/was_run").exists()


def _instances(**changes: Any) -> dict[str, Any]:
    return instances() | changes


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "no JSON"),
        ("[]", "found a list; expected a block with images"),
        (json.dumps(_instances(annotations={})), "annotations: found no list"),
        (_instances(images=[{"id": 1, "file_name": "a", "height": 0, "width": 3}]), "image 1: found 0 x 3 pixels"),
        (_instances(images=instances()["images"] * 2), "image 1: found an id that stands before"),
        (_instances(annotations=[annotation(11, 1)] * 2), "annotation 11: found an id that stands before"),
        (_instances(annotations=[annotation(11, 1, bbox=[1, 2])]), r"bbox = \[1, 2\]; expected left, top"),
        (_instances(categories=[{"id": 1}]), r"categories\[0\]: found no name"),
    ],
)
def test_instances_that_are_none(tmp_path: Path, content: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        open_refer(write(tmp_path, content=content), REFER, "")


def test_the_short_form_and_an_unknown_reader() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Format)
    assert adapter.validate_python("refer") == REFER
    with pytest.raises(ValidationError, match="did you mean 'refer'"):
        adapter.validate_python("refr")
