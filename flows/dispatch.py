"""A run whose stages are sent to workers on any machine; the coordinator restores their results and keeps the books."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.deployments import run_deployment
from prefect.states import Cancelling, Crashed

from flows.errors import FlowError
from flows.exchange import pull_run, push_outs, require_remote, shared
from flows.git import Git
from flows.process import Processes
from flows.report import StageReport
from flows.repro import Run, StageFailed
from flows.workspace import Workspace

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

POLL_SECONDS = 1.0
#: A worker from which nothing was heard for so many of its heartbeats is lost.
MISSED_HEARTBEATS = 3
#: A run taken by a worker that never said its name is lost after this time.
PENDING_SECONDS = 180.0
#: A stage whose worker is lost is sent once more.
ATTEMPTS = 2


class RemoteError(FlowError):
    """A stage cannot be run elsewhere."""


class WorkersLost(RemoteError):
    """The workers that took a stage were lost, one after another."""


@dataclass(frozen=True, slots=True, eq=False)
class Errand:
    """What a stage's task needs to send it; a plain object, which Prefect neither walks into nor stores."""

    parameters: Mapping[str, Any]
    processes: Processes


@task(name="stage elsewhere", cache_policy=NO_CACHE, persist_result=False)
def send_stage(name: str, deployment: str, errand: Errand) -> tuple[float, str | None]:
    """Have a stage run by a worker; return its seconds and where it ran."""
    logger = get_run_logger()
    last = ""
    for attempt in range(ATTEMPTS):
        parameters = dict(errand.parameters)
        sent = run_deployment(deployment, parameters=parameters, flow_run_name=name, timeout=0)
        assert not isinstance(sent, Coroutine)  # that is for callers inside an event loop
        logger.info("%s: sent to %s%s", name, deployment, " once more" if attempt else "")
        run = _wait(sent, errand.processes, logger.info)
        assert run.state is not None
        if run.state.type == StateType.COMPLETED:
            facts = json.loads(run.state.message or "{}")
            return float(facts["seconds"]), facts["device"]
        if run.state.type == StateType.CANCELLED:
            raise RemoteError(f"stage {name}: its run {run.name} on {deployment} was cancelled")
        if run.state.type == StateType.FAILED:
            raise _failure(name, run)
        last = run.state.message or "crashed"
        logger.warning("%s: lost: %s", name, last)
    raise WorkersLost(f"stage {name}: {ATTEMPTS} workers of {deployment} were lost, the last one: {last}")


def _failure(name: str, run: FlowRun) -> FlowError:
    """The error that a stage's own failure would have been here."""
    message = (run.state.message if run.state else None) or ""
    try:
        facts = json.loads(message)
    except json.JSONDecodeError:
        return RemoteError(f"stage {name} on {run.labels.get('prefect.worker.name', 'a worker')}: {message}")
    return StageFailed(name, int(facts["code"]), f"{facts['detail']} (on {facts['device']})")


def _wait(run: FlowRun, processes: Processes, say: Callable[[str], None]) -> FlowRun:
    """Wait for the end of a flow run, be it that its worker is lost, or that this run is ended and takes it along."""
    heard = Heartbeats()
    with get_client(sync_client=True) as client:
        while True:
            found = client.read_flow_run(run.id)
            assert found.state is not None
            if found.state.is_final():
                return found
            if processes.ended:
                client.set_flow_run_state(run.id, Cancelling(message="its coordinator was ended"))
                raise RemoteError(f"{run.name}: this run was ended")
            if lost := heard.lost(client, found):
                say(f"{run.name}: {lost}")
                client.set_flow_run_state(run.id, Crashed(message=lost), force=True)
            time.sleep(POLL_SECONDS)


class Heartbeats:
    """When the worker of one flow run was last heard of, by this process's own clock: machines' clocks differ."""

    def __init__(self) -> None:
        self.seen: object = None
        self.since = time.monotonic()

    def lost(self, client: SyncPrefectClient, run: FlowRun) -> str | None:
        """Why the worker of a run must be taken for lost, or None."""
        state = run.state
        worker = run.labels.get("prefect.worker.name")
        if state is None or state.is_scheduled() or not run.work_pool_name:
            self._note(("waits",))
            return None
        if worker is None:
            self._note(("taken",))
            late = time.monotonic() - self.since > PENDING_SECONDS
            return "taken by a worker that never said its name" if late else None
        workers = {found.name: found for found in client.read_workers_for_work_pool(run.work_pool_name)}
        found = workers.get(str(worker))
        beat = found.last_heartbeat_time if found else None
        self._note((worker, beat))
        patience = MISSED_HEARTBEATS * ((found.heartbeat_interval_seconds if found else None) or 30)
        silent = time.monotonic() - self.since
        return f"nothing heard from worker {worker} for {silent:.0f} s" if silent > patience else None

    def _note(self, seen: object) -> None:
        if seen != self.seen:
            self.seen, self.since = seen, time.monotonic()


class RemoteRun(Run):
    """A run that sends stages to the pools by their ``meta.device``.

    Stages that workers cannot run, or whose result could not come back by the run-cache, run here.
    """

    def __init__(self, workspace: Workspace, *arguments: Any) -> None:
        super().__init__(workspace, *arguments)
        require_remote(workspace)
        git = Git(workspace.root)
        self.commit = git.run("rev-parse", "HEAD").strip()
        self.committed = Committed.at_head(git)
        if changed := [path for path in ("dvc.yaml", "params.yaml") if path in self.committed.changed]:
            raise RemoteError(
                f"{', '.join(changed)}: changed since the last commit, which is what workers run; commit the change, "
                "or run without --remote."
            )
        self.cores = len(os.sched_getaffinity(0))
        self.sent: set[str] = set()
        self.pushed: set[str] = set()

    def _restore(self, name: str) -> bool:
        pull_run(self.workspace, name)
        return self.workspace.restore(name, pull=True)

    def _start(self, report: StageReport) -> None:
        name = report.name
        if here := self._only_here(name):
            # As many at a time as there are cores, though more may be under way elsewhere.
            if len(self.running.keys() - self.sent) >= self.cores:
                self.parked[name] = report
                return
            self.say(f"{name}: runs here, since {here}")
            super()._start(report)
            return
        above = sorted(self.workspace.upstream[name])
        push_outs(self.workspace, [other for other in above if other not in self.pushed | self.sent])
        self.pushed.update(above)
        pool = "gpu" if self.workspace.meta[name].get("device") == "gpu" else "cpu"
        inputs = self.workspace.lock_entries(above)
        errand = Errand({"name": name, "commit": self.commit, "upstream": above, "inputs": inputs}, self.processes)
        self.say(f"{name}: sent to pool {pool} ({report.reason})")
        self.sent.add(name)
        futures = [self.futures[other] for other in above if other in self.futures]
        sending = send_stage.with_options(name=name, task_run_name=name)
        future = sending.submit(name, f"stage/{pool}", errand, return_state=False, wait_for=futures)
        self._started(report, future)

    def _keep(self, name: str) -> None:
        if name not in self.sent:
            super()._keep(name)
        elif not self._restore(name):
            raise RemoteError(
                f"stage {name}: ran elsewhere, but its result is not in the DVC remote under what its deps are here; "
                "a dep changed meanwhile, or workers push to another remote."
            )

    def _only_here(self, name: str) -> str | None:
        """Why a stage can run only on this machine, or None."""
        if not shared(self.workspace, name):
            return "DVC keeps no run-cache entry for it"
        pointers = [other for other in self.workspace.upstream[name] if other.endswith(".dvc")]
        own = [path for path in (*self.workspace.own_deps(name), *pointers) if not self.committed.has(path)]
        return f"{own[0]} is not in the commit as it is here" if own else None


@dataclass(frozen=True)
class Committed:
    """What lies in a working tree as it is in the commit, by paths relative to the root."""

    known: frozenset[str]
    changed: frozenset[str]

    @classmethod
    def at_head(cls, git: Git) -> Committed:
        """Compare a working tree with HEAD; files that git ignores are not known to it."""
        listed = git.run("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").split("\0")
        return cls(_with_parents(git.files("HEAD")), _with_parents(entry[3:] for entry in listed if entry))

    def has(self, path: str) -> bool:
        """Whether a file or folder is in the commit just as it lies here; nothing outside the repository is."""
        path = path.rstrip("/")
        return path in self.known and path not in self.changed


def _with_parents(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(str(part) for path in paths for part in (PurePosixPath(path), *PurePosixPath(path).parents))
