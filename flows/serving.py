"""Which Prefect server this project uses: one named by the user, or that of ``make serve``; imports no Prefect."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flows import background
from flows.errors import FlowError

#: Folder in the project, ignored by git: database, logs, pids.
FOLDER = ".prefect"
URL_VARIABLE = "PREFECT_API_URL"


class NoServer(FlowError):
    """Something needs a Prefect server that stays, and there is none."""

    exit_code = 2


@dataclass(frozen=True)
class Service:
    """Where the services of a project keep their things."""

    root: Path

    @property
    def folder(self) -> Path:
        """Database, logs and pids."""
        return self.root / FOLDER

    @property
    def pids(self) -> Path:
        """Processes by name."""
        return self.folder / "processes.json"

    @property
    def settings(self) -> Path:
        """Address of the server and the mark of its processes."""
        return self.folder / "serve.json"

    def log(self, name: str) -> Path:
        """Where a process writes what it says."""
        return self.folder / "logs" / f"{name}.log"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second ``serve`` or ``stop`` out meanwhile."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "serve.lock").open("a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def served_url(root: Path) -> str | None:
    """Address of the API of the server that ``serve`` started for a project, if it runs; starts and imports nothing."""
    service = Service(root)
    server = background.read(service.pids).get("server")
    if server is None or not server.alive() or not service.settings.is_file():
        return None
    return str(json.loads(service.settings.read_text())["url"])


def use_server(root: Path, *, needed: bool) -> None:
    """Make this process use the server of ``make serve``, where that runs and the user has named no other.

    Parameters
    ----------
    root
        The project.
    needed
        Refuse to go on with a temporary server of this process's own.

    Raises
    ------
    NoServer
        A server is needed, and none is known.
    """
    if os.environ.get(URL_VARIABLE):
        return
    url = served_url(root)
    if url is None and needed:
        url = _profile_url()
    if url is not None:
        os.environ[URL_VARIABLE] = url
    elif needed:
        raise NoServer(
            f"no Prefect server: run `make serve` here, or set {URL_VARIABLE} to that of another machine, such as "
            "http://HOST:4200/api."
        )


def _profile_url() -> str | None:
    """The server of the user's Prefect profile."""
    from prefect.settings import PREFECT_API_URL

    url = PREFECT_API_URL.value()
    return str(url) if url else None
