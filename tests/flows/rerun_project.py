"""A small repository with two versions of two sources, and reruns in it as a user would call them."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.flows.conftest import Finished, Project, Started

PARAMS = """\
# What the pipeline runs on.
offset: 0  # added to the score
sources:
  alpha:
    version: 1
    note: >-
      a text over
      two lines
  # beta comes from elsewhere
  beta:
    version: 1

land:
  # A tower of your own is two lines.
  sites:
    alpha: {path: raw/alpha, scale: 1}
    gamma:
      path: raw/beta
      scale: 5
  gate: {share: 0.2}
"""
FETCH = {
    "foreach": "${sources}",
    "do": {
        "cmd": "echo fetch-${key} >> $RUNS && mkdir -p raw && echo ${item.version} > raw/${key}",
        "params": ["sources.${key}"],
        "outs": ["raw/${key}"],
    },
}
SCORE = {
    "cmd": "echo score >> $RUNS && sh score.sh > metrics.json",
    "deps": ["raw/alpha", "raw/beta", "score.sh"],
    "params": ["offset", "land.sites"],
    "metrics": ["metrics.json"],
}
SCRIPT = """\
offset=$(sed -n 's/^offset: \\([0-9]*\\).*/\\1/p' params.yaml)
echo "{\\"score\\": $(( $(cat raw/alpha) * 10 + $(cat raw/beta) + offset ))}"
"""


@dataclass
class Reruns:
    """A project, and ``python -m flows rerun`` and ``backfill`` in it."""

    project: Project
    runs: Path

    @property
    def root(self) -> Path:
        return self.project.root

    def git(self, *words: str) -> str:
        found = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=False)
        assert not found.returncode, found.stderr
        return found.stdout.strip()

    def commit(self, subject: str, **edits: str) -> str:
        """Repeat the graph with `dvc repro`, unless it is broken off by ``run=no``; commit all; return the commit."""
        if edits.pop("run", "") != "no":
            self.project.dvc("repro", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", subject)
        self.executed()
        return self.git("rev-parse", "HEAD")

    def edit(self, old: str, new: str) -> None:
        text = self.project.read("params.yaml")
        assert text.count(old) >= 1
        self.project.file("params.yaml", text.replace(old, new))

    def executed(self) -> list[str]:
        """Commands of stages that ran since this was last asked."""
        found = self.runs.read_text().split() if self.runs.exists() else []
        self.runs.write_text("")
        return sorted(found)

    def start(self, verb: str, *words: str, **environment: str) -> Started:
        variables = {**self.project.environment, "RUNS": str(self.runs), **environment}
        return self.project.forks.start(self.root, (verb, *words), variables)

    def call(self, verb: str, *words: str, **environment: str) -> Finished:
        return self.start(verb, *words, **environment).wait()

    def rerun(self, *words: str) -> dict[str, Any]:
        """A rerun that succeeds, as JSON."""
        done = self.call("rerun", "--json", *words)
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads(done.out)
        return found

    def untouched(self) -> None:
        """No worktree stays, beside the main workspace or in git's books, and the workspace is clean."""
        assert self.git("worktree", "list", "--porcelain").count("worktree ") == 1
        assert [path.name for path in self.root.parent.glob(".*rerun*")] == []
        assert self.git("status", "--porcelain") == ""

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads/rerun").split()


def build(project: Project, tmp_path: Path) -> Reruns:
    """Two commits: alpha and beta at 1, score 11; then both at 2, score 22."""
    reruns = Reruns(project, tmp_path / "runs")
    os.environ["RUNS"] = str(reruns.runs)
    project.file("params.yaml", PARAMS)
    project.file("score.sh", SCRIPT)
    project.file(".gitignore", "/raw\n/metrics.json\n")
    project.file("dvc.yaml", json.dumps({"stages": {"fetch": FETCH, "score": SCORE}}))
    reruns.git("symbolic-ref", "HEAD", "refs/heads/main")
    reruns.commit("first")
    reruns.edit("version: 1", "version: 2")
    reruns.commit("second")
    return reruns
