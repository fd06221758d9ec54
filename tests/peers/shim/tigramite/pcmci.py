"""PCMCI and PCMCI+ under the peer's names and argument lists.

Nodes are (variable, -lag), as in the peer; the engine's cells are (variable, lag).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from stages.causal.links import link_graph, link_q_values
from stages.causal.partial_correlation import partial_correlation, raise_fault
from stages.causal.pcmci import PCMCIResult, lagged_correlation, pcmci_on_sample
from stages.causal.pcmci_plus import PCMCIPlusResult, pcmci_plus_on
from stages.causal.row_sets import forget, row_sets
from stages.causal.samples import LaggedSample
from stages.causal.search import measure_links
from tigramite.independence_tests.parcorr import model_score
from tigramite.pc_stable import by_strength, select_parents, subsets

Node = tuple[int, int]
Nodes = dict[int, list[Node]]
# Levels that are compared where pc_alpha is None.
PC_ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
PLUS_ALPHAS = (0.001, 0.005, 0.01, 0.025, 0.05)


class PCMCI:
    """Searches on one data frame with one independence test."""

    def __init__(self, dataframe: Any, cond_ind_test: Any, verbosity: int = 0) -> None:
        self.dataframe = dataframe
        self.cond_ind_test = cond_ind_test
        self.N, self.T = dataframe.N, dataframe.T
        self.all_parents: Nodes = {}

    def run_pc_stable(
        self,
        link_assumptions: None = None,
        tau_min: int = 1,
        tau_max: int = 1,
        save_iterations: bool = False,
        pc_alpha: float | None = 0.2,
        max_conds_dim: int | None = None,
        max_combinations: int = 1,
    ) -> Nodes:
        """Lagged parents of every variable from the strongest to the weakest, also kept as all_parents."""
        _refuse(link_assumptions=link_assumptions, save_iterations=save_iterations)
        sample = self._sample(tau_max)
        if pc_alpha is not None and max_combinations == 1:
            result = pcmci_on_sample(sample, pc_alpha=pc_alpha, max_conds_dim=max_conds_dim, tau_min=tau_min)
            self.all_parents = {j: _nodes(cells) for j, cells in enumerate(result.parents)}
            return self.all_parents
        cells = [(i, lag) for i in range(self.N) for lag in range(max(1, tau_min), tau_max + 1)]
        for j in range(self.N):
            found = [
                select_parents(
                    partial(partial_correlation, sample),
                    j,
                    cells,
                    alpha=alpha,
                    most_subsets=max_combinations,
                    max_dim=max_conds_dim,
                )
                for alpha in (PC_ALPHAS if pc_alpha is None else (pc_alpha,))
            ]
            self.all_parents[j] = _nodes(min(found, key=partial(model_score, sample, j)))
        return self.all_parents

    def run_mci(
        self,
        link_assumptions: None = None,
        tau_min: int = 0,
        tau_max: int = 1,
        parents: Nodes | None = None,
        max_conds_py: int | None = None,
        max_conds_px: int | None = None,
        alpha_level: float = 0.05,
    ) -> dict[str, np.ndarray]:
        """MCI tests of all links given the parents."""
        _refuse(link_assumptions=link_assumptions)
        sample = self._sample(tau_max)
        n, given = self.N, self._get_int_parents(parents)
        parents_ND = np.zeros((n, n * tau_max), np.int64)
        count_N = np.array([len(given[j]) for j in range(n)], dtype=np.int64)
        for j in range(n):
            parents_ND[j, : count_N[j]] = [sample.cell(i, -tau) for i, tau in given[j]]
        tested_NNL = _testable(n, tau_min, tau_max)
        memory = row_sets(sample.moments, int(sample.moments.total))
        forget(memory)
        limits = [self._set_max_condition_dim(most, tau_min, tau_max) for most in (max_conds_py, max_conds_px)]
        value_NNL, p_NNL, _, _, fault = measure_links(
            sample.moments, memory, tested_NNL.view(np.uint8), parents_ND, count_N, tau_min, *limits
        )
        raise_fault(sample.names, *fault.tolist())
        return self._results(value_NNL, p_NNL, tau_min, tau_max, alpha_level)

    def run_pcmci(
        self,
        link_assumptions: None = None,
        tau_min: int = 0,
        tau_max: int = 1,
        save_iterations: bool = False,
        pc_alpha: float | None = 0.05,
        max_conds_dim: int | None = None,
        max_combinations: int = 1,
        max_conds_py: int | None = None,
        max_conds_px: int | None = None,
        alpha_level: float = 0.05,
    ) -> dict[str, np.ndarray]:
        """Parents, then MCI tests of all links."""
        _refuse(link_assumptions=link_assumptions, save_iterations=save_iterations)
        if pc_alpha is not None and max_combinations == 1:
            result = pcmci_on_sample(
                self._sample(tau_max),
                pc_alpha=pc_alpha,
                max_conds_dim=max_conds_dim,
                max_conds_py=max_conds_py,
                max_conds_px=max_conds_px,
                tau_min=tau_min,
            )
            self.all_parents = {j: _nodes(cells) for j, cells in enumerate(result.parents)}
            return self._results(result.value_NNL, result.p_NNL, tau_min, tau_max, alpha_level)
        parents = self.run_pc_stable(None, max(1, tau_min), tau_max, False, pc_alpha, max_conds_dim, max_combinations)
        return self.run_mci(None, tau_min, tau_max, parents, max_conds_py, max_conds_px, alpha_level)

    def run_pcmciplus(
        self,
        link_assumptions: None = None,
        tau_min: int = 0,
        tau_max: int = 1,
        pc_alpha: float | None = 0.01,
        contemp_collider_rule: str = "majority",
        conflict_resolution: bool = True,
        reset_lagged_links: bool = False,
        max_conds_dim: int | None = None,
        max_conds_py: int | None = None,
        max_conds_px: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Graph with contemporaneous orientations; without a level, that of the level with the smallest score."""
        _refuse(link_assumptions=link_assumptions)
        test = self.cond_ind_test.on(self.dataframe, tau_max)
        found = [
            pcmci_plus_on(
                test,
                pc_alpha=alpha,
                tau_min=tau_min,
                collider_rule=contemp_collider_rule,
                conflict_resolution=conflict_resolution,
                reset_lagged_links=reset_lagged_links,
                max_conds_dim=max_conds_dim,
                max_conds_py=max_conds_py,
                max_conds_px=max_conds_px,
            )
            for alpha in (PLUS_ALPHAS if pc_alpha is None else (pc_alpha,))
        ]
        best = found[0] if len(found) == 1 else min(found, key=partial(_graph_score, test))
        return {"graph": best.graph_NNL, "val_matrix": best.value_NNL, "p_matrix": best.p_NNL}

    def get_corrected_pvalues(
        self, p_matrix: np.ndarray, fdr_method: str = "fdr_bh", exclude_contemporaneous: bool = True
    ) -> np.ndarray:
        """Q-values of all links."""
        if fdr_method == "none":
            return p_matrix.copy()
        if fdr_method != "fdr_bh":
            raise NotImplementedError(f"fdr_method {fdr_method!r}: fdr_bh or none")
        return link_q_values(
            _as_result(np.zeros(p_matrix.shape), p_matrix, 0), exclude_contemporaneous=exclude_contemporaneous
        )

    def get_graph_from_pmatrix(
        self, p_matrix: np.ndarray, alpha_level: float, tau_min: int, tau_max: int
    ) -> np.ndarray:
        """``-->`` for lagged links at the level, ``o-o`` for contemporaneous pairs with both directions at it."""
        linked_NNL = link_graph(_as_result(np.zeros(p_matrix.shape), p_matrix, tau_min), alpha=alpha_level)
        linked_NNL[:, :, 0] &= linked_NNL[:, :, 0].T
        graph_NNL = np.where(linked_NNL, "-->", "")
        graph_NNL[linked_NNL[:, :, 0], 0] = "o-o"
        return graph_NNL

    def return_parents_dict(self, graph: np.ndarray, val_matrix: np.ndarray) -> Nodes:
        """Lagged parents in a graph, from the strongest to the weakest."""
        parents: Nodes = {}
        for j in range(graph.shape[1]):
            lagged = [(i, lag) for i, lag in np.argwhere(graph[:, j] == "-->").tolist() if lag]
            parents[j] = _nodes(by_strength({(i, lag): float(val_matrix[i, j, lag]) for i, lag in lagged}))
        return parents

    def _sample(self, tau_max: int) -> LaggedSample:
        sample = self.cond_ind_test.on(self.dataframe, tau_max)
        if not isinstance(sample, LaggedSample):
            raise NotImplementedError(f"{type(self.cond_ind_test).__name__}: PC1 and MCI alone take ParCorr")
        return sample

    def _results(
        self, value_NNL: np.ndarray, p_NNL: np.ndarray, tau_min: int, tau_max: int, alpha: float
    ) -> dict[str, np.ndarray]:
        graph_NNL = self.get_graph_from_pmatrix(p_NNL, alpha, tau_min, tau_max)
        return {"val_matrix": value_NNL, "p_matrix": p_NNL, "graph": graph_NNL}

    def _check_tau_limits(self, tau_min: int, tau_max: int) -> None:
        """Leave it to the engine to refuse lags."""
        lagged_correlation(self.dataframe.series, tau_min=tau_min, tau_max=tau_max)

    def _set_link_assumptions(self, links: None, tau_min: int, tau_max: int) -> dict[int, dict[Node, str]]:
        _refuse(link_assumptions=links)
        tested_NNL = _testable(self.N, tau_min, tau_max)
        return {
            j: {(i, -lag): "-?>" if lag else "o?o" for i, lag in np.argwhere(tested_NNL[:, j]).tolist()}
            for j in range(self.N)
        }

    def _set_max_condition_dim(self, most: int | None, tau_min: int, tau_max: int) -> int:
        if most is not None and most < 0:
            raise ValueError(f"max_conds {most}: expected 0 or more, or None")
        return self.N * (tau_max - tau_min + 1) if most is None else most

    def _iter_conditions(self, parent: Node, dim: int, parents: Sequence[Node]) -> Iterator[list[Node]]:
        return subsets(parent, dim, list(parents))

    def _get_int_parents(self, parents: Nodes | None) -> Nodes:
        return {j: list((parents or {}).get(j, [])) for j in range(self.N)}

    def _iter_indep_conds(
        self, parents: Nodes, links: dict[int, dict[Node, str]], max_conds_py: int, max_conds_px: int
    ) -> Iterator[tuple[int, int, int, list[Node]]]:
        """Target, source, -lag and conditions of each MCI test."""
        for j, assumed in links.items():
            for i, tau in assumed:
                own = [node for node in parents[j][:max_conds_py] if node != (i, tau)]
                shifted = [(k, lag + tau) for k, lag in parents[i][:max_conds_px]]
                yield j, i, tau, list(dict.fromkeys([*own, *shifted]))

    def _sort_parents(self, strength: dict[Node, float]) -> list[Node]:
        return by_strength(strength)


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise NotImplementedError(f"{name}: the test files leave it out, and so does this shim")


def _nodes(cells: Sequence[tuple[int, int]]) -> list[Node]:
    return [(i, -lag) for i, lag in cells]


def _testable(n: int, tau_min: int, tau_max: int) -> np.ndarray:
    tested_NNL = np.ones((n, n, tau_max + 1), np.bool_)
    tested_NNL[:, :, :tau_min] = False
    tested_NNL[np.arange(n), np.arange(n), 0] = False
    return tested_NNL


def _as_result(value_NNL: np.ndarray, p_NNL: np.ndarray, tau_min: int) -> PCMCIResult:
    n, _, lags = p_NNL.shape
    unknown_NNL = np.zeros(p_NNL.shape, np.int64)
    return PCMCIResult(
        value_NNL=value_NNL,
        p_NNL=p_NNL,
        samples_NNL=unknown_NNL,
        df_NNL=unknown_NNL,
        tested_NNL=_testable(n, tau_min, lags - 1),
        parents=((),) * n,
        names=tuple(f"X{i}" for i in range(n)),
        tau_min=tau_min,
        tau_max=lags - 1,
        pc_alpha=None,
        test="parcorr",
    )


def _graph_score(sample: LaggedSample, result: PCMCIPlusResult) -> float:
    """Sum of the scores of all variables on their parents; a link without direction counts at neither end."""
    score = 0.0
    for j in range(len(result.names)):
        causes = np.argwhere(result.graph_NNL[:, j] == "-->").tolist()
        score += model_score(sample, j, [(i, lag) for i, lag in causes])
    return score
