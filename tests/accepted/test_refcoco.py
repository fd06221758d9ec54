"""Sets of referring segmentation opened through their verdict."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from stages import artifacts
from stages.accepted import refcoco
from stages.errors import UsageError
from stages.refcoco import masks
from tests.ingest.refcoco.refer_files import HEIGHT, IMAGES, WIDTH, annotation, name, ref, write
from tests.validate.refcoco.fakes import content, photographs, twelve, validate


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return twelve(tmp_path / "own")


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


def test_a_ref_of_two_test_parts_is_in_both(own: Path) -> None:
    """REFER takes testAB for testA and for testB; the object stands once."""
    validate(own)
    found = refcoco.open_set("mine")
    assert [found.sentence_S[s] for s in found.part("testA")] == ["thing 11", "thing 12"]
    assert [found.sentence_S[s] for s in found.part("testB")] == ["thing 12"]
    assert len(found.sentence_S) == 13
    assert len(found.object_id_O) == 12
    assert found.object_id_O[found.object_S[found.part("testB")]].tolist() == [121]
    assert found.tokens_S[0] == ("thing", "1")


def test_an_image_stays_where_one_of_its_refs_is_refused(own: Path) -> None:
    both = content(12)
    both["annotations"].append(annotation(12, 1, segmentation=[], area=0))
    listed = [ref(1, 11, 1, "one"), ref(2, 12, 1, "of no pixel"), ref(3, 21, 2, "two"), ref(4, 31, 3, "three")]
    write(own, content=both, listed=listed)
    photographs(own, 12)
    validate(own, max_quarantined=0.3)
    found = refcoco.open_set("mine")
    assert found.image_id_I.tolist() == [1, 2, 3]
    assert found.object_id_O.tolist() == [11, 21, 31]
    assert found.record_S == ("mine/1", "mine/3", "mine/4")


def test_images_are_the_bytes_of_their_files(own: Path) -> None:
    validate(own)
    found = refcoco.open_set("mine")
    assert found.image_I[4] == (own / IMAGES / name(5)).read_bytes()
    assert Image.open(io.BytesIO(found.image_I[4])).size == (WIDTH, HEIGHT)
    assert found.size_I2.tolist() == [[HEIGHT, WIDTH]] * 12
    assert not found.simulated


def test_two_refs_of_one_object(own: Path) -> None:
    write(own, content=content(12), listed=[ref(1, 11, 1, "one", "uno"), ref(2, 11, 1, "another name")])
    photographs(own, 12)
    validate(own)
    found = refcoco.open_set("mine")
    assert found.object_S.tolist() == [0, 0, 0]
    assert found.record_S == ("mine/1", "mine/1", "mine/2")


def test_a_category_that_the_file_does_not_name(own: Path) -> None:
    unnamed = content(12)
    unnamed["annotations"][0]["category_id"] = 99
    write(own, content=unnamed, listed=[ref(1, 11, 1, "one", category_id=99), ref(2, 21, 2, "two")])
    photographs(own, 12)
    assert validate(own)["sites"]["mine"]["failed"] == {"category known": 1}
    found = refcoco.open_set("mine")
    assert found.categories == ("person",)
    assert found.category_O.tolist() == [refcoco.NONE, 0]


def test_a_set_without_training_images(own: Path) -> None:
    write(own, content=content(12), listed=[ref(1, 11, 1, "one", split="testA")])
    photographs(own, 12)
    validate(own)
    found = refcoco.open_set("mine")
    with pytest.raises(UsageError, match="mine has no training part, so none of its images"):
        found.labelled(0.5, 0)


def test_labelled_images_of_a_smaller_share_are_among_those_of_a_larger(own: Path) -> None:
    validate(own)
    found = refcoco.open_set("mine")
    train_I = np.isin(found.image_id_I, range(1, 10))
    for draw in (0, 1):
        few_I, half_I, all_I = (found.labelled(share, draw) for share in (0.01, 0.5, 1.0))
        assert (few_I <= half_I).all()
        assert (half_I <= all_I).all()
        assert (all_I == train_I).all()
