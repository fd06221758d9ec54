"""What every arm answered to the test molecules, and the strata that the molecules lie in.

Shape suffixes: N test molecule of a seed, C sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.accepted.rna import NONE, Accepted
from stages.errors import DataError, UsageError
from stages.rna.identity import nearest
from stages.rna.structure import Pairs, no_pairs
from stages.systems.rna_transfer import scored
from stages.systems.rna_transfer.corpus import is_paired
from stages.systems.rna_transfer.estimates import Cells
from stages.systems.rna_transfer.settings import Run
from stages.systems.rna_transfer.tasks import shuffled_target

#: Molecules of families, which the figures are of, and molecules without a family, such as those of the PDB.
FAMILIES, EXTERNAL = "families", "no family"
#: Columns of the molecules.
MOLECULES: dict[str, Any] = {
    "record_id": pl.String, "group": pl.String, "kind": pl.String, "family": pl.String, "rna_type": pl.String,
    "evidence": pl.String, "length": pl.Int64, "identity": pl.Float64,
}  # fmt: skip

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Answered:
    """The answers to one task, all arms in the same rows.

    Attributes
    ----------
    molecules
        A row a seed and test molecule: seed and the columns of :data:`MOLECULES`; identity is that with the nearest
        training molecule, null where none comes near.
    sums
        Arm -> sums (N, C) of stages/systems/rna_transfer/scored.py; NaN rows where the arm did not answer.
    """

    molecules: pl.DataFrame
    sums: Mapping[Run, scored.Floats]

    def answered(self, run: Run) -> Mask:
        """Whether an arm answered each molecule (N,)."""
        return np.isfinite(self.sums[run][:, 0])

    def where(self, kind: str = FAMILIES) -> Mask:
        """Molecules of families, or those without (N,)."""
        return (self.molecules["kind"] == kind).to_numpy()

    def cells(self, run: Run, chosen: Mask) -> Cells:
        """The sums of one arm over some molecules that it answered."""
        seed_N = self.molecules["seed"].to_numpy()
        group_N = self.molecules["group"].to_numpy().astype(np.str_)
        return Cells(self.sums[run][chosen], seed_N[chosen], group_N[chosen])


def describe_molecules(accepted: Accepted, split: str, record_ids: Sequence[str], *, at_least: float) -> pl.DataFrame:
    """Strata of test molecules: a row each, the columns of :data:`MOLECULES`.

    Parameters
    ----------
    split
        The split whose training part the nearest molecule is looked for in.
    at_least
        Identity below which no training molecule counts as near.
    """
    place = {record: m for m, record in enumerate(accepted.record_ids)}
    chosen = [place[record] for record in record_ids]
    training = [accepted.sequence(m) for m in accepted.part(split, "train").tolist()]
    near_N = nearest([accepted.sequence(m) for m in chosen], training, at_least=at_least).identity_Q
    rows = []
    for m, near in zip(chosen, near_N.tolist(), strict=True):
        family = None if accepted.family_M[m] == NONE else accepted.families[accepted.family_M[m]]
        rows.append(
            {
                "record_id": accepted.record_ids[m],
                "group": accepted.groups[accepted.group_M[m]],
                "kind": EXTERNAL if family is None else FAMILIES,
                "family": family,
                "rna_type": _named(accepted.rna_types, int(accepted.rna_type_M[m])),
                "evidence": _named(accepted.evidences, int(accepted.evidence_M[m])),
                "length": int(accepted.lengths[m]),
                "identity": near if np.isfinite(near) else None,
            }
        )
    return pl.DataFrame(rows, schema=MOLECULES)


def _named(names: Sequence[str], code: int) -> str | None:
    return None if code == NONE else names[code]


def truths(
    accepted: Accepted, task: str, record_ids: Sequence[str], *, classes: Sequence[str], window: int
) -> list[Any]:
    """What is true of each molecule: pairs, whether each base pairs, the number of the type, or shares."""
    place = {record: m for m, record in enumerate(accepted.record_ids)}
    found: list[Any] = []
    for record in record_ids:
        m = place[record]
        if task == "base_pairs":
            found.append(accepted.pairs(m))
        elif task == "paired":
            found.append(is_paired(accepted.pairs(m), int(accepted.lengths[m])) > 0)
        elif task == "rna_type":
            found.append(classes.index(accepted.rna_types[accepted.rna_type_M[m]]))
        else:
            found.append(shuffled_target(accepted.tokens(m), record, window)[1])
    return found


def answer_sums(task: str, truth: Sequence[Any], rows: pl.DataFrame, classes: int) -> scored.Floats:
    """Sums (N, C) of one arm and seed.

    Parameters
    ----------
    truth
        As :func:`truths`, in the order of the rows.
    rows
        Rows of predictions.parquet.
    classes
        Number of types.
    """
    if task == "base_pairs":
        return scored.pair_sums(truth, pairs_of(rows))
    scores = [None if row is None else np.asarray(row, dtype=np.float32) for row in rows["scores"].to_list()]
    if task == "paired":
        return scored.paired_sums(truth, scores)
    if task == "rna_type":
        return scored.type_sums(truth, [None if row is None else int(row.argmax()) for row in scores], classes)
    return scored.share_sums(truth, scores)


def pairs_of(rows: pl.DataFrame) -> list[Pairs | None]:
    """Predicted pairs (N, 2) of each row; None where nothing was answered."""
    found: list[Pairs | None] = []
    for left, right in rows.select("pairs_left", "pairs_right").iter_rows():
        if left is None:
            found.append(None)
        else:
            found.append(np.stack([left, right], axis=1).astype(np.int32) if left else no_pairs())
    return found


def check_molecules(file: Any, accepted: Accepted, split: str, predictions: pl.DataFrame) -> None:
    """Refuse answers to molecules that are not to be tested on now, or whose bases have changed.

    Raises
    ------
    DataError
        The set or its split changed after training: what is tested may have been learnt from.
    """
    length_of = {
        accepted.record_ids[m]: int(accepted.lengths[m])
        for part in ("test", "external")
        for m in _part(accepted, split, part)
    }
    remedy = "Run `dvc repro evaluate-rna_transfer`, which trains again."
    strange = sorted(set(predictions["record_id"].unique()) - set(length_of))
    if strange:
        raise DataError(
            file,
            record=strange[0],
            found=f"answers to {len(strange)} molecules that are not in the test part of {split}",
            expected="the molecules that the gate tests on now",
            remedy=remedy,
        )
    bases = predictions.filter(pl.col("task").is_in(["paired", "gc_shuffled"]) & pl.col("scores").is_not_null())
    for record, size in bases.select("record_id", pl.col("scores").list.len()).unique().iter_rows():
        if size != length_of[record]:
            raise DataError(
                file,
                record=record,
                found=f"answers for {size} bases",
                expected=f"{length_of[record]}, the bases of the molecule",
                remedy=remedy,
            )


def _part(accepted: Accepted, split: str, part: str) -> list[int]:
    """Molecules of a part; none where the split has no such part."""
    try:
        return [int(m) for m in accepted.part(split, part)]
    except UsageError:
        return []
