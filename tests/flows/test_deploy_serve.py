"""`serve` and `stop` on a real machine: this one; and the deployments of prefect.yaml in a real server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import background
from flows.serving import NoServer, Service, served_url, use_server
from tests.flows.conftest import ROOT, Api
from tests.flows.workers import children

ENVIRONMENT = {"PYTHONPATH": str(ROOT), "SHELL": "/bin/sh", "COLUMNS": "500"}


def flows(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    told = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    told |= ENVIRONMENT | {"BRAID_LEASES": str(root / "leases")}
    return subprocess.run(
        [sys.executable, "-m", "flows", *words], cwd=root, env=told, capture_output=True, text=True, check=False
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A project that is served, and what `serve` said."""
    root = tmp_path_factory.mktemp("served")
    (root / "prefect.yaml").write_text((ROOT / "prefect.yaml").read_text())
    try:
        run = flows(root, "serve", "--port", str(free_port()), "--devices", "cpu:1", "--pools", "cpu")
        assert run.returncode == 0, run.stdout + run.stderr
        yield root, run.stdout
    finally:
        flows(root, "stop")


def test_serve_twice_is_harmless_and_stop_ends_what_it_started(served: tuple[Path, str]) -> None:
    root, said = served
    url = served_url(root)
    assert url
    assert f"the UI: {url.removesuffix('/api')}" in said
    before = background.read(Service(root).pids)
    assert set(before) == {"server", "worker-cpu"}
    again = flows(root, "serve", "--port", str(free_port()), "--devices", "cpu:1", "--pools", "cpu")
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count("runs already") == 2
    assert background.read(Service(root).pids) == before
    _deployments_are_those_of_prefect_yaml(Api(url))
    # A bystander, of the same name as a worker, lives on.
    bystander = subprocess.Popen([sys.executable, "-c", "input()", "flows.worker_process"], stdin=subprocess.PIPE)
    started = [*before.values(), *filter(None, map(background.identify, children(before["worker-cpu"].pid)))]
    assert len(started) == 3
    stopped = flows(root, "stop")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert not [process for process in started if process.alive()]
    assert bystander.poll() is None
    bystander.communicate()
    assert served_url(root) is None
    assert "nothing runs here" in flows(root, "stop").stdout


def _deployments_are_those_of_prefect_yaml(api: Api) -> None:
    found = {deployment["name"]: deployment for deployment in api.post("deployments/filter", {})}
    assert set(found) == {"nightly", "on-data-change", "rerun", "backfill", "cpu", "gpu"}
    schedules = {name: [s["slug"] for s in deployment["schedules"]] for name, deployment in found.items()}
    assert schedules["nightly"] == ["nightly"]
    assert schedules["on-data-change"] == ["every-ten-minutes"]
    collisions = {
        name: (deployment["global_concurrency_limit"]["limit"], deployment["concurrency_options"]["collision_strategy"])
        for name, deployment in found.items()
        if deployment["concurrency_options"]
    }
    assert collisions == {
        "nightly": (1, "CANCEL_NEW"),
        "on-data-change": (1, "CANCEL_NEW"),
        "rerun": (1, "ENQUEUE"),
        "backfill": (1, "ENQUEUE"),
    }
    pools = {name: deployment["work_pool_name"] for name, deployment in found.items()}
    assert pools == {
        **dict.fromkeys(("nightly", "on-data-change", "rerun", "backfill"), "runs"),
        "cpu": "cpu",
        "gpu": "gpu",
    }


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = flows(tmp_path, "serve", "--port", str(port), "--pools", "")
    assert run.returncode == 1
    assert f"port {port} of 127.0.0.1: Address already in use" in run.stderr


def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = background.identify(process.pid)
    assert found
    assert found.alive()
    earlier = background.Process(found.pid, found.started - 1, found.boot)
    other_boot = background.Process(found.pid, found.started, "another boot")
    background.end([earlier, other_boot], patience=0.1)
    assert process.poll() is None
    background.write(tmp_path / "pids", {"one": found})
    assert background.read(tmp_path / "pids") == {"one": found}
    process.communicate()
    assert not found.alive()


def test_a_server_is_found_only_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    service = Service(tmp_path)
    service.folder.mkdir()
    service.settings.write_text(json.dumps({"url": "http://127.0.0.1:1/api", "mark": "0"}))
    background.write(service.pids, {"server": background.Process(os.getpid(), 0, "before")})
    assert served_url(tmp_path) is None
    use_server(tmp_path, needed=False)
    assert "PREFECT_API_URL" not in os.environ
    with pytest.raises(NoServer, match="make serve"):
        use_server(tmp_path, needed=True)
