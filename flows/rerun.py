"""The flow ``rerun``: a commit's pipeline with another version of some data, in a worktree, kept as a branch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Failed

from flows.combine import INPUTS, ORIGIN, UNTRACKED, Combination, Request, combine
from flows.compare import compare
from flows.errors import FlowError
from flows.git import Git
from flows.report import RunReport
from flows.repro import run_flow
from flows.results import Outcome, RerunResult, settled
from flows.worktrees import Worktree, alone, worktree
from flows.yaml_blocks import load

LOCK_FILE = "dvc.lock"


@flow(name="rerun", persist_result=False, result_serializer="json", validate_parameters=False)
def rerun(
    data_revs: Sequence[str] = (),
    code_rev: str = "",
    settings: Sequence[str] = (),
    branch: str = "",
    dirty: bool = False,
    jobs: int = 0,
    devices: str = "auto",
    pull: bool = False,
    keep: bool = False,
    root: str = ".",
) -> RerunResult | State[Any]:
    """Repeat a commit's pipeline with data sets of other revisions; compare the metrics, and keep all in a branch.

    Parameters
    ----------
    data_revs, code_rev, settings, branch, dirty
        What to combine, see :class:`flows.combine.Request`.
    jobs, devices, pull
        As for the flow ``repro``; ``pull`` also fetches versions of .dvc files.
    keep
        Leave the worktree at the end.
    root
        Root of the main workspace; nothing in it is touched but its Git and DVC stores.

    Raises
    ------
    RunFailed
        Not every stage is done; no branch is made, and the next try goes on from what had finished.
    """
    logger = get_run_logger()
    request = Request(data_revs, code_rev, settings, branch, dirty)
    combination = combine(Path(root), request)
    run_options = {"jobs": jobs or len(os.sched_getaffinity(0)), "devices": devices, "pull": pull}
    try:
        result = run(combination, run_options, keep=keep, say=lambda text: logger.info("%s", text))
    except FlowError as error:
        # A state, and not an exception: the caller gets the error, the log no traceback of Prefect's.
        return Failed(message=str(error), data=error)
    try:
        create_markdown_artifact(result.markdown(), key="rerun", description=combination.title)
    except Exception as error:
        # The result is kept; a server that is gone shall not spoil it.
        logger.warning("the artifact could not be published: %s", error)
    return result


def run(combination: Combination, options: Mapping[str, Any], *, keep: bool, say: Callable[[str], None]) -> RerunResult:
    """Run a combination, unless its result is there; ``options`` are those of the flow ``repro``."""
    git, name = combination.git, combination.branch
    with alone(git, name, say):
        if (result := settled(combination)) is not None:
            return result
        say(f"rerun: {combination.title}")
        inputs = git.commit_tree(combination.inputs, combination.origin.id, f"Inputs of a rerun: {combination.title}\n")
        with worktree(git, inputs, name, pull=bool(options.get("pull")), keep=keep, say=say) as tree:
            report = RunReport.from_json(run_flow(root=str(tree.root), **options))
            outcome = _keep(combination, tree, report)
    differences = compare(git.root, combination.origin.id, name)
    return RerunResult(combination, outcome, differences, report, tuple(_notes(combination, tree)))


def _keep(combination: Combination, tree: Worktree, report: RunReport) -> Outcome:
    """Commit what the run changed in tracked files, dvc.lock above all, to the branch."""
    git, name = combination.git, combination.branch
    inside = Git(tree.root)
    inside.run("add", "--update")
    if (tree.root / LOCK_FILE).is_file():
        inside.run("add", "--force", LOCK_FILE)
    result, kept = inside.run("write-tree").strip(), combination.kept()
    if kept and git.tree(f"refs/heads/{name}") == result:
        return "already there"
    # Another result of the same inputs: some that no revision keeps have changed. The branch grows by a commit.
    parent = f"refs/heads/{name}" if kept else combination.origin.id
    commit = git.commit_tree(result, parent, _message(combination, tree, report))
    git.run("branch", "--force", "--no-track", name, commit)
    return "done"


def _message(combination: Combination, tree: Worktree, report: RunReport) -> str:
    trailers = [f"{ORIGIN}: {combination.origin.id}", f"{INPUTS}: {combination.inputs}"]
    trailers += [f"{UNTRACKED}: {path}" for path in tree.untracked]
    body = ["\n".join(combination.lines()), f"Stages: {report.counts()}.", "\n".join(trailers)]
    return "\n\n".join([f"rerun: {combination.title}", *body]) + "\n"


def _notes(combination: Combination, tree: Worktree) -> Iterator[str]:
    """What no revision could bring back."""
    git, told = combination.git, set()
    now = _recorded(git, f"refs/heads/{combination.branch}")
    for version in combination.data:
        then = _recorded(git, version.commit.id)
        for folder in version.folders:
            if folder not in tree.untracked:
                continue
            told.add(folder)
            note = (
                f"{folder} ({version.name}) is kept by neither Git nor DVC, so {version.commit.short} names it and "
                "cannot bring its bytes back: this run read today's"
            )
            if folder in then and folder in now:
                same = "the same as" if then[folder] == now[folder] else "not the same as"
                note += f", which are {same} those recorded in {LOCK_FILE} at {version.commit.short}"
            yield f"{note}. `dvc add` keeps versions of a folder inside the repository."
    others = [path for path in tree.untracked if path not in told]
    if others:
        yield f"read as they are today, since neither Git nor DVC keeps them: {', '.join(others)}."


def _recorded(git: Git, commit: str) -> dict[str, str]:
    """Dep -> hash, from the dvc.lock of a commit."""
    stages = load(git.read(commit, LOCK_FILE) or "{}", LOCK_FILE).get("stages") or {}
    return {str(dep["path"]): str(dep.get("md5", "")) for stage in stages.values() for dep in stage.get("deps") or []}
