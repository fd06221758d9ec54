"""What a run would do, without doing it and without Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flows.report import RunReport, StageReport
from flows.workspace import Workspace, opened


def plan(root: Path, targets: Sequence[str] = (), *, wait: bool = True) -> RunReport | None:
    """The report of a run that has nothing to do, or None where some stage is not up to date; starts no Prefect."""
    with opened(root, targets, wait=wait) as workspace:
        if any(workspace.changes(name) for name in workspace.upstream):
            return None
        return RunReport([StageReport(name, "up to date") for name in in_order(workspace)])


def in_order(workspace: Workspace) -> list[str]:
    """Stages in an order in which each comes after those it depends on; ties by name."""
    order: list[str] = []
    while len(order) < len(workspace.upstream):
        done = set(order)
        order += sorted(name for name, above in workspace.upstream.items() if name not in done and above <= done)
    return order
