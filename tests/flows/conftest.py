"""A real Prefect server for a session, small real git and DVC repositories, and quick ``python -m flows`` in them."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
START_SECONDS = 120
#: Longest that one run of a small graph may take on a busy machine; only a test that hangs gets there.
RUN_SECONDS = 100
PRCTL = ctypes.CDLL(None).prctl
NUMBERS = itertools.count()


@dataclass
class Server:
    """A Prefect server in a process of its own, which a test may kill."""

    environment: dict[str, str]
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return self.environment["PREFECT_API_URL"]

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def end_with_parent() -> None:
    """A test session that is killed leaves no server behind."""
    PRCTL(1, signal.SIGKILL, 0, 0, 0)


def start_server(home: Path) -> Server:
    """A server with an empty database in a folder, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "DO_NOT_TRACK": "1",
    }
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--port", str(port), "--no-ui"],
            env={**os.environ, **environment, "PREFECT_LOGGING_SERVER_LEVEL": "WARNING"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    server = Server(environment, process)
    # curl waits and asks again on its own: no test sleeps.
    asked = subprocess.run(
        [
            *("curl", "-sf", "-o", "/dev/null", "--retry", str(START_SECONDS), "--retry-delay", "1"),
            *("--retry-connrefused", f"{server.url}/health"),
        ],
        check=False,
    )
    if asked.returncode or process.poll() is not None:
        server.stop()
        pytest.fail(f"no Prefect server: {(home / 'server.log').read_text()[-2000:]}")
    return server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The session's Prefect server."""
    found = start_server(tmp_path_factory.mktemp("prefect"))
    yield found
    found.stop()


@pytest.fixture(scope="session")
def prefect_server(server: Server) -> dict[str, str]:
    """Variables that make a process use the session's Prefect server."""
    return server.environment


@dataclass
class Started:
    """A ``python -m flows`` that runs."""

    pid: int
    out: Path
    err: Path
    _fifo: Any

    def wait(self) -> Finished:
        """Its end."""
        return Finished(self.wait_code(), self.out.read_text(), self.err.read_text())

    def wait_code(self) -> int:
        with self._fifo:
            return int(self._fifo.readline())

    def await_error(self, word: str) -> None:
        """Until a word stands in what it wrote to stderr."""
        reads = f"timeout {RUN_SECONDS} tail -n +1 -f {self.err} | grep -m 1 -q '{word}'"
        subprocess.run(["bash", "-c", reads], check=True)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def signal_group(self, number: int) -> None:
        os.killpg(self.pid, number)


@dataclass(frozen=True)
class Finished:
    """How a ``python -m flows`` ended."""

    code: int
    out: str
    err: str

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        """The report by stage."""
        return {stage["stage"]: stage for stage in json.loads(self.out)["stages"]}

    @property
    def outcomes(self) -> dict[str, str]:
        return {name: stage["outcome"] for name, stage in self.stages.items()}

    def why(self, name: str) -> list[tuple[str, str, str | None, str | None]]:
        return [(w["what"], w["name"], w["old"], w["new"]) for w in self.stages[name]["why"]]


class ForkServer:
    """Starts ``python -m flows`` without its seconds of imports; a process of its own all the same."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
            env={**os.environ, **environment, "PYTHONPATH": str(ROOT), "COLUMNS": "300", "SHELL": "/bin/sh"},
            stdin=subprocess.PIPE,
            text=True,
        )

    def start(self, cwd: Path, words: tuple[str, ...], environment: Mapping[str, str]) -> Started:
        base = self.folder / str(next(NUMBERS))
        paths = {name: f"{base}.{name}" for name in ("out", "err", "fifo")}
        os.mkfifo(paths["fifo"])
        Path(paths["err"]).touch()
        request = {"words": words, "cwd": str(cwd), "environment": dict(environment), **paths}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        fifo = Path(paths["fifo"]).open()  # noqa: SIM115
        return Started(int(fifo.readline()), Path(paths["out"]), Path(paths["err"]), fifo)

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="session")
def fork_server(prefect_server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    found = ForkServer(prefect_server, tmp_path_factory.mktemp("runs"))
    yield found
    found.stop()


@dataclass
class Project:
    """A git and DVC repository with a graph of shell stages."""

    root: Path
    forks: ForkServer
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, **files: str) -> None:
        """Files by name, ``_`` for each dot."""
        for name, text in files.items():
            self.file(name.replace("_", "."), text)

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def graph(self, **stages: Mapping[str, Any]) -> None:
        """Write dvc.yaml; JSON is YAML."""
        self.file("dvc.yaml", json.dumps({"stages": stages}))

    def start(self, *words: str, **environment: str) -> Started:
        return self.forks.start(self.root, ("repro", "--json", *words), {**self.environment, **environment})

    def repro(self, *words: str, **environment: str) -> Finished:
        """Run to its end ``python -m flows repro --json``."""
        return self.start(*words, **environment).wait()

    def dvc(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dvc", *words]
        variables = {**os.environ, "SHELL": "/bin/sh", "COLUMNS": "300"}
        found = subprocess.run(command, cwd=self.root, env=variables, capture_output=True, text=True, check=False)
        assert not (check and found.returncode), found.stdout + found.stderr
        return found

    def assert_clean(self) -> None:
        assert "up to date" in self.dvc("status").stdout

    def fifo(self, name: str) -> Path:
        os.mkfifo(self.root / name)
        return self.root / name


@pytest.fixture(scope="session")
def empty_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `git init` and `dvc init` write, to be copied."""
    root = tmp_path_factory.mktemp("empty")
    for command in (["git", "init", "-q"], [sys.executable, "-m", "dvc", "init", "-q"]):
        subprocess.run(command, cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture
def make_project(empty_repository: Path, fork_server: ForkServer, tmp_path: Path) -> Callable[[str], Project]:
    """A builder of repositories by name."""

    def make(name: str) -> Project:
        root = tmp_path / name
        shutil.copytree(empty_repository, root)
        return Project(root, fork_server, {"BRAID_LEASES": str(tmp_path / "leases")})

    return make


@pytest.fixture
def project(make_project: Callable[[str], Project]) -> Project:
    return make_project("project")


@dataclass(frozen=True)
class Api:
    """What a Prefect server says, read through its HTTP API."""

    url: str

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def last_run(self) -> dict[str, Any]:
        found: dict[str, Any] = self.post("flow_runs/filter", {"limit": 1, "sort": "START_TIME_DESC"})[0]
        return found

    def of_run(self, what: str, run: Mapping[str, Any], **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.post(f"{what}/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}, **more})
        return found

    def artifacts(self, run: Mapping[str, Any]) -> dict[str, str]:
        return {artifact["key"]: artifact["data"] for artifact in self.of_run("artifacts", run)}

    def logs(self, run: Mapping[str, Any]) -> list[dict[str, Any]]:
        body = {"logs": {"flow_run_id": {"any_": [run["id"]]}}, "limit": 200}
        found: list[dict[str, Any]] = self.post("logs/filter", body)
        return found


@pytest.fixture
def api(prefect_server: dict[str, str]) -> Api:
    return Api(prefect_server["PREFECT_API_URL"])
