"""PCMCI: which lagged and contemporaneous links a multivariate series supports.

PC1 selects conditions for every variable, MCI tests every link given the parents of both of its ends (Runge et al.
2019, Science Advances 5, eaau4996). Tests are linear partial correlations, of the values (``parcorr``) or of their
normal scores (``robust_parcorr``).

Values, p-values and parents are those of tigramite 5.2.10.1. One choice differs: where the two directions of a
contemporaneous pair are different tests (masks per target, max_conds_py, max_conds_px), a link needs both of them, so
that the graph agrees with the reported p-values; the peer draws an arrow when one of the two is significant.

Shape suffixes: T time, N variable, L lag 0 to tau_max; [i, j, lag] is the link from i, lag steps before, to j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stages.causal.covariance import Booleans
from stages.causal.errors import CausalDataError
from stages.causal.partial_correlation import raise_fault
from stages.causal.ranks import Bytes, Floats, Integers
from stages.causal.row_sets import RowSets, forget, row_sets
from stages.causal.samples import LaggedSample, Test, lagged_sample
from stages.causal.search import measure_links, select_conditions


@dataclass(frozen=True)
class PCMCIResult:
    """Values, p-values and sample sizes of all tested links.

    Attributes
    ----------
    value_NNL
        Partial correlation of the link from i to j at a lag; 0 where nothing was tested.
    p_NNL
        Two-sided p-value; 1 where nothing was tested.
    samples_NNL
        Sample size of each test; 0 where nothing was tested.
    df_NNL
        Degrees of freedom of each test, samples - 2 - number of conditions.
    tested_NNL
        True where a link was tested.
    parents
        For each variable the (source, lag) pairs that PC1 selected, from the strongest to the weakest.
    names
        Names of the variables.
    tau_min, tau_max
        Smallest and largest lag of a link.
    pc_alpha
        Level of the condition selection; None where there was none.
    test
        ``parcorr``, ``robust_parcorr``, or the name of another test's class.
    """

    value_NNL: Floats
    p_NNL: Floats
    samples_NNL: Integers
    df_NNL: Integers
    tested_NNL: Booleans
    parents: tuple[tuple[tuple[int, int], ...], ...]
    names: tuple[str, ...]
    tau_min: int
    tau_max: int
    pc_alpha: float | None
    test: str


def run_pcmci(
    data_TN: ArrayLike,
    *,
    tau_max: int,
    pc_alpha: float,
    test: Test = "parcorr",
    mask_T: ArrayLike | None = None,
    mask_TN: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    candidates_NNL: ArrayLike | None = None,
    max_conds_dim: int | None = None,
    max_conds_py: int | None = None,
    max_conds_px: int | None = None,
    tau_min: int = 0,
) -> PCMCIResult:
    """Run PCMCI on one series.

    Parameters
    ----------
    data_TN
        The series, one row per step of a regular clock, any units; NaN is missing and drops, test by test, the target
        times that would need it.
    tau_max
        Largest lag of a link, in steps.
    pc_alpha
        Level of the condition selection, in (0, 1].
    test
        ``parcorr`` or ``robust_parcorr``.
    mask_T
        True = this target time is not used.
    mask_TN
        True = this target time is not used where the variable of the column is the target.
    rows
        Target times of the sample, 2 tau_max to T - 1, repeats allowed; all of them by default.
    names
        Names of the variables.
    candidates_NNL
        True where a link may exist; others are neither tested nor selected. Lag 0 must be symmetric. All by default.
    max_conds_dim
        Largest number of conditions in the selection.
    max_conds_py, max_conds_px
        How many parents of the target, and of the source, the MCI tests condition on; the strongest are used.
    tau_min
        Smallest lag of a link, in steps.

    Returns
    -------
    PCMCIResult
        Values, p-values and sample sizes of all links, and the selected parents.

    Raises
    ------
    TooFewSamples
        When mask and missing values leave a link no degree of freedom; the message names the link.
    ConstantVariable
        When a variable does not vary, in all or in the samples of one test.
    CausalDataError
        For infinite values, and for a variable without any value that has candidate links.
    """
    sample = lagged_sample(data_TN, tau_max=tau_max, test=test, mask_T=mask_T, mask_TN=mask_TN, rows=rows, names=names)
    return pcmci_on_sample(
        sample,
        pc_alpha=pc_alpha,
        candidates_NNL=candidates_NNL,
        max_conds_dim=max_conds_dim,
        max_conds_py=max_conds_py,
        max_conds_px=max_conds_px,
        tau_min=tau_min,
    )


def pcmci_on_sample(
    sample: LaggedSample,
    *,
    pc_alpha: float,
    candidates_NNL: ArrayLike | None = None,
    max_conds_dim: int | None = None,
    max_conds_py: int | None = None,
    max_conds_px: int | None = None,
    tau_min: int = 0,
    memory: RowSets | None = None,
) -> PCMCIResult:
    """Run PCMCI on a prepared sample.

    Parameters
    ----------
    sample
        The sample.
    pc_alpha, candidates_NNL, max_conds_dim, max_conds_py, max_conds_px, tau_min
        As in `run_pcmci`.
    memory
        Memory to use again, from `row_sets` for a sample at least as large; no two threads may share it.

    Returns
    -------
    PCMCIResult
        As from `run_pcmci`, with the same errors.
    """
    if not 0 < pc_alpha <= 1:
        raise ValueError(f"pc_alpha {pc_alpha}: expected a level in (0, 1]")
    limits = [_limit(max_conds_dim, "dim"), _limit(max_conds_py, "py"), _limit(max_conds_px, "px")]
    candidate_NNL = _candidates(sample, candidates_NNL, tau_min)
    memory = row_sets(sample.moments, int(sample.moments.total)) if memory is None else memory
    forget(memory)
    parents_ND, count_N, fault = select_conditions(
        sample.moments, memory, candidate_NNL, float(pc_alpha), limits[0], max(1, tau_min)
    )
    raise_fault(sample.names, *fault.tolist())
    return _measured(sample, memory, candidate_NNL, parents_ND, count_N, tau_min, float(pc_alpha), limits[1], limits[2])


def lagged_correlation(
    data_TN: ArrayLike,
    *,
    tau_max: int,
    test: Test = "parcorr",
    mask_T: ArrayLike | None = None,
    mask_TN: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    candidates_NNL: ArrayLike | None = None,
    tau_min: int = 0,
) -> PCMCIResult:
    """Test every lagged pair without conditions, the baseline that PCMCI is compared with.

    Parameters are those of `run_pcmci`, and so are the samples; the result has no parents and pc_alpha None.

    Parameters
    ----------
    data_TN, tau_max, test, mask_T, mask_TN, rows, names, candidates_NNL, tau_min
        As in `run_pcmci`.

    Returns
    -------
    PCMCIResult
        Correlations of x[t - lag, i] and x[t, j].
    """
    sample = lagged_sample(data_TN, tau_max=tau_max, test=test, mask_T=mask_T, mask_TN=mask_TN, rows=rows, names=names)
    n = len(sample.names)
    candidate_NNL = _candidates(sample, candidates_NNL, tau_min)
    nobody_ND, none_N = np.zeros((n, n * tau_max), np.int64), np.zeros(n, np.int64)
    memory = row_sets(sample.moments, int(sample.moments.total))
    forget(memory)
    return _measured(sample, memory, candidate_NNL, nobody_ND, none_N, tau_min, None, n * tau_max, n * tau_max)


def _measured(
    sample: LaggedSample,
    memory: RowSets,
    candidate_NNL: Bytes,
    parents_ND: Integers,
    count_N: Integers,
    tau_min: int,
    pc_alpha: float | None,
    max_py: int,
    max_px: int,
) -> PCMCIResult:
    value_NNL, p_NNL, samples_NNL, df_NNL, fault = measure_links(
        sample.moments, memory, candidate_NNL, parents_ND, count_N, tau_min, max_py, max_px
    )
    raise_fault(sample.names, *fault.tolist())
    n = len(sample.names)
    parents = tuple(
        tuple((cell % n, cell // n) for cell in row[:count])
        for row, count in zip(parents_ND.tolist(), count_N.tolist(), strict=True)
    )
    return PCMCIResult(
        value_NNL=value_NNL,
        p_NNL=p_NNL,
        samples_NNL=samples_NNL,
        df_NNL=df_NNL,
        tested_NNL=samples_NNL > 0,
        parents=parents,
        names=sample.names,
        tau_min=tau_min,
        tau_max=sample.tau_max,
        pc_alpha=pc_alpha,
        test=sample.test,
    )


def _limit(value: int | None, name: str) -> int:
    if value is None:
        return 2**31
    if value < 0:
        raise ValueError(f"max_conds_{name} {value}: expected 0 or more, or None")
    return value


def _candidates(sample: LaggedSample, candidates_NNL: ArrayLike | None, tau_min: int) -> Bytes:
    """Links to test as bytes: those given, from tau_min on, without a variable's link to itself at lag 0."""
    n = len(sample.names)
    if not 0 <= tau_min <= sample.tau_max:
        raise ValueError(f"tau_min {tau_min}: expected 0 to tau_max {sample.tau_max}")
    shape = (n, n, sample.tau_max + 1)
    if candidates_NNL is None:
        chosen_NNL = np.ones(shape, np.bool_)
    else:
        chosen_NNL = np.array(candidates_NNL)
        if chosen_NNL.dtype != np.bool_ or chosen_NNL.shape != shape:
            raise ValueError(
                f"candidates: found {chosen_NNL.dtype} of shape {chosen_NNL.shape}; expected bool of shape {shape}"
            )
        if (chosen_NNL[:, :, 0] != chosen_NNL[:, :, 0].T).any():
            raise ValueError("candidates at lag 0 must be symmetric: a contemporaneous test has no direction")
    chosen_NNL[:, :, :tau_min] = False
    chosen_NNL[np.arange(n), np.arange(n), 0] = False
    for i in np.flatnonzero(sample.missing_NT.all(axis=1)):
        if chosen_NNL[i].any() or chosen_NNL[:, i].any():
            raise CausalDataError(
                f"{sample.names[i]} has no value at all. Leave it out, or leave its links out of the candidates."
            )
    return chosen_NNL.view(np.uint8)
