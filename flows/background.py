"""Processes in the background that can be found again and ended, and no others.

A process is known by its pid together with its start time and the machine's boot, so that a pid used again is never
mistaken for it. Everything started for one folder also carries a mark in its environment, which its descendants
inherit; what is left of them is found by that.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

MARK = "BRAID_SERVE"
PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process: pid, start time in clock ticks since boot, and which boot."""

    pid: int
    started: int
    boot: str

    def alive(self) -> bool:
        """Whether this very process runs; a zombie does not."""
        return identify(self.pid) == self

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        try:
            file = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            # Checked while the pid is held: from here on it cannot become another process's.
            if self.alive():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(file, number)
        finally:
            os.close(file)


def identify(pid: int) -> Process | None:
    """The process that has a pid now; None where there is none or it has ended."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return Process(pid, int(fields[19]), boot)


def start(words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> Process:
    """Start a command in a session of its own, its output appended to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    found = identify(process.pid)
    # Not waited for here: it shall outlive this process, and init reaps it.
    process.returncode = 0
    return found or Process(process.pid, 0, "")


def marked(mark: str) -> list[Process]:
    """Processes of this user whose environment carries a mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in PROC.iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
            except (FileNotFoundError, PermissionError, ProcessLookupError):
                continue
            process = identify(int(folder.name))
            if wanted in environment and process:
                found.append(process)
    return found


def end(processes: Iterable[Process], patience: float) -> None:
    """SIGTERM, then after some seconds SIGKILL; returns when all are gone."""
    processes = list(processes)
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, patience)):
        for process in processes:
            process.signal(number)
        until = time.monotonic() + seconds
        while any(process.alive() for process in processes) and time.monotonic() < until:
            _reap()
            time.sleep(0.1)


def _reap() -> None:
    """Let go of children of this process that have ended, so that they are not waited for as zombies."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def read(path: Path) -> dict[str, Process]:
    """Processes written by :func:`write`; none where the file is missing."""
    if not path.is_file():
        return {}
    return {name: Process(**record) for name, record in json.loads(path.read_text()).items()}


def write(path: Path, processes: Mapping[str, Process]) -> None:
    """Write processes by name, atomically."""
    draft = path.with_suffix(".partial")
    draft.write_text(json.dumps({name: asdict(process) for name, process in processes.items()}, indent=2) + "\n")
    draft.replace(path)
