from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stages import manifest
from stages.errors import StageError, UsageError

Fetch = Callable[..., Path]


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A simulator that tosses a coin."""

    def write(folder: Path, options: dict[str, Any], seed: int) -> None:
        for series in range(options["series"]):
            tosses = np.random.default_rng([seed, series]).integers(2, size=options["tosses"])
            (folder / f"{series}.txt").write_text(" ".join(map(str, tosses)))

    module = ModuleType("stages.coin")
    module.write = write  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stages.coin", module)
    return module


def block(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "simulator",
        "module": "stages.coin",
        "seed": 1,
        "options": {"series": 2, "tosses": 5},
    } | changes


def test_what_a_simulator_wrote(coin: ModuleType, fetch: Fetch) -> None:
    folder = fetch(block())
    found = manifest.verify(folder)
    assert found.kind == "simulator"
    assert found.origin == {"module": "stages.coin", "seed": 1, "options": {"series": 2, "tosses": 5}}
    assert [file.name for file in found.files] == ["0.txt", "1.txt"]
    again = manifest.read(fetch(block()))
    assert again == found
    other = manifest.read(fetch(block(seed=2)))
    assert other is not None
    assert other.files != found.files


def test_a_simulator_that_writes_nothing(coin: ModuleType, fetch: Fetch) -> None:
    with pytest.raises(StageError, match=r"sources.site: stages.coin wrote no file"):
        fetch(block(options={"series": 0}))
    assert not Path("data/raw/site").exists()


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("stages.no.such", r"sources.site.module: there is no module stages.no."),
        ("stages.errors", r"stages.errors has no function write\(folder, options, seed\)"),
        ("os", "should match pattern"),
    ],
)
def test_a_module_that_is_no_simulator(fetch: Fetch, module: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        fetch(block(module=module))
