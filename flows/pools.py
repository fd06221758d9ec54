"""Work pools and the workers of one machine: what runs where, under which name, and seeing which device.

A Prefect process worker hands its own environment to every run, so a GPU gets a worker of its own that sees only this
GPU and takes one run at a time.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flows.devices import MASK, ORDER, Device, parse_devices
from flows.errors import FlowError

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

#: Pool -> what its workers run. Whole runs have a pool of their own: a run that waits for its stages must not hold the
#: place that one of them needs.
POOLS = {
    "gpu": "stages with meta: {device: gpu}; one worker for each device",
    "cpu": "all other stages; as many at a time as there are cores",
    "runs": "whole runs: nightly, on-data-change, rerun, backfill",
}
#: Runs at a time on one machine; those on the same workspace wait for each other.
RUNS = 4
#: Which devices the stages of a worker may lease, as ``--devices`` has it.
DEVICES_VARIABLE = "BRAID_DEVICES"
#: Without it Prefect first starts a process that prepares the working folder, and only then this one: three seconds.
ENGINE = "python -m prefect.engine"
#: The clone a worker works in, read by the pull step of prefect.yaml.
ROOT_VARIABLE = "BRAID_ROOT"


class PoolError(FlowError):
    """A pool is not what it must be."""

    exit_code = 2


@dataclass(frozen=True)
class WorkerSpec:
    """One worker process: its name, its pool, runs at a time, and what it sees beyond the environment."""

    name: str
    pool: str
    limit: int
    environment: Mapping[str, str] = field(default_factory=dict)


def worker_specs(
    pool: str,
    *,
    devices: str = "auto",
    limit: int = 0,
    host: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> list[WorkerSpec]:
    """The workers that serve a pool on this machine.

    Parameters
    ----------
    pool
        gpu: one worker for each device, one run at a time; cpu, runs: one worker.
    devices
        For gpu: auto, cpu:N or cuda:I,J, see :func:`flows.devices.parse_devices`.
    limit
        Runs at a time of a worker for cpu or runs; 0 means one for each core, or four whole runs.
    host
        How this machine is called in the workers' names; its host name where None.
    environment
        Where an outer CUDA_VISIBLE_DEVICES is read from.
    """
    host = host or socket.gethostname()
    if pool == "gpu":
        found = parse_devices(devices, 1, environment)
        return [
            WorkerSpec(f"{host} {device.kind}:{device.identity}".replace("/", "-"), pool, 1, _sees(device, len(found)))
            for device in found
        ]
    if pool == "cpu":
        return [WorkerSpec(f"{host} cpu", pool, limit or len(os.sched_getaffinity(0)), {MASK: ""})]
    if pool == "runs":
        return [WorkerSpec(f"{host} runs", pool, limit or RUNS)]
    raise PoolError(f"no pool {pool}; there are {', '.join(POOLS)}.")


def _sees(device: Device, count: int) -> dict[str, str]:
    """Variables by which a worker and what it runs sees one device only."""
    if device.kind == "cpu":
        # A slot that stands in for a GPU: any of them is leased, since all are alike.
        return {MASK: "", DEVICES_VARIABLE: f"cpu:{count}"}
    # nvidia-smi counts by bus, CUDA by speed: the index must mean the same device to both.
    return {MASK: device.identity, ORDER: "PCI_BUS_ID", DEVICES_VARIABLE: "cuda:0"}


def ensure_pools(names: Sequence[str] = tuple(POOLS)) -> None:
    """Create the pools that the server lacks; leave the others as they are.

    Raises
    ------
    PoolError
        A pool exists with another type than ``process``, so its workers are not started from here.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
    from prefect.workers.process import ProcessWorker

    with get_client(sync_client=True) as client:
        for name in names:
            try:
                found = client.read_work_pool(name)
            except ObjectNotFound:
                template = ProcessWorker.get_default_base_job_template()
                template["variables"]["properties"]["command"]["default"] = ENGINE
                pool = WorkPoolCreate(name=name, description=POOLS[name], type="process", base_job_template=template)
                try:
                    client.create_work_pool(pool)
                except ObjectAlreadyExists:  # by another worker, this moment
                    continue
            else:
                if found.type != "process":
                    raise PoolError(
                        f"pool {name} is of type {found.type}; start its workers with `prefect worker start --pool "
                        f"{name}`, see docs/orchestration.md."
                    )


def runs_of_worker(client: SyncPrefectClient, worker: str, pool: str) -> list[FlowRun]:
    """Flow runs that a worker has taken and that have not ended."""
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        WorkPoolFilter,
        WorkPoolFilterName,
    )
    from prefect.client.schemas.objects import StateType

    going = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=going))),
        work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
    )
    return [run for run in found if run.labels.get("prefect.worker.name") == worker]


def mark_lost(worker: str, pool: str) -> int:
    """Say of every run of a worker that is gone that it crashed, so that nobody waits for it; return how many."""
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    with get_client(sync_client=True) as client:
        lost = runs_of_worker(client, worker, pool)
        for run in lost:
            client.set_flow_run_state(run.id, Crashed(message=f"its worker {worker} died"), force=True)
    return len(lost)
