"""The linear tests on one sample as an independence test, each remembered: searches ask the same thing many times.

Shape suffixes: N variable, K cells of one test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stages.causal.independence import Cell
from stages.causal.partial_correlation import TestResult, raise_fault
from stages.causal.row_sets import forget, measure_on_rows, row_sets
from stages.causal.samples import LaggedSample
from stages.causal.student import two_sided_p


class SampleTest:
    """Partial correlation on a sample without masks of single targets, so that X and Y may change places.

    Parameters
    ----------
    sample
        The sample; a mask that differs between targets is refused.
    """

    def __init__(self, sample: LaggedSample) -> None:
        if sample.masked_NT.size:
            raise ValueError("mask_TN: a test that is symmetric in X and Y needs one mask for all targets")
        self.sample = sample
        self.names, self.tau_max = sample.names, sample.tau_max
        self._memory = row_sets(sample.moments, int(sample.moments.total))
        forget(self._memory)
        self._known: dict[tuple[Cell, Cell, frozenset[Cell]], TestResult] = {}

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell] = ()) -> TestResult:
        """Test x against y given the conditions.

        Parameters
        ----------
        x, y, conditions
            Different cells.

        Returns
        -------
        TestResult
            As from `partial_correlation`, with the same errors.
        """
        key = (x, y, frozenset(conditions)) if x <= y else (y, x, frozenset(conditions))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._measure(x, y, conditions)
        return found

    def _measure(self, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult:
        n = len(self.names)
        cells_K = np.array([lag * n + i for i, lag in (*conditions, x, y)], np.int64)
        value, total, status = measure_on_rows(self.sample.moments, self._memory, cells_K)
        raise_fault(self.names, status, int(total), len(conditions), int(cells_K[-2]), int(cells_K[-1]))
        df = int(total) - 2 - len(conditions)
        return TestResult(float(value), float(two_sided_p(value, float(df))), int(total), df)
