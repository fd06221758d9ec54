from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_index import DATA, SDIST, FakeIndex, sdist, serve

from stages.fetch import index as index_module
from stages.fetch import stage


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's pip, proxies or caches."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower().endswith("_proxy") or name.endswith("_CA_BUNDLE"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("BRAID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(index_module, "PAUSE_S", 0.0)


@pytest.fixture
def towers(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """An index that offers one sdist, configured as pip's."""
    with serve(FakeIndex({SDIST: sdist(DATA)})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


@pytest.fixture
def fetch(workspace: Path) -> Callable[..., Path]:
    """Write params.yaml with one source, fetch it, and return data/raw/site."""

    def run(source: dict[str, Any]) -> Path:
        Path("params.yaml").write_text(yaml.safe_dump({"sources": {"site": source}}))
        stage.run(stage.Params.read(name="site", key="site"), name="site", key="site")
        return Path("data/raw/site")

    return run
