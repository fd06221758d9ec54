"""``python -m stages ingest rna@KEY``: one set to molecules, records and labels, a part in memory at a time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts, manifest
from stages.ingest.rna.config import Format, Labels
from stages.ingest.rna.schema import MFE, RECORD_COLUMNS
from stages.params import StageParams, bound

if TYPE_CHECKING:
    from stages.ingest.rna.molecules import RnaSet
    from stages.ingest.rna.parts import Parts
    from stages.manifest import Manifest


class Params(StageParams):
    """What ingest reads of params.yaml."""

    path: Path = bound("rna.sets.{key}.path")
    format: Format = bound("rna.sets.{key}.format")
    labels: Labels = bound("rna.labels")


def run(params: Params, *, name: str, key: str) -> None:
    """Read one set and write molecules.parquet, records.parquet, labels.parquet, set.json and manifest.json.

    Raises
    ------
    DataError
        The files are not what they should be; nothing is written.
    """
    from stages.ingest.origin import origin
    from stages.ingest.rna.parts import Parts
    from stages.ingest.rna.sets import open_set
    from stages.runtime import progress

    source = origin(params.path, f"{name}@{key}")
    opened = open_set(params.path, params.format, key)
    with artifacts.atomic(artifacts.ingested(name, key)) as draft:
        draft.mkdir()
        parts = Parts(draft / "parts", key)
        for molecule in progress(opened.molecules(), key, unit="molecules"):
            parts.add(molecule)
        parts.write(draft / "molecules.parquet", draft / "records.parquet")
        labels = label(draft, params.labels, key)
        described = description(opened, parts, source, draft / "records.parquet") | {"labels": labels}
        artifacts.write_json(draft / "set.json", described)
        manifest.write(draft, source)
    print(f"{key}: {parts.count} molecules, {described['families']} families, {described['with_structure']} structures")
    for note in described["notes"]:
        print(f"note: {key}: {note}", file=sys.stderr)


def label(draft: Path, labels: Labels, key: str) -> dict[str, Any]:
    """Write labels.parquet, and return what set.json says of it: an entry for each label source."""
    import polars as pl

    from stages.ingest.rna.labels import write_labels
    from stages.ingest.rna.records import LABELS
    from stages.rna.folding import version

    if labels.mfe is None:
        pl.DataFrame(schema=LABELS).write_parquet(draft / "labels.parquet", compression="zstd")
        return {}
    folded = write_labels(draft, labels.mfe, key)
    return {MFE: labels.mfe.model_dump() | {"library": f"ViennaRNA {version()}", "molecules": folded}}


def description(opened: RnaSet, parts: Parts, source: Manifest, records: Path) -> dict[str, Any]:
    """The content of set.json; ``labels`` come after it."""
    counted = counts(records)
    notes = [*opened.notes.texts]
    if parts.repeated:
        examples = ", ".join(parts.examples)
        notes.append(
            f"names that stood before: {parts.repeated} (such as {examples}); told apart by #2, #3 behind them"
        )
    if counted["unknown_bases"]:
        notes.append(
            f"{counted['unknown_bases']} bases are IUPAC codes of several, in {counted['with_unknown']} molecules"
        )
    if counted["pairs_lost"]:
        share = counted["pairs_lost"] / (counted["pairs_lost"] + counted["pairs"])
        notes.append(f"{counted['pairs_lost']} pairs ({share:.1%}) were lost to gaps")
    return {
        "set": opened.key,
        "reader": opened.reader,
        "simulated": source.kind == "simulator",
        "structures": opened.structures,
        "split_unit": "family" if counted["families"] else "molecule",
        **counted,
        "repeated_names": parts.repeated,
        "files": opened.files,
        "record_columns": list(RECORD_COLUMNS),
        "notes": notes,
        "citation": source.citation,
        "license": source.licence,
    }


def counts(records: Path) -> dict[str, Any]:
    """Sums over records.parquet, read a part at a time."""
    import polars as pl

    unknown = pl.col("unknown_bases")
    row = (
        pl.scan_parquet(records)
        .select(
            molecules=pl.len(),
            families=pl.col("family").n_unique() - pl.col("family").has_nulls().cast(pl.UInt32),
            bases=pl.col("length").sum(),
            unknown_bases=unknown.sum(),
            with_unknown=(unknown > 0).sum(),
            gaps_removed=pl.col("gaps_removed").sum(),
            with_structure=pl.col("has_structure").sum(),
            pairs=pl.col("pairs").sum(),
            pseudoknotted_pairs=pl.col("pseudoknotted_pairs").sum(),
            pairs_lost=pl.col("pairs_lost").sum(),
            longest=pl.col("length").max(),
        )
        .collect(engine="streaming")
    )
    return row.row(0, named=True)
