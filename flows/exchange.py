"""What passes between workspaces through the DVC remote: the outs of single stages, and their run-cache entries.

``dvc push --run-cache STAGE`` sends the run-cache entries of all stages each time, and ``dvc pull`` needs a second for
each call; here one stage's entry travels, in the process that is there already. Like flows/workspace.py this uses DVC's
inner calls: tests/flows/test_worker_exchange.py holds it against the command line.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flows.errors import FlowError
from flows.workspace import Workspace, deps_as_recorded

if TYPE_CHECKING:
    from dvc.stage import Stage
    from dvc_data.hashfile.db import HashFileDB


class ExchangeError(FlowError):
    """The DVC remote is not set, cannot be reached, or lacks what was asked for."""


def require_remote(workspace: Workspace) -> None:
    """Refuse at once where no default DVC remote is set.

    Raises
    ------
    ExchangeError
        The message says how to set one.
    """
    if not workspace._repo.config.get("core", {}).get("remote"):
        raise ExchangeError(
            f"{workspace.root}: no default DVC remote, through which stages on other machines exchange their data; "
            "set one: python -m flows remote --help."
        )


def shared(workspace: Workspace, name: str) -> bool:
    """Whether the result of a stage can be had by its run-cache entry; DVC keeps none for some stages."""
    from dvc.stage.cache import _can_hash

    return bool(_can_hash(workspace._stages[name]))


def push_outs(workspace: Workspace, names: Iterable[str]) -> None:
    """Send the outs of some stages, as dvc.lock names them, to the remote; what it has is not sent again."""
    for stage in _stages(workspace, names):
        for odb, objects in stage.get_used_objs().items():
            result = workspace._repo.cloud.push(objects, odb=odb)
            if result.failed:
                raise ExchangeError(f"stage {stage.addressing}: {len(result.failed)} objects could not be pushed.")


def pull_outs(workspace: Workspace, names: Iterable[str]) -> None:
    """Fetch the outs of some stages, as dvc.lock names them, and lay them into the workspace.

    Raises
    ------
    ExchangeError
        The remote lacks some; the message names the stage.
    """
    from dvc.exceptions import CollectCacheError

    for stage in _stages(workspace, names):
        try:
            lacking = any(
                workspace._repo.cloud.pull(objects, odb=odb).failed for odb, objects in stage.get_used_objs().items()
            )
        except CollectCacheError:  # the list of a folder's files
            lacking = True
        if lacking:
            raise ExchangeError(
                f"stage {stage.addressing}: its outs are not all in the DVC remote; `dvc push {stage.addressing}` "
                "where they are."
            )
        with workspace._repo.lock:
            stage.checkout()


def push_run(workspace: Workspace, name: str) -> None:
    """Send what a stage has just saved: its outs, and then its run-cache entry, which is worth nothing without them."""
    push_outs(workspace, [name])
    remote, folder = _entry_folder(workspace, name)
    local = Path(workspace._repo.cache.legacy.path) / folder
    for entry in sorted(local.iterdir()) if local.is_dir() else []:
        target = posixpath.join(remote.path, folder, entry.name)
        if not remote.fs.exists(target):
            remote.fs.makedirs(posixpath.dirname(target), exist_ok=True)
            remote.fs.put_file(str(entry), target)


def pull_run(workspace: Workspace, name: str) -> bool:
    """Fetch the run-cache entries of a stage with its present deps; False where the remote has none."""
    if not shared(workspace, name):
        return False
    stage = workspace._stages[name]
    with deps_as_recorded(stage):
        with workspace._repo.lock:
            stage.save_deps()
        remote, folder = _entry_folder(workspace, name)
    source = posixpath.join(remote.path, folder)
    if not remote.fs.exists(source):
        return False
    local = Path(workspace._repo.cache.legacy.path) / folder
    local.mkdir(parents=True, exist_ok=True)
    for path in remote.fs.find(source):
        target = local / posixpath.basename(path)
        if not target.exists():
            draft = local.parent / f".{target.name}.partial"
            remote.fs.get_file(path, str(draft))
            draft.replace(target)
    return True


def _stages(workspace: Workspace, names: Iterable[str]) -> Iterator[Stage]:
    for name in names:
        if name in workspace._stages:
            yield workspace._stages[name]
        else:
            yield from workspace._repo.stage.collect(name)


def _entry_folder(workspace: Workspace, name: str) -> tuple[HashFileDB, str]:
    """The remote's store of run-cache entries, and where in a store those of a stage with its present deps lie."""
    from dvc.stage.cache import _get_stage_hash

    key = _get_stage_hash(workspace._stages[name])
    remote = workspace._repo.cloud.get_remote_odb(None, "push --run-cache", hash_name="md5-dos2unix")
    return remote, f"runs/{key[:2]}/{key}"
