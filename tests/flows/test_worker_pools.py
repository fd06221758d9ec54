"""Which workers a machine gets, and what a supervisor does with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from flows.devices import DeviceError
from flows.pools import ENGINE, POOLS, PoolError, worker_specs
from flows.supervisor import RESTARTS
from tests.flows.conftest import ROOT, Api
from tests.flows.workers import descendants, make_pools, online, start_workers, until


def test_each_gpu_gets_a_worker_of_its_own_that_sees_no_other() -> None:
    specs = worker_specs("gpu", host="node", environment={"CUDA_VISIBLE_DEVICES": "4,6"})
    assert [(spec.name, spec.limit, spec.environment["CUDA_VISIBLE_DEVICES"]) for spec in specs] == [
        ("node cuda:4", 1, "4"),
        ("node cuda:6", 1, "6"),
    ]
    # Seen from its worker, each is the first and only one.
    assert {spec.environment["BRAID_DEVICES"] for spec in specs} == {"cuda:0"}


def test_a_machine_without_gpus_serves_the_pool_by_cpu_slots() -> None:
    specs = worker_specs("gpu", devices="cpu:2", host="node", environment={"CUDA_VISIBLE_DEVICES": ""})
    assert [spec.name for spec in specs] == ["node cpu:0", "node cpu:1"]
    assert [dict(spec.environment) for spec in specs] == [{"CUDA_VISIBLE_DEVICES": "", "BRAID_DEVICES": "cpu:2"}] * 2


def test_the_cpu_pool_gets_one_worker_for_all_cores_that_sees_no_gpu() -> None:
    (spec,) = worker_specs("cpu", host="node")
    assert (spec.limit, spec.environment) == (len(os.sched_getaffinity(0)), {"CUDA_VISIBLE_DEVICES": ""})
    (few,) = worker_specs("cpu", host="node", limit=1)
    assert few.limit == 1


def test_whole_runs_see_every_gpu() -> None:
    (spec,) = worker_specs("runs", host="node")
    assert spec.environment == {}


def test_a_device_or_a_pool_that_is_not_there_is_refused() -> None:
    with pytest.raises(DeviceError, match="no GPU 1; 1 visible"):
        worker_specs("gpu", devices="cuda:1", environment={"CUDA_VISIBLE_DEVICES": "0"})
    with pytest.raises(PoolError, match="no pool tpu; there are gpu, cpu, runs"):
        worker_specs("tpu")


@pytest.fixture
def pools(prefect_server: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, api: Api) -> Api:
    for name, value in prefect_server.items():
        monkeypatch.setenv(name, value)
    make_pools(prefect_server)
    return api


def test_pools_are_created_once(pools: Api) -> None:
    found = {pool["name"]: pool for pool in pools.post("work_pools/filter", {})}
    assert found.keys() >= POOLS.keys()
    assert all(found[name]["type"] == "process" for name in POOLS)
    assert found["gpu"]["base_job_template"]["variables"]["properties"]["command"]["default"] == ENGINE


def test_workers_end_with_their_parent_and_have_one_name_once(
    pools: Api, prefect_server: Mapping[str, str], tmp_path: Path
) -> None:
    told = {**prefect_server, "BRAID_LEASES": str(tmp_path / "leases")}
    (tmp_path / "clone").mkdir()
    workers = start_workers(tmp_path / "clone", "gpu", "pair", told, "--devices", "cpu:2")
    workers.wait_online(pools, count=2)
    assert online(pools, "gpu", "pair") == ["pair cpu:0", "pair cpu:1"]
    second = start_workers(tmp_path / "clone", "gpu", "pair", told, "--devices", "cpu:1")
    assert second.process.wait() == 2
    assert "worker pair cpu:0 of pool gpu runs on this machine already" in " ".join(second.text.split())
    started = descendants(workers.process.pid)
    assert len(started) == 2
    assert workers.end(signal.SIGTERM) == 0
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


def test_workers_end_when_their_parent_is_killed(pools: Api, prefect_server: Mapping[str, str], tmp_path: Path) -> None:
    told = {**prefect_server, "BRAID_LEASES": str(tmp_path / "leases")}
    workers = start_workers(tmp_path, "gpu", "orphan", told, "--devices", "cpu:1")
    workers.wait_online(pools)
    (worker,) = workers.pids()
    workers.end(signal.SIGKILL)
    until(lambda: not Path(f"/proc/{worker}").exists(), "the worker ended")


def test_a_worker_that_keeps_dying_is_given_up(pools: Api, tmp_path: Path) -> None:
    # A Python without its library dies at once.
    script = (
        "from pathlib import Path; from flows.pools import WorkerSpec; from flows.supervisor import Supervisor; "
        "Supervisor([WorkerSpec('dying', 'cpu', 1, {'PYTHONHOME': '/nowhere'})], Path.cwd(), print).run()"
    )
    told = {**os.environ, "PYTHONPATH": str(ROOT), "BRAID_LEASES": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=told, capture_output=True, text=True)
    assert run.returncode == 1
    assert f"died {RESTARTS + 1} times" in run.stderr
    assert run.stdout.count("worker dying: pool cpu") == RESTARTS + 1
