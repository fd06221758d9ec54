"""The flow ``repro``: a DVC graph brought up to date, stages in parallel, each with its reason."""

from __future__ import annotations

import heapq
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from prefect import flow, get_run_logger
from prefect.settings import get_current_settings
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.artifacts import try_publishing
from flows.devices import POLL_SECONDS, Device, Lease, parse_devices, try_lease
from flows.errors import FlowError
from flows.plan import heights, in_order
from flows.prefect_server import answers, without_server
from flows.process import Processes
from flows.report import DONE, GATE_STOPPED, STOPPED, RunReport, StageReport
from flows.stage_task import Order, StageFailed, run_stage
from flows.workspace import Workspace, opened

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture

__all__ = ["Order", "Run", "RunFailed", "StageFailed", "repro", "run_flow", "run_in", "run_stage"]

#: Stages at a time that a run waits for elsewhere; the pools' workers say how many really run.
REMOTE_JOBS = 64
#: Within this time a run ends after a signal whose exception was lost.
SIGNAL_SECONDS = 1.0


class RunFailed(FlowError):
    """A run in which not every stage is done; its report says which."""

    def __init__(self, report: RunReport) -> None:
        self.report = report
        self.exit_code = report.exit_code
        super().__init__(report.counts())


class Run:
    """The state of one run over a workspace; :meth:`go` drives it to its end."""

    def __init__(
        self,
        workspace: Workspace,
        devices: Sequence[Device],
        keep_going: bool,
        pull: bool,
        say: Callable[[str], None],
        jobs: int = sys.maxsize,
    ) -> None:
        self.workspace, self.devices, self.keep_going, self.pull, self.say = workspace, devices, keep_going, pull, say
        self.jobs = jobs
        self.report = RunReport()
        self.settled: dict[str, StageReport] = {}
        self.futures: dict[str, PrefectFuture[Any]] = {}
        self.running: dict[str, StageReport] = {}
        self.leases: dict[str, Lease] = {}
        self.finished: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.processes = Processes()
        # Of the stages that could start, those with most below them come first.
        height = heights(workspace)
        self.rank = {name: (-height[name], place) for place, name in enumerate(in_order(workspace))}
        self.missing = {name: len(above) for name, above in workspace.upstream.items()}
        self.below: dict[str, list[str]] = {name: [] for name in workspace.upstream}
        for name, above in workspace.upstream.items():
            for other in above:
                self.below[other].append(name)
        self.ready = [(self.rank[name], name) for name, count in self.missing.items() if not count]
        heapq.heapify(self.ready)
        #: Stages that must run and wait for a device.
        self.parked: dict[str, StageReport] = {}
        self.told: set[str] = set()
        #: Raises what a signal to end this run raised already, somewhere where it may have been swallowed.
        self.end_again: Callable[[], None] | None = None

    def go(self) -> RunReport:
        """Settle every stage: those that can be, at once; the others when their commands end."""
        try:
            while self.ready or self.parked or self.running:
                self._fill()
                if self.running or self.parked:
                    # A device may be freed by another process, of which nobody here is told.
                    with suppress(queue.Empty):
                        self._finish(self.finished.get(timeout=POLL_SECONDS if self.parked else SIGNAL_SECONDS))
                if self.end_again is not None:
                    self.end_again()
        except BaseException as error:
            self.processes.end()
            self._abandon(f"the run ended: {error!r}" if isinstance(error, Exception) else "interrupted")
            raise
        return self.report

    @property
    def complete(self) -> bool:
        """Whether it is known of every stage what became of it."""
        return len(self.settled) == len(self.workspace.upstream)

    def _fill(self) -> None:
        """Settle and start stages until as many run as may, or none is left that could."""
        for name in list(self.parked):
            if len(self.running) < self.jobs:
                self._attempt(self.parked.pop(name), self._start)
        while self.ready and len(self.running) < self.jobs:
            self._decide(heapq.heappop(self.ready)[1])

    def _decide(self, name: str) -> None:
        """Settle or start a stage whose upstream is settled."""
        blocked = sorted(other for other in self.workspace.upstream[name] if self.settled[other].outcome not in DONE)
        if blocked:
            self._settle(StageReport(name, "not reached", detail=f"waits for {', '.join(blocked)}"))
        elif not self.keep_going and any(report.outcome in STOPPED for report in self.report.stages):
            self._settle(StageReport(name, "not reached", detail="the run ended before (--keep-going goes on)"))
        else:
            self._attempt(StageReport(name, "failed"), self._bring)

    def _attempt(self, report: StageReport, action: Callable[[StageReport], None]) -> None:
        try:
            action(report)
        except FlowError as error:
            self._settle(replace(report, detail=str(error)))

    def _bring(self, report: StageReport) -> None:
        """Bring a stage up to date without running its command, else start it."""
        name = report.name
        report.why = self.workspace.changes(name)
        if not report.why:
            self._settle(replace(report, outcome="up to date"))
        elif not self.workspace.has_command(name):
            noted = self.workspace.record(name, pull=self.pull)
            self._settle(replace(report, outcome="ran" if noted else "restored from cache"))
        else:
            if self._restore(name):
                self._settle(replace(report, outcome="restored from cache"))
            else:
                report.why += self.workspace.corrupt(name)
                self._start(report)

    def _restore(self, name: str) -> bool:
        return self.workspace.restore(name, pull=self.pull)

    def _start(self, report: StageReport) -> None:
        """Start a stage's command, where a device for it is free; else park it."""
        name, meta = report.name, self.workspace.meta[report.name]
        share = float(meta.get("share", 1.0))
        if meta.get("device") == "gpu":
            lease = try_lease(self.devices, share)
            if lease is None:
                if name not in self.told:
                    self.say(f"{name}: waits for a device")
                self.told.add(name)
                self.parked[name] = report
                return
            self.leases[name], report.device = lease, str(lease.device)
        lease = self.leases.get(name)
        self.workspace.begin(name)
        order = Order(
            self.workspace.command(name),
            (),
            [self.workspace.lock_file],
            self.processes,
            lease,
            self.workspace.written_outs(name),
        )
        self.say(f"{name}: runs ({report.reason})")
        above = [self.futures[other] for other in sorted(self.workspace.upstream[name]) if other in self.futures]
        future = run_stage.with_options(name=name, task_run_name=name).submit(
            name, share, order, return_state=False, wait_for=above
        )
        self._started(report, future)

    def _started(self, report: StageReport, future: PrefectFuture[Any]) -> None:
        """Take note of a task that has been submitted."""
        name = report.name
        self.running[name], self.futures[name] = report, future
        future.add_done_callback(lambda _: self.finished.put(name))

    def _finish(self, name: str) -> None:
        report = self.running.pop(name)
        result = self.futures[name].result(raise_on_failure=False)
        try:
            if isinstance(result, BaseException):
                self.workspace.give_up(name)
                stopped = isinstance(result, StageFailed) and result.code == GATE_STOPPED
                report.outcome, report.detail = ("gate stopped" if stopped else "failed"), str(result)
                report.seconds = getattr(result, "seconds", 0.0)
            else:
                report.seconds, report.device = result
                self._keep(name)
                self.workspace.write_lock()
                report.outcome = "ran"
        except FlowError as error:
            report.detail = str(error)
        self._settle(report)

    def _keep(self, name: str) -> None:
        """Keep the result of a stage whose command ended well."""
        self.workspace.save(name)

    def _settle(self, report: StageReport) -> None:
        if report.name in self.leases:
            self.leases.pop(report.name).close()
        self.settled[report.name] = report
        self.report.stages.append(report)
        for name in self.below[report.name]:
            self.missing[name] -= 1
            if not self.missing[name]:
                heapq.heappush(self.ready, (self.rank[name], name))
        if report.outcome not in ("up to date", "not reached"):
            self.say(f"{report.name}: {report.outcome}{f' in {report.seconds:.1f} s' if report.seconds else ''}")

    def _abandon(self, why: str) -> None:
        """Say of every stage that is not settled what becomes of it when the run ends now."""
        for name, report in self.running.items():
            self.workspace.give_up(name)
            self._settle(replace(report, detail=why))
        for name in self.workspace.upstream:
            if name not in self.settled:
                self._settle(StageReport(name, "not reached", detail=why))


# Prefect keeps what a failed flow raised whatever persist_result says, and as a pickle unless told otherwise.
@flow(name="repro", persist_result=False, result_serializer="json", validate_parameters=False)
def repro(
    targets: Sequence[str] = (),
    jobs: int = 0,
    devices: str = "auto",
    keep_going: bool = False,
    pull: bool = False,
    remote: bool = False,
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
    remote
        Send stages to the workers of the pools gpu and cpu, on any machine; results come back by the DVC remote.
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
    jobs = jobs or (REMOTE_JOBS if remote else len(os.sched_getaffinity(0)))
    held = _held.get()
    with nullcontext(held.workspace) if held else opened(Path(root).resolve(), targets) as workspace:

        def say(text: str) -> None:
            logger.info("%s", text)

        workspace.say = say
        if pull:
            workspace.fetch_run_cache()
        before = workspace.metrics()
        run = _kind(remote)(workspace, parse_devices(devices, jobs), keep_going, pull, say, jobs)
        if held:
            held.run = run
        try:
            with heard(run):
                report = run.go()
        finally:
            try:
                workspace.write_lock()
            finally:
                published = try_publishing(run.report, before, workspace)
                if held and not published:
                    held.server_lost = True
                    held.rest.enter_context(without_server())
    if report.exit_code:
        raise RunFailed(report)
    return report.as_json()


@contextmanager
def heard(run: Run) -> Iterator[None]:
    """Let no SIGINT or SIGTERM be lost: what it raises in the middle of a log call is swallowed there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {int(number): handler for number, handler in found.items() if callable(handler)}

    def hear(number: int, frame: FrameType | None) -> None:
        run.end_again = partial(before[number], number, None)
        before[number](number, frame)

    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kind(remote: bool) -> type[Run]:
    if not remote:
        return Run
    from flows.dispatch import RemoteRun

    return RemoteRun


@dataclass(eq=False)
class _Held:
    """A workspace that is open already, and the run that took place in it."""

    workspace: Workspace
    run: Run | None = None
    server_lost: bool = False
    #: What holds from the moment on when the server is lost, until the flow is left.
    rest: ExitStack = field(default_factory=ExitStack)


_held: ContextVar[_Held | None] = ContextVar("held", default=None)


def run_flow(jobs: int, **parameters: Any) -> dict[str, Any]:
    """Run the flow in this process with as many threads as jobs."""
    runner: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=jobs)
    result: dict[str, Any] = repro.with_options(task_runner=runner)(jobs=jobs, **parameters)
    return result


def run_in(workspace: Workspace, jobs: int, **parameters: Any) -> tuple[RunReport, bool]:
    """As :func:`run_flow`, in a workspace that is open already, and whatever becomes of Prefect's server.

    Returns
    -------
    RunReport
        What became of each stage, be it done or not.
    bool
        Whether the server was lost on the way. It spoils nothing: the stages finish and their results are kept.

    Raises
    ------
    FlowError
        Prefect's server cannot be reached before the run begins.
    """
    url = get_current_settings().api.url
    if url and not answers(url):
        raise FlowError(
            f"Prefect's server at {url} does not answer. Start it (prefect server start), or unset PREFECT_API_URL "
            "for a server of this run's own."
        )
    held = _Held(workspace)
    token = _held.set(held)
    try:
        run_flow(jobs, root=str(workspace.root), **parameters)
    except FlowError:
        if held.run is None or not held.run.complete:
            raise
    except Exception as error:
        if held.run is None or not held.run.complete:
            raise FlowError(f"Prefect: {' '.join(str(error).split()) or type(error).__name__}") from error
        held.server_lost = True
    finally:
        held.rest.close()
        _held.reset(token)
    assert held.run is not None
    return held.run.report, held.server_lost
