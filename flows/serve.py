"""One machine that serves it all: a Prefect server, workers for every pool, and the deployments of prefect.yaml."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from flows import background
from flows.background import MARK, Process
from flows.errors import FlowError
from flows.pools import POOLS, ensure_pools
from flows.serving import Service
from flows.supervisor import PACKAGE

PORT = 4200
#: Allowance for a busy machine until the server, or the workers, answer.
READY_SECONDS = 120.0
STOP_SECONDS = 30.0
DATABASE_VARIABLE = "PREFECT_API_DATABASE_CONNECTION_URL"


class ServeError(FlowError):
    """The services cannot be started, or did not come up."""


def serve(
    root: Path,
    *,
    port: int = PORT,
    address: str = "127.0.0.1",
    devices: str = "auto",
    pools: Sequence[str] = tuple(POOLS),
    say: Callable[[str], None] = print,
) -> str:
    """Start what does not run yet of server, deployments and workers; return the address of the UI.

    Parameters
    ----------
    root
        The project.
    port, address
        Where the server listens.
    devices
        For the workers of pool gpu.
    pools
        Pools that this machine serves.
    say
        Called with one line for each thing that is started or runs already.

    Raises
    ------
    ServeError
        The port is taken, or a process died or did not answer within ``READY_SECONDS``; the message ends with its log.
    """
    service = Service(root)
    with service.alone():
        running = {name: process for name, process in background.read(service.pids).items() if process.alive()}
        if "server" not in running:
            # Workers of a server that is gone speak to nobody.
            background.end(running.values(), STOP_SECONDS)
            running = {}
            _write_settings(service, address, port)
        settings = json.loads(service.settings.read_text())
        url, mark = settings["url"], settings["mark"]
        environment = {**_environment(service, url), MARK: mark}

        def start(name: str, words: Sequence[str], **more: str) -> None:
            if name in running:
                say(f"{name}: runs already, pid {running[name].pid}")
                return
            running[name] = background.start([sys.executable, *words], root, environment | more, service.log(name))
            background.write(service.pids, running)
            say(f"{name}: started, pid {running[name].pid}, log {service.log(name).relative_to(root)}")

        if "server" not in running:
            _refuse_taken_port(address, port)
        words = ["-m", "prefect", "server", "start", "--host", address, "--port", str(port)]
        start("server", words, **{DATABASE_VARIABLE: _database(service)})
        _wait(lambda: _healthy(url), "server", running["server"], service)
        os.environ["PREFECT_API_URL"] = url
        if pools:
            ensure_pools()
            deploy(root, environment, service.log("deploy"))
            say("deployments: those of prefect.yaml")
        for pool in pools:
            extra = ["--devices", devices] if pool == "gpu" else []
            start(f"worker-{pool}", ["-m", "flows", "worker", "--pool", pool, *extra])
        for pool in pools:
            name = f"worker-{pool}"
            _wait(lambda pool=pool: _served(pool), name, running[name], service)  # type: ignore[misc]
        ui = str(url).removesuffix("/api")
        say(f"the UI: {ui}")
        return ui


def stop(root: Path, say: Callable[[str], None] = print) -> int:
    """End what :func:`serve` started, with all its descendants; return how many processes that were."""
    service = Service(root)
    if not service.folder.is_dir():
        say("nothing runs here")
        return 0
    with service.alone():
        known = background.read(service.pids)
        running = {name: process for name, process in known.items() if process.alive()}
        # Workers first: they still tell the server what becomes of their runs.
        for name, process in sorted(running.items(), key=lambda named: named[0] == "server"):
            background.end([process], STOP_SECONDS)
            say(f"{name}: ended, pid {process.pid}")
        left: list[Process] = []
        if service.settings.is_file():
            left = background.marked(json.loads(service.settings.read_text())["mark"])
            background.end(left, STOP_SECONDS)
            if left:
                say(f"{len(left)} more that these had started: ended")
        service.pids.unlink(missing_ok=True)
        if not running and not left:
            say("nothing runs here")
        return len(running) + len(left)


def deploy(root: Path, environment: dict[str, str], log: Path) -> None:
    """Apply every deployment of prefect.yaml, asking nothing.

    Raises
    ------
    ServeError
        Prefect refuses one; its words are in the message.
    """
    words = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    told = {**os.environ, **environment, "PYTHONPATH": str(PACKAGE)}
    run = subprocess.run(words, cwd=root, env=told, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(run.stdout + run.stderr)
    if run.returncode:
        raise ServeError(f"prefect deploy --all failed: {(run.stdout + run.stderr).strip()[-1500:]}")


def _write_settings(service: Service, address: str, port: int) -> None:
    host = "127.0.0.1" if address == "0.0.0.0" else address
    settings = {"url": f"http://{host}:{port}/api", "mark": uuid.uuid4().hex}
    service.settings.write_text(json.dumps(settings, indent=2) + "\n")


def _environment(service: Service, url: str) -> dict[str, str]:
    """What server and workers are told beyond the environment."""
    return {
        "PREFECT_HOME": str(service.folder),
        "PREFECT_API_URL": url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _database(service: Service) -> str:
    """The database named in the environment, such as a PostgreSQL; else a file in the project."""
    return os.environ.get(DATABASE_VARIABLE) or f"sqlite+aiosqlite:///{service.folder / 'prefect.db'}"


def _refuse_taken_port(address: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise ServeError(f"port {port} of {address}: {error.strerror}; choose another with --port.") from None


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def _served(pool: str) -> bool:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return any(worker.status == "ONLINE" for worker in client.read_workers_for_work_pool(pool))


def _wait(ready: Callable[[], bool], name: str, process: Process, service: Service) -> None:
    until = time.monotonic() + READY_SECONDS
    while not ready():
        late = time.monotonic() > until
        if late or not process.alive():
            log = service.log(name)
            what = f"does not answer after {READY_SECONDS:.0f} s" if late else "ended"
            tail = log.read_text(errors="replace").strip()[-1500:]
            raise ServeError(f"{name} {what}. {log.relative_to(service.root)} ends with: {tail}")
        time.sleep(0.3)
