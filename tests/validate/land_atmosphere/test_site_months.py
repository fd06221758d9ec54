from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from stages.validate import expectations, verdicts
from stages.validate.land_atmosphere import site_months
from stages.validate.land_atmosphere.site_months import Gate
from tests.validate.land_atmosphere.fakes import frame, month, without

SITE = "us-arm"

# Columns changed in one sound month, the rule they break, the reason it must give.
QUARANTINED: list[tuple[dict[str, Any], str, str]] = [
    ({"year": None}, "year present", "ID has no year, so it fits no split by year"),
    (
        {"resolution_minutes": 60},
        "one resolution",
        "ID has steps of 60 minutes; most months of the site have 30",
    ),
    (
        {"present_steps": 600},
        "steps present",
        "600 of 1440 steps (41.7%) of ID stand in the file; the gate asks for at least 50.0%",
    ),
    (
        {f"coverage_{v}": 0.05 for v in site_months.UNITS},
        "anything measured",
        "no variable is measured often enough in ID: the best reaches 5.0% of the steps; "
        "the gate asks for at least 20.0% of one",
    ),
    (
        {"conflicting_stamps": 3},
        "conflicting stamps",
        "3 time stamps of ID stand more than once with different values; the gate allows 0",
    ),
    (
        {"sentinel_LE": 0.004},
        "missing-value code in LE",
        "0.40% of the LE cells of ID hold a missing-value code the format does not declare (such as -999); "
        "the gate allows 0.00%: declare the code in the site's format",
    ),
    ({"maximum_LE": 2310.0}, "highest LE", "LE reaches 2310 W m-2 in ID; the gate allows -300 to 1000"),
    ({"minimum_H": -812.4}, "lowest H", "H falls to -812.4 W m-2 in ID; the gate allows -300 to 1000"),
    ({"maximum_SWC": 25.4}, "highest SWC", "SWC reaches 25.4 m3 m-3 in ID; the gate allows 0 to 1"),
    ({"maximum_P": 151.0}, "highest P", "P reaches 151 mm in 30 minutes in ID; the gate allows 0 to 150"),
    ({"minimum_P": -0.2}, "lowest P", "P falls to -0.2 mm in 30 minutes in ID; the gate allows 0 to 150"),
    ({"maximum_G": 600.0}, "highest G", "G reaches 600 W m-2 in ID; the gate allows -250 to 500"),
    ({"minimum_NETRAD": -260.0}, "lowest NETRAD", "NETRAD falls to -260 W m-2 in ID; the gate allows -250 to 1200"),
    ({"minimum_SW_IN": -21.0}, "lowest SW_IN", "SW_IN falls to -21 W m-2 in ID; the gate allows -20 to 1400"),
    ({"maximum_VPD": 2500.0}, "highest VPD", "VPD reaches 2500 hPa in ID; the gate allows -0.5 to 100"),
    ({"maximum_TA": 293.1}, "highest TA", "TA reaches 293.1 degC in ID; the gate allows -60 to 55"),
    (
        {"constant_hours_H": 36.5},
        "stuck H",
        "H holds one value for 36.5 hours in ID; the gate allows 6: stuck sensor or filled gap?",
    ),
    (
        {"sw_in_peak_hour": 18.25},
        "shortwave peaks at noon",
        "shortwave radiation peaks at 18:15 local standard time in ID; "
        "the gate allows 10:00 to 14:00: wrong time zone?",
    ),
    (
        {"sw_in_peak_hour": 9.75},
        "shortwave peaks at noon",
        "shortwave radiation peaks at 09:45 local standard time in ID; "
        "the gate allows 10:00 to 14:00: wrong time zone?",
    ),
]
WARNED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"duplicate_stamps": 2},
        "duplicate stamps",
        "2 rows of ID repeat a time stamp with the same values; they are read once",
    ),
    ({"unsorted_stamps": 4}, "stamps in order", "4 time stamps of ID stand before an earlier one; they were sorted"),
    (
        {"energy_balance_ratio": 0.31},
        "energy balance",
        "turbulent over available energy is 0.31 in ID; towers usually lie between 0.5 and 1.3",
    ),
    (
        {"minimum_SWC": 0.0029},
        "driest SWC",
        "SWC falls to 0.0029 m3 m-3 in ID, drier than soil in the field (0.02): does the probe drop out?",
    ),
    (
        {
            name: value
            for variable in site_months.UNITS
            if variable != "TA"
            for name, value in without(variable).items()
        },
        "several variables",
        "1 of 9 variables is measured in ID, too few for most systems: does the `format` find all columns? "
        "site.json notes what it passed over",
    ),
    ({"coverage_LE": 0.043}, "coverage of LE", "LE is measured in 4.3% of ID; the gate warns below 20.0%"),
    ({"filled_TA": 0.8}, "gap-filling of TA", "80.0% of TA in ID is gap-filled; the gate warns above 50.0%"),
]
SOUND: list[dict[str, Any]] = [
    {},
    {"maximum_LE": 1000.0, "minimum_LE": -300.0, "sw_in_peak_hour": 14.0},  # at the limits
    {"minimum_VPD": -0.3},  # the error of a hygrometer in fog
    {"constant_hours_SWC": 200.0, "constant_hours_P": 700.0},  # frozen soil; tips of a gauge
    {"sw_in_peak_hour": 2.0, "mean_SW_IN": 3.0},  # polar night
    {"sw_in_peak_hour": 15.0, "coverage_SW_IN": 0.3},  # the afternoons of a few days
    {"energy_balance_ratio": 0.1, "energy_balance_steps": 40},  # too few steps to tell
    {"energy_balance_ratio": -0.8, "mean_NETRAD": 0.5, "mean_G": -8.6},  # winter: little energy to balance
    {"sw_in_peak_hour": None, "energy_balance_ratio": None},
]


def judged(records: pl.DataFrame, gate: Gate | None = None) -> tuple[pl.DataFrame, dict[str, expectations.Result]]:
    gate = gate or Gate()
    summary = site_months.summary_frame(records, gate)
    results = expectations.judge(summary, expectations.suite_of("s", site_months.rules(summary, gate), summary))
    return verdicts.verdicts(summary, results), {result.rule.name: result for result in results}


@pytest.fixture(scope="module")
def verdict() -> tuple[dict[str, dict[str, Any]], dict[str, expectations.Result]]:
    """All cases as the months of one tower, judged in one run; by record_id."""
    cases = [*(c for c, _, _ in QUARANTINED), *(c for c, _, _ in WARNED), *SOUND]
    rows = [month(SITE, 2000 + i // 12, i % 12 + 1, **changed) for i, changed in enumerate(cases)]
    table, results = judged(frame(*rows))
    return {row["record_id"]: row for row in table.to_dicts()}, results


def identity(position: int) -> str:
    return f"{SITE}/{2000 + position // 12}-{position % 12 + 1:02d}"


@pytest.mark.parametrize("position", range(len(QUARANTINED)), ids=lambda i: QUARANTINED[i][1])
def test_a_month_is_quarantined_with_value_and_bound(verdict: Any, position: int) -> None:
    _, name, reason = QUARANTINED[position]
    row = verdict[0][identity(position)]
    assert (row["outcome"], row["expectation"]) == ("quarantined", name)
    assert row["reason"] == reason.replace("ID", identity(position))


@pytest.mark.parametrize("position", range(len(WARNED)), ids=lambda i: WARNED[i][1])
def test_a_month_is_accepted_with_a_warning(verdict: Any, position: int) -> None:
    where = len(QUARANTINED) + position
    row = verdict[0][identity(where)]
    assert (row["outcome"], row["expectation"], row["reason"]) == ("accepted", None, None)
    assert row["warnings"] == WARNED[position][2].replace("ID", identity(where))
    assert verdict[1][WARNED[position][1]].failures


@pytest.mark.parametrize("position", range(len(SOUND)))
def test_a_sound_month_is_accepted_without_a_word(verdict: Any, position: int) -> None:
    row = verdict[0][identity(len(QUARANTINED) + len(WARNED) + position)]
    assert (row["outcome"], row["reason"], row["warnings"]) == ("accepted", None, None)


def test_months_without_light_are_counted_as_not_judged(verdict: Any) -> None:
    assert verdict[1]["shortwave peaks at noon"].not_judged == 5
    assert verdict[1]["energy balance"].not_judged == 4


def test_every_rule_fails_somewhere_above_or_is_a_sibling_of_one_that_does(verdict: Any) -> None:
    kinds = {name.rsplit(" ", 1)[0] if name.split()[-1] in site_months.UNITS else name for name in verdict[1]}
    failing = {
        name.rsplit(" ", 1)[0] if name.split()[-1] in site_months.UNITS else name for _, name, _ in QUARANTINED + WARNED
    }
    assert kinds - {"unit of"} == failing  # a doubt about a unit is one of the site: see test_stage.py


def test_a_month_with_several_faults_names_the_first_and_tells_all() -> None:
    table, _ = judged(frame(month(SITE, 2000, 1, conflicting_stamps=1, maximum_LE=5000.0)))
    (row,) = table.to_dicts()
    assert row["expectation"] == "conflicting stamps"
    assert row["reason"].split(" | ")[1] == "LE reaches 5000 W m-2 in us-arm/2000-01; the gate allows -300 to 1000"


def test_variables_the_site_lacks_have_no_rules() -> None:
    table, results = judged(frame(month("ch-dav", 2013, 1, **without("H"), **without("G"))))
    assert not {name for name in results if name.endswith((" H", " G"))}
    assert table["outcome"].to_list() == ["accepted"]


def test_a_daily_series_has_daily_limits_and_no_hour_of_the_peak() -> None:
    daily = {"resolution_minutes": 1440, "expected_steps": 30, "present_steps": 30, "energy_balance_steps": 25}
    sound = {"maximum_SW_IN": 360.0, "maximum_NETRAD": 210.0, "maximum_H": 150.0, "maximum_LE": 160.0}
    sound |= {"maximum_P": 180.0, "constant_hours_TA": 72.0, "sw_in_peak_hour": None}
    table, results = judged(
        frame(
            month("us-ar1", 2009, 1, **daily, **sound),
            month("us-ar1", 2009, 2, **daily, **sound | {"maximum_P": 900.0}),
            month("us-ar1", 2009, 3, **daily, **sound | {"maximum_SW_IN": 700.0}),
        )
    )
    assert table["reason"].to_list() == [
        None,
        "P reaches 900 mm a day in us-ar1/2009-02; the gate allows 0 to 500",
        "SW_IN reaches 700 W m-2 in us-ar1/2009-03; the gate allows -5 to 500",
    ]
    assert results["shortwave peaks at noon"].not_judged == 3


def test_a_monthly_series_has_no_step_in_minutes_and_the_daily_limits() -> None:
    row = month("us-ar1", 2009, 1, resolution_minutes=None, expected_steps=1, present_steps=1, sw_in_peak_hour=None)
    table, results = judged(frame(row | {"maximum_H": 120.0, "maximum_LE": 351.0, "maximum_SW_IN": 300.0}))
    assert table["expectation"].to_list() == ["highest LE"]
    assert results["one resolution"].not_judged == 1


def test_precipitation_is_held_against_the_step_of_the_series() -> None:
    hourly = {"resolution_minutes": 60, "expected_steps": 720, "present_steps": 720}
    table, _ = judged(
        frame(month(SITE, 2000, 1, **hourly, maximum_P=290.0), month(SITE, 2000, 2, **hourly, maximum_P=310.0))
    )
    assert table["reason"].to_list() == [
        None,
        "P reaches 310 mm in 60 minutes in us-arm/2000-02; the gate allows 0 to 300",
    ]


def test_a_site_changes_only_the_limits_it_names() -> None:
    own = Gate.model_validate({"max_quarantined": 0.3, "subdaily": {"range": {"LE": [-300, 3000]}}})
    gate = Gate.model_validate({"min_present": 0.9, "subdaily": {"range": {"H": [-50, 50]}}}).overridden(own)
    assert (gate.max_quarantined, gate.min_present) == (0.3, 0.9)
    assert (gate.subdaily.range.LE, gate.subdaily.range.H) == ((-300, 3000), (-50, 50))
    assert gate.subdaily.range.TA == Gate().subdaily.range.TA
    assert Gate().overridden(None) == Gate()


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValidationError, match="the lower bound 10 is above the upper bound 0"):
        Gate.model_validate({"subdaily": {"range": {"LE": [10, 0]}}})
