"""A tower's data set opened through its verdict: what a system may learn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import xarray as xr

from stages import artifacts


def open_tower(folder: Path, verdict: Path, group: str) -> xr.Dataset | None:
    """Means of the accepted months; the values of a quarantined month are missing, its times stay.

    Parameters
    ----------
    folder
        An ingested tower, named by its key.
    verdict
        verdict.parquet of the domain.
    group
        ``native``, ``daily`` or ``three_day``.

    Returns
    -------
    xarray.Dataset or None
        Variables over a regular ``time`` axis; None where the source is coarser than the group.
    """
    store = folder / "data.zarr"
    if not (store / group).is_dir():
        return None
    dataset = artifacts.open_dataset(store, group)
    refused = (
        artifacts.read_table(verdict)
        .filter((pl.col("group") == folder.name) & (pl.col("outcome") == "quarantined"))
        .select(pl.col("record_id").str.split("/").list.last())
        .collect()
        .to_series()
        .to_list()
    )
    month_T = np.datetime_as_string(dataset["time"].to_numpy(), unit="M")
    keep = xr.DataArray(~np.isin(month_T, refused), dims="time")
    return dataset.map(lambda variable: variable.where(keep) if variable.dtype.kind == "f" else variable)
