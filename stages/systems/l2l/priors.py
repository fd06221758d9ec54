"""Priors of a set: a soft map s0 and a confidence for each sentence, from the provider that the settings name.

A file of proposals has a JSON object a line: ``sentence_id``, a ``box`` [x, y, width, height] or an ``rle`` {size,
counts} in pixels of the image's own frame, and a ``confidence`` from 0 to 1 (1 where it is left out). A sentence may
have several; the map is the largest of confidence times mask at each pixel.

Shape suffixes: S sentence, I image, H W pixels at the network's size.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages import artifacts
from stages.accepted.refcoco import Accepted
from stages.errors import DataError
from stages.refcoco import masks
from stages.runtime import progress
from stages.systems.l2l import grounder
from stages.systems.l2l.endpoint import Box, ask_all
from stages.systems.l2l.pictures import decode_images
from stages.systems.l2l.settings import Endpoint, Grounder, ProposalFile

REMEDY = "Mend the line, or leave it out; docs/systems/l2l.md describes the file."


@dataclass(frozen=True)
class Priors:
    """Priors of the sentences of a set.

    Attributes
    ----------
    map_SHW
        s0 times 255.
    confidence_S
        From 0 to 1; 0 where there is no proposal.
    """

    map_SHW: NDArray[np.uint8]
    confidence_S: NDArray[np.float32]

    @property
    def digest(self) -> str:
        """Hash of the maps and confidences."""
        return artifacts.sha256_arrays({"map": self.map_SHW, "confidence": self.confidence_S})


def no_priors(sentences: int, side: int) -> Priors:
    """Priors that say nothing."""
    return Priors(np.zeros((sentences, side, side), np.uint8), np.zeros(sentences, np.float32))


def priors_of(accepted: Accepted, settings: Grounder | ProposalFile | Endpoint, side: int, scratch: Path) -> Priors:
    """Priors of every sentence.

    Parameters
    ----------
    scratch
        Where what is costly is kept for other seeds and later runs.

    Raises
    ------
    DataError
        A file of proposals is missing, damaged, or lacks a sentence.
    StageError
        The endpoint does not answer.
    """
    if isinstance(settings, Grounder):
        return _kept(accepted, settings, side, scratch)
    if isinstance(settings, ProposalFile):
        return read_proposals(accepted, settings, side)
    asked = [
        (accepted.image_I[accepted.image_O[o]], text)
        for o, text in zip(accepted.object_S, accepted.sentence_S, strict=True)
    ]
    boxes = ask_all(asked, settings, scratch / "endpoint.jsonl")
    return from_boxes(boxes, settings.confidence, side)


def from_boxes(boxes: Sequence[Box | None], confidence: float, side: int) -> Priors:
    """Priors of boxes in shares of the image; none is a prior that says nothing."""
    found = no_priors(len(boxes), side)
    for s, box in enumerate(boxes):
        if box is not None:
            found.map_SHW[s] = np.rint(255 * covered(box, side))
            found.confidence_S[s] = confidence
    return found


def covered(box: Box, side: int) -> NDArray[np.float64]:
    """Share of each pixel that a box covers, (side, side)."""
    left, top, right, bottom = (side * value for value in box)
    edge = np.arange(side)
    across_W = np.clip(np.minimum(right, edge + 1) - np.maximum(left, edge), 0, 1)
    down_H = np.clip(np.minimum(bottom, edge + 1) - np.maximum(top, edge), 0, 1)
    return np.outer(down_H, across_W)


def _kept(accepted: Accepted, settings: Grounder, side: int, scratch: Path) -> Priors:
    """The grounder's priors, from scratch where another seed has made them."""
    from safetensors.numpy import load_file, save

    digest = hashlib.sha256(json.dumps([settings.model_dump(), side, accepted.tokens_S]).encode())
    digest.update(Path(grounder.__file__).read_bytes())
    digest.update(np.ascontiguousarray(accepted.image_O[accepted.object_S]).tobytes())
    for content in accepted.image_I:
        digest.update(hashlib.sha256(content).digest())
    file = scratch / f"grounder-{digest.hexdigest()[:32]}.safetensors"
    if file.exists():
        found = load_file(file)
        return Priors(found["map"], found["confidence"])
    priors = ground_all(accepted, settings, side)
    with artifacts.atomic(file) as draft:
        draft.write_bytes(save({"map": priors.map_SHW, "confidence": priors.confidence_S}))
    return priors


def ground_all(accepted: Accepted, settings: Grounder, side: int) -> Priors:
    """The grounder's priors; each image is looked at once."""
    found = no_priors(len(accepted.sentence_S), side)
    image_S = accepted.image_O[accepted.object_S]
    order_S = np.argsort(image_S, kind="stable")
    starts = np.searchsorted(image_S[order_S], np.arange(len(accepted.image_I) + 1))
    for i in progress(range(len(accepted.image_I)), f"grounder, {accepted.key}", unit="images"):
        seen = grounder.regions(decode_images(accepted.image_I[i : i + 1], settings.side)[0])
        for s in order_S[starts[i] : starts[i + 1]]:
            map_HW, confidence = grounder.ground(seen, accepted.tokens_S[s], side)
            found.map_SHW[s], found.confidence_S[s] = np.rint(255 * map_HW), confidence
    return found


def read_proposals(accepted: Accepted, settings: ProposalFile, side: int) -> Priors:
    """Priors of a file of proposals; those of sentences that were not accepted are passed over."""
    file = settings.path
    if not file.is_file():
        raise DataError(
            file,
            found="no such file",
            expected="proposals, a JSON object a line",
            remedy="Write it, or take another systems.l2l.train.prior.",
        )
    found = no_priors(len(accepted.sentence_S), side)
    places: dict[int, list[int]] = {}
    for s, sentence_id in enumerate(accepted.sentence_id_S.tolist()):
        places.setdefault(sentence_id, []).append(s)
    seen: set[int] = set()
    with file.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            proposal, confidence = _proposal(file, f"line {number}", line)
            mine = places.get(proposal["sentence_id"], [])
            seen.update(mine)
            for s in mine:
                height, width = accepted.size_I2[accepted.image_O[accepted.object_S[s]]].tolist()
                map_HW = _proposed(file, f"line {number}", proposal, height, width, side)
                found.map_SHW[s] = np.maximum(found.map_SHW[s], np.rint(255 * confidence * map_HW))
                found.confidence_S[s] = max(found.confidence_S[s], confidence)
    lacking = [s for s in range(len(accepted.sentence_S)) if s not in seen]
    if lacking and settings.missing == "error":
        raise DataError(
            file,
            found=f"no proposal for {len(lacking)} of {len(accepted.sentence_S)} sentences of {accepted.key}, "
            f"the first sentence_id {accepted.sentence_id_S[lacking[0]]}",
            expected="one or more for each",
            remedy="Add them, or set systems.l2l.train.prior.missing: nothing.",
        )
    return found


def _proposal(file: Path, where: str, line: str) -> tuple[dict[str, Any], float]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(
            file, record=where, found=f"no JSON ({error.msg})", expected="a JSON object", remedy=REMEDY
        ) from None
    known = isinstance(value, dict) and type(value.get("sentence_id")) is int
    if not known or ("box" in value) == ("rle" in value):
        raise DataError(
            file,
            record=where,
            found=f"{line.strip()[:80]}",
            expected="sentence_id, a whole number, and either box or rle",
            remedy=REMEDY,
        )
    confidence = value.get("confidence", 1.0)
    if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise DataError(
            file, record=where, found=f"confidence {confidence!r}", expected="a number from 0 to 1", remedy=REMEDY
        )
    return value, float(confidence)


def _proposed(
    file: Path, where: str, proposal: dict[str, Any], height: int, width: int, side: int
) -> NDArray[np.floating[Any]]:
    if "box" in proposal:
        box = proposal["box"]
        numbers = isinstance(box, list) and len(box) == 4 and all(isinstance(value, int | float) for value in box)
        if not numbers or not np.isfinite(box).all() or box[2] < 0 or box[3] < 0:
            raise DataError(
                file, record=where, found=f"box {box!r}", expected="[x, y, width, height] in pixels", remedy=REMEDY
            )
        x, y, wide, high = box
        return covered((x / width, y / height, (x + wide) / width, (y + high) / height), side)
    try:
        run_R, _ = masks.read_segmentation(proposal["rle"], height, width)
    except masks.MaskError as error:
        raise DataError(file, record=where, found=error.found, expected=error.expected, remedy=REMEDY) from None
    run_F, start_M = masks.flat([run_R])
    small_HW: NDArray[np.float64] = masks.decode_small(run_F, start_M, np.array([[height, width]]), side, side)[
        0
    ].astype(np.float64)
    return small_HW
