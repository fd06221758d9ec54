"""The flow ``backfill``: a rerun for each version that a data set had in a range of commits, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Failed

from flows.combine import Request
from flows.errors import FlowError
from flows.report import GATE_STOPPED
from flows.rerun import rerun
from flows.results import RerunResult
from flows.versions import Backfill, Version, find_versions


class BackfillFailed(FlowError):
    """A backfill in which some version failed; it carries the whole."""

    def __init__(self, backfill: Backfill) -> None:
        self.backfill = backfill
        self.exit_code = backfill.exit_code
        super().__init__(f"{backfill.name}: {backfill.counts()}")


@flow(name="backfill", persist_result=False, result_serializer="json", validate_parameters=False)
def backfill(
    data_revs: str,
    code_rev: str = "",
    settings: Sequence[str] = (),
    dirty: bool = False,
    jobs: int = 0,
    devices: str = "auto",
    pull: bool = False,
    root: str = ".",
) -> Backfill | State[Any]:
    """Rerun for each version of a data set in a range; those that a branch has are not run again.

    Parameters
    ----------
    data_revs
        ``NAME=A..B``.
    code_rev, settings, dirty, jobs, devices, pull, root
        As for the flow ``rerun``.

    Raises
    ------
    BackfillFailed
        Some version failed, or a gate stopped it; the others were done all the same.
    """
    logger = get_run_logger()
    found = find_versions(Path(root), data_revs, Request((), code_rev, settings, "", dirty))
    done: list[Version] = []
    for number, version in enumerate(found.versions, 1):
        logger.info("%d of %d: %s: %s", number, len(found.versions), version.commit, version.outcome)
        done.append(_rerun(version, settings, jobs, devices, pull, root) if version.outcome == "to do" else version)
    result = replace(found, versions=done)
    create_markdown_artifact(result.markdown(), key="backfill", description=data_revs)
    if result.exit_code:
        failed = BackfillFailed(result)
        return Failed(message=str(failed), data=failed)
    return result


def _rerun(version: Version, settings: Sequence[str], jobs: int, devices: str, pull: bool, root: str) -> Version:
    assert version.combination is not None
    origin, data = version.combination.origin.id, version.combination.data[0]
    try:
        result = rerun.with_options(flow_run_name=version.combination.branch)(
            [f"{data.name}={data.commit.id}"],
            origin,
            settings,
            version.combination.branch,
            jobs=jobs,
            devices=devices,
            pull=pull,
            root=root,
        )
    except FlowError as error:
        return replace(
            version, outcome="gate stopped" if error.exit_code == GATE_STOPPED else "failed", detail=str(error)
        )
    assert isinstance(result, RerunResult)
    return replace(version, outcome=result.outcome, result=result)
