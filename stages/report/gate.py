"""What the gate of a domain wrote, as the page tells it: counts, reasons, splits, and where the data come from.

The contract is the shape of data/validated/DOMAIN/summary.json and verdict.parquet. Keys that this module does not name
are left alone; keys it names and does not find are an error that says which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from stages import artifacts
from stages.errors import DataError

JOIN = " | "  # between the reasons, or the warnings, of one record
PARTS = ("train", "validation", "test")
VERDICT_COLUMNS = ("record_id", "group", "outcome", "expectation", "observed", "reason", "warnings")


class Read(BaseModel):
    """Base of what is read here: unknown keys belong to other readers."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Count(Read):
    """Records of one group, or of all, and what the gate says to them."""

    ingested: int
    accepted: int
    quarantined: int
    quarantined_share: float | None
    max_quarantined: float
    outcome: Literal["pass", "pass with quarantine", "stop"]
    stops: list[str]


class Expectation(Read):
    """How many records one expectation judged, and how many failed it."""

    expectation: str
    severity: Literal["quarantine", "warning"]
    judged: int
    not_judged: int
    failed: int


class Part(Read):
    """One part of a split, in accepted records."""

    records: int
    share: float | None
    groups: list[str]


class Split(Read):
    """One split: its parts in order, and what a reader should know about it."""

    parts: dict[str, Part]
    notes: list[str]


class _Splits(BaseModel):
    """All splits of a domain by name, beside the seed they were made with (null: nothing was drawn)."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Split]

    seed: int | None


class Variable(Read):
    """One variable of the harmonised data set, and what it was in the source."""

    unit: str
    long_name: str | None = None
    source_column: str | None = None
    source_unit: str | None = None
    measured_steps: int | None = None


class About(Read):
    """What the ingested data set holds; start, end and resolution are null where the domain has none."""

    start: str | None
    end: str | None
    resolution: str | None
    variables: dict[str, Variable]
    notes: list[str]


class File(Read):
    """One file of a source."""

    name: str
    bytes: int
    sha256: str
    member: str | None = None


class Source(Read):
    """Where raw bytes come from and on whose terms: the manifest of the source."""

    source: str
    kind: str
    origin: dict[str, JsonValue]
    files: list[File]
    licence: str | None = None
    citation: str | None = None


class Site(Count):
    """One data set of a domain (a site, a corpus): its verdict, its content, its source."""

    about: About
    source: Source


class _Summary(Count):
    domain: str
    noun: str = "record"
    expectations: list[Expectation]
    splits: _Splits
    leakage: dict[str, list[str]]
    sites: dict[str, Site]


@dataclass(frozen=True)
class Remark:
    """A record with what is said against it, or about it."""

    group: str
    record: str
    expectation: str | None
    observed: str | None
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Tally:
    """Records of one group that share the expectation they failed first."""

    group: str
    expectation: str
    records: int


@dataclass(frozen=True)
class Gate:
    """What the gate says about one domain."""

    domain: str
    noun: str
    total: Count
    expectations: list[Expectation]
    seed: int | None
    splits: dict[str, Split]
    leakage: dict[str, list[str]]
    sites: dict[str, Site]
    quarantined: list[Remark]
    warned: list[Remark]
    #: Ingested records by group, as the verdict has them.
    sizes: dict[str, int]
    #: Name of the folder in data/validated, and whether the pages of the expectations lie in it.
    folder: str
    docs: bool

    @property
    def tallies(self) -> dict[str, list[Tally]]:
        """By group: how many quarantined records failed which expectation first, the most frequent first."""
        found: dict[str, list[Tally]] = {}
        for group, remarks in groupby(self.quarantined, key=lambda remark: remark.group):
            counts: dict[str, int] = {}
            for remark in remarks:
                counts[remark.expectation or "–"] = counts.get(remark.expectation or "–", 0) + 1
            ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            found[group] = [Tally(group, name, records) for name, records in ordered]
        return found


def read_gate(folder: Path) -> Gate:
    """Read summary.json and verdict.parquet of one domain.

    Raises
    ------
    DataError
        A file is absent, cannot be read, lacks a key, or the two contradict each other.
    """
    file = folder / "summary.json"
    remedy = f"Run `python -m stages validate {folder.name}` again."
    try:
        tree: Any = artifacts.read_json(file)
    except FileNotFoundError:
        raise DataError(file, found="no such file", expected="what validate writes", remedy=remedy) from None
    except json.JSONDecodeError as error:
        raise DataError(file, found=f"text that is not JSON ({error})", expected="a summary", remedy=remedy) from None
    try:
        summary = _Summary.model_validate(tree)
    except ValidationError as error:
        raise invalid(file, error, remedy) from None
    verdict = _read_verdict(folder / "verdict.parquet", summary, remedy)
    quarantined, warned = _remarks(verdict)
    return Gate(
        domain=summary.domain,
        noun=summary.noun,
        total=summary,
        expectations=summary.expectations,
        seed=summary.splits.seed,
        splits={name: _in_order(split) for name, split in summary.splits.__pydantic_extra__.items()},
        leakage=summary.leakage,
        sites=dict(sorted(summary.sites.items())),
        quarantined=quarantined,
        warned=warned,
        sizes={_text(group): records for group, records in verdict.group_by("group").len().iter_rows()},
        folder=folder.name,
        docs=(folder / "docs" / "index.html").is_file(),
    )


def _read_verdict(file: Path, summary: _Summary, remedy: str) -> pl.DataFrame:
    try:
        verdict = artifacts.read_table(file).collect()
    except FileNotFoundError:
        raise DataError(file, found="no such file", expected="what validate writes", remedy=remedy) from None
    except pl.exceptions.PolarsError as error:
        found = f"no readable table ({' '.join(str(error).split())})"
        raise DataError(file, found=found, expected="parquet", remedy=remedy) from None
    absent = [name for name in VERDICT_COLUMNS if name not in verdict.columns]
    if absent:
        columns = ", ".join(verdict.columns)
        raise DataError(file, found=f"columns {columns}", expected=f"also {', '.join(absent)}", remedy=remedy)
    refused = verdict.filter(pl.col("outcome") == "quarantined").height
    if (verdict.height, refused) != (summary.ingested, summary.quarantined):
        raise DataError(
            file,
            found=f"{verdict.height} records, {refused} quarantined",
            expected=f"{summary.ingested} and {summary.quarantined}, as summary.json beside it says",
            remedy=remedy,
        )
    return verdict.select(VERDICT_COLUMNS).sort("group", "record_id", nulls_last=True)


def _remarks(verdict: pl.DataFrame) -> tuple[list[Remark], list[Remark]]:
    """Quarantined records with their reasons, and accepted ones with their warnings."""
    quarantined = [
        Remark(_text(group), _text(record), expectation, observed, tuple((reason or "").split(JOIN)))
        for record, group, _, expectation, observed, reason, _ in verdict.filter(
            pl.col("outcome") == "quarantined"
        ).iter_rows()
    ]
    # A quarantined record may bear warnings too; its reasons say more.
    warned = [
        Remark(_text(group), _text(record), None, None, tuple(warnings.split(JOIN)))
        for record, group, _, _, _, _, warnings in verdict.filter(
            (pl.col("outcome") == "accepted") & pl.col("warnings").is_not_null()
        ).iter_rows()
    ]
    return quarantined, warned


def _in_order(split: Split) -> Split:
    """The parts as they are used, whatever the order of the file."""
    known = [name for name in PARTS if name in split.parts]
    names = [*known, *sorted(set(split.parts) - set(PARTS))]
    return split.model_copy(update={"parts": {name: split.parts[name] for name in names}})


def _text(value: str | None) -> str:
    return "–" if value is None else value


def invalid(file: Path, error: ValidationError, remedy: str) -> DataError:
    """The first fault of a JSON file, with the place it lies in and how many more there are."""
    faults = error.errors(include_url=False)
    fault = faults[0]
    place = ".".join(str(part) for part in fault["loc"]) or "the top level"
    found = "no such key" if fault["type"] == "missing" else repr(fault["input"])[:80]
    more = f", and {len(faults) - 1} more faults" if len(faults) > 1 else ""
    message = fault["msg"][:1].lower() + fault["msg"][1:]
    return DataError(
        file, record=place, found=found, expected=f"what its stage writes ({message}{more})", remedy=remedy
    )
