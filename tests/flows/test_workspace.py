"""The contract with DVC: after ``python -m flows repro`` everything is as ``dvc repro`` would have left it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT, Project

GRAPH = """
stages:
  each:
    foreach: [one, two]
    do:
      cmd: mkdir -p d/${item} && cp src.txt d/${item}/x
      deps: [src.txt]
      outs: ['d/${item}']
  folder: {cmd: ls d > listed.txt, deps: [d], outs: [listed.txt]}
  nested:
    cmd: "echo '{\\"loss\\": 0.5}' > metrics.json; cp src.txt plot.csv"
    deps: [listed.txt]
    params: [model.depth, 'list', {other.json: [a.b]}]
    metrics: [metrics.json]
    plots: [plot.csv]
  whole: {cmd: cp other.json copy.json, params: [{other.json: }], outs: [copy.json]}
  lines: {cmd: "echo 1 > l.txt\\necho 2 >> l.txt", deps: [src.txt], outs: [l.txt]}
  listed: {cmd: ["echo a > c.txt", "echo b >> c.txt"], deps: [src.txt], outs: [c.txt]}
  elsewhere: {cmd: cp ../../src.txt w.txt, wdir: sub/w, deps: [../../src.txt], outs: [w.txt]}
  still: {cmd: "true", deps: [src.txt], outs: [still.txt], frozen: true}
  always: {cmd: date > now.txt; echo 1 > now.txt, deps: [src.txt], outs: [now.txt], always_changed: true}
  kept: {cmd: echo 1 > kept.txt, deps: [src.txt], outs: [{kept.txt: {persist: true}}]}
  uncached: {cmd: cp src.txt u.txt, deps: [src.txt], outs: [{u.txt: {cache: false}}]}
  uncached-metric: {cmd: cp metrics.json m2.json, deps: [metrics.json], metrics: [{m2.json: {cache: false}}]}
  tracked: {cmd: cp data.bin from_data, deps: [data.bin], outs: [from_data]}
  outside: {cmd: cp OUTSIDE from_outside, deps: [OUTSIDE], outs: [from_outside]}
  no-out: {cmd: test -f src.txt, deps: [src.txt]}
  callback: {cmd: "true"}
"""
SUB = """
stages:
  inner: {cmd: cat ../l.txt > inner.txt, deps: [../l.txt], params: [p], outs: [inner.txt]}
  last: {cmd: cp inner.txt last.txt; echo $DVC_STAGE > stage.txt, deps: [inner.txt], outs: [last.txt, stage.txt]}
"""


def build(project: Project, outside: Path) -> None:
    project.file("dvc.yaml", GRAPH.replace("OUTSIDE", str(outside)))
    project.file("sub/dvc.yaml", SUB)
    project.file("sub/params.yaml", "p: 1\n")
    project.file("sub/w/.keep", "")
    project.file("src.txt", "hello\n")
    project.file("still.txt", "as it is\n")
    project.file("params.yaml", "model: {depth: 3, width: [1, 2]}\nlist: [1, {a: null}]\n")
    project.file("other.json", '{"a": {"b": 1e-7}, "c": true}')
    project.file("data.bin", "tracked\n")
    project.dvc("add", "data.bin")
    outside.write_text("from outside\n")


def books(project: Project) -> dict[str, str]:
    """dvc.lock and .dvc files, .gitignore files, names in the run-cache and the cache, and the outs."""
    found = {}
    for path in sorted(project.root.rglob("*")):
        name = path.relative_to(project.root).as_posix()
        if path.is_file() and not name.startswith((".git/", ".dvc/")):
            found[name] = path.read_text()
    for path in sorted((project.root / ".dvc/cache").rglob("*")):
        if path.is_file():
            found[path.relative_to(project.root).as_posix()] = path.read_text()
    return found


def both(ours: Project, theirs: Project, change: Callable[[Project], object]) -> None:
    """Make a change in the two and bring both up to date; the books must be equal, byte for byte."""
    change(ours)
    change(theirs)
    theirs.dvc("repro", "-P")
    run = ours.repro("--jobs", "3")
    assert run.code == 0, run.out + run.err
    assert books(ours) == books(theirs)


def test_books_equal_those_of_the_command_line(make_project: Callable[[str], Project], tmp_path: Path) -> None:
    ours, theirs = make_project("ours"), make_project("theirs")
    outside = tmp_path / "outside.txt"
    both(ours, theirs, lambda project: build(project, outside))
    # What always runs is all that is not clean, and is so for both.
    assert ours.dvc("status").stdout == theirs.dvc("status").stdout

    def change(project: Project) -> None:
        project.file("src.txt", "changed\n")
        project.file("params.yaml", "model: {depth: 4}\nlist: []\n")
        project.file("data.bin", "other data\n")  # the .dvc file follows
        project.file("dvc.yaml", project.read("dvc.yaml").replace("echo a", "echo A"))

    both(ours, theirs, change)

    def damage(project: Project) -> None:
        project.file("src.txt", "hello\n")  # back: from the run-cache
        (project.root / "c.txt").unlink()
        project.file("d/one/x", "edited by hand\n")
        (project.root / "from_data").chmod(0o644)
        project.file("from_data", "edited by hand\n")

    both(ours, theirs, damage)
    run = ours.repro()
    assert {name for name, outcome in run.outcomes.items() if outcome != "up to date"} == {"always", "callback"}


def test_the_command_itself(project: Project, prefect_server: dict[str, str]) -> None:
    """The other tests fork a process with its imports done; this one is what a user types."""
    project.graph(a={"cmd": "cp x y", "deps": ["x"], "outs": ["y"]})
    project.file("x", "1")
    command = [sys.executable, "-m", "flows", "repro"]
    environment = {**os.environ, **prefect_server, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=True)

    head, row, counts = run().stdout.splitlines()
    assert head.split() == ["stage", "outcome", "why", "seconds", "device"]
    assert row.split()[:5] == ["a", "ran", "never", "run", "here"]
    assert counts == "1 ran"
    second = run()
    assert "1 up to date" in second.stdout
    assert not second.stderr  # neither Prefect nor DVC has anything to say
    project.assert_clean()


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_same_lock_file_whichever_stage_ends_first(project: Project, jobs: str) -> None:
    project.graph(
        a={"cmd": "head -1 wait; echo > a", "deps": ["x"], "outs": ["a"]}
        if jobs == "4"
        else {"cmd": "echo > a", "deps": ["x"], "outs": ["a"]},
        b={"cmd": "echo > b; echo > wait" if jobs == "4" else "echo > b", "deps": ["x"], "outs": ["b"]},
    )
    project.file("x", "1")
    project.fifo("wait")
    assert project.repro("--jobs", jobs).code == 0
    text = project.read("dvc.lock")
    assert text.index("\n  a:") < text.index("\n  b:")
    # A .gitignore may lie in a folder that is a dep: its bytes are part of that dep's hash.
    assert project.read(".gitignore").splitlines()[-2:] == ["/a", "/b"]
