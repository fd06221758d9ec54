"""``python -m stages results``: the tables of the evaluations as they are now, kept in docs/results.md.

A section says at which commit and size it was made. Other sections stay, so that one system can be run again alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stages import artifacts
from stages.commands.params import DEFAULT, PROFILES, leaves
from stages.errors import DataError, UsageError
from stages.metrics.summary import Headline, Summary, Table, read_summary
from stages.params import PARAMS_FILE, load_params
from stages.report.figures import column_decimals, interval_decimals, number

PAGE = Path("docs/results.md")
PLOTS = Path("docs/results")

INTRODUCTION = """\
# Results

Every table, curve and ablation at study size, written by `make results` (hours on two cores), or for one system by
`python -m stages params apply study`, `dvc repro evaluate-SYSTEM` and `python -m stages results SYSTEM`. Each section
names the commit and the size it was made with. `make repro` brings the default size into the report.
"""

SECTION = re.compile(r"<!-- results: (?P<name>\w+) -->\n.*?<!-- end: (?P=name) -->\n", re.DOTALL)
#: What a run itself writes.
RUN_FILES = ("params.yaml", "dvc.lock", "docs/results.md")


def run(words: list[str], *, write: bool) -> None:
    """Write the sections of the systems named, or of all that were evaluated.

    Raises
    ------
    UsageError
        A system that has no evaluation.
    """
    del write  # belongs to `deps`
    evaluated = sorted(path.parent.name for path in artifacts.evaluation("*").parent.glob("*/metrics.json"))
    unknown = [name for name in words if name not in evaluated]
    if unknown or not evaluated:
        raise UsageError(
            f"`results {' '.join(words)}`: no evaluation of {', '.join(unknown) or 'any system'} in "
            f"{artifacts.evaluation('*').parent}; run `dvc repro evaluate-SYSTEM` first. There are: "
            f"{', '.join(evaluated) or 'none'}."
        )
    sections = read_sections(PAGE)
    origin = made_with()
    for name in words or evaluated:
        summary = read_summary(artifacts.evaluation(name))
        sections[name] = section(name, summary, origin, copy_plots(name, summary))
        print(f"{PAGE}: {summary.title}")
    PAGE.write_text("\n".join([INTRODUCTION, *(sections[name] for name in sorted(sections))]), encoding="utf-8")


def read_sections(page: Path) -> dict[str, str]:
    """The sections of the page by system; none where there is no page."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    return {match["name"]: match[0] for match in SECTION.finditer(text)}


def made_with() -> str:
    """Commit, size and seeds of the workspace, and every setting that is not the profile's, in words."""
    params = load_params()
    commit = git("rev-parse", "--short=10", "HEAD").strip()
    changed = [line[3:] for line in git("status", "--porcelain", "--untracked-files=no").splitlines()]
    other = [file for file in changed if file not in RUN_FILES and not file.startswith(f"{PLOTS}/")]
    said = f", with uncommitted changes in {', '.join(other)}" if other else ""
    seeds = ", ".join(str(seed) for seed in params.get("seeds", []))
    different = [f"`{key}={value}`" for key, value in departures(params).items()]
    but = f", but {', '.join(different)}" if different else ""
    return f"Commit {commit}{said}; profile `{params.get('profile')}`{but}; seeds {seeds}."


def departures(params: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that differ from the committed params.yaml with the profile laid over it, by dotted key.

    Parameters
    ----------
    params
        params.yaml as it is now.
    """
    expected = dict(leaves(yaml.safe_load(git("show", f"HEAD:{PARAMS_FILE.as_posix()}"))))
    for layer in dict.fromkeys([DEFAULT, params.get("profile", DEFAULT)]):
        path = PROFILES / f"{layer}.yaml"
        expected |= dict(leaves(load_params(path))) if path.is_file() else {}
    now = dict(leaves(params))
    keys = sorted((now.keys() | expected.keys()) - {"profile"})
    return {key: now.get(key, "absent") for key in keys if now.get(key, "absent") != expected.get(key, "absent")}


def git(*words: str) -> str:
    """What git answers in the working folder."""
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def copy_plots(name: str, summary: Summary) -> list[str]:
    """Copy the plots that belong on the page beside it, and return them as Markdown."""
    folder = PLOTS / name
    shutil.rmtree(folder, ignore_errors=True)
    lines = []
    for plot in (plot for plot in summary.plots if plot.on_results_page):
        source = artifacts.evaluation(name) / "plots" / plot.file
        if not source.is_file():
            raise DataError(
                source,
                found="no such file",
                expected="the plot that metrics.json names",
                remedy=f"Run `dvc repro evaluate-{name}`.",
            )
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / plot.file)
        link = f"{folder.relative_to(PAGE.parent).as_posix()}/{plot.file}"
        lines.append(f"![{plot.title}]({link})\n\n*{plot.title}.* {plot.caption}\n")
    return lines


def section(name: str, summary: Summary, origin: str, plots: Sequence[str]) -> str:
    """One system: where it was made, the headline, the claims, the plots, and the tables, folded."""
    claims = Table(
        title="Claims",
        caption="",
        columns=["claim", "verdict", "evidence"],
        rows=[[claim.claim, claim.verdict, claim.evidence] for claim in summary.claims],
    )
    parts = [
        f"<!-- results: {name} -->\n## {summary.title}\n",
        f"{origin}\n",
        f"{headline(summary.headline)}\n",
        *markdown(claims),
        *plots,
    ]
    for table in summary.tables:
        parts += [f"<details><summary>{escaped(table.title)}</summary>\n", f"{table.caption}\n"]
        parts += [*markdown(table), "</details>\n"]
    return "\n".join([*parts, f"<!-- end: {name} -->\n"])


def headline(head: Headline) -> str:
    """The figure of a system in one sentence."""
    decimals = interval_decimals(head.value, head.low, head.high)
    value, low, high, baseline = (
        number(figure, decimals) for figure in (head.value, head.low, head.high, head.baseline_value)
    )
    unit = f" {head.unit}" if head.unit not in ("", "1") else ""
    simulated = ", simulated" if head.simulated else ""
    return (
        f"**{head.metric}: {value}{unit}** (95 % interval {low} to {high}; {head.baseline}: {baseline}){simulated}. "
        f"{head.records} records, {head.groups} groups ({head.split_unit}), {head.seeds} seeds."
    )


def markdown(table: Table) -> list[str]:
    """A table's lines, and an empty one; one number of decimals a column, as in the report."""
    columns = list(zip(*table.rows, strict=True)) if table.rows else [() for _ in table.columns]
    decimals = [column_decimals(cells) for cells in columns]
    lines = ["| " + " | ".join(escaped(column) for column in table.columns) + " |"]
    lines.append("|" + "---|" * len(table.columns))
    for row in table.rows:
        lines.append("| " + " | ".join(cell(*pair) for pair in zip(row, decimals, strict=True)) + " |")
    return ["\n".join(lines), ""]


def cell(value: str | float | int | bool | None, decimals: int | None) -> str:
    """One cell as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return escaped(value) if isinstance(value, str) else number(value, decimals)


def escaped(text: str) -> str:
    """Text that Markdown takes as it is inside a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
