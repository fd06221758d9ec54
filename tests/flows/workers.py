"""Real workers for tests: ``python -m flows worker`` in clones of a small project, and what the server says of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.flows.conftest import ROOT, Api

#: Only a test that hangs gets there.
DEADLINE_SECONDS = 120
#: Short, so that a lost worker is noticed within seconds.
HEARTBEAT = {"PREFECT_WORKER_HEARTBEAT_SECONDS": "2", "PREFECT_WORKER_QUERY_SECONDS": "1"}


def until(found: Callable[[], Any], what: str) -> Any:
    """Ask until the answer is true; fail after the deadline."""
    end = time.monotonic() + DEADLINE_SECONDS
    pause = threading.Event()
    while time.monotonic() < end:
        if answer := found():
            return answer
        pause.wait(0.2)
    raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what}")


@dataclass
class Workers:
    """A ``python -m flows worker`` and its log."""

    pool: str
    host: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text()

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_online(self, api: Api, count: int = 1) -> None:
        """Until the server has heard of so many of them."""
        until(lambda: self.ended or len(online(api, self.pool, self.host)) >= count, f"workers online: {self.text}")
        assert not self.ended, self.text

    def pids(self) -> list[int]:
        """Pids of its present workers."""
        return children(self.process.pid)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_SECONDS)

    def kill_all(self) -> None:
        """As when the machine is lost."""
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def start_workers(clone: Path, pool: str, host: str, environment: Mapping[str, str], *words: str) -> Workers:
    """Workers of a pool in a clone."""
    log = clone.parent / f"{host}-{pool}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows", "worker", "--pool", pool, "--host", host, *words],
            cwd=clone,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SHELL": "/bin/sh", **HEARTBEAT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    return Workers(pool, host, process, log)


def online(api: Api, pool: str, host: str) -> list[str]:
    """Names of a machine's workers that the server takes for alive."""
    with contextlib.suppress(OSError):
        workers = api.post(f"work_pools/{pool}/workers/filter", {})
        return sorted(w["name"] for w in workers if w["name"].startswith(f"{host} ") and w["status"] == "ONLINE")
    return []


def children(pid: int) -> list[int]:
    """Pids of the children of a process."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """Pids of all that a process started, and that still has a parent below it."""
    found = children(pid)
    return found + [below for child in found for below in descendants(child)]


def deploy(prefect_server: Mapping[str, str]) -> str:
    """Apply prefect.yaml as a script would: asking nothing."""
    run = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        cwd=ROOT,
        env={**os.environ, **prefect_server},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def make_pools(prefect_server: Mapping[str, str]) -> None:
    """Create the pools, twice: the second time there is nothing to do. In a process that knows no other server."""
    script = "from flows.pools import ensure_pools; ensure_pools(); ensure_pools()"
    told = {**os.environ, **prefect_server, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script], env=told, check=True)
