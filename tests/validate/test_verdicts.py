from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.validate import verdicts
from stages.validate.expectations import Failure, Result, Rule, Severity


def result(name: str, severity: Severity, *rows: int, records: int = 5) -> Result:
    rule = Rule(name, "expect_something", {"column": "x"}, severity, "")
    failures = tuple(Failure(row, f"{name} fails in {row}", f"{row} m") for row in rows)
    return Result(rule, not failures, records, 0, failures)


def records(count: int) -> pl.DataFrame:
    return pl.DataFrame({"record_id": [f"r{i}" for i in range(count)], "group": ["g"] * count}).cast(pl.String)


def test_the_first_failing_rule_is_named_and_all_reasons_are_told() -> None:
    results = [result("a", "quarantine", 1), result("w", "warning", 1, 2), result("b", "quarantine", 1, 3)]
    verdict = verdicts.verdicts(records(5), results)
    assert verdict.columns == ["record_id", "group", "outcome", "expectation", "observed", "reason", "warnings"]
    assert verdict.rows() == [
        ("r0", "g", "accepted", None, None, None, None),
        ("r1", "g", "quarantined", "a", "1 m", "a fails in 1 | b fails in 1", "w fails in 1"),
        ("r2", "g", "accepted", None, None, None, "w fails in 2"),
        ("r3", "g", "quarantined", "b", "3 m", "b fails in 3", None),
        ("r4", "g", "accepted", None, None, None, None),
    ]


def test_a_fault_of_the_table_speaks_against_every_record() -> None:
    rule = Rule("columns", "expect_something", {}, "quarantine", "")
    fault = Result(rule, False, 2, 0, table_reason="column x is missing", table_observed="missing")
    verdict = verdicts.verdicts(records(2), [fault])
    assert verdict["reason"].to_list() == ["column x is missing"] * 2
    assert verdicts.failing_records(fault) == 2


def test_records_without_the_key_columns_still_get_a_verdict() -> None:
    verdict = verdicts.verdicts(pl.DataFrame({"x": [1.0, 2.0]}), [])
    assert verdict["record_id"].to_list() == [None, None]
    assert verdict.schema == verdicts.SCHEMA


rules_strategy = st.lists(
    st.tuples(st.sampled_from(["quarantine", "warning"]), st.sets(st.integers(0, 11))), max_size=6
)


@given(count=st.integers(0, 12), rules=rules_strategy, limit=st.floats(0, 1))
def test_accepted_and_quarantined_are_the_ingested(
    count: int, rules: list[tuple[Severity, set[int]]], limit: float
) -> None:
    results = [
        result(f"rule {i}", severity, *sorted(row for row in rows if row < count), records=count)
        for i, (severity, rows) in enumerate(rules)
    ]
    verdict = verdicts.verdicts(records(count), results)
    judgement = verdicts.weigh("g", verdict, limit)
    refused = {row for severity, rows in rules if severity == "quarantine" for row in rows if row < count}
    assert verdict["record_id"].to_list() == records(count)["record_id"].to_list()
    assert judgement.accepted + judgement.quarantined == judgement.ingested == count
    assert judgement.quarantined == len(refused)
    assert (verdict["outcome"] == "quarantined").to_list() == verdict["reason"].is_not_null().to_list()
    stops = count > 0 and len(refused) / count > limit
    assert judgement.outcome == ("stop" if stops else "pass with quarantine" if refused else "pass")


def test_a_share_at_the_limit_passes_and_one_above_stops() -> None:
    verdict = verdicts.verdicts(records(5), [result("a", "quarantine", 0)])
    assert verdicts.weigh("g", verdict, 0.2).outcome == "pass with quarantine"
    stopped = verdicts.weigh("g", verdict, 0.19)
    assert stopped.stops == ("g: 1 of 5 records are quarantined (20.0%); the gate allows 19.0%",)


def test_the_share_of_nothing_is_undefined() -> None:
    judgement = verdicts.weigh("g", verdicts.verdicts(records(0), []), 0.2, stops=["g has no records"])
    assert judgement.as_json()["quarantined_share"] is None
    assert judgement.outcome == "stop"


def test_the_message_of_a_stop_names_share_limit_reasons_and_place() -> None:
    results = [result("a", "quarantine", 0), result("b", "quarantine", 1, 2), result("c", "quarantine", 0, 1, 2)]
    verdict = verdicts.verdicts(records(5), results)
    judgement = verdicts.weigh("g", verdict, 0.2)
    assert verdicts.stop_message("towers", judgement.stops, verdict, Path("out")) == (
        "The gate stops towers. g: 3 of 5 records are quarantined (60.0%); the gate allows 20.0%. "
        "Most frequent reasons: b (2 records, first: b fails in 1); a (1 record, first: a fails in 0). "
        "Every record with its reason stands in out/verdict.parquet, the expectations in out/docs/index.html. "
        "Mend the data, or change the gate in params.yaml, and run the stage again."
    )


def test_counts_by_expectation_add_up_over_groups() -> None:
    groups = {"g": [result("a", "quarantine", 1, 2)], "h": [result("a", "quarantine", 1), result("b", "warning")]}
    assert verdicts.expectation_counts(groups) == [
        {"expectation": "a", "severity": "quarantine", "judged": 10, "not_judged": 0, "failed": 3},
        {"expectation": "b", "severity": "warning", "judged": 5, "not_judged": 0, "failed": 0},
    ]


@pytest.mark.parametrize(("part", "whole", "expected"), [(1, 4, 0.25), (0, 3, 0.0), (0, 0, None)])
def test_share(part: int, whole: int, expected: float | None) -> None:
    assert verdicts.share(part, whole) == expected
