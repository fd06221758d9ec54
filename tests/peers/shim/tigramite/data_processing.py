"""Data frames: a series with a mask, and the lagged array of one test.

Nodes are (variable, -lag), as in the peer; the engine's cells are (variable, lag).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stages.causal.partial_correlation import unusable_rows
from stages.causal.samples import lagged_sample

Node = tuple[int, int]


class DataFrame:
    """One series, with what is masked and which value means missing."""

    def __init__(
        self,
        data: np.ndarray,
        mask: np.ndarray | None = None,
        missing_flag: float | None = None,
        var_names: Sequence[Any] | None = None,
        data_type: np.ndarray | None = None,
    ) -> None:
        self.values = {0: np.array(data, dtype=np.float64)}
        steps, self.N = self.values[0].shape
        self.T = {0: steps}
        self.mask = None if mask is None else np.asarray(mask, dtype=bool)
        self.var_names = [str(name) for name in (range(self.N) if var_names is None else var_names)]
        self.data_type = data_type
        if missing_flag is not None:
            self.values[0][self.values[0] == missing_flag] = np.nan

    @property
    def series(self) -> np.ndarray:
        """The values, NaN where they are missing."""
        return self.values[0]

    def construct_array(
        self,
        X: Sequence[Node],
        Y: Sequence[Node],
        Z: Sequence[Node],
        tau_max: int,
        mask_type: Sequence[str] | None = None,
        verbosity: int = 0,
    ) -> tuple[np.ndarray, np.ndarray, None]:
        """Values of the nodes at the target times that the engine leaves to a test of them.

        A mask of X or Z leaves out a target time like a missing value of that node does: each node is a column of its
        own, missing where its role is masked.
        """
        role = dict.fromkeys(Z, "z") | dict.fromkeys(Y, "y") | dict.fromkeys(X, "x")
        nodes = [node for part in (X, Y, Z) for node in dict.fromkeys(part)]
        nodes = list(dict.fromkeys(nodes))
        columns_TK = np.column_stack([self._column(i, role[i, tau], mask_type) for i, tau in nodes])
        sample = lagged_sample(columns_TK, tau_max=tau_max)
        m = sample.moments
        bad_R = np.zeros(m.time_R.size, bool)
        if not m.complete:
            cells_K = np.array([sample.cell(k, -tau) for k, (_, tau) in enumerate(nodes)], dtype=np.int64)
            bad_W = np.empty(m.missing_DW.shape[1], np.uint64)
            unusable_rows(m.missing_DW, m.masked_NW, cells_K, 0, bad_W)
            bad_R = np.unpackbits(bad_W.view(np.uint8), bitorder="little")[: bad_R.size].astype(bool)
        time_R = m.time_R[~bad_R]
        array = np.array([self.series[time_R + tau, i] for i, tau in nodes])
        return array, np.array(["xyz".index(role[node]) for node in nodes]), None

    def _column(self, i: int, role: str, mask_type: Sequence[str] | None) -> np.ndarray:
        column_T = self.series[:, i].copy()
        if self.mask is not None and role in (mask_type or ()):
            column_T[self.mask[:, i]] = np.nan
        return column_T
