"""Options of the simulated scenes, as they stand under ``refcoco.simulated.NAME`` in params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from stages.params import Config

Form = Literal["attributes", "location", "relation", "superlative", "ordinal", "negation"]


class Design(Config):
    """How many images each part has, and how many sentences an image."""

    train: int = Field(default=2400, ge=1, le=200_000, description="images of the training part")
    validation: int = Field(default=300, ge=1, le=20_000, description="images of the validation part (split val)")
    test_a: int = Field(default=250, ge=1, le=20_000, description="images of testA, whose sentences name round shapes")
    test_b: int = Field(
        default=250, ge=1, le=20_000, description="images of testB, whose sentences name angular shapes"
    )
    sentences: int = Field(default=2, ge=1, le=6, description="sentences of an image in each of the two data sets")
    one_object: float = Field(
        default=0.3, ge=0, le=1, description="share of images whose sentences all name one object; else each another"
    )


class Scene(Config):
    """What is in an image; sides and places in pixels or as shares of the shorter side."""

    sides_px: tuple[int, int] = Field(default=(112, 160), description="shortest and longest height and width, px")
    objects: tuple[int, int] = Field(default=(3, 6), description="fewest and most objects in an image")
    same_kind: float = Field(
        default=0.7, ge=0, le=1, description="chance that an object has the category of one that is there already"
    )
    same_colour: float = Field(
        default=0.5, ge=0, le=1, description="chance that an object has the colour of one that is there already"
    )
    touching: float = Field(
        default=0.5, ge=0, le=1, description="chance that an object is put where it overlaps another or almost does"
    )
    least_visible: float = Field(
        default=0.4, gt=0, le=1, description="least share of an object's pixels that others leave visible"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 64 <= self.sides_px[0] <= self.sides_px[1] <= 1024:
            raise ValueError("sides_px: expected [shortest, longest] with 64 ≤ shortest ≤ longest ≤ 1024")
        if not 3 <= self.objects[0] <= self.objects[1] <= 8:
            raise ValueError("objects: expected [fewest, most] with 3 ≤ fewest ≤ most ≤ 8")
        return self


class Look(Config):
    """How an image is drawn and stored."""

    textures: Path | None = Field(
        default=None,
        description="photographs for backgrounds and grain: a .npz with an array rgb, a JPEG or PNG, or a folder of "
        "such files; null draws cloudy noise instead",
    )
    grain: float = Field(default=0.5, ge=0, le=1, description="contrast of the texture on objects")
    light: float = Field(default=0.3, ge=0, le=1, description="most that light changes from one side to the other")
    noise: float = Field(default=0.04, ge=0, le=0.5, description="largest deviation of the noise, 1 is white")
    jpeg_quality: tuple[int, int] = Field(default=(70, 95), description="lowest and highest quality of the JPEG files")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 1 <= self.jpeg_quality[0] <= self.jpeg_quality[1] <= 100:
            raise ValueError("jpeg_quality: expected [lowest, highest] with 1 ≤ lowest ≤ highest ≤ 100")
        return self


class Sentences(Config):
    """What sentences say."""

    forms: dict[Form, float] = Field(
        default={
            "attributes": 0.2,
            "location": 0.35,
            "relation": 0.25,
            "superlative": 0.08,
            "ordinal": 0.07,
            "negation": 0.05,
        },
        description="weight of each form of sentence; refcoco+ takes those that need no location word",
    )
    ambiguous: float = Field(
        default=0.0, ge=0, le=1, description="share of sentences that are true of other objects of the image too"
    )

    @model_validator(mode="after")
    def _weighed(self) -> Self:
        if any(weight < 0 for weight in self.forms.values()) or self.forms.get("attributes", 0) <= 0:
            raise ValueError("forms: expected weights of 0 or more, that of attributes above 0")
        return self


class Simulation(Config):
    """Scenes of both data sets, refcoco and refcoco+, on the same images."""

    seed: int = Field(ge=0, description="seed of all its random numbers")
    design: Design = Design()
    scene: Scene = Scene()
    look: Look = Look()
    sentences: Sentences = Sentences()
