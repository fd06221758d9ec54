"""What a rerun gives back: what was combined, what became of each stage, and the metrics beside those of the origin."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from flows.combine import UNTRACKED, Combination
from flows.compare import (
    SHOWN_ROWS,
    Difference,
    compare,
    counted,
    difference_rows,
    markdown_table,
    text_columns,
)
from flows.report import RunReport, text_table

Outcome = Literal["done", "already there", "nothing differs"]


@dataclass(frozen=True)
class RerunResult:
    """A rerun at its end.

    Attributes
    ----------
    combination
        The inputs.
    outcome
        ``done``; ``already there``: a branch holds the result of these inputs; ``nothing differs``: the inputs are
        those of the origin.
    differences
        Metrics of the origin and of the result.
    report
        What became of each stage; None where nothing was run.
    notes
        What the reader should know, a sentence each.
    """

    combination: Combination
    outcome: Outcome
    differences: Sequence[Difference] = ()
    report: RunReport | None = None
    notes: Sequence[str] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        combination, kept = self.combination, self.outcome != "nothing differs"
        return {
            "exit_code": 0,
            "outcome": self.outcome,
            "branch": combination.branch if kept else None,
            "commit": combination.git.run("rev-parse", f"refs/heads/{combination.branch}").strip() if kept else None,
            "origin": combination.origin.id,
            "data": [
                {
                    "name": version.name,
                    "revision": version.commit.id,
                    "changes": [
                        {"key": f"{pointer}.{key}" if key else pointer, "old": plain(old), "new": plain(new)}
                        for pointer, changes in version.changes.items()
                        for key, old, new in changes
                    ],
                }
                for version in combination.data
            ],
            "set": [{"key": key, "old": plain(a), "new": plain(b)} for key, (a, b) in combination.settings.items()],
            "notes": list(self.notes),
            "stages": self.report.as_json()["stages"] if self.report else [],
            "metrics": [difference.as_json() for difference in self.differences],
        }

    def text(self) -> str:
        """The whole for a terminal."""
        parts = ["\n".join(self.combination.lines())]
        if self.outcome == "nothing differs":
            parts.append("nothing differs: these are the inputs of the origin itself, so nothing was run.")
        if self.report:
            columns = shutil.get_terminal_size().columns
            parts.append(f"{text_table(self.report.rows(), columns)}\n{self.report.counts()}")
        if self.outcome != "nothing differs":
            parts.append(self._metrics_text())
        parts += [f"note: {note}" for note in self.notes]
        if self.outcome != "nothing differs":
            parts.append(self._where())
        return "\n\n".join(parts)

    def _metrics_text(self) -> str:
        rows = difference_rows(self.differences, self.combination.origin.short)
        table = text_columns(rows, limit=SHOWN_ROWS, wide=0) + "\n" if len(rows) > 1 else ""
        return f"{table}{counted(self.differences)}"

    def _where(self) -> str:
        branch, origin = self.combination.branch, self.combination.origin.short
        first = {"done": "kept as", "already there": "already there, nothing was run:"}.get(self.outcome, "")
        return (
            f"{first} branch {branch}\n"
            f"  git diff {origin} {branch}; dvc metrics diff {origin} {branch}; dvc exp show --rev {branch}\n"
            f"  its files: git switch {branch} && dvc checkout"
        )

    def markdown(self) -> str:
        """The whole for Prefect's UI."""
        combined = "\n".join(
            f"{' ' * (len(line) - len(line.lstrip()))}- {line.strip()}" for line in self.combination.lines()
        )
        parts = [f"**{self.outcome}**: {self.combination.title}", combined]
        rows = difference_rows(self.differences, self.combination.origin.short)
        parts += [counted(self.differences), *([markdown_table(rows)] if len(rows) > 1 else [])]
        parts += [self.report.markdown()] if self.report else []
        parts += [f"Note: {note}" for note in self.notes]
        if self.outcome != "nothing differs":
            parts.append(f"Branch `{self.combination.branch}`")
        return "\n\n".join(parts)


def plain(value: Any) -> Any:
    """A value of params.yaml as plain JSON data."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def settled(combination: Combination) -> RerunResult | None:
    """The result of a combination that needs no run: a branch has it, or nothing differs; else None.

    A branch whose inputs were not all kept by Git or DVC is not taken for the result: they may have changed.
    """
    if not combination.differs:
        return RerunResult(combination, "nothing differs")
    git, name = combination.git, combination.branch
    if not combination.kept() or git.trailer(name, UNTRACKED):
        return None
    return RerunResult(combination, "already there", compare(git.root, combination.origin.id, name))
