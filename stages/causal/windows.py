"""A causal discovery in windows that slide over the series, and how often each link is found.

A window holds the target times from its start on; lagged causes and conditions reach back before it, so that a window
costs no samples. Of a series of T steps every whole window is taken, one that ends with the last step too (tigramite's
`run_sliding_window_of` leaves that one out, and is equal otherwise).

Shape suffixes: T time, N variable, L lag, W window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stages.causal.covariance import Booleans
from stages.causal.errors import CausalDataError
from stages.causal.ranks import Floats

R = TypeVar("R")


@dataclass(frozen=True)
class Window(Generic[R]):
    """One window.

    Attributes
    ----------
    start, stop
        First target time, and the first after the window.
    result
        What was found; None where the window cannot carry the analysis.
    fault
        Why not, in words.
    """

    start: int
    stop: int
    result: R | None
    fault: str | None = None


@dataclass(frozen=True)
class SlidingWindows(Generic[R]):
    """All windows of a series, from the first to the last.

    Attributes
    ----------
    windows
        The windows.
    """

    windows: tuple[Window[R], ...]

    @property
    def results(self) -> tuple[R, ...]:
        """Results of the windows that have one."""
        return tuple(window.result for window in self.windows if window.result is not None)

    @property
    def faults(self) -> dict[int, str]:
        """Start of each window without result, and why it has none."""
        return {window.start: window.fault for window in self.windows if window.fault is not None}

    def share(self, links: Callable[[R], Booleans]) -> Floats:
        """Share of the windows, among those with a result, that have each link.

        Parameters
        ----------
        links
            Reads the links of a result, any shape.

        Returns
        -------
        ndarray
            Shares in the shape of the links.

        Raises
        ------
        CausalDataError
            When no window has a result.
        """
        return np.asarray(np.mean(self._stacked(links), axis=0))

    def most_frequent(self, marks: Callable[[R], NDArray[np.str_]]) -> tuple[NDArray[np.str_], Floats]:
        """Find the most frequent mark of each link; among equally frequent ones the first in alphabetic order.

        Parameters
        ----------
        marks
            Reads the marks of a result, ``-->``, ``o-o`` and so on, any shape.

        Returns
        -------
        tuple
            The marks, and the share of windows that have them.

        Raises
        ------
        CausalDataError
            When no window has a result.
        """
        marks_W = self._stacked(marks)
        known = np.unique(marks_W)
        shares = np.stack([(marks_W == mark).mean(axis=0) for mark in known])
        return known[shares.argmax(axis=0)], np.asarray(shares.max(axis=0))

    def _stacked(self, read: Callable[[R], NDArray[Any]]) -> NDArray[Any]:
        if not self.results:
            first = self.windows[0]
            raise CausalDataError(
                f"none of {len(self.windows)} windows has a result; the first, from step {first.start}: {first.fault}"
            )
        return np.stack([read(result) for result in self.results])


def sliding_windows(
    steps: int, *, length: int, step: int, run: Callable[[Booleans], R], mask_T: ArrayLike | None = None
) -> SlidingWindows[R]:
    """Run an analysis in every window of a series.

    Parameters
    ----------
    steps
        Length of the series.
    length
        Target times of a window.
    step
        Steps from the start of a window to that of the next.
    run
        The analysis, given mask_T, True = this target time is not used. A `CausalDataError` (too few samples, a
        constant variable) is kept as the window's fault; other errors are raised.
    mask_T
        True = this target time is used in no window.

    Returns
    -------
    SlidingWindows
        The windows.
    """
    if not 1 <= length <= steps:
        raise ValueError(f"length {length}: expected 1 to {steps}, the length of the series")
    if step < 1:
        raise ValueError(f"step {step}: expected 1 or more")
    always_T: NDArray[Any] = np.zeros(steps, np.bool_) if mask_T is None else np.asarray(mask_T)
    if always_T.dtype != np.bool_ or always_T.shape != (steps,):
        raise ValueError(f"mask_T: found {always_T.dtype} of shape {always_T.shape}; expected bool of shape {(steps,)}")
    windows: list[Window[R]] = []
    for start in range(0, steps - length + 1, step):
        stop = start + length
        unused_T = np.ones(steps, np.bool_)
        unused_T[start:stop] = always_T[start:stop]
        try:
            windows.append(Window(start, stop, run(unused_T)))
        except CausalDataError as fault:
            windows.append(Window(start, stop, None, str(fault)))
    return SlidingWindows(tuple(windows))
