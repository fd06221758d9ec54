"""What training a system with every seed wrote, as its evaluation reads it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts
from stages.errors import DataError

if TYPE_CHECKING:
    import polars as pl


def read_config(system: str, seeds: Sequence[int]) -> dict[str, Any]:
    """config.json of the first seed, once the models of all seeds are there; folders of other seeds are named.

    Raises
    ------
    DataError
        A seed has not been trained.
    """
    folder = artifacts.model(system)
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name not in {str(seed) for seed in seeds}:
            print(
                f"{path}: not among the seeds {list(seeds)} of params.yaml, ignored; remove the folder", file=sys.stderr
            )
    configs = [_existing(system, seed, "config.json") for seed in seeds]
    config: dict[str, Any] = artifacts.read_json(configs[0])
    return config


def read_tables(system: str, seeds: Sequence[int], tables: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Tables that every seed wrote, each stacked over the seeds with a column ``seed`` (Int64).

    Raises
    ------
    DataError
        A seed has not been trained.
    """
    import polars as pl

    return {
        table: pl.concat(
            (
                artifacts.read_table(_existing(system, seed, f"{table}.parquet"))
                .collect()
                .with_columns(seed=pl.lit(seed, pl.Int64))
                for seed in seeds
            ),
            how="vertical_relaxed",  # a column that is empty in one seed has no type there
        )
        for table in tables
    }


def _existing(system: str, seed: int, name: str) -> Path:
    path = artifacts.model(system, seed) / name
    if not path.is_file():
        raise DataError(
            path,
            found="no such file",
            expected=f"the model of seed {seed}",
            remedy=f"Run `dvc repro evaluate-{system}`, or `python -m stages train {system}@{seed}`.",
        )
    return path
