from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from stages.accepted.tower_series import prepare
from stages.causal.anomalies import outside_season, seasonal_anomalies

DAYS = np.arange(np.datetime64("2010-01-01"), np.datetime64("2014-01-01"), np.timedelta64(1, "D"))
DAY_T = (DAYS - np.datetime64("2010-01-01")) / np.timedelta64(1, "D")
EVERY = np.ones(DAYS.size, bool)


def tower(**series: np.ndarray) -> xr.Dataset:
    return xr.Dataset(
        {name: ("time", values) for name, values in series.items()}, coords={"time": DAYS.astype("datetime64[ns]")}
    )


def prepared(dataset: xr.Dataset, years: list[int] | None = None, **more: object) -> object:
    options = {"variables": ["P", "SWC", "LE"], "months": [5, 6, 7, 8, 9], "harmonics": 2, "min_days": 150} | more
    return prepare(dataset, None if years is None else np.array(years), **options)  # type: ignore[arg-type]


def test_a_pure_seasonal_cycle_has_no_anomalies() -> None:
    cycle = 10 + 3 * np.sin(2 * np.pi * DAY_T / 365.2425) - np.cos(4 * np.pi * DAY_T / 365.2425)
    assert np.abs(seasonal_anomalies(cycle, DAY_T, harmonics=2, fit_T=EVERY)).max() < 1e-10


def test_the_fit_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(DAYS.size) < 0.3, np.nan, rng.normal(size=DAYS.size))
    angle = 2 * np.pi * DAY_T / 365.2425
    design = np.column_stack([np.ones_like(angle), np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)])
    used = np.isfinite(values)
    coefficients, *_ = np.linalg.lstsq(design[used], values[used], rcond=None)
    expected = values - design @ coefficients
    np.testing.assert_allclose(seasonal_anomalies(values, DAY_T, harmonics=2, fit_T=EVERY), expected, atol=1e-12)


def test_equal_data_gives_equal_bytes_wherever_it_lies() -> None:
    rng = np.random.default_rng(0)
    values, results = rng.normal(size=DAYS.size), set()
    for offset in range(8):
        moved = np.empty(DAYS.size + 8)[offset : offset + DAYS.size]
        moved[:] = values
        results.add(seasonal_anomalies(moved, DAY_T, harmonics=3, fit_T=DAY_T < 700).tobytes())
    assert len(results) == 1


def test_without_harmonics_the_mean_is_subtracted() -> None:
    values = np.random.default_rng(0).normal(5, 1, DAYS.size)
    np.testing.assert_allclose(seasonal_anomalies(values, DAY_T, harmonics=0, fit_T=EVERY), values - values.mean())


def test_the_cycle_sees_only_the_years_it_is_fitted_to() -> None:
    values = np.random.default_rng(0).normal(size=DAYS.size)
    changed = np.where(DAY_T < 365, values, values + 100)
    first = DAY_T < 365
    one, two = (seasonal_anomalies(x, DAY_T, harmonics=1, fit_T=first)[first] for x in (values, changed))
    np.testing.assert_array_equal(one, two)


def test_missing_values_stay_missing_and_do_not_enter_the_fit() -> None:
    values = np.where(np.arange(DAYS.size) % 3 == 0, np.nan, 7.0)
    anomalies = seasonal_anomalies(values, DAY_T, harmonics=1, fit_T=EVERY)
    np.testing.assert_array_equal(np.isnan(anomalies), np.isnan(values))
    assert np.nanmax(np.abs(anomalies)) < 1e-10


def test_too_few_values_for_a_cycle() -> None:
    values = np.full(DAYS.size, np.nan)
    values[:3] = 1
    with pytest.raises(ValueError, match="3 values to fit a seasonal cycle of 5 coefficients"):
        seasonal_anomalies(values, DAY_T, harmonics=2, fit_T=EVERY)


def test_the_mask_says_what_is_not_used() -> None:
    """Case 35: True means not used."""
    np.testing.assert_array_equal(outside_season(np.array([4, 5, 9, 10]), [5, 6, 7, 8, 9]), [True, False, False, True])


def test_an_empty_variable_does_not_shrink_the_others() -> None:
    """Case 38."""
    rng = np.random.default_rng(0)
    full = {"P": rng.normal(size=DAYS.size), "SWC": rng.normal(size=DAYS.size)}
    series = prepared(tower(**full, LE=np.full(DAYS.size, np.nan)))
    assert series.names == ["P", "SWC"]
    assert series.dropped == {"LE": "0 values in the season; 150 needed"}
    assert series.days == 4 * 153
    assert prepared(tower(**full)).dropped == {"LE": "not measured"}


def test_a_constant_variable_is_left_out_and_named() -> None:
    rng = np.random.default_rng(0)
    series = prepared(tower(P=rng.normal(size=DAYS.size), SWC=np.full(DAYS.size, 0.3)))
    assert series.dropped["SWC"] == "constant in the season"


def test_a_sample_of_years_never_sees_the_others() -> None:
    values = np.random.default_rng(0).normal(size=DAYS.size)
    later = np.where(np.datetime64("2012-01-01") <= DAYS, 1e6, values)
    one, two = (prepared(tower(P=x, SWC=x**2), years=[2010, 2011]) for x in (values, later))
    np.testing.assert_array_equal(one.anomalies_TN, two.anomalies_TN)
    assert one.unused_T[np.datetime64("2012-01-01") <= DAYS].all()
