"""Independent tasks spread over processes: a search whose loops are Python's holds the interpreter's lock."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from stages.causal.bootstrap import available_cores

Task = TypeVar("Task")
Result = TypeVar("Result")


class Processes:
    """Processes to spread tasks over; without a pool, this process alone."""

    def __init__(self, pool: ProcessPoolExecutor | None) -> None:
        self._pool = pool

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Apply a function of a module to tasks and give the results in the order of the tasks."""
        return map(function, tasks) if self._pool is None else self._pool.map(function, tasks)


@contextmanager
def processes(workers: int | None = None) -> Iterator[Processes]:
    """Start processes that end with this block, and with this process when it is killed.

    Parameters
    ----------
    workers
        Number of processes; by default that of the cores this process may use. One means: none but this one.
    """
    number = available_cores() if workers is None else workers
    if number < 1:
        raise ValueError(f"workers {workers}: expected 1 or more, or None")
    if number == 1:
        yield Processes(None)
        return
    # spawn: a fork copies the locks of other libraries' threads in whatever state they are.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=_end_with_parent)
    try:
        yield Processes(pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """End this process when the one that started it is killed; a pool's process would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
