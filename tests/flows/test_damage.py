"""What the disk does to a run: objects of the cache that are gone or rotten, no room left, clocks that jump."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.flows.conftest import Project


def build(project: Project) -> None:
    project.graph(
        one={"cmd": "echo >> runs; cp x one.txt", "deps": ["x"], "outs": ["one.txt"]},
        many={"cmd": "mkdir d; cp x d/a; echo b > d/b", "deps": ["x"], "outs": ["d"]},
        last={"cmd": "cat one.txt d/b > last.txt", "deps": ["one.txt", "d"], "outs": ["last.txt"]},
    )
    project.file("x", "content of x\n")
    assert project.repro().code == 0


def cached(project: Project, stage: str) -> Path:
    """The cache object of a stage's out."""
    (out,) = yaml.safe_load(project.read("dvc.lock"))["stages"][stage]["outs"]
    return object_of(project, out["md5"])


def object_of(project: Project, digest: str) -> Path:
    return project.root / ".dvc/cache/files/md5" / digest[:2] / digest[2:]


def rot(path: Path) -> None:
    path.chmod(0o644)
    path.write_text("rotten\n")
    path.chmod(0o444)


def test_rotten_objects_are_found_named_and_computed_again(project: Project) -> None:
    """DVC trusts an object by its name and would hand the rotten bytes to the next stage."""
    build(project)
    rot(cached(project, "one"))
    (project.root / "one.txt").unlink()
    tree = cached(project, "many")
    inside = json.loads(tree.read_text())[1]["md5"]
    rot(object_of(project, inside))
    for path in (project.root / "d").iterdir():
        path.unlink()
    (project.root / "d").rmdir()
    run = project.repro()
    assert run.code == 0, run.err
    assert run.outcomes == {"one": "ran", "many": "ran", "last": "up to date"}
    assert run.why("one")[-1][:2] == ("out", "one.txt")
    assert str(run.why("one")[-1][3]).startswith("corrupt in cache")
    assert run.why("many")[-1][:2] == ("out", "d")
    assert project.read("one.txt") == "content of x\n"
    assert cached(project, "one").read_text() == "content of x\n"
    assert object_of(project, inside).read_text() == "b\n"
    project.assert_clean()


@pytest.mark.parametrize("whole", [True, False])
def test_a_rotten_list_of_a_folder(project: Project, whole: bool) -> None:
    build(project)
    tree = cached(project, "many")
    if whole:
        rot(tree)
    else:
        tree.unlink()
    for path in (project.root / "d").iterdir():
        path.unlink()
    run = project.repro()
    assert run.code == 0, run.err
    assert run.outcomes["many"] == "ran"
    assert whole == str(run.why("many")[-1][3]).startswith("corrupt in cache")
    project.assert_clean()
    (project.root / "last.txt").unlink()
    assert project.repro().outcomes["last"] == "restored from cache"


def test_missing_objects(project: Project) -> None:
    """One whose out still lies in the workspace is put back; one that is nowhere is computed again. Both are named."""
    build(project)
    cached(project, "one").unlink()
    cached(project, "last").unlink()
    (project.root / "last.txt").unlink()
    run = project.repro()
    assert run.outcomes == {"one": "restored from cache", "many": "up to date", "last": "ran"}
    assert run.why("one")[0][3] == "not in cache"
    assert run.why("last")[0][3] == "not in cache"
    assert project.read("runs") == "\n"
    assert cached(project, "one").read_text() == "content of x\n"
    project.assert_clean()


def test_no_room_for_the_stage(project: Project) -> None:
    project.graph(
        small={"cmd": "cp x small.txt", "deps": ["x"], "outs": ["small.txt"]},
        big={"cmd": "cat small.txt > /dev/full && cp x big.txt", "deps": ["small.txt"], "outs": ["big.txt"]},
    )
    project.file("x", "1")
    run = project.repro()
    assert run.outcomes == {"small": "ran", "big": "failed"}
    assert "No space left on device" in run.stages["big"]["detail"]
    assert list(yaml.safe_load(project.read("dvc.lock"))["stages"]) == ["small"]


def test_no_room_for_the_coordinator(project: Project) -> None:
    """The cache lies where nothing can be written: the stage has failed, and says why; the books stay valid."""
    project.graph(
        first={"cmd": "cp x first.txt", "deps": ["x"], "outs": ["first.txt"]},
        big={"cmd": "head -c 20000000 /dev/zero > big.bin", "deps": ["first.txt"], "outs": ["big.bin"]},
    )
    project.file("x", "1")
    # The limit of a file's size holds for the coordinator; its stage lifts its own.
    graph = project.read("dvc.yaml").replace("head -c", "ulimit -f unlimited; head -c")
    project.file("dvc.yaml", graph)
    run = project.repro("--jobs", "1", FLOWS_TEST_FILE_LIMIT="4000000")
    assert run.code == 1, run.err
    assert run.outcomes == {"first": "ran", "big": "failed"}
    assert "is the disk full?" in run.stages["big"]["detail"]
    assert list(yaml.safe_load(project.read("dvc.lock"))["stages"]) == ["first"]
    assert project.repro().outcomes == {"first": "up to date", "big": "ran"}
    project.assert_clean()


def test_no_room_at_all(project: Project) -> None:
    build(project)
    before = project.read("dvc.lock")
    project.file("x", "other\n")
    run = project.repro(FLOWS_TEST_FILE_LIMIT="10")
    assert run.code == 1
    assert "Traceback" not in run.err
    assert "error: " in run.err
    assert project.read("dvc.lock") == before


@pytest.mark.parametrize("year", [1975, 2090])
def test_clocks(project: Project, year: int) -> None:
    """Nothing runs because of a time alone, and a changed content is seen whatever its time says."""
    build(project)
    seconds = (year - 1970) * 365 * 86400
    for path in [*project.root.glob("*.txt"), project.root / "x", project.root / "dvc.yaml", project.root / "d/a"]:
        os.utime(path, (seconds, seconds))
    assert set(project.repro().outcomes.values()) == {"up to date"}
    os.utime(project.file("x", "changed of x\n"), (seconds - 1, seconds - 1))
    assert set(project.repro().outcomes.values()) == {"ran"}
    project.assert_clean()
