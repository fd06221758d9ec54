"""One stage as a Prefect task: its command run, its output logged, tried again only after a kill from outside."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from flows.devices import HIDDEN, Device, Lease, leased
from flows.errors import FlowError
from flows.process import FROM_OUTSIDE, Processes, ended_by_signal
from flows.workspace import Command

RETRIES = 1


class StageFailed(FlowError):
    """A stage's command ended with an error."""

    def __init__(self, name: str, code: int, last: str, *, again: bool = True, seconds: float = 0.0) -> None:
        self.code, self.last = code, last
        self.seconds = seconds
        number = ended_by_signal(code)
        self.worth_retrying = again and number in FROM_OUTSIDE
        ended = f"exited with {code}" if number is None else f"was ended by {signal.Signals(number).name}"
        super().__init__(f"stage {name} {ended}{': ' + last if last else ''}")


def _worth_retrying(task_: Any, run: Any, state: Any) -> bool:
    """A process that was killed from outside may be tried again; a stage that says no may not."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, StageFailed) and error.worth_retrying


@dataclass(slots=True, eq=False)
class Order:
    """What a stage's task needs beyond its name; a plain object, which Prefect neither walks into nor stores."""

    command: Command
    devices: Sequence[Device]
    inherited: Sequence[int]
    processes: Processes
    #: Held already by who sends the stage; else one of ``devices`` is waited for.
    lease: Lease | None = None
    #: What the command writes.
    outs: Sequence[Path] = ()
    runs: int = 0

    def prepare(self) -> None:
        """Before a second run, remove what the first left, as was done before the first."""
        self.runs += 1
        for out in self.outs if self.runs > 1 else ():
            if out.is_dir() and not out.is_symlink():
                shutil.rmtree(out)
            else:
                out.unlink(missing_ok=True)


@task(name="stage", cache_policy=NO_CACHE, retries=RETRIES, retry_condition_fn=_worth_retrying, persist_result=False)
def run_stage(name: str, share: float, order: Order) -> tuple[float, str | None]:
    """Run one stage's command; return its seconds and its device. What it prints goes to the log of this task."""
    logger = get_run_logger()
    last = ""

    def say(line: str) -> None:
        nonlocal last
        last = line or last
        logger.info("%s", line)

    waited = leased(order.devices, share) if order.devices and not order.lease else nullcontext(order.lease)
    with waited as lease:
        order.prepare()
        start = time.monotonic()
        inherited = [*order.inherited, *(lease.files if lease else ())]
        code = order.processes.run(order.command, lease.environment if lease else HIDDEN, inherited, say)
        seconds = time.monotonic() - start
        if code:
            raise StageFailed(name, code, last, again=not order.processes.ended, seconds=seconds)
        return seconds, str(lease.device) if lease else None
