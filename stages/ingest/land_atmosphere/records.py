"""records.parquet: one row for each site-month, in one schema for all towers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.ingest.land_atmosphere import axis as axes
from stages.ingest.land_atmosphere.native import Native
from stages.ingest.land_atmosphere.schema import DIGEST, MIN_DISTINCT, RECORD_COLUMNS, VARIABLES

DAY = 1440
MIN_PEAK = 20.0  # W m-2: below this there is no day to speak of (polar night)
BALANCE = ("H", "LE", "NETRAD", "G")


def monthly(native: Native, site: str) -> pl.DataFrame:
    """Summarise a tower by calendar month (by year where a step is a year).

    Returns
    -------
    pl.DataFrame
        Columns of ``schema.RECORD_COLUMNS``; null where a variable is absent or a statistic is undefined.
    """
    axis = native.axis
    yearly = axis.step.calendar == "year"
    periods = axis.start.astype("datetime64[m]").astype("datetime64[Y]" if yearly else "datetime64[M]")
    bounds = np.r_[np.flatnonzero(np.diff(periods.astype(np.int64), prepend=-(10**9))), periods.size]
    counts = {
        name: np.histogram(steps, bins=bounds)[0]
        for name, steps in (
            ("duplicate_stamps", axis.duplicates),
            ("conflicting_stamps", axis.conflicts),
            ("unsorted_stamps", axis.unsorted),
        )
    }
    present = axis.present()
    arrays = {name: native.dataset[name].values for name in map(str, native.dataset.data_vars)}
    rows = []
    for index, (first, last) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        month = slice(first, last)
        stamp = periods[first]
        year = int(str(stamp)[:4])
        expected = _expected_steps(native, stamp)
        row: dict[str, Any] = dict.fromkeys(RECORD_COLUMNS)
        row |= {
            "record_id": f"{site}/{stamp}",
            "group": site,
            "year": year,
            "month": None if yearly else int(str(stamp)[5:7]),
            "source_file": _source_file(native, month),
            "sha256": artifacts.sha256_arrays({name: values[month] for name, values in arrays.items()}),
            "resolution_minutes": axis.step.minutes,
            "expected_steps": expected,
            "present_steps": int(np.count_nonzero(present[month])),
            **{name: int(count[index]) for name, count in counts.items()},
        }
        for variable in VARIABLES:
            if variable in arrays:
                row |= _statistics(native, arrays, variable, month, expected)
        row |= _diurnal(native, arrays, month)
        row |= _energy_balance(arrays, month)
        rows.append(row)
    schema = {name: getattr(pl, kind) for name, kind in RECORD_COLUMNS.items()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _expected_steps(native: Native, stamp: np.datetime64) -> int:
    """Steps of the whole calendar month, also where the series begins or ends inside it."""
    step = native.axis.step
    if step.calendar in ("month", "year"):
        return 1
    begin, end = (int(edge.astype("datetime64[m]").astype(np.int64)) for edge in (stamp, stamp + 1))
    if step.calendar == "week":
        weeks = axes.calendar_steps(begin, end - 1, "week")
        return int(weeks.size)
    return (end - begin) // (step.minutes or DAY)


def _source_file(native: Native, month: slice) -> str:
    rows = np.arange(month.start, month.stop) if native.axis.row is None else native.axis.row[month]
    rows = rows[rows >= 0]
    file = native.tower.rows.file
    names = dict.fromkeys(file(int(row)) for row in rows[[0, -1]]) if rows.size else {native.tower.files[0]: None}
    return "; ".join(names)


def _statistics(
    native: Native, arrays: dict[str, NDArray[Any]], variable: str, month: slice, expected: int
) -> dict[str, float | str | None]:
    values = arrays[variable][month]
    finite = values[np.isfinite(values)]
    filled = arrays.get(f"{variable}_FILLED")
    suspects = native.suspects[variable]
    inside = np.count_nonzero((suspects >= month.start) & (suspects < month.stop))
    there = finite.size > 0
    return {
        f"coverage_{variable}": finite.size / expected,
        f"filled_{variable}": 0.0 if filled is None else int(np.isfinite(filled[month]).sum()) / expected,
        f"minimum_{variable}": float(finite.min()) if there else None,
        f"maximum_{variable}": float(finite.max()) if there else None,
        f"mean_{variable}": float(finite.mean()) if there else None,
        f"sentinel_{variable}": int(inside) / expected,
        f"constant_hours_{variable}": _constant_hours(values, native.axis.step.minutes) if there else None,
        f"{DIGEST}_{variable}": _digest(values, finite),
    }


def _digest(values: NDArray[np.float64], finite: NDArray[np.float64]) -> str | None:
    """Digest of the values of a month, whatever the bits of a missing value or of a zero with a sign."""
    if finite.size < MIN_DISTINCT or np.unique(finite).size < MIN_DISTINCT:
        return None
    return artifacts.sha256_arrays({"": np.where(np.isfinite(values), values + 0.0, np.nan)})


def _constant_hours(values: NDArray[np.float64], step: int | None) -> float | None:
    """Length in hours of the longest run of one identical non-zero value; a single value is no run."""
    if step is None:
        return None
    same = np.r_[False, (values[1:] == values[:-1]) & (values[1:] != 0), False]
    edges = np.flatnonzero(same[1:] != same[:-1])
    longest = int((edges[1::2] - edges[::2]).max()) + 1 if edges.size else 0
    return longest * step / 60


def _diurnal(native: Native, arrays: dict[str, NDArray[Any]], month: slice) -> dict[str, float | None]:
    """Local standard hour around which incoming shortwave radiation is centred, from the mean diurnal cycle.

    The centre is that of the circle of the day, so that a clock that is wrong by many hours, which wraps the daylight
    around midnight, is found as well as one that is wrong by few; a constant offset of the sensor cancels.
    """
    step = native.axis.step.minutes
    if "SW_IN" not in arrays or step is None or step > DAY // 8 or native.axis.step.calendar is not None:
        return {}
    values = arrays["SW_IN"][month]
    per_day = DAY // step
    slot = native.axis.start[month] % DAY // step
    finite = np.isfinite(values)
    counts = np.bincount(slot[finite], minlength=per_day)
    if counts.min() == 0:
        return {}
    cycle = np.bincount(slot[finite], weights=values[finite], minlength=per_day) / counts
    if cycle.max() < MIN_PEAK:
        return {}
    phase = int(native.axis.start[0]) % step
    hours = (np.arange(per_day) * step + phase + step / 2) / 60
    centre = np.angle((cycle * np.exp(2j * np.pi * hours / 24)).sum()) * 24 / (2 * np.pi)
    return {"sw_in_peak_hour": float(centre % 24)}


def _energy_balance(arrays: dict[str, NDArray[Any]], month: slice) -> dict[str, float | int | None]:
    """sum(H + LE) / sum(NETRAD - G) over the steps in which all four were measured."""
    if not all(name in arrays for name in BALANCE):
        return {}
    sensible, latent, net, ground = (arrays[name][month] for name in BALANCE)
    turbulent, available = sensible + latent, net - ground
    both = np.isfinite(turbulent) & np.isfinite(available)
    total = float(available[both].sum())
    return {
        "energy_balance_steps": int(both.sum()),
        "energy_balance_ratio": float(turbulent[both].sum()) / total if total > 0 else None,
    }
