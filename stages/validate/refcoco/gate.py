"""Limits of the gate of referring segmentation: what is expected of one ref, its mask and its sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stages.params import Config

Share = Annotated[float, Field(ge=0, le=1)]
Pixels = Annotated[float, Field(ge=0)]
Choice = Literal["quarantine", "report"]


def _ascending(bounds: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= bounds[0] <= bounds[1]:
        raise ValueError(f"found {list(bounds)}; expected the fewest words, then the most")
    return bounds


Words = Annotated[tuple[int, int], AfterValidator(_ascending)]


class Gate(Config):
    """Limits of the gate. A set's own gate names only those it changes."""

    max_quarantined: Share = Field(0.2, description="share of a set's refs, and of all")
    min_mask: Pixels = Field(1, description="pixels of a mask; 1 refuses empty targets")
    small_mask: Pixels = Field(64, description="the same; below: warning")
    max_outside: Pixels = Field(5, description="pixels that a box or a polygon may lie outside the image")
    outside: Pixels = Field(1, description="the same; above: warning")
    min_box_iou: Share = Field(0.3, description="intersection over union of the stated box and that of the mask")
    low_box_iou: Share = Field(0.8, description="the same; below: warning")
    max_area_off: Share = Field(0.7, description="share by which the mask's area differs from the stated one")
    area_off: Share = Field(0.2, description="the same, also of the area inside the polygons; above: warning")
    words: Words = Field((1, 60), description="words of a sentence")
    wordless: Choice = Field("report", description="a sentence without a letter or digit beside others that have some")
    ambiguous: Choice = Field("report", description="a sentence that names two objects of one image")
    copies: Choice = Field("quarantine", description="image, mask and sentences of an earlier ref of the set")
    shared_images: Literal["stop", "allow"] = Field(
        "stop",
        description="an image in training and in validation, as in RefCOCOg by google; one in a test part always stops",
    )
    pretraining_images: Path | None = Field(
        None,
        description="file of image ids (JSON list, or one a line) that a model was pre-trained on; DVC does not see it "
        "change",
    )
    pretrained: Choice = Field("report", description="a validation or test image that is on that list")

    def overridden(self, override: Gate | None) -> Gate:
        """These limits with those that a set's own gate sets."""
        if override is None:
            return self
        return Gate.model_validate(self.model_dump() | override.model_dump(exclude_unset=True))


class Labelled(Config):
    """Images whose masks count as known where few are; drawn by image, a smaller share inside each larger one."""

    seed: int = Field(0, ge=0, description="of the draws")
    shares: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        [0.01, 0.05, 0.1], min_length=1, description="shares of the training images"
    )
    draws: int = Field(5, ge=1, description="draws that are independent of each other; seed s of a system takes draw s")
