"""The synthetic study: what each method finds where the graph of each context is known.

Three kinds of system (see ``models``): the collider example over persistences, the same with a thresholded proxy, and
random systems over lengths. Every method sees the same series, lags and level.

Shape suffixes: T time, N variable, L lag 0 to tau_max, M level of the context.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.causal.errors import CausalDataError
from stages.runtime import random_numbers
from stages.systems.endogenous_context.adaptive import MIN_SAMPLES, Algorithm, ContextResult, discover
from stages.systems.endogenous_context.models import (
    ContextModel,
    collider_example,
    proxy_example,
    random_context_model,
)
from stages.systems.endogenous_context.study_config import COLLIDER, PROXY, RANDOM

if TYPE_CHECKING:
    from stages.systems.endogenous_context.study_config import Study

PERSISTENCES = (0.0, 0.5, 0.8, 0.95)
PROXY_MEMORY = 0.8
TAU_MAX = 2


class Series(NamedTuple):
    """One simulated series with its truth.

    Attributes
    ----------
    model, persistence, repeat, changed
        What it is: kind of system, persistence of its context, number, and how many links change.
    data_TN, context_T
        The series and its context.
    truth_MNNL
        The graph of each level, contemporaneous links directed.
    defined_by
        The variable that the context is a threshold of, None where it is none of the system's.
    names
        Names of the variables.
    """

    model: str
    persistence: float
    repeat: int
    data_TN: NDArray[np.float64]
    context_T: NDArray[np.int64]
    truth_MNNL: NDArray[np.bool_]
    defined_by: str | None
    names: tuple[str, ...]
    drivers: frozenset[str]
    governed: frozenset[str]


@dataclass(frozen=True)
class Task:
    """A series to be drawn and analysed by all methods."""

    study: Study
    seed: int
    model: str
    persistence: float
    steps: int
    repeat: int

    def series(self) -> Series:
        """Draw the series; equal tasks draw equal ones."""
        rng = random_numbers(self.seed, "study", self.model, f"{self.persistence:g}", str(self.steps), str(self.repeat))
        if self.model == PROXY:
            data_TN, context_T = proxy_example(rng, self.steps, memory=PROXY_MEMORY)
            names = ("X", "Y", "Z", "W", "C")
            truth_MNNL = np.zeros((2, 5, 5, TAU_MAX + 1), np.bool_)
            truth_MNNL[:, range(5), range(5), 1] = True
            truth_MNNL[:, :2, 4, 0] = True
            truth_MNNL[1, 2, 3, 1] = True
            return self._labelled(data_TN, context_T, truth_MNNL, "C", names, {"C"}, {"W"})
        if self.model == COLLIDER:
            system = collider_example(self.persistence)
        else:
            # One link changes in every other system, two in the rest.
            system = random_context_model(
                rng,
                variables=self.study.variables[self.repeat % len(self.study.variables)],
                persistence=self.persistence,
                density=self.study.density,
                changed=1 + self.repeat % 2,
                tau_max=TAU_MAX,
            )
        data_TN, context_T = system.simulate(rng, self.steps)
        drivers, governed = _at_context(system)
        return self._labelled(data_TN, context_T, system.graphs, None, system.names, drivers, governed)

    def _labelled(
        self,
        data_TN: NDArray[np.float64],
        context_T: NDArray[np.int64],
        truth_MNNL: NDArray[np.bool_],
        defined_by: str | None,
        names: tuple[str, ...],
        drivers: set[str],
        governed: set[str],
    ) -> Series:
        return Series(
            self.model,
            self.persistence,
            self.repeat,
            data_TN,
            context_T,
            truth_MNNL,
            defined_by,
            names,
            frozenset(drivers),
            frozenset(governed),
        )

    def run(self) -> list[dict[str, object]]:
        """Analyse the series by every method; one row for each method and context."""
        series = self.series()
        rows = []
        for method in get_args(Algorithm):
            label = {
                **{"seed": self.seed, "model": self.model, "persistence": self.persistence, "steps": self.steps},
                **{"repeat": self.repeat, "variables": len(series.names), "method": method},
            }
            try:
                found = discover(
                    series.data_TN,
                    series.context_T,
                    algorithm=method,
                    tau_max=TAU_MAX,
                    pc_alpha=self.study.alpha,
                    names=series.names,
                    defined_by=series.defined_by,
                    min_samples=MIN_SAMPLES,
                )
            except CausalDataError as error:
                rows.append(label | {"failure": str(error)})
                continue
            rows += [label | row for row in score(found, series)]
        return rows


def _at_context(system: ContextModel) -> tuple[set[str], set[str]]:
    drivers = {system.names[i] for i in np.flatnonzero(system.drive_NL.any(axis=1))}
    return drivers, {system.names[j] for j in np.flatnonzero((system.switch_NN >= 0).any(axis=0))}


def tasks(study: Study, seed: int) -> list[Task]:
    """Every series of the study for one seed, long ones first: they take longest."""
    found = [
        Task(study, seed, RANDOM, study.persistence, steps, repeat)
        for steps in sorted(study.steps, reverse=True)
        for repeat in range(study.repeats)
    ]
    for persistence in PERSISTENCES:
        found += [
            Task(study, seed, COLLIDER, persistence, study.example_steps, repeat) for repeat in range(study.repeats)
        ]
    found += [Task(study, seed, PROXY, PROXY_MEMORY, study.example_steps, repeat) for repeat in range(study.repeats)]
    return found


SCHEMA: dict[str, type[pl.DataType]] = {
    **{"seed": pl.Int64, "model": pl.String, "persistence": pl.Float64, "steps": pl.Int64, "repeat": pl.Int64},
    **{"variables": pl.Int64, "method": pl.String, "level": pl.String, "samples": pl.Int64},
    **dict.fromkeys(("hits", "true", "false", "absent", "off_kept", "off", "right", "oriented", "pairs"), pl.Int64),
    **dict.fromkeys(("hits_apart", "true_apart", "false_apart", "absent_apart"), pl.Int64),
    **dict.fromkeys(("false_collider", "switched_link"), pl.Boolean),
    **dict.fromkeys(("drivers_found", "drivers", "governed_found", "governed", "strangers"), pl.Int64),
    "failure": pl.String,
}


def score(found: ContextResult, series: Series) -> Iterator[dict[str, object]]:
    """Counts for each context, links of a variable with its own past left out.

    Returns
    -------
    iterator of dict
        level, samples; hits of true, false of absent: adjacencies, a contemporaneous pair counted once; the same
        ``apart`` from pairs with an end that the context drives or is driven by; off_kept of off: links of other
        contexts only that were found all the same; right of oriented of pairs: directions of true contemporaneous
        links; false_collider and switched_link: X - Y and Z -> W of the examples; what B found at the context.
    """
    n = len(series.names)
    lagged_NNL = np.ones(series.truth_MNNL.shape[1:], np.bool_)
    lagged_NNL[:, :, 0] = np.triu(lagged_NNL[:, :, 0])
    lagged_NNL[range(n), range(n)] = False
    at_context = np.array([name in series.drivers | series.governed for name in series.names])
    apart_NNL = lagged_NNL & ~(at_context[:, None] | at_context[None, :])[:, :, None]
    union_NNL = _adjacent(np.asarray(series.truth_MNNL.any(axis=0)))
    for level, (label, graph) in enumerate(found.graphs.items()):
        truth_NNL, linked_NNL = series.truth_MNNL[level], graph.graph_NNL != ""
        adjacent_NNL = _adjacent(truth_NNL)
        row: dict[str, object] = {"level": label, "samples": found.samples[label]}
        for suffix, counted_NNL in (("", lagged_NNL), ("_apart", apart_NNL)):
            row |= {
                f"hits{suffix}": int((linked_NNL & adjacent_NNL & counted_NNL).sum()),
                f"true{suffix}": int((adjacent_NNL & counted_NNL).sum()),
                f"false{suffix}": int((linked_NNL & ~adjacent_NNL & counted_NNL).sum()),
                f"absent{suffix}": int((~adjacent_NNL & counted_NNL).sum()),
            }
        off_NNL = union_NNL & ~adjacent_NNL & lagged_NNL
        both_NN = truth_NNL[:, :, 0] & linked_NNL[:, :, 0]
        marks_NN = graph.graph_NNL[:, :, 0]
        row |= {
            **{"off_kept": int((linked_NNL & off_NNL).sum()), "off": int(off_NNL.sum())},
            "right": int((both_NN & (marks_NN == "-->")).sum()),
            "oriented": int((both_NN & np.isin(marks_NN, ["-->", "<--"])).sum()),
            "pairs": int(truth_NNL[:, :, 0].sum()),
        }
        if series.model != RANDOM:
            row |= {"false_collider": bool(linked_NNL[0, 1, 0]), "switched_link": bool(linked_NNL[2, 3, 1])}
        if found.context_links is not None:
            row |= _context_counts(found, series)
        yield row


def _adjacent(truth_NNL: NDArray[np.bool_]) -> NDArray[np.bool_]:
    adjacent_NNL = truth_NNL.copy()
    adjacent_NNL[:, :, 0] |= adjacent_NNL[:, :, 0].T
    return adjacent_NNL


def _context_counts(found: ContextResult, series: Series) -> dict[str, object]:
    assert found.context_links is not None
    adjacent = {series.names[i] for i in found.context_links.adjacent}
    return {
        **{"drivers_found": len(adjacent & series.drivers), "drivers": len(series.drivers)},
        **{"governed_found": len(adjacent & series.governed), "governed": len(series.governed)},
        "strangers": len(adjacent - series.drivers - series.governed),
    }
