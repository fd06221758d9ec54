"""One split of the molecules: its rows, with an order in which to sample a family, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stages.runtime import random_numbers
from stages.validate.rna import neighbours

#: Rows of splits.parquet. ``part`` is null where the molecule is quarantined; ``place`` is the place of the molecule in
#: its family and part in an order drawn with the seed, and ``sampled`` whether that is below the cap of molecules
#: a family. ``nearest`` and ``identity`` are of the nearest molecule of train, for molecules to test on; null where
#: none reaches the identity that the audit looks for.
COLUMNS = {
    "record_id": pl.String,
    "group": pl.String,
    "split": pl.String,
    "part": pl.String,
    "place": pl.Int64,
    "sampled": pl.Boolean,
    "cluster": pl.Int64,
    "nearest": pl.String,
    "identity": pl.Float64,
    "nearest_pretrain": pl.String,
    "identity_pretrain": pl.Float64,
    "reason": pl.String,
}
LEARNT = ("pretrain", "train")
SHOWN = 5


@dataclass(frozen=True)
class Divided:
    """One split.

    Attributes
    ----------
    name
        As splits.parquet, the report and the documents call it.
    table
        The rows of splits.parquet.
    described
        Parts, notes and the worst neighbours, for summary.json.
    leaks
        What the audit found, in words; ``stops`` tells whether it stops the gate.
    """

    name: str
    table: pl.DataFrame
    described: dict[str, Any]
    leaks: list[str] = field(default_factory=list)
    stops: bool = True


def rows(
    records: pl.DataFrame,
    name: str,
    placed: pl.DataFrame,
    *,
    seed: int,
    per_family: int | None,
    nearest: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """The rows of one split.

    Parameters
    ----------
    records
        record_id, group and family of all molecules, quarantined ones too.
    placed
        record_id, part, reason and, in a split by clusters, cluster of the accepted molecules.
    per_family
        Molecules of a family to learn from; None: all.
    nearest
        Neighbours by the suffix of their columns: "" of train, "_pretrain".
    """
    distinct = records["record_id"].drop_nulls().unique().sort()
    draw = random_numbers(seed, f"rna sample {name}").permutation(distinct.len())
    table = records.select("record_id", "group", "family").join(
        placed.select(pl.col(n) for n in ("record_id", "part", "reason", "cluster") if n in placed.columns),
        on="record_id",
        how="left",
        maintain_order="left",
    )
    drawn = pl.DataFrame({"record_id": distinct, "draw": draw})
    table = table.join(drawn, on="record_id", how="left", maintain_order="left")
    for suffix, pairs in nearest.items():
        columns = {"nearest": f"nearest{suffix}", "identity": f"identity{suffix}"}
        table = table.join(pairs.rename(columns), on="record_id", how="left", maintain_order="left")
    unit = pl.coalesce("family", "group")
    place = pl.when(pl.col("part").is_not_null()).then(pl.col("draw").rank("ordinal").over("part", unit)) - 1
    within = pl.lit(True) if per_family is None else (place < per_family)
    table = table.with_columns(
        split=pl.lit(name), place=place, sampled=pl.when(pl.col("part").is_in(LEARNT)).then(within).otherwise(True)
    )
    absent = {column: pl.lit(None) for column in COLUMNS if column not in table.columns}
    return table.with_columns(**absent).select(pl.col(column).cast(kind) for column, kind in COLUMNS.items())


def sizes(table: pl.DataFrame, records: pl.DataFrame, parts: Sequence[str]) -> dict[str, Any]:
    """Accepted molecules of each part, their share, families and bases, and how many are beyond the cap."""
    frame = table.join(
        records.select("record_id", "family", "length", "evidence").unique("record_id"), on="record_id", how="left"
    ).drop_nulls("part")
    found: dict[str, Any] = {}
    for part in parts:
        mine = frame.filter(pl.col("part") == part)
        families = mine["family"].drop_nulls().n_unique()
        alone = mine["family"].null_count()
        groups = [f"{families} families"] if families else []
        groups += [f"{alone} molecules without a family"] if alone else []
        evidence = mine.drop_nulls("evidence").group_by("evidence").agg(pl.len(), pl.col("family").n_unique())
        found[part] = {
            "records": mine.height,
            "share": mine.height / frame.height if frame.height else None,
            "groups": groups,
            "families": families,
            "bases": int(mine["length"].sum()),
            "beyond_cap": mine.filter(~pl.col("sampled")).height,
            "sampled_bases": int(mine.filter("sampled")["length"].sum()),
            "evidence": {
                kind: {"records": count, "families": number}
                for kind, count, number in evidence.sort("evidence").iter_rows()
            },
        }
    return found


def evidence_note(parts: Mapping[str, Any]) -> list[str]:
    """How many families of each stratum of evidence stand in each part."""
    kinds = sorted({kind for size in parts.values() for kind in size["evidence"]})
    return [
        f"{kind} structures: "
        + ", ".join(
            f"{size['evidence'][kind]['families']} families ({size['evidence'][kind]['records']} molecules) in {part}"
            for part, size in parts.items()
            if kind in size["evidence"]
        )
        for kind in kinds
    ]


def cap_note(parts: Mapping[str, Any], per_family: int | None) -> list[str]:
    """How many molecules of what is learnt from are beyond the cap of a family."""
    beyond = [f"{size['beyond_cap']} of {part}" for part, size in parts.items() if size["beyond_cap"]]
    if per_family is None or not beyond:
        return []
    return [f"at most {per_family} molecules of a family are learnt from; beyond that: {', '.join(beyond)}"]


def family_note(placed: pl.DataFrame) -> list[str]:
    """Which molecules of a corpus to pre-train on are of a family downstream."""
    theirs = placed.filter(pl.col("reason").str.starts_with("its family"))["record_id"].to_list()
    if not theirs:
        return []
    return [f"{len(theirs)} molecules of corpora are excluded, for their family is downstream: {_listed(theirs)}"]


def short_note(placed: pl.DataFrame, shortest: int, threshold: float) -> list[str]:
    """Which molecules are too short to be told apart by identity."""
    short = placed.filter(pl.col("length") < shortest)["record_id"].to_list()
    if not short:
        return []
    return [
        f"{len(short)} molecules of fewer than {shortest} bases are excluded, for so short ones reach {threshold:.0%} "
        f"identity with unrelated ones: {_listed(short)}"
    ]


def near_note(pairs: pl.DataFrame, threshold: float) -> list[str]:
    """Which molecules left their part for being too near to one of another part."""
    found = []
    for (part,), mine in pairs.group_by("from", maintain_order=True):
        first = neighbours.told(neighbours.worst(mine, 3))
        more = f", and {mine.height - len(first)} more in splits.parquet" if mine.height > len(first) else ""
        found.append(
            f"{mine.height} molecules of {part} are excluded, for they reach {threshold:.0%} identity with one of a "
            f"later part: {', '.join(first)}{more}"
        )
    return found


def facts(split: Divided) -> list[tuple[str, str]]:
    """One line a part, then the notes, the leaks and the nearest neighbours, for the documents."""
    found = [
        (part, f"{size['records']} accepted molecules, {size['bases']} bases, {', '.join(size['groups']) or 'none'}")
        for part, size in split.described["parts"].items()
    ]
    found += [("note", note) for note in split.described["notes"]]
    found += [("leak", leak) for leak in split.leaks] or [("audit", "no leakage found")]
    for what, pairs in split.described.get("nearest", {}).items():
        found += [(f"nearest in {what}", text) for text in neighbours.told(pairs)]
    return found


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
