"""Where downloads are kept, and that long waits are not silent."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from stages.errors import StageError
from stages.fetch import cache

DIGEST = "0" * 64


def test_braid_cache_then_xdg_then_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache.root() == tmp_path / "cache"
    monkeypatch.delenv("BRAID_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.root() == tmp_path / "xdg/braid"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/does/not/count")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.root() == tmp_path / ("Library/Caches/braid" if sys.platform == "darwin" else ".cache/braid")


def test_a_second_holder_waits_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = threading.Event()
    monkeypatch.setattr(cache, "SILENCE_S", 0.001)
    monkeypatch.setattr(cache, "LOCK_POLL_S", 0.001)
    monkeypatch.setattr(cache.Entry, "_arrived", lambda entry: said.set() or "1.0 MB so far")
    held = threading.Event()
    order = []

    def second() -> None:
        assert held.wait(30)
        with cache.Entry(DIGEST).locked():
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with cache.Entry(DIGEST).locked():
        held.set()
        assert said.wait(30)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert "waiting for another process that downloads the same archive (1.0 MB so far)" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(StageError, match="set BRAID_CACHE to a folder you can write to"), cache.Entry(DIGEST).locked():
        pass
