"""Tables in netCDF: a time coordinate and variables along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.land_atmosphere.members import AGAIN, Member
from stages.ingest.land_atmosphere.tables import Layout, Table, blank_sentinels, require_once

if TYPE_CHECKING:
    import xarray as xr


def _open(member: Member) -> xr.Dataset:
    import xarray as xr

    engine = "h5netcdf" if member.head().startswith(b"\x89HDF") else "scipy"
    try:
        return xr.open_dataset(member.everything(), engine=engine, decode_timedelta=False)
    except (OSError, ValueError, TypeError, KeyError, IndexError, RuntimeError) as error:
        raise DataError(
            member.label,
            found=f"a damaged or incomplete netCDF file ({str(error).splitlines()[0] if str(error) else error!r})",
            expected="a complete one with a time coordinate in CF units",
            remedy=AGAIN,
        ) from None


def column_names(member: Member) -> list[str]:
    """Names of coordinates and variables."""
    with _open(member) as dataset:
        return [str(name) for name in dataset.variables]


def read(member: Member, layout: Layout, numbers: Sequence[str], stamps: Sequence[str]) -> Table:
    """Read variables along the time dimension.

    Raises
    ------
    DataError
        A variable has another dimension longer than one, or is no number.
    """
    with _open(member) as dataset:
        require_once(member, [str(name) for name in dataset.variables], [*stamps, *numbers])
        typed = {name: _stamps(member, name, dataset[name]) for name in stamps}
        rows = next(iter(typed.values())).len()
        along = dataset[stamps[0]].dims
        values = {}
        for name in numbers:
            column = _numbers(member, name, dataset[name], along)
            blank_sentinels(column, layout.sentinels)
            values[name] = column
    return Table(member, rows, values, typed, lambda row: f"index {row}")


def _numbers(member: Member, name: str, variable: xr.DataArray, along: tuple[object, ...]) -> NDArray[np.float64]:
    extra = [dim for dim in variable.dims if dim not in along and variable.sizes[dim] == 1]
    variable = variable.isel(dict.fromkeys(extra, 0))
    if variable.dims != along or variable.dtype.kind not in "fiub":
        raise DataError(
            member.label,
            record=f"variable {name!r}",
            found=f"{variable.dtype} with dimensions {variable.dims}",
            expected=f"numbers with dimension {along}",
            remedy="Write one depth or level as a variable of its own, and name that.",
        )
    return np.array(variable.values, dtype=np.float64)


def _stamps(member: Member, name: str, variable: xr.DataArray) -> pl.Series:
    values = variable.values.ravel()
    if values.dtype.kind == "M":
        return pl.Series(name, values.astype("datetime64[us]"))
    if values.dtype.kind in "iu":
        return pl.Series(name, values.astype(np.int64))
    if values.dtype.kind in "OU" and all(isinstance(value, str) for value in values):
        return pl.Series(name, [str(value) for value in values], dtype=pl.String)
    raise DataError(
        member.label,
        record=f"variable {name!r}",
        found=f"{values.dtype}",
        expected="a time coordinate with CF units (`minutes since 2015-01-01`) of the standard calendar",
        remedy="Write the units, or convert the calendar with xarray's convert_calendar.",
    )
