"""Workers as children of one process: ended with it, started again when one dies, and given up when it keeps dying."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from flows.devices import lease_folder
from flows.errors import FlowError
from flows.pools import ROOT_VARIABLE, PoolError, WorkerSpec, mark_lost

#: A worker that died is started again at most so often ...
RESTARTS = 5
#: ... within so many seconds; later deaths count anew.
WINDOW_SECONDS = 600.0
#: Time that workers have to end, with what they run, before they are killed.
GRACE_SECONDS = 20.0
#: Where this package is found, by workers that work in a clone of another project.
PACKAGE = Path(__file__).resolve().parents[1]
STOP = frozenset({signal.SIGTERM, signal.SIGINT})


class WorkerDied(FlowError):
    """A worker kept dying."""


@dataclass
class Child:
    """A worker and its history."""

    spec: WorkerSpec
    process: subprocess.Popen[bytes]
    deaths: list[float] = field(default_factory=list)


class Supervisor:
    """The workers of one pool on this machine.

    Parameters
    ----------
    specs
        One worker for each.
    root
        The clone in which their runs work.
    say
        Called with a line when a worker starts or dies.
    """

    def __init__(self, specs: Sequence[WorkerSpec], root: Path, say: Callable[[str], None]) -> None:
        self.specs, self.root, self.say = specs, root, say
        self.children: list[Child] = []

    def run(self) -> None:
        """Keep the workers going until SIGTERM or SIGINT; then end them.

        Raises
        ------
        WorkerDied
            One died more than ``RESTARTS`` times within ``WINDOW_SECONDS``.
        """
        watched = {*STOP, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        with contextlib.ExitStack() as stack:
            for spec in self.specs:
                stack.enter_context(_only_one(spec))
                # What a worker of this name had taken before its machine or its parent went down.
                mark_lost(spec.name, spec.pool)
            try:
                for spec in self.specs:
                    self.children.append(Child(spec, self._start(spec)))
                while signal.sigwait(watched) not in STOP:
                    for child in self.children:
                        self._look_after(child)
            finally:
                self.end()
                signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)

    def _start(self, spec: WorkerSpec) -> subprocess.Popen[bytes]:
        # `python` in commands of stages and of the pool is this one, whether or not its environment is activated.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        own = {ROOT_VARIABLE: str(self.root), "PYTHONPATH": str(PACKAGE), "PATH": path}
        told = {**os.environ, **spec.environment, **own}
        words = [sys.executable, "-m", "flows.worker_process", spec.name, spec.pool, str(spec.limit)]
        process = subprocess.Popen(words, cwd=self.root, env=told, stdin=subprocess.DEVNULL)
        self.say(f"worker {spec.name}: pool {spec.pool}, {spec.limit} at a time, pid {process.pid}")
        return process

    def _look_after(self, child: Child) -> None:
        code = child.process.poll()
        if code is None:
            return
        now = time.monotonic()
        child.deaths = [death for death in child.deaths if now - death < WINDOW_SECONDS] + [now]
        ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        self.say(f"worker {child.spec.name} (pid {child.process.pid}) {ended}")
        try:
            lost = mark_lost(child.spec.name, child.spec.pool)
        except Exception as error:  # the server may be what made it die; the coordinator then notices by the heartbeat
            self.say(f"worker {child.spec.name}: its runs could not be marked as crashed: {error}")
        else:
            self.say(f"worker {child.spec.name}: {lost} of its runs marked as crashed")
        if len(child.deaths) > RESTARTS:
            raise WorkerDied(
                f"worker {child.spec.name} died {len(child.deaths)} times within {WINDOW_SECONDS:.0f} s; given up. "
                "Its messages above say why."
            )
        child.process = self._start(child.spec)

    def end(self) -> None:
        """End every worker with what it runs; kill those that take too long."""
        for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, None)):
            for child in self.children:
                if child.process.poll() is None:
                    child.process.send_signal(number)
            until = time.monotonic() + (patience or 0)
            for child in self.children:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.process.wait(None if patience is None else max(0.0, until - time.monotonic()))


@contextlib.contextmanager
def _only_one(spec: WorkerSpec) -> Iterator[IO[str]]:
    """Refuse a second worker of the same name for the same server on this machine."""
    key = hashlib.sha256(f"{os.environ.get('PREFECT_API_URL')} {spec.pool} {spec.name}".encode()).hexdigest()[:16]
    folder = lease_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / f"worker-{key}.lock").open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PoolError(
                f"worker {spec.name} of pool {spec.pool} runs on this machine already; --host NAME starts another."
            ) from None
        yield stream
