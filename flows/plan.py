"""What a run would do, without doing it and without Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flows.report import RunReport, StageReport
from flows.workspace import Workspace, opened


def plan(root: Path, targets: Sequence[str] = (), *, wait: bool = True) -> RunReport | None:
    """The report of a run that has nothing to do, or None where some stage is not up to date; starts no Prefect."""
    with opened(root, targets, wait=wait) as workspace:
        return idle_report(workspace)


def idle_report(workspace: Workspace) -> RunReport | None:
    """As :func:`plan`, in a workspace that is open."""
    if any(workspace.changes(name) for name in workspace.upstream):
        return None
    return RunReport([StageReport(name, "up to date") for name in in_order(workspace)])


def in_order(workspace: Workspace) -> list[str]:
    """Stages in the order in which ``dvc repro`` takes them: each comes after those it depends on."""
    return list(workspace.upstream)


def heights(workspace: Workspace) -> dict[str, int]:
    """Stage -> the stages on the longest way from it down to a last one, itself included."""
    found = dict.fromkeys(workspace.upstream, 1)
    for name in reversed(in_order(workspace)):
        for above in workspace.upstream[name]:
            found[above] = max(found[above], found[name] + 1)
    return found
