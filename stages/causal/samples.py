"""One lagged sample of a multivariate series: which target times it has, and what may be wrong with them.

Shape suffixes: T time, N variable, R target time (all from 2 tau_max to T - 1, or those of the sample).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.causal.covariance import (
    Booleans,
    Moments,
    column_moments,
    correlations,
    normal_scores,
    pack_rows,
    window_moments,
)
from stages.causal.errors import CausalDataError, ConstantVariable, TooFewSamples, cell_name
from stages.causal.ranks import Bytes, Floats, Integers, order_cells

Test = Literal["parcorr", "robust_parcorr"]


@dataclass(frozen=True)
class LaggedSample:
    """A set of target times with all their lagged cells, ready for tests.

    Attributes
    ----------
    names
        Names of the N variables.
    tau_max
        Largest lag of a link; cells reach back 2 tau_max steps.
    test
        ``parcorr`` or ``robust_parcorr``.
    missing_NT, masked_NT
        1 where a value is missing, and where a time is no target of a variable; the latter may be empty.
    moments
        Arrays that the compiled tests read.
    """

    names: tuple[str, ...]
    tau_max: int
    test: Test
    missing_NT: Bytes
    masked_NT: Bytes
    moments: Moments

    def cell(self, variable: int, lag: int) -> int:
        """Index of variable i, lag steps before the target."""
        if not 0 <= variable < len(self.names):
            raise ValueError(f"variable {variable}: expected 0 to {len(self.names) - 1}")
        if not 0 <= lag <= 2 * self.tau_max:
            raise ValueError(f"lag {lag} of {self.names[variable]}: expected 0 to {2 * self.tau_max}")
        return lag * len(self.names) + variable


def lagged_sample(
    data_TN: ArrayLike,
    *,
    tau_max: int,
    test: Test = "parcorr",
    mask_T: ArrayLike | None = None,
    mask_TN: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> LaggedSample:
    """Prepare the lagged sample of a series: target times 2 tau_max to T - 1, cells back to lag 2 tau_max.

    Parameters
    ----------
    data_TN
        The series, any units, one row per step of a regular clock; NaN is missing.
    tau_max
        Largest lag of a link.
    test
        ``parcorr`` or ``robust_parcorr``.
    mask_T
        True = this target time is not used. Masked values still serve as lagged causes and conditions.
    mask_TN
        True = this target time is not used where the variable of that column is the target.
    rows
        Target times of the sample, between 2 tau_max and T - 1; repeats count as often as they stand there.
    names
        Names of the variables for messages and tables.

    Returns
    -------
    LaggedSample
        The sample.

    Raises
    ------
    CausalDataError
        For infinite values.
    ConstantVariable
        When a variable, or a lagged column within the sample, does not vary.
    TooFewSamples
        When fewer than three target times are left.
    """
    if test not in get_args(Test):
        raise ValueError(f"test {test!r}: expected one of {', '.join(get_args(Test))}")
    if tau_max < 0:
        raise ValueError(f"tau_max {tau_max}: expected 0 or more")
    x_TN = np.array(data_TN, dtype=np.float64)
    if x_TN.ndim != 2 or x_TN.shape[1] == 0:
        raise ValueError(f"data of shape {x_TN.shape}: expected (time, variable)")
    labels = _names(names, x_TN.shape[1])
    steps = x_TN.shape[0]
    first = 2 * tau_max
    if steps < first + 3:
        raise CausalDataError(
            f"{steps} time steps: tau_max {tau_max} needs at least {first + 3}. Use a smaller tau_max."
        )
    scaled_TN, missing_TN = _scaled(x_TN, labels)
    x_NT = np.ascontiguousarray(scaled_TN.T)
    missing_NT = np.ascontiguousarray(missing_TN.T).view(np.uint8)
    keep_R, masked_NT = _masks(mask_T, mask_TN, x_TN.shape, first)
    robust = test == "robust_parcorr"
    moments = Moments(
        x_NT=x_NT,
        order_NS=_time_orders(x_NT, missing_NT, keep_R) if robust else np.empty((0, 0), np.int64),
        row_T=np.empty(0, np.int64),
        time_R=np.empty(0, np.int64),
        weight_R=np.empty(0),
        missing_DW=np.empty((0, 0), np.uint64),
        masked_NW=np.empty((0, 0), np.uint64),
        order_DR=np.empty((0, 0), np.uint32),
        end_DR=np.empty((0, 0), np.uint32),
        size_D=np.empty(0, np.int64),
        tied_D=np.empty(0, np.uint8),
        gram_DD=np.empty((0, 0)),
        sum_D=np.empty(0),
        total=0.0,
        first=first,
        complete=not missing_NT.any() and masked_NT.size == 0,
        robust=robust,
    )
    sample = LaggedSample(labels, tau_max, test, missing_NT, masked_NT, moments)
    return _with_rows(sample, keep_R if rows is None else keep_R * _row_counts(rows, first, steps))


def resampled(sample: LaggedSample, rows: ArrayLike) -> LaggedSample:
    """Draw other target times from a sample, without touching the lag structure.

    Parameters
    ----------
    sample
        The sample; its masks and missing values stay in force.
    rows
        Target times between 2 tau_max and T - 1, with repeats.

    Returns
    -------
    LaggedSample
        The sample of these target times.
    """
    m = sample.moments
    count_R = _row_counts(rows, m.first, m.x_NT.shape[1])
    return _with_rows(sample, np.where(m.row_T[m.first :] >= 0, count_R, 0.0))


def _names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    labels = tuple(f"X{i}" for i in range(n)) if names is None else tuple(names)
    if len(labels) != n or len(set(labels)) != n:
        raise ValueError(f"names {labels}: expected {n} different names, one per column")
    return labels


def _scaled(x_TN: Floats, names: tuple[str, ...]) -> tuple[Floats, Booleans]:
    """Shift and scale each variable, in place; missing values become 0."""
    if np.isinf(x_TN).any():
        t, i = (int(k) for k in np.argwhere(np.isinf(x_TN))[0])
        raise CausalDataError(f"{names[i]}: infinite value at step {t}. Missing values are NaN; correct or remove it.")
    missing_TN = np.isnan(x_TN)
    gaps = bool(missing_TN.any())
    low_N = np.min(np.where(missing_TN, np.inf, x_TN) if gaps else x_TN, axis=0)
    high_N = np.max(np.where(missing_TN, -np.inf, x_TN) if gaps else x_TN, axis=0)
    for name, low, high in zip(names, low_N, high_N, strict=True):
        if low == high:
            raise ConstantVariable(f"{name} is constant ({low:g}): it has no correlation. Leave it out.")
    # Around a typical value, so that one far outlier costs the other values no digits.
    empty_N = low_N > high_N
    centre_N = _typical_values(x_TN, np.where(empty_N, 0.0, low_N), gaps)
    x_TN -= centre_N
    reach_N = np.maximum(np.abs(low_N - centre_N), np.abs(high_N - centre_N))
    x_TN /= np.where(empty_N, 1.0, reach_N)
    if gaps:
        x_TN[missing_TN] = 0.0
    count_N = np.maximum(x_TN.shape[0] - missing_TN.sum(axis=0), 1)
    spread_N = np.sqrt(np.einsum("tn,tn->n", x_TN, x_TN) / count_N)
    x_TN /= np.where(empty_N, 1.0, spread_N)
    return x_TN, missing_TN


def _typical_values(x_TN: Floats, otherwise_N: Floats, gaps: bool) -> Floats:
    """Median of some thousand evenly spaced steps; the given value where none of them has one."""
    some_TN = x_TN[:: max(1, x_TN.shape[0] // 1000)]
    if not gaps:
        return np.asarray(np.median(some_TN, axis=0))
    blank_N = np.isnan(some_TN).all(axis=0)
    return np.asarray(np.nanmedian(np.where(blank_N, otherwise_N, some_TN), axis=0))


def _masks(
    mask_T: ArrayLike | None, mask_TN: ArrayLike | None, shape: tuple[int, ...], first: int
) -> tuple[Floats, Bytes]:
    """Weights of the target times from the common mask, and the masks per target where they differ."""
    steps, n = shape
    keep_R = np.ones(steps - first)
    if mask_T is not None:
        common_T = _boolean(mask_T, (steps,), "mask_T")
        keep_R[common_T[first:]] = 0.0
    if mask_TN is None:
        return keep_R, np.empty((n, 0), np.uint8)
    masked_NT = np.ascontiguousarray(_boolean(mask_TN, (steps, n), "mask_TN").T)
    if (masked_NT[:, first:] == masked_NT[0, first:]).all():
        keep_R[masked_NT[0, first:]] = 0.0
        return keep_R, np.empty((n, 0), np.uint8)
    return keep_R, masked_NT.view(np.uint8)


def _boolean(mask: ArrayLike, shape: tuple[int, ...], name: str) -> Booleans:
    array: NDArray[Any] = np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != shape:
        raise ValueError(
            f"{name}: found {array.dtype} of shape {array.shape}; expected bool of shape {shape}, True = not used"
        )
    return array


def _row_counts(rows: ArrayLike, first: int, steps: int) -> Floats:
    times: NDArray[Any] = np.asarray(rows)
    if times.ndim != 1 or times.dtype.kind not in "iu":
        raise ValueError(f"rows: found {times.dtype} of shape {times.shape}; expected a vector of integer target times")
    if times.size and (times.min() < first or times.max() >= steps):
        raise ValueError(
            f"rows reach from {times.min()} to {times.max()}; target times with a full past are {first} to {steps - 1}"
        )
    return np.bincount(times - first, minlength=steps - first).astype(np.float64)


def _time_orders(x_NT: Floats, missing_NT: Bytes, keep_R: Floats) -> Integers:
    """Times by value, among those that any target reads; a missing value's place holds the length of the series."""
    steps = x_NT.shape[1]
    first = steps - keep_R.size
    # A time is read by the targets from itself to `first` steps later.
    reach_T = np.zeros(steps + 1, np.int64)
    target_K = np.flatnonzero(keep_R)
    np.add.at(reach_T, target_K, 1)
    np.add.at(reach_T, target_K + first + 1, -1)
    time_S = np.flatnonzero(np.cumsum(reach_T[:-1]))
    order_NS = time_S[np.argsort(x_NT[:, time_S], axis=1, kind="stable")]
    order_NS[np.take_along_axis(missing_NT, order_NS, axis=1) > 0] = steps
    return order_NS


def _with_rows(sample: LaggedSample, weight_R: Floats) -> LaggedSample:
    """Take the target times of positive weight as rows, and compute what all their tests share."""
    m = sample.moments
    row_K = np.flatnonzero(weight_R)
    row_T = np.full(m.x_NT.shape[1], -1, np.int64)
    row_T[row_K + m.first] = np.arange(row_K.size)
    m = m._replace(row_T=row_T, time_R=row_K + m.first, weight_R=weight_R[row_K], total=float(weight_R.sum()))
    if m.total < 3:
        raise TooFewSamples("every link", found=int(m.total), needed=3, conditions=0)
    if m.complete:
        scores_DR = normal_scores(m) if m.robust else np.empty((0, 0))
        gram_DD, sum_D = column_moments(m, scores_DR) if m.robust else window_moments(m)
        corr_DD, constant_D = correlations(m, gram_DD, sum_D, scores_DR)
        _refuse_constant(sample, m, constant_D)
        return replace(sample, moments=m._replace(gram_DD=corr_DD))
    m = m._replace(
        missing_DW=pack_rows(sample.missing_NT, m.time_R, m.first + 1),
        masked_NW=pack_rows(sample.masked_NT, m.time_R, 1),
    )
    if m.robust:
        order_DR, end_DR, size_D, tied_D = order_cells(m.x_NT, m.order_NS, m.row_T, m.time_R, m.first + 1)
        m = m._replace(order_DR=order_DR, end_DR=end_DR, size_D=size_D, tied_D=tied_D)
    else:
        gram_DD, sum_D = window_moments(m)
        m = m._replace(gram_DD=gram_DD, sum_D=sum_D)
    return replace(sample, moments=m)


def _refuse_constant(sample: LaggedSample, m: Moments, constant_D: Booleans) -> None:
    """Name the first lagged column that a link needs and that does not vary; further back it only is no condition."""
    for cell in np.flatnonzero(constant_D):
        lag, i = divmod(int(cell), len(sample.names))
        if lag <= sample.tau_max:
            raise ConstantVariable(
                f"{cell_name(sample.names[i], lag)} is constant over the {int(m.total)} samples that mask and lags"
                " leave: it has no correlation. Leave the variable out or use another mask."
            )
