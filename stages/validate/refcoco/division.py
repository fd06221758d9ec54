"""Parts as the files say, whole images audited, and the images whose masks count as known."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import DataError
from stages.runtime import random_numbers
from stages.validate import splits
from stages.validate.refcoco.gate import Labelled
from stages.validate.refcoco.refs import parts_of

FILE = "file"
COLUMNS = {"record_id": pl.String, "group": pl.String, "split": pl.String, "part": pl.String}
LABELLED = {
    "set": pl.String,
    "group": pl.String,
    "image_id": pl.Int64,
    "share": pl.Float64,
    "draw": pl.Int64,
    "labelled": pl.Boolean,
}


def as_the_file_says(records: pl.DataFrame) -> pl.DataFrame:
    """splits.parquet of one set: a row a ref and part; a ref whose split has no meaning has no row."""
    return (
        records.select("record_id", "group", pl.col("split").alias("own"))
        .with_columns(
            split=pl.lit(FILE),
            part=pl.Series([parts_of(split) for split in records["split"]], dtype=pl.List(pl.String)),
        )
        .explode("part", empty_as_null=False)
        .select(list(COLUMNS))
        .cast(COLUMNS)  # type: ignore[arg-type]
    )


def role(part: str) -> str:
    """What a part is for: all test parts are for one thing."""
    return "test" if part.startswith("test") else part


def audit(records: pl.DataFrame, table: pl.DataFrame, accepted: pl.Series) -> tuple[list[str], list[str]]:
    """Images in two of training, validation and test: by id, and by the bytes of their files.

    Returns
    -------
    tuple of list of str
        Images of which a part is a test part, and those that only training and validation share.
    """
    judged = records.select("record_id", "image_sha256").with_columns(accepted=accepted).unique("record_id")
    frame = table.join(judged, on="record_id", how="left", maintain_order="left").filter("accepted")
    frame = frame.with_columns(role=pl.Series([role(part) for part in frame["part"]], dtype=pl.String))
    seen = frame.filter(pl.col("role") != "test")
    tested = pl.concat([frame.filter(pl.col("role") == "test"), seen.with_columns(role=pl.lit("train or validation"))])
    return _shared(tested), _shared(seen)


def _shared(frame: pl.DataFrame) -> list[str]:
    """Images in two roles; by the bytes of their files only where more than one id has them."""
    everything = pl.Series([True] * frame.height, dtype=pl.Boolean)
    ids = pl.col("group").n_unique().over("image_sha256")
    copies = frame.select(several=(ids > 1) & pl.col("image_sha256").is_not_null())["several"]
    return [
        *splits.straddling(frame["role"], frame["group"], everything, noun="image"),
        *splits.straddling(frame["role"], frame["image_sha256"].str.slice(0, 12), copies, noun="the image of sha256"),
    ]


def sizes(table: pl.DataFrame, accepted: pl.DataFrame) -> dict[str, Any]:
    """Accepted refs, their share, images and sentences of each part; a ref of two parts counts in both."""
    frame = table.join(accepted, on="record_id", how="inner")
    found = {}
    for part in sorted(frame["part"].unique().to_list(), key=lambda name: (role(name) == "test", name)):
        mine = frame.filter(pl.col("part") == part)
        found[part] = {
            "records": mine.height,
            "share": mine.height / accepted.height,
            "groups": [f"{mine['group'].n_unique()} images", f"{mine['sentences'].sum()} sentences"],
        }
    return found


def labelled(
    key: str, records: pl.DataFrame, table: pl.DataFrame, accepted: pl.Series, options: Labelled
) -> pl.DataFrame:
    """labelled.parquet of one set: a row a training image with an accepted ref, share and draw.

    The images are put in a random order by each draw; the first of them are labelled, at least one.
    """
    judged = records.select("record_id", "image_id").with_columns(accepted=accepted).unique("record_id")
    training = table.filter(pl.col("part") == "train").join(judged, on="record_id", how="inner").filter("accepted")
    images = training.select("group", "image_id").unique().sort("image_id")
    frames = []
    for draw in range(options.draws):
        order = random_numbers(options.seed, "labelled", key, str(draw)).permutation(images.height)
        place = pl.Series(order, dtype=pl.Int64)
        frames += [
            images.select(
                pl.lit(key).alias("set"),
                "group",
                "image_id",
                share=pl.lit(share),
                draw=pl.lit(draw, pl.Int64),
                labelled=place < max(1, math.ceil(share * images.height - 1e-9)),
            )
            for share in sorted(options.shares)
        ]
    return pl.concat(frames).cast(LABELLED) if frames else pl.DataFrame(schema=LABELLED)  # type: ignore[arg-type]


def image_ids(path: Path) -> set[int]:
    """Image ids of a file: a JSON list of numbers, or one number a line; a COCO file name counts by its number.

    Raises
    ------
    DataError
        There is no such file, something in it is no id, or it has none.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            path,
            found=str(error),
            expected="a file of image ids",
            remedy="Correct `refcoco.gate.pretraining_images` in params.yaml.",
        ) from None
    try:
        listed = json.loads(text)
    except ValueError:
        listed = [line.strip() for line in text.splitlines() if line.strip()]
    found = set()
    for number, value in enumerate(listed if isinstance(listed, list) else [listed], start=1):
        match = re.fullmatch(r"(?:.*[_/])?0*(\d+)(?:\.[A-Za-z]\w*)?", str(value))
        if match is None:
            raise DataError(
                path,
                record=f"entry {number}",
                found=repr(value),
                expected="the number of an image",
                remedy="Correct the file.",
            )
        found.add(int(match[1]))
    if not found:
        raise DataError(
            path,
            found="no image ids",
            expected="one or more",
            remedy="Correct the file, or set `refcoco.gate.pretraining_images` to null.",
        )
    return found
