"""Priors from a file of proposals, and the offline grounder: what it knows and what it does not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.errors import DataError
from stages.metrics.segmentation import mean_iou, overlaps
from stages.refcoco.masks import to_packed
from stages.systems.l2l import grounder
from stages.systems.l2l.grounder import COLOURS, ground, regions, scores
from stages.systems.l2l.pictures import load
from stages.systems.l2l.priors import covered, priors_of, read_proposals
from stages.systems.l2l.settings import Grounder, ProposalFile
from tests.systems.l2l.small import SIDE, made

ACCEPTED = made()
COUNT = len(ACCEPTED.sentence_S)


def written(folder: Path, lines: list[Any]) -> Path:
    file = folder / "proposals.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return file


def test_a_box_covers_shares_of_pixels() -> None:
    found = covered((0.125, 0.0, 0.5, 0.5), 4)
    assert found[0].tolist() == [0.5, 1, 0, 0]
    assert found[2].tolist() == [0, 0, 0, 0]


def test_run_lengths_of_the_true_masks_are_a_perfect_prior(tmp_path: Path) -> None:
    lines = [
        {
            "sentence_id": int(ACCEPTED.sentence_id_S[s]),
            "rle": {
                "size": ACCEPTED.size_I2[ACCEPTED.image_O[s]].tolist(),
                "counts": to_packed(ACCEPTED.run_F[ACCEPTED.start_O1[s] : ACCEPTED.start_O1[s + 1]]),
            },
        }
        for s in range(COUNT)
    ]
    found = read_proposals(ACCEPTED, ProposalFile(provider="file", path=written(tmp_path, lines)), SIDE)
    assert (found.map_SHW == 255 * load(ACCEPTED, SIDE, 6).mask_OHW).all()
    assert (found.confidence_S == 1).all()


def test_of_several_proposals_the_surest_counts_at_each_pixel(tmp_path: Path) -> None:
    lines = [
        {"sentence_id": 1000, "box": [0, 0, 32, 20], "confidence": 0.4},
        {"sentence_id": 1000, "box": [0, 0, 16, 40], "confidence": 0.8},
        {"sentence_id": 77, "box": [0, 0, 1, 1]},
    ]
    file = ProposalFile(provider="file", path=written(tmp_path, lines), missing="nothing")
    found = read_proposals(ACCEPTED, file, 2)
    assert found.map_SHW[0].tolist() == [[204, 102], [204, 0]]
    assert found.confidence_S[:2].tolist() == pytest.approx([0.8, 0])


BROKEN = {
    "no JSON": ("{", "line 1: found no JSON"),
    "no sentence": ({"box": [0, 0, 1, 1]}, "expected sentence_id, a whole number, and either box or rle"),
    "neither": ({"sentence_id": 1000}, "either box or rle"),
    "both": ({"sentence_id": 1000, "box": [0, 0, 1, 1], "rle": {}}, "either box or rle"),
    "three numbers": ({"sentence_id": 1000, "box": [0, 0, 1]}, r"found box \[0, 0, 1\]; expected \[x, y, width"),
    "negative": ({"sentence_id": 1000, "box": [0, 0, -1, 1]}, "expected .x, y, width, height. in pixels"),
    "confidence": ({"sentence_id": 1000, "box": [0, 0, 1, 1], "confidence": 2}, "expected a number from 0 to 1"),
    "other size": ({"sentence_id": 1000, "rle": {"size": [2, 3], "counts": [6]}}, r"expected that of the image"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_line_is_named(tmp_path: Path, name: str) -> None:
    line, message = BROKEN[name]
    with pytest.raises(DataError, match=message) as caught:
        read_proposals(ACCEPTED, ProposalFile(provider="file", path=written(tmp_path, [line])), SIDE)
    assert "proposals.jsonl, line 1" in str(caught.value)


def test_a_sentence_without_a_proposal_is_an_error_unless_allowed(tmp_path: Path) -> None:
    file = written(tmp_path, [{"sentence_id": 1000, "box": [0, 0, 1, 1]}])
    with pytest.raises(
        DataError, match=f"no proposal for {COUNT - 1} of {COUNT} sentences of made, the first sentence_id"
    ):
        read_proposals(ACCEPTED, ProposalFile(provider="file", path=file), SIDE)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no such file; expected proposals, a JSON object a line"):
        read_proposals(ACCEPTED, ProposalFile(provider="file", path=tmp_path / "none.jsonl"), SIDE)


def test_the_grounder_finds_what_colour_words_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = priors_of(ACCEPTED, Grounder(side=32), SIDE, tmp_path / "kept")
    truth = load(ACCEPTED, SIDE, 6).mask_OHW > 0
    assert mean_iou(*overlaps(found.map_SHW > 127, truth)) > 0.7
    kept = priors_of(ACCEPTED, Grounder(side=32), SIDE, tmp_path / "kept")
    assert (kept.map_SHW == found.map_SHW).all()
    assert len(list((tmp_path / "kept").iterdir())) == 1


def scene(*squares: tuple[str, int, int, int]) -> np.ndarray:
    canvas = np.full((48, 48, 3), 110, np.uint8)
    for colour, top, left, size in squares:
        canvas[top : top + size, left : left + size] = COLOURS[colour]
    return canvas


def test_the_grounder_knows_no_relation_and_no_side() -> None:
    seen = regions(scene(("red", 10, 4, 10), ("red", 10, 30, 10)))
    plain = scores(seen, ["red", "square"])
    assert plain[0] == pytest.approx(plain[1], abs=0.02)
    for words in (["left", "red", "square"], ["red", "square", "above", "the", "blue", "ring"]):
        assert (scores(seen, words) == plain).all()


def test_size_words_choose_by_area() -> None:
    seen = regions(scene(("red", 4, 4, 8), ("red", 20, 20, 18)))
    small, large = seen.area_R.argmin(), seen.area_R.argmax()
    assert scores(seen, ["small", "red", "one"]).argmax() == small
    assert scores(seen, ["large", "red", "one"]).argmax() == large


def test_form_words_choose_by_form() -> None:
    canvas = scene(("blue", 30, 30, 12))
    row, column = np.mgrid[:48, :48]
    far = np.hypot(row - 13, column - 13)
    canvas[(far < 10) & (far > 5)] = COLOURS["blue"]
    seen = regions(canvas)
    holed = max(range(len(seen.area_R)), key=lambda r: seen.form_RF[r, 1])
    assert scores(seen, ["the", "ring"]).argmax() == holed
    assert scores(seen, ["the", "square"]).argmax() != holed


def test_an_image_without_a_region_has_no_prior() -> None:
    found, confidence = ground(regions(np.full((48, 48, 3), 110, np.uint8)), ["red"], 16)
    assert (found.max(), confidence) == (0, 0)


def test_one_region_has_all_the_confidence() -> None:
    seen = regions(scene(("green", 10, 10, 12)))
    assert len(seen.area_R) == 1
    found, confidence = ground(seen, ["whatever"], 16)
    assert confidence == pytest.approx(1)
    assert found.max() == pytest.approx(1)


def test_a_map_is_shrunk_by_areas() -> None:
    assert grounder.shrunk(np.eye(4), 4, 2).tolist() == [[0.5, 0], [0, 0.5]]
