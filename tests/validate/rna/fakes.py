"""Made-up RNA sets in the layout ingest writes: families of hairpins with tails, and single molecules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages import artifacts
from stages.ingest.rna.molecules import Molecule
from stages.ingest.rna.records import LABELS, frame, frames
from stages.ingest.rna.schema import MFE
from stages.rna import structure
from stages.validate.rna.stage import Params

STEM, LOOP, TAIL = 12, 6, 20
BRACKETS = "(" * STEM + "." * LOOP + ")" * STEM + "." * TAIL
LENGTH = len(BRACKETS)
COMPLEMENT = str.maketrans("ACGU", "UGCA")
SPLITS: dict[str, Any] = {
    "seed": 0,
    "per_family": 3,
    "transfer": {
        "seeds": [0],
        "pretrain": 0.5,
        "downstream": {"train": 0.5, "validation": 0.2, "test": 0.3},
    },
    "by_identity": {"train": 0.6, "validation": 0.2, "test": 0.2},
}


def letters(random: np.random.Generator, length: int) -> str:
    """Random bases."""
    return "".join(random.choice(list("ACGU"), length))


def hairpin(random: np.random.Generator) -> str:
    """A sequence that can fold into BRACKETS."""
    stem = letters(random, STEM)
    return stem + letters(random, LOOP) + stem[::-1].translate(COMPLEMENT) + letters(random, TAIL)


def mutated(sequence: str, random: np.random.Generator, substitutions: int) -> str:
    """The sequence with other bases in some places of its tail."""
    bases = list(sequence)
    for place in random.choice(np.arange(len(bases) - TAIL, len(bases)), substitutions, replace=False):
        bases[place] = "ACGU"[("ACGU".index(bases[place]) + random.integers(1, 4)) % 4]
    return "".join(bases)


def molecule(name: str, sequence: str, brackets: str | None = BRACKETS, **fields: Any) -> Molecule:
    """One molecule with a structure in brackets, or without one."""
    defaults: dict[str, Any] = {"source_file": "all.stk", "line": 1, "structure_source": "file"}
    pairs = None if brackets is None else structure.parse(brackets)
    return Molecule(name=name, sequence=sequence, pairs=pairs, **(defaults | fields))


def families(count: int = 12, size: int = 5, seed: int = 0) -> list[Molecule]:
    """Families of molecules that differ by two bases of fifty, with four RNA types; every third is published."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        parent = hairpin(random)
        found += [
            molecule(
                f"m{number}.{member}",
                mutated(parent, random, 2),
                family=f"RF{number:03d}",
                family_name=f"family {number}",
                rna_type=f"type {number % 4}",
                evidence="Predicted" if number % 3 else "Published",
                pairs_lost=0,
            )
            for member in range(size)
        ]
    return found


def ingested(key: str, molecules: Iterable[Molecule], labelled: int = 0, **about: Any) -> Path:
    """Lay a set where ingest would, under the working directory; the first molecules get labels."""
    held = list(molecules)
    table, records = frames(held, key)
    ids = pl.Series("record_id", [f"{key}/{each.name}" for each in held], dtype=pl.String)
    folder = artifacts.ingested("rna", key)
    artifacts.write_table(folder / "molecules.parquet", table.with_columns(ids))
    artifacts.write_table(folder / "records.parquet", records.with_columns(ids))
    some = held[:labelled]
    labels = frame(
        {
            "record_id": ids.head(labelled).to_list(),
            "source": [MFE] * labelled,
            "pairs_left": [np.array([0], np.int32) for _ in some],
            "pairs_right": [np.array([len(each.sequence) - 1], np.int32) for each in some],
            "mfe_kcal": [-float(place) for place in range(labelled)],
            "paired_probability": [np.linspace(0, 1, len(each.sequence), dtype=np.float32) for each in some],
        },
        LABELS,
    )
    artifacts.write_table(folder / "labels.parquet", labels)
    description = {
        "set": key,
        "reader": "stockholm",
        "simulated": True,
        "structures": "family",
        "with_structure": sum(each.pairs is not None for each in held),
        "notes": ["made up"],
    }
    artifacts.write_json(folder / "set.json", description | about)
    source = {"source": key, "kind": "simulator", "origin": {"seed": 0}, "files": [], "licence": "Apache-2.0"}
    artifacts.write_json(folder / "manifest.json", source)
    return folder


def params(*sets: str, gate: dict[str, Any] | None = None, **splits: Any) -> Params:
    """Params with these sets; ``splits`` replaces keys of the block of that name."""
    return Params.model_validate(
        {
            "sets": {key: {"path": "x", "format": "fasta"} for key in sets},
            "gate": gate or {},
            "splits": SPLITS | splits,
        }
    )
