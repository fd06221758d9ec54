"""The adjacencies of PCMCI+ for any independence test: PC1, the MCI tests given contemporaneous neighbours, the votes.

Runge 2020, UAI (PMLR 124), algorithms 1 and 2, with one combination per dimension in PC1.

Shape suffixes: N variable, L lag 0 to tau_max; [i, j, lag] is the link from i, lag steps before, to j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from stages.causal.assumptions import AssumedLinks
from stages.causal.covariance import Booleans
from stages.causal.independence import Cell
from stages.causal.partial_correlation import TestResult
from stages.causal.ranks import Floats, Integers

Measure = Callable[[Cell, Cell, Sequence[Cell]], TestResult]
Parents = tuple[tuple[Cell, ...], ...]


class Limits(NamedTuple):
    """How many conditions tests may have: dimension of the subsets, parents of the target, of the source."""

    dim: int
    py: int
    px: int


@dataclass
class Skeleton:
    """Adjacencies and the tests they rest on.

    Attributes
    ----------
    linked_NNL
        Adjacencies; symmetric at lag 0.
    value_NNL, p_NNL, samples_NNL, df_NNL
        The reported test of each link; 0, 1, 0, 0 where nothing was tested.
    parents
        For each variable its lagged conditions, (source, lag) from the strongest to the weakest.
    separating
        For each pair (source, lag, target) that contemporaneous conditions separated, these conditions.
    """

    linked_NNL: Booleans
    value_NNL: Floats
    p_NNL: Floats
    samples_NNL: Integers
    df_NNL: Integers
    parents: Parents = ()
    separating: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)

    def record(self, i: int, j: int, lag: int, test: TestResult) -> None:
        """Keep the test of a link with the largest p-value."""
        if self.samples_NNL[i, j, lag] == 0 or test.p > self.p_NNL[i, j, lag]:
            self.write(i, j, lag, test)

    def take_parents(self, parents: Parents, linked_NNL: Booleans | None = None) -> None:
        """Link the lagged parents, or the given lagged links; of them the MCI tests alone are reported."""
        self.parents = parents
        taken_NNL = np.zeros_like(self.linked_NNL)
        for j, cells in enumerate(parents):
            for i, lag in cells:
                taken_NNL[i, j, lag] = True
        if linked_NNL is not None:
            taken_NNL[:, :, 1:] |= linked_NNL[:, :, 1:]
        self.linked_NNL |= taken_NNL
        self.p_NNL[taken_NNL] = 1.0
        for report_NNL in (self.value_NNL, self.samples_NNL, self.df_NNL):
            report_NNL[taken_NNL] = 0

    def separate(self, i: int, j: int, lag: int, test: TestResult, subset: tuple[int, ...]) -> None:
        """Keep the test that separated a link; at lag 0 it is the report of both directions."""
        for a, b in ((i, j), (j, i)) if lag == 0 else ((i, j),):
            self.write(a, b, lag, test)
            self.separating[a, lag, b] = subset

    def write(self, i: int, j: int, lag: int, test: TestResult) -> None:
        """Report a test of a link."""
        self.value_NNL[i, j, lag] = test.value
        self.p_NNL[i, j, lag] = test.p
        self.samples_NNL[i, j, lag] = test.samples
        self.df_NNL[i, j, lag] = test.df

    def report_both_directions(self, directed_NN: Booleans) -> None:
        """Report at lag 0 the direction with the larger p-value; of links assumed to point one way, that way."""
        p_NN = self.p_NNL[:, :, 0].copy()
        p_NN[directed_NN.T & self.linked_NNL[:, :, 0]] = -1.0
        for report_NNL in (self.value_NNL, self.p_NNL, self.samples_NNL, self.df_NNL):
            report_NNL[:, :, 0] = np.where(p_NN >= p_NN.T, report_NNL[:, :, 0], report_NNL[:, :, 0].T)


def empty_skeleton(allowed_NNL: Booleans) -> Skeleton:
    """Start with every allowed contemporaneous link, none of the lagged ones, and no test.

    Parameters
    ----------
    allowed_NNL
        True where a link may exist.

    Returns
    -------
    Skeleton
        Nothing tested yet.
    """
    linked_NNL = np.zeros_like(allowed_NNL)
    linked_NNL[:, :, 0] = allowed_NNL[:, :, 0]
    return Skeleton(
        linked_NNL=linked_NNL,
        value_NNL=np.zeros(allowed_NNL.shape),
        p_NNL=np.ones(allowed_NNL.shape),
        samples_NNL=np.zeros(allowed_NNL.shape, np.int64),
        df_NNL=np.zeros(allowed_NNL.shape, np.int64),
    )


class AnySearch:
    """The search with any independence test.

    Parameters
    ----------
    measure
        The independence test.
    assumed
        What is known of links.
    alpha
        Level of all tests.
    limits
        Numbers of conditions.
    """

    def __init__(self, measure: Measure, assumed: AssumedLinks, alpha: float, limits: Limits) -> None:
        self.measure, self.assumed, self.alpha, self.limits = measure, assumed, alpha, limits
        self.found = empty_skeleton(assumed.allowed_NNL)

    def run(self, parents: Parents | None, *, reset: bool = False) -> Skeleton:
        """Find the adjacencies, with given lagged conditions or PC1's; ``reset`` tests all lagged links."""
        if parents is None:
            parents = select_parents(self.measure, self.assumed, self.alpha, self.limits.dim, self.found)
        self.found.take_parents(parents, self.assumed.allowed_NNL if reset else None)
        find_skeleton(self.measure, self.assumed, self.alpha, self.limits, self.found)
        return self.found

    def count_separating(self, pairs: Sequence[tuple[int, int, int]]) -> tuple[Integers, Integers]:
        """Count separating subsets as the function of this name does."""
        found = self.found
        return count_separating(self.measure, pairs, found.linked_NNL, found.parents, self.alpha, self.limits)


def select_parents(measure: Measure, assumed: AssumedLinks, alpha: float, max_dim: int, found: Skeleton) -> Parents:
    """PC1: lagged parents of every variable; each tested cell keeps its test with the largest p-value.

    Parameters
    ----------
    measure
        The independence test.
    assumed
        What is known of links.
    alpha
        Level of the selection.
    max_dim
        Largest number of conditions.
    found
        Receives the tests.

    Returns
    -------
    tuple
        For each variable (source, lag) from the strongest to the weakest.
    """
    n, _, lags = assumed.allowed_NNL.shape
    parents = []
    for j in range(n):
        cells = [(i, lag) for i in range(n) for lag in range(1, lags) if assumed.allowed_NNL[i, j, lag]]
        strength = dict.fromkeys(cells, np.inf)
        dim = 0
        while dim <= min(len(cells) - 1, max_dim):
            dropped = set()
            for i, lag in cells:
                others = [cell for cell in cells[: dim + 1] if cell != (i, lag)][:dim]
                test = measure((i, lag), (j, 0), others)
                found.record(i, j, lag, test)
                if assumed.required_NNL[i, j, lag]:
                    continue  # kept, and sorted before all others
                strength[i, lag] = min(strength[i, lag], abs(test.value))
                if test.p > alpha:
                    dropped.add((i, lag))
            cells = sorted((cell for cell in cells if cell not in dropped), key=lambda cell: -strength[cell])
            dim += 1
        parents.append(tuple(cells))
    return tuple(parents)


def mci_conditions(parents: Parents, x: Cell, j: int, neighbours: Sequence[int], limits: Limits) -> list[Cell]:
    """List the conditions of an MCI test.

    Parameters
    ----------
    parents
        Lagged conditions of every variable.
    x
        The source.
    j
        The target, at lag 0.
    neighbours
        Contemporaneous conditions.
    limits
        How many parents of either end are used.

    Returns
    -------
    list
        The neighbours, the target's parents without x, and the parents of x shifted by its lag, each cell once.
    """
    i, lag = x
    conditions = [(k, 0) for k in neighbours]
    conditions += [cell for cell in parents[j][: limits.py] if cell != x]
    shifted = [(k, tau + lag) for k, tau in parents[i][: limits.px]]
    return conditions + [cell for cell in shifted if cell not in conditions and cell != x]


def find_skeleton(measure: Measure, assumed: AssumedLinks, alpha: float, limits: Limits, found: Skeleton) -> None:
    """Test every remaining link given subsets of the target's contemporaneous neighbours, of growing size.

    Parameters
    ----------
    measure
        The independence test.
    assumed
        What is known of links.
    alpha
        Level of the tests.
    limits
        Numbers of conditions.
    found
        The skeleton, changed in place.
    """
    n = found.linked_NNL.shape[0]
    linked_NNL = found.linked_NNL
    strength_NN = np.full((n, n), np.inf)
    dim = 0
    while dim <= limits.dim:
        removed = []
        enough = False
        neighbours = [_by_strength(linked_NNL[:, j, 0], strength_NN[:, j]) for j in range(n)]
        for j in range(n):
            for i, lag in np.argwhere(linked_NNL[:, j]).tolist():
                others = [k for k in neighbours[j] if lag or k != i]
                enough = enough or len(others) > dim
                for subset in combinations(others, dim):
                    test = measure((i, lag), (j, 0), mci_conditions(found.parents, (i, lag), j, subset, limits))
                    found.record(i, j, lag, test)
                    if assumed.required_NNL[i, j, lag]:
                        continue
                    if lag == 0:
                        strength_NN[i, j] = min(strength_NN[i, j], abs(test.value))
                    if test.p > alpha:
                        removed.append((i, lag, j))
                        found.separate(i, j, lag, test, tuple(sorted(subset)))
                        break
        for i, lag, j in removed:
            linked_NNL[i, j, lag] = False
            if lag == 0:
                linked_NNL[j, i, 0] = False
        if not enough:
            break
        dim += 1
    found.report_both_directions(assumed.directed_NN)


def _by_strength(linked_N: Booleans, strength_N: Floats) -> list[int]:
    """Neighbours from the strongest to the weakest, equals by their number."""
    order_N = np.argsort(-strength_N, kind="stable")
    return [int(i) for i in order_N if linked_N[i]]


def count_separating(
    measure: Measure,
    pairs: Sequence[tuple[int, int, int]],
    linked_NNL: Booleans,
    parents: Parents,
    alpha: float,
    limits: Limits,
) -> tuple[Integers, Integers]:
    """Count all subsets of contemporaneous neighbours of the target, or at lag 0 of the source, that separate pairs.

    Parameters
    ----------
    measure
        The independence test.
    pairs
        Source, lag, target of each pair.
    linked_NNL
        Adjacencies.
    parents
        Lagged conditions of every variable.
    alpha
        Level of the tests.
    limits
        Numbers of conditions; that of the subsets does not bind here.

    Returns
    -------
    tuple
        How many subsets separate each pair, and how many of them hold each variable (pairs x N).
    """
    separating_P = np.zeros(len(pairs), np.int64)
    holding_PN = np.zeros((len(pairs), linked_NNL.shape[0]), np.int64)
    for q, (i, lag, j) in enumerate(pairs):
        subsets = {
            subset
            for end in ((j,) if lag else (j, i))
            for subset in _subsets(np.flatnonzero(linked_NNL[:, end, 0]).tolist())
        }
        for subset in sorted(subsets):
            if measure((i, lag), (j, 0), mci_conditions(parents, (i, lag), j, subset, limits)).p > alpha:
                separating_P[q] += 1
                holding_PN[q, list(subset)] += 1
    return separating_P, holding_PN


def _subsets(variables: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(variables, size) for size in range(len(variables) + 1))
