"""Which variables the context depends on, and whose mechanisms depend on it (algorithm B, first step).

Pairs with the context are tested by a mixed test, which sees a shift of the mean and a change of slopes, on pooled
data. What drives R is searched by PCMCI+ over the system and R, the graph of the system given; what R governs is tested
given all that the variable is adjacent to. A contemporaneous link at R is oriented by what R and the variable owe to
their own pasts, where two tests agree:

    R_t -> X_t   R_{t-1} tells about X_t beyond the past of X, and X_{t-1} tells nothing about R_t beyond its past
    X_t -> R_t   the other way round

Shape suffixes: T time, N variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.causal.assumptions import LinkAssumptions
from stages.causal.independence import Cell
from stages.causal.mixed import MixedTest, mixed_test
from stages.causal.pcmci_plus import PCMCIPlusResult, pcmci_plus_on
from stages.causal.samples import Test

#: Lags of the context at which a change of mechanism is looked for.
GOVERNING_LAGS = (0, 1)


@dataclass(frozen=True)
class ContextLink:
    """A link at the context: ``-->`` from source to target, ``o-o`` where the direction is not known."""

    source: str
    target: str
    lag: int
    mark: str
    p: float


@dataclass(frozen=True)
class ContextLinks:
    """Links at the context, and the variables they join to it."""

    links: tuple[ContextLink, ...]
    adjacent: frozenset[int]


def find_context_links(
    data_TN: NDArray[np.float64],
    level_T: NDArray[np.int64],
    pooled: PCMCIPlusResult,
    *,
    mask_T: ArrayLike,
    rows: ArrayLike | None,
    test: Test,
    defined_by: str | None,
    name: str,
) -> ContextLinks:
    """Search the links at a context on pooled data.

    Parameters
    ----------
    data_TN
        The system, NaN where missing.
    level_T
        Level of the context, negative where it is not known.
    pooled
        PCMCI+ over the system: its graph is taken as given, its level is that of the tests here.
    mask_T, rows, test
        As for `discover`.
    defined_by
        The variable that the context is a threshold of: adjacent without a test, and alone in driving it.
    name
        How the context is called.

    Returns
    -------
    ContextLinks
        The links, and which variables have one.
    """
    assert pooled.pc_alpha is not None
    n = len(pooled.names)
    names = (*pooled.names, name)
    context_T = np.where(level_T >= 0, level_T, np.nan)
    mixed = mixed_test(
        np.column_stack([data_TN, context_T]),
        discrete=[n],
        tau_max=pooled.tau_max,
        mask_T=mask_T,
        rows=rows,
        names=names,
        robust=test == "robust_parcorr",
        slopes=True,
    )
    known = [] if defined_by is None else [ContextLink(defined_by, name, 0, "-->", 0.0)]
    links = known or _drivers(mixed, pooled, name)
    joined_now = {link.source if link.source != name else link.target for link in links if link.lag == 0}
    for j, label in enumerate(pooled.names):
        if label in joined_now:
            continue
        lag, p = _governed(mixed, pooled, j, None if defined_by is None else names.index(defined_by))
        if p <= pooled.pc_alpha:
            links.append(ContextLink(name, label, lag, "-->", p))
    adjacent = {names.index(end) for link in links for end in (link.source, link.target)} - {n}
    return ContextLinks(tuple(links), frozenset(adjacent))


def _drivers(mixed: MixedTest, pooled: PCMCIPlusResult, name: str) -> list[ContextLink]:
    """Links into the context, and those at lag 0 that may point either way."""
    assert pooled.pc_alpha is not None
    n, links = len(pooled.names), []
    found = pcmci_plus_on(mixed, pc_alpha=pooled.pc_alpha, assumptions=_system_given(pooled, name), orient=False)
    for i, lag in np.argwhere(found.graph_NNL[:n, n] != "").tolist():
        label, p = pooled.names[i], float(found.p_NNL[i, n, lag])
        direction = "to context" if lag else _contemporaneous_direction(mixed, found.parents, i, n, pooled.pc_alpha)
        source, target = (name, label) if direction == "from context" else (label, name)
        links.append(ContextLink(source, target, lag, "o-o" if direction is None else "-->", p))
    return links


def _system_given(pooled: PCMCIPlusResult, name: str) -> LinkAssumptions:
    """The system's links as found on pooled data; everything at the context is open."""
    names, graph_NNL = pooled.names, pooled.graph_NNL
    cells = [(names[i], names[j], lag) for i, j, lag in np.ndindex(graph_NNL.shape) if lag or i < j]
    index = {label: i for i, label in enumerate(names)}
    linked = [cell for cell in cells if graph_NNL[index[cell[0]], index[cell[1]], cell[2]] != ""]
    return LinkAssumptions(forbidden=[cell for cell in cells if cell not in set(linked)], required=linked)


def _contemporaneous_direction(
    mixed: MixedTest, parents: Sequence[Sequence[Cell]], i: int, context: int, alpha: float
) -> str | None:
    """Where the link between the context and variable i at lag 0 points, if the two tests agree."""
    own, given = [cell for cell in parents[i] if cell[0] != context], [c for c in parents[context] if c[0] != i]
    into_i = mixed.measure((context, 1), (i, 0), own).p <= alpha
    into_context = mixed.measure((i, 1), (context, 0), given).p <= alpha
    if into_i == into_context:
        return None
    return "from context" if into_i else "to context"


def _governed(mixed: MixedTest, pooled: PCMCIPlusResult, j: int, driver: int | None) -> tuple[int, float]:
    """The lag at which the context changes the mechanism of a variable most clearly, and p over the lags (Bonferroni).

    Given all that the variable is adjacent to: a change of slopes does not show without the variable whose slope it is.
    """
    context = len(pooled.names)
    given: list[Cell] = [(int(i), 0) for i in np.flatnonzero(pooled.graph_NNL[:, j, 0] != "")]
    given += [(int(i), int(lag)) for i, lag in pooled.parents[j]]
    p_L = []
    for lag in GOVERNING_LAGS:
        # Beyond the variable that the context is a threshold of.
        more = [] if driver is None or (driver, lag) in given or (driver, lag) == (j, 0) else [(driver, lag)]
        p_L.append(mixed.measure((context, lag), (j, 0), [*given, *more]).p)
    lag = int(np.argmin(p_L))
    return GOVERNING_LAGS[lag], min(1.0, len(p_L) * float(p_L[lag]))
