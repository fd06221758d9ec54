"""A git worktree for one rerun: the cache of the main workspace, a workspace of its own, and no trace afterwards.

It lies beside the main workspace, as ``.NAME.rerun-...``, so that relative paths that lead out of the repository (to a
tower's folder, to a DVC remote) lead to the same place. A kernel lock for each name says whether a rerun is alive; the
next rerun removes what a killed one left.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flows.checkout import add, remove
from flows.errors import FlowError
from flows.git import Git
from flows.graph import given
from flows.yaml_blocks import load

KEPT = "kept by flows rerun --keep"


class MissingData(FlowError):
    """A version of some data that is neither in the cache nor, where asked, in the remote."""


@dataclass(frozen=True)
class Worktree:
    """A worktree that is ready to run in.

    Attributes
    ----------
    root
        Where it lies.
    untracked
        Inputs of stages that neither Git nor DVC keeps a version of, as dvc.yaml names them: their bytes are today's.
    """

    root: Path
    untracked: tuple[str, ...]


@contextmanager
def alone(git: Git, name: str, say: Callable[[str], None]) -> Iterator[None]:
    """Keep other reruns of the same name out; the kernel frees the lock of a process that dies."""
    path = _lock_path(git, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        stream = path.open("a")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{name}: waits for another rerun of the same name")
            fcntl.flock(stream, fcntl.LOCK_EX)
        # The holder before may have removed the file that was waited for.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(stream.fileno())):
            break
        stream.close()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        stream.close()


@contextmanager
def worktree(
    git: Git, commit: str, name: str, *, pull: bool, keep: bool, say: Callable[[str], None]
) -> Iterator[Worktree]:
    """Check a commit out into a worktree of its own, with the data that DVC has for it; remove it at the end.

    Parameters
    ----------
    git
        The main workspace.
    commit
        What to check out.
    name
        Name of the rerun, held by :func:`alone`.
    pull
        Fetch versions of .dvc files from the DVC remote where the cache lacks them.
    keep
        Leave the worktree where it is at the end.
    say
        Told what goes on.

    Raises
    ------
    MissingData
        A .dvc file names a version that cannot be had.
    """
    sweep(git, name)
    root = _place(git, name)
    try:
        add(git, root, commit)
        _checkout(root, pull=pull)
        yield Worktree(root, tuple(_untracked(git, root)))
    finally:
        if keep and root.is_dir():
            git.run("worktree", "lock", "--reason", KEPT, str(root), check=False)
            say(f"worktree kept: {root}; `git worktree remove -f -f {root}` removes it")
        else:
            remove(git, root)


def sweep(git: Git, name: str) -> None:
    """Remove the worktrees that killed reruns left; those of live ones and kept ones stay."""
    for root, reason in _registered(git).items():
        if root.parent == git.root.parent and root.name.startswith(_prefix(git)) and reason != KEPT:
            other = root.name.removeprefix(_prefix(git))
            if other == _slug(name) or _free(git, other):
                remove(git, root)
    git.run("worktree", "prune")


def _registered(git: Git) -> dict[Path, str]:
    """Worktrees that git knows, with the reason of their lock."""
    found: dict[Path, str] = {}
    for entry in git.run("worktree", "list", "--porcelain").split("\n\n"):
        fields = {line.partition(" ")[0]: line.partition(" ")[2] for line in entry.splitlines()}
        if "worktree" in fields:
            found[Path(fields["worktree"])] = fields.get("locked", "")
    return found


def _prefix(git: Git) -> str:
    return f".{git.root.name}.rerun-"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name.removeprefix("rerun/"))


def _place(git: Git, name: str) -> Path:
    parent = git.root.parent
    if not os.access(parent, os.W_OK):
        # Relative paths that lead out of the repository then lead elsewhere; all others do not care.
        parent = git.root / ".dvc" / "tmp" / "flows" / "reruns"
    path = parent / f"{_prefix(git)}{_slug(name)}"
    number = 1
    while path.exists() or path in _registered(git):
        number += 1
        path = parent / f"{_prefix(git)}{_slug(name)}-{number}"
    return path


def _lock_path(git: Git, name: str) -> Path:
    return git.root / ".dvc" / "tmp" / "flows" / "reruns" / f"{_slug(name)}.lock"


def _free(git: Git, slug: str) -> bool:
    """Whether no live rerun holds a name."""
    path = _lock_path(git, slug)
    if not path.exists():
        return True
    with path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _dvc(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "dvc", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise FlowError(f"{folder}: `dvc {' '.join(words)}` failed: {done.stderr.strip().removeprefix('ERROR: ')}")
    return done.stdout


def _checkout(root: Path, *, pull: bool) -> None:
    """Bring all data that the cache has, so that what a data version does not touch is up to date at once."""
    try:
        _dvc(root, "checkout", "--quiet", "--force", "--allow-missing")
    except FlowError:
        # A graph that cannot be read, or a broken object: the run says it better.
        return
    missing = _missing_data(root)
    if missing:
        # DVC walks past .dvc files in a folder whose whole content .gitignore names (`/data/*`); by name it finds them.
        words = ("pull",) if pull else ("checkout", "--allow-missing")
        _dvc(root, *words, "--quiet", "--force", *(file for file, _, _ in missing))
        missing = _missing_data(root)
    if missing:
        named = ", ".join(f"{out} (version {version}, {file})" for file, out, version in missing)
        raise MissingData(
            f"not in the cache: {named}. {'The DVC remote has it neither' if pull else '--pull asks the DVC remote'}."
        )


def _missing_data(root: Path) -> list[tuple[str, str, str]]:
    """File, out and version of each .dvc file whose data are not in the worktree."""
    return [data for data in _kept_data(root) if not (root / data[1]).exists()]


def _kept_data(root: Path) -> Iterator[tuple[str, str, str]]:
    """File, out and version of each .dvc file in git."""
    for file in Git(root).run("ls-files", "-z", "--", "*.dvc").split("\0")[:-1]:
        content = load((root / file).read_text(encoding="utf-8"), file)
        for out in content.get("outs", []):
            path = (root / file).parent / content.get("wdir", ".") / str(out.get("path", ""))
            yield file, os.path.relpath(path, root), str(out.get("md5", "?"))[:8]


def _untracked(git: Git, root: Path) -> Iterator[str]:
    """Inputs of stages that no revision can bring back; those inside the workspace are linked into the worktree."""
    known = set(Git(root).run("ls-files", "-z").split("\0")[:-1])
    known |= {str(parent) for path in known for parent in Path(path).parents}
    known |= {out for _, out, _ in _kept_data(root)}
    for dep, path in given(root).items():
        inside = path.relative_to(root) if path.is_relative_to(root) else None
        if inside is not None and str(inside) in known:
            continue
        if inside is not None and not path.exists() and (git.root / inside).exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(git.root / inside)
        yield dep
