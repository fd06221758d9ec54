"""Small settings and made-up families for the tests of the RNA transfer study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.accepted.rna import Accepted
from stages.rna import alphabet, structure
from stages.systems.rna_transfer.settings import Size, Train

SIZE = Size(width=16, layers=2, heads=2, tokens=[600])

TASKS = ("base_pairs", "paired", "rna_type", "gc_shuffled")
#: Sizes as in params.yaml; only the budget is small.
BLOCK: dict[str, Any] = {
    "sets": ["made"],
    "splits": ["transfer-0"],
    "sizes": {"small": {"width": 16, "layers": 2, "heads": 2, "tokens": [600]}},
    "local_models": [],
    "tasks": [*TASKS],
    "arms": ["random", "fine_tuned", "frozen", "random_frozen", "lower", "upper", "shuffled", "one_hot"],
    "lower": 0.5,
    "window": 3,
    "families": 2,
    "pretraining": {
        "batch": 128, "piece": 64, "mask": 0.15, "learning_rate": 0.003, "warmup": 0.1, "weight_decay": 0.01,
        "check": 2, "checkpoint": 2,
    },
    "molecules": {
        "train": 6, "validation": 4, "test": 5, "external": 2, "per_family": 2, "length": dict.fromkeys(TASKS, 40),
    },
    "pair_head": {"joined": "product", "channels": 4, "kernel": 3, "canonical": True},
    "finetuning": {
        "epochs": dict.fromkeys(TASKS, 2), "frozen_epochs": dict.fromkeys(TASKS, 3), "batch": 3,
        "learning_rate": 0.001, "head_learning_rate": 0.01, "weight_decay": 0.01, "checks": 2,
    },
    "geometry": {
        "tasks": ["paired"], "arms": ["random", "fine_tuned"], "molecules": 3, "products": 4, "probes": 2,
        "radius": 0.001, "ascents": 1, "points": 3, "twins": True, "bases": 40,
    },
}  # fmt: skip


def settings(**changes: Any) -> Train:
    """Settings with some blocks changed."""
    return Train.model_validate(
        BLOCK | {name: BLOCK[name] | value if isinstance(value, dict) else value for name, value in changes.items()}
    )


SETTINGS = settings()


class Made(NamedTuple):
    """A made-up molecule."""

    name: str
    family: str | None
    part: str
    sequence: str
    pairs: structure.Pairs | None
    rna_type: str | None


def hairpin(rng: np.random.Generator, stem: int, loop: int) -> tuple[str, structure.Pairs]:
    """A random stem of Watson-Crick pairs around a random loop."""
    left = "".join(rng.choice(list("ACGU"), stem))
    right = left[::-1].translate(str.maketrans("ACGU", "UGCA"))
    sequence = left + "".join(rng.choice(list("ACGU"), loop)) + right
    return sequence, structure.parse("(" * stem + "." * loop + ")" * stem)


def molecules(seed: int = 0) -> list[Made]:
    """Three molecules of each of twelve families: six to pre-train on, three to learn from, one to choose by, two to
    test on; and two of no family.
    """
    rng = np.random.default_rng(seed)
    parts = ["pretrain"] * 6 + ["train"] * 4 + ["validation"] + ["test"] * 2
    found = []
    for family, part in enumerate(parts):
        for member in range(3):
            sequence, pairs = hairpin(rng, 4 + family % 3, 4 + member)
            kind = f"Gene; {'AB'[family % 2]}"
            found.append(Made(f"f{family}/{member}", f"F{family}", part, sequence, pairs, kind))
    for member in range(2):
        sequence, pairs = hairpin(rng, 5, 4 + member)
        found.append(Made(f"pdb/{member}", None, "external", sequence, pairs, None))
    return found


def accepted(made: Sequence[Made] | None = None, key: str = "made", split: str = "transfer-0") -> Accepted:
    """Molecules as the gate gives them."""
    rows = molecules() if made is None else list(made)
    families = tuple(sorted({row.family for row in rows if row.family is not None}))
    kinds = tuple(sorted({row.rna_type for row in rows if row.rna_type is not None}))
    groups = tuple(sorted({f"{key}/{row.family or row.name}" for row in rows}))
    pairs = [structure.no_pairs() if row.pairs is None else row.pairs for row in rows]
    record_ids = tuple(f"{key}/{row.name}" for row in rows)
    return Accepted(
        keys=(key,),
        record_ids=record_ids,
        set_M=np.zeros(len(rows), np.int64),
        token_B=alphabet.encode("".join(row.sequence for row in rows)),
        start_M1=_offsets([len(row.sequence) for row in rows]),
        has_structure_M=np.array([row.pairs is not None for row in rows]),
        pair_N2=np.concatenate(pairs),
        order_N=np.concatenate([structure.orders(each) for each in pairs]),
        pair_start_M1=_offsets([len(each) for each in pairs]),
        families=families,
        family_M=np.array([-1 if row.family is None else families.index(row.family) for row in rows]),
        groups=groups,
        group_M=np.array([groups.index(f"{key}/{row.family or row.name}") for row in rows]),
        evidences=("Predicted",),
        evidence_M=np.zeros(len(rows), np.int64),
        rna_types=kinds,
        rna_type_M=np.array([-1 if row.rna_type is None else kinds.index(row.rna_type) for row in rows]),
        about={key: {"simulated": True}},
        _splits=pl.DataFrame(
            {
                "record_id": record_ids,
                "split": [split] * len(rows),
                "part": [row.part for row in rows],
                "place": [0] * len(rows),
                "sampled": [True] * len(rows),
                "molecule": list(range(len(rows))),
            }
        ),
    )


def _offsets(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
