"""docs/results.md: what the evaluations hold, section by section."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stages import artifacts
from stages.commands import results
from stages.errors import DataError, UsageError
from stages.metrics.summary import Claim, Headline, Plot, Summary, Table, write_summary

HEAD = Headline(
    metric="accuracy",
    unit="1",
    value=0.5123,
    low=0.42,
    high=0.61,
    baseline="ERM",
    baseline_value=0.53,
    records=150,
    groups=10,
    split_unit="subject",
    seeds=3,
    simulated=True,
)


def summary(system: str, value: float = 0.5123) -> Summary:
    table = Table(
        title="Methods", caption="At one budget.", columns=["method", "a|b"], rows=[["ERM", 0.25], ["mixup", None]]
    )
    shown = Plot(file="curve.svg", title="Curve", caption="It rises.", on_results_page=True)
    return Summary(
        system=system,
        title=system.title(),
        domain="eeg",
        headline=HEAD.model_copy(update={"value": value}),
        claims=[Claim(claim="It wins", verdict="not shown", evidence="-.02 [-.04, .00]")],
        tables=[table],
        plots=[shown, Plot(file="other.svg", title="Other", caption="")],
        figures={},
        citations=[],
    )


@pytest.fixture
def evaluated(workspace: Path) -> Path:
    """A repository with two evaluated systems."""
    Path("params.yaml").write_text("profile: study\nseeds: [0, 1]\n")
    for words in (["init", "-q"], ["add", "params.yaml"], ["commit", "-qm", "start"]):
        subprocess.run(["git", *words], check=True)
    Path("docs").mkdir()
    for system in ("first", "second"):
        folder = artifacts.evaluation(system)
        (folder / "plots").mkdir(parents=True)
        (folder / "plots" / "curve.svg").write_text("<svg/>")
        write_summary(folder, summary(system))
    return workspace


def test_a_section_holds_the_figures_and_says_what_made_them(evaluated: Path) -> None:
    results.run([], write=False)
    page = results.PAGE.read_text()
    commit = results.git("rev-parse", "--short=10", "HEAD").strip()
    assert f"Commit {commit}; profile `study`; seeds 0, 1." in page
    assert "**accuracy: 0.512** (95 % interval 0.420 to 0.610; ERM: 0.530), simulated." in page
    assert "| It wins | not shown | -.02 [-.04, .00] |" in page
    assert "| method | a\\|b |\n|---|---|\n| ERM | 0.25 |\n| mixup | – |" in page
    assert "![Curve](results/first/curve.svg)" in page
    assert "other.svg" not in page
    assert Path("docs/results/first/curve.svg").is_file()


def test_one_system_is_written_and_the_others_stay(evaluated: Path) -> None:
    results.run([], write=False)
    before = results.read_sections(results.PAGE)
    write_summary(artifacts.evaluation("second"), summary("second", 0.9))
    write_summary(artifacts.evaluation("first"), summary("first", 0.9))
    results.run(["second"], write=False)
    after = results.read_sections(results.PAGE)
    assert list(after) == ["first", "second"]
    assert after["first"] == before["first"]
    assert "0.900" in after["second"]


def test_writing_twice_changes_nothing(evaluated: Path) -> None:
    results.run([], write=False)
    page = results.PAGE.read_bytes()
    results.run([], write=False)
    assert results.PAGE.read_bytes() == page


def test_changed_code_is_named(evaluated: Path) -> None:
    Path("code.py").write_text("a = 1\n")
    subprocess.run(["git", "add", "code.py"], check=True)
    results.run(["first"], write=False)
    assert "with uncommitted changes in code.py" in results.PAGE.read_text()


def test_a_setting_that_is_not_the_profiles_is_named(evaluated: Path) -> None:
    """A table at other seeds or sizes than its profile says must not pass for one at that profile."""
    Path("profiles").mkdir()
    Path("profiles/default.yaml").write_text("seeds: [0, 1]\nsize: 1\n")
    Path("profiles/study.yaml").write_text("seeds: [0, 1, 2]\nsize: 2\n")
    Path("params.yaml").write_text("profile: study\nseeds: [0, 1]\nsize: 2\n")
    results.run(["first"], write=False)
    assert "profile `study`, but `seeds=[0, 1]`; seeds 0, 1." in results.PAGE.read_text()
    Path("params.yaml").write_text("profile: study\nseeds: [0, 1, 2]\nsize: 2\n")
    results.run(["first"], write=False)
    assert "profile `study`; seeds 0, 1, 2." in results.PAGE.read_text()


def test_a_system_without_evaluation_is_refused(evaluated: Path) -> None:
    with pytest.raises(UsageError, match=r"no evaluation of third in data/evaluations.*There are: first, second"):
        results.run(["third"], write=False)


def test_a_plot_that_is_not_there_is_named(evaluated: Path) -> None:
    (artifacts.evaluation("first") / "plots" / "curve.svg").unlink()
    with pytest.raises(DataError, match=r"curve\.svg: found no such file.*Run `dvc repro evaluate-first`"):
        results.run(["first"], write=False)
