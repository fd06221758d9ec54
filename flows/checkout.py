"""A commit checked out beside a clone: a git worktree that shares the clone's DVC cache and remotes."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from flows.errors import FlowError
from flows.git import Git, GitError

#: Inside .dvc/tmp, which git ignores and which lies on the disk of the cache. Numbered, so that DVC's own notes about
#: a folder do not grow with the number of runs.
FOLDER = Path(".dvc/tmp/worktrees")


class CheckoutError(FlowError):
    """The commit cannot be had in this clone."""


@contextlib.contextmanager
def checked_out(clone: Path, commit: str) -> Iterator[Path]:
    """A worktree of a clone at a commit, removed afterwards; one that a kill left behind is replaced.

    Parameters
    ----------
    clone
        Root of a git repository with DVC in it.
    commit
        Full id of a commit; fetched where the clone does not have it.

    Raises
    ------
    CheckoutError
        None of the clone's git remotes has the commit.
    """
    git = Git(clone)
    _fetch(git, commit)
    with _free_slot(clone / FOLDER) as folder:
        _remove(git, folder)
        git.run("worktree", "add", "--quiet", "--detach", "--force", str(folder), commit)
        try:
            _share(clone, folder)
            yield folder
        finally:
            _remove(git, folder)


def _fetch(git: Git, commit: str) -> None:
    def there() -> bool:
        return bool(git.run("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False))

    if there():
        return
    remotes = git.run("remote").split()
    for remote in remotes:
        for what in ([], [commit]):
            with contextlib.suppress(GitError):
                git.run("fetch", "--quiet", remote, *what)
            if there():
                return
    where = ", ".join(remotes) or "a git remote, of which there is none"
    raise CheckoutError(
        f"{git.root}: commit {commit} is neither here nor in {where}. "
        "Push it (git push) to a repository that this clone can fetch from."
    )


@contextlib.contextmanager
def _free_slot(folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count():
        stream: IO[str] = (folder / f"{number}.lock").open("a")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            continue
        with stream:
            yield folder / str(number)
        return


def _remove(git: Git, folder: Path) -> None:
    if folder.exists():
        git.run("worktree", "remove", "--force", "--force", str(folder), check=False)
        shutil.rmtree(folder, ignore_errors=True)
    git.run("worktree", "prune", check=False)


def _share(clone: Path, folder: Path) -> None:
    """Give a worktree the cache of its clone, and its remotes with their credentials; paths that were relative hold."""
    from dvc.config import Config

    source = Config(str(clone / ".dvc"))
    cache = source["cache"].get("dir") or str(clone / ".dvc" / "cache")
    with Config(str(folder / ".dvc")).edit("local") as settings:
        for section in ("core", "remote"):
            settings[section].update(source[section])
        settings["cache"].update(source["cache"], dir=cache)
