"""The arms of the transfer study beside each other: which run stands for an arm, its scores, and paired differences.

Every difference is positive where its first arm is better. The model and the pre-training length that lead are the
first size of params.yaml and its longest run; claims are about them unless they name others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stages.systems.rna_transfer.answers import FAMILIES, Answered, Mask
from stages.systems.rna_transfer.estimates import LEVEL, NOTHING, Interval, Term, contrast, point
from stages.systems.rna_transfer.scored import SCORES, empty_share
from stages.systems.rna_transfer.settings import BASELINE, ENCODERLESS, METRICS, PRETRAINED, Run, Train

#: The arm of the headline.
MAIN = "fine_tuned"
#: What has the same molecules, the same schedule and no pre-training.
SAME_BUDGET = (BASELINE, "random_frozen", "one_hot")
#: Each arm and the arms that count for it.
COUNTS = (
    (MAIN, BASELINE),
    (MAIN, "shuffled"),
    (MAIN, "one_hot"),
    (MAIN, "mfe"),
    ("frozen", "random_frozen"),
    ("frozen", "one_hot"),
    ("frozen", BASELINE),
    ("lower", BASELINE),
    ("upper", BASELINE),
    ("lower", "upper"),
    (BASELINE, "one_hot"),
)


class Comparison:
    """Comparisons of arms.

    Parameters
    ----------
    answered
        Task -> the answers of its arms.
    train
        Settings of the study.
    learnt
        What config.json of the first seed says of what was learnt.
    seeds
        All seeds.
    identity
        Sequence identity from which on no test molecule has a neighbour in training.
    never_pairing
        Mean F1 of an answer that never pairs, on the validation molecules of each seed.
    """

    def __init__(
        self,
        answered: Mapping[str, Answered],
        train: Train,
        learnt: Mapping[str, Any],
        seeds: Sequence[int],
        identity: float,
        never_pairing: Sequence[float],
    ) -> None:
        self.answered = answered
        self.train = train
        self.learnt = learnt
        self.seeds = list(seeds)
        self.identity = identity
        self.never_pairing = list(never_pairing)
        self._known: dict[Any, Interval] = {}
        self.models = [*train.sizes, *(model.name for model in train.local_models)]

    @property
    def lead(self) -> str:
        """Model that leads."""
        return self.models[0]

    @property
    def tasks(self) -> list[str]:
        """Tasks, the one that leads first."""
        return list(self.train.tasks)

    @property
    def simulated(self) -> bool:
        """Whether a set is simulated."""
        return bool(self.learnt["simulated"])

    def lengths(self, model: str) -> list[int]:
        """Pre-training lengths of a model, ascending; [-1] for a local one."""
        return sorted(self.train.sizes[model].tokens) if model in self.train.sizes else [-1]

    def parameters(self, model: str) -> int:
        """Weights of a model."""
        known = {**self.learnt["sizes"], **self.learnt["local"]}
        return int(known[model]["parameters"])

    def run(self, arm: str, model: str | None = None, tokens: int | None = None) -> Run:
        """The run of an arm: of the model and length that lead, unless others are named."""
        if arm in ENCODERLESS:
            return Run("", 0, arm)
        name = self.lead if model is None else model
        if arm not in PRETRAINED:
            return Run(name, 0, arm)
        return Run(name, self.lengths(name)[-1] if tokens is None else tokens, arm)

    def runs(self, task: str) -> list[Run]:
        """Every run of a task."""
        return list(self.answered[task].sums)

    def leading_runs(self, task: str) -> list[Run]:
        """The runs of the model and length that lead, and those without an encoder, in the order of the arms."""
        there = set(self.answered[task].sums)
        return [run for arm in self.train.arms if (run := self.run(arm)) in there]

    def has(self, task: str, *runs: Run) -> bool:
        """Whether some runs answered a task."""
        return task in self.answered and all(run in self.answered[task].sums for run in runs)

    def estimate(self, task: str, run: Run, score: str = "", chosen: Mask | None = None) -> Interval:
        """A score of a run with its interval; nothing where it did not answer."""
        return self.weighed([(1.0, task, run, score)], chosen)

    def difference(
        self, task: str, one: Run, other: Run, score: str = "", chosen: Mask | None = None, *, level: float = LEVEL
    ) -> Interval:
        """Score of one run less that of another, paired: over molecules that both answered."""
        return self.weighed([(1.0, task, one, score), (-1.0, task, other, score)], chosen, level=level)

    def weighed(
        self, terms: Sequence[tuple[float, str, Run, str]], chosen: Mask | None = None, *, level: float = LEVEL
    ) -> Interval:
        """A weighted sum of scores: weight, task, run, score ("" for the task's first) of each term.

        Parameters
        ----------
        chosen
            Molecules that count, for terms of one task; by default all of families.
        """
        if not all(self.has(task, run) for _, task, run, _ in terms):
            return NOTHING
        if chosen is not None:
            return contrast(self._terms(terms, chosen), level=level)
        key = (tuple(terms), level)
        if key not in self._known:
            self._known[key] = contrast(self._terms(terms, None), level=level)
        return self._known[key]

    def value(self, task: str, run: Run, score: str = "", chosen: Mask | None = None) -> float:
        """A score of a run without an interval; NaN where it did not answer."""
        return point(self._terms([(1.0, task, run, score)], chosen)) if self.has(task, run) else math.nan

    def _terms(self, terms: Sequence[tuple[float, str, Run, str]], chosen: Mask | None) -> list[Term]:
        """The sums of each term, over molecules that all terms of its task answered."""
        masks: dict[str, Mask] = {}
        for _, task, run, _ in terms:
            mine = self.answered[task]
            mask = masks.get(task, mine.where(FAMILIES) if chosen is None else chosen)
            masks[task] = np.logical_and(mask, mine.answered(run))
        return [
            Term(weight, self.answered[task].cells(run, masks[task]), score or next(iter(SCORES[task])))
            for weight, task, run, score in terms
        ]

    def benefit(self, task: str, model: str | None = None, tokens: int | None = None) -> Interval:
        """Score of the pre-trained and fine-tuned arm less that of the random one."""
        return self.difference(task, self.run(MAIN, model, tokens), self.run(BASELINE, model))

    def best(self, task: str, among: Sequence[str] = SAME_BUDGET) -> Run | None:
        """The run with the highest score among some arms, chosen with hindsight, to its favour; None without one."""
        there = [run for arm in among if self.has(task, run := self.run(arm))]
        return max(there, key=lambda run: self.value(task, run), default=None)

    def chance(self, task: str) -> float:
        """Score of an answer without knowledge on the test molecules; of base pairs, of one that never pairs."""
        if task == "base_pairs":
            mine, run = self.answered[task], self.run(BASELINE)
            return empty_share(mine.sums[run][mine.where(FAMILIES)])
        return self._constant(task)

    def chances(self, task: str) -> list[float]:
        """The same on the validation molecules of each seed."""
        return self.never_pairing if task == "base_pairs" else [self._constant(task)] * len(self.seeds)

    def _constant(self, task: str) -> float:
        level = METRICS[task][1]
        return 1 / len(self.learnt["tasks"][task]["classes"]) if level is None else level

    def counted(self, task: str, chosen: Mask | None = None) -> tuple[int, int]:
        """Molecules and families among those chosen, each once whatever the seeds."""
        mine = self.answered[task]
        rows = mine.molecules.filter(mine.where(FAMILIES) if chosen is None else chosen)
        return rows["record_id"].n_unique(), rows["group"].n_unique()


def first_score(task: str) -> str:
    """The score of a task that leads, in words."""
    return next(iter(SCORES[task].values()))
