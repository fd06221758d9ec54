"""The look that `on-data-change` takes: equal until something moves, and then it says what."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from flows.watch import look
from tests.flows.conftest import Project

# DVC's own use of pygtrie.
pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def watched(project: Project, tmp_path: Path) -> Project:
    """A project with data of its own, data outside the repository, and a remote."""
    (tmp_path / "tower.csv").write_text("1\n")
    project.file("own.csv", "1\n")
    project.graph(
        copy={"cmd": "cat ../tower.csv own.csv > all.txt", "deps": ["../tower.csv", "own.csv"], "outs": ["all.txt"]}
    )
    project.dvc("add", "own.csv")
    project.dvc("remote", "add", "--default", "store", str(tmp_path / "remote"))
    project.dvc("repro")
    project.dvc("push")
    git(project.root, "add", "--all")
    git(project.root, "commit", "-q", "-m", "first")
    return project


def moved(project: Project, before: dict[str, str]) -> set[str]:
    now = look(project.root)
    return {what for what in now if now[what] != before[what]}


def test_nothing_moves_by_looking(watched: Project) -> None:
    assert moved(watched, look(watched.root)) == set()


def test_a_commit_moves_head(watched: Project) -> None:
    before = look(watched.root)
    git(watched.root, "commit", "-q", "--allow-empty", "-m", "second")
    assert moved(watched, before) == {"HEAD"}


def test_data_outside_the_repository_moves_the_stages(watched: Project, tmp_path: Path) -> None:
    before = look(watched.root)
    (tmp_path / "tower.csv").write_text("2\n")
    assert moved(watched, before) == {"stages"}
    # Another change of what is changed already moves it again.
    before = look(watched.root)
    (tmp_path / "tower.csv").write_text("3\n")
    assert moved(watched, before) == {"stages"}


def test_a_new_version_of_a_data_set_moves_its_pointer(watched: Project) -> None:
    before = look(watched.root)
    watched.file("own.csv", "2\n")
    watched.dvc("add", "own.csv")
    assert {"pointers", "stages"} <= moved(watched, before)


def test_an_object_lost_from_the_remote_moves_it(watched: Project, tmp_path: Path) -> None:
    before = look(watched.root)
    for path in (tmp_path / "remote").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.unlink()
    assert moved(watched, before) == {"remote"}
