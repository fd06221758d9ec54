"""The stages that a run is about, found in DVC's graph, or refused before anything starts; and the lock of the run."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.errors import GraphError, LockedError

if TYPE_CHECKING:
    from dvc.dependency.base import Dependency
    from dvc.dependency.param import ParamsDependency
    from dvc.output import Output
    from dvc.repo import Repo
    from dvc.stage import Stage

DEVICES = ("cpu", "gpu")


@dataclass(frozen=True)
class Selection:
    """Stages by name in DVC's order, the stages each depends on, and their ``meta`` blocks."""

    stages: dict[str, Stage]
    upstream: dict[str, frozenset[str]]
    meta: dict[str, dict[str, Any]]


@contextmanager
def no_other_run(folder: Path, *, wait: bool, say: Callable[[str], None]) -> Iterator[int]:
    """Keep other runs out of a workspace; the kernel frees the lock of a process that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "flows.lock"
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            # The pid may be that of a run that was killed while one of its stages still works.
            who = f"another run works in this repository ({stream.read().strip() or 'unknown'}, or a stage it left)"
            if not wait:
                raise LockedError(
                    f"{folder.parent.parent}: {who}. Wait for it, or end it, or run in a worktree of your own."
                ) from None
            say(f"waits: {who}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        stream.truncate(0)
        stream.write(f"pid {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
        yield stream.fileno()


def select(repo: Repo, targets: Sequence[str], *, alone: bool = False) -> Selection:
    """The stages that targets need, or all; ``alone`` the targets only.

    Raises
    ------
    GraphError
        DVC refuses the graph or a target, a dep is missing, or a ``meta`` block asks for what there is not.
    """
    from dvc.exceptions import DvcException
    from dvc.repo.reproduce import get_active_graph, plan_repro

    try:
        repo._reset()
        with _fast_cycle_check():
            graph = repo.index.graph
        active = get_active_graph(graph)
        chosen = [found.stage for target in targets for found in repo.stage.collect_granular(target)]
        order = [stage for stage in plan_repro(active, chosen) if not alone or stage in chosen]
    except DvcException as error:
        causes, cause = [str(error)], error.__cause__
        while cause is not None:
            causes.append(str(cause))
            cause = cause.__cause__
        raise GraphError(f"{repo.root_dir}: {': '.join(' '.join(text.split()) for text in causes if text)}") from None
    names = {stage: _name(repo, stage) for stage in order}
    stages = {name: stage for stage, name in names.items()}
    upstream = {
        name: frozenset(names[other] for other in active.successors(stage) if other in names)
        for name, stage in stages.items()
    }
    meta = {name: dict(getattr(stage, "meta", None) or {}) for name, stage in stages.items()}
    _refuse_missing_deps(stages.values(), [out for stage in graph for out in stage.outs])
    _refuse_meta(meta)
    return Selection(stages, upstream, meta)


@contextmanager
def _fast_cycle_check() -> Iterator[None]:
    """Let DVC search for a cycle only where there is one, to name it: its search is quadratic in the stages."""
    import networkx  # type: ignore[import-untyped]
    from dvc.repo import graph

    search = graph.check_acyclic

    def check(found: networkx.DiGraph) -> None:
        if not networkx.is_directed_acyclic_graph(found):
            search(found)

    graph.check_acyclic = check
    try:
        yield
    finally:
        graph.check_acyclic = search


def not_made(deps: Iterable[Dependency], outs: Iterable[Output]) -> Iterator[tuple[Dependency, Path]]:
    """Those deps on this machine that are, hold and lie in none of some outs, with their paths."""
    made = {Path(out.fs_path) for out in outs}
    above = {parent for out in made for parent in out.parents}
    for dep in deps:
        if dep.fs_path and dep.fs.protocol == "local":
            path = Path(os.path.normpath(dep.fs_path))
            if path not in made and path not in above and made.isdisjoint(path.parents):
                yield dep, path


def given(root: Path) -> dict[str, Path]:
    """Deps of a whole graph that no stage and no .dvc file makes, params apart: as dvc.yaml names them, and where.

    They need not be there; of a graph that DVC refuses there are none.
    """
    from dvc.dependency.param import ParamsDependency
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    with Repo(str(root)) as repo:
        try:
            found = not_made(repo.index.deps, repo.index.outs)
            return {str(dep.def_path): path for dep, path in found if not isinstance(dep, ParamsDependency)}
        except DvcException:
            return {}


def _name(repo: Repo, stage: Stage) -> str:
    """A stage's address as DVC writes it in the root of the repository, wherever this process works."""
    path = Path(stage.path).relative_to(repo.root_dir).as_posix()
    stage_name = getattr(stage, "name", None)
    if stage_name is None:
        return path
    return str(stage_name) if path == "dvc.yaml" else f"{path}:{stage_name}"


def _refuse_missing_deps(stages: Iterable[Stage], made: Iterable[Output]) -> None:
    """A dep that is not there and that no stage makes cannot be had by running anything."""
    from dvc.dependency.param import ParamsDependency

    params: list[tuple[Stage, ParamsDependency]] = []
    deps = [dep for stage in stages if not stage.frozen for dep in stage.deps]
    for dep, _ in not_made(deps, made):
        if not dep.exists:
            raise GraphError(
                f"stage {dep.stage.addressing}: its dep {dep} is missing, and no stage makes it. "
                "Put it there, or correct the path in dvc.yaml or params.yaml."
            )
        if isinstance(dep, ParamsDependency):
            params.append((dep.stage, dep))
    _refuse_missing_params(params)


def _refuse_missing_params(deps: Iterable[tuple[Stage, ParamsDependency]]) -> None:
    """Params that their file lacks; each file is read once, however many stages read it."""
    from dvc.dependency.param import read_param_file
    from dvc.exceptions import DvcException

    by_file: dict[str, list[tuple[Stage, ParamsDependency]]] = {}
    for stage, dep in deps:
        by_file.setdefault(dep.fs_path, []).append((stage, dep))
    for path, readers in by_file.items():
        keys = sorted({key for _, dep in readers for key in dep.params})
        try:
            found = read_param_file(readers[0][1].repo.fs, path, keys, flatten=True) if keys else {}
        except DvcException as error:
            raise GraphError(f"{path}: {error}") from None
        for stage, dep in readers:
            if missing := [key for key in dep.params if key not in found]:
                raise GraphError(
                    f"stage {stage.addressing}: {dep} has no {', '.join(missing)}. Add it, or correct dvc.yaml."
                )


def _refuse_meta(meta: dict[str, dict[str, Any]]) -> None:
    for name, block in meta.items():
        device, share = block.get("device", "cpu"), block.get("share", 1)
        if device not in DEVICES:
            raise GraphError(f"stage {name}: meta.device is {device!r}; expected cpu or gpu.")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise GraphError(f"stage {name}: meta.share is {share!r}; expected a number above 0 and at most 1.")
