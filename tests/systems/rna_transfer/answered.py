"""Made-up answers of known quality, histories and geometry."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.rna.structure import no_pairs, parse
from stages.systems.rna_transfer import scored
from stages.systems.rna_transfer.answers import EXTERNAL, FAMILIES, Answered
from stages.systems.rna_transfer.comparisons import Comparison
from stages.systems.rna_transfer.optimisation import Optimisation
from stages.systems.rna_transfer.settings import ENCODERLESS, PRETRAINED, TASKS, Run, Train, runs_of
from stages.systems.rna_transfer.tables import GEOMETRY, HISTORY, Schema
from tests.systems.rna_transfer.small import settings

FAMILY_COUNT, MEMBERS, SEEDS = 30, 3, (0, 1)
HAIRPIN = parse("((...))")
#: Task -> arm -> quality from 0 (nothing right) to 1; what is not named has that of the random arm.
Quality = Mapping[str, Mapping[str, float]]
SAME: dict[str, dict[str, float]] = {task: {"random": 0.5} for task in TASKS}


def quality(**changes: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Every arm alike, but for what is named: task -> arm -> quality."""
    made = copy.deepcopy(SAME)
    for task, arms in changes.items():
        made[task] |= arms
    return made


def molecules() -> pl.DataFrame:
    """Both seeds have the same molecules: families of three, and two molecules without a family."""
    families = [f"set/F{number:02d}" for number in range(FAMILY_COUNT) for _ in range(MEMBERS)]
    rows = [
        {
            "record_id": f"set/m{number:03d}", "group": family, "kind": FAMILIES, "family": family, "rna_type": "Gene",
            "evidence": ("Published", "Predicted")[number % 2], "length": 40 + number % 60,
            "identity": 0.75 if number % 5 == 0 else None,
        }
        for number, family in enumerate(families)
    ]  # fmt: skip
    rows += [
        {"record_id": f"set/x{n}", "group": f"set/x{n}", "kind": EXTERNAL, "family": None, "rna_type": None,
         "evidence": None, "length": 50, "identity": None}
        for n in range(2)
    ]  # fmt: skip
    one = pl.DataFrame(rows, schema_overrides={"identity": pl.Float64})
    return pl.concat([one.select(pl.lit(seed, pl.Int64).alias("seed"), pl.all()) for seed in SEEDS])


@cache
def sums(task: str, share: float, count: int) -> NDArray[np.float64]:
    """Sums of answers of a quality; equal qualities give equal answers."""
    rng = np.random.default_rng(0)
    lot_N = rng.permutation(count) / count
    if task == "base_pairs":
        return scored.pair_sums([HAIRPIN] * count, [HAIRPIN if lot < share else no_pairs() for lot in lot_N])
    if task == "paired":
        truths = [np.arange(10) % 2 == n % 2 for n in range(count)]
        return scored.paired_sums(truths, [2 * share * truth + rng.normal(size=10) for truth in truths])
    if task == "rna_type":
        labels = [n % 2 for n in range(count)]
        found = [label if lot < share else 1 - label for label, lot in zip(labels, lot_N, strict=True)]
        return scored.type_sums(labels, found, 2)
    shares = [rng.random(10) for _ in range(count)]
    # A guess that shrinks towards the mean by r leaves (1 - r) squared of the variance.
    shrink = 1 - (1 - share) ** 0.5
    return scored.share_sums(shares, [0.5 + shrink * (each - 0.5) for each in shares])


def comparison(
    made: Quality, *, by_size: Mapping[tuple[str, str], float] | None = None, train: Train | None = None
) -> Comparison:
    """Comparison of made-up answers.

    Parameters
    ----------
    made
        Quality by task and arm.
    by_size
        Quality of base pairs by size and arm, where it differs.
    """
    train = train or settings(geometry={"tasks": ["base_pairs"]}, arms=ALL_ARMS)
    rows = molecules()
    answered: dict[str, Answered] = {}
    for task in train.tasks:
        found = {}
        for run in runs_of(train):
            if run.arm == "mfe" and task in ("rna_type", "gc_shuffled"):
                continue
            share = made[task].get(run.arm, made[task]["random"])
            if by_size and task == "base_pairs":
                share = by_size.get((run.model, run.arm), share)
            found[run] = sums(task, share, rows.height)
        answered[task] = Answered(rows, found)
    learnt = {
        "simulated": True,
        "sizes": {name: {"parameters": size.width**2} for name, size in train.sizes.items()},
        "local": {},
        "corpus": {"molecules": 9, "bases": 99, "families": 3, "unigram_loss": 1.38, "validation_molecules": 2,
                   "validation_families": 1},
        "tasks": {task: _about(task) for task in train.tasks},
    }  # fmt: skip
    return Comparison(answered, train, learnt, SEEDS, 0.8, [0.0] * len(SEEDS))


ALL_ARMS = ["random", "fine_tuned", "frozen", "random_frozen", "lower", "upper", "shuffled", "one_hot", "mfe"]


def _about(task: str) -> dict[str, Any]:
    counts = {"train": 6, "validation": 2, "test": 4, "external": 0}
    return {
        "molecules": counts, "families": counts, "left_out": {"too_long": 3}, "head_parameters": {"small": 5},
        "classes": ["A", "B"] if task == "rna_type" else None,
    }  # fmt: skip


def optimisation(
    curves: Mapping[str, list[float]] | None = None, sharpness: Mapping[str, list[float]] | None = None
) -> Optimisation:
    """Histories of base pairs by arm, and the largest eigenvalue of each seed at one loss."""
    history, geometry = [], []
    for seed in SEEDS:
        for arm, values in (curves or {}).items():
            for step, value in enumerate(values):
                row = dict.fromkeys(HISTORY) | _run(arm)._asdict()
                row |= {"task": "base_pairs", "step": 10 * step, "seen": 100 * step, "validation_metric": value}
                history.append(row | {"seed": seed})
        for arm, each in (sharpness or {}).items():
            for measure, value in (("sharpness", each[seed]), ("matched_loss", 1.0), ("loss_at", 1.0)):
                row = dict.fromkeys(GEOMETRY) | _run(arm)._asdict() | {"task": "base_pairs", "measure": measure}
                geometry.append(row | {"value": value, "error": 0.001, "seed": seed})
    schema: Schema = {"seed": pl.Int64}
    return Optimisation(
        pl.DataFrame(history, schema=HISTORY | schema), pl.DataFrame(geometry, schema=GEOMETRY | schema), SEEDS
    )


def _run(arm: str) -> Run:
    return Run("" if arm in ENCODERLESS else "small", 600 if arm in PRETRAINED else 0, arm)
