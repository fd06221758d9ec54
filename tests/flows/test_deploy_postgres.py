"""A Prefect server on PostgreSQL, as several machines need it; PostgreSQL is that of Debian's packages."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.flows.conftest import Api, Server, start_server

pytestmark = pytest.mark.services
USER = "postgres"


def tool(name: str) -> str | None:
    """A program of PostgreSQL, which Debian keeps out of PATH."""
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(packaged[-1]) if packaged else None)


class Postgres:
    """A cluster in a folder of its own, reached only from this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://{USER}@127.0.0.1:{self.port}/postgres"

    def run(self, name: str, *words: str, check: bool = True) -> str:
        program = tool(name)
        assert program
        command: Sequence[str] = [program, *words]
        # PostgreSQL refuses to be root.
        demoted = {"user": USER, "group": USER} if os.getuid() == 0 else {}
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, **demoted)  # type: ignore[call-overload]
        assert not (check and run.returncode), run.stdout + run.stderr
        return str(run.stdout)

    def start(self) -> None:
        self.run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "--no-sync")
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -F"
        # -w: returns when it answers.
        program = [tool("pg_ctl"), "-D", str(self.data), "-o", options, "-l", str(self.folder / "log"), "-w", "start"]
        demoted = {"user": USER, "group": USER} if os.getuid() == 0 else {}
        subprocess.run(program, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, **demoted)  # type: ignore[call-overload]

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop", check=False)

    def query(self, statement: str) -> str:
        return self.run("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-Atc", statement).strip()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if missing := [name for name in ("initdb", "pg_ctl", "psql") if tool(name) is None]:
        pytest.skip(f"no {', '.join(missing)}: install PostgreSQL (Debian: apt-get install postgresql)")
    if os.getuid() == 0 and USER not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip(f"PostgreSQL does not run as root, and there is no user {USER}")
    # Not pytest's folder: that is closed to other users.
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    if os.getuid() == 0:
        shutil.chown(folder, USER, USER)
    cluster = Postgres(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server_on_postgres(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", postgres.url)
        found = start_server(tmp_path_factory.mktemp("prefect-on-postgres"))
    yield found
    found.stop()


def test_a_run_is_kept_in_postgresql(postgres: Postgres, server_on_postgres: Server, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    flows = [sys.executable, "-m"]
    subprocess.run([*flows, "dvc", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "dvc.yaml").write_text('{"stages": {"one": {"cmd": "echo 1 > one.txt", "outs": ["one.txt"]}}}')
    root = Path(__file__).parents[2]
    told = {**os.environ, **server_on_postgres.environment, "PYTHONPATH": str(root), "SHELL": "/bin/sh"}
    run = subprocess.run(
        [*flows, "flows", "repro"], cwd=tmp_path, env=told, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert Api(server_on_postgres.url).last_run()["state_type"] == "COMPLETED"
    kept = "select f.name, r.state_type from flow_run r join flow f on f.id = r.flow_id"
    assert postgres.query(kept) == "repro|COMPLETED"
    assert not (Path(server_on_postgres.environment["PREFECT_HOME"]) / "prefect.db").exists()
