"""Remotes: what is written where, what is shown, and a folder as the remote."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from dvc.repo import Repo

from flows.remote_errors import in_words
from flows.remotes import (
    RemoteError,
    RemoteFailed,
    check,
    folder_settings,
    require_readable,
    s3_settings,
    set_remote,
    shown,
    ssh_settings,
)
from flows.transfer import pull, push
from tests.flows.remote_repositories import FILES, Repository, build, copied

#: Puts a file in the place of the folder STORE when DVC touches the tenth file in it: unreadable, for root too.
VANISHING = """
import os, sys
store, left, gone = os.environ["STORE"], [10], [False]
def watch(event, arguments):
    if gone[0] or event not in ("open", "os.rename", "os.link", "shutil.copyfile", "os.mkdir"):
        return
    if any(isinstance(one, str) and one.startswith(store + "/") for one in arguments):
        left[0] -= 1
        if not left[0]:
            gone[0] = True
            os.rename(store, store + ".away")
            open(store, "w").close()
sys.addaudithook(watch)
from flows.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return build(tmp_path_factory.mktemp("original") / "root")


@pytest.fixture
def repository(original: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    return copied(original, tmp_path)


@pytest.fixture
def store(repository: Repository) -> Path:
    """A folder that is the remote of the repository."""
    folder = repository.root.parent / "store"
    set_remote(repository.root, folder_settings(str(folder)))
    repository.command("git", "commit", "-qam", "remote")
    return folder


def objects(store: Path) -> list[Path]:
    return sorted(file for file in (store / "files").rglob("*") if file.is_file())


def object_of(store: Path, content: bytes) -> Path:
    [found] = [file for file in objects(store) if file.read_bytes() == content]
    return found


# --- what is written where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "port", "url", "found"),
    [
        ("ada@host:/srv/store", None, "ssh://ada@host/srv/store", None),
        ("host:/srv", 2222, "ssh://host/srv", "2222"),
        ("ssh://ada@host:2200/srv", None, "ssh://ada@host/srv", "2200"),
        ("ada@[::1]:/srv", None, "ssh://ada@[::1]/srv", None),
    ],
)
def test_an_ssh_address_is_read_as_scp_and_as_url(where: str, port: int | None, url: str, found: str | None) -> None:
    settings = ssh_settings(where, port)
    assert (settings.url, settings.shared.get("port")) == (url, found)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ada@host", "expected user@host:/absolute/path"),
        ("ada@host:store", "expected user@host:/absolute/path"),
        ("ada:hunter2@host:/srv", "password or a secret key in the address; ssh-add your key"),
        ("ssh://ada:hunter2@host/srv", "password or a secret key in the address"),
    ],
)
def test_an_ssh_address_that_is_wrong_is_refused_without_repeating_a_password(address: str, words: str) -> None:
    with pytest.raises(RemoteError, match=re.escape(words)) as caught:
        ssh_settings(address)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "endpoint", "words"),
    [
        ("lab-data/braid", None, "expected s3://bucket/prefix"),
        ("s3://Lab_Data", None, "the bucket in lower case"),
        ("s3://127.0.0.1/x", None, "expected s3://bucket/prefix"),
        ("s3://AKIA:hunter2@lab-data", None, "put the keys into ~/.aws/credentials"),
        ("s3://lab-data", "https://ada:hunter2@host", "put the keys into ~/.aws/credentials"),
        ("s3://lab-data?secret=hunter2", None, "put the keys into ~/.aws/credentials"),
        ("s3://lab-data", "host:9000", "expected https://host"),
    ],
)
def test_an_s3_address_that_is_wrong_is_refused(url: str, endpoint: str | None, words: str) -> None:
    with pytest.raises(RemoteError, match=re.escape(words)) as caught:
        s3_settings(url, endpoint)
    assert "hunter2" not in str(caught.value)


def test_a_key_that_is_not_there_or_is_the_public_half_is_named(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="no such file"):
        ssh_settings("ada@host:/srv", key=str(tmp_path / "id"))
    (tmp_path / "id.pub").touch()
    with pytest.raises(RemoteError, match=f"name the private key, {tmp_path / 'id'}"):
        ssh_settings("ada@host:/srv", key=str(tmp_path / "id.pub"))


def test_the_shared_part_is_committed_and_the_own_part_is_not(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "id").touch()
    set_remote(repository.root, ssh_settings("ada@host:/srv", 2222, str(tmp_path / "id")))
    assert repository.command("git", "status", "--short").stdout == " M .dvc/config\n"
    committed, own = (repository.root / ".dvc" / name for name in ("config", "config.local"))
    assert "keyfile" not in committed.read_text()
    assert own.stat().st_mode & 0o777 == 0o600
    assert repository.dvc("remote", "list").stdout.split() == ["storage", "ssh://ada@host/srv", "(default)"]
    assert repository.dvc("config", "remote.storage.keyfile").stdout.strip() == str(tmp_path / "id")
    assert repository.dvc("config", "remote.storage.verify").stdout.strip() == "true"


def test_another_remote_of_the_same_name_replaces_all_of_the_first(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "id").touch()
    set_remote(repository.root, ssh_settings("ada@host:/srv", 2222, str(tmp_path / "id")))
    set_remote(repository.root, s3_settings("s3://lab-data/braid", "https://host:9000", "lab"))
    text = "".join((repository.root / ".dvc" / name).read_text() for name in ("config", "config.local"))
    assert "keyfile" not in text
    assert "2222" not in text
    assert "endpointurl = https://host:9000" in text


def test_a_local_remote_leaves_the_committed_file_alone_and_wins(repository: Repository, store: Path) -> None:
    before = (repository.root / ".dvc" / "config").read_bytes()
    set_remote(repository.root, s3_settings("s3://lab-data"), "mine", here_only=True)
    assert (repository.root / ".dvc" / "config").read_bytes() == before
    assert "mine (default)" in shown(repository.root)
    set_remote(repository.root, folder_settings(str(store)))
    assert "storage (default)" in shown(repository.root)


def test_other_settings_of_the_configuration_stay(repository: Repository, store: Path) -> None:
    config = repository.root / ".dvc" / "config"
    others = "[cache]\n    type = hardlink\n['remote \"other\"']\n    url = /srv/other\n"
    config.write_text(config.read_text() + others)
    set_remote(repository.root, s3_settings("s3://lab-data"))
    for line in others.splitlines():
        assert line in config.read_text().splitlines()
    assert config.read_text().startswith("[core]\n    remote = storage\n")


def test_show_prints_each_option_with_its_file_and_no_secret(repository: Repository) -> None:
    set_remote(repository.root, s3_settings("s3://lab-data/braid"))
    secrets = "".join(f"    {name} = hunter2\n" for name in ("access_key_id", "secret_access_key", "session_token"))
    (repository.root / ".dvc" / "config.local").write_text(f"['remote \"storage\"']\n{secrets}")
    printed = repository.flows("remote", "show").stdout
    assert "  url = s3://lab-data/braid  [.dvc/config]" in printed
    assert "  secret_access_key = (set, not shown)  [.dvc/config.local]" in printed
    assert "hunter2" not in printed


def test_no_remote_and_no_repository_say_what_to_do(repository: Repository, tmp_path: Path) -> None:
    assert shown(repository.root) == ["no remote is set: python -m flows remote folder|ssh|s3 ADDRESS"]
    found = repository.flows("remote", "check", check=False)
    assert (found.returncode, "no remote is set" in found.stderr) == (2, True)
    with pytest.raises(RemoteError, match="no remote 'other' is set"):
        check(repository.root, "other")
    with pytest.raises(RemoteError, match=r"no \.dvc folder"):
        shown(tmp_path)


# --- check -------------------------------------------------------------------------------------------------------


def test_the_command_sets_a_folder_and_check_leaves_nothing_in_it(repository: Repository, tmp_path: Path) -> None:
    printed = repository.flows("remote", "folder", str(tmp_path / "store")).stdout
    assert "written to .dvc/config; commit it" in printed
    assert "run-cache" in printed
    assert "written, read back and removed" in repository.flows("remote", "check").stdout
    assert list((tmp_path / "store").iterdir()) == []


def test_a_folder_on_a_disk_that_is_not_mounted_is_not_made(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="is the disk mounted"):
        folder_settings(str(tmp_path / "disk" / "store"))
    (tmp_path / "disk").mkdir()
    set_remote(repository.root, folder_settings(str(tmp_path / "disk" / "store")))
    (tmp_path / "disk").rmdir()
    with pytest.raises(RemoteFailed, match="Is the disk mounted"):
        check(repository.root)
    assert not (tmp_path / "disk").exists()


def test_a_file_in_the_place_of_the_folder_is_named(repository: Repository, store: Path) -> None:
    store.touch()
    with pytest.raises(RemoteFailed, match=f"a file lies where a folder should.*{store}"):
        check(repository.root)
    with pytest.raises(RemoteError, match="is a file"):
        folder_settings(str(store))


def test_a_full_disk_is_named(repository: Repository, store: Path) -> None:
    store.mkdir()
    mount = f"mount -t tmpfs -o size=64k none {store}"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small disk in a namespace of its own")
    script = f"{mount} && exec {sys.executable} -m flows remote check"
    found = repository.command("unshare", "-rm", "sh", "-c", script, check=False)
    assert found.returncode == 1
    assert "no space: the disk is full" in found.stderr


@pytest.mark.parametrize(
    ("error", "options", "words"),
    [
        (OSError(errno.EDQUOT, "x"), {"url": "/store"}, "no space: your quota"),
        (OSError(errno.EROFS, "x"), {"url": "/store"}, "mounted read-only"),
        (PermissionError(errno.EACCES, "x", "/store/a"), {"url": "/store"}, "no permission: /store/a"),
        (socket.gaierror(-2, "not known"), {"url": "ssh://ada@nowhere/srv"}, "the name nowhere is not known"),
        (OSError(errno.EHOSTUNREACH, "x"), {"url": "ssh://host/srv"}, "unreachable host: no way to host"),
        (TimeoutError(), {"url": "ssh://host/srv"}, "unreachable host: host does not answer"),
        (ValueError("new"), {"url": "/store"}, "ValueError: new"),
    ],
)
def test_errors_that_cannot_be_had_here_have_words_too(error: Exception, options: dict[str, str], words: str) -> None:
    assert words in in_words(error, options)


def test_a_remote_is_readable_before_the_first_push_and_not_when_it_is_a_file(
    repository: Repository, store: Path
) -> None:
    with Repo(str(repository.root)) as repo:
        require_readable(repo)
        store.touch()
        with pytest.raises(RemoteFailed, match="a file lies where a folder should"):
            require_readable(repo)


# --- a folder as the remote --------------------------------------------------------------------------------------


def test_a_clone_gets_files_and_run_cache_and_runs_nothing(repository: Repository, store: Path) -> None:
    assert push(repository.root) == f"{FILES + 2 + 2} objects pushed to storage"
    clone = repository.clone("clone")
    pull(clone.root)
    assert clone.contents() == repository.contents()
    assert clone.cached() == repository.cached()
    (clone.root / "dvc.lock").unlink()
    clone.dvc("repro")
    assert clone.ran() == []


def test_dvc_commands_do_the_same(repository: Repository, store: Path) -> None:
    repository.dvc("push", "--run-cache")
    clone = repository.clone("clone")
    clone.dvc("pull", "--run-cache")
    assert clone.cached() == repository.cached()
    assert push(repository.root) == "2 objects pushed to storage"  # the run-cache's entries, which DVC sends each time


@pytest.mark.parametrize("verb", ["push", "pull"])
def test_a_folder_that_vanishes_half_way_costs_nothing(repository: Repository, store: Path, verb: str) -> None:
    there = repository
    if verb == "pull":
        push(repository.root)
        there = repository.clone("clone")
    environment = os.environ | {"STORE": str(store), "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "1000"}
    words = [sys.executable, "-c", VANISHING, "remote", verb]
    found = subprocess.run(words, cwd=there.root, env=environment, capture_output=True, text=True, check=False)
    assert (store.is_file(), found.returncode) == (True, 1), found.stderr
    assert "a file lies where a folder should" in found.stderr
    assert "the same command goes on from there" in found.stderr
    assert "Traceback" not in found.stderr
    there.assert_valid()
    store.unlink()
    store.with_name("store.away").rename(store)
    (push if verb == "push" else pull)(there.root)
    if verb == "push":
        pull(repository.clone("clone").root)
    assert there.contents() == repository.contents()


def test_a_damaged_object_is_named_not_taken_and_can_be_replaced(repository: Repository, store: Path) -> None:
    push(repository.root)
    damaged = object_of(store, b"\x07" * 30000)
    damaged.chmod(0o644)
    damaged.write_bytes(b"\x08" * 30000)
    clone = repository.clone("clone")
    with pytest.raises(RemoteFailed, match=rf"{damaged.parent.name}{damaged.name} \(readings/7\)"):
        pull(clone.root)
    clone.assert_valid()
    assert "count.txt" in clone.contents()
    assert push(repository.root).startswith("2 objects")  # DVC takes it for present
    assert push(repository.root, replace=True).endswith(f"put anew: {damaged.parent.name}{damaged.name} (readings/7)")
    pull(clone.root)
    assert clone.contents() == repository.contents()


def test_a_missing_object_is_named_and_can_be_replaced(repository: Repository, store: Path) -> None:
    push(repository.root)
    missing = object_of(store, b"\x07" * 30000)
    missing.unlink()
    clone = repository.clone("clone")
    with pytest.raises(
        RemoteFailed, match=rf"missing in the remote: {missing.parent.name}{missing.name} \(readings/7\)"
    ):
        pull(clone.root)
    push(repository.root, replace=True)
    pull(clone.root)
    assert clone.contents() == repository.contents()


def test_a_remote_that_was_emptied_is_filled_again(repository: Repository, store: Path) -> None:
    push(repository.root)
    shutil.rmtree(store)
    push(repository.root)
    assert len(objects(store)) == FILES + 2
