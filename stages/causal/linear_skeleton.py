"""The search of PCMCI+ with the linear tests on one sample: the compiled loops behind the interface of `skeleton`.

Shape suffixes: N variable, L lag 0 to tau_max, P pair of a source cell and a target.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stages.causal.assumptions import AssumedLinks
from stages.causal.covariance import Booleans
from stages.causal.errors import CausalDataError
from stages.causal.partial_correlation import raise_fault
from stages.causal.ranks import Integers
from stages.causal.row_sets import forget, row_sets
from stages.causal.samples import LaggedSample
from stages.causal.skeleton import Limits, Parents, Skeleton, empty_skeleton
from stages.causal.skeleton_kernels import count_separating, select_and_report, separate_pairs


def refuse_empty(sample: LaggedSample, allowed_NNL: Booleans) -> None:
    """Refuse a variable without any value that has links to test.

    Parameters
    ----------
    sample
        The sample.
    allowed_NNL
        True where a link may exist.

    Raises
    ------
    CausalDataError
        Naming the variable.
    """
    for i in np.flatnonzero(sample.missing_NT.all(axis=1)):
        if allowed_NNL[i].any() or allowed_NNL[:, i].any():
            raise CausalDataError(f"{sample.names[i]} has no value at all. Leave it out, or forbid its links.")


class LinearSearch:
    """The search on one sample.

    Parameters
    ----------
    sample
        The sample.
    assumed
        What is known of links.
    alpha
        Level of all tests.
    limits
        Numbers of conditions.
    """

    def __init__(self, sample: LaggedSample, assumed: AssumedLinks, alpha: float, limits: Limits) -> None:
        self.sample, self.assumed, self.alpha, self.limits = sample, assumed, alpha, limits
        self.found = empty_skeleton(assumed.allowed_NNL)
        self._memory = row_sets(sample.moments, int(sample.moments.total))
        forget(self._memory)
        n, _, lags = assumed.allowed_NNL.shape
        self._parents_ND = np.zeros((n, n * (lags - 1)), np.int64)
        self._count_N = np.zeros(n, np.int64)

    def run(self, parents: Parents | None, *, reset: bool = False) -> Skeleton:
        """Find the adjacencies as `skeleton.AnySearch` does."""
        found, m, assumed, limits = self.found, self.sample.moments, self.assumed, self.limits
        reports = found.value_NNL, found.p_NNL, found.samples_NNL, found.df_NNL
        required_NNL = assumed.required_NNL.view(np.uint8)
        n = len(self.sample.names)
        if parents is None:
            self._parents_ND, self._count_N, fault = select_and_report(
                m, self._memory, assumed.allowed_NNL.view(np.uint8), required_NNL, self.alpha, limits.dim, *reports
            )
            raise_fault(self.sample.names, *fault.tolist())
            parents = tuple(
                tuple((cell % n, cell // n) for cell in row[:count])
                for row, count in zip(self._parents_ND.tolist(), self._count_N.tolist(), strict=True)
            )
        else:
            for j, cells in enumerate(parents):
                self._parents_ND[j, : len(cells)] = [lag * n + i for i, lag in cells]
                self._count_N[j] = len(cells)
        found.take_parents(parents, assumed.allowed_NNL if reset else None)
        separated_NNL, member_NNLN, fault = separate_pairs(
            m,
            self._memory,
            found.linked_NNL.view(np.uint8),
            required_NNL,
            self._parents_ND,
            self._count_N,
            self.alpha,
            limits.dim,
            limits.py,
            limits.px,
            *reports,
        )
        raise_fault(self.sample.names, *fault.tolist())
        subsets: dict[tuple[int, int, int], list[int]] = {
            (i, lag, j): [] for i, j, lag in np.argwhere(separated_NNL).tolist()
        }
        for i, j, lag, k in np.argwhere(member_NNLN).tolist():
            subsets[i, lag, j].append(k)
        found.separating = {pair: tuple(subset) for pair, subset in subsets.items()}
        found.report_both_directions(assumed.directed_NN)
        return found

    def count_separating(self, pairs: Sequence[tuple[int, int, int]]) -> tuple[Integers, Integers]:
        """Count separating subsets as `skeleton.count_separating` does."""
        # With the same conditions and the same samples in both directions, one test serves both.
        widest = max(self._count_N.tolist(), default=0)
        alike = self.limits.py >= widest and self.limits.px >= widest and self.sample.moments.masked_NW.size == 0
        distinct = sorted({_one_order(pair) for pair in pairs} if alike else set(pairs))
        separating_P, holding_PN, fault = count_separating(
            self.sample.moments,
            self._memory,
            np.array(distinct, np.int64).reshape(-1, 3),
            self.found.linked_NNL.view(np.uint8),
            self._parents_ND,
            self._count_N,
            self.alpha,
            self.limits.py,
            self.limits.px,
        )
        raise_fault(self.sample.names, *fault.tolist())
        place = {pair: q for q, pair in enumerate(distinct)}
        places = [place[_one_order(pair) if alike else pair] for pair in pairs]
        return separating_P[places], holding_PN[places]


def _one_order(pair: tuple[int, int, int]) -> tuple[int, int, int]:
    i, lag, j = pair
    return pair if lag or i < j else (j, lag, i)
