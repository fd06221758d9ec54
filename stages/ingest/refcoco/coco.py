"""COCO-style JSON whose annotations carry their referring expressions, a file for each part."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.errors import DataError
from stages.ingest.refcoco import instances
from stages.ingest.refcoco.annotations import Image, Object, Ref, RefSet, Sentence, text, twice, words
from stages.ingest.refcoco.config import Coco


def open_coco(path: Path, options: Coco, key: str) -> RefSet:
    """Open the files of a set; an annotation with an expression is a ref, and its id the ref's.

    Raises
    ------
    DataError
        A file is not what it should be, an id stands twice, or no annotation has an expression.
    """
    images: dict[int, Image] = {}
    objects: dict[int, Object] = {}
    categories: dict[int, str] = {}
    refs: list[Ref] = []
    numbers = itertools.count()
    for part, name in options.files.items():
        file = path / name
        content = instances.load(file)
        mine = instances.images(content, file)
        for image_id, image in mine.items():
            if images.get(image_id, image) != image:
                raise twice(file, f"image {image_id}", "id")
        images |= mine
        categories |= instances.categories(content, file)
        before = len(refs)
        for found, block in instances.objects(content, file):
            if found.object_id in objects:
                raise twice(file, f"annotation {found.object_id}", "id")
            objects[found.object_id] = found
            sentences = _expressions(block, options.expressions, file, found.object_id)
            if sentences:
                listed = [Sentence(next(numbers), sentence, sentence, words(sentence)) for sentence in sentences]
                refs.append(Ref(found.object_id, found.object_id, found.image_id, found.category_id, part, listed))
        if len(refs) == before:
            raise DataError(
                file,
                found=f"no annotation with {options.expressions}",
                expected="a referring expression, or a list of them, in annotations",
                remedy="Name their key as `format: {reader: coco, expressions: ...}`.",
            )
    used = {ref.image_id for ref in refs}
    return RefSet(
        key=key,
        reader=options.reader,
        title=", ".join(options.files.values()),
        path=path,
        folder=path / options.images,
        sources=dict(options.files),
        images={image_id: image for image_id, image in images.items() if image_id in used},
        objects={object_id: found for object_id, found in objects.items() if found.image_id in used},
        refs=refs,
        categories=categories,
    )


def _expressions(block: Mapping[str, Any], key: str, file: Path, object_id: int) -> list[str]:
    value = block.get(key)
    place = f"annotation {object_id}"
    if value is None:
        return []
    return [text(one, file, place, key) for one in (value if isinstance(value, list) else [value])]
