"""What a run leaves in Prefect's UI: the table of stages with their reasons, changed metrics, and links to pages."""

from __future__ import annotations

from collections.abc import Mapping

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact

from flows.prefect_server import lost
from flows.report import DONE, RunReport
from flows.workspace import Workspace


def publish(report: RunReport, before: Mapping[str, float], workspace: Workspace) -> None:
    """Publish the artifacts ``stages``, ``metrics`` and ``pages`` of the flow run this is called in."""
    create_markdown_artifact(report.markdown(), key="stages", description="what became of each stage, and why")
    create_markdown_artifact(metrics_table(before, workspace.metrics()), key="metrics", description="against before")
    create_markdown_artifact(page_list(report, workspace), key="pages", description="pages the stages wrote")


def try_publishing(report: RunReport, before: Mapping[str, float], workspace: Workspace) -> bool:
    """Publish the artifacts; False: the server is gone, which shall not spoil a run whose results are kept."""
    logger = get_run_logger()
    if url := lost():
        logger.warning("Prefect's server at %s is gone; the results are kept, the artifacts are not", url)
        return False
    try:
        publish(report, before, workspace)
    except Exception as error:
        logger.warning("the artifacts could not be published: %s", error)
    return True


def metrics_table(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Numbers of the metrics files that this run changed, as a Markdown table."""
    changed = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    if not changed:
        return f"None of {len(after)} numbers changed."
    lines = ["| metric | before | now | change |", "|---|---:|---:|---:|"]
    for key in changed:
        old, new = before.get(key), after.get(key)
        difference = "-" if old is None or new is None else f"{new - old:+.6g}"
        lines.append(f"| {key} | {_number(old)} | {_number(new)} | {difference} |")
    return "\n".join([f"**{len(changed)} of {len(after)} numbers changed**", "", *lines])


def page_list(report: RunReport, workspace: Workspace) -> str:
    """Links to every index.html among the outs."""
    pages = []
    for stage in report.stages:
        if stage.outcome in DONE:
            pages += [page for out in workspace.outs(stage.name) if (page := out / "index.html").is_file()]
    return (
        "\n".join(f"- [{page.relative_to(workspace.root)}]({page.as_uri()})" for page in sorted(pages))
        or "No page was written."
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
