"""One Prefect process worker, as ``python -m flows.worker_process NAME POOL LIMIT``; started by ``flows worker``."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Callable

#: The worker that a flow run's process serves; the run ends itself when that worker is gone.
WORKER_PID = "BRAID_WORKER_PID"
PR_SET_PDEATHSIG = 1


def main(name: str, pool: str, limit: str) -> None:
    """Serve a pool until a signal comes; SIGTERM comes by itself when the parent dies."""
    from prefect.utilities.processutils import setup_signal_handlers_worker
    from prefect.workers.process import ProcessWorker

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() == 1:  # the parent died before it could be watched
        return
    setup_signal_handlers_worker(os.getpid(), f"worker {name}", print)
    # Inherited blocked from the parent, so that none was lost until here.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
    os.environ[WORKER_PID] = str(os.getpid())
    worker = ProcessWorker(name=name, work_pool_name=pool, limit=int(limit), create_pool_if_not_found=False)
    with contextlib.suppress(KeyboardInterrupt):  # what Prefect makes of either signal
        asyncio.run(worker.start())


def watch_worker(gone: Callable[[], None]) -> None:
    """Call something, from a thread of its own, when the worker that started this flow run's process is gone.

    A worker killed outright leaves its runs' processes behind; without this they would go on beside the run that
    replaces them. Does nothing in a process that no worker started.
    """
    if WORKER_PID not in os.environ:
        return
    try:
        file = os.pidfd_open(int(os.environ[WORKER_PID]))
    except ProcessLookupError:
        gone()
        return

    def wait() -> None:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        poll.poll()
        gone()

    threading.Thread(target=wait, name="watch-worker", daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
