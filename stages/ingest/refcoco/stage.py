"""``python -m stages ingest refcoco@KEY``: one set to images, objects, refs, sentences and records."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts, manifest
from stages.ingest.refcoco.config import Format, Images
from stages.ingest.refcoco.schema import RECORD_COLUMNS
from stages.params import StageParams, bound

if TYPE_CHECKING:
    import polars as pl

    from stages.ingest.refcoco.annotations import RefSet
    from stages.manifest import Manifest

#: Bytes of images in one file of images/: what is held in memory at once.
FILE_BYTES = 1 << 26
#: Objects made into a table at once.
PART = 10_000


class Params(StageParams):
    """What ingest reads of params.yaml."""

    path: Path = bound("refcoco.sets.{key}.path")
    format: Format = bound("refcoco.sets.{key}.format")
    images: Images = bound("refcoco.images")


def run(params: Params, *, name: str, key: str) -> None:
    """Read one set and write images/, objects, refs, sentences and records.parquet, set.json and manifest.json.

    Raises
    ------
    DataError
        The files are not what they should be; nothing is written.
    """
    from stages.ingest.origin import origin
    from stages.ingest.refcoco import records
    from stages.ingest.refcoco.sets import open_set

    source = origin(params.path, f"{name}@{key}")
    found = open_set(params.path, params.format, key)
    with artifacts.atomic(artifacts.ingested(name, key)) as draft:
        images = write_images(draft / "images", found, params.images)
        objects = masked(found)
        table = records.table(found, objects, images)
        artifacts.write_table(draft / "objects.parquet", objects)
        artifacts.write_table(draft / "refs.parquet", records.refs(found))
        artifacts.write_table(draft / "sentences.parquet", records.sentences(found))
        artifacts.write_table(draft / "records.parquet", table)
        described = description(found, source, images, table)
        artifacts.write_json(draft / "set.json", described)
        manifest.write(draft, source)
    print(f"{key}: {described['refs']} refs, {described['sentences']} sentences, {described['images']} images")
    for note in described["notes"]:
        print(f"note: {key}: {note}", file=sys.stderr)


def masked(found: RefSet) -> pl.DataFrame:
    """objects.parquet, made a part at a time: a row is larger in Python than in the table."""
    import polars as pl

    from stages.ingest.refcoco import records
    from stages.runtime import progress

    rows = iter(progress(records.objects(found), f"{found.key}, masks", total=len(found.objects), unit="objects"))
    parts = [pl.DataFrame(schema=records.OBJECTS)]
    while part := list(islice(rows, PART)):
        parts.append(pl.DataFrame(part, schema=records.OBJECTS))
    return pl.concat(parts)


def write_images(folder: Path, found: RefSet, options: Images) -> pl.DataFrame:
    """Write images/*.parquet, a bounded number of bytes at a time.

    Returns
    -------
    polars.DataFrame
        image_id, found, as_recorded, note and sha256 of every image, without its bytes.
    """
    import polars as pl

    from stages.ingest.refcoco import photographs, records
    from stages.runtime import progress

    folder.mkdir(parents=True)
    held: list[dict[str, Any]] = []
    known: list[dict[str, Any]] = []
    size = files = 0

    def close() -> None:
        nonlocal held, size, files
        artifacts.write_table(folder / f"{files:05d}.parquet", pl.DataFrame(held, schema=records.IMAGES))
        held, size, files = [], 0, files + 1

    for image in progress(found.images.values(), f"{found.key}, images", unit="images"):
        stored = photographs.store(found.folder, image, options.longest)
        shared = {
            "image_id": image.image_id,
            "found": stored.content is not None,
            "note": stored.note,
            "sha256": stored.sha256,
        }
        held.append(
            shared
            | {
                "group": records.group(found.key, image.image_id),
                "file_name": image.file_name,
                "height": image.height,
                "width": image.width,
                "stored_height": stored.height,
                "stored_width": stored.width,
                "image": stored.content,
            }
        )
        known.append(shared | {"as_recorded": stored.as_recorded})
        size += len(stored.content or b"")
        if size >= FILE_BYTES:
            close()
    if held or not files:
        close()
    schema = {name: records.IMAGES[name] for name in ("image_id", "found", "note", "sha256")}
    return pl.DataFrame(known, schema=schema | {"as_recorded": pl.Boolean})


def description(found: RefSet, source: Manifest, images: pl.DataFrame, table: pl.DataFrame) -> dict[str, Any]:
    """The content of set.json."""
    import polars as pl

    counts = {
        "images": images.height,
        "objects": len(found.objects),
        "refs": table.height,
        "sentences": int(table["sentences"].sum()),
    }
    notes = [*found.notes]
    changed = images.filter(pl.col("note").is_not_null())
    for note, count in changed["note"].str.replace_all(r"\d+ x \d+", "H x W").value_counts(sort=True).head(8).rows():
        example = changed.filter(pl.col("note").str.replace_all(r"\d+ x \d+", "H x W") == note)["image_id"][0]
        notes.append(f"{count} images, such as {example}: {note}")
    lost = table.filter(~pl.col("object_found"))
    if lost.height:
        examples = ", ".join(lost["record_id"].head(3))
        notes.append(
            f"{lost.height} refs, such as {examples}: their annotation is not in the file, or of another image"
        )
    return {
        "set": found.key,
        "reader": found.reader,
        "title": found.title,
        "simulated": source.kind == "simulator",
        "split_unit": "image",
        **counts,
        "categories": len(found.categories),
        "parts": dict(sorted(table["split"].value_counts().iter_rows())),
        "record_columns": list(RECORD_COLUMNS),
        "notes": notes,
        "citation": source.citation,
        "license": source.licence,
    }
