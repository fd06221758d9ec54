"""What a user sees of ``fetch`` with a package index that works, or does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_index import DATA, SDIST, FakeIndex, block, sdist, serve, sha256, wheel

from stages import manifest
from stages.errors import DataError, StageError, UsageError
from stages.fetch import archive, stage
from stages.fetch.registry import RegistrySource

ROOT = Path(__file__).parents[2]
Fetch = Callable[..., Path]


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def offered(index: FakeIndex, **changes: Any) -> dict[str, Any]:
    return block(index.files[SDIST], **changes)


def leftovers() -> list[Path]:
    return [p for p in Path("data/.partial").glob("*") if p.is_dir()]


def test_a_member_of_an_sdist_and_its_manifest(towers: FakeIndex, fetch: Fetch) -> None:
    folder = fetch(offered(towers))
    assert tree(folder).keys() == {"site.csv", "manifest.json"}
    assert (folder / "site.csv").read_bytes() == DATA["examples/site.csv"]
    assert (folder / "site.csv").stat().st_mode & 0o777 == 0o444
    assert json.loads((folder / "manifest.json").read_text()) == {
        "source": "site",
        "kind": "registry",
        "origin": {
            "package": "towers",
            "version": "1.2",
            "archive": SDIST,
            "sha256": sha256(towers.files[SDIST]),
        },
        "files": [
            {
                "name": "site.csv",
                "bytes": len(DATA["examples/site.csv"]),
                "sha256": sha256(DATA["examples/site.csv"]),
                "member": "examples/site.csv",
            }
        ],
        "licence": "CC-BY-4.0",
        "citation": "Those who measured",
    }
    manifest.verify(folder)
    assert not leftovers()


@pytest.mark.parametrize("json_page", [False, True], ids=["html", "json"])
def test_two_sources_of_one_archive_download_it_once(towers: FakeIndex, fetch: Fetch, json_page: bool) -> None:
    towers.json = json_page
    fetch(offered(towers))
    asked = len(towers.seen)
    assert (fetch(offered(towers, members=["examples/other.csv"])) / "other.csv").read_bytes() == b"x\n"
    assert len(towers.seen) == asked
    assert len(towers.downloads) == 1


def test_equal_content_gives_equal_bytes(towers: FakeIndex, fetch: Fetch) -> None:
    first = tree(fetch(offered(towers)))
    assert tree(fetch(offered(towers))) == first


def test_members_that_share_a_name_keep_their_paths(towers: FakeIndex, fetch: Fetch) -> None:
    towers.files[SDIST] = sdist({"a/x.csv": b"a", "b/X.csv": b"b", "c.csv": b"c"})
    folder = fetch(offered(towers, members=["a/x.csv", "b/X.csv", "c.csv"]))
    assert tree(folder).keys() == {"a/x.csv", "b/X.csv", "c.csv", "manifest.json"}
    assert [file.name for file in manifest.verify(folder).files] == ["a/x.csv", "b/X.csv", "c.csv"]


@pytest.mark.parametrize("digests", [True, False], ids=["index with digests", "index without"])
def test_the_wheel_with_the_pinned_digest_whatever_the_interpreter(
    towers: FakeIndex, fetch: Fetch, digests: bool
) -> None:
    towers.digests = digests
    for platform in ("cp39-cp39-win32", "cp27-cp27m-macosx_10_9_x86_64", "py3-none-any"):
        towers.files[f"towers-1.2-{platform}.whl"] = wheel({"site.csv": platform.encode()})
    wanted = towers.files["towers-1.2-cp39-cp39-win32.whl"]
    folder = fetch(block(wanted, archive="wheel", members=["site.csv"]))
    assert (folder / "site.csv").read_bytes() == b"cp39-cp39-win32"


@pytest.mark.parametrize(("name", "mode"), [("towers-1.2.tar.bz2", "w:bz2"), ("towers-1.2.tar.xz", "w:xz")])
def test_other_compressions(towers: FakeIndex, fetch: Fetch, name: str, mode: str) -> None:
    towers.files = {name: sdist(DATA, mode=mode)}
    assert (fetch(block(towers.files[name])) / "site.csv").read_bytes() == DATA["examples/site.csv"]


def test_a_zip_as_sdist(towers: FakeIndex, fetch: Fetch) -> None:
    towers.files = {"towers-1.2.zip": wheel({f"towers-1.2/{name}": content for name, content in DATA.items()})}
    assert (fetch(block(towers.files["towers-1.2.zip"])) / "site.csv").read_bytes() == DATA["examples/site.csv"]


# Downloads that break off


def test_a_download_that_breaks_off_is_continued(towers: FakeIndex, fetch: Fetch) -> None:
    whole = len(towers.files[SDIST])
    towers.cuts = [whole // 3, whole // 3]
    folder = fetch(offered(towers))
    assert (folder / "site.csv").read_bytes() == DATA["examples/site.csv"]
    assert towers.downloads == [None, f"bytes={whole // 3}-", f"bytes={whole // 3 * 2}-"]


@pytest.mark.parametrize("fault", ["ranges", "wrong_range"])
def test_a_server_without_ranges_starts_again(towers: FakeIndex, fetch: Fetch, fault: str) -> None:
    setattr(towers, fault, fault == "wrong_range")
    towers.cuts = [len(towers.files[SDIST]) // 2]
    assert (fetch(offered(towers)) / "site.csv").read_bytes() == DATA["examples/site.csv"]


def test_a_spoilt_part_is_thrown_away(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "archives" / sha256(towers.files[SDIST])
    folder.mkdir(parents=True)
    (folder / "partial").write_bytes(b"of another file")
    fetch(offered(towers))
    assert towers.downloads == ["bytes=15-", None]


def test_a_part_that_is_too_long_is_thrown_away(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "archives" / sha256(towers.files[SDIST])
    folder.mkdir(parents=True)
    (folder / "partial").write_bytes(towers.files[SDIST] + b"more")
    fetch(offered(towers))
    assert len(towers.downloads) == 2


def test_a_finished_part_is_not_downloaded_again(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "archives" / sha256(towers.files[SDIST])
    folder.mkdir(parents=True)
    (folder / "partial").write_bytes(towers.files[SDIST])
    fetch(offered(towers))
    assert towers.downloads == []


def test_a_busy_server_is_asked_again(towers: FakeIndex, fetch: Fetch) -> None:
    towers.page_statuses = [503]
    towers.statuses = [502, 429]
    fetch(offered(towers))
    assert towers.downloads == [None] * 3


def test_a_spoilt_cached_archive_is_downloaded_once_more(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    first = tree(fetch(offered(towers)))
    cached = tmp_path / "cache" / "archives" / sha256(towers.files[SDIST]) / SDIST
    cached.write_bytes(cached.read_bytes()[:-1])
    assert tree(fetch(offered(towers))) == first
    assert len(towers.downloads) == 2
    assert cached.read_bytes() == towers.files[SDIST]


def test_no_index_is_asked_for_a_cached_archive(
    towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(offered(towers))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    fetch(offered(towers))


# Refusals: the text a user reads, and nothing left behind


def refused(fetch: Fetch, source: dict[str, Any], kind: type[StageError] = StageError) -> str:
    """The message of a fetch that must fail and leave the earlier data as it was."""
    kept = Path("data/raw/site")
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "old.csv").write_text("as it was")
    with pytest.raises(kind) as caught:
        fetch(source)
    assert tree(kept) == {"old.csv": b"as it was"}
    assert not leftovers()
    assert "\n" not in str(caught.value)
    return str(caught.value)


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


# Where to ask


def test_credentials_in_the_index_url(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    towers.password = ("me", "sesame")
    monkeypatch.setenv("PIP_INDEX_URL", towers.url.replace("//", "//me:sesame@"))
    assert "sesame" not in (fetch(offered(towers)) / "manifest.json").read_text()


def test_credentials_in_netrc(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    towers.password = ("me", "sesame")
    assert "Client Error(401)" in refused(fetch, offered(towers))
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password sesame\n")
    fetch(offered(towers))


def test_a_redirected_download(towers: FakeIndex, fetch: Fetch) -> None:
    towers.redirect = True
    fetch(offered(towers))


def test_find_links_without_any_index(workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    content = sdist(DATA)
    Path("links").mkdir()
    Path("links", "towers-1.2-py3-none-any.whl").write_bytes(b"not asked for")
    Path("links", SDIST).write_bytes(content)
    monkeypatch.setenv("PIP_NO_INDEX", "yes")
    monkeypatch.setenv("PIP_FIND_LINKS", "links")
    assert (fetch(block(content)) / "site.csv").read_bytes() == DATA["examples/site.csv"]


def test_find_links_with_another_file(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("links").mkdir()
    Path("links", SDIST).write_bytes(b"a home-made copy")
    monkeypatch.setenv("PIP_FIND_LINKS", "links")
    fetch(offered(towers))  # the index is asked for the pinned one
    towers.statuses = [404]
    with pytest.raises(DataError, match=sha256(b"a home-made copy")):
        fetch(block(b"neither"))


def test_a_config_file_and_an_index_that_is_a_folder(
    workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = sdist(DATA)
    page = Path("simple/towers")
    page.mkdir(parents=True)
    (page / "index.html").write_text(f'<a href="../../{SDIST}#sha256={sha256(content)}">{SDIST}</a>')
    Path(SDIST).write_bytes(content)
    Path("pip.conf").write_text(f"[global]\nindex-url = {workspace.as_uri()}/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(workspace / "pip.conf"))
    fetch(block(content))


def test_a_dead_extra_index_does_no_harm(towers: FakeIndex, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(FakeIndex()) as gone:
        pass
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", towers.url)
    monkeypatch.setenv("PIP_INDEX_URL", gone.url)
    monkeypatch.setenv("PIP_RETRIES", "0")
    fetch(offered(towers))


def test_nothing_to_ask(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert "No package index to ask" in refused(fetch, block(), UsageError)


def test_a_certificate_of_ones_own(workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(workspace)
    with serve(FakeIndex({SDIST: sdist(DATA)}), certificate) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        assert "CERTIFICATE_VERIFY_FAILED" in (message := refused(fetch, offered(index)))
        assert "PIP_CERT" in message
        monkeypatch.setenv("PIP_CERT", str(certificate))
        fetch(offered(index))


def test_a_trusted_host_without_certificate(workspace: Path, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(FakeIndex({SDIST: sdist(DATA)}), self_signed(workspace)) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
        fetch(offered(index))


def test_a_missing_certificate_file(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", "no/such.pem")
    assert "cert: no/such.pem cannot be used" in refused(fetch, block(), UsageError)


def self_signed(folder: Path) -> Path:
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    import ipaddress

    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(private + certificate.public_bytes(encoding))
    return file


# Processes that are killed, and processes at once

FETCH = "from stages.fetch import archive, stage; {}; p = stage.Params.read(name='site', key='site'); "
FETCH += "stage.run(p, name='site', key='site')"
PAUSE = "copy = archive._copy; archive._copy = lambda *a: (copy(*a), print('extracted', flush=True), input())"


def start(before: str = "pass") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", FETCH.format(before)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_fetch_killed_while_downloading(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    undisturbed = tree(fetch(offered(towers)))
    for path in (tmp_path / "cache").rglob(SDIST):
        path.unlink()
    towers.stall = True
    process = start()
    assert towers.half_sent.wait(30)
    killed(process)
    towers.stall = False
    assert tree(Path("data/raw/site")) == undisturbed
    assert tree(fetch(offered(towers))) == undisturbed
    assert not leftovers()


def test_a_fetch_killed_while_extracting(towers: FakeIndex, fetch: Fetch) -> None:
    undisturbed = tree(fetch(offered(towers)))
    process = start(PAUSE)
    assert process.stdout is not None
    assert process.stdout.readline() == "extracted\n"
    assert leftovers()
    killed(process)
    assert tree(Path("data/raw/site")) == undisturbed
    assert tree(fetch(offered(towers))) == undisturbed
    assert not leftovers()


def test_two_processes_share_one_download(towers: FakeIndex, fetch: Fetch, tmp_path: Path) -> None:
    undisturbed = tree(fetch(offered(towers)))
    for path in (tmp_path / "cache").rglob(SDIST):
        path.unlink()
    towers.stall = True
    first = start()
    assert towers.half_sent.wait(30)
    second = start()
    towers.release.set()
    for process in (first, second):
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert len(towers.downloads) == 2  # one by the undisturbed run
    assert tree(Path("data/raw/site")) == undisturbed


# params.yaml


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"version": 5.0}, "put the version in quotes, as in version: '5.0'"),
        ({"version": "latest"}, "not a version as packages have them"),
        ({"members": []}, "at least 1 item"),
        ({"members": ["/etc/passwd"]}, "'/etc/passwd' is an absolute path"),
        ({"members": ["a/../../b"]}, "'a/../../b' is a path with '..'"),
        ({"members": ["a/Manifest.json"]}, "would take the place of the source's own manifest.json"),
        ({"members": ["a", "a"]}, "a member is listed twice"),
        ({"sha256": "ABC"}, "should match pattern"),
        ({"package": "--index-url"}, "should match pattern"),
        ({"memers": ["a"]}, "did you mean 'members'?"),
        ({"licence": ""}, "at least 1 character"),
        ({"kind": "registri"}, "sources.site.kind: found 'registri'; input should be 'registry'"),
    ],
)
def test_a_block_that_is_wrong(fetch: Fetch, change: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        fetch(block() | change)
    assert "sources.site" in str(caught.value)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("package", "version", "kind", "filename", "fits"),
    [
        ("Flux_Data", "5.0", "sdist", "flux-data-5.0.tar.gz", True),
        ("flux.data", "5.0", "sdist", "flux_data-5.0.zip", True),
        ("towers", "5.0", "sdist", "towers-5.tar.gz", True),
        ("towers", "5.0", "sdist", "towers-5.0-py3-none-any.whl", False),
        ("towers", "5.0", "wheel", "towers-5.0-1-cp39-cp39-win32.whl", True),
        ("towers", "5.0", "sdist", "towers-extra-5.0.tar.gz", False),
        ("towers", "5.0", "sdist", "../towers-5.0.tar.gz", False),
        ("towers", "5.0", "sdist", "towers-latest.tar.gz", False),
        ("towers", "5.0", "wheel", "towers.whl", False),
    ],
)
def test_file_names_of_a_package(package: str, version: str, kind: str, filename: str, fits: bool) -> None:
    source = RegistrySource.model_validate(block(package=package, version=version, archive=kind))
    assert source.matches(filename) is fits


def test_params_are_read_from_the_sources_own_block() -> None:
    assert stage.Params.keys(name="us-arm", key="us-arm") == {"source": "sources.us-arm"}
