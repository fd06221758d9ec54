"""One stage's command as a process that cannot outlive its reason."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from flows.workspace import Command

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
#: Time a stage has to end after SIGTERM before it is killed.
GRACE_SECONDS = 5.0
#: Signals that come from outside: an operator, a batch system, the kernel short of memory. A crash is the stage's own.
FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGTERM, signal.SIGKILL})
#: A shell reports a child ended by a signal as an exit code above this.
SHELL_SIGNAL = 128
LONGEST_LINE = 10_000


def ended_by_signal(code: int) -> int | None:
    """The signal that ended a command, be it the shell itself or the shell's child; None where it exited."""
    number = -code if code < 0 else code - SHELL_SIGNAL
    return number if code < 0 or number in FROM_OUTSIDE else None


@dataclass
class Processes:
    """The running commands of a coordinator, so that all can be ended at once."""

    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    ended: bool = False

    def run(
        self,
        command: Command,
        environment: Mapping[str, str],
        inherited: Sequence[int],
        say: Callable[[str], None],
    ) -> int:
        """Run the lines of a command one after another until one fails; return its exit code, negative for a signal.

        What a line leaves running in the background is killed when the line ends, since it holds the locks.

        Parameters
        ----------
        command
            What to run and where; run by the shell that DVC would use.
        environment
            Variables beyond this process's own and the command's.
        inherited
            Files whose locks the process shall hold as long as it lives.
        say
            Called with each line that the command prints.
        """
        for line in command.lines:
            code = self._run_line(line, command, environment, inherited, say)
            if code:
                return code
        return 0

    def _run_line(
        self,
        line: str,
        command: Command,
        environment: Mapping[str, str],
        inherited: Sequence[int],
        say: Callable[[str], None],
    ) -> int:
        parent = os.getpid()
        with self._guard:
            if self.ended:
                return -signal.SIGTERM
            process = subprocess.Popen(
                _shell(line),
                cwd=command.folder,
                env={**os.environ, **command.environment, **environment, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=tuple(inherited),
                start_new_session=True,
                preexec_fn=lambda: _die_with(parent),
            )
            self._running.add(process)
        assert process.stdout is not None
        reader = threading.Thread(target=_pass_on, args=(process.stdout, say), daemon=True)
        reader.start()
        try:
            return process.wait()
        finally:
            _signal_group(process.pid, signal.SIGKILL)
            reader.join()
            with self._guard:
                self._running.discard(process)

    def end(self) -> None:
        """End every running command and its children: SIGTERM, then after a grace SIGKILL."""
        with self._guard:
            self.ended = True
            running = list(self._running)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in running:
                if process.poll() is None:
                    _signal_group(process.pid, number)
            until = time.monotonic() + GRACE_SECONDS
            while time.monotonic() < until and any(process.poll() is None for process in running):
                time.sleep(0.05)


def _pass_on(stream: IO[bytes], say: Callable[[str], None]) -> None:
    """Hand on what a command prints; of a line that overwrites itself, as progress bars do, the last state."""
    # Only \n ends a line: otherwise each step of a progress bar would be a line of the log.
    with io.TextIOWrapper(stream, errors="replace", newline="\n") as lines:
        for text in lines:
            say(text.rstrip("\r\n").rpartition("\r")[2][:LONGEST_LINE])


def _shell(line: str) -> list[str]:
    """The shell DVC uses, with the flags DVC gives it."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    flags = {"zsh": ["--no-rcs"], "bash": ["--noprofile", "--norc"]}.get(Path(shell).name, [])
    return [shell, *flags, "-c", line]


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this process when the coordinator dies, be it by kill -9."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(SHELL_SIGNAL + signal.SIGKILL)


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return
