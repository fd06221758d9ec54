"""REFER's layout: RefCOCO, RefCOCO+, RefCOCOg and RefClef as their authors publish them.

``PATH/DATASET/instances.json`` and ``PATH/DATASET/refs(SPLIT_BY).p``, a pickle of Python 2. The image's own name
counts: a ref's ``file_name`` carries the number of the annotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stages.errors import DataError
from stages.ingest import unpickle
from stages.ingest.refcoco import instances
from stages.ingest.refcoco.annotations import Object, Ref, RefSet, Sentence, entry, text, twice, whole
from stages.ingest.refcoco.config import Refer

INSTANCES = "instances.json"
#: Where REFER looks for the images of its data sets, below the root.
IMAGES = ("images/mscoco/images/train2014", "images/saiapr_tc-12", "images")
FIRST_DATASET, FIRST_SPLIT = "refcoco", "unc"

_REFS = re.compile(r"refs\((?P<by>[^()]+)\)\.p")


def open_refer(path: Path, options: Refer, key: str) -> RefSet:
    """Open one data set of a REFER folder.

    Parameters
    ----------
    path
        REFER's data folder, or the folder of one data set in it.

    Raises
    ------
    DataError
        The data set or its refs are not there, or a file is not what it should be.
    """
    folder = _dataset(path, options.dataset)
    root = path if folder != path else path.parent
    file = _refs_file(folder, options.split_by)
    content = instances.load(folder / INSTANCES)
    images = instances.images(content, folder / INSTANCES)
    refs = list(read_refs(file))
    used = {ref.image_id for ref in refs}
    objects: dict[int, Object] = {
        found.object_id: found for found, _ in instances.objects(content, folder / INSTANCES) if found.image_id in used
    }
    refs = [_with_own_image(ref, objects) for ref in refs]
    split_by = _REFS.fullmatch(file.name)
    assert split_by
    return RefSet(
        key=key,
        reader=options.reader,
        title=f"{folder.name} ({split_by['by']})",
        path=path,
        folder=_images(root, path, options.images),
        sources={"": file.relative_to(path).as_posix()},
        images={image_id: image for image_id, image in images.items() if image_id in used},
        objects=objects,
        refs=refs,
        categories=instances.categories(content, folder / INSTANCES),
    )


def _with_own_image(ref: Ref, objects: Mapping[int, Object]) -> Ref:
    found = objects.get(ref.object_id)
    # An annotation of another image is none of this ref's: it stays missing, and the gate says so.
    return ref if found is None or found.image_id == ref.image_id else ref._replace(object_id=-1 - ref.object_id)


def _dataset(path: Path, wanted: str | None) -> Path:
    if (path / INSTANCES).is_file() and wanted in (None, path.name):
        return path
    there = sorted(file.parent.name for file in path.glob(f"*/{INSTANCES}"))
    if wanted is None:
        wanted = there[0] if len(there) == 1 else FIRST_DATASET
    if wanted not in there:
        raise DataError(
            path,
            found=f"no {wanted}/{INSTANCES}; data sets here: {', '.join(there) or 'none'}",
            expected="REFER's layout, DATASET/instances.json and DATASET/refs(SPLIT_BY).p",
            remedy="Correct `path`, or name one as `format: {reader: refer, dataset: ...}`.",
        )
    return path / wanted


def _refs_file(folder: Path, wanted: str | None) -> Path:
    there = {match["by"]: file for file in sorted(folder.iterdir()) if (match := _REFS.fullmatch(file.name))}
    if wanted is None:
        wanted = next(iter(there)) if len(there) == 1 else FIRST_SPLIT
    if wanted not in there:
        raise DataError(
            folder,
            found=f"no refs({wanted}).p; refs here: {', '.join(there) or 'none'}",
            expected="the refs of one division of the data set",
            remedy="Name one as `format: {reader: refer, split_by: ...}`, or copy the file.",
        )
    return there[wanted]


def _images(root: Path, path: Path, wanted: str | None) -> Path:
    if wanted is not None:
        return path / wanted
    return next((root / name for name in IMAGES if (root / name).is_dir()), root / IMAGES[0])


def read_refs(file: Path) -> Iterator[Ref]:
    """The refs of a pickle in its order.

    Raises
    ------
    DataError
        The pickle is damaged or asks for code, a ref lacks a field, or an id stands twice.
    """
    content = unpickle.load(file)
    if not isinstance(content, list):
        raise DataError(
            file, found=f"a pickled {type(content).__name__}", expected="a list of refs", remedy="Correct `format`."
        )
    refs_seen: set[int] = set()
    sentences_seen: set[int] = set()
    for number, block in enumerate(content):
        place = f"refs[{number}]"
        ref_id = whole(entry(block, "ref_id", file, place), file, place, "ref_id")
        place = f"ref {ref_id}"
        if ref_id in refs_seen:
            raise twice(file, place, "id")
        refs_seen.add(ref_id)
        sentences = [_sentence(found, file, place) for found in entry(block, "sentences", file, place)]
        for sentence in sentences:
            if sentence.sentence_id in sentences_seen:
                raise twice(file, f"{place}, sentence {sentence.sentence_id}", "id")
            sentences_seen.add(sentence.sentence_id)
        category = block.get("category_id")
        yield Ref(
            ref_id,
            whole(entry(block, "ann_id", file, place), file, place, "ann_id"),
            whole(entry(block, "image_id", file, place), file, place, "image_id"),
            None if category is None else whole(category, file, place, "category_id"),
            text(entry(block, "split", file, place), file, place, "split"),
            sentences,
        )


def _sentence(block: Any, file: Path, place: str) -> Sentence:
    sentence_id = whole(entry(block, "sent_id", file, place), file, place, "sent_id")
    place = f"{place}, sentence {sentence_id}"
    sentence = text(entry(block, "sent", file, place), file, place, "sent")
    tokens = block.get("tokens")
    if tokens is None:
        tokens = sentence.split()
    if not isinstance(tokens, list | tuple):
        raise DataError(
            file, record=place, found=f"tokens = {tokens!r}", expected="a list of words", remedy="Correct the file."
        )
    return Sentence(
        sentence_id,
        sentence,
        str(block.get("raw", sentence)),
        [text(token, file, place, "token") for token in tokens],
    )
