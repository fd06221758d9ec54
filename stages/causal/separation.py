"""d-separation (Pearl 1988) on an infinite time-series graph, exact for the cells of a window of lags.

What lies before the window is never a condition, so all it can do is to give two cells of the window a common
ancestor: those pairs become two-headed edges, found by a search over (variable, variable, lag difference), which is
finite because the later of the two always takes the step back.

Shape suffixes: N variable, L lag 0 to the largest of the graph; [i, j, lag] is the link from i, lag steps before, to
j, and has a direction at lag 0 too. Sets of cells are integers: bit lag * N + i is variable i, lag steps before the
target time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from stages.causal.covariance import Booleans
from stages.causal.independence import Cell


def contemporaneous_order(graph_NNL: Booleans, names: Sequence[str]) -> list[int]:
    """Order the variables so that contemporaneous causes stand before their effects.

    Parameters
    ----------
    graph_NNL
        The graph.
    names
        Names for the message.

    Returns
    -------
    list
        Variables, causes first.

    Raises
    ------
    ValueError
        When there is a cycle.
    """
    order: list[int] = []
    left = list(range(graph_NNL.shape[0]))
    while left:
        ready = [j for j in left if not graph_NNL[left, j, 0].any()]
        if not ready:
            cycle = ", ".join(names[j] for j in left)
            raise ValueError(f"contemporaneous links have a cycle among {cycle}: i -> j must be True at [i, j, 0] only")
        order += ready
        left = [j for j in left if j not in ready]
    return order


class WindowGraph:
    """The graph over the cells of a window, with what was before it as two-headed edges.

    Parameters
    ----------
    graphs
        Links into the targets at each lag of the window.
    before_NNL
        Links into all earlier targets.
    order
        Variables, contemporaneous causes first.
    """

    def __init__(self, graphs: Sequence[Booleans], before_NNL: Booleans, order: Sequence[int]) -> None:
        n, size = len(order), len(graphs)
        self.parents, self.children, self.spouses, self.ancestors = ([0] * (n * size) for _ in range(4))
        self.reached: dict[tuple[int, int], int] = {}
        outside: dict[int, list[Cell]] = {}
        for lag in reversed(range(size)):
            for j in order:
                cell = lag * n + j
                self.ancestors[cell] = 1 << cell
                for i, back in np.argwhere(graphs[lag][:, j]).tolist():
                    source = (lag + back) * n + i
                    if lag + back >= size:
                        outside.setdefault(cell, []).append((i, lag + back))
                        continue
                    self.parents[cell] |= 1 << source
                    self.children[source] |= 1 << cell
                    self.ancestors[cell] |= self.ancestors[source]
        related = _CommonAncestors(before_NNL, order)
        for a, sources in outside.items():
            for b, others in outside.items():
                if a < b and any(related(p, q) for p in sources for q in others):
                    self.spouses[a] |= 1 << b
                    self.spouses[b] |= 1 << a

    def connected(self, x: int, given: int) -> int:
        """Find the cells that are d-connected with x given others (Shachter 1998, with two-headed edges).

        Parameters
        ----------
        x
            A cell, as its number.
        given
            Set of cells.

        Returns
        -------
        int
            Set of cells, x among them; also kept in ``reached``.
        """
        key = (x, given)
        found = self.reached.get(key)
        if found is not None:
            return found
        opened = 0  # cells with a condition among their descendants, or in themselves
        for cell in cells_of(given):
            opened |= self.ancestors[cell]
        tails, heads = 1 << x, 0  # reached along an edge's tail, or its head
        new_tails, new_heads = tails, 0
        while new_tails | new_heads:
            next_tails = next_heads = 0
            for cell in cells_of(new_tails & ~given):
                next_tails |= self.parents[cell]
                next_heads |= self.children[cell] | self.spouses[cell]
            for cell in cells_of(new_heads & ~given):
                next_heads |= self.children[cell]
            for cell in cells_of(new_heads & opened):
                next_tails |= self.parents[cell]
                next_heads |= self.spouses[cell]
            new_tails, new_heads = next_tails & ~tails, next_heads & ~heads
            tails |= new_tails
            heads |= new_heads
        self.reached[key] = tails | heads
        return tails | heads


class _CommonAncestors:
    """Whether two cells of the infinite graph have a common ancestor, themselves included."""

    def __init__(self, graph_NNL: Booleans, order: Sequence[int]) -> None:
        n = len(order)
        self._rank = {j: place for place, j in enumerate(order)}
        self._parents = [[(i, lag) for i, lag in np.argwhere(graph_NNL[:, j]).tolist()] for j in range(n)]
        self._answers: dict[tuple[int, int, int], bool] = {}

    def __call__(self, a: Cell, b: Cell) -> bool:
        start = self._state(a, b)
        if start in self._answers:
            return self._answers[start]
        seen, stack = {start}, [start]
        found = False
        while stack and not found:
            i, j, gap = stack.pop()
            found = (i == j and gap == 0) or self._answers.get((i, j, gap), False)
            for source, back in self._parents[i]:
                state = self._state((source, back), (j, gap))
                if state not in seen:
                    seen.add(state)
                    stack.append(state)
        if not found:
            self._answers.update(dict.fromkeys(seen, False))
        self._answers[start] = found
        return found

    def _state(self, a: Cell, b: Cell) -> tuple[int, int, int]:
        """Put the later cell first (at equal times the one that can only be an effect), and count from its time."""
        if (a[1], -self._rank[a[0]]) > (b[1], -self._rank[b[0]]):
            a, b = b, a
        return a[0], b[0], b[1] - a[1]


def cells_of(cells: int) -> Iterator[int]:
    """List the cells of a set, from the smallest number on.

    Parameters
    ----------
    cells
        The set.

    Yields
    ------
    int
        Number of a cell.
    """
    while cells:
        low = cells & -cells
        yield low.bit_length() - 1
        cells ^= low


def cell_set(cells: Iterable[Cell], n: int) -> int:
    """Make the set of some cells.

    Parameters
    ----------
    cells
        (variable, lag) of each.
    n
        Number of variables.

    Returns
    -------
    int
        The set.
    """
    found = 0
    for i, lag in cells:
        found |= 1 << (lag * n + i)
    return found
