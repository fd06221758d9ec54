"""PC1 with more than one subset of conditions per dimension (Runge et al. 2019, algorithm S1), for any test.

The engine takes the one strongest subset of each dimension, as PCMCI does by default; the peer's max_combinations asks
for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice

from stages.causal.independence import Cell
from stages.causal.partial_correlation import TestResult

Measure = Callable[[Cell, Cell, Sequence[Cell]], TestResult]


def subsets(cell: Cell, size: int, cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Subsets of the other cells, the strongest first."""
    return (list(chosen) for chosen in combinations([other for other in cells if other != cell], size))


def by_strength(strength: dict[Cell, float]) -> list[Cell]:
    """Cells from the largest to the smallest absolute value; equal ones keep their order."""
    return sorted(strength, key=lambda cell: -abs(strength[cell]))


def select_parents(
    measure: Measure, j: int, cells: Sequence[Cell], *, alpha: float, most_subsets: int, max_dim: int | None
) -> list[Cell]:
    """Cells that no tried subset separates from variable j, from the strongest to the weakest."""
    strength = dict.fromkeys(cells, float("inf"))
    dim = 0
    while dim < len(strength) and (max_dim is None or dim <= max_dim):
        listed, separated = list(strength), set()
        for cell in listed:
            for conditions in islice(subsets(cell, dim, listed), most_subsets):
                test = measure(cell, (j, 0), conditions)
                strength[cell] = min(strength[cell], abs(test.value))
                if test.p > alpha:
                    separated.add(cell)
                    break
        left = {cell: strength[cell] for cell in listed if cell not in separated}
        strength = {cell: left[cell] for cell in by_strength(left)}
        dim += 1
    return list(strength)
