"""A set in memory, whatever the layout on disk: images, objects, refs and sentences as the files name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from stages.errors import DataError

AGAIN = "Copy or download it again."


class Image(NamedTuple):
    """A row of the image table; its file name is relative to the folder of the images."""

    image_id: int
    file_name: str
    height: int
    width: int


class Object(NamedTuple):
    """An annotation. Box: left, top, width, height in pixels, or None; ``segmentation`` is as in the file."""

    object_id: int
    image_id: int
    category_id: int
    box: tuple[float, float, float, float] | None
    area: float | None
    crowd: bool
    segmentation: Any


class Sentence(NamedTuple):
    """One referring expression: its text, the text before it was cleaned, its words."""

    sentence_id: int
    sentence: str
    raw: str
    tokens: Sequence[str]


class Ref(NamedTuple):
    """A referred object with its sentences; ``split`` is the file's own."""

    ref_id: int
    object_id: int
    image_id: int
    category_id: int | None
    split: str
    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class RefSet:
    """One set.

    Attributes
    ----------
    key
        Name of the set in params.yaml.
    title
        Data set and division, such as ``refcoco (unc)``.
    folder
        Where the images lie.
    sources
        File of the refs of each part, relative to the set's path; one for all parts under "".
    objects
        Annotations of the images that have a ref, by id.
    """

    key: str
    reader: str
    title: str
    path: Path
    folder: Path
    sources: Mapping[str, str]
    images: Mapping[int, Image]
    objects: Mapping[int, Object]
    refs: Sequence[Ref]
    categories: Mapping[int, str]
    notes: list[str] = field(default_factory=list)


def whole(value: Any, file: Path, record: str, name: str) -> int:
    """A whole number of a file; raises a DataError that names the place."""
    if type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise DataError(
        file, record=record, found=f"{name} = {value!r}", expected="a whole number", remedy="Correct the file."
    )


def text(value: Any, file: Path, record: str, name: str) -> str:
    """A text of a file; raises a DataError that names the place."""
    if isinstance(value, str):
        return value
    raise DataError(file, record=record, found=f"{name} = {value!r}", expected="a text", remedy="Correct the file.")


def entry(block: Any, key: str, file: Path, record: str) -> Any:
    """A value of a mapping of a file; raises a DataError that names the place."""
    if isinstance(block, Mapping) and key in block:
        return block[key]
    found = f"no {key}" if isinstance(block, Mapping) else f"a {type(block).__name__}"
    raise DataError(file, record=record, found=found, expected=f"a block with {key}", remedy="Correct the file.")


def twice(file: Path, record: str, name: str) -> DataError:
    """The error of an id that stands twice."""
    return DataError(
        file,
        record=record,
        found=f"an {name} that stands before",
        expected="one of its own: what refers to it could mean either",
        remedy="Correct the file.",
    )


def words(sentence: str) -> list[str]:
    """Words of an expression that came without: runs of letters, digits and apostrophes, in lower case."""
    import re

    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", sentence.lower())
