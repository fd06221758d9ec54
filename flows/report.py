"""What a run did with each stage, and why: as objects, as a table for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from flows.changes import Change

Outcome = Literal["ran", "restored from cache", "up to date", "gate stopped", "failed", "not reached"]

#: Outcomes after which a stage's outs are those of its deps.
DONE = frozenset({"ran", "restored from cache", "up to date"})
#: Outcomes after which a run starts nothing new, unless told to keep going.
STOPPED = frozenset({"failed", "gate stopped"})
#: Exit code of a stage whose gate refuses the data.
GATE_STOPPED = 3
SHOWN_CHANGES = 3


@dataclass
class StageReport:
    """One stage of a run.

    Attributes
    ----------
    name
        The stage, as DVC names it.
    outcome
        What became of it.
    why
        What had changed; empty where it was up to date or never reached.
    seconds
        Time its command took; 0 where none ran.
    device
        Device it held, or None.
    detail
        What went wrong, in words.
    """

    name: str
    outcome: Outcome
    why: list[Change] = field(default_factory=list)
    seconds: float = 0.0
    device: str | None = None
    detail: str | None = None

    @property
    def reasons(self) -> list[str]:
        """What went wrong, then the first changes in words, and how many more there are."""
        found = [self.detail] if self.detail else []
        found += [str(change) for change in self.why[:SHOWN_CHANGES]]
        if len(self.why) > SHOWN_CHANGES:
            found.append(f"and {len(self.why) - SHOWN_CHANGES} more")
        return found

    @property
    def reason(self) -> str:
        """The reasons in one line."""
        return "; ".join(self.reasons) or "-"


@dataclass
class RunReport:
    """All stages of a run, in the order they were decided on."""

    stages: list[StageReport] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 where every stage is done, 3 where a gate stopped one, 1 where one failed."""
        outcomes = {stage.outcome for stage in self.stages}
        if "failed" in outcomes:
            return 1
        return GATE_STOPPED if "gate stopped" in outcomes else 0 if outcomes <= DONE else 1

    def counts(self) -> str:
        """How many stages ended how, in words."""
        found: dict[str, int] = {}
        for stage in self.stages:
            found[stage.outcome] = found.get(stage.outcome, 0) + 1
        return ", ".join(f"{count} {outcome}" for outcome, count in found.items()) or "no stage"

    def as_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "exit_code": self.exit_code,
            "stages": [
                {
                    "stage": stage.name,
                    "outcome": stage.outcome,
                    "why": [
                        {"what": change.what, "name": change.name, "old": change.old, "new": change.new}
                        for change in stage.why
                    ],
                    "seconds": round(stage.seconds, 3),
                    "device": stage.device,
                    "detail": stage.detail,
                }
                for stage in self.stages
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunReport:
        """A report as :meth:`as_json` gave it."""
        return cls(
            [
                StageReport(
                    stage["stage"],
                    stage["outcome"],
                    [Change(**change) for change in stage["why"]],
                    stage["seconds"],
                    stage["device"],
                    stage["detail"],
                )
                for stage in data["stages"]
            ]
        )

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Stage, outcome, why, seconds, device."""
        return [
            (
                stage.name,
                stage.outcome,
                stage.reason,
                shown_seconds(stage.seconds),
                stage.device or "-",
            )
            for stage in self.stages
        ]

    def markdown(self) -> str:
        """The table as Prefect's UI shows it: its cells do not wrap, so each further reason has a row of its own."""
        lines = ["| stage | outcome | seconds | device | why |", "|---|---|---:|---|---|"]
        for stage in self.stages:
            first, *more = stage.reasons or ["-"]
            rows = [(stage.name, str(stage.outcome), shown_seconds(stage.seconds), stage.device or "-", first)]
            rows += [("", "", "", "", reason) for reason in more]
            lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return "\n".join([f"**{self.counts()}**", "", *lines])


def shown_seconds(seconds: float) -> str:
    """Seconds with as many digits as tell something."""
    return "-" if not seconds else f"{seconds:.2f}" if seconds < 1 else f"{seconds:.1f}"


HEADS = ("stage", "outcome", "why", "seconds", "device")


def text_table(rows: Sequence[tuple[str, ...]], width: int) -> str:
    """Rows under their heads, the third column wrapped so that lines fit a terminal of a width."""
    table = [HEADS, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADS))]
    room = max(24, width - sum(widths) + widths[2] - 2 * (len(HEADS) - 1))
    widths[2] = min(widths[2], room)
    lines = []
    for row in table:
        first, *more = textwrap.wrap(row[2], widths[2]) or [""]
        cells = (row[0], row[1], first, row[3], row[4])
        lines.append("  ".join(cell.ljust(w) for cell, w in zip(cells, widths, strict=True)).rstrip())
        lines += [" " * (widths[0] + widths[1] + 4) + text for text in more]
    return "\n".join(lines)
