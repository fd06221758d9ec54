"""Inputs that are absent or broken: each error names the file, the place, what is wrong and what to run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stages import artifacts
from stages.errors import DataError, StageError
from tests.report import fakes
from tests.report.conftest import report

METRICS = Path("data/evaluations/graphs/metrics.json")
SUMMARY = Path("data/validated/land_atmosphere/summary.json")
VERDICT = Path("data/validated/land_atmosphere/verdict.parquet")


def change(file: Path, edit: Callable[[Any], None]) -> None:
    tree = artifacts.read_json(file)
    edit(tree)
    artifacts.write_json(file, tree)


@pytest.fixture
def inputs(workspace: Path) -> Path:
    fakes.write_land()
    fakes.write_system(fakes.graph_system())
    return workspace


def test_nothing_to_report_says_what_to_run(workspace: Path) -> None:
    with pytest.raises(StageError, match=r"data/evaluations: holds no evaluation.*make repro.*evaluate SYSTEM"):
        report()
    assert not Path("data/report").exists()


def test_a_system_without_its_verdict_says_what_to_run(workspace: Path) -> None:
    fakes.write_system(fakes.graph_system("elsewhere"))
    with pytest.raises(
        StageError, match=r"data/validated/elsewhere/summary.json: not found.*stages validate elsewhere"
    ):
        report()


def test_a_domain_without_a_system_is_reported(inputs: Path) -> None:
    fakes.write_simulated()
    assert 'id="data-twin_worlds"' in report()


@pytest.mark.parametrize(
    ("file", "edit", "message"),
    [
        (METRICS, lambda m: m.pop("headline"), r"metrics.json, headline: found no such key.*stages evaluate graphs"),
        (METRICS, lambda m: m["headline"].update(seeds="many"), r"headline.seeds: found 'many'.*integer"),
        (METRICS, lambda m: m["claims"][1].update(verdict="maybe"), r"claims.1.verdict: found 'maybe'.*'not shown'"),
        (
            METRICS,
            lambda m: m["tables"][0]["rows"][2].pop(),
            r"table 'Links by site', row 3: found 7 cells; expected 8",
        ),
        (METRICS, lambda m: m["plots"][0].update(file="../a.svg"), r"plot 'Strength by lag': found '../a.svg'"),
        (METRICS, lambda m: m["plots"][0].update(file="a.png"), r"found 'a.png'; expected the name of an SVG file"),
        (METRICS, lambda m: m["plots"][0].update(file="none.svg"), r"plots/none.svg: found no such file"),
        (SUMMARY, lambda s: s.pop("leakage"), r"summary.json, leakage: found no such key.*validate land_atmosphere"),
        (SUMMARY, lambda s: s.update(outcome="fine"), r"outcome: found 'fine'.*'pass with quarantine'"),
        (SUMMARY, lambda s: s["splits"]["by_site"].pop("parts"), r"splits.by_site.parts: found no such key"),
        (SUMMARY, lambda s: s["sites"]["ch-dav"]["about"].pop("variables"), r"sites.ch-dav.about.variables: found no"),
        (SUMMARY, lambda s: s["sites"]["ch-dav"]["source"].pop("origin"), r"sites.ch-dav.source.origin: found no such"),
        (SUMMARY, lambda s: s.update(quarantined=3), r"found 252 records, 15 quarantined; expected 252 and 3"),
    ],
)
def test_a_broken_json_is_named_with_the_place(
    inputs: Path, file: Path, edit: Callable[[Any], None], message: str
) -> None:
    change(file, edit)
    with pytest.raises(DataError, match=message):
        report()


@pytest.mark.parametrize(("file", "verb"), [(METRICS, "evaluate graphs"), (SUMMARY, "validate land_atmosphere")])
@pytest.mark.parametrize(("text", "found"), [("{", "text that is not JSON"), (None, "no such file"), ("[]", r"\[\]")])
def test_an_unreadable_json_is_named(inputs: Path, file: Path, verb: str, text: str | None, found: str) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"{re.escape(str(file))}.*found {found}.*`python -m stages {verb}` again"):
        report()


def test_several_faults_are_counted(inputs: Path) -> None:
    change(METRICS, lambda metrics: [metrics.pop(key) for key in ("title", "domain", "claims")])
    with pytest.raises(DataError, match=r"title: found no such key.*and 2 more faults"):
        report()


def test_a_verdict_that_is_absent_truncated_or_of_other_columns_is_named(inputs: Path) -> None:
    whole = VERDICT.read_bytes()
    VERDICT.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"verdict.parquet: found no readable table"):
        report()
    artifacts.write_table(VERDICT, pl.DataFrame({"record_id": ["a"], "group": ["g"], "outcome": ["accepted"]}))
    with pytest.raises(DataError, match="expected also expectation, observed, reason, warnings"):
        report()
    VERDICT.unlink()
    with pytest.raises(DataError, match=r"verdict.parquet: found no such file"):
        report()


def test_the_order_of_records_in_the_verdict_does_not_matter(inputs: Path) -> None:
    before = report()
    artifacts.write_table(VERDICT, artifacts.read_table(VERDICT).collect().reverse())
    assert report() == before


def test_the_command_reports_the_error_in_one_paragraph(inputs: Path, stages: Callable[..., Any]) -> None:
    Path("params.yaml").write_text(json.dumps({"report": {"title": "T", "records_shown": -1}}), encoding="utf-8")
    wrong = stages("report")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "params.yaml: report.records_shown: found -1" in wrong.stderr
