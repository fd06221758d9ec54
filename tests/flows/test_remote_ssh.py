"""A remote over SSH, on a real sshd on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dvc.repo import Repo

from flows.remotes import RemoteFailed, Settings, check, require_readable, set_remote, ssh_settings
from flows.transfer import pull, push
from tests.flows.remote_repositories import FILES, Repository, build, copied
from tests.flows.remote_services import SSHD, CuttingProxy, SshServer

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(SSHD is None, reason="no sshd here (Debian's package openssh-server)"),
]
#: Bytes after which the line is cut: some objects have passed, most have not.
HALF_WAY = FILES * 30000 // 3


@dataclass
class Place:
    """A repository whose remote lies behind a proxy behind an sshd."""

    repository: Repository
    server: SshServer
    proxy: CuttingProxy
    store: Path

    def settings(self, key: Path | None = None) -> Settings:
        return ssh_settings(f"{self.server.user}@127.0.0.1:{self.store}", self.proxy.port, str(key or self.server.key))

    def clone(self, name: str) -> Repository:
        clone = self.repository.clone(name)
        set_remote(clone.root, self.settings())
        return clone

    def cut_half_way(self) -> None:
        self.proxy.arm(HALF_WAY, self.server.stop)

    def mend(self) -> None:
        self.proxy.mend()
        self.server.start()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return build(tmp_path_factory.mktemp("original") / "root")


@pytest.fixture
def place(original: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    server = SshServer(tmp_path / "ssh")
    server.start()
    proxy = CuttingProxy(server.port)
    found = Place(copied(original, tmp_path), server, proxy, tmp_path / "store")
    set_remote(found.repository.root, found.settings())
    yield found
    server.stop()
    proxy.close()


def test_one_command_sets_it_and_dvc_pushes_and_pulls(place: Place) -> None:
    address = f"{place.server.user}@127.0.0.1:{place.store}"
    port = str(place.server.port)
    words = ["remote", "ssh", address, "--port", port, "--key", str(place.server.key)]
    assert "keyfile written to .dvc/config.local, which is not committed" in place.repository.flows(*words).stdout
    assert "written, read back and removed" in check(place.repository.root)
    assert list(place.store.iterdir()) == []
    place.repository.dvc("push", "--run-cache")
    clone = place.clone("clone")
    clone.dvc("pull", "--run-cache")
    assert clone.contents() == place.repository.contents()
    assert clone.cached() == place.repository.cached()


def test_a_key_the_server_does_not_know(place: Place) -> None:
    set_remote(place.repository.root, place.settings(place.server.stranger))
    with pytest.raises(RemoteFailed, match=f"wrong key: .* refuses the key {place.server.stranger}"):
        check(place.repository.root)


def test_a_key_with_a_passphrase_points_to_the_agent(place: Place) -> None:
    place.repository.command("ssh-keygen", "-q", "-p", "-N", "open sesame", "-f", str(place.server.stranger))
    set_remote(place.repository.root, place.settings(place.server.stranger))
    with pytest.raises(RemoteFailed, match=r"wrong key: .*ssh-add"):
        check(place.repository.root)


def test_a_server_that_does_not_run(place: Place) -> None:
    address = f"{place.server.user}@127.0.0.1:{place.store}"
    set_remote(place.repository.root, ssh_settings(address, place.server.port, str(place.server.key)))
    place.server.stop()
    with pytest.raises(RemoteFailed, match=r"unreachable host: .* nobody listens at this port"):
        check(place.repository.root)
    with pytest.raises(RemoteFailed, match="unreachable host"):
        push(place.repository.root)
    with Repo(str(place.repository.root)) as repo, pytest.raises(RemoteFailed, match="unreachable host"):
        require_readable(repo)


def test_a_server_that_only_lets_read(place: Place) -> None:
    place.server.stop()
    config = place.server.folder / "config"
    config.write_text(config.read_text().replace("internal-sftp", "internal-sftp -R"))
    place.server.start()
    place.store.mkdir()
    with pytest.raises(RemoteFailed, match=f"no permission: .* refuses to write under {place.store}"):
        check(place.repository.root)


def test_a_file_in_the_way(place: Place) -> None:
    place.store.touch()
    with pytest.raises(RemoteFailed, match="a file lies where a folder should"):
        check(place.repository.root)


def test_the_server_is_killed_in_the_middle_of_a_push(place: Place) -> None:
    place.cut_half_way()
    with pytest.raises(RemoteFailed, match=r"closed the connection.*the same command goes on from there"):
        push(place.repository.root)
    assert place.proxy.was_cut
    place.repository.assert_valid()
    place.repository.dvc("status")
    place.mend()
    push(place.repository.root)
    clone = place.clone("clone")
    pull(clone.root)
    assert clone.contents() == place.repository.contents()


def test_the_server_is_killed_in_the_middle_of_a_pull(place: Place) -> None:
    push(place.repository.root)
    clone = place.clone("clone")
    place.cut_half_way()
    found = clone.flows("remote", "pull", check=False)
    assert (place.proxy.was_cut, found.returncode) == (True, 1)
    assert "the same command goes on from there" in found.stderr
    assert "Traceback" not in found.stderr
    clone.assert_valid()
    place.mend()
    pull(clone.root)
    assert clone.contents() == place.repository.contents()
    clone.assert_valid()


def test_a_damaged_object_is_named(place: Place) -> None:
    push(place.repository.root)
    [damaged] = [file for file in place.store.rglob("*") if file.is_file() and file.read_bytes() == b"\x05" * 30000]
    damaged.write_bytes(b"\x06" * 30000)
    clone = place.clone("clone")
    with pytest.raises(RemoteFailed, match=rf"damaged in the remote .*{damaged.name} \(readings/5\)"):
        pull(clone.root)
    clone.assert_valid()
    push(place.repository.root, replace=True)
    pull(clone.root)
    assert clone.contents() == place.repository.contents()
