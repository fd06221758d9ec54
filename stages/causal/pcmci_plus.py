"""PCMCI+: lagged and contemporaneous links of a multivariate series, with directions at lag 0.

PC1 selects lagged conditions, MCI tests given growing subsets of contemporaneous neighbours find the adjacencies,
colliders and rules orient the contemporaneous ones (Runge 2020, UAI, PMLR 124). Any independence test will do; the
linear ones on one sample are compiled.

Graphs, values and p-values are those of tigramite 5.2.10.1, with three exceptions. A required link is reported with
its test, not with value 1 and p-value 0. A contemporaneous pair that is not adjacent is reported with the test that
separated it; the peer sometimes gives that p-value beside the value of another test. And the peer does not cut the
graph at a corrected level; `links.marked_graph` does.

With the conservative and the majority rule and conflict resolution nothing of the graph depends on the order of the
variables. Which of two separating tests in one pass is reported for a pair that is not adjacent does: the one whose
target comes later.

Shape suffixes: T time, N variable, L lag 0 to tau_max; [i, j, lag] is the link from i, lag steps before, to j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stages.causal.assumptions import AssumedLinks, LinkAssumptions, assumed_links
from stages.causal.covariance import Booleans
from stages.causal.independence import Cell, IndependenceTest
from stages.causal.linear_skeleton import LinearSearch, refuse_empty
from stages.causal.orientation import (
    COLLIDER_RULES,
    ColliderRule,
    Marks,
    Triple,
    initial_marks,
    judge,
    orient_colliders,
    orient_rest,
    unshielded_triples,
)
from stages.causal.pcmci import PCMCIResult
from stages.causal.samples import LaggedSample, Test, lagged_sample
from stages.causal.skeleton import AnySearch, Limits, Parents


@dataclass(frozen=True)
class PCMCIPlusResult(PCMCIResult):
    """The graph of PCMCI+ with the tests it rests on.

    The value, p-value and sizes of a link are those of its reported test, as in `PCMCIResult`.

    Attributes
    ----------
    graph_NNL
        Edge marks: ``""`` no link; ``-->`` from i to j; ``<--`` (lag 0 only) from j to i; ``o-o`` undirected;
        ``x-x`` directions in conflict.
    separating
        For each pair (source, lag, target) that a test given contemporaneous neighbours separated, these neighbours.
    ambiguous
        Unshielded triples (source, lag, middle, target) whose separating sets do not say whether they are colliders.
    required_NNL
        True where the assumptions require a link: it is in the graph whatever its test says.
    """

    graph_NNL: Marks
    separating: dict[tuple[int, int, int], tuple[int, ...]]
    ambiguous: tuple[Triple, ...]
    required_NNL: Booleans


def run_pcmci_plus(
    data_TN: ArrayLike,
    *,
    tau_max: int,
    pc_alpha: float,
    test: Test = "parcorr",
    mask_T: ArrayLike | None = None,
    mask_TN: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    assumptions: LinkAssumptions | None = None,
    max_conds_dim: int | None = None,
    max_conds_py: int | None = None,
    max_conds_px: int | None = None,
    tau_min: int = 0,
    collider_rule: ColliderRule = "majority",
    conflict_resolution: bool = True,
    orient: bool = True,
    reset_lagged_links: bool = False,
) -> PCMCIPlusResult:
    """Run PCMCI+ on one series.

    Parameters
    ----------
    data_TN
        The series, one row per step of a regular clock, any units; NaN is missing and drops, test by test, the target
        times that would need it.
    tau_max
        Largest lag of a link, in steps.
    pc_alpha
        Level of all tests, in (0, 1].
    test
        ``parcorr`` or ``robust_parcorr``.
    mask_T
        True = this target time is not used.
    mask_TN
        True = this target time is not used where the variable of the column is the target.
    rows
        Target times of the sample, 2 tau_max to T - 1, repeats allowed; all of them by default.
    names
        Names of the variables.
    assumptions
        What is known of links.
    max_conds_dim
        Largest number of conditions in the selection, and of contemporaneous ones in the tests after it.
    max_conds_py, max_conds_px
        How many parents of the target, and of the source, the MCI tests condition on; the strongest are used.
    tau_min
        Smallest lag of a link, in steps.
    collider_rule
        ``none`` trusts the one separating set that was found; ``conservative`` and ``majority`` ask all of them.
    conflict_resolution
        Mark conflicting directions; without it the first direction stays.
    orient
        Orient the contemporaneous links.
    reset_lagged_links
        Test every lagged link again, given what the selection found, and not only the selected ones.

    Returns
    -------
    PCMCIPlusResult
        The graph, and values, p-values and sample sizes of all tested links.

    Raises
    ------
    TooFewSamples
        When mask and missing values leave a link no degree of freedom; the message names the link.
    ConstantVariable
        When a variable does not vary, in all or in the samples of one test.
    CausalDataError
        For infinite values.
    ValueError
        For assumptions that contradict each other; the message names the link.
    """
    sample = lagged_sample(data_TN, tau_max=tau_max, test=test, mask_T=mask_T, mask_TN=mask_TN, rows=rows, names=names)
    return pcmci_plus_on(
        sample,
        pc_alpha=pc_alpha,
        assumptions=assumptions,
        max_conds_dim=max_conds_dim,
        max_conds_py=max_conds_py,
        max_conds_px=max_conds_px,
        tau_min=tau_min,
        collider_rule=collider_rule,
        conflict_resolution=conflict_resolution,
        orient=orient,
        reset_lagged_links=reset_lagged_links,
    )


def pcmci_plus_on(
    test: IndependenceTest | LaggedSample,
    *,
    pc_alpha: float,
    assumptions: LinkAssumptions | None = None,
    max_conds_dim: int | None = None,
    max_conds_py: int | None = None,
    max_conds_px: int | None = None,
    tau_min: int = 0,
    collider_rule: ColliderRule = "majority",
    conflict_resolution: bool = True,
    orient: bool = True,
    reset_lagged_links: bool = False,
    lagged_conditions: Sequence[Sequence[Cell]] | None = None,
) -> PCMCIPlusResult:
    """Run PCMCI+ with any independence test, or on a prepared sample.

    Parameters
    ----------
    test
        The test, or a sample for the compiled linear ones.
    pc_alpha, assumptions, max_conds_dim, max_conds_py, max_conds_px, tau_min
        As in `run_pcmci_plus`.
    collider_rule, conflict_resolution, orient, reset_lagged_links
        As in `run_pcmci_plus`.
    lagged_conditions
        For each variable its lagged conditions, (source, lag) from the strongest to the weakest. They replace the
        selection: they alone are candidates of lagged links, and conditions of the MCI tests.

    Returns
    -------
    PCMCIPlusResult
        As from `run_pcmci_plus`, with the same errors.
    """
    if not 0 < pc_alpha <= 1:
        raise ValueError(f"pc_alpha {pc_alpha}: expected a level in (0, 1]")
    if collider_rule not in COLLIDER_RULES:
        raise ValueError(f"collider_rule {collider_rule!r}: expected one of {', '.join(COLLIDER_RULES)}")
    limits = Limits(_limit(max_conds_dim, "dim"), _limit(max_conds_py, "py"), _limit(max_conds_px, "px"))
    assumed = assumed_links(assumptions, test.names, tau_max=test.tau_max, tau_min=tau_min)
    search: AnySearch | LinearSearch
    if isinstance(test, LaggedSample):
        refuse_empty(test, assumed.allowed_NNL)
        search = LinearSearch(test, assumed, float(pc_alpha), limits)
    else:
        search = AnySearch(test.measure, assumed, float(pc_alpha), limits)
    parents = None if lagged_conditions is None else _given_parents(lagged_conditions, test.names, assumed)
    found = search.run(parents, reset=reset_lagged_links)
    graph_NNL = initial_marks(found.linked_NNL, assumed.directed_NN)
    ambiguous: list[Triple] = []
    if orient and tau_min == 0:
        colliders, ambiguous = _judge_triples(search, graph_NNL, collider_rule)
        orient_colliders(graph_NNL, colliders, assumed.directed_NN, conflict_resolution)
        orient_rest(graph_NNL, ambiguous, assumed.directed_NN, conflict_resolution)
    return PCMCIPlusResult(
        value_NNL=found.value_NNL,
        p_NNL=found.p_NNL,
        samples_NNL=found.samples_NNL,
        df_NNL=found.df_NNL,
        tested_NNL=found.samples_NNL > 0,
        parents=found.parents,
        names=tuple(test.names),
        tau_min=tau_min,
        tau_max=test.tau_max,
        pc_alpha=pc_alpha,
        test=getattr(test, "test", type(test).__name__),
        graph_NNL=graph_NNL,
        separating=found.separating,
        ambiguous=tuple(ambiguous),
        required_NNL=assumed.required_NNL,
    )


def _judge_triples(
    search: AnySearch | LinearSearch, graph_NNL: Marks, rule: ColliderRule
) -> tuple[list[Triple], list[Triple]]:
    """Colliders and ambiguous ones among the unshielded triples."""
    triples = unshielded_triples(graph_NNL)
    separating = search.found.separating
    if rule == "none":
        return [(i, lag, k, j) for i, lag, k, j in triples if k not in separating.get((i, lag, j), ())], []
    pairs = sorted({(i, lag, j) for i, lag, _, j in triples})
    place = {pair: q for q, pair in enumerate(pairs)}
    separating_P, holding_PN = search.count_separating(pairs)
    colliders, ambiguous = [], []
    for i, lag, k, j in triples:
        q = place[i, lag, j]
        verdict = judge(rule, int(separating_P[q]), int(holding_PN[q, k]))
        if verdict is None:
            ambiguous.append((i, lag, k, j))
        elif verdict:
            colliders.append((i, lag, k, j))
    return colliders, ambiguous


def _given_parents(lagged_conditions: Sequence[Sequence[Cell]], names: Sequence[str], assumed: AssumedLinks) -> Parents:
    """Check given conditions, take the forbidden ones out and add the required ones."""
    n, _, lags = assumed.allowed_NNL.shape
    if len(lagged_conditions) != n:
        raise ValueError(f"lagged_conditions of {len(lagged_conditions)} variables: expected {n}")
    parents = []
    for j, given in enumerate(lagged_conditions):
        cells = [(int(i), int(lag)) for i, lag in given]
        for i, lag in cells:
            if not (0 <= i < n and 1 <= lag < lags):
                raise ValueError(
                    f"lagged_conditions of {names[j]}: ({i}, {lag}) is no variable and lag 1 to {lags - 1}"
                )
        if len(set(cells)) != len(cells):
            raise ValueError(f"lagged_conditions of {names[j]}: {cells} repeats a cell")
        required = [(int(i), int(lag)) for i, lag in np.argwhere(assumed.required_NNL[:, j]) if lag > 0]
        cells = [(i, lag) for i, lag in cells if assumed.allowed_NNL[i, j, lag]]
        parents.append(tuple(cells + [cell for cell in required if cell not in cells]))
    return tuple(parents)


def _limit(value: int | None, name: str) -> int:
    if value is None:
        return 2**31
    if value < 0:
        raise ValueError(f"max_conds_{name} {value}: expected 0 or more, or None")
    return value
