"""Metrics of two or more commits side by side, as DVC reads them from dvc.lock and the cache."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.errors import FlowError

SHOWN_ROWS = 40


@dataclass(frozen=True)
class Difference:
    """One number of the metrics files in two commits; None where a commit does not have it."""

    metric: str
    old: float | None
    new: float | None

    @property
    def difference(self) -> float | None:
        """New minus old."""
        return None if self.old is None or self.new is None else self.new - self.old

    @property
    def changed(self) -> bool:
        """Whether the two differ."""
        return self.old != self.new

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"metric": self.metric, "old": self.old, "new": self.new, "difference": self.difference}


def compare(root: Path, old: str, new: str) -> list[Difference]:
    """Every number in the metrics files of two commits, as `dvc metrics diff` gives them.

    Raises
    ------
    FlowError
        DVC cannot read them; the message is DVC's own.
    """
    command = [sys.executable, "-m", "dvc", "metrics", "diff", "--all", "--json", old, new]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise FlowError(f"{root}: `dvc metrics diff {old} {new}` failed: {done.stderr.strip().removeprefix('ERROR: ')}")
    found: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(done.stdout or "{}")
    rows = [
        Difference(f"{file}:{key}", _number(values.get("old")), _number(values.get("new")))
        for file, metrics in sorted(found.items())
        for key, values in sorted(metrics.items())
    ]
    return [row for row in rows if row.old is not None or row.new is not None]


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def shown(value: float | None, sign: str = "") -> str:
    """A number as a table shows it."""
    return "-" if value is None else f"{value:{sign}.6g}"


def difference_rows(differences: Sequence[Difference], origin: str) -> list[tuple[str, ...]]:
    """Head and rows of the numbers that differ; the file's name is left out where all are in one."""
    names = short_names([row.metric for row in differences])
    rows = [
        (name, shown(row.old), shown(row.new), shown(row.difference, "+"))
        for name, row in zip(names, differences, strict=True)
        if row.changed
    ]
    return [("metric", f"at {origin}", "rerun", "difference"), *rows]


def short_names(metrics: Sequence[str]) -> list[str]:
    """Names of metrics without their file where they all have the same."""
    files = {metric.partition(":")[0] for metric in metrics}
    return [metric.partition(":")[2] if len(files) == 1 else metric for metric in metrics]


def counted(differences: Sequence[Difference]) -> str:
    """How many of how many numbers differ, in words."""
    count = sum(row.changed for row in differences)
    if not differences:
        return "no metrics to compare"
    return f"{count or 'none'} of {len(differences)} metrics {'differs' if count <= 1 else 'differ'}"


def text_columns(rows: Sequence[tuple[str, ...]], *, limit: int | None = None, wide: int | None = None) -> str:
    """A head and rows in columns that fit the terminal; what does not is cut from column ``wide``, where one is named.

    Columns whose cells are all numbers stand at the right.
    """
    kept = rows if limit is None else rows[: limit + 1]
    widths = [max(len(row[column]) for row in kept) for column in range(len(kept[0]))]
    if wide is not None:
        room = shutil.get_terminal_size().columns - sum(widths) + widths[wide] - 2 * (len(widths) - 1)
        widths[wide] = min(widths[wide], max(20, room))
    right = [all(_is_number(row[column]) for row in kept[1:]) for column in range(len(widths))]
    lines = []
    for row in kept:
        cells = []
        for cell, width, to_right in zip(row, widths, right, strict=True):
            text = cell if len(cell) <= width else f"{cell[: width - 1]}…"
            cells.append(text.rjust(width) if to_right else text.ljust(width))
        lines.append("  ".join(cells).rstrip())
    if len(kept) < len(rows):
        lines.append(f"… and {len(rows) - len(kept)} more; --json has them all")
    return "\n".join(lines)


def markdown_table(rows: Sequence[tuple[str, ...]]) -> str:
    """A head and rows as Prefect's UI shows them."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _is_number(cell: str) -> bool:
    if cell == "-":
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True
