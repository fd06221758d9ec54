"""One row for each site-month: what each statistic says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages.ingest.land_atmosphere.native import Native
from stages.ingest.land_atmosphere.records import monthly
from stages.ingest.land_atmosphere.schema import RECORD_COLUMNS, VARIABLES
from tests.ingest.towers import days, digits, half_hours, ingest, stamps, table, write


def tower(tmp_path: Path, columns: dict[str, list[float]], first: str = "2015-01-01", **options: object) -> Native:
    write(tmp_path / "tower.csv", table(half_hours(first, columns)))
    return ingest(tmp_path, {"reader": "base", **options})


def test_the_schema_is_the_same_for_every_tower(tmp_path: Path) -> None:
    few = monthly(tower(tmp_path / "a", {"TA": [1.0, 2.0]}), "few")
    all_ = monthly(tower(tmp_path / "b", days(31)), "all")
    assert few.columns == all_.columns == list(RECORD_COLUMNS)
    assert few.schema == all_.schema
    assert pl.concat([few, all_]).height == 2
    assert few["coverage_LE"].to_list() == [None]


def test_months_have_stable_names_and_counts_of_the_calendar(tmp_path: Path) -> None:
    records = monthly(tower(tmp_path, days(60), "2016-01-31"), "us-arm")
    assert records["record_id"].to_list() == ["us-arm/2016-01", "us-arm/2016-02", "us-arm/2016-03"]
    assert records["group"].to_list() == ["us-arm"] * 3
    assert records["expected_steps"].to_list() == [31 * 48, 29 * 48, 31 * 48]
    assert records["present_steps"].to_list() == [48, 29 * 48, 30 * 48]
    assert records["coverage_TA"].to_list() == [1 / 31, 1.0, 30 / 31]


def test_mean_with_a_declared_missing_value(tmp_path: Path) -> None:
    """Case 34: LE = [100, -9999, 120]."""
    record = monthly(tower(tmp_path, {"LE": [100, -9999, 120]}), "x").row(0, named=True)
    assert record["mean_LE"] == 110
    assert record["coverage_LE"] == 2 / 1488
    assert record["sentinel_LE"] == 0


@pytest.mark.parametrize("sentinel", [-99999, -999, -6999, 9999])
def test_other_sentinels_are_named_counted_and_kept(tmp_path: Path, sentinel: int) -> None:
    """Case 34: -99999 and -999 at suspicious rates are named."""
    values = [100.0, 110.0, float(sentinel)] * 50
    native = tower(tmp_path, {"LE": values})
    record = monthly(native, "x").row(0, named=True)
    assert record["sentinel_LE"] == 50 / 1488
    assert any(f"LE: 50 of 150 values are {sentinel}" in note for note in native.notes)
    assert sentinel in (record["minimum_LE"], record["maximum_LE"])
    declared = tower(tmp_path, {"LE": values}, sentinels=[-9999, sentinel])
    assert monthly(declared, "x").row(0, named=True)["mean_LE"] == 105
    assert declared.notes == []


def test_an_unheard_of_sentinel_is_found_by_its_distance(tmp_path: Path) -> None:
    native = tower(tmp_path, {"TA": [10.0 + i % 5 for i in range(200)] + [-555.0] * 6})
    assert any("TA: 6 of 206 values are -555" in note for note in native.notes)


def test_a_repeated_extreme_within_range_is_no_sentinel(tmp_path: Path) -> None:
    native = tower(tmp_path, {"SWC": [50.0] * 40 + [20.0 + i % 20 for i in range(200)], "P": [0.0] * 235 + [9.0] * 5})
    assert [note for note in native.notes if "looks like" in note and note.startswith("SWC")] == []


def test_the_longest_run_of_one_value_in_hours(tmp_path: Path) -> None:
    swc = [20.0] * 7 + [21.0] + [20.0] * 3 + [-9999.0] + [20.0] * 2
    records = monthly(tower(tmp_path, {"SWC": swc, "P": [0.0] * len(swc)}), "x").row(0, named=True)
    assert records["constant_hours_SWC"] == 3.5
    assert records["constant_hours_P"] == 0.0, "zeros are no stuck sensor"


def sun(shift_hours: float) -> list[float]:
    hour = (np.arange(31 * 48) % 48 + 0.5) / 2
    away = (hour - 12 - shift_hours + 12) % 24 - 12
    return np.clip(900 * np.cos(away / 12 * np.pi), -3, None).round(2).tolist()


@pytest.mark.parametrize("shift", [0, 5.5, 6, -5.5, 11])
def test_the_hour_of_the_sun_shows_a_wrong_clock(tmp_path: Path, shift: float) -> None:
    """Case 39: shortwave must be centred between 10 and 14 local; a clock wrong by 5.5 or 6 hours is seen."""
    record = monthly(tower(tmp_path, {"SW_IN": sun(shift)}), "x").row(0, named=True)
    assert record["sw_in_peak_hour"] == pytest.approx((12 + shift) % 24, abs=0.05)
    assert (10 <= record["sw_in_peak_hour"] <= 14) == (shift == 0)


def test_utc_stamps_of_india_read_right_with_their_offset(tmp_path: Path) -> None:
    native = tower(tmp_path, {"SW_IN": sun(-5.5)}, clock="utc", utc_offset=5.5)
    january = monthly(native, "x").row(0, named=True)
    assert january["sw_in_peak_hour"] == pytest.approx(12, abs=0.05)


def test_cloudy_afternoons_do_not_look_like_a_wrong_clock(tmp_path: Path) -> None:
    values = np.array(sun(0))
    afternoon = (np.arange(values.size) % 48) >= 28
    values[afternoon] *= 0.4
    record = monthly(tower(tmp_path, {"SW_IN": values.tolist()}), "x").row(0, named=True)
    assert 10 <= record["sw_in_peak_hour"] <= 12


def test_no_hour_of_the_sun_in_the_polar_night_or_in_daily_data(tmp_path: Path) -> None:
    record = monthly(tower(tmp_path, {"SW_IN": [0.5] * 1488}), "x").row(0, named=True)
    assert record["sw_in_peak_hour"] is None


def test_energy_balance_over_the_steps_where_all_four_are_measured(tmp_path: Path) -> None:
    columns = {
        "H": [100, 100, -9999, 50],
        "LE": [60, 60, 60, 30],
        "NETRAD": [220, 220, 220, 120],
        "G": [20, -9999, 20, 20],
    }
    record = monthly(tower(tmp_path, columns), "x").row(0, named=True)
    assert record["energy_balance_steps"] == 2
    assert record["energy_balance_ratio"] == pytest.approx((160 + 80) / (200 + 100))


def test_an_undefined_statistic_is_null(tmp_path: Path) -> None:
    """Case 60."""
    record = monthly(tower(tmp_path, {"H": [1, 2], "TA": [-9999, -9999]}), "x").row(0, named=True)
    assert record["mean_TA"] is None
    assert record["constant_hours_TA"] is None
    assert record["coverage_TA"] == 0
    assert record["energy_balance_ratio"] is None


def test_the_digest_of_a_month_follows_its_values_alone(tmp_path: Path) -> None:
    """Case 56, and a change in one month leaves the others as they were."""
    plain = days(60)
    changed = {name: list(series) for name, series in plain.items()}
    changed["TA"][0] += 1
    before = monthly(tower(tmp_path / "a", plain), "x")["sha256"].to_list()
    after = monthly(tower(tmp_path / "b", changed), "x")["sha256"].to_list()
    assert before[0] != after[0]
    assert before[1:] == after[1:]
    renamed = {("VPD" if name == "TA" else name): series for name, series in plain.items() if name != "VPD"}
    assert monthly(tower(tmp_path / "c", renamed), "x")["sha256"].to_list()[0] != before[0]


def test_unsorted_rows_belong_to_the_month_of_their_stamp(tmp_path: Path) -> None:
    when = stamps("2015-01-31T22:00", 8)
    order = [1, 0, 2, 3, 5, 4, 6, 7]
    text = table(
        {
            "TIMESTAMP_START": [digits(when[i]) for i in order],
            "TA": order,
            "TIMESTAMP_END": [digits(when[i] + 30) for i in order],
        }
    )
    write(tmp_path / "tower.csv", text)
    assert monthly(ingest(tmp_path, "base"), "x")["unsorted_stamps"].to_list() == [1, 1]


def test_every_variable_has_every_statistic() -> None:
    assert all(f"coverage_{variable}" in RECORD_COLUMNS for variable in VARIABLES)
    assert len(RECORD_COLUMNS) == len(set(RECORD_COLUMNS))


def test_the_digest_of_a_variable_depends_on_its_values_alone(tmp_path: Path) -> None:
    month = days(30)
    rest = {"LE": month["LE"], "NETRAD": month["NETRAD"], "P": month["P"]}
    one = monthly(tower(tmp_path / "a", rest | {"SWC": month["LE"]}), "a").row(0, named=True)
    other = monthly(tower(tmp_path / "b", rest | {"SWC": month["H"]}, "2017-06-01"), "b").row(0, named=True)
    assert one["sha256"] != other["sha256"]
    assert one["sha256_SWC"] != other["sha256_SWC"]
    assert one["sha256_LE"] == other["sha256_LE"] is not None
    assert one["sha256_NETRAD"] == other["sha256_NETRAD"] is not None
    assert one["sha256_P"] is None, "rain that takes two values may be the same at two towers"
    assert one["sha256_TA"] is None
