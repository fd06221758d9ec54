"""What molecules.parquet holds of each molecule: whether it belongs to records.parquet, and can be a structure.

Shape suffixes: M molecule, N pair of all molecules.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.errors import DataError

COLUMNS = ("record_id", "sequence", "pairs_left", "pairs_right", "pair_order", "rna_type")
LETTERS = "ACGURYSWKMBDHVN"


def read(folder: Path, records: pl.DataFrame) -> pl.DataFrame:
    """Sequence, pairs and type of the molecules of records.parquet, row by row.

    Raises
    ------
    DataError
        The file is absent or not readable, or holds other molecules.
    """
    file = folder / "molecules.parquet"
    again = f"Run `python -m stages ingest rna@{folder.name}` again."
    try:
        molecules = artifacts.read_table(file).select(COLUMNS).collect()
    except FileNotFoundError:
        raise DataError(file, found="no such file", expected="what ingest writes for every set", remedy=again) from None
    except pl.exceptions.PolarsError as error:
        told = " ".join(str(error).split())
        raise DataError(file, found=f"no readable table ({told})", expected="parquet", remedy=again) from error
    if molecules.height != records.height or not molecules["record_id"].equals(records["record_id"].alias("record_id")):
        raise DataError(
            file,
            found=f"{molecules.height} molecules that are not those of records.parquet",
            expected=f"its {records.height} molecules, row by row",
            remedy=again,
        )
    return molecules


def facts(molecules: pl.DataFrame, pairs: pl.Series) -> pl.DataFrame:
    """Figures of each molecule that records.parquet does not tell.

    Parameters
    ----------
    molecules
        What :func:`read` returned.
    pairs
        Number of pairs by records.parquet; null without a structure.

    Returns
    -------
    DataFrame
        stored_sha256, stored_length, odd_letters; torn_pairs (difference in length of the lists), miscounted_pairs,
        outside_pairs and shared_bases (null without a structure); structure (the pairs as text), rna_type.
    """
    length = molecules["sequence"].str.len_bytes().cast(pl.Int64)
    sizes = molecules.select(
        pl.col(name).list.len().cast(pl.Int64) for name in ("pairs_left", "pairs_right", "pair_order")
    )
    torn = sizes.select(pl.max_horizontal(pl.all().fill_null(0)) - pl.min_horizontal(pl.all().fill_null(0)))
    there = molecules["pairs_left"].is_not_null()
    counted = sizes["pairs_left"].fill_null(0) - pairs.cast(pl.Int64).fill_null(0)
    counts = pair_faults(molecules.filter(torn.to_series() == 0), length.filter(torn.to_series() == 0))
    lists = (pl.col(side).cast(pl.List(pl.String)).list.join(",") for side in ("pairs_left", "pairs_right"))
    hashes = [None if text is None else hashlib.sha256(text.encode()).hexdigest() for text in molecules["sequence"]]
    return molecules.select(
        pl.Series("stored_sha256", hashes, dtype=pl.String),
        stored_length=length,
        odd_letters=pl.col("sequence").str.count_matches(f"[^{LETTERS}]").cast(pl.Int64),
        torn_pairs=torn.to_series(),
        miscounted_pairs=counted.abs(),
        structure=pl.when(there).then(pl.concat_str(lists, separator="/")),
        rna_type="rna_type",
    ).hstack(_spread(counts, torn.to_series() == 0, there))


def pair_faults(molecules: pl.DataFrame, length: pl.Series) -> pl.DataFrame:
    """Pairs that are not of two bases of their molecule, and bases that stand in more than one pair.

    Parameters
    ----------
    molecules
        pairs_left and pairs_right, lists of equal length.
    """
    sizes_M = molecules["pairs_left"].list.len().fill_null(0).to_numpy().astype(np.int64)
    left_N, right_N = (_flat(molecules[side]) for side in ("pairs_left", "pairs_right"))
    row_N = np.repeat(np.arange(sizes_M.size), sizes_M)
    length_M = length.fill_null(0).to_numpy()
    outside_N = (left_N < 0) | (left_N >= right_N) | (right_N >= length_M[row_N])
    width = int(max(right_N.max(initial=0), left_N.max(initial=0), 0)) + 1
    end_E = np.concatenate([row_N * width + left_N, row_N * width + right_N])
    base_U, times_U = np.unique(end_E, return_counts=True)
    return pl.DataFrame(
        {
            "outside_pairs": np.bincount(row_N, outside_N, sizes_M.size).astype(np.int64),
            "shared_bases": np.bincount(base_U[times_U > 1] // width, minlength=sizes_M.size)[: sizes_M.size],
        }
    )


def _flat(lists: pl.Series) -> NDArray[np.int64]:
    return lists.drop_nulls().explode().drop_nulls().to_numpy().astype(np.int64)


def _spread(counts: pl.DataFrame, counted: pl.Series, there: pl.Series) -> pl.DataFrame:
    """Counts of the molecules that were counted, back in the rows of all; null elsewhere and without a structure."""
    place = pl.DataFrame({"row": np.flatnonzero(counted.to_numpy())}).hstack(counts)
    rows = pl.DataFrame({"row": np.arange(counted.len()), "there": there})
    found = rows.join(place, on="row", how="left", maintain_order="left")
    return found.select(pl.when("there").then(pl.col(name)).alias(name) for name in counts.columns)
