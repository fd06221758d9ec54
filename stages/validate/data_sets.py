"""What the gates of all domains do with ingested data sets: find them, read them, and tell how they fared."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import polars as pl
from pydantic import Field

from stages import artifacts
from stages.errors import DataError, UsageError
from stages.params import Config
from stages.validate import verdicts
from stages.validate.expectations import Result
from stages.validate.verdicts import Judgement

Gate = TypeVar("Gate", bound=Config)


class GateOf(Config, Generic[Gate]):
    """One data set of params.yaml, as far as the gate of its domain reads it."""

    path: Any = Field(None, description="read by ingest")
    format: Any = Field(None, description="read by ingest")
    gate: Gate | None = Field(None, description="the limits that differ from the domain's own gate")
    licence: str | None = Field(None, description="overrides the licence of the source's manifest")
    citation: str | None = Field(None, description="overrides the citation of the source's manifest")


@dataclass(frozen=True)
class JudgedSet:
    """One data set with the verdict on its records; ``results`` are those of the expectations on them."""

    key: str
    records: pl.DataFrame
    verdict: pl.DataFrame
    results: Sequence[Result]
    suite: Mapping[str, Any]
    judgement: Judgement
    about: Mapping[str, Any]
    manifest: Mapping[str, Any]

    @property
    def accepted(self) -> pl.Series:
        """Whether each record is accepted."""
        return self.verdict["outcome"] == verdicts.ACCEPTED


def warn_of_strangers(domain: str, block: str, noun: str, known: Iterable[str]) -> None:
    """Name on stderr the ingested data sets that params.yaml no longer names: nobody reads them.

    Parameters
    ----------
    block, known
        Where params.yaml names the data sets of the domain, and the names that stand there.
    noun
        What a data set is: site, corpus.
    """
    folder = artifacts.ingested(domain)
    found = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for key in found:
        if key not in known:
            print(
                f"warning: {folder / key} is not a {noun} of params.yaml ({block}) and is left out; "
                f"remove it with `rm -r {folder / key}`, or name the {noun} again.",
                file=sys.stderr,
            )


def read_ingested(
    domain: str, key: str, *, block: str, noun: str, about: str
) -> tuple[pl.DataFrame, dict[str, Any], dict[str, Any]]:
    """Records, description and manifest of one ingested data set.

    Parameters
    ----------
    about
        Name of the JSON file that describes the data set.

    Raises
    ------
    UsageError
        The data set was not ingested.
    DataError
        A file is absent or not readable.
    """
    folder = artifacts.ingested(domain, key)
    again = f"Run `python -m stages ingest {domain}@{key}` again."
    if not folder.is_dir():
        raise UsageError(
            f"{block}.{key} of params.yaml was not ingested: {folder} is missing. "
            f"Run `dvc repro`, or `python -m stages ingest {domain}@{key}`, first, or take the {noun} out of "
            "params.yaml."
        )
    for name in ("records.parquet", about, "manifest.json"):
        if not (folder / name).is_file():
            raise DataError(
                folder / name, found="no such file", expected=f"what ingest writes for every {noun}", remedy=again
            )
    try:
        records = artifacts.read_table(folder / "records.parquet").collect()
    except pl.exceptions.PolarsError as error:
        raise DataError(
            folder / "records.parquet",
            found=f"no readable table ({' '.join(str(error).split())})",
            expected="parquet",
            remedy=again,
        ) from error
    return records, artifacts.read_json(folder / about), artifacts.read_json(folder / "manifest.json")


def terms(manifest: Mapping[str, Any], licence: str | None, citation: str | None) -> dict[str, Any]:
    """The manifest of a data set; licence and citation of params.yaml win."""
    overrides = {"licence": licence, "citation": citation}
    return dict(manifest) | {name: text for name, text in overrides.items() if text is not None}


def source_facts(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a data set comes from, for its page: source, terms, origin, files."""
    found = [(name, str(source[name])) for name in ("source", "licence", "citation") if source.get(name)]
    found += [(f"origin: {name}", str(value)) for name, value in source.get("origin", {}).items()]
    return [*found, *(("file", f"{file['name']}, sha256 {file['sha256']}") for file in source.get("files", []))]


def worst_first(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Data sets in the order of their quarantined share, those without any record first."""

    def rank(judgement: Judgement) -> tuple[float, str]:
        part = judgement.quarantined_share
        return (-1.0 if part is None else -part), judgement.name

    return sorted(judgements, key=rank)


def state(outcome: str, warnings: str | None) -> str:
    """How one record looks in a grid: accepted, warned or quarantined."""
    return "warned" if outcome == verdicts.ACCEPTED and warnings else outcome


def line(judgement: Judgement, nouns: str) -> str:
    """One line of the terminal for one data set, or for all."""
    return (
        f"{judgement.name}: {judgement.outcome}: {judgement.accepted} of {judgement.ingested} {nouns} accepted, "
        f"{judgement.warned} of them with warnings, {judgement.quarantined} quarantined"
    )
