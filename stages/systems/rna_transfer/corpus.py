"""The molecules of the study: what is pre-trained on, and the examples of each task, drawn family by family.

Shape suffixes: M molecule of the sets, N chosen molecule, L base of a molecule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages import artifacts
from stages.accepted import rna
from stages.errors import DataError, UsageError
from stages.params import nearest
from stages.runtime import random_numbers
from stages.systems.rna_transfer.finetuning import Parts
from stages.systems.rna_transfer.masking import unigram_loss
from stages.systems.rna_transfer.pretraining import pieces
from stages.systems.rna_transfer.settings import DOMAIN, Train
from stages.systems.rna_transfer.tasks import (
    Answer,
    BasePairs,
    Example,
    GcShuffled,
    Paired,
    RnaType,
    Task,
    shuffled_target,
)

Tokens = NDArray[np.uint8]
Chosen = NDArray[np.int64]

#: Parts that a task draws from.
PARTS = ("train", "validation", "test", "external")
#: Seed of what is drawn to choose by and to test on: the same for every run.
FIXED_SEED = 0
#: Validation molecules that the loss of pre-training is measured on at most.
MEASURED_ON = 200
#: Tasks that molecules without a family are tested on.
STRUCTURAL = ("base_pairs", "paired")


@dataclass(frozen=True)
class Corpus:
    """Accepted molecules in one split.

    Attributes
    ----------
    accepted
        The sets.
    split
        Its name, such as transfer-0.
    train
        Settings.
    seed
        Of what is drawn for training.
    """

    accepted: rna.Accepted
    split: str
    train: Train
    seed: int

    def pretraining(self) -> list[Tokens]:
        """Tokens of the pre-training molecules."""
        return [self.accepted.tokens(m) for m in self.accepted.part(self.split, "pretrain").tolist()]

    def validation(self) -> list[Tokens]:
        """Tokens of the molecules that choose: of families that neither pre-training nor training has."""
        return [self.accepted.tokens(m) for m in self._measured_on().tolist()]

    def _measured_on(self) -> Chosen:
        rng = random_numbers(FIXED_SEED, "drawn", "pretraining", self.split)
        per_family = self.train.molecules.per_family
        return in_turns(self._part("validation"), self.accepted.group_M, MEASURED_ON, per_family, rng)

    def _drawn(self, part: str, use: str, eligible_M: NDArray[np.bool_]) -> Chosen:
        """Eligible molecules of a part, families in turns."""
        limits = self.train.molecules
        count, all_N = getattr(limits, part), self._part(part)
        seed = self.seed if part == "train" else FIXED_SEED
        rng = random_numbers(seed, "drawn", use, part, self.split)
        return in_turns(all_N[eligible_M[all_N]], self.accepted.group_M, count, limits.per_family, rng)

    def _part(self, part: str) -> Chosen:
        """Molecules of a part; none where the split has no such part."""
        try:
            return self.accepted.part(self.split, part)
        except UsageError:
            return np.empty(0, np.int64)

    def examples(self, name: str) -> tuple[Task, Parts, dict[str, Any]]:
        """A task, its examples, and what config.json says of them.

        Raises
        ------
        DataError
            No training or no test molecule can be an example of the task.
        """
        accepted = self.accepted
        longest = self.train.molecules.length[name]  # type: ignore[index]
        short_M = (accepted.lengths <= longest) & (accepted.lengths > 0)
        left_out = Counter(too_long=self._count(~short_M))
        classes: tuple[str, ...] = ()
        eligible_M = short_M
        if name in STRUCTURAL:
            eligible_M = short_M & accepted.has_structure_M
            left_out["no_structure"] = self._count(short_M & ~accepted.has_structure_M)
        elif name == "rna_type":
            classes = self._types(short_M)
            place = np.array([kind in classes for kind in accepted.rna_types] + [False])
            eligible_M = short_M & place[accepted.rna_type_M]
            left_out["no_type"] = self._count(short_M & (accepted.rna_type_M == rna.NONE))
            left_out["rare_type"] = self._count(short_M & ~eligible_M & (accepted.rna_type_M != rna.NONE))
        parts = {part: self._drawn(part, name, eligible_M) for part in PARTS}
        if name not in STRUCTURAL:
            parts["external"] = parts["external"][:0]
        for part in ("train", "test"):
            if not len(parts[part]):
                raise DataError(
                    artifacts.validated(DOMAIN) / "splits.parquet",
                    record=f"split {self.split}, part {part}",
                    found=f"no molecule that {name} can use ({', '.join(f'{n} {why}' for why, n in left_out.items())})",
                    expected="at least one",
                    remedy="Raise systems.rna_transfer.train.molecules.length, or take the task out of tasks.",
                )
        made = {part: self._made(name, chosen, classes) for part, chosen in parts.items()}
        task = self._task(name, made["train"], classes)
        described = {
            "molecules": {part: len(examples) for part, examples in made.items()},
            "families": {part: len({example.family for example in examples}) for part, examples in made.items()},
            "left_out": dict(left_out),
            "classes": list(classes) or None,
        }
        probe = made["train"][: self.train.geometry.molecules]
        return task, Parts(made["train"], made["validation"], made["test"] + made["external"], probe), described

    def _count(self, chosen_M: NDArray[np.bool_]) -> int:
        """Downstream molecules among some."""
        return int(chosen_M[np.concatenate([self._part(part) for part in PARTS])].sum())

    def _types(self, eligible_M: NDArray[np.bool_]) -> tuple[str, ...]:
        """Kinds of RNA that enough training families have."""
        train_N = self.accepted.part(self.split, "train")
        train_N = train_N[eligible_M[train_N] & (self.accepted.rna_type_M[train_N] != rna.NONE)]
        pairs = np.unique(np.stack([self.accepted.rna_type_M[train_N], self.accepted.group_M[train_N]]), axis=1)
        families = Counter(pairs[0].tolist())
        return tuple(
            kind for code, kind in enumerate(self.accepted.rna_types) if families[code] >= self.train.families
        )  # fmt: skip

    def _made(self, name: str, chosen: Chosen, classes: Sequence[str]) -> list[Example]:
        truth: dict[str, Callable[[int], NDArray[Any]]] = {
            "base_pairs": self.accepted.pairs,
            "paired": lambda m: is_paired(self.accepted.pairs(m), int(self.accepted.lengths[m])),
            "rna_type": lambda m: np.array(classes.index(self.accepted.rna_types[self.accepted.rna_type_M[m]])),
        }
        found = []
        for m in chosen.tolist():
            record, family = self.accepted.record_ids[m], self.accepted.groups[self.accepted.group_M[m]]
            token_L = self.accepted.tokens(m)
            if name == "gc_shuffled":
                found.append(Example(record, family, *shuffled_target(token_L, record, self.train.window)))
            else:
                found.append(Example(record, family, token_L, truth[name](m)))
        return found

    def _task(self, name: str, train: Sequence[Example], classes: tuple[str, ...]) -> Task:
        if name == "base_pairs":
            return BasePairs(self.train.pair_head)
        if name == "paired":
            return Paired()
        if name == "rna_type":
            return RnaType(classes)
        share_B = np.concatenate([example.truth for example in train])
        return GcShuffled(float(share_B.mean()), float(share_B.std()) or 1.0)

    def described(self) -> dict[str, Any]:
        """What is pre-trained on, for config.json."""
        chosen = self.accepted.part(self.split, "pretrain")
        tokens = [self.accepted.tokens(m) for m in chosen.tolist()]
        validation = self._measured_on()
        return {
            "sets": list(self.accepted.keys),
            "split": self.split,
            "molecules": len(tokens),
            "bases": int(sum(map(len, tokens))),
            "families": len(np.unique(self.accepted.group_M[chosen])),
            "pieces": len(pieces(tokens, self.train.pretraining.piece)) - len(tokens),
            "unigram_loss": unigram_loss(np.concatenate(tokens)),
            "validation_molecules": len(validation),
            "validation_families": len(np.unique(self.accepted.group_M[validation])),
        }


def open_corpus(train: Train, seed: int) -> Corpus:
    """Open the sets and choose the split of a seed.

    Raises
    ------
    UsageError
        A set was not ingested, or the gate made no such split.
    """
    folder = artifacts.ingested(DOMAIN)
    known = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    keys = known if train.sets == "all" else train.sets
    for key in keys:
        if key not in known:
            raise UsageError(f"systems.rna_transfer.train.sets: {key} was not ingested{nearest(key, known)}")
    if not keys:
        raise UsageError(f"systems.rna_transfer.train.sets: no set of {DOMAIN} was ingested")
    accepted = rna.open_set(keys)
    split = train.splits[seed % len(train.splits)]
    if split not in accepted.splits:
        raise UsageError(
            f"systems.rna_transfer.train.splits: the gate made no split {split}{nearest(split, accepted.splits)}"
        )
    return Corpus(accepted, split, train, seed)


def in_turns(
    chosen_N: Chosen, family_M: NDArray[np.int64], count: int, per_family: int, rng: np.random.Generator
) -> Chosen:
    """Draw molecules so that families take turns: one of each, then a second of each, and so on.

    Parameters
    ----------
    chosen_N
        Molecules to draw from.
    family_M
        Family of every molecule.
    count, per_family
        How many at most, and of one family.
    rng
        Of the order of the families, and of the molecules in each.
    """
    shuffled_N = rng.permutation(chosen_N)
    turn_N = np.empty(len(shuffled_N), np.int64)
    met: Counter[int] = Counter()
    for n, m in enumerate(shuffled_N.tolist()):
        family = int(family_M[m])
        turn_N[n] = met[family]
        met[family] += 1
    kept = np.flatnonzero(turn_N < per_family)
    return shuffled_N[kept[np.argsort(turn_N[kept], kind="stable")][:count]]


def mfe_answers(corpus: Corpus, task: str, examples: Sequence[Example]) -> list[Answer | None]:
    """What ViennaRNA's minimum free energy says of molecules; None of those that were not folded.

    base_pairs has its structure, paired its probabilities.
    """
    labels, places = corpus.accepted.labels(rna.MFE), {r: m for m, r in enumerate(corpus.accepted.record_ids)}
    found: list[Answer | None] = []
    for example in examples:
        m = places[example.record_id]
        bases = slice(*corpus.accepted.start_M1[m : m + 2].tolist())
        if not labels.has_label_M[m]:
            found.append(None)
        elif task == "paired":
            found.append(Answer(labels.paired_B[bases]))
        else:
            pairs = labels.pairs(m)
            found.append(Answer(np.ones(len(pairs), np.float32), pairs))
    return found


def is_paired(pairs: NDArray[np.int32], length: int) -> NDArray[np.float32]:
    """Whether each base is in a pair (L,), as 0 or 1."""
    paired_L = np.zeros(length, np.float32)
    paired_L[pairs] = 1
    return paired_L
