"""Downloads that break off, fetches that are killed, and several at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_index import DATA, SDIST, FakeIndex, sha256
from fetched import Fetch, leftovers, offered, tree

ROOT = Path(__file__).parents[2]


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
