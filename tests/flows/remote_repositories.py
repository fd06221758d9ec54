"""A small repository whose stages note each time they run, and clones of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dvc.repo import Repo

ROOT = Path(__file__).parents[2]
FILES = 8
MAKE = f"""\
import os, pathlib
with open(os.environ["RUNS"], "a") as log: log.write("make\\n")
folder = pathlib.Path("readings"); folder.mkdir()
for number in range({FILES}): (folder / str(number)).write_bytes(bytes([number]) * 30000)
"""
GRAPH = """\
stages:
  make:
    cmd: python make.py
    deps: [make.py]
    outs: [readings]
  count:
    cmd: echo count >> "$RUNS"; ls readings | wc -l > count.txt
    deps: [readings]
    outs: [count.txt]
"""


@dataclass(frozen=True)
class Repository:
    """A checkout; ``runs`` is the file in which its stages note that they ran."""

    root: Path
    runs: Path

    def command(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        variables = os.environ | {"RUNS": str(self.runs), "PYTHONPATH": str(ROOT), "COLUMNS": "1000"}
        found = subprocess.run(words, cwd=self.root, env=variables, capture_output=True, text=True, check=False)
        assert not (check and found.returncode), found.stdout + found.stderr
        return found

    def dvc(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.command(sys.executable, "-m", "dvc", *words, check=check)

    def flows(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.command(sys.executable, "-m", "flows", *words, check=check)

    def clone(self, name: str) -> Repository:
        """What a colleague gets: nothing but what git has."""
        root = self.root.parent / name
        self.command("git", "clone", "--quiet", str(self.root), str(root))
        return Repository(root, self.runs.with_name(f"{name}-runs"))

    def ran(self) -> list[str]:
        return self.runs.read_text().split() if self.runs.exists() else []

    def contents(self) -> dict[str, bytes]:
        files = [*self.root.joinpath("readings").glob("*"), *self.root.glob("count.txt")]
        return {file.relative_to(self.root).as_posix(): file.read_bytes() for file in files}

    def cached(self) -> dict[str, bytes]:
        folder = self.root / ".dvc" / "cache"
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    def assert_valid(self) -> None:
        """Every object in the cache is what its name says, and git sees no change of dvc.lock."""
        import hashlib

        for name, content in self.cached().items():
            if name.startswith("files/md5/") and not name.endswith(".tmp"):
                oid = name.removeprefix("files/md5/").replace("/", "").removesuffix(".dir")
                assert hashlib.md5(content, usedforsecurity=False).hexdigest() == oid
        assert "dvc.lock" not in self.command("git", "status", "--short").stdout


def build(root: Path) -> Repository:
    root.mkdir()
    repository = Repository(root, root.with_name("runs"))
    repository.command("git", "init", "-q")
    Repo.init(str(root)).close()
    (root / "make.py").write_text(MAKE)
    (root / "dvc.yaml").write_text(GRAPH)
    repository.dvc("repro", "-q")
    repository.command("git", "add", ".")
    repository.command("git", "commit", "-qm", "readings")
    return repository


def copied(original: Repository, folder: Path) -> Repository:
    shutil.copytree(original.root, folder / "origin", symlinks=True)
    shutil.copy(original.runs, folder / "origin-runs")
    return Repository(folder / "origin", folder / "origin-runs")
