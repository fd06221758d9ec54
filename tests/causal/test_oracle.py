"""d-separation, compared with textbook patterns and with another algorithm on graphs that reach far back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stages.causal.errors import ConstantVariable
from stages.causal.independence import Cell
from stages.causal.oracle import ContextOracle, Oracle
from stages.causal.pcmci_plus import pcmci_plus_on


def moral_separated(graph_NNL: np.ndarray, depth: int, x: Cell, y: Cell, given: list[Cell]) -> bool:
    """Lauritzen's criterion on the finite graph: moralise the ancestors, remove the conditions, look for a path."""
    n = graph_NNL.shape[0]
    parents = {
        (j, t): [(i, t + lag) for i, lag in np.argwhere(graph_NNL[:, j]).tolist() if t + lag <= depth]
        for j in range(n)
        for t in range(depth + 1)
    }
    ancestors, stack = set(), [x, y, *given]
    while stack:
        cell = stack.pop()
        if cell not in ancestors:
            ancestors.add(cell)
            stack += parents[cell]
    neighbours: dict[Cell, set[Cell]] = {cell: set() for cell in ancestors}
    for cell in ancestors:
        for a, b in itertools.combinations([cell, *parents[cell]], 2):
            neighbours[a].add(b)
            neighbours[b].add(a)
    seen, stack = set(given), [x]
    while stack:
        cell = stack.pop()
        if cell == y:
            return False
        if cell not in seen:
            seen.add(cell)
            stack += neighbours[cell]
    return True


def random_graph(rng: np.random.Generator, n: int, tau_max: int, density: float) -> np.ndarray:
    graph_NNL = rng.random((n, n, tau_max + 1)) < density
    order = rng.permutation(n)
    graph_NNL[:, :, 0] &= order[:, None] < order[None, :]
    return graph_NNL


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_moralisation_on_a_graph_that_reaches_far_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, tau_max = int(rng.integers(2, 6)), int(rng.integers(1, 3))
    graph_NNL = random_graph(rng, n, tau_max, float(rng.choice([0.08, 0.15, 0.25])))
    oracle = Oracle(graph_NNL)
    cells = [(i, lag) for i in range(n) for lag in range(2 * tau_max + 1)]
    for _ in range(80):
        order = rng.permutation(len(cells))[: 2 + rng.integers(0, min(6, len(cells) - 2))]
        x, y, *given = (cells[k] for k in order)
        expected = moral_separated(graph_NNL, 40, x, y, given)
        assert (oracle.measure(x, y, given).p == 1.0) == expected
        assert (oracle.measure(y, x, given).value == 0.0) == expected


@pytest.mark.parametrize("seed", range(10))
def test_pcmci_plus_finds_the_adjacencies_and_no_wrong_direction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph_NNL = random_graph(rng, 5, 2, 0.12)
    found_NNL = pcmci_plus_on(Oracle(graph_NNL), pc_alpha=0.05).graph_NNL
    adjacent_NNL = graph_NNL.copy()
    adjacent_NNL[:, :, 0] |= graph_NNL[:, :, 0].T
    np.testing.assert_array_equal(found_NNL != "", adjacent_NNL)
    assert not (found_NNL[:, :, 0] == "x-x").any()
    assert graph_NNL[:, :, 0][found_NNL[:, :, 0] == "-->"].all()


def test_a_common_ancestor_far_before_the_window_connects() -> None:
    """Z goes round loops of 2 and of 3 steps: X_t and Y_t meet at a Z that is eight steps before."""
    names = ["A", "B", "C", "D", "E", "X", "Y"]
    links = [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 5, 1), (0, 4, 2), (4, 6, 2)]
    oracle = Oracle(links, names=names, tau_max=0)
    assert oracle.measure((5, 0), (6, 0)).value == 1.0
    assert Oracle(links[:-1], names=names, tau_max=0).measure((5, 0), (6, 0)).value == 0.0


def test_chain_fork_and_collider() -> None:
    chain = Oracle([(0, 1, 1), (1, 2, 1)], names=["X", "M", "Y"])
    assert chain.measure((0, 2), (2, 0)).value == 1.0
    assert chain.measure((0, 2), (2, 0), [(1, 1)]).p == 1.0
    fork = Oracle([(1, 0, 0), (1, 2, 0)], names=["X", "Z", "Y"])
    assert (fork.measure((0, 0), (2, 0)).p, fork.measure((0, 0), (2, 0), [(1, 0)]).p) == (0.0, 1.0)
    collider = Oracle([(0, 1, 0), (2, 1, 0), (1, 3, 0)], names=["X", "Z", "Y", "W"])
    assert collider.measure((0, 0), (2, 0)).p == 1.0
    assert collider.measure((0, 0), (2, 0), [(1, 0)]).p == 0.0
    assert collider.measure((0, 0), (2, 0), [(3, 0)]).p == 0.0  # a descendant of the collider opens it too


def switched() -> ContextOracle:
    """X -> R <- Y, and Z -> W while R = 1."""
    names = ["X", "Y", "Z", "W", "R"]
    always = [(0, 4, 0), (1, 4, 0), (4, 3, 0)]
    return ContextOracle([always, [*always, (2, 3, 0)]], context=4, names=names, tau_max=1)


def test_masking_opens_the_collider_and_pooling_does_not() -> None:
    model = switched()
    assert model.measure((0, 0), (1, 0)).p == 1.0
    assert model.within(1).measure((0, 0), (1, 0)).p == 0.0


def test_a_link_is_seen_in_its_own_context_only() -> None:
    model = switched()
    assert model.measure((2, 0), (3, 0)).value == 1.0
    assert model.within(0).measure((2, 0), (3, 0)).value == 0.0
    assert model.within(1).measure((2, 0), (3, 0)).value == 1.0


def test_a_switch_by_an_earlier_level_needs_that_level_in_the_window() -> None:
    names = ["Z", "W", "R"]
    off = [(2, 1, 1), (2, 2, 1)]
    model = ContextOracle([off, [*off, (0, 1, 0)]], context=2, names=names)
    assert model.within(0, window=[0]).measure((0, 0), (1, 0), [(2, 1)]).value == 1.0
    assert model.within(0, window=[1]).measure((0, 0), (1, 0)).value == 0.0
    assert model.within(0).measure((0, 1), (1, 1)).value == 1.0  # R two steps before is not known
    assert model.within(0, window=[0, 1, 2]).measure((0, 1), (1, 1)).value == 0.0


def test_a_model_without_differences_is_the_union_with_the_context_as_condition() -> None:
    rng = np.random.default_rng(3)
    graph_NNL = random_graph(rng, 4, 1, 0.25)
    model, plain = ContextOracle([graph_NNL, graph_NNL], context=0), Oracle(graph_NNL)
    for x, y in itertools.combinations([(i, lag) for i in (1, 2, 3) for lag in (0, 1)], 2):
        assert model.within(1).measure(x, y) == model.within(0).measure(x, y)
        assert model.within(1).measure(x, y).p == plain.measure(x, y, [(0, 0), (0, 1)]).p


def test_relabelling_levels_permutes_the_contexts() -> None:
    model = switched()
    other = ContextOracle(model.level_MNNL[::-1], context=4, names=model.names, tau_max=1)
    for x, y in itertools.combinations([(i, lag) for i in range(4) for lag in (0, 1)], 2):
        assert model.within(0).measure(x, y) == other.within(1).measure(x, y)


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(ValueError, match="contemporaneous links have a cycle among X, Y"):
        Oracle([(0, 1, 0), (1, 0, 0)], names=["X", "Y"])
    with pytest.raises(ValueError, match="parents of W differ between levels of R, which is not among them"):
        ContextOracle([[(0, 1, 0)], [(2, 2, 1)]], context=2, names=["Z", "W", "R"])
    with pytest.raises(ConstantVariable, match=r"X\(t\) -- R\(t\): R\(t\) is constant over the samples with R = 0"):
        switched().within(0).measure((0, 0), (4, 0))
    with pytest.raises(ValueError, match="must be different cells"):
        switched().measure((0, 0), (0, 0))
    with pytest.raises(ValueError, match="variables 0 to 4, lags 0 to 2"):
        switched().measure((0, 3), (0, 0))
