"""The page: templates filled with what the inputs hold, and nothing from outside them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from stages.metrics.summary import Summary
from stages.report import words
from stages.report.chart import chart_of
from stages.report.figures import column_decimals, interval_decimals
from stages.report.gate import About, Expectation, Gate, Remark, Source, Split, Variable
from stages.report.inputs import System

HERE = Path(__file__).parent
GROUPS_SHOWN = 12
SHA256 = re.compile(r"[0-9a-fA-F]{64}")

#: How the outcomes of the gate and of claims look: a colour and a sign beside the word.
MARKS = {
    "pass": ("good", "✓"),
    "pass with quarantine": ("mild", "◐"),
    "stop": ("bad", "✕"),
    "shown": ("good", "●"),
    "not shown": ("mild", "○"),
    "not tested": ("plain", "–"),
}

VARIABLE_COLUMNS = {
    "Unit": "unit",
    "Meaning": "long_name",
    "In the source": "source_column",
    "Its unit": "source_unit",
    "Measured steps": "measured_steps",
}


def render(title: str, records_shown: int, systems: Sequence[System], gates: Sequence[Gate]) -> str:
    """Fill the page.

    Parameters
    ----------
    title
        Heading of the page.
    records_shown
        Quarantined records listed openly for each domain; the others unfold.
    systems, gates
        What :func:`stages.report.inputs.collect` returned.

    Returns
    -------
    str
        HTML that asks for nothing else: styles, script and pictures stand inside it.
    """
    script = tidy(_resource("page.js"))  # the browser compares what stands in the page with its hash
    text = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            title=title,
            records_shown=records_shown,
            systems=systems,
            gates=gates,
            style=Markup(_resource("style.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            sources=unique_sources(gates),
            citations=sorted({citation for system in systems for citation in system.summary.citations}),
        )
    )
    return tidy(text)


def tidy(text: str) -> str:
    """Text without trailing blanks and empty lines, which templates leave behind; doing it twice changes nothing."""
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)).lstrip()


def _resource(name: str) -> str:
    return HERE.joinpath(name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "MARKS": MARKS,
        "chart_of": chart_of,
        "claim_counts": claim_counts,
        "column_decimals": column_decimals,
        "digests_of": digests_of,
        "interval_decimals": interval_decimals,
        "is_numeric": is_numeric,
        "origin_of": origin_of,
        "split_rows": split_rows,
        "variable_table": variable_table,
        "warning_boxes": warning_boxes,
        "GROUPS_SHOWN": GROUPS_SHOWN,
    }
    environment.filters |= {
        "bytes": words.byte_size,
        "cite": words.cite,
        "counted": words.counted,
        "expectation_row": expectation_row,
        "humane": words.humane,
        "number": words.figure,
        "percent": words.percent,
        "plural": words.plural,
        "quote_path": quote,
        "remark_row": remark_row,
        "slug": words.slug,
        "unit": words.unit,
        "warning_row": warning_row,
    }
    return environment


def is_numeric(cells: Sequence[object]) -> bool:
    """Whether a column of a table holds numbers and nothing else (undefined ones aside)."""
    present = [cell for cell in cells if cell is not None]
    return bool(present) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in present)


def claim_counts(summary: Summary) -> dict[str, int]:
    """How many claims showed, did not, and were not tested."""
    verdicts = [claim.verdict for claim in summary.claims]
    return {verdict: verdicts.count(verdict) for verdict in ("shown", "not shown", "not tested")}


def unique_sources(gates: Iterable[Gate]) -> list[Source]:
    """Every source once, in the order of their names; two sets of terms of one source stand apart."""
    sources = [site.source for gate in gates for site in gate.sites.values()]
    found = {(source.source, source.licence or "", source.citation or ""): source for source in sources}
    return [found[key] for key in sorted(found)]


def origin_of(source: Source) -> str:
    """Origin of a source in one line: package and version, simulator and seed, or the user's own path."""
    origin = source.origin
    if "package" in origin:
        archive = f", {origin['archive']}" if "archive" in origin else ""
        return f"{origin['package']} {origin.get('version', '')}{archive}"
    if "path" in origin:
        return str(origin["path"])
    told = [
        f"{label} {_plain(value)}" for label, value in origin.items() if label != "sha256" and value not in ({}, None)
    ]
    return ", ".join([source.kind, *told])


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} = {_plain(item)}" for key, item in value.items()) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(_plain(item) for item in value) + "]"
    return str(value)


def digests_of(source: Source) -> list[tuple[str, str]]:
    """Label and sha256 of the archive; of a source without one, of its only file."""
    archive = source.origin.get("sha256")
    if isinstance(archive, str) and SHA256.fullmatch(archive):
        return [("sha256 of the archive", archive)]
    if len(source.files) == 1:
        return [("sha256 of the file", source.files[0].sha256)]
    return []


def variable_table(about: About) -> tuple[list[str], list[list[str | int | None]]]:
    """Columns and rows of the table of variables; a column that would be empty is left out."""
    columns = {"Variable": list(about.variables)} | {
        heading: [_of_variable(variable, field) for variable in about.variables.values()]
        for heading, field in VARIABLE_COLUMNS.items()
    }
    filled = {heading: cells for heading, cells in columns.items() if any(cell is not None for cell in cells)}
    return list(filled), [list(row) for row in zip(*filled.values(), strict=True)]


def _of_variable(variable: Variable, field: str) -> str | int | None:
    value: str | int | None = getattr(variable, field)
    return words.raised(value) if field.endswith("unit") and isinstance(value, str) else value


def split_rows(split: Split) -> list[tuple[str, int, float | None, str]]:
    """Part, accepted records, share in percent and groups of one split."""
    return [
        (name, part.records, None if part.share is None else 100 * part.share, words.listed(part.groups) or "none")
        for name, part in split.parts.items()
    ]


def remark_row(remark: Remark) -> tuple[str, str, str | None, str | None, str]:
    """Row of the table of quarantined records."""
    return remark.record, remark.group, remark.expectation, remark.observed, "; ".join(remark.reasons)


def warning_row(remark: Remark) -> tuple[str, str, str]:
    """Row of the table of warnings."""
    return remark.record, remark.group, "; ".join(remark.reasons)


def warning_boxes(gate: Gate) -> list[tuple[str, list[Remark]]]:
    """Records with warnings by group; all under one heading where the groups are many."""
    by_group = {group: list(remarks) for group, remarks in groupby(gate.warned, key=lambda remark: remark.group)}
    if len(by_group) > GROUPS_SHOWN:
        return [(f"{len(by_group)} groups", gate.warned)]
    return list(by_group.items())


def expectation_row(count: Expectation) -> tuple[str, str, int, int, int]:
    """Row of the table of expectations."""
    return count.expectation, count.severity, count.judged, count.not_judged, count.failed
