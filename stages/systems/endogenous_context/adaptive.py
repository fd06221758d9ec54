"""A causal graph for each context, where the system itself influences the context: algorithms A and B.

Both search with PCMCI+ and decide each link by tests on more than one sample. Pooled data do not see which context a
link belongs to; the samples of one context are selected by something the system influences, which joins its causes. A
link of context r has to show in each of the samples that a rule names:

    pooled  all target times
    now     those with R = r at every lag from 0 to tau_max
    past    those with R = r at every lag from 1 to tau_max, whatever R is at the target time

``now`` alone opens the collider X_t -> R_t <- Y_t. ``past`` does not, since given the past of both variables nothing
before the target time joins them; but it mixes contexts where R_t itself switches a link, which ``now`` does not. So a
link that is absent in r is absent in one of the two, and a link that is there shows in both.

A, for persistent contexts, decides every pair so. B, for few links between system and context, does it only for pairs
with an end that R is adjacent to, and takes all others from the pooled data. Both are reconstructions from the abstract
of the ICML 2026 paper and from its predecessor (arXiv 2412.04981), not its code.

Shape suffixes: T time, N variable, L lag 0 to tau_max; [i, j, lag] is the link from i, lag steps before, to j.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.causal.assumptions import LinkAssumptions
from stages.causal.errors import CausalDataError, ConstantVariable, TooFewSamples
from stages.causal.independence import Cell, IndependenceTest
from stages.causal.orientation import ColliderRule
from stages.causal.partial_correlation import TestResult
from stages.causal.pcmci_plus import PCMCIPlusResult, pcmci_plus_on
from stages.causal.sample_test import SampleTest
from stages.causal.samples import LaggedSample, Test, lagged_sample
from stages.systems.endogenous_context.context_links import ContextLinks, find_context_links

Search = dict[str, Any]
Algorithm = Literal["A", "B", "pooled", "masked", "intersection"]
Sample = Literal["pooled", "now", "past"]
#: Every group must show a link; a group shows it where one of its samples does.
Rule = tuple[tuple[Sample, ...], ...]
RULES: dict[str, Rule] = {
    "pooled and now": (("now",), ("pooled",)),
    "windows": (("now",), ("past",)),
    "all": (("now",), ("past",), ("pooled",)),
    "now and either": (("now",), ("pooled", "past")),
}
DEFAULT_RULE = "windows"
MIN_SAMPLES = 50


@dataclass(frozen=True)
class ContextResult:
    """A graph for each context.

    Attributes
    ----------
    graphs
        Level -> PCMCI+ over the variables of the system. Values and sample sizes are those of tests within the context,
        where the algorithm makes such; p-values are the largest that the rule asks for.
    pooled
        PCMCI+ on all target times.
    union_NNL
        True where some context has the link; symmetric at lag 0.
    samples
        Level -> target times that the window (of ``masked``: the mask) leaves it.
    kept
        Level -> share of the target times with R = r that the window leaves: near 1 where contexts persist.
    context_links
        What was found at R itself; None where the algorithm does not ask.
    """

    graphs: dict[str, PCMCIPlusResult]
    pooled: PCMCIPlusResult
    union_NNL: NDArray[np.bool_]
    samples: dict[str, int]
    kept: dict[str, float]
    context_links: ContextLinks | None = None


@dataclass
class AdaptiveTest:
    """Independence within a context, decided on several samples.

    Attributes
    ----------
    tests
        The test on each sample.
    rule
        Which samples have to show a link.
    inside
        Variables whose pairs are decided by the rule; the others by pooled data. None means all.
    """

    tests: Mapping[str, IndependenceTest]
    rule: Rule
    inside: Collection[int] | None = None
    names: tuple[str, ...] = field(init=False)
    tau_max: int = field(init=False)

    def __post_init__(self) -> None:
        self.names, self.tau_max = self.tests["pooled"].names, self.tests["pooled"].tau_max

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult:
        """Test x against y given the conditions.

        Returns
        -------
        TestResult
            Value and sizes of the first sample of the rule; p is the largest of its groups, that of a group of k
            samples k times its smallest.
        """
        if self.inside is not None and x[0] not in self.inside and y[0] not in self.inside:
            return self.tests["pooled"].measure(x, y, conditions)
        first, p = None, 0.0
        for group in self.rule:
            found = [self.tests[sample].measure(x, y, conditions) for sample in group]
            first = first or found[0]
            p = max(p, min(1.0, len(group) * min(test.p for test in found)))
        assert first is not None
        return TestResult(first.value, p, first.samples, first.df)


def discover(
    data_TN: ArrayLike,
    context_T: ArrayLike,
    *,
    algorithm: Algorithm,
    tau_max: int,
    pc_alpha: float,
    test: Test = "parcorr",
    names: Sequence[str] | None = None,
    mask_T: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    levels: Sequence[str] | None = None,
    defined_by: str | None = None,
    context_name: str = "R",
    rule: str = DEFAULT_RULE,
    window: int | None = None,
    assumptions: LinkAssumptions | None = None,
    collider_rule: ColliderRule = "majority",
    min_samples: int = MIN_SAMPLES,
) -> ContextResult:
    """Find a causal graph for each context.

    Parameters
    ----------
    data_TN
        The system, one row per step of a regular clock, any units; NaN is missing.
    context_T
        Level of the context at each step, 0 to m - 1; negative where it is not known.
    algorithm
        ``A``, ``B``; or a baseline: ``pooled`` (one graph for all), ``masked`` (target times with R_t = r, as tigramite
        masks), ``intersection`` (links of the pooled graph that PCMCI+ on the window's sample finds too).
    tau_max
        Largest lag of a link, steps.
    pc_alpha
        Level of all tests.
    test
        ``parcorr`` or ``robust_parcorr``.
    names
        Names of the variables.
    mask_T
        True = this target time is not used.
    rows
        Target times, 2 tau_max to T - 1, repeats allowed; all by default.
    levels
        Names of the levels; ``0``, ``1``, ... by default.
    defined_by
        The variable that the context is a threshold of. It is adjacent to R without a test.
    context_name
        How the context is called.
    rule
        Which samples have to show a link, a key of ``RULES``.
    window
        Largest lag of the context in a window, steps; tau_max by default.
    assumptions
        What is known of links, in every context.
    collider_rule
        As for `run_pcmci_plus`.
    min_samples
        Fewest target times that the window, or the mask, must leave a context.

    Returns
    -------
    ContextResult
        The graphs.

    Raises
    ------
    TooFewSamples
        A context leaves too few target times, or a link too few for its test; the message names context and link.
    ConstantVariable
        A variable is constant, in all or within one context; the message names both.
    """
    if algorithm not in get_args(Algorithm):
        raise ValueError(f"algorithm {algorithm!r}: expected one of {', '.join(get_args(Algorithm))}")
    if rule not in RULES:
        raise ValueError(f"rule {rule!r}: expected one of {', '.join(RULES)}")
    array_TN = np.asarray(data_TN, np.float64)
    level_T = _levels(context_T, array_TN.shape[0])
    labels = _labels(levels, level_T)
    unused_T = np.zeros(array_TN.shape[0], bool) if mask_T is None else np.asarray(mask_T)
    sampling: dict[str, Any] = {"tau_max": tau_max, "test": test, "names": names, "rows": rows}
    search: Search = {"pc_alpha": pc_alpha, "assumptions": assumptions, "collider_rule": collider_rule}

    def sample_test(mask: NDArray[np.bool_]) -> SampleTest:
        return SampleTest(lagged_sample(array_TN, mask_T=mask | unused_T, **sampling))

    everywhere = sample_test(np.zeros(unused_T.shape, bool))
    pooled = pcmci_plus_on(everywhere.sample, **search)
    last = tau_max if window is None else window
    at_context = None
    if algorithm == "B":
        at_context = find_context_links(
            array_TN, level_T, pooled, mask_T=unused_T, rows=rows, test=test, defined_by=defined_by, name=context_name
        )
    graphs, samples, kept = {}, {}, {}
    for level, label in enumerate(labels):
        now_T, past_T = (_outside(level_T, level, lags) for lags in (range(last + 1), range(1, last + 1)))
        where = f"{context_name} = {label}"
        if algorithm == "masked":
            now_T = level_T != level
        samples[label] = _count(~now_T & ~unused_T, rows, 2 * tau_max)
        kept[label] = samples[label] / max(_count((level_T == level) & ~unused_T, rows, 2 * tau_max), 1)
        try:
            if algorithm != "pooled" and samples[label] < min_samples:
                raise TooFewSamples("every link", found=samples[label], needed=min_samples, conditions=0)
            if algorithm == "pooled":
                graphs[label] = pooled
            elif algorithm == "masked":
                graphs[label] = pcmci_plus_on(sample_test(now_T).sample, **search)
            elif algorithm == "intersection":
                graphs[label] = _intersected(pcmci_plus_on(sample_test(now_T).sample, **search), pooled)
            else:
                tests = {"pooled": everywhere, "now": sample_test(now_T)}
                if any("past" in group for group in RULES[rule]):
                    tests["past"] = sample_test(past_T)
                graphs[label] = search_context(pooled, tests, RULES[rule], at_context, search)
        except TooFewSamples as error:
            raise TooFewSamples(
                f"{error.link} where {where}", found=error.found, needed=error.needed, conditions=error.conditions
            ) from None
        except ConstantVariable as error:
            raise ConstantVariable(f"where {where}: {error}") from None
    union_NNL = np.any([graph.graph_NNL != "" for graph in graphs.values()], axis=0)
    return ContextResult(graphs, pooled, union_NNL, samples, kept, at_context)


def combined_context(contexts: Mapping[str, ArrayLike]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Several contexts as one: a level for each combination that occurs.

    Parameters
    ----------
    contexts
        Name -> level at each step, negative where it is not known.

    Returns
    -------
    tuple
        Level of the combination at each step, -1 where any context is not known; and the names of the levels, such as
        ``soil=0 season=1``.
    """
    columns_TK = np.column_stack([np.asarray(context, np.int64) for context in contexts.values()])
    known_T = (columns_TK >= 0).all(axis=1)
    found_MK, place_T = np.unique(columns_TK[known_T], axis=0, return_inverse=True)
    level_T = np.full(columns_TK.shape[0], -1, np.int64)
    level_T[known_T] = place_T.reshape(-1)
    names = (" ".join(f"{name}={level}" for name, level in zip(contexts, row, strict=True)) for row in found_MK)
    return level_T, tuple(names)


def _levels(context_T: ArrayLike, steps: int) -> NDArray[np.int64]:
    level_T = np.asarray(context_T)
    if level_T.shape != (steps,) or level_T.dtype.kind not in "iu":
        raise ValueError(
            f"context: found {level_T.dtype} of shape {level_T.shape}; expected integer levels of shape ({steps},), "
            "negative where they are not known"
        )
    if not (level_T >= 0).any():
        raise CausalDataError("the context is not known at any time")
    return level_T.astype(np.int64)


def _labels(levels: Sequence[str] | None, level_T: NDArray[np.int64]) -> tuple[str, ...]:
    count = int(level_T.max()) + 1
    labels = tuple(str(level) for level in range(count)) if levels is None else tuple(levels)
    if len(labels) < count or len(set(labels)) != len(labels):
        raise ValueError(f"levels {labels}: expected {count} different names")
    return labels


def _outside(level_T: NDArray[np.int64], level: int, lags: range) -> NDArray[np.bool_]:
    """Target times at which the context has another level at one of some lags."""
    other_T = level_T != level
    outside_T = np.zeros(level_T.size, bool)
    for lag in lags:
        outside_T[lag:] |= other_T[: level_T.size - lag]
        outside_T[:lag] = True
    return outside_T


def _count(used_T: NDArray[np.bool_], rows: ArrayLike | None, first: int) -> int:
    return int(used_T[first:].sum() if rows is None else used_T[np.asarray(rows)].sum())


def search_context(
    pooled: PCMCIPlusResult,
    tests: Mapping[str, IndependenceTest],
    rule: Rule,
    at_context: ContextLinks | None,
    search: Search,
) -> PCMCIPlusResult:
    """The graph of one context by a rule.

    Lagged conditions are the parents that PC1 selects on pooled data, then, where a link need not show there, those it
    selects in the context alone. A link that it selects nowhere keeps the test that dropped it, as in PCMCI+.

    Parameters
    ----------
    pooled
        PCMCI+ on all target times.
    tests
        The test on each sample that the rule names, and on ``pooled``.
    rule
        Which samples have to show a link.
    at_context
        Links at the context, where only pairs adjacent to it are decided by the rule.
    search
        Level and other options of PCMCI+.
    """
    selected, dropped = [list(cells) for cells in pooled.parents], pooled
    if ("pooled",) not in rule:
        dropped = pcmci_plus_on(_fast(tests["now"]), orient=False, **search)
        for own, others in zip(selected, dropped.parents, strict=True):
            own += [cell for cell in others if cell not in own]
    test = AdaptiveTest(tests, rule, at_context.adjacent if at_context else None)
    found = pcmci_plus_on(test, lagged_conditions=selected, **search)
    sources = [dropped]
    if at_context is not None:
        # Pairs apart from the context were dropped on pooled data.
        sources = [_only_apart(pooled, at_context), dropped]
    for source in sources:
        found = _with_dropped(found, source)
    return found


def _with_dropped(found: PCMCIPlusResult, source: PCMCIPlusResult) -> PCMCIPlusResult:
    """A result with the tests of another one where it has none of its own."""
    take_NNL = source.tested_NNL & ~found.tested_NNL
    arrays = ("value_NNL", "p_NNL", "samples_NNL", "df_NNL", "tested_NNL")
    return replace(found, **{name: np.where(take_NNL, getattr(source, name), getattr(found, name)) for name in arrays})


def _only_apart(pooled: PCMCIPlusResult, at_context: ContextLinks) -> PCMCIPlusResult:
    apart_N = np.array([i not in at_context.adjacent for i in range(len(pooled.names))])
    return replace(pooled, tested_NNL=pooled.tested_NNL & (apart_N[:, None] & apart_N[None, :])[:, :, None])


def _fast(test: IndependenceTest) -> IndependenceTest | LaggedSample:
    """The sample of a linear test, on which the search is compiled."""
    return test.sample if isinstance(test, SampleTest) else test


def _intersected(within: PCMCIPlusResult, pooled: PCMCIPlusResult) -> PCMCIPlusResult:
    """Links of one graph that another has, too; marks are those of the first."""
    both_NNL = np.where(pooled.graph_NNL != "", within.graph_NNL, "")
    return replace(within, graph_NNL=both_NNL, p_NNL=np.maximum(within.p_NNL, pooled.p_NNL))
