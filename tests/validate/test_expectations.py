from __future__ import annotations

import json
import socket
from datetime import date, datetime
from typing import Any

import polars as pl
import pytest

from stages.errors import StageError
from stages.validate import expectations
from stages.validate.expectations import Rule, Shown, between, judge, suite_of


def rule(column: str = "x", low: float | None = 0.0, high: float | None = 10.0, **changed: Any) -> Rule:
    told = {"severity": "quarantine", "reason": "x is {value} m in {record_id}", "observed": "{value} m"}
    return between(f"range of {column}", column, low, high, **(told | changed))


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (2310.0, "", "2310"),
        (-99999.0, "", "-99999"),
        (0.12345678, "", "0.123457"),
        (0.5, "", "0.5"),
        (0.0, "", "0"),
        (-0.0, "", "0"),
        (1000.4, "", "1000.4"),
        (1234567.8, "", "1234568"),
        (float("inf"), "", "inf"),
        (3.0e-7, "", "0.0000003"),
        (18.25, "clock", "18:15"),
        (9.999, "clock", "10:00"),
        (0.043, ".1%", "4.3%"),
    ],
)
def test_numbers_in_reasons_have_six_digits_and_no_exponent(value: float, spec: str, text: str) -> None:
    assert format(Shown(value), spec) == text


def test_a_failing_record_is_named_with_value_and_reason_and_a_null_is_not_judged() -> None:
    frame = pl.DataFrame({"record_id": ["a", "b", "c"], "x": [5.0, 12.5, None]})
    (result,) = judge(frame, suite_of("s", [rule()], frame))
    assert (result.success, result.judged, result.not_judged) == (False, 2, 1)
    assert [(f.row, f.reason, f.observed) for f in result.failures] == [(1, "x is 12.5 m in b", "12.5 m")]


def test_a_column_of_nulls_only_passes_and_is_counted_as_not_judged() -> None:
    frame = pl.DataFrame({"record_id": ["a", "b"], "x": [None, None]})
    (result,) = judge(frame, suite_of("s", [rule()], frame))
    assert (result.success, result.judged, result.not_judged) == (True, 0, 2)


def test_infinity_is_out_of_range() -> None:
    frame = pl.DataFrame({"record_id": ["a"], "x": [float("inf")]})
    (result,) = judge(frame, suite_of("s", [rule()], frame))
    assert result.failures[0].reason == "x is inf m in a"


def test_an_empty_table_meets_every_rule_but_the_row_count() -> None:
    frame = pl.DataFrame(schema={"record_id": pl.String, "group": pl.String, "sha256": pl.String, "x": pl.Float64})
    rules = [expectations.row_count("towers"), *expectations.identity(), rule()]
    results = judge(frame, suite_of("s", rules, frame))
    assert [r.rule.name for r in results if not r.success] == ["row count"]
    assert results[0].table_reason == "towers has 0 records; the gate asks for at least 1"


def test_null_and_repeated_keys_are_found() -> None:
    frame = pl.DataFrame({"record_id": ["a", "a", None], "group": ["g", None, "g"], "sha256": ["0", "1", None]})
    present, unique, group, digest = judge(frame, suite_of("s", expectations.identity("month"), frame))
    assert [(f.row, f.reason) for f in present.failures] == [(2, "a month has no record_id")]
    assert [f.row for f in unique.failures] == [0, 1]
    assert unique.failures[0].reason == "record_id a stands on more than one month"
    assert [f.row for f in digest.failures] == [2]
    assert group.failures[0].reason == "a has no group, so no split can keep it from leaking"


def test_missing_and_ill_typed_columns_are_named() -> None:
    frame = pl.DataFrame({"record_id": ["a"], "x": ["5"], "n": [3], "empty": [None], "when": [date(2020, 1, 1)]})
    declared = {"record_id": "text", "x": "number", "n": "number", "empty": "integer", "when": "instant", "y": "flag"}
    table = expectations.columns_table(frame, declared)
    (result,) = judge(table, suite_of("s", [expectations.columns_rule("t.parquet")], table))
    assert [f.reason for f in result.failures] == [
        "column x of t.parquet is text; the gate expects number",
        "column y of t.parquet is missing; the gate expects flag",
    ]


def test_an_expectation_that_cannot_be_evaluated_is_an_error_not_a_pass() -> None:
    frame = pl.DataFrame({"record_id": ["a"], "x": [1.0]})
    with pytest.raises(StageError, match=r"'range of absent' could not be evaluated: .*\"absent\".* does not exist"):
        judge(frame, suite_of("s", [rule("absent")], frame))


def test_two_rules_of_one_name_are_refused() -> None:
    frame = pl.DataFrame({"record_id": ["a"], "x": [1.0]})
    with pytest.raises(ValueError, match="rule names are not unique"):
        suite_of("s", [rule(), rule()], frame)


INSTANTS = [datetime(2020, 1, 31, 23, 30), datetime(2020, 2, 1), datetime(2020, 2, 1, 0, 30), None]


@pytest.mark.parametrize("bound", [datetime(2020, 2, 1), date(2020, 2, 1), "2020-02-01", "2020-02-01T00:00:00+00:00"])
@pytest.mark.parametrize("dtype", [pl.Datetime("ns"), pl.Datetime("us"), pl.Datetime("ms", "UTC")])
def test_a_suite_on_instants_gives_the_same_verdict_after_it_is_saved_and_read_back(
    bound: Any, dtype: pl.DataType
) -> None:
    when = pl.Series("when", INSTANTS, dtype=pl.Datetime("us"))
    when = when.cast(pl.Datetime("ms")).dt.replace_time_zone("UTC") if dtype == pl.Datetime("ms", "UTC") else when
    frame = pl.DataFrame({"record_id": ["a", "b", "c", "d"], "when": when.cast(dtype)})
    told = {"severity": "quarantine", "reason": "{record_id} starts at {value}", "observed": "{value}"}
    rules = [
        between("not before", "when", bound, None, **told),  # type: ignore[arg-type]
        Rule("midnight", "expect_column_values_to_be_in_set", {"column": "when", "value_set": [bound]}, **told),  # type: ignore[arg-type]
    ]
    suite = suite_of("s", rules, frame)
    before = judge(frame, suite)
    after = judge(frame, json.loads(json.dumps(suite)))
    assert before == after
    assert [[f.row for f in result.failures] for result in after] == [[0], [0, 2]]
    assert after[0].failures[0].reason.startswith("a starts at 2020-01-31 23:30:00")


def test_nothing_is_sent_and_nothing_is_left_in_the_home_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*address: Any) -> None:
        raise AssertionError(f"a connection to {address}")

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    frame = pl.DataFrame({"record_id": ["a"], "x": [1.0]})
    judge(frame, suite_of("s", [rule()], frame))
    assert list(tmp_path.iterdir()) == []
