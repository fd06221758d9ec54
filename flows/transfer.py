"""Pushing to a DVC remote and pulling from it, run-cache included, with the objects named that did not come through.

``dvc push --run-cache`` and ``dvc pull --run-cache`` move the same objects. What is added here: damaged objects are
named (DVC throws them away and says only that a checkout failed), a broken line is told in one sentence, and
``replace`` mends a remote, which DVC cannot: it takes the files of a folder for present when the folder's list is.
"""

from __future__ import annotations

import errno
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.remote_errors import in_words
from flows.remotes import RemoteFailed, opened_remote

if TYPE_CHECKING:
    from dvc.repo import Repo

SHOWN = 5
BLOCK = 1024 * 1024
KEPT = "What had arrived is kept and nothing here is damaged; the same command goes on from there."
AGAIN = "Run the stages again (python -m flows repro), then python -m flows remote push --replace."


@dataclass
class _Log(logging.Handler):
    """What DVC's own log says of single objects."""

    failed: dict[str, BaseException | None] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(logging.DEBUG)

    __hash__ = logging.Handler.__hash__

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("failed to transfer '%s'"):
            self.failed[str(record.args[0])] = record.exc_info[1] if record.exc_info else None  # type: ignore[index]
        elif str(record.msg).startswith("corrupted cache file"):
            self.damaged.append("".join(str(record.args[0]).replace("\\", "/").split("/")[-2:]))  # type: ignore[index]


def push(root: Path, name: str | None = None, *, replace: bool = False) -> str:
    """Bring to the remote what the workspace's dvc.lock needs, and the run-cache.

    Parameters
    ----------
    replace
        First read every object that the remote has of it, and remove those that are damaged or incomplete, so that they
        are put anew.

    Raises
    ------
    RemoteFailed
        The remote does not work, or was lost on the way.
    """
    with opened_remote(root, name) as (repo, remote, options):
        removed = _remove_damaged(repo, remote) if replace else []
        paths = _paths(repo, remote) if removed else {}
        _forget_index(remote.odb)
        count = _move(lambda: repo.push(remote=remote.name, run_cache=True), repo, remote, options, "push")
    words = f"{count} objects pushed to {remote.name}"
    return f"{words}; damaged, and put anew: {_some(removed, paths)}" if removed else words


def pull(root: Path, name: str | None = None) -> str:
    """Bring from the remote what the workspace's dvc.lock needs, and the run-cache; lay it out.

    Raises
    ------
    RemoteFailed
        The remote does not work, was lost on the way, or has objects that are damaged or missing: they are named.
    """
    with opened_remote(root, name) as (repo, remote, options):
        _forget_index(remote.odb)
        stats = _move(lambda: repo.pull(remote=remote.name, run_cache=True)["stats"], repo, remote, options, "pull")
    return f"{stats.get('fetched', 0)} objects pulled from {remote.name}"


def _move(move: Callable[[], Any], repo: Repo, remote: Any, options: dict[str, Any], verb: str) -> Any:
    from dvc.exceptions import CheckoutError, DownloadError, UploadError

    with _listening() as log:
        try:
            return move()
        except (UploadError, DownloadError, CheckoutError) as error:
            trouble: Exception = error
        except Exception as error:
            _hang_up()
            raise RemoteFailed(f"{verb} with {remote.name}: {in_words(error, options)} {KEPT}") from error
    missing = [oid for oid, error in log.failed.items() if isinstance(error, FileNotFoundError)]
    broken = [error for error in log.failed.values() if error and not isinstance(error, FileNotFoundError)]
    if missing and not broken and not _is_there(remote):
        broken = [FileNotFoundError(errno.ENOENT, "gone", remote.path)]
    lines = []
    if broken:
        _hang_up()
        lines.append(f"{len(log.failed)} objects did not come through. {in_words(broken[0], options)} {KEPT}")
    elif missing:
        lines.append(f"missing in the remote: {_some(missing, _paths(repo, remote))}. {AGAIN}")
    if log.damaged:
        damaged = _some(log.damaged, _paths(repo, remote))
        lines.append(
            f"damaged in the remote (their content is not what their name says): {damaged}. They were "
            f"not taken. {AGAIN}"
        )
    if isinstance(trouble, CheckoutError) and not lines:
        targets = ", ".join(str(target) for target in trouble.target_infos)
        lines.append(f"the remote does not have all of {targets}. {AGAIN}")
    raise RemoteFailed(f"{verb} with {remote.name}: {' '.join(lines) or trouble}")


def _is_there(remote: Any) -> bool:
    with suppress(Exception):
        return bool(remote.fs.exists(remote.path))
    return False


@contextmanager
def _listening() -> Iterator[_Log]:
    """Hear what DVC says of objects, and keep it from the terminal."""
    log = _Log()
    loggers = [logging.getLogger(name) for name in ("dvc_data.hashfile.db", "dvc_data.hashfile.transfer")]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(log)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    try:
        yield log
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(log)
            logger.setLevel(level)
            logger.propagate = propagate


def _remove_damaged(repo: Repo, remote: Any) -> list[str]:
    """Remove from the remote what the workspace needs and its content contradicts; the lists of such folders too."""
    odb = remote.odb
    present = set(odb.all())
    removed: list[str] = []
    for _, out, files in _folders(repo, remote):
        entries = [oid for _, oid in files]
        own = [*entries, out]
        bad = [oid for oid in own if oid in present and not _is_whole(odb, oid)]
        for oid in bad:
            odb.delete(oid)
            present.discard(oid)
        removed += bad
        if out.endswith(".dir") and out in present and not present.issuperset(entries):
            odb.delete(out)
            present.discard(out)
    return removed


def _folders(repo: Repo, remote: Any) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Path and hash of each out of the workspace, with those of the files in it."""
    from dvc_data.hashfile.transfer import find_tree_by_obj_id

    for out in repo.index.outs:
        if out.use_cache and out.hash_info:
            tree = find_tree_by_obj_id([out.cache, remote.odb], out.hash_info) if out.hash_info.isdir else None
            files = [("/".join((str(out), *key)), str(entry.value)) for key, _, entry in tree or ()]
            yield str(out), str(out.hash_info.value), files


def _is_whole(odb: Any, oid: str) -> bool:
    digest = hashlib.md5(usedforsecurity=False)
    with odb.fs.open(odb.oid_to_path(oid), "rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest() == oid.removesuffix(".dir")


def _forget_index(odb: Any) -> None:
    """Ask the remote what it has, rather than believe what was there the last time."""
    from dvc_data.hashfile.db import get_index

    with closing(get_index(odb)) as index:
        index.clear()


def _hang_up() -> None:
    """Forget connections that broke: fsspec would hand them out again for as long as this process lives."""
    from fsspec.asyn import AsyncFileSystem  # type: ignore[import-untyped]

    kinds: list[Any] = [AsyncFileSystem]
    while kinds:
        kind = kinds.pop()
        kind.clear_instance_cache()
        kinds += kind.__subclasses__()


def _some(oids: Iterable[str], paths: Mapping[str, str]) -> str:
    """The first of some hashes, with the files they belong to where that is known."""
    known = list(dict.fromkeys(oids))
    words = [f"{oid} ({paths[oid]})" if oid in paths else oid for oid in known[:SHOWN]]
    return ", ".join(words) + (f" and {len(known) - SHOWN} more" if len(known) > SHOWN else "")


def _paths(repo: Repo, remote: Any) -> dict[str, str]:
    """Path in the workspace of each object."""
    found: dict[str, str] = {}
    for path, oid, files in _folders(repo, remote):
        found[oid] = path
        found.update((oid, path) for path, oid in files)
    return found
