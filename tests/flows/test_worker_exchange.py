"""What passes through a DVC remote by this module, held against DVC's own command line; and checkouts for stages."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.checkout import FOLDER, CheckoutError, checked_out
from flows.exchange import ExchangeError, pull_outs, pull_run, push_run, require_remote
from flows.workspace import opened
from tests.flows.conftest import Project

# DVC's own use of pygtrie.
pytestmark = pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def pair(
    make_project: Callable[[str], Project], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Project, Project]:
    """A project of two stages whose remote is a folder beside it, and a clone with an empty cache."""
    here = make_project("here")
    here.file("x", "1\n")
    here.file(".gitignore", "/*.txt\n/d\n")
    here.graph(
        first={"cmd": "mkdir -p d && cp x d/a && cp x first.txt", "deps": ["x"], "outs": ["d", "first.txt"]},
        second={"cmd": "cat d/a first.txt > second.txt", "deps": ["d/a", "first.txt"], "outs": ["second.txt"]},
    )
    here.dvc("remote", "add", "--default", "store", "../remote")
    git(here.root, "add", "--all")
    git(here.root, "commit", "-q", "-m", "graph")
    there = Project(tmp_path / "there", here.forks, here.environment)
    git(tmp_path, "clone", "-q", str(here.root), str(there.root))
    # DVC takes stages' names for those of the working folder.
    monkeypatch.chdir(there.root)
    return here, there


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_pushed_is_what_dvc_pushes(pair: tuple[Project, Project], tmp_path: Path) -> None:
    here, _ = pair
    here.dvc("repro")
    with opened(here.root) as workspace:
        for name in workspace.upstream:
            push_run(workspace, name)
    ours = tree(tmp_path / "remote")
    shutil.rmtree(tmp_path / "remote")
    here.dvc("push", "--run-cache")
    assert ours == tree(tmp_path / "remote")


def test_a_clone_takes_inputs_and_a_result_that_dvc_pushed(pair: tuple[Project, Project]) -> None:
    here, there = pair
    here.dvc("repro")
    here.dvc("push", "--run-cache")
    shutil.copy(here.root / "dvc.lock", there.root)
    with opened(there.root, ["second"], alone=True) as workspace:
        pull_outs(workspace, ["first"])
        assert there.read("d/a") == there.read("first.txt") == "1\n"
        assert pull_run(workspace, "second")
        assert workspace.restore("second", pull=True)
    assert there.read("second.txt") == "1\n1\n"
    assert "Running stage" not in there.dvc("repro").stdout
    there.assert_clean()


def test_what_the_remote_lacks_is_said(pair: tuple[Project, Project]) -> None:
    here, there = pair
    here.dvc("repro")
    shutil.copy(here.root / "dvc.lock", there.root)
    lacks = pytest.raises(ExchangeError, match="stage first: its outs are not all in the DVC remote; `dvc push first`")
    with opened(there.root, ["second"], alone=True) as workspace, lacks:
        pull_outs(workspace, ["first"])
    there.dvc("remote", "remove", "store")
    with opened(there.root) as workspace, pytest.raises(ExchangeError, match="no default DVC remote"):
        require_remote(workspace)


def test_a_checkout_shares_cache_and_remote_and_leaves_nothing(pair: tuple[Project, Project], tmp_path: Path) -> None:
    here, there = pair
    here.file("x", "2\n")
    git(here.root, "commit", "-q", "--all", "-m", "newer")
    commit = git(here.root, "rev-parse", "HEAD")
    there.dvc("config", "--local", "core.checksum_jobs", "1")
    with checked_out(there.root, commit) as one, checked_out(there.root, commit) as other:
        assert one != other
        assert (one / "x").read_text() == "2\n"
        with opened(one) as workspace:
            assert Path(workspace._repo.cache.local.path).is_relative_to(there.root / ".dvc" / "cache")
            # Relative to the clone, however deep the checkout lies.
            assert Path(workspace._repo.cloud.get_remote().odb.path).is_relative_to(tmp_path / "remote")
            assert workspace._repo.config["core"]["checksum_jobs"] == 1
    assert there.read("x") == "1\n"
    assert len(git(there.root, "worktree", "list").splitlines()) == 1
    assert sorted(path.name for path in (there.root / FOLDER).iterdir()) == ["0.lock", "1.lock"]


def test_a_checkout_that_a_kill_left_behind_is_replaced(pair: tuple[Project, Project]) -> None:
    _, there = pair
    commit = git(there.root, "rev-parse", "HEAD")
    (there.root / FOLDER).mkdir(parents=True)
    left = there.root / FOLDER / "0"
    git(there.root, "worktree", "add", "-q", "--detach", str(left), commit)
    (left / "half").touch()
    with checked_out(there.root, commit) as folder:
        assert folder == left
        assert not (folder / "half").exists()


def test_a_commit_that_nobody_pushed_is_named(pair: tuple[Project, Project]) -> None:
    _, there = pair
    missing = "0123456789" * 4
    named = pytest.raises(CheckoutError, match=f"commit {missing} is neither here nor in origin")
    with named, checked_out(there.root, missing):
        pass
