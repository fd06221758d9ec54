"""A remote on S3, on moto's server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dvc.repo import Repo

from flows.remotes import RemoteFailed, check, require_readable, s3_settings, set_remote
from flows.transfer import pull, push
from tests.flows.remote_repositories import FILES, Repository, build, copied
from tests.flows.remote_services import CuttingProxy, S3Server

pytest.importorskip("moto", reason="moto is not installed (pip install -e .[dev])")
pytestmark = pytest.mark.services
HALF_WAY = FILES * 30000 // 3


@dataclass
class Place:
    """A repository whose remote lies behind a proxy behind moto's server."""

    repository: Repository
    server: S3Server
    proxy: CuttingProxy

    def use(self, repository: Repository, bucket: str = S3Server.BUCKET, profile: str | None = None) -> Repository:
        set_remote(repository.root, s3_settings(f"s3://{bucket}/braid", f"http://127.0.0.1:{self.proxy.port}", profile))
        return repository


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return build(tmp_path_factory.mktemp("original") / "root")


@pytest.fixture
def place(original: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "aws-config"),
    }.items():
        monkeypatch.setenv(name, value)
    server = S3Server()
    proxy = CuttingProxy(server.port)
    found = Place(copied(original, tmp_path), server, proxy)
    found.use(found.repository)
    yield found
    server.forget_keys()
    server.stop()
    proxy.close()


def test_one_command_sets_it_and_dvc_pushes_and_pulls(place: Place) -> None:
    place.repository.flows("remote", "s3", "s3://lab-data/braid", "--endpoint", f"http://127.0.0.1:{place.proxy.port}")
    assert "written, read back and removed" in check(place.repository.root)
    place.repository.dvc("push", "--run-cache")
    clone = place.use(place.repository.clone("clone"))
    clone.dvc("pull", "--run-cache")
    assert clone.contents() == place.repository.contents()
    assert clone.cached() == place.repository.cached()
    texts = [file.read_text() for file in (place.repository.root / ".dvc").glob("config*")]
    assert not any("hunter2" in text for text in texts)


def test_a_bucket_that_is_not_there(place: Place) -> None:
    place.use(place.repository, "other-data")
    with pytest.raises(RemoteFailed, match="missing bucket: there is no bucket other-data"):
        check(place.repository.root)
    with Repo(str(place.repository.root)) as repo, pytest.raises(RemoteFailed, match="missing bucket"):
        require_readable(repo)


def test_a_bucket_to_which_nothing_was_pushed_is_readable(place: Place) -> None:
    with Repo(str(place.repository.root)) as repo:
        require_readable(repo)


def test_a_key_the_server_does_not_know(place: Place) -> None:
    place.server.demand_keys()
    with pytest.raises(RemoteFailed, match=r"wrong key: the server does not know this access key.*AWS_ACCESS_KEY_ID"):
        check(place.repository.root)


def test_no_credentials(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(RemoteFailed, match="wrong key: no credentials were found"):
        check(place.repository.root)


def test_a_profile_that_is_not_there(place: Place) -> None:
    place.use(place.repository, profile="reader")
    with pytest.raises(RemoteFailed, match=r"wrong key: .*profile \(reader\) could not be found"):
        check(place.repository.root)
    assert "reader" not in (place.repository.root / ".dvc" / "config").read_text()


def test_a_server_that_does_not_run(place: Place) -> None:
    place.server.stop()
    with pytest.raises(RemoteFailed, match=r"unreachable host: nobody answers at http://127\.0\.0\.1|closed the conn"):
        check(place.repository.root)


def test_the_server_stops_in_the_middle_of_a_push(place: Place) -> None:
    place.proxy.arm(HALF_WAY)
    found = place.repository.flows("remote", "push", check=False)
    assert (place.proxy.was_cut, found.returncode) == (True, 1)
    assert "the same command goes on from there" in found.stderr
    assert "Traceback" not in found.stderr
    place.repository.assert_valid()
    place.proxy.mend()
    push(place.repository.root)
    clone = place.use(place.repository.clone("clone"))
    pull(clone.root)
    assert clone.contents() == place.repository.contents()


def test_the_server_stops_in_the_middle_of_a_pull(place: Place) -> None:
    push(place.repository.root)
    clone = place.use(place.repository.clone("clone"))
    place.proxy.arm(HALF_WAY)
    found = clone.flows("remote", "pull", check=False)
    assert (place.proxy.was_cut, found.returncode) == (True, 1)
    assert "the same command goes on from there" in found.stderr
    assert "Traceback" not in found.stderr
    clone.assert_valid()
    place.proxy.mend()
    pull(clone.root)
    assert clone.contents() == place.repository.contents()


def test_a_damaged_object_is_named(place: Place) -> None:
    push(place.repository.root)
    [key] = [
        file
        for file in (place.repository.root / ".dvc/cache").rglob("*")
        if file.is_file() and file.read_bytes() == b"\x05" * 30000
    ]
    name = f"{key.parent.name}/{key.name}"
    place.server.ask("PUT", f"/{S3Server.BUCKET}/braid/files/md5/{name}", b"\x06" * 30000)
    clone = place.use(place.repository.clone("clone"))
    with pytest.raises(RemoteFailed, match=rf"damaged in the remote .*{key.name} \(readings/5\)"):
        pull(clone.root)
    clone.assert_valid()
    push(place.repository.root, replace=True)
    pull(clone.root)
    assert clone.contents() == place.repository.contents()
