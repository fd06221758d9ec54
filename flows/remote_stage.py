"""The flow ``stage``: one stage of a graph, run by a worker for a coordinator that may be on another machine."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.checkout import checked_out
from flows.devices import Device, parse_devices
from flows.exchange import pull_outs, pull_run, push_run, require_remote
from flows.pools import DEVICES_VARIABLE
from flows.process import Processes
from flows.report import GATE_STOPPED
from flows.repro import Order, StageFailed, run_stage
from flows.worker_process import watch_worker
from flows.workspace import Workspace, opened

LOCK_FILE = "dvc.lock"


@flow(name="stage", flow_run_name="{name}", persist_result=False, result_serializer="json")
def stage(name: str, commit: str, upstream: list[str], inputs: dict[str, Any], root: str = ".") -> State[Any]:
    """Run one stage at a commit, its inputs taken from the DVC remote, its result pushed there.

    Parameters
    ----------
    name
        The stage.
    commit
        Full id of the commit whose code, dvc.yaml and params it runs with.
    upstream
        The stages and .dvc files it depends on.
    inputs
        Entries of dvc.lock of those stages: which version of their outs it reads.
    root
        A clone of the repository on this machine.

    Returns
    -------
    State
        Completed, Failed or Gate stopped; its message is JSON with outcome, seconds, device, code and last line.

    Raises
    ------
    ExchangeError
        An input is not in the DVC remote, or none is set.
    CheckoutError
        The commit cannot be fetched.
    """
    processes = Processes()

    def gone() -> None:
        processes.end()
        os._exit(1)

    # A worker that is gone is replaced: what it ran must not go on beside its replacement.
    watch_worker(gone)
    clone = Path(root).resolve()
    with checked_out(clone, commit) as tree:
        # The stage finds the modules of its commit, and not those of this clone.
        os.environ["PYTHONPATH"] = str(tree)
        _write_lock_file(tree, inputs)
        with opened(tree, [name], alone=True) as workspace:
            require_remote(workspace)
            pull_outs(workspace, upstream)
            try:
                found = _run(workspace, name, processes)
            except StageFailed as failed:
                stopped = failed.code == GATE_STOPPED
                outcome = "gate stopped" if stopped else "failed"
                message = _message(outcome=outcome, code=failed.code, detail=failed.last, device=socket.gethostname())
                return Failed(message=message, name="Gate stopped" if stopped else "Failed")
            finally:
                processes.end()
            return Completed(message=found)


def _run(workspace: Workspace, name: str, processes: Processes) -> str:
    logger = get_run_logger()
    host = socket.gethostname()
    if pull_run(workspace, name) and workspace.restore(name, pull=True):
        logger.info("%s: another worker has run it with these inputs", name)
        return _message(outcome="restored from cache", seconds=0.0, device=host)
    meta = workspace.meta[name]
    outs = workspace.written_outs(name)
    order = Order(workspace.command(name), _devices(meta), [workspace.lock_file], processes, outs=outs)
    workspace.begin(name)
    named = run_stage.with_options(name=name, task_run_name=name)
    seconds, device = named(name, float(meta.get("share", 1.0)), order)
    workspace.save(name)
    workspace.write_lock()
    push_run(workspace, name)
    return _message(outcome="ran", seconds=round(seconds, 3), device=f"{host} {device}" if device else host)


def _devices(meta: Mapping[str, Any]) -> Sequence[Device]:
    """What this worker may lease: its one GPU, whatever its index elsewhere, or the slots that stand in for GPUs."""
    return parse_devices(os.environ.get(DEVICES_VARIABLE, "auto"), 1) if meta.get("device") == "gpu" else ()


def _message(**facts: Any) -> str:
    return json.dumps(facts, ensure_ascii=False)


def _write_lock_file(tree: Path, inputs: Mapping[str, Any]) -> None:
    """The inputs' entries in place of the commit's dvc.lock: the run may be ahead of what is committed."""
    from dvc.utils.serialize import dumps_yaml

    (tree / LOCK_FILE).write_text(dumps_yaml({"schema": "2.0", "stages": dict(inputs)}), encoding="utf-8")
