"""A DVC repository opened for a run, and its books kept by DVC's inner calls.

``dvc repro --single-item`` as a command costs more than a second of CPU a stage, most of it start-up. A coordinator
that runs the commands as processes and keeps DVC's books itself costs tens of milliseconds a stage. The price is that
DVC is pinned to one minor version, and that a test holds every call against the command line (`dvc status` clean, the
same dvc.lock, the same run-cache entries). Such calls are made here, in the modules this one is made of
(graph, changes, integrity, dvc_errors) and in those for remotes (remotes, transfer, exchange); nowhere else in flows/.

Three locks: one of ours for the length of a run, so that two runs never share a workspace; DVC's own only while its
books are read or written, so that `dvc metrics show` and the like work meanwhile; and, for each running stage, DVC's
read and write marks on its deps and outs, so that a plain `dvc repro` refuses to touch them. A DVC process that is in
the way is waited for. All methods are for one thread: the commands run elsewhere.
"""

from __future__ import annotations

import functools
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from flows.changes import Change, command_lines, out_changes, stage_changes
from flows.dvc_errors import explained, patiently, quiet
from flows.errors import FlowError, GraphError, LockedError
from flows.graph import no_other_run, not_made, select
from flows.integrity import remove_corrupt, remove_corrupt_list
from flows.lock_text import LockFile

if TYPE_CHECKING:
    from dvc.repo import Repo
    from dvc.stage import Stage

__all__ = ["LOCK_FILE", "Change", "Command", "Workspace", "deps_as_recorded", "opened"]

P = ParamSpec("P")
T = TypeVar("T")
LOCK_FILE = "dvc.lock"


@dataclass(frozen=True)
class Command:
    """How to run a stage: shell command lines, where, and the variables DVC sets for it."""

    lines: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]


def _patient(method: Callable[Concatenate[Workspace, P], T]) -> Callable[Concatenate[Workspace, P], T]:
    """Call a method with DVC's lock held, and again as long as another DVC process is in its way."""

    @functools.wraps(method)
    def call(self: Workspace, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return patiently(self._repo, self.say, lambda: method(self, *args, **kwargs))

    return call


@dataclass
class Workspace:
    """The stages of a repository, and what DVC knows of each.

    Attributes
    ----------
    root
        Root of the repository.
    upstream
        Stage -> the stages it depends on, of the selected ones; in DVC's order, in which each comes after those.
    meta
        Stage -> its ``meta`` block in dvc.yaml.
    lock_file
        The open file whose lock keeps other runs out; a stage's process inherits it, so that the workspace stays locked
        while the stage of a coordinator that was killed still writes.
    say
        Told, in a sentence, when another DVC process has to be waited for.
    """

    root: Path
    upstream: dict[str, frozenset[str]]
    meta: dict[str, dict[str, Any]]
    lock_file: int
    _repo: Repo
    _stages: dict[str, Stage]
    say: Callable[[str], None] = lambda _: None
    _unwritten: dict[str, Stage] = field(default_factory=dict)
    _read: dict[str, dict[str, Any]] = field(default_factory=dict)
    _marks: dict[str, ExitStack] = field(default_factory=dict)
    _lock_files: dict[Path, LockFile] = field(default_factory=dict)
    _corrupt: dict[str, list[Change]] = field(default_factory=dict)
    _suspect: set[str] = field(default_factory=set)
    _ignored: set[str] = field(default_factory=set)

    @_patient
    def changes(self, name: str) -> list[Change]:
        """Why a stage is not up to date; empty when it is."""
        with explained(name):
            return stage_changes(self._stages[name])

    def has_command(self, name: str) -> bool:
        """Whether a stage runs a command; a .dvc file and a frozen stage run none, see :meth:`record`."""
        return bool(self._stages[name].cmd) and not self._stages[name].frozen

    @_patient
    def record(self, name: str, *, pull: bool = False) -> bool:
        """Bring back the outs of a stage without a command, or note what they are now; False: brought back.

        Raises
        ------
        GraphError
            They are neither in the workspace nor in the cache.
        """
        from dvc.stage import PipelineStage

        stage = self._stages[name]
        with explained(name):
            if not all(out.exists for out in stage.outs):
                if pull:
                    self._pull(stage)
                if stage.outs_cached():
                    stage.checkout()
                    if not stage_changes(stage):
                        return False
            self._name_in_gitignore(stage)
            stage.run()
            if isinstance(stage, PipelineStage):
                self._unwritten[name] = stage
            else:
                stage.dump(update_pipeline=False)
        return True

    @_patient
    def restore(self, name: str, *, pull: bool = False) -> bool:
        """Bring the outs of a stage back from the run-cache, of the remote too where ``pull``; False: not there.

        Objects of the cache whose bytes are not those of their name are removed; :meth:`corrupt` names them.
        """
        from dvc.stage.cache import RunCacheNotFoundError

        stage = self._stages[name]
        if stage.always_changed:
            return False
        with explained(name):
            if self._kept(stage):
                return True
            cached = [out for out in stage.outs if out.use_cache]
            self._corrupt[name] = found = [change for out in cached for change in remove_corrupt_list(out)]
            if any(out.hash_info and out.changed_cache() for out in cached):
                self._suspect.add(name)
            stage.remove_outs(ignore_remove=False, force=False)
            try:
                with deps_as_recorded(stage):
                    self._repo.stage_cache.restore(stage, pull=pull)
            except RunCacheNotFoundError:
                return False
            stage.save_deps()
            self._name_in_gitignore(stage)
            stage.save_outs()
            found += [change for out in cached for change in remove_corrupt(out)]
            if found:
                stage.remove_outs(ignore_remove=False, force=False)
            else:
                self._save(name, stage)
            return not found

    def corrupt(self, name: str) -> list[Change]:
        """Objects of the cache that the last :meth:`restore` of a stage found corrupt."""
        return self._corrupt.get(name, [])

    def _kept(self, stage: Stage) -> bool:
        """Put outs that are missing only in the cache, and lie in the workspace as dvc.lock says, back into it."""
        if not stage.outs or stage.changed_stage() or stage.changed_deps():
            return False
        if any(out.workspace_status() for out in stage.outs):
            return False
        stage.commit()
        return not any(out_changes(stage))

    def _pull(self, stage: Stage) -> None:
        for objects in stage.get_used_objs().values():
            self._repo.cloud.pull(objects)

    @_patient
    def fetch_run_cache(self) -> None:
        """Take the entries of the run-cache from the default remote, as ``dvc repro --pull`` does first.

        Raises
        ------
        RemoteError
            No remote is set, or it cannot be reached: said before anything runs.
        """
        from flows.remotes import require_readable

        require_readable(self._repo)
        with explained("run-cache"):
            self._repo.stage_cache.pull(None)

    def command(self, name: str) -> Command:
        """The command of a stage."""
        stage = self._stages[name]
        environment = {"DVC_ROOT": self._repo.root_dir, "DVC_STAGE": name}
        return Command(command_lines(stage), Path(stage.wdir), environment)

    @_patient
    def begin(self, name: str) -> None:
        """Note what a stage is about to read, and remove what it is about to write, as DVC does before a command.

        Until :meth:`save` or :meth:`give_up` other DVC processes find its deps and outs busy.
        """
        from dvc.rwlock import rwlock

        stage = self._stages[name]
        read = [dep.fs_path for dep in stage.deps if dep.fs.protocol == "local"]
        write = [out.fs_path for out in stage.outs]
        with explained(name), ExitStack() as marks:
            hardlink = self._repo.config["core"].get("hardlink_lock", False)
            marks.enter_context(rwlock(self._repo.tmp_dir, self._repo.fs, " ".join(sys.argv), read, write, hardlink))
            stage.save_deps()
            self._read[name] = {str(dep): dep.hash_info.value for dep in stage.deps}
            stage.remove_outs(ignore_remove=False, force=False)
            self._marks[name] = marks.pop_all()

    def give_up(self, name: str) -> None:
        """End what :meth:`begin` began, for a stage whose command failed."""
        if name in self._marks:
            self._marks.pop(name).close()

    @_patient
    def save(self, name: str) -> None:
        """Hash deps and outs, keep them in the cache and the run-cache; dvc.lock follows with :meth:`write_lock`.

        Raises
        ------
        GraphError
            The command left an out unwritten, or a dep changed while it ran, so that nobody knows which one it read;
            or the result cannot be written.
        """
        stage = self._stages[name]
        try:
            with explained(name):
                stage.save_deps()
                for dep in stage.deps:
                    if dep.hash_info.value != self._read[name][str(dep)]:
                        raise GraphError(f"{dep} changed while the stage ran; its result is not kept")
                self._save(name, stage)
        finally:
            self.give_up(name)

    def _name_in_gitignore(self, stage: Stage) -> None:
        """Name a stage's outs in .gitignore, after those of the stages that DVC would have run before it.

        A .gitignore may lie in a folder that is a dep: with its lines in the order in which parallel stages end, the
        hash of that dep would differ from one run to the next.
        """
        from dvc.output import OutputAlreadyTrackedError

        folders = {Path(out.fs_path).parent for out in stage.outs}
        before = takewhile(lambda other: other is not stage, self._stages.values())
        for other in [*before, stage]:
            for out in other.outs:
                if Path(out.fs_path).parent in folders and out.fs_path not in self._ignored:
                    self._ignored.add(out.fs_path)
                    with suppress(OutputAlreadyTrackedError):  # that stage will say so
                        out.ignore()
                    self._repo.scm._reset()  # it remembers the file as it was, and would write the line again

    def _save(self, name: str, stage: Stage) -> None:
        self._name_in_gitignore(stage)
        stage.save(run_cache=all(out.use_cache or out.is_metric or out.is_plot for out in stage.outs))
        if name in self._suspect or self._corrupt.get(name):
            # DVC would not write an object that is there by name.
            for out in stage.outs:
                if out.use_cache:
                    list(remove_corrupt(out))
        stage.commit()
        self._unwritten[name] = stage

    @_patient
    def write_lock(self) -> None:
        """Write the entries of all saved stages into dvc.lock at once; a kill leaves the old file or the new one."""
        from dvc.stage.serialize import to_lockfile
        from dvc.utils import relpath

        by_file: dict[Path, dict[str, Any]] = {}
        for stage in self._unwritten.values():
            by_file.setdefault(Path(stage.path).with_suffix(".lock"), {}).update(to_lockfile(stage))
        for path, entries in by_file.items():
            if path not in self._lock_files:
                rank = {getattr(stage, "name", ""): place for place, stage in enumerate(self._stages.values())}
                self._lock_files[path] = LockFile(path, rank)
            with explained(path.name):
                self._lock_files[path].update(entries, Path(self._repo.tmp_dir))
            self._repo.scm_context.track_file(relpath(str(path)))
        self._unwritten.clear()

    def lock_entries(self, names: Iterable[str]) -> dict[str, Any]:
        """Entries of dvc.lock of some stages as they are now."""
        from dvc.stage import PipelineStage
        from dvc.stage.serialize import to_lockfile

        entries: dict[str, Any] = {}
        for stage in map(self._stages.__getitem__, names):
            if isinstance(stage, PipelineStage):
                entries.update(to_lockfile(stage))
        return entries

    def own_deps(self, name: str) -> list[str]:
        """Deps of a stage that no stage makes: relative to the root, or absolute where they lie outside it."""
        paths = [path for _, path in not_made(self._stages[name].deps, self._repo.index.outs)]
        return [str(path.relative_to(self.root) if path.is_relative_to(self.root) else path) for path in paths]

    def outs(self, name: str) -> list[Path]:
        """Paths of the outs of a stage."""
        return [Path(out.fs_path) for out in self._stages[name].outs]

    def written_outs(self, name: str) -> list[Path]:
        """Paths of the outs that a stage's command finds removed when it starts."""
        return [Path(out.fs_path) for out in self._stages[name].outs if not out.persist]

    @_patient
    def metrics(self) -> dict[str, float]:
        """Every number in the repository's metrics files as they lie in the workspace, by file and dotted key."""
        from dvc.exceptions import DvcException
        from dvc.lock import LockError

        found: dict[str, float] = {}
        try:
            shown = self._repo.metrics.show()
        except LockError:
            raise
        except DvcException:
            return found
        for file, content in shown.get("", {}).get("data", {}).items():
            found.update({f"{file}:{key}": number for key, number in _numbers(content.get("data"))})
        return found


@contextmanager
def deps_as_recorded(stage: Stage) -> Iterator[None]:
    """Keep what dvc.lock says of a stage's deps, where DVC hashes them to look something up.

    By it the stage is told to be up to date or not: with the present hashes its old outs would pass for those of its
    present deps.
    """
    before = [dep.hash_info for dep in stage.deps]
    try:
        yield
    finally:
        for dep, digest in zip(stage.deps, before, strict=True):
            dep.hash_info = digest


@contextmanager
def opened(
    root: Path,
    targets: Sequence[str] = (),
    *,
    wait: bool = True,
    alone: bool = False,
    say: Callable[[str], None] | None = None,
) -> Iterator[Workspace]:
    """Open the repository at ``root`` for one run; close it with every result written.

    Meanwhile the root is this process's working folder: DVC resolves some names and paths against that.

    Parameters
    ----------
    root
        Root of the repository.
    targets
        Stages or outs to bring up to date, with all that they depend on; none means all stages.
    wait
        Wait for another run in this repository to end; else refuse at once.
    alone
        Only the targets themselves, whatever they depend on.
    say
        Told, in a sentence, when another run has to be waited for.

    Raises
    ------
    GraphError
        No repository, a cycle, an out of two stages, a missing dep, an unknown target: the message names it.
    LockedError
        Another run works here and ``wait`` is false, or another DVC process does not let go of its lock.
    """
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.repo import Repo

    say = say or _to_stderr
    try:
        config = {"core": {"analytics": "false", "check_update": "false"}}
        repo = Repo(str(root), config=config)
    except DvcException as error:
        raise GraphError(f"{root}: {error}") from None
    except (OSError, sqlite3.Error) as error:
        raise FlowError(f"{root}: DVC cannot write its own files: {error}") from None
    try:
        with repo, chdir(repo.root_dir), quiet(), no_other_run(Path(repo.tmp_dir), wait=wait, say=say) as lock_file:
            chosen = patiently(repo, say, lambda: select(repo, targets, alone=alone), wait=wait)
            workspace = Workspace(
                Path(repo.root_dir), chosen.upstream, chosen.meta, lock_file, repo, chosen.stages, say
            )
            with repo.scm_context(quiet=True):
                try:
                    yield workspace
                finally:
                    for name in list(workspace._marks):
                        workspace.give_up(name)
                    workspace.write_lock()
    except LockError:
        raise LockedError(f"{root}: another DVC process holds the lock of this repository.") from None


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _numbers(value: Any, above: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{above}.{key}" if above else str(key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield above, float(value)
