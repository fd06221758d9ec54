"""The Chow test: whether a regression differs between the levels of a discrete variable, inside strata of rows.

F = ((RSS_0 - RSS_1) / (k_1 - k_0)) / (RSS_1 / (n - k_1)), with RSS_0 and rank k_0 of one regression in each stratum,
and RSS_1 and k_1 of one for each level in each stratum (Chow 1960). A level with fewer rows than columns in a stratum
is fitted exactly and takes as many degrees of freedom as it has rows, which is Chow's predictive test.

Shape suffixes: K column of the regression, Q row, G group of rows, P permutation, U block of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from stages.causal.block_association import count_as_split, group_bases, group_residuals
from stages.causal.ranks import Floats, Integers


@dataclass(frozen=True)
class ChowFit:
    """Both regressions of a Chow test.

    Attributes
    ----------
    ratio
        RSS_1 / RSS_0.
    extra, df
        k_1 - k_0, and n - k_1.
    count
        Counts permutations whose ratio is not above this one, from uniform_PU and the length of a block of rows.
    """

    ratio: float
    extra: int
    df: int
    count: Callable[[Floats, int], int]

    @property
    def p(self) -> float:
        """P-value of the F distribution."""
        return float(betainc(0.5 * self.df, 0.5 * self.extra, min(self.ratio, 1.0)))

    @property
    def value(self) -> float:
        """Multiple correlation of what the coarse regression leaves with what the levels add."""
        return float(np.sqrt(max(0.0, 1.0 - self.ratio)))


def chow_fit(design_KQ: Floats, y_Q: Floats, stratum_Q: Integers, level_Q: Integers) -> ChowFit:
    """Fit the regressions of a Chow test.

    Parameters
    ----------
    design_KQ
        Columns of the regression; an intercept is added.
    y_Q
        The response, rows in the order of time.
    stratum_Q, level_Q
        Stratum of each row, and level of the variable that is tested.

    Returns
    -------
    ChowFit
        The fit.
    """
    order_Q = np.lexsort((level_Q, stratum_Q))
    stratum_Q, level_Q = stratum_Q[order_Q], level_Q[order_Q]
    new_Q = np.diff(stratum_Q, prepend=stratum_Q[0] - 1) != 0
    coarse_G = np.append(np.flatnonzero(new_Q), y_Q.size)
    fine_G = np.append(np.flatnonzero(new_Q | (np.diff(level_Q, prepend=level_Q[0]) != 0)), y_Q.size)
    columns_KQ = np.concatenate([np.ones((1, y_Q.size)), design_KQ[:, order_Q]])
    coarse_KQ, k0 = group_bases(columns_KQ, coarse_G)
    fine_KQ, k1 = group_bases(columns_KQ, fine_G)
    coarse_Q = group_residuals(coarse_KQ, coarse_G, y_Q[order_Q])
    fine_Q = group_residuals(fine_KQ, fine_G, coarse_Q)
    whole = float(coarse_Q @ coarse_Q)
    # Residuals of rounding size: the conditions determine the response.
    ratio = float(fine_Q @ fine_Q) / whole if whole > 1e-20 * float(y_Q @ y_Q) else 1.0
    rest_Q = np.empty(y_Q.size)
    rest_Q[order_Q] = coarse_Q

    def count(uniform_PU: Floats, block_length: int) -> int:
        return count_as_split(
            coarse_KQ, coarse_G, fine_KQ, fine_G, rest_Q, order_Q, uniform_PU, block_length, ratio
        )  # fmt: skip

    return ChowFit(ratio, k1 - k0, y_Q.size - k1, count)
