"""What every test shares: an empty working folder on request, no telemetry, and a short way to run the stages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

os.environ.update(
    DVC_NO_ANALYTICS="1",
    DO_NOT_TRACK="1",
    GX_ANALYTICS_ENABLED="false",
    PYTHONHASHSEED="0",
    GIT_AUTHOR_NAME="test",
    GIT_AUTHOR_EMAIL="test@example.org",
    GIT_COMMITTER_NAME="test",
    GIT_COMMITTER_EMAIL="test@example.org",
)

# A loaded machine is no failure: no example has a time limit.
settings.register_profile("braid", deadline=None)
settings.load_profile("braid")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stages() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``python -m stages`` as a user would, in the working directory."""

    def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "10000"}
        return subprocess.run(
            [sys.executable, "-m", "stages", *words],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
