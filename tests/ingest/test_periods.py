"""Daily and three-day values: what is complete enough, and what a mean is."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ingest.land_atmosphere.config import Aggregation
from stages.ingest.land_atmosphere.periods import aggregate

RULE = Aggregation(min_coverage=0.75, min_quarter_coverage=0.5)


def periods(
    values: np.ndarray, *, first: str = "2015-01-01", step: int = 30, rule: Aggregation = RULE, name: str = "LE"
) -> dict[str, xr.Dataset]:
    start = np.datetime64(first, "m").astype(np.int64) + step * np.arange(values.size)
    native = xr.Dataset(
        {name: ("time", values.astype(float), {"source_column": "x"})},
        coords={"time": start.astype("datetime64[m]").astype("datetime64[s]")},
    )
    return dict(aggregate(native, start, step, rule))


def test_a_complete_day_has_its_mean_and_a_complete_sum() -> None:
    day = np.arange(48.0)
    assert periods(day)["daily"]["LE"].values.tolist() == [23.5]
    assert periods(day, name="P")["daily"]["P"].values.tolist() == [48 * 47 / 2]


def test_a_day_without_its_night_is_missing_not_the_mean_of_daylight() -> None:
    """Case 40: the 24 half-hours of the night are missing."""
    day = np.full(48, 100.0)
    day[:12] = day[36:] = np.nan
    daily = periods(day)["daily"]
    assert np.isnan(daily["LE"].values).all()
    assert daily["LE_COVERAGE"].values.tolist() == [0.5]
    lenient = Aggregation(min_coverage=0.5, min_quarter_coverage=0)
    assert periods(day, rule=lenient)["daily"]["LE"].values.tolist() == [100.0]


def test_a_whole_quarter_of_the_day_cannot_be_missing_even_at_three_quarters() -> None:
    day = np.full(48, 100.0)
    day[12:24] = np.nan
    assert periods(day)["daily"]["LE_COVERAGE"].values.tolist() == [0.75]
    assert np.isnan(periods(day)["daily"]["LE"].values).all()


def test_more_gaps_at_night_than_by_day_do_not_bias_the_mean() -> None:
    """Night 0, day 100: the mean is 50, however many of the night's half-hours are missing."""
    day = np.where((np.arange(48) >= 12) & (np.arange(48) < 36), 100.0, 0.0)
    day[:6] = day[42:] = np.nan
    assert np.nanmean(day) == pytest.approx(66.667, abs=0.001)
    assert periods(day)["daily"]["LE"].values.tolist() == [50.0]


def test_just_enough_and_just_too_little() -> None:
    day = np.full(48, 7.0)
    day[[0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44]] = np.nan
    assert periods(day)["daily"]["LE"].values.tolist() == [7.0]
    day[1] = np.nan
    assert np.isnan(periods(day)["daily"]["LE"].values).all()


def test_the_sum_of_a_day_with_gaps_stands_for_the_whole_day() -> None:
    day = np.full(48, 0.5)
    day[[0, 13, 26, 40]] = np.nan
    assert periods(day, name="P")["daily"]["P"].values.tolist() == pytest.approx([24.0])


def test_three_day_periods_are_counted_from_1970_for_every_series() -> None:
    values = np.repeat(np.arange(9.0), 48)
    long = periods(values, first="2015-01-01")["three_day"]
    late = periods(values[48:], first="2015-01-02")["three_day"]
    shared = np.intersect1d(long["time"].values, late["time"].values)
    assert shared.size >= 3
    days = long["time"].values.astype("datetime64[D]").astype(int)
    assert (days % 3 == 0).all()
    both = [period.sel(time=shared)["LE"].values[1:] for period in (long, late)]
    assert np.array_equal(both[0], both[1], equal_nan=True)


def test_a_three_day_mean_and_total() -> None:
    first = "2015-01-03"  # day 16438 of the epoch, the first of a period
    assert int(np.datetime64(first).astype(int)) % 3 == 1
    first = "2015-01-02"
    values = np.repeat([1.0, 2.0, 6.0], 48)
    assert periods(values, first=first)["three_day"]["LE"].values.tolist() == [3.0]
    assert periods(values, first=first, name="P")["three_day"]["P"].values.tolist() == [9.0 * 48]


def test_partial_first_and_last_days_have_no_value() -> None:
    daily = periods(np.full(48, 1.0), first="2015-01-01T12:00")["daily"]
    assert np.isnan(daily["LE"].values).all()
    assert daily["LE_COVERAGE"].values.tolist() == [0.5, 0.5]


def test_steps_that_straddle_no_full_hour_stay_in_their_day() -> None:
    """An offset of 5.75 hours puts the steps at a quarter past and a quarter to."""
    values = np.concatenate([np.full(48, 1.0), np.full(48, 2.0)])
    daily = periods(values, first="2015-01-01T00:15")["daily"]
    assert daily["LE"].values.tolist() == [1.0, 2.0]


def test_days_are_their_own_means_and_three_of_them_a_period() -> None:
    result = periods(np.array([1.0, 2.0, 6.0, np.nan, 5.0, 5.0]), first="2015-01-02", step=1440)
    assert result["daily"]["LE"].values.tolist()[:3] == [1.0, 2.0, 6.0]
    assert result["three_day"]["LE"].values[0] == 3.0
    assert np.isnan(result["three_day"]["LE"].values[1])


@settings(max_examples=50, deadline=None)
@given(
    cells=st.lists(st.one_of(st.none(), st.floats(-500, 500)), min_size=48 * 4, max_size=48 * 4),
    offset=st.integers(0, 95),
)
def test_a_value_lies_between_the_extremes_of_its_day_and_coverage_counts(
    cells: list[float | None], offset: int
) -> None:
    values = np.array([np.nan if cell is None else cell for cell in cells])
    first = str(np.datetime64("2015-01-01T00:00") + 30 * offset)
    daily = periods(values, first=first)["daily"]
    day = (np.datetime64(first, "m") + 30 * np.arange(values.size)).astype("datetime64[D]")
    for stamp, value, coverage in zip(
        daily["time"].values.astype("datetime64[D]"), daily["LE"].values, daily["LE_COVERAGE"].values, strict=True
    ):
        inside = values[day == stamp]
        measured = inside[np.isfinite(inside)]
        assert coverage == pytest.approx(measured.size / 48, abs=1e-6)
        if np.isfinite(value):
            assert coverage >= 0.75 - 1e-6
            assert measured.min() - 1e-9 <= value <= measured.max() + 1e-9
