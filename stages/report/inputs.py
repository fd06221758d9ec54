"""What the report is made of: the evaluation of each system, and what the gate of each domain said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from stages import artifacts
from stages.errors import DataError, StageError
from stages.metrics.summary import Summary, read_summary
from stages.report.gate import Gate, invalid, read_gate
from stages.report.svg import Picture, inline


@dataclass(frozen=True)
class System:
    """One system: its metrics.json and its plots, in the order of ``summary.plots``."""

    name: str
    summary: Summary
    pictures: tuple[Picture, ...]


def collect() -> tuple[list[System], list[Gate]]:
    """Read data/evaluations and data/validated, each in the order of its names.

    Raises
    ------
    StageError
        No system was evaluated, or one ran on a domain whose verdict is not there; the message says what to run.
    DataError
        A file is absent or not what its stage writes.
    """
    folders = _folders(artifacts.evaluation("*"))
    if not folders:
        raise StageError(
            f"{artifacts.evaluation('*').parent}: holds no evaluation, so there is nothing to report. "
            "Run `make repro`, or `python -m stages evaluate SYSTEM` for one system."
        )
    systems = [read_system(folder, number) for number, folder in enumerate(folders, 1)]
    gates = [read_gate(folder) for folder in _folders(artifacts.validated("*"))]
    judged = {gate.domain for gate in gates}
    for system in systems:
        if system.summary.domain not in judged:
            raise StageError(
                f"{artifacts.validated(system.summary.domain) / 'summary.json'}: not found, though "
                f"{artifacts.evaluation(system.name) / 'metrics.json'} was made from that domain. "
                f"Run `python -m stages validate {system.summary.domain}`, or `make repro`."
            )
    return systems, gates


def _folders(pattern: Path) -> list[Path]:
    return sorted(path for path in pattern.parent.glob(pattern.name) if path.is_dir())


def read_system(folder: Path, number: int) -> System:
    """Read one evaluation; ``number`` makes the ids of its plots unique in the page."""
    name = folder.name
    file = folder / "metrics.json"
    remedy = f"Run `python -m stages evaluate {name}` again."
    try:
        summary = read_summary(folder)
    except FileNotFoundError:
        raise DataError(file, found="no such file", expected="what evaluate writes", remedy=remedy) from None
    except json.JSONDecodeError as error:
        raise DataError(file, found=f"text that is not JSON ({error})", expected="metrics", remedy=remedy) from None
    except ValidationError as error:
        raise invalid(file, error, remedy) from None
    for table in summary.tables:
        for line, row in enumerate(table.rows, 1):
            if len(row) != len(table.columns):
                raise DataError(
                    file,
                    record=f"table {table.title!r}, row {line}",
                    found=f"{len(row)} cells",
                    expected=f"{len(table.columns)}, one for each column",
                    remedy=remedy,
                )
    pictures = []
    for position, plot in enumerate(summary.plots, 1):
        if PurePosixPath(plot.file).name != plot.file or not plot.file.endswith(".svg"):
            raise DataError(
                file,
                record=f"plot {plot.title!r}",
                found=repr(plot.file),
                expected="the name of an SVG file in plots/",
                remedy=remedy,
            )
        path = folder / "plots" / plot.file
        pictures.append(inline(path, prefix=f"plot-{number}-{position}", label=plot.title, system=name))
    return System(name, summary, tuple(pictures))
