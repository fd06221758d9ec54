"""The choice that every arm makes: of its candidates, the one with the least error on the same validation windows.

Shape suffixes: B window, S sensor, H step of the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.systems.minitraffic.batches import spread
from stages.traffic.windows import Windows

Floats = NDArray[np.float32]
Tensors = dict[str, NDArray[Any]]
#: Forecast of some windows, shape (window, sensor, step of the horizon), in the data's unit.
Forecast = Callable[[Windows[Floats], NDArray[np.int64]], Floats]


@dataclass(frozen=True)
class Candidate:
    """Something an arm may choose: what is stored of it, what it is called, and its forecast."""

    tensors: Tensors
    choice: dict[str, float]
    forecast: Forecast


@dataclass(frozen=True)
class Chosen:
    """The chosen candidate of an arm.

    Attributes
    ----------
    tensors
        What is stored: all that a forecast needs beside the series.
    choice
        What was chosen, such as a penalty, or a rate and a step.
    looks
        Candidates that were compared.
    validation_mae
        Mean absolute error on the validation windows, in the data's unit; None where no target there was measured.
    history
        A row a candidate, or a look.
    """

    tensors: Tensors
    choice: dict[str, float]
    looks: int
    validation_mae: float | None
    history: list[dict[str, Any]]


class Judge:
    """Mean absolute error on validation windows that are the same for every arm.

    Parameters
    ----------
    windows
        Of the validation part.
    wanted
        How many are looked at, spread evenly.
    """

    def __init__(self, windows: Windows[Floats], wanted: int) -> None:
        self.windows = windows
        self.indices_B = spread(len(windows), wanted)
        _, target_BSH = windows.batch(self.indices_B)
        self.target_BSH = target_BSH
        self.there_BSH = np.isfinite(target_BSH)

    def error(self, forecast_BSH: Floats) -> float:
        """Mean absolute error over the measured targets; infinite without any."""
        if not self.there_BSH.any():
            return float("inf")
        error = np.abs(forecast_BSH[self.there_BSH].astype(np.float64) - self.target_BSH[self.there_BSH])
        return float(error.mean())

    def look(self, forecast: Forecast) -> float:
        """Error of a candidate."""
        return self.error(forecast(self.windows, self.indices_B))


def choose(candidates: Iterable[Candidate], judge: Judge) -> Chosen:
    """The candidate with the least error, the first of equals."""
    best: Candidate | None = None
    least, history = float("inf"), list[dict[str, Any]]()
    for candidate in candidates:
        error = judge.look(candidate.forecast)
        history.append({"stage": "search", **candidate.choice, "validation_mae": finite(error)})
        if best is None or error < least:
            best, least = candidate, error
            place = len(history) - 1
    if best is None:
        raise ValueError("an arm without a candidate")
    for number, row in enumerate(history):
        row["chosen"] = number == place
    return Chosen(best.tensors, best.choice, len(history), finite(least), history)


def finite(error: float) -> float | None:
    """An error, or None where there is none."""
    return error if np.isfinite(error) else None
