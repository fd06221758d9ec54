"""Annotations of one image that have the same mask: whichever a sentence names, the other is named as well."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stages import artifacts
from stages.errors import DataError


def of_one_mask(folder: Path) -> set[int]:
    """Ids of the annotations of a set whose mask, pixel by pixel, another annotation of the image has, too.

    Raises
    ------
    DataError
        objects.parquet is absent or not readable.
    """
    file = folder / "objects.parquet"
    again = f"Run `python -m stages ingest refcoco@{folder.name}` again."
    try:
        held = artifacts.read_table(file).filter(pl.col("area") > 0).select("object_id", "image_id", "counts").collect()
    except FileNotFoundError:
        raise DataError(file, found="no such file", expected="what ingest writes for every set", remedy=again) from None
    except pl.exceptions.PolarsError as error:
        told = " ".join(str(error).split())
        raise DataError(file, found=f"no readable table ({told})", expected="parquet", remedy=again) from error
    return set(held.filter(pl.struct("image_id", "counts").is_duplicated())["object_id"].to_list())
