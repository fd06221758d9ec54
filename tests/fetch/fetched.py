"""What the tests of ``fetch`` share: how it is called, what it leaves behind, and how it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_index import SDIST, FakeIndex, block

from stages.errors import StageError

Fetch = Callable[..., Path]


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def offered(index: FakeIndex, **changes: Any) -> dict[str, Any]:
    return block(index.files[SDIST], **changes)


def leftovers() -> list[Path]:
    return [p for p in Path("data/.partial").glob("*") if p.is_dir()]


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
