"""What a search for causal links asks of a test: whether two lagged variables depend, given others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stages.causal.partial_correlation import TestResult

#: A variable and its lag: steps back from the target time, 0 or more.
Cell = tuple[int, int]


class IndependenceTest(Protocol):
    """Tests on one or more samples of the same variables.

    Attributes
    ----------
    names
        Names of the N variables.
    tau_max
        Largest lag of a link; cells reach back 2 tau_max steps.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        ...

    @property
    def tau_max(self) -> int:
        """Largest lag of a link."""
        ...

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult:
        """Test x against y given the conditions.

        Parameters
        ----------
        x, y
            Two different cells.
        conditions
            Other cells, without repeats.

        Raises
        ------
        TooFewSamples, ConstantVariable
            When the samples left cannot carry the test; the message names the link.
        """
        ...
