"""What can be wrong with a sample, said with the names of the variables and of the link."""

from __future__ import annotations


class CausalDataError(ValueError):
    """The data cannot carry the analysis that was asked for."""


class ConstantVariable(CausalDataError):
    """A variable, or one lagged copy of it, does not vary over the samples of a test."""


class TooFewSamples(CausalDataError):
    """Mask and missing values leave a link fewer samples than its test needs.

    Attributes
    ----------
    link
        The link in words, ``SWC(t-1) -> LE(t)``.
    found, needed
        Samples that are left, and the smallest number with one degree of freedom.
    conditions
        Number of conditions of its test.
    """

    def __init__(self, link: str, *, found: int, needed: int, conditions: int) -> None:
        self.link = link
        self.found = found
        self.needed = needed
        self.conditions = conditions
        super().__init__(
            f"{link}: {found} samples are left by mask and missing values; its test with {conditions} conditions needs"
            f" {needed}. Use a mask (True = not used) that keeps more target times, a smaller tau_max, or leave the"
            " variable out."
        )


def cell_name(name: str, lag: int) -> str:
    """Name one lagged variable, ``LE(t)`` or ``SWC(t-1)``.

    Parameters
    ----------
    name
        Name of the variable.
    lag
        Steps back from the target time.

    Returns
    -------
    str
        The name with its lag.
    """
    return f"{name}(t-{lag})" if lag else f"{name}(t)"


def link_name(source: str, target: str, lag: int) -> str:
    """Name a link, ``SWC(t-1) -> LE(t)``; without direction, ``SWC(t) -- LE(t)``, at lag 0.

    Parameters
    ----------
    source, target
        Names of the two variables.
    lag
        Steps from source to target.

    Returns
    -------
    str
        The link in words.
    """
    return f"{cell_name(source, lag)} {'->' if lag else '--'} {cell_name(target, 0)}"
