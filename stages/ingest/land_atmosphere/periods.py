"""Daily and three-day values from measured steps, missing where too little of the period was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from stages.ingest.land_atmosphere.config import Aggregation
from stages.ingest.land_atmosphere.schema import LONG_NAMES, SUMMED, THREE_DAY_EPOCH, UNITS, VARIABLES
from stages.ingest.land_atmosphere.stamps import Minutes

DAY = 1440
QUARTERS = 4
METHOD = "mean of the means of the four quarters of the day over their measured steps; sums: times the steps"


@dataclass(frozen=True)
class _Quarters:
    """Sums and counts of the measured steps of one variable in each quarter of each day (day, quarter)."""

    total: NDArray[np.float64]
    count: NDArray[np.int64]
    steps: int


def aggregate(native: xr.Dataset, start: Minutes, step: int, rule: Aggregation) -> Mapping[str, xr.Dataset]:
    """Daily and three-day Datasets of a tower.

    Parameters
    ----------
    native
        Measured values V (time).
    start
        Start of each step (time), minutes since 1970-01-01; regular.
    step
        Resolution in minutes, at most a day.
    rule
        Share of the period, and of each quarter of the day over the period, that must be measured.

    Returns
    -------
    Mapping[str, xr.Dataset]
        ``daily`` and ``three_day``, each with V and V_COVERAGE (time). A mean is that of the means of the four
        quarters of the day, each over its measured steps: nights with more gaps than days do not bias it, and a
        complete period has its plain mean. P is that mean times the steps of the period. Three-day periods are
        counted from 1970-01-01.
    """
    first_day = int(start[0]) // DAY
    quarters = {name: _quarters(native[name].values, start, step) for name in VARIABLES if name in native}
    days = next(iter(quarters.values())).count.shape[0]
    lead = first_day % 3
    periods = -(-(days + lead) // 3)
    return {
        "daily": _dataset(quarters, native, first_day, days, 1, 0, rule),
        "three_day": _dataset(quarters, native, first_day - lead, periods, 3, lead, rule),
    }


def _quarters(values: NDArray[np.float64], start: Minutes, step: int) -> _Quarters:
    per_day = DAY // step
    parts = QUARTERS if per_day % QUARTERS == 0 else 1
    lead = int(start[0]) % DAY // step
    days = -(-(lead + values.size) // per_day)
    padded = np.full(days * per_day, np.nan)
    padded[lead : lead + values.size] = values
    measured = np.isfinite(padded)
    padded[~measured] = 0.0
    shape = (days, parts, per_day // parts)
    return _Quarters(padded.reshape(shape).sum(axis=2), measured.reshape(shape).sum(axis=2), per_day // parts)


def _dataset(
    quarters: Mapping[str, _Quarters],
    native: xr.Dataset,
    first_day: int,
    periods: int,
    length: int,
    lead: int,
    rule: Aggregation,
) -> xr.Dataset:
    arrays = {}
    for name, part in quarters.items():
        total = _pooled(part.total, periods, length, lead)
        count = _pooled(part.count, periods, length, lead)
        steps = part.steps * length
        coverage = count.sum(axis=1) / (steps * count.shape[1])
        enough = (coverage >= rule.min_coverage) & ((count / steps).min(axis=1) >= rule.min_quarter_coverage)
        values = np.where(enough, _mean_of_quarters(total, count), np.nan)
        if name in SUMMED:
            values *= steps * count.shape[1]
        period = "day" if length == 1 else f"{length} days"
        arrays[name] = (
            "time",
            values,
            {
                "units": UNITS[name],
                "long_name": LONG_NAMES[name].replace("sum of the step", f"sum of the {period}"),
                "cell_methods": f"time: {'sum' if name in SUMMED else 'mean'} (interval: {period})",
                "method": METHOD,
                "source_column": native[name].attrs["source_column"],
            },
        )
        arrays[f"{name}_COVERAGE"] = (
            "time",
            coverage.astype(np.float32),
            {"units": "1", "long_name": f"measured share of the steps of the {period} of {name}"},
        )
    days = first_day + length * np.arange(periods)
    time = ("time", days.astype("datetime64[D]").astype("datetime64[s]"), dict(native["time"].attrs))
    attributes = {
        **native.attrs,
        "resolution": "day" if length == 1 else f"{length} days",
        "min_coverage": rule.min_coverage,
        "min_quarter_coverage": rule.min_quarter_coverage,
    }
    if length > 1:
        attributes["epoch"] = THREE_DAY_EPOCH
    return xr.Dataset(arrays, coords={"time": time}, attrs=attributes)


def _mean_of_quarters(total: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the quarters that were measured at all, of their means (period)."""
    means = total / np.maximum(count, 1)
    mean: NDArray[np.float64] = means.sum(axis=1) / np.maximum((count > 0).sum(axis=1), 1)
    return mean


def _pooled(
    values: NDArray[np.float64] | NDArray[np.int64], periods: int, length: int, lead: int
) -> NDArray[np.float64]:
    """Sum of (day, quarter) over the days of each period (period, quarter)."""
    padded = np.zeros((periods * length, values.shape[1]))
    padded[lead : lead + values.shape[0]] = values
    pooled: NDArray[np.float64] = padded.reshape(periods, length, -1).sum(axis=1)
    return pooled
