"""`python -m flows repro --pull` in a fresh clone, over a folder and over SSH."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows.remotes import folder_settings, set_remote, ssh_settings
from flows.transfer import push
from tests.flows.conftest import Finished, ForkServer, Project
from tests.flows.remote_repositories import Repository, build, copied
from tests.flows.remote_services import SSHD, SshServer

Run = Callable[[Repository], Finished]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return build(tmp_path_factory.mktemp("original") / "root")


@pytest.fixture
def repository(original: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository whose results lie in the folder ``store`` beside it."""
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    repository = copied(original, tmp_path)
    set_remote(repository.root, folder_settings(str(tmp_path / "store")))
    repository.command("git", "commit", "-qam", "remote")
    push(repository.root)
    return repository


@pytest.fixture
def repro(fork_server: ForkServer, tmp_path: Path) -> Run:
    """Run ``repro --pull`` in a clone to its end."""

    def run(clone: Repository) -> Finished:
        variables = {
            "RUNS": str(clone.runs),
            "DVC_SITE_CACHE_DIR": str(tmp_path / "site"),
            "BRAID_LEASES": str(tmp_path / "leases"),
        }
        return Project(clone.root, fork_server, variables).repro("--pull")

    return run


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[SshServer]:
    server = SshServer(tmp_path / "ssh")
    server.start()
    yield server
    server.stop()


def object_of(store: Path, content: bytes) -> Path:
    [found] = [file for file in (store / "files").rglob("*") if file.is_file() and file.read_bytes() == content]
    return found


def test_a_clone_restores_everything_and_runs_no_command(repository: Repository, repro: Run) -> None:
    clone = repository.clone("clone")
    found = repro(clone)
    assert found.code == 0, found.err
    assert set(found.outcomes.values()) == {"restored from cache"}
    assert clone.ran() == []
    assert clone.contents() == repository.contents()
    clone.assert_valid()


def test_the_run_cache_of_the_remote_serves_a_clone_without_dvc_lock(repository: Repository, repro: Run) -> None:
    clone = repository.clone("clone")
    (clone.root / "dvc.lock").unlink()
    found = repro(clone)
    assert set(found.outcomes.values()) == {"restored from cache"}
    assert clone.ran() == []
    clone.assert_valid()


def test_an_object_that_the_remote_has_lost_is_made_again_and_named(repository: Repository, repro: Run) -> None:
    lost = object_of(repository.root.parent / "store", b"\x07" * 30000)
    lost.unlink()
    clone = repository.clone("clone")
    found = repro(clone)
    assert found.outcomes == {"make": "ran", "count": "restored from cache"}
    assert clone.ran() == ["make"]
    assert clone.contents() == repository.contents()
    assert any("readings" in name for _, name, _, _ in found.why("make"))
    clone.assert_valid()


def test_a_damaged_object_of_the_remote_is_made_again_and_named(repository: Repository, repro: Run) -> None:
    damaged = object_of(repository.root.parent / "store", b"\x07" * 30000)
    damaged.chmod(0o644)
    damaged.write_bytes(b"\x08" * 30000)
    clone = repository.clone("clone")
    found = repro(clone)
    assert found.outcomes == {"make": "ran", "count": "restored from cache"}
    assert clone.contents() == repository.contents()
    assert any("readings" in name for _, name, _, _ in found.why("make"))
    clone.assert_valid()


def test_a_remote_that_is_not_there_is_named_before_anything_runs(repository: Repository, repro: Run) -> None:
    store = repository.root.parent / "store"
    store.rename(store.with_name("away"))
    store.touch()
    clone = repository.clone("clone")
    found = repro(clone)
    assert found.code != 0
    assert "a file lies where a folder should" in found.out + found.err
    assert clone.ran() == []


@pytest.mark.services
@pytest.mark.skipif(SSHD is None, reason="no sshd here (Debian's package openssh-server)")
def test_over_ssh_a_clone_runs_no_command(repository: Repository, sshd: SshServer, repro: Run) -> None:
    address = f"{sshd.user}@127.0.0.1:{repository.root.parent / 'store'}"
    clone = repository.clone("clone")
    set_remote(clone.root, ssh_settings(address, sshd.port, str(sshd.key)), here_only=True)
    found = repro(clone)
    assert set(found.outcomes.values()) == {"restored from cache"}, found.err
    assert clone.ran() == []
    assert clone.contents() == repository.contents()
