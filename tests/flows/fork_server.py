"""Forks ``python -m flows`` processes that have their imports behind them: one JSON request a line.

A request names the arguments, the folder, variables, files for output and error, and a FIFO for pid and exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import dvc.repo.reproduce
import dvc.stage.cache  # noqa: F401

import flows.__main__
import flows.repro
import flows.verbs.repro


def work(request: dict[str, Any]) -> None:
    """Be the process that was asked for."""
    code = 1
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.environ.update(request["environment"])
        if limit := os.environ.get("FLOWS_TEST_FILE_LIMIT"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
        os.chdir(request["cwd"])
        sys.argv = ["flows", *request["words"]]
        code = flows.__main__.main(request["words"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        # As the interpreter ends: threads of Prefect send what they have.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(request: dict[str, Any]) -> None:
    """Start the process and tell its pid and its end: who asked is not its parent and cannot wait for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if not pid:
        os.setsid()
        work(request)
    with Path(request["fifo"]).open("w") as fifo:
        fifo.write(f"{pid}\n")
        fifo.flush()
        _, status = os.waitpid(pid, 0)
        fifo.write(f"{os.waitstatus_to_exitcode(status)}\n")
    os._exit(0)


if __name__ == "__main__":
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a process with threads must not fork"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if not os.fork():
            wait(json.loads(line))
