"""Molecules that are too near to one of another part, and the nearest training molecule of every test molecule.

Shape suffix: M molecule.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from stages.rna.identity import nearest

#: What is excluded where two are too near: the one of the earlier part. Molecules without a family only keep
#: pre-training away from them.
KEPT_APART: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("validation", ("test",)),
    ("train", ("validation", "test")),
    ("pretrain", ("train", "validation", "test", "external")),
)
EXCLUDED = "excluded"
NEIGHBOURS = {"record_id": pl.String, "nearest": pl.String, "identity": pl.Float64}


def excluded(molecules: pl.DataFrame, part: pl.Series, threshold: float) -> pl.DataFrame:
    """Molecules that must leave their part: they reach the threshold with one that is learnt or tested later.

    A molecule that leaves its part keeps no other one out of its own.

    Parameters
    ----------
    molecules
        record_id and sequence.
    part
        Part of each molecule; null in none.

    Returns
    -------
    DataFrame
        record_id, nearest, identity, and ``from``, the part that the molecule was in.
    """
    frame = molecules.select("record_id", "sequence").with_columns(part=part)
    found = []
    for mine, others in KEPT_APART:
        pairs = near(frame, [mine], others, at_least=threshold).with_columns(pl.lit(mine).alias("from"))
        frame = frame.filter(~pl.col("record_id").is_in(pairs["record_id"].implode()))
        found.append(pairs)
    return pl.concat(found)


def near(frame: pl.DataFrame, parts: Collection[str], others: Collection[str], *, at_least: float) -> pl.DataFrame:
    """The nearest molecule of other parts of each molecule of some parts, where there is one.

    Parameters
    ----------
    frame
        record_id, sequence, part.
    at_least
        Identity below which a molecule is no neighbour.

    Returns
    -------
    DataFrame
        record_id, nearest, identity.
    """
    asked = frame.filter(pl.col("part").is_in(list(parts)))
    known = frame.filter(pl.col("part").is_in(list(others)))
    if asked.is_empty() or known.is_empty():
        return pl.DataFrame(schema=NEIGHBOURS)
    found = nearest(asked["sequence"].to_list(), known["sequence"].to_list(), at_least=at_least)
    there = np.flatnonzero(found.index_Q >= 0)
    return pl.DataFrame(
        {
            "record_id": asked["record_id"].gather(there),
            "nearest": known["record_id"].gather(found.index_Q[there]),
            "identity": found.identity_Q[there],
        },
        schema=NEIGHBOURS,
    )


def leaks(neighbours: pl.DataFrame, threshold: float, what: str) -> list[str]:
    """Test molecules whose nearest training molecule reaches the threshold, the nearest first."""
    reaching = neighbours.filter(pl.col("identity") >= threshold).sort(
        "identity", "record_id", descending=[True, False]
    )
    return [
        f"{record} has {identity:.1%} identity with {other}, {what}"
        for record, other, identity in reaching.select("record_id", "nearest", "identity").iter_rows()
    ]


def worst(neighbours: pl.DataFrame, most: int = 10) -> list[dict[str, object]]:
    """The test molecules that are nearest to what was learnt from."""
    ordered = neighbours.sort("identity", "record_id", descending=[True, False]).head(most)
    return ordered.select("record_id", "nearest", "identity").to_dicts()


def audit_note(neighbours: pl.DataFrame, audited: int, at_least: float, part: str) -> str:
    """How many test molecules have a neighbour among those that are learnt from."""
    return (
        f"{neighbours.height} of {audited} test molecules have a neighbour of {at_least:.0%} identity or more in "
        f"{part}; none is looked for below that"
    )


def told(found: Sequence[dict[str, object]]) -> list[str]:
    """The same in words."""
    return [f"{row['record_id']}: {row['identity']:.1%} identity with {row['nearest']}" for row in found]
