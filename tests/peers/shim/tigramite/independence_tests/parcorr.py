"""Partial correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stages.causal.partial_correlation import partial_correlation
from stages.causal.samples import LaggedSample, lagged_sample


class ParCorr:
    """The engine's linear test, with the mask of the targets where mask_type is ``y``."""

    def __init__(self, significance: str = "analytic", mask_type: str | None = None, verbosity: int = 0) -> None:
        if significance != "analytic" or mask_type not in (None, "y"):
            raise NotImplementedError(
                f"significance {significance!r}, mask_type {mask_type!r}: analytic, and None or y"
            )
        self.mask_type = mask_type

    def on(self, dataframe: Any, tau_max: int) -> LaggedSample:
        """The test on a series."""
        return lagged_sample(
            dataframe.series,
            tau_max=tau_max,
            mask_TN=dataframe.mask if self.mask_type else None,
            names=dataframe.var_names,
        )


def model_score(sample: LaggedSample, j: int, parents: Sequence[tuple[int, int]]) -> float:
    """Akaike's criterion of variable j regressed on its parents, without the constants; for complete samples.

    The residual variance is the product of 1 - r^2 over the parents, r the partial correlation of each given those
    before it; taken in sorted order, equal sets have equal scores.
    """
    score = 0.0
    given = sorted(parents)
    for k, parent in enumerate(given):
        test = partial_correlation(sample, parent, (j, 0), given[:k])
        score += test.samples * math.log1p(-(test.value**2)) + 2.0
    return score
