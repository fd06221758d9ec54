"""The flow ``on-data-change``: looks at what a graph is made from, and runs it only when something moved."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.git import Git
from flows.repro import run_flow
from flows.workspace import opened

#: What was seen when the graph was last run, or found idle; inside .dvc/tmp, which git ignores.
SEEN = Path(".dvc/tmp/on-data-change.json")


@flow(name="on-data-change", persist_result=False, result_serializer="json")
def on_data_change(
    git_pull: bool = False, jobs: int = 0, devices: str = "auto", remote: bool = False, root: str = "."
) -> State[Any]:
    """Run the graph when its code, its pointers, external data or the DVC remote have moved since the last look.

    A run that failed, or that a gate stopped, is not tried again before something moves: the nightly run does that.

    Parameters
    ----------
    git_pull
        Fetch first, and go forward to the branch's new commits (`git pull --ff-only`).
    jobs, devices, remote, root
        As for the flow ``repro``.
    """
    logger = get_run_logger()
    folder = Path(root).resolve()
    if git_pull:
        Git(folder).run("pull", "--ff-only", "--quiet")
    now = look(folder)
    before = _read(folder / SEEN)
    moved = [what for what in now if before.get(what) != now[what]]
    if not moved:
        return Completed(message="nothing moved", name="Nothing moved")
    logger.info("moved since the last look: %s", ", ".join(moved))
    try:
        options = {"remote": True} if remote else {}
        run_flow(jobs or len(os.sched_getaffinity(0)), devices=devices, root=str(folder), **options)
    finally:
        # As it is after the run: what the run itself wrote has not moved. Noted after a failure, too.
        _write(folder / SEEN, look(folder))
    return Completed(message=f"ran: {', '.join(moved)}")


def look(root: Path) -> dict[str, str]:
    """What the graph is made from: a text for each kind of thing, which changes when one of the things does.

    Returns
    -------
    dict
        ``HEAD``: the commit; ``pointers``: every .dvc file; ``stages``: which are not up to date and why, external
        data included; ``remote``: what the DVC remote lacks or has beyond the local cache.
    """
    with opened(root) as workspace:
        why = {name: [str(change) for change in workspace.changes(name)] for name in sorted(workspace.upstream)}
    pointers = {str(path.relative_to(root)): path.read_text() for path in sorted(_pointers(root))}
    return {
        "HEAD": Git(root).run("rev-parse", "HEAD").strip(),
        "pointers": _digest(pointers),
        "stages": _digest({name: changes for name, changes in why.items() if changes}),
        "remote": _digest(_remote_status(root)),
    }


def _pointers(root: Path) -> list[Path]:
    tracked = Git(root).run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.dvc")
    return [path for name in tracked.split("\0") if name and (path := root / name).is_file()]


def _remote_status(root: Path) -> Any:
    """What DVC says of the default remote; nothing where none is set or it cannot be reached."""
    words = [sys.executable, "-m", "dvc", "status", "--cloud", "--json"]
    run = subprocess.run(words, cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    try:
        return json.loads(run.stdout)
    except json.JSONDecodeError:
        return None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _read(path: Path) -> Mapping[str, str]:
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, seen: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(seen, indent=2) + "\n")
    draft.replace(path)
