"""A conditional independence test for discrete and continuous variables.

Indicator columns stand for every discrete variable, and the association of X's columns with Y's given those of the
conditions is Wilks' lambda with Rao's F approximation (Rao 1951; exact where one side has at most two columns). With
one column on each side it is the partial correlation with its t test.

Indicators see a shift of the mean only. With ``slopes``, a pair of one discrete and one continuous variable also takes
the Chow test: one regression of the continuous variable on its conditions against one for each level of the discrete
one, inside the levels of the other lags of the discrete variable among the conditions. The p-value is then twice the
smaller of the two (Bonferroni), and the value is that of the smaller one. Both tests assume noise of one variance.

Permutations are Freedman and Lane's (1983): residuals given the conditions are permuted.

Shape suffixes: T time, N variable, Q row of a test, K columns of conditions, X, Y in this order, B column of a block,
C column of any cell, M level.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from stages.causal.block_association import (
    count_as_small,
    lambda_from_moments,
    lambda_of_blocks,
    orthonormal_blocks,
)
from stages.causal.chow import chow_fit
from stages.causal.errors import ConstantVariable, TooFewSamples, cell_name, link_name
from stages.causal.independence import Cell
from stages.causal.mixed_rows import MixedSeries, Rows, mixed_series, products
from stages.causal.partial_correlation import TestResult
from stages.causal.ranks import Floats, Integers
from stages.causal.student import two_sided_p

#: Uniform numbers that are drawn at a time for permutations.
_DRAWN = 1 << 19


def mixed_test(
    data_TN: ArrayLike,
    *,
    discrete: Collection[int],
    tau_max: int,
    mask_T: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    robust: bool = False,
    slopes: bool = False,
    least_per_level: int = 3,
    permutations: int = 0,
    block_length: int = 1,
    rng: np.random.Generator | None = None,
) -> MixedTest:
    """Prepare mixed tests on a series; target times and missing values as in `lagged_sample`.

    Parameters
    ----------
    data_TN
        The series, one row per step of a regular clock; NaN is missing. Discrete variables hold 0, 1, ..., m - 1.
    discrete
        The discrete variables.
    tau_max
        Largest lag of a link; cells reach back 2 tau_max steps.
    mask_T
        True = this target time is not used.
    rows
        Target times of the sample, 2 tau_max to T - 1, repeats allowed.
    names
        Names of the variables.
    robust
        Replace continuous columns by their normal scores within the rows of each test.
    slopes
        Add the Chow test; see the module text.
    least_per_level
        A level of X or Y that occurs, but in fewer rows than this, is an error.
    permutations
        Take p-values from this many permutations, p = (1 + as extreme) / (1 + permutations); 0: from the F
        distribution. A test's permutations depend on the state of rng now and on its cells, not on earlier tests.
    block_length
        Permute blocks of this many consecutive rows, for serially dependent residuals.
    rng
        Source of randomness, needed with permutations.

    Returns
    -------
    MixedTest
        The test.

    Raises
    ------
    CausalDataError
        For infinite values, and for values of a discrete variable that are no levels.
    ConstantVariable
        When a variable does not vary.
    TooFewSamples
        When fewer than three target times are left.
    """
    series = mixed_series(
        data_TN, discrete=discrete, tau_max=tau_max, mask_T=mask_T, rows=rows, names=names, robust=robust
    )
    if permutations < 0 or block_length < 1:
        raise ValueError(f"permutations {permutations}, block_length {block_length}: expected at least 0 and 1")
    if permutations and rng is None:
        raise ValueError("permutations need rng, a numpy Generator")
    seed = 0 if rng is None else int(rng.integers(2**63))
    return MixedTest(
        series,
        slopes=slopes,
        least_per_level=least_per_level,
        permutations=permutations,
        block_length=block_length,
        seed=seed,
    )


class MixedTest:
    """An independence test for discrete and continuous variables; see the module text and `mixed_test`.

    Parameters
    ----------
    series
        The series.
    slopes, least_per_level, permutations, block_length
        As for `mixed_test`.
    seed
        Seed of the permutations.
    """

    def __init__(
        self,
        series: MixedSeries,
        *,
        slopes: bool,
        least_per_level: int,
        permutations: int,
        block_length: int,
        seed: int,
    ) -> None:
        self.series, self.names, self.tau_max = series, series.names, series.tau_max
        self.slopes, self.least_per_level = slopes, least_per_level
        self.permutations, self.block_length, self._seed = permutations, block_length, seed
        self._known: dict[tuple[Cell, Cell, frozenset[Cell]], TestResult] = {}
        self._place: dict[Cell, Integers] = {}
        self._gram_CC = np.empty((0, 0))
        if not series.missing_NT.any():
            self._gram_CC = self._moments_of_all_cells()

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell] = ()) -> TestResult:
        """Test two cells for independence given others.

        Parameters
        ----------
        x, y
            Two different cells.
        conditions
            Other cells.

        Returns
        -------
        TestResult
            value: the signed partial correlation where each side is one column, sqrt(1 - lambda) elsewhere; p; rows;
            df = rows - columns of all cells, those left out that add nothing to the ones before.

        Raises
        ------
        TooFewSamples, ConstantVariable
            When the rows left cannot carry the test; the message names the link.
        """
        key = (min(x, y), max(x, y), frozenset(conditions))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._measure(x, y, conditions)
        return found

    def forget(self) -> None:
        """Forget the tests already done, whose results are kept."""
        self._known.clear()

    def _measure(self, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult:
        cells = [*conditions, x, y]
        self._check(cells)
        rows = self.series.rows_with(cells)
        if rows.time_Q.size < len(cells) + 1:
            raise TooFewSamples(
                self._link(x, y), found=rows.time_Q.size, needed=len(cells) + 1, conditions=len(conditions)
            )
        self._check_ends(rows, x, y, len(conditions))
        result = self._indicators(rows, x, y, conditions)
        discrete = [cell for cell in (x, y) if cell[0] in self.series.levels]
        if self.slopes and len(discrete) == 1:
            chow = self._chow(rows, x, y, conditions)
            if chow is not None:
                value = result.value if result.p <= chow.p else chow.value
                return TestResult(value, min(1.0, 2.0 * min(result.p, chow.p)), result.samples, result.df)
        return result

    def _check(self, cells: Sequence[Cell]) -> None:
        n, deepest = len(self.names), 2 * self.tau_max
        if not all(0 <= i < n and 0 <= lag <= deepest for i, lag in cells):
            raise ValueError(f"cells {cells}: expected variables 0 to {n - 1}, lags 0 to {deepest}")
        if len(set(cells)) != len(cells):
            raise ValueError(f"X {cells[-2]}, Y {cells[-1]} and the conditions {cells[:-2]} must be different cells")

    def _name(self, cell: Cell) -> str:
        return cell_name(self.names[cell[0]], cell[1])

    def _link(self, x: Cell, y: Cell) -> str:
        return link_name(self.names[x[0]], self.names[y[0]], x[1])

    def _check_ends(self, rows: Rows, x: Cell, y: Cell, conditions: int) -> None:
        """Refuse a constant X or Y, and levels with few rows."""
        for cell in (x, y):
            if not self.series.columns(rows, cell).any():
                raise ConstantVariable(
                    f"{self._link(x, y)}: {self._name(cell)} is constant over the {rows.time_Q.size} samples that mask"
                    " and missing values leave: it has no correlation. Leave the variable out or use another mask."
                )
            if cell[0] in self.series.levels:
                for level, count in enumerate(self.series.level_counts(rows, cell).tolist()):
                    if 0 < count < self.least_per_level:
                        raise TooFewSamples(
                            f"{self._link(x, y)}, level {level} of {self._name(cell)}",
                            found=count,
                            needed=self.least_per_level,
                            conditions=conditions,
                        )

    def _moments_of_all_cells(self) -> Floats:
        """Correlations of the columns of all cells, where every test has the same rows."""
        rows = self.series.rows_with([])
        parts, place = [], 0
        for lag in range(2 * self.tau_max + 1):
            for i in range(len(self.names)):
                parts.append(self.series.columns(rows, (i, lag)))
                self._place[i, lag] = np.arange(place, place + len(parts[-1]))
                place += len(parts[-1])
        gram_CC = products(np.concatenate(parts))
        size_C = np.sqrt(np.diag(gram_CC))
        scale_C = 1.0 / np.where(size_C > 0.0, size_C, 1.0)
        return gram_CC * scale_C * scale_C[:, None]

    def _indicators(self, rows: Rows, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult:
        """Wilks' lambda of the columns of x and y given those of the conditions."""
        cells = [*conditions, x, y]
        k, left = sum(self.series.width(cell) for cell in conditions), self.series.width(x)
        solved, blocks = False, None
        if self._gram_CC.size and not self.permutations:
            index_K = np.concatenate([self._place[cell] for cell in cells])
            moment_KK = self._gram_CC[np.ix_(index_K, index_K)]
            log_lambda, value, kept_K, solved = lambda_from_moments(moment_KK, k, left)
        if not solved:
            columns_KQ = np.concatenate([self.series.columns(rows, cell) for cell in cells])
            kept_K = orthonormal_blocks(columns_KQ, k, left)
            blocks = [columns_KQ[part][kept_K[part]] for part in _parts(k, left)]
            log_lambda, value = lambda_of_blocks(blocks[1], blocks[2])
        # A continuous condition takes a degree of freedom even where it adds nothing, as in the partial correlation.
        if kept_K.all():
            s, p, q = k, left, kept_K.size - k - left
        else:
            numeric_K = np.repeat(
                [c[0] not in self.series.levels for c in cells], [self.series.width(c) for c in cells]
            )
            s, p, q = ((kept_K | numeric_K)[:k].sum(), *(max(1, kept_K[part].sum()) for part in _parts(k, left)[1:]))
        samples = rows.time_Q.size
        df = int(samples - s - p - q)
        if df < 1:
            raise TooFewSamples(self._link(x, y), found=samples, needed=samples - df + 1, conditions=len(conditions))
        if not (kept_K[k : k + left].any() and kept_K[k + left :].any()):
            return TestResult(0.0, 1.0, samples, df)
        if blocks is not None and self.permutations:
            s_BQ, x_BQ, y_BQ = blocks if self._ordered(x, y) else (blocks[0], blocks[2], blocks[1])
            p_value = self._permuted(
                x, y, conditions, samples, lambda u, length: count_as_small(s_BQ, x_BQ, y_BQ, u, length, log_lambda)
            )
        elif p == q == 1:
            p_value = float(two_sided_p(value, float(df)))
        else:
            p_value = rao_p(log_lambda, int(p), int(q), int(samples - 1 - s - p))
        if p > 1 or q > 1:
            value = np.sqrt(-np.expm1(min(log_lambda, 0.0)))
        return TestResult(float(value), p_value, samples, df)

    def _chow(self, rows: Rows, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult | None:
        """Chow test of a pair of a discrete and a continuous cell; None where it would only repeat the indicators'."""
        series = self.series
        switch, response = (x, y) if x[0] in series.levels else (y, x)
        strata = [cell for cell in conditions if cell[0] == switch[0]]
        others = [cell for cell in conditions if cell[0] != switch[0]]
        if not others and not strata:
            return None
        stratum_Q = np.zeros(rows.time_Q.size, np.int64)
        for cell in strata:
            stratum_Q = stratum_Q * series.levels[switch[0]] + series.level_of(rows, cell)
        y_Q = series.columns(rows, response)[0]
        design_KQ = np.concatenate([np.empty((0, y_Q.size)), *(series.columns(rows, cell) for cell in others)])
        fit = chow_fit(design_KQ, y_Q, stratum_Q, series.level_of(rows, switch))
        if fit.df < 1:
            needed = y_Q.size - fit.df + 1
            raise TooFewSamples(self._link(x, y), found=y_Q.size, needed=needed, conditions=len(conditions))
        if fit.extra == 0:
            return None
        p_value = self._permuted(x, y, conditions, y_Q.size, fit.count) if self.permutations else fit.p
        return TestResult(fit.value, p_value, y_Q.size, fit.df)

    def _ordered(self, x: Cell, y: Cell) -> bool:
        """Whether y is the side to permute: the continuous one, else the larger cell, whichever way a test is asked."""
        levels = self.series.levels
        return (x[0] not in levels, x) < (y[0] not in levels, y)

    def _permuted(
        self, x: Cell, y: Cell, conditions: Sequence[Cell], samples: int, count: Callable[[Floats, int], int]
    ) -> float:
        """P-value from permutations, drawn in pieces of bounded memory from a generator of this test's own."""
        cells = [*sorted((x, y)), *sorted(conditions)]
        rng = np.random.default_rng([self._seed, *(part for cell in cells for part in cell)])
        blocks = -(-samples // self.block_length)
        piece = max(1, _DRAWN // blocks)
        found = 0
        for start in range(0, self.permutations, piece):
            found += count(rng.random((min(piece, self.permutations - start), blocks)), self.block_length)
        return (1 + found) / (1 + self.permutations)


def rao_p(log_lambda: float, left: int, right: int, error_df: int) -> float:
    """P-value of Wilks' lambda by Rao's F approximation.

    Parameters
    ----------
    log_lambda
        Logarithm of lambda.
    left, right
        Columns of the two blocks.
    error_df
        Rows - 1 - columns of the conditions - left.

    Returns
    -------
    float
        P-value; exact where the smaller block has at most two columns.
    """
    square = left**2 + right**2 - 5
    t = np.sqrt(((left * right) ** 2 - 4) / square) if square > 0 else 1.0
    w = error_df + left - 0.5 * (left + right + 1)
    return float(
        betainc(0.5 * (w * t - 0.5 * (left * right - 2)), 0.5 * left * right, np.exp(min(log_lambda, 0.0) / t))
    )


def _parts(conditions: int, left: int) -> tuple[slice, slice, slice]:
    return slice(0, conditions), slice(conditions, conditions + left), slice(conditions + left, None)
