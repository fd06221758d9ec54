"""Columns of discrete and continuous variables on sets of rows: what a mixed test regresses.

A discrete variable of levels 0 to m - 1 is m - 1 indicator columns, wherever it stands in a test.

Shape suffixes: T time, N variable, R row (a target time of the sample), Q row that a test may use, B column of a cell,
K column of several cells.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.causal.covariance import Booleans, add_products, mirror
from stages.causal.errors import CausalDataError, ConstantVariable, TooFewSamples
from stages.causal.independence import Cell
from stages.causal.ranks import Floats, Integers, write_scores


@dataclass
class Rows:
    """Rows of a test, and the columns made on them so far.

    Attributes
    ----------
    time_Q
        Target times, in the order of time; repeats count as often as they stand there.
    columns
        Centred columns of each cell, made on demand.
    counts
        For each discrete cell the rows of each level, made on demand.
    """

    time_Q: Integers
    columns: dict[Cell, Floats] = field(default_factory=dict)
    counts: dict[Cell, Integers] = field(default_factory=dict)


@dataclass(frozen=True)
class MixedSeries:
    """A series of discrete and continuous variables with its target times.

    Attributes
    ----------
    names
        Names of the N variables.
    tau_max
        Largest lag of a link.
    value_NT
        Continuous values shifted and scaled; levels of discrete ones; 0 where missing.
    missing_NT
        True where a value is missing.
    levels
        Number of levels of each discrete variable.
    time_R
        Target times.
    robust
        Replace continuous columns by their normal scores.
    gappy
        Variables with missing values.
    """

    names: tuple[str, ...]
    tau_max: int
    value_NT: Floats
    missing_NT: Booleans
    levels: dict[int, int]
    time_R: Integers
    robust: bool
    gappy: frozenset[int]
    _sets: dict[bytes, Rows] = field(default_factory=dict)

    def rows_with(self, cells: Sequence[Cell]) -> Rows:
        """Find the rows in which no cell of a test is missing.

        Parameters
        ----------
        cells
            The cells.

        Returns
        -------
        Rows
            The rows, shared by all tests that may use the same ones.
        """
        gappy = [(i, lag) for i, lag in cells if i in self.gappy]
        if not gappy and b"" in self._sets:
            return self._sets[b""]
        bad_R = np.zeros(self.time_R.size, np.bool_)
        for i, lag in gappy:
            bad_R |= self.missing_NT[i, self.time_R - lag]
        key = np.packbits(bad_R).tobytes() if bad_R.any() else b""
        if key not in self._sets:
            if len(self._sets) >= 64:
                self._sets.clear()
            self._sets[key] = Rows(self.time_R[~bad_R])
        return self._sets[key]

    def columns(self, rows: Rows, cell: Cell) -> Floats:
        """Centred columns of a cell: one of a continuous variable, m - 1 of a discrete one; constant ones are 0.

        Parameters
        ----------
        rows
            Rows of the test.
        cell
            Variable and lag.

        Returns
        -------
        ndarray
            columns_BQ.
        """
        found = rows.columns.get(cell)
        if found is None:
            i, lag = cell
            value_Q = self.value_NT[i, rows.time_Q - lag]
            if i in self.levels:
                raw_BQ = (value_Q == np.arange(1, self.levels[i])[:, None]).astype(np.float64)
            else:
                raw_BQ = (_normal_scores(value_Q) if self.robust else value_Q)[None]
            found = np.ascontiguousarray(centred(raw_BQ))
            rows.columns[cell] = found
        return found

    def level_of(self, rows: Rows, cell: Cell) -> Integers:
        """Level of a discrete cell in each row.

        Parameters
        ----------
        rows
            Rows of the test.
        cell
            Variable and lag.

        Returns
        -------
        ndarray
            level_Q.
        """
        level_Q: Integers = self.value_NT[cell[0], rows.time_Q - cell[1]].astype(np.int64)
        return level_Q

    def level_counts(self, rows: Rows, cell: Cell) -> Integers:
        """Rows of each level of a discrete cell.

        Parameters
        ----------
        rows
            Rows of the test.
        cell
            Variable and lag.

        Returns
        -------
        ndarray
            count_M.
        """
        found = rows.counts.get(cell)
        if found is None:
            found = rows.counts[cell] = np.bincount(self.level_of(rows, cell), minlength=self.levels[cell[0]])
        return found

    def width(self, cell: Cell) -> int:
        """Count the columns of a cell."""
        return self.levels[cell[0]] - 1 if cell[0] in self.levels else 1


def mixed_series(
    data_TN: ArrayLike,
    *,
    discrete: Collection[int],
    tau_max: int,
    mask_T: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    robust: bool = False,
) -> MixedSeries:
    """Check a series and list its target times; arguments as for `mixed_test`.

    Parameters
    ----------
    data_TN, discrete, tau_max, mask_T, rows, names, robust
        See `mixed_test`.

    Returns
    -------
    MixedSeries
        The series.
    """
    x_TN = np.array(data_TN, dtype=np.float64)
    if x_TN.ndim != 2 or x_TN.shape[1] == 0:
        raise ValueError(f"data of shape {x_TN.shape}: expected (time, variable)")
    if tau_max < 0:
        raise ValueError(f"tau_max {tau_max}: expected 0 or more")
    steps, n = x_TN.shape
    labels = tuple(f"X{i}" for i in range(n)) if names is None else tuple(names)
    if len(labels) != n or len(set(labels)) != n:
        raise ValueError(f"names {labels}: expected {n} different names, one per column")
    if not set(discrete) <= set(range(n)):
        raise ValueError(f"discrete {sorted(discrete)}: expected variables 0 to {n - 1}")
    first = 2 * tau_max
    if steps < first + 3:
        raise CausalDataError(
            f"{steps} time steps: tau_max {tau_max} needs at least {first + 3}. Use a smaller tau_max."
        )
    time_R = _target_times(mask_T, rows, first, steps)
    if time_R.size < 3:
        raise TooFewSamples("every link", found=time_R.size, needed=3, conditions=0)
    levels: dict[int, int] = {}
    for i, name in enumerate(labels):
        seen_K = np.unique(x_TN[~np.isnan(x_TN[:, i]), i])
        if np.isinf(seen_K).any():
            t = int(np.flatnonzero(np.isinf(x_TN[:, i]))[0])
            raise CausalDataError(f"{name}: infinite value at step {t}. Missing values are NaN; correct or remove it.")
        if seen_K.size == 1:
            raise ConstantVariable(f"{name} is constant ({seen_K[0]:g}): nothing can depend on it. Leave it out.")
        if i in discrete:
            wrong_K = seen_K[(seen_K < 0) | (seen_K != np.round(seen_K))]
            if wrong_K.size:
                raise CausalDataError(
                    f"{name}: value {wrong_K[0]:g} is no level; expected 0, 1, ... for a discrete variable. Number its"
                    " levels, or leave it out of the discrete ones."
                )
            levels[i] = int(seen_K.max(initial=1.0)) + 1
        elif seen_K.size:
            x_TN[:, i] = (x_TN[:, i] - np.nanmean(x_TN[:, i])) / np.nanstd(x_TN[:, i])
    missing_NT = np.ascontiguousarray(np.isnan(x_TN).T)
    value_NT = np.where(missing_NT, 0.0, x_TN.T)
    gappy = frozenset(np.flatnonzero(missing_NT.any(axis=1)).tolist())
    return MixedSeries(labels, tau_max, np.ascontiguousarray(value_NT), missing_NT, levels, time_R, robust, gappy)


def centred(raw_KQ: Floats) -> Floats:
    """Subtract the mean of each column; a constant one becomes exactly 0.

    Parameters
    ----------
    raw_KQ
        The columns.

    Returns
    -------
    ndarray
        centred_KQ.
    """
    if raw_KQ.shape[1] == 0:
        return raw_KQ
    shifted_KQ = raw_KQ - raw_KQ[:, :1]
    shifted_KQ -= shifted_KQ.mean(axis=1, keepdims=True)
    return shifted_KQ


def products(columns_KQ: Floats) -> Floats:
    """Products of all pairs of columns.

    Parameters
    ----------
    columns_KQ
        The columns.

    Returns
    -------
    ndarray
        moment_KK.
    """
    moment_KK = np.zeros((columns_KQ.shape[0], columns_KQ.shape[0]))
    add_products(columns_KQ, 0, columns_KQ, 0, columns_KQ.shape[1], True, moment_KK)
    mirror(moment_KK)
    return moment_KK


def _normal_scores(value_Q: Floats) -> Floats:
    """Normal scores of a column, as the robust partial correlation makes them."""
    score_M = np.empty(value_Q.size + 1)
    write_scores(value_Q.size, score_M)
    return score_M[np.searchsorted(np.sort(value_Q), value_Q, side="right")]


def _target_times(mask_T: ArrayLike | None, rows: ArrayLike | None, first: int, steps: int) -> Integers:
    """Sorted target times that are given and not masked."""
    times: NDArray[Any] = np.arange(first, steps) if rows is None else np.asarray(rows)
    if times.ndim != 1 or times.dtype.kind not in "iu":
        raise ValueError(f"rows: found {times.dtype} of shape {times.shape}; expected a vector of integer target times")
    if times.size and (times.min() < first or times.max() >= steps):
        raise ValueError(
            f"rows reach from {times.min()} to {times.max()}; target times with a full past are {first} to {steps - 1}"
        )
    time_R: Integers = np.sort(times).astype(np.int64)
    if mask_T is None:
        return time_R
    mask: NDArray[Any] = np.asarray(mask_T)
    if mask.dtype != np.bool_ or mask.shape != (steps,):
        raise ValueError(
            f"mask_T: found {mask.dtype} of shape {mask.shape}; expected bool of shape {(steps,)}, True = not used"
        )
    kept_R: Integers = time_R[~mask[time_R]]
    return kept_R
