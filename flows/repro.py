"""The flow ``repro``: a DVC graph brought up to date, stages in parallel, each with its reason."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.artifacts import publish
from flows.devices import Device, leased, parse_devices
from flows.errors import FlowError, GraphError
from flows.plan import in_order
from flows.process import Processes
from flows.report import DONE, GATE_STOPPED, RunReport, StageReport
from flows.workspace import Command, Workspace, opened

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture

#: Results wait at most so long before they stand in dvc.lock.
LOCK_SECONDS = 2.0
RETRIES = 1


class StageFailed(FlowError):
    """A stage's command ended with an error."""

    def __init__(self, name: str, code: int, last: str) -> None:
        self.code = code
        ended = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
        super().__init__(f"stage {name} {ended}{': ' + last if last else ''}")


class RunFailed(FlowError):
    """A run in which not every stage is done; its report says which."""

    def __init__(self, report: RunReport) -> None:
        self.report = report
        self.exit_code = report.exit_code
        super().__init__(report.counts())


def _worth_retrying(task_: Any, run: Any, state: Any) -> bool:
    """A process that was killed from outside may be tried again; a stage that says no may not."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, StageFailed) and error.code < 0


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What a stage's task needs beyond its name; a plain object, which Prefect neither walks into nor stores."""

    command: Command
    devices: Sequence[Device]
    inherited: Sequence[int]
    processes: Processes


@task(name="stage", cache_policy=NO_CACHE, retries=RETRIES, retry_condition_fn=_worth_retrying, persist_result=False)
def run_stage(name: str, share: float, order: Order) -> tuple[float, str | None]:
    """Run one stage's command on a device that is free; return its seconds and the device."""
    logger = get_run_logger()
    last = ""

    def say(line: str) -> None:
        nonlocal last
        last = line or last
        logger.info("%s", line)

    start = time.monotonic()
    if order.devices:
        with leased(order.devices, share) as lease:
            start = time.monotonic()
            inherited = [*order.inherited, *lease.files]
            code = order.processes.run(order.command, lease.environment, inherited, say)
            device: str | None = str(lease.device)
    else:
        code, device = order.processes.run(order.command, {"CUDA_VISIBLE_DEVICES": ""}, order.inherited, say), None
    if code:
        raise StageFailed(name, code, last)
    return time.monotonic() - start, device


class Run:
    """The state of one run over a workspace; :meth:`go` drives it to its end."""

    def __init__(
        self, workspace: Workspace, devices: Sequence[Device], keep_going: bool, pull: bool, say: Callable[[str], None]
    ) -> None:
        self.workspace, self.devices, self.keep_going, self.pull, self.say = workspace, devices, keep_going, pull, say
        self.report = RunReport()
        self.settled: dict[str, StageReport] = {}
        self.futures: dict[str, PrefectFuture[Any]] = {}
        self.running: dict[str, StageReport] = {}
        self.finished: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.processes = Processes()
        self.written = time.monotonic()

    def go(self) -> RunReport:
        """Settle every stage: those that can be, at once; the others when their commands end."""
        waiting = in_order(self.workspace)
        try:
            while waiting or self.running:
                waiting = [name for name in waiting if not self._decide(name)]
                if self.running:
                    self._finish(self.finished.get())
                elif waiting and not self._any_ready(waiting):
                    raise GraphError(f"stages {', '.join(waiting)} wait for each other")
        except BaseException:
            self.processes.end()
            raise
        return self.report

    def _any_ready(self, waiting: Iterable[str]) -> bool:
        return any(self.workspace.upstream[name] <= self.settled.keys() for name in waiting)

    def _decide(self, name: str) -> bool:
        """Settle or start a stage whose upstream is settled; False: it must wait."""
        above = self.workspace.upstream[name]
        if not above <= self.settled.keys():
            return False
        blocked = sorted(other for other in above if self.settled[other].outcome not in DONE)
        if blocked:
            self._settle(StageReport(name, "not reached", detail=f"waits for {', '.join(blocked)}"))
            return True
        if not self.keep_going and any(
            report.outcome in ("failed", "gate stopped") for report in self.settled.values()
        ):
            self._settle(StageReport(name, "not reached", detail="the run ended before (--keep-going goes on)"))
            return True
        why = self.workspace.changes(name)
        if not why:
            self._settle(StageReport(name, "up to date"))
        elif self.workspace.restore(name, pull=self.pull):
            self._settle(StageReport(name, "restored from cache", why))
        else:
            self._start(StageReport(name, "failed", why))
        return True

    def _start(self, report: StageReport) -> None:
        name, meta = report.name, self.workspace.meta[report.name]
        gpu = meta.get("device") == "gpu"
        order = Order(
            self.workspace.command(name),
            self.devices if gpu else (),
            [self.workspace.lock_file],
            self.processes,
        )
        self.workspace.begin(name)
        self.say(f"{name}: runs ({report.reason})")
        above = [self.futures[other] for other in sorted(self.workspace.upstream[name]) if other in self.futures]
        future = run_stage.with_options(name=name, task_run_name=name).submit(
            name, float(meta.get("share", 1.0)), order, return_state=False, wait_for=above
        )
        self.running[name], self.futures[name] = report, future
        future.add_done_callback(lambda _: self.finished.put(name))

    def _finish(self, name: str) -> None:
        report = self.running.pop(name)
        result = self.futures[name].result(raise_on_failure=False)
        if isinstance(result, BaseException):
            stopped = isinstance(result, StageFailed) and result.code == GATE_STOPPED
            report.outcome, report.detail = ("gate stopped" if stopped else "failed"), str(result)
        else:
            report.seconds, report.device = result
            try:
                self.workspace.save(name)
                report.outcome = "ran"
            except FlowError as error:
                report.detail = str(error)
        self._settle(report)
        if not self.running or time.monotonic() - self.written > LOCK_SECONDS:
            self.workspace.write_lock()
            self.written = time.monotonic()

    def _settle(self, report: StageReport) -> None:
        self.settled[report.name] = report
        self.report.stages.append(report)
        if report.outcome not in ("up to date", "not reached"):
            self.say(f"{report.name}: {report.outcome}{f' in {report.seconds:.1f} s' if report.seconds else ''}")


@flow(name="repro", persist_result=False, validate_parameters=False)
def repro(
    targets: Sequence[str] = (),
    jobs: int = 0,
    devices: str = "auto",
    keep_going: bool = False,
    pull: bool = False,
    root: str = ".",
) -> dict[str, Any]:
    """Bring a DVC graph up to date, stages in parallel.

    Parameters
    ----------
    targets
        Stages or outs, with all that they depend on; none means all.
    jobs
        Stages at a time; 0 means one for each core.
    devices
        Devices for stages with ``meta: {device: gpu}``: auto, cpu:N or cuda:I,J.
    keep_going
        Go on with stages that do not depend on a failed one.
    pull
        Look for results in the DVC remote too.
    root
        Root of the repository.

    Returns
    -------
    dict
        The report, as ``--json`` prints it.

    Raises
    ------
    RunFailed
        Not every stage is done; it carries the report.
    """
    logger = get_run_logger()
    jobs = jobs or len(os.sched_getaffinity(0))
    with opened(Path(root).resolve(), targets) as workspace:
        before = workspace.metrics()
        run = Run(workspace, parse_devices(devices, jobs), keep_going, pull, lambda text: logger.info("%s", text))
        try:
            report = run.go()
        finally:
            workspace.write_lock()
            publish(run.report, before, workspace)
    if report.exit_code:
        raise RunFailed(report)
    return report.as_json()


def run_flow(jobs: int, **parameters: Any) -> dict[str, Any]:
    """Run the flow in this process with as many threads as jobs."""
    runner: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=jobs)
    result: dict[str, Any] = repro.with_options(task_runner=runner)(jobs=jobs, **parameters)
    return result
