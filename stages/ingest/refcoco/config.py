"""The format of one set in params.yaml as typed objects; ``format: refer`` is short for ``{reader: refer}``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from stages.params import Config


class Refer(Config):
    """REFER's layout: DATASET/instances.json and DATASET/refs(SPLIT_BY).p, images beside them."""

    reader: Literal["refer"]
    dataset: str | None = Field(
        None, description="refcoco, refcoco+, refcocog or refclef; default: the one there is, else refcoco"
    )
    split_by: str | None = Field(None, description="unc, google, umd or berkeley; default: the one there is, else unc")
    images: str | None = Field(
        None, description="folder of the images under `path`; default: images/mscoco/images/train2014, then images"
    )


class Coco(Config):
    """COCO-style JSON whose annotations carry their referring expressions, a file for each part."""

    reader: Literal["coco"]
    files: dict[str, str] = Field(
        min_length=1, description="part (train, val, testA, ...) -> its JSON file under `path`"
    )
    images: str = Field("images", description="folder of the images under `path`")
    expressions: str = Field(
        "expressions", description="key of an annotation that holds its expression, or a list of them"
    )


READERS = ("refer", "coco")


def _shorthand(value: Any) -> Any:
    """A bare name is short for ``{reader: NAME}``; an unknown reader is refused at its own place."""
    block = {"reader": value} if isinstance(value, str) else value
    if isinstance(block, Mapping) and block.get("reader") not in READERS:
        reader = block.get("reader")
        close = difflib.get_close_matches(str(reader), READERS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        told = f"no reader has this name; {hint}the readers are {', '.join(READERS)}"
        fault: InitErrorDetails = {
            "type": PydanticCustomError("reader", "{told}", {"told": told}),
            "loc": ("reader",),
            "input": reader,
        }
        raise ValidationError.from_exception_data("format", [fault])
    return block


AnyFormat = Refer | Coco
Format = Annotated[AnyFormat, Field(discriminator="reader"), BeforeValidator(_shorthand)]


class Images(Config):
    """How images are stored."""

    longest: int = Field(640, ge=16, description="longest side of a stored image in pixels; a larger one shrinks")
