"""Independence read off a known time-series graph: what every test would say with endless data.

d-separation on the infinite graph is exact (see `separation`), not cut at some depth.

A context model adds a discrete variable R, a node like any other, whose level decides which links work. Within a
context the levels of R over a window of lags are known: R is conditioned on there (which selects samples and opens
colliders), and the links that the context lacks are absent wherever all the R that govern their target are known.

Shape suffixes: N variable, L lag 0 to the largest of the graph, M level of the context; [i, j, lag] is the link from i,
lag steps before, to j.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.causal.covariance import Booleans
from stages.causal.errors import ConstantVariable, cell_name, link_name
from stages.causal.independence import Cell
from stages.causal.partial_correlation import TestResult
from stages.causal.separation import WindowGraph, cell_set, contemporaneous_order

#: Sample size that an oracle reports: the largest 32-bit integer.
ENDLESS = 2**31 - 1

#: Source, target and lag of a link.
Link = tuple[int, int, int]


class Oracle:
    """d-separation on a time-series graph, as an independence test with p-value 0 or 1.

    Parameters
    ----------
    graph
        graph_NNL, or (source, target, lag) of each link. A contemporaneous link has a direction: i -> j at lag 0 is
        True at [i, j, 0] only.
    names
        Names of the variables; needed with a list of links.
    tau_max
        Largest lag of a link that is searched for; by default the largest lag of the graph.

    Raises
    ------
    ValueError
        When the contemporaneous links have a cycle.
    """

    def __init__(
        self, graph: ArrayLike | Iterable[Link], *, names: Sequence[str] | None = None, tau_max: int | None = None
    ) -> None:
        self.graph_NNL = graph_array(graph, names=names)
        self.names = _labels(names, self.graph_NNL.shape[0])
        self.tau_max = self.graph_NNL.shape[2] - 1 if tau_max is None else tau_max
        if self.tau_max < 0:
            raise ValueError(f"tau_max {self.tau_max}: expected 0 or more")
        order = contemporaneous_order(self.graph_NNL, self.names)
        self._window = WindowGraph([self.graph_NNL] * (2 * self.tau_max + 1), self.graph_NNL, order)

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell] = ()) -> TestResult:
        """Say whether two cells are d-connected given others.

        Parameters
        ----------
        x, y
            Two different cells, lags 0 to 2 tau_max.
        conditions
            Other cells.

        Returns
        -------
        TestResult
            Value 1 and p 0 where they are d-connected, value 0 and p 1 where they are d-separated.
        """
        return _verdict(self._window, self.names, x, y, conditions, 0)


class ContextOracle(Oracle):
    """d-separation in a model whose links depend on the level of an endogenous context variable.

    `measure` tests pooled data: d-separation on the union of the context graphs.

    Parameters
    ----------
    graphs
        graph_NNL (or list of links) of each level of the context. Links from and into the context variable may stand
        in any of them.
    context
        The context variable. It must be a parent of every variable whose parents differ between levels.
    names, tau_max
        As for `Oracle`.

    Raises
    ------
    ValueError
        When links of a target differ between levels but the context does not act on it, or when contemporaneous links
        of the union have a cycle.
    """

    def __init__(
        self,
        graphs: Sequence[ArrayLike | Sequence[Link]],
        *,
        context: int,
        names: Sequence[str] | None = None,
        tau_max: int | None = None,
    ) -> None:
        level_MNNL = _same_shape([graph_array(graph, names=names) for graph in graphs])
        super().__init__(level_MNNL.any(axis=0), names=names, tau_max=tau_max)
        if not 0 <= context < len(self.names):
            raise ValueError(f"context {context}: expected a variable, 0 to {len(self.names) - 1}")
        self.context = context
        self.level_MNNL = level_MNNL
        # The context is constant within itself: its own links are those of the union.
        self.level_MNNL[:, context] = self.graph_NNL[context]
        for j in np.flatnonzero((self.level_MNNL != self.graph_NNL).any(axis=(0, 1, 3))).tolist():
            if not self.graph_NNL[context, j].any():
                raise ValueError(
                    f"parents of {self.names[j]} differ between levels of {self.names[context]}, which is not among"
                    f" them: add the link {self.names[context]} -> {self.names[j]} at the lag that switches"
                )

    def within(self, level: int, *, window: Sequence[int] | None = None) -> WithinContext:
        """Take the samples in which the context has one level over a window of lags.

        Parameters
        ----------
        level
            The level.
        window
            Lags of the context that have this level; 0 to tau_max by default.

        Returns
        -------
        WithinContext
            The test on these samples.
        """
        return WithinContext(self, level, tuple(range(self.tau_max + 1)) if window is None else tuple(window))


class WithinContext:
    """d-separation on the samples of one context; see the module text.

    Parameters
    ----------
    model
        The context model.
    level
        Level of the context.
    window
        Lags at which the context is known to have this level, within 0 to 2 tau_max.
    """

    def __init__(self, model: ContextOracle, level: int, window: tuple[int, ...]) -> None:
        if not 0 <= level < len(model.level_MNNL):
            raise ValueError(f"level {level}: expected 0 to {len(model.level_MNNL) - 1}")
        if not set(window) <= set(range(2 * model.tau_max + 1)):
            raise ValueError(f"window {window}: expected lags 0 to {2 * model.tau_max}")
        self.names, self.tau_max = model.names, model.tau_max
        self.context, self.level, self.window = model.context, level, window
        governed_NL = model.graph_NNL[model.context]
        graphs = []
        for lag in range(2 * self.tau_max + 1):
            known_N = np.array([all(lag + s in window for s in np.flatnonzero(row_L)) for row_L in governed_NL])
            graphs.append(np.where(known_N[None, :, None], model.level_MNNL[level], model.graph_NNL))
        order = contemporaneous_order(model.graph_NNL, model.names)
        self._window = WindowGraph(graphs, model.graph_NNL, order)
        self._selected = cell_set(((model.context, lag) for lag in window), len(model.names))

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell] = ()) -> TestResult:
        """Say whether two cells are d-connected given others and the level of the context.

        Parameters
        ----------
        x, y
            Two different cells.
        conditions
            Other cells; those of the context's window are conditioned on in any case.

        Returns
        -------
        TestResult
            As from `Oracle.measure`.

        Raises
        ------
        ConstantVariable
            When x or y is the context within its window.
        """
        for i, lag in (x, y):
            if i == self.context and lag in self.window:
                name = cell_name(self.names[i], lag)
                link = link_name(self.names[x[0]], self.names[y[0]], x[1])
                raise ConstantVariable(
                    f"{link}: {name} is constant over the samples with {self.names[i]} = {self.level}. Test it on"
                    " pooled data."
                )
        return _verdict(self._window, self.names, x, y, conditions, self._selected)


def graph_array(graph: ArrayLike | Iterable[Link], *, names: Sequence[str] | None = None) -> Booleans:
    """Turn a list of links into an array; an array stays what it is.

    Parameters
    ----------
    graph
        graph_NNL of booleans, or (source, target, lag) of each link.
    names
        Names of the variables, needed with a list of links.

    Returns
    -------
    ndarray
        graph_NNL with directed contemporaneous links.
    """
    if isinstance(graph, np.ndarray):
        array: NDArray[Any] = graph
        if array.dtype != np.bool_ or array.ndim != 3 or array.shape[0] != array.shape[1]:
            raise ValueError(f"graph: found {array.dtype} of shape {array.shape}; expected bool of (N, N, lag)")
        return array.copy()
    links = [(int(i), int(j), int(lag)) for i, j, lag in cast("Iterable[Link]", graph)]
    if names is None:
        raise ValueError("a list of links needs the names of the variables")
    n = len(names)
    graph_NNL = np.zeros((n, n, max((lag for _, _, lag in links), default=0) + 1), np.bool_)
    for i, j, lag in links:
        if not (0 <= i < n and 0 <= j < n and lag >= 0):
            raise ValueError(f"link {(i, j, lag)}: expected (source, target, lag), variables 0 to {n - 1}, lag >= 0")
        graph_NNL[i, j, lag] = True
    return graph_NNL


def _verdict(
    window: WindowGraph, names: tuple[str, ...], x: Cell, y: Cell, conditions: Sequence[Cell], selected: int
) -> TestResult:
    n, size = len(names), len(window.parents)
    cells = [lag * n + i for i, lag in (x, y, *conditions)]
    if not all(0 <= i < n and 0 <= cell < size for (i, _), cell in zip((x, y, *conditions), cells, strict=True)):
        raise ValueError(f"cells {(x, y, *conditions)}: expected variables 0 to {n - 1}, lags 0 to {size // n - 1}")
    if len(set(cells)) != len(cells):
        raise ValueError(f"X {x}, Y {y} and the conditions {list(conditions)} must be different cells")
    given = selected
    for cell in cells[2:]:
        given |= 1 << cell
    # One search from X serves all Y, and the answer is the same from either end.
    known = window.reached.get((cells[1], given))
    dependent = bool(known >> cells[0] & 1 if known is not None else window.connected(cells[0], given) >> cells[1] & 1)
    return TestResult(float(dependent), 0.0 if dependent else 1.0, ENDLESS, ENDLESS - 2 - len(conditions))


def _labels(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    labels = tuple(f"X{i}" for i in range(n)) if names is None else tuple(names)
    if len(labels) != n or len(set(labels)) != n:
        raise ValueError(f"names {labels}: expected {n} different names, one per variable")
    return labels


def _same_shape(graphs: Sequence[Booleans]) -> Booleans:
    """Stack graphs, with empty links at the lags that one has and another lacks."""
    if not graphs or len({graph.shape[0] for graph in graphs}) != 1:
        raise ValueError("graphs: expected one for each level, all of the same variables")
    lags = max(graph.shape[2] for graph in graphs)
    return np.stack([np.pad(graph, ((0, 0), (0, 0), (0, lags - graph.shape[2]))) for graph in graphs])
