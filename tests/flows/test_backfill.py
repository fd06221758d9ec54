"""`python -m flows backfill`: a rerun for each version of a data set in a range of commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import Project
from tests.flows.rerun_project import Reruns, build

NO_SERVER = "http://127.0.0.1:9/api"


@pytest.fixture
def reruns(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reruns:
    """Alpha at 1 (tag v1), 2, 2 (only the offset changed), a version that breaks the score, and 4."""
    monkeypatch.setenv("RUNS", "")
    found = build(project, tmp_path)
    found.git("tag", "v1", "HEAD~1")
    found.edit("offset: 0", "offset: 100")
    found.commit("offset")
    alpha, beta = found.project.read("params.yaml").split("  # beta")
    for version in ("1 2", "4"):
        found.project.file("params.yaml", f"{alpha.replace('version: 2', f'version: {version}')}  # beta{beta}")
        found.commit(f"alpha {version}", run="no" if version == "1 2" else "yes")
    return found


def test_a_range_oldest_first_with_one_table_at_the_end(reruns: Reruns) -> None:
    commits = reruns.git("log", "--format=%h", "--abbrev=7", "--reverse").split()
    listed = reruns.call("backfill", "--json", "--dry-run", "--data-revs", "alpha=v1..", PREFECT_API_URL=NO_SERVER)
    versions = json.loads(listed.out)["versions"]
    # The commit of the offset brought no version; HEAD's version is what HEAD has.
    assert [version["revision"][:7] for version in versions] == [commits[1], commits[3], commits[4]]
    assert [version["outcome"] for version in versions] == ["to do", "to do", "nothing differs"]
    assert reruns.branches() == []

    done = reruns.call("backfill", "--data-revs", "alpha=v1..HEAD")
    # `1 2` is no number: its score fails, and the versions after it are done all the same.
    assert done.code == 1, done.err
    rows = [line.split() for line in done.out.splitlines()]
    assert [row[0] for row in rows[1:4]] == [commits[1], commits[3], commits[4]]
    assert ["score", "142", "122"] in rows
    assert "1 done, 1 failed, 1 nothing differs" in done.out
    assert reruns.branches() == [f"rerun/alpha-{commits[1]}-on-{commits[4]}"]
    reruns.untouched()


def test_what_is_done_is_not_done_again(reruns: Reruns) -> None:
    first = reruns.call("backfill", "--json", "--data-revs", "alpha=v1..HEAD~2")
    assert first.code == 0, first.err
    reruns.executed()
    again = reruns.call("backfill", "--json", "--data-revs", "alpha=v1..HEAD~2", PREFECT_API_URL=NO_SERVER)
    (before,), (after,) = (json.loads(done.out)["versions"] for done in (first, again))
    assert (before["outcome"], after["outcome"]) == ("done", "already there")
    assert after["result"]["metrics"] == before["result"]["metrics"]
    assert reruns.executed() == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["alpha=HEAD"], "expected NAME=A..B"),
        (["alpha=v1...HEAD"], "expected NAME=A..B"),
        (["alpha=v0..HEAD"], "'v0' is no revision"),
        (["alhpa=v1..HEAD"], "no data set is called 'alhpa'"),
        (["alpha=v1..HEAD", "--set", "ofset=1"], "no key ofset"),
    ],
)
def test_errors(
    reruns: Reruns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    expected: str,
) -> None:
    from flows.__main__ import main

    monkeypatch.chdir(reruns.root)
    monkeypatch.setenv("COLUMNS", "10000")
    assert main(["backfill", "--data-revs", *words]) == 2
    assert expected in capsys.readouterr().err


def test_a_data_set_that_came_and_went(reruns: Reruns, capsys: pytest.CaptureFixture[str]) -> None:
    reruns.edit("\nland:", "  delta:\n    version: 1\n\nland:")
    reruns.commit("delta comes", run="no")
    reruns.git("revert", "--no-edit", "HEAD")
    done = reruns.call("backfill", "--json", "--dry-run", "--data-revs", "delta=HEAD~2..HEAD")
    assert [version["outcome"] for version in json.loads(done.out)["versions"]] == ["to do", "absent"]
    empty = reruns.call("backfill", "--data-revs", "alpha=HEAD~1..HEAD")
    assert (empty.code, empty.out) == (0, "alpha: no version in this range; its pointer did not change.\n")
