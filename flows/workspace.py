"""A DVC repository opened for a run: the only module that uses DVC's inner calls.

``dvc repro --single-item`` as a command costs more than a second of CPU a stage, most of it start-up. A coordinator
that runs the commands as processes and keeps DVC's books itself costs tens of milliseconds a stage. The price is this
module: DVC is pinned to one minor version, and tests/flows/test_workspace.py holds every call against the command line
(`dvc status` clean, the same dvc.lock, the same run-cache entries).

Two locks: one of ours for the length of a run, so that two runs never share a workspace; DVC's own only while its books
are read or written, so that `dvc metrics show` and the like work meanwhile. All methods are for one thread: the
commands run elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flows.errors import GraphError, LockedError

if TYPE_CHECKING:
    from dvc.repo import Repo
    from dvc.stage import Stage

LOCK_FILE = "dvc.lock"
What = Literal["command", "dep", "param", "out", "stage"]


@dataclass(frozen=True)
class Change:
    """One reason why a stage is not up to date: what changed, from which value to which.

    Hashes are shortened to eight digits; a value that was not there, or is not there now, is None.
    """

    what: What
    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.what == "stage":
            return self.name
        if self.old is None:
            return f"{self.what} {self.name}: new"
        return f"{self.what} {self.name}: {self.old} → {self.new or 'missing'}"


@dataclass(frozen=True)
class Command:
    """How to run a stage: shell command lines, where, and the variables DVC sets for it."""

    lines: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]


@dataclass
class Workspace:
    """The stages of a repository, and what DVC knows of each.

    Attributes
    ----------
    root
        Root of the repository.
    upstream
        Stage -> the stages it depends on, of the selected ones.
    meta
        Stage -> its ``meta`` block in dvc.yaml.
    lock_file
        The open file whose lock keeps other runs out; a stage's process inherits it, so that the workspace stays locked
        while the stage of a coordinator that was killed still writes.
    """

    root: Path
    upstream: dict[str, frozenset[str]]
    meta: dict[str, dict[str, Any]]
    lock_file: int
    _repo: Repo
    _stages: dict[str, Stage]
    _unwritten: list[Stage] = field(default_factory=list)
    _read: dict[str, dict[str, Any]] = field(default_factory=dict)

    def changes(self, name: str) -> list[Change]:
        """Why a stage is not up to date; empty when it is."""
        stage = self._stages[name]
        if stage.frozen:
            return []
        with self._repo.lock:
            if stage.outs and not any(item.hash_info for item in (*stage.deps, *stage.outs)):
                return [Change("stage", "never run here", None, None)]
            found = list(_dep_changes(stage))
            if stage.changed_stage():
                locked = stage.dvcfile.lockfile_contents.get("stages", {}).get(stage.name, {})
                found.append(Change("command", name, str(locked.get("cmd")), "\n".join(_lines(stage))))
            if stage.is_callback or stage.always_changed:
                found.append(Change("stage", "always changed, says dvc.yaml", None, None))
            return found or list(_out_changes(stage))

    def restore(self, name: str, *, pull: bool = False) -> bool:
        """Bring the outs of a stage back from the run-cache, of the remote too where ``pull``; False: not there."""
        from dvc.stage.cache import RunCacheNotFoundError

        stage = self._stages[name]
        if stage.always_changed:
            return False
        with self._repo.lock:
            try:
                self._repo.stage_cache.restore(stage, pull=pull)
            except RunCacheNotFoundError:
                return False
            self._save(stage)
        return True

    def command(self, name: str) -> Command:
        """The command of a stage."""
        stage = self._stages[name]
        environment = {"DVC_ROOT": self._repo.root_dir, "DVC_STAGE": name}
        return Command(tuple(_lines(stage)), Path(stage.wdir), environment)

    def begin(self, name: str) -> None:
        """Note what a stage is about to read, and remove what it is about to write, as DVC does before a command."""
        stage = self._stages[name]
        with self._repo.lock:
            stage.save_deps()
            self._read[name] = {str(dep): dep.hash_info.value for dep in stage.deps}
            stage.remove_outs(ignore_remove=False, force=False)

    def save(self, name: str) -> None:
        """Hash deps and outs, keep them in the cache and the run-cache; dvc.lock follows with :meth:`write_lock`.

        Raises
        ------
        GraphError
            The command left an out unwritten, or a dep changed while it ran, so that nobody knows which one it read.
        """
        from dvc.output import OutputDoesNotExistError

        stage = self._stages[name]
        with self._repo.lock:
            stage.save_deps()
            for dep in stage.deps:
                if dep.hash_info.value != self._read[name][str(dep)]:
                    raise GraphError(f"stage {name}: {dep} changed while the stage ran; its result is not kept.")
            try:
                self._save(stage)
            except OutputDoesNotExistError as error:
                raise GraphError(f"stage {name}: its command ended without an error, but {error}.") from None

    def _save(self, stage: Stage) -> None:
        stage.save(run_cache=all(out.use_cache or out.is_metric or out.is_plot for out in stage.outs))
        stage.commit()
        self._unwritten.append(stage)

    def write_lock(self) -> None:
        """Write the entries of all saved stages into dvc.lock at once; a kill leaves the old file or the new one."""
        from dvc.stage.serialize import to_lockfile
        from dvc.utils.serialize import dumps_yaml, load_yaml

        if not self._unwritten:
            return
        by_folder: dict[Path, list[Stage]] = {}
        for stage in self._unwritten:
            by_folder.setdefault(Path(stage.path).parent, []).append(stage)
        for folder, stages in by_folder.items():
            path = folder / LOCK_FILE
            data = load_yaml(str(path)) if path.is_file() else {}
            lock = {"schema": "2.0", **data, "stages": dict(data.get("stages", {}))}
            for stage in stages:
                lock["stages"].update(to_lockfile(stage))
            draft = Path(self._repo.tmp_dir) / f"{LOCK_FILE}.{os.getpid()}"
            draft.write_text(dumps_yaml(lock), encoding="utf-8")
            with self._repo.lock:
                draft.replace(path)
        self._unwritten.clear()

    def outs(self, name: str) -> list[Path]:
        """Paths of the outs of a stage."""
        return [Path(out.fs_path) for out in self._stages[name].outs]

    def metrics(self) -> dict[str, float]:
        """Every number in the repository's metrics files as they lie in the workspace, by file and dotted key."""
        from dvc.exceptions import DvcException

        found: dict[str, float] = {}
        with self._repo.lock:
            try:
                shown = self._repo.metrics.show()
            except DvcException:
                return found
        for file, content in shown.get("", {}).get("data", {}).items():
            found.update({f"{file}:{key}": number for key, number in _numbers(content.get("data"))})
        return found


@contextmanager
def opened(root: Path, targets: Sequence[str] = (), *, wait: bool = True) -> Iterator[Workspace]:
    """Open the repository at ``root`` for one run; close it with every result written.

    Parameters
    ----------
    root
        Root of the repository.
    targets
        Stages or outs to bring up to date, with all that they depend on; none means all stages.
    wait
        Wait for another run in this repository to end; else refuse at once.

    Raises
    ------
    GraphError
        No repository, a cycle, an out of two stages, a missing dep, an unknown target: the message names it.
    LockedError
        Another run works here, or another DVC process holds its lock for more than three seconds.
    """
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.repo import Repo

    try:
        repo = Repo(str(root), config={"core": {"analytics": "false", "check_update": "false"}})
    except DvcException as error:
        raise GraphError(f"{root}: {error}") from None
    try:
        with repo, _alone(Path(repo.tmp_dir), wait=wait) as lock_file:
            with repo.lock:
                repo._reset()
                workspace = _select(repo, targets, lock_file)
            try:
                yield workspace
            finally:
                workspace.write_lock()
    except LockError:
        raise LockedError(f"{root}: another DVC process holds the lock of this repository.") from None


@contextmanager
def _alone(folder: Path, *, wait: bool) -> Iterator[int]:
    """Keep other runs out of a workspace; the kernel frees the lock of a process that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "flows.lock"
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            stream.seek(0)
            raise LockedError(
                f"{folder.parent.parent}: another run works in this repository ({stream.read().strip() or 'unknown'}). "
                "Wait for it, or end it, or run in a worktree of your own."
            ) from None
        stream.truncate(0)
        stream.write(f"pid {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
        yield stream.fileno()


def _select(repo: Repo, targets: Iterable[str], lock_file: int) -> Workspace:
    from dvc.exceptions import DvcException

    try:
        graph = repo.index.graph
        chosen = [stage for target in targets for stage in repo.stage.collect(target)] or list(graph)
    except DvcException as error:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        raise GraphError(f"{repo.root_dir}: {error}{cause}") from None
    selected, queue = set(), list(chosen)
    while queue:
        stage = queue.pop()
        if stage not in selected:
            selected.add(stage)
            queue += [] if stage.frozen else list(graph.successors(stage))
    names = {stage: _name(repo, stage) for stage in selected}
    stages = {names[stage]: stage for stage in sorted(selected, key=names.__getitem__)}
    upstream = {
        name: frozenset() if stage.frozen else frozenset(names[other] for other in graph.successors(stage))
        for name, stage in stages.items()
    }
    _refuse_missing_deps(stages.values(), [out.fs_path for stage in graph for out in stage.outs])
    meta = {name: dict(getattr(stage, "meta", None) or {}) for name, stage in stages.items()}
    return Workspace(Path(repo.root_dir), upstream, meta, lock_file, repo, stages)


def _name(repo: Repo, stage: Stage) -> str:
    """A stage's address as DVC writes it in the root of the repository, wherever this process works."""
    path = Path(stage.path).relative_to(repo.root_dir).as_posix()
    stage_name = getattr(stage, "name", None)
    if stage_name is None:
        return path
    return str(stage_name) if path == "dvc.yaml" else f"{path}:{stage_name}"


def _lines(stage: Stage) -> list[str]:
    lines = stage.cmd if isinstance(stage.cmd, list) else str(stage.cmd).splitlines()
    return [str(line) for line in lines]


def _refuse_missing_deps(stages: Iterable[Stage], made: Sequence[str]) -> None:
    """A dep that is not there and that no stage makes cannot be had by running anything."""
    for stage in stages:
        for dep in stage.deps:
            path = str(getattr(dep, "fs_path", ""))
            if not path or dep.fs.protocol != "local" or dep.exists:
                continue
            if not any(out == path or path.startswith(out + os.sep) or out.startswith(path + os.sep) for out in made):
                raise GraphError(
                    f"stage {stage.addressing}: its dep {dep} is missing, and no stage makes it. "
                    "Put it there, or correct the path in dvc.yaml or params.yaml."
                )


def _dep_changes(stage: Stage) -> Iterator[Change]:
    from dvc.dependency.param import ParamsDependency

    for dep in stage.deps:
        if isinstance(dep, ParamsDependency):
            old: Any = dep.hash_info.value or {}
            new = dep.read_params()
            for key in dep.params or sorted({*old, *new}):
                if old.get(key) != new.get(key):
                    yield from _param_changes(key, old.get(key), new.get(key))
        elif dep.status():
            yield Change("dep", str(dep), _short(dep.hash_info.value), _short(_hash_now(dep)))


def _param_changes(key: str, old: Any, new: Any) -> Iterator[Change]:
    """The leaves of a params subtree that differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for part in sorted({*old, *new}, key=str):
            if old.get(part) != new.get(part):
                yield from _param_changes(f"{key}.{part}", old.get(part), new.get(part))
    else:
        yield Change("param", key, None if old is None else str(old), None if new is None else str(new))


def _out_changes(stage: Stage) -> Iterator[Change]:
    for out in stage.outs:
        if out.status():
            yield Change("out", str(out), _short(out.hash_info.value), _short(_hash_now(out)))


def _hash_now(item: Any) -> str | None:
    if not item.exists:
        return None
    with suppress(OSError):
        return str(item.get_hash().value)
    return None


def _numbers(value: Any, above: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{above}.{key}" if above else str(key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield above, float(value)


def _short(value: str | None) -> str | None:
    return None if value is None else str(value)[:8]
