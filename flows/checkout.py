"""A commit checked out beside a clone: a git worktree that shares the clone's DVC cache and remotes.

:func:`checked_out` is for one stage of a worker; a rerun's worktree (:mod:`flows.worktrees`) is made of the same parts.
"""

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

#: Inside .dvc/tmp, which git ignores and which lies on the disk of the cache.
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
        remove(git, folder)
        try:
            add(git, folder, commit)
            yield folder
        finally:
            remove(git, folder)


def add(git: Git, folder: Path, commit: str) -> None:
    """Check a commit out into a folder that is not there yet, with the cache and the remotes of its repository."""
    git.run("worktree", "add", "--quiet", "--detach", "--force", str(folder), commit)
    _share(git.root, folder)


def remove(git: Git, folder: Path) -> None:
    """Remove a worktree, be it locked or half made, and what git knows of it."""
    if folder.exists():
        git.run("worktree", "remove", "--force", "--force", str(folder), check=False)
        shutil.rmtree(folder, ignore_errors=True)
    git.run("worktree", "unlock", str(folder), check=False)
    git.run("worktree", "prune", check=False)


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


def _share(clone: Path, folder: Path) -> None:
    """Give a worktree the cache of its clone, and its remotes with their credentials; paths that were relative hold.

    DVC keeps a state database for each root it ever saw; that of a worktree lies in it and goes with it.
    """
    from dvc.config import Config

    source = Config(str(clone / ".dvc"))
    cache = source["cache"].get("dir") or str(clone / ".dvc" / "cache")
    with Config(str(folder / ".dvc")).edit("local") as settings:
        for section in ("core", "remote"):
            settings[section].update(source[section])
        settings["cache"].update(source["cache"], dir=cache)
        settings["core"]["site_cache_dir"] = str(folder / ".dvc" / "tmp" / "site")
