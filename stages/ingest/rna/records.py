"""Rows of molecules.parquet and records.parquet, many molecules at a time, in one schema for all sets.

Shapes: M molecules, N pairs of all molecules together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.ingest.rna.molecules import Molecule
from stages.ingest.rna.schema import LABEL_COLUMNS, MOLECULE_COLUMNS, RECORD_COLUMNS
from stages.rna import alphabet
from stages.rna.structure import Pairs

_TYPES = {
    "String": pl.String(),
    "Int64": pl.Int64(),
    "Float64": pl.Float64(),
    "Boolean": pl.Boolean(),
    "List(Int8)": pl.List(pl.Int8()),
    "List(Int32)": pl.List(pl.Int32()),
    "List(Float32)": pl.List(pl.Float32()),
}


def polars_schema(columns: dict[str, str]) -> dict[str, Any]:
    """A table's columns with their polars types."""
    return {name: _TYPES[kind] for name, kind in columns.items()}


MOLECULES = polars_schema(MOLECULE_COLUMNS)
RECORDS = polars_schema(RECORD_COLUMNS)
LABELS = polars_schema(LABEL_COLUMNS)


def frames(molecules: Sequence[Molecule], key: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of molecules.parquet and of records.parquet; ``record_id`` is null until all names are known.

    Parameters
    ----------
    key
        Name of the set.
    """
    pairs = [molecule.pairs for molecule in molecules]
    orders = [molecule.order for molecule in molecules]
    sequences = [molecule.sequence for molecule in molecules]
    shared: dict[str, Any] = {
        "record_id": [None] * len(molecules),
        "name": [molecule.name for molecule in molecules],
        "set": [key] * len(molecules),
        "family": [molecule.family for molecule in molecules],
        "evidence": [molecule.evidence for molecule in molecules],
        "source_file": [molecule.source_file for molecule in molecules],
    }
    of_molecule = {
        "sequence": sequences,
        "position_map": [molecule.position_map for molecule in molecules],
        "pairs_left": [None if each is None else each[:, 0] for each in pairs],
        "pairs_right": [None if each is None else each[:, 1] for each in pairs],
        "pair_order": orders,
        "structure_source": [molecule.structure_source for molecule in molecules],
        "family_name": [molecule.family_name for molecule in molecules],
        "rna_type": [molecule.rna_type for molecule in molecules],
    }
    of_record = {
        "group": [f"{key}/{molecule.family or molecule.name}" for molecule in molecules],
        "sha256": [hashlib.sha256(sequence.encode()).hexdigest() for sequence in sequences],
        "gaps_removed": [molecule.gaps_removed for molecule in molecules],
        "pairs_lost": [molecule.pairs_lost for molecule in molecules],
        "has_structure": [each is not None for each in pairs],
        **_of_letters(sequences),
        **_of_pairs(sequences, pairs, orders),
    }
    return frame(shared | of_molecule, MOLECULES), frame(shared | of_record, RECORDS)


def frame(columns: dict[str, Any], schema: dict[str, Any]) -> pl.DataFrame:
    """Columns as a table of a schema, in its order; a column of lists is given as arrays or None."""
    return pl.DataFrame(
        [
            lists(name, columns[name], kind)
            if isinstance(kind, pl.List)
            else pl.Series(name, columns[name], dtype=kind)
            for name, kind in schema.items()
        ]
    )


def lists(name: str, arrays: Sequence[NDArray[Any] | None], kind: pl.List) -> pl.Series:
    """A column of lists; polars takes arrays and nulls each by themselves, but not together."""
    is_there = pl.Series([each is not None for each in arrays], dtype=pl.Boolean)
    first = next((each for each in arrays if each is not None), None)
    if first is None:
        return pl.Series(name, [None] * len(arrays), dtype=kind)
    none = np.empty(0, dtype=first.dtype)
    # Arrays of one length make a column of another type, which the cast turns into lists.
    filled = pl.Series(name, [none if each is None else each for each in arrays], dtype=kind).cast(kind)
    return filled if is_there.all() else pl.select(pl.when(is_there).then(filled).alias(name)).to_series()


def _of_letters(sequences: list[str]) -> dict[str, Any]:
    letters = pl.DataFrame({"sequence": pl.Series(sequences, dtype=pl.String)})
    known = {base: pl.col("sequence").str.count_matches(base, literal=True).cast(pl.Int64) for base in alphabet.KNOWN}
    length = pl.col("sequence").str.len_bytes().cast(pl.Int64)
    total = pl.sum_horizontal(*known.values())
    counted = letters.select(
        length=length,
        unknown_bases=length - total,
        gc_share=pl.when(total > 0).then((known["G"] + known["C"]) / total),
    )
    return {column.name: column for column in counted}


def _of_pairs(
    sequences: list[str], pairs: list[Pairs | None], orders: list[NDArray[np.int8] | None]
) -> dict[str, list[Any]]:
    """Statistics of the pairs of each molecule; null without a structure, a share or a loop also without a pair."""
    names = ("pairs", "canonical_share", "minimum_loop", "pseudoknotted_pairs")
    result: dict[str, list[Any]] = {name: [None] * len(sequences) for name in names}
    paired: list[tuple[int, Pairs]] = []
    for index, (each, order_N) in enumerate(zip(pairs, orders, strict=True)):
        if each is not None and order_N is not None:
            result["pairs"][index] = len(each)
            result["pseudoknotted_pairs"][index] = int(np.count_nonzero(order_N))
            if len(each):
                paired.append((index, each))
    if not paired:
        return result
    sizes = [len(each) for _, each in paired]
    first = np.cumsum([0, *sizes[:-1]])
    starts = np.cumsum([0, *(len(sequences[index]) for index, _ in paired[:-1])])
    joined_N2 = np.concatenate([each for _, each in paired]).astype(np.int64)
    code = alphabet.codes("".join(sequences[index] for index, _ in paired))
    left_N, right_N = (joined_N2 + np.repeat(starts, sizes)[:, None]).T
    canonical_N, known_N = alphabet.canonical(code[left_N], code[right_N])
    canonical, known = (np.add.reduceat(mask.astype(np.int64), first).tolist() for mask in (canonical_N, known_N))
    loops = np.minimum.reduceat(joined_N2[:, 1] - joined_N2[:, 0] - 1, first).tolist()
    for row, (index, _) in enumerate(paired):
        result["canonical_share"][index] = canonical[row] / known[row] if known[row] else None
        result["minimum_loop"][index] = loops[row]
    return result
