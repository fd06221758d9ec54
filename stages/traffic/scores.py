"""Errors of forecasts in the data's own units, over the values that were measured.

A value counts where the truth is a number and not the null value of the data set. Sums are kept, not means of batches,
so a batch weighs as much as it holds valid values; they are added window by window in float64, so that the result is
the same to the last bit for every batch size.

Shape suffixes: B window of a batch, S sensor, H horizon, G group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import torch

#: Rows of the sums: valid values, |error|, error squared, |error / truth|, values whose truth is not 0.
COUNT, ABSOLUTE, SQUARED, RELATIVE, NON_ZERO = range(5)


@dataclass(frozen=True)
class Score:
    """Errors over the valid values of one slice of the forecasts.

    Attributes
    ----------
    mae, rmse
        Mean absolute and root mean squared error, in the unit of the data; None without a valid value.
    mape
        Mean absolute error relative to the truth, in percent, over the values whose truth is not 0; None without one.
    count, mape_count
        Values that count in mae and rmse, and in mape.
    """

    mae: float | None
    rmse: float | None
    mape: float | None
    count: int
    mape_count: int

    def as_json(self) -> dict[str, Any]:
        """The five numbers, undefined ones as None."""
        return {
            "mae": self.mae,
            "rmse": self.rmse,
            "mape": self.mape,
            "count": self.count,
            "mape_count": self.mape_count,
        }


def valid(truth: ArrayLike, null: float | None = None) -> NDArray[np.bool_]:
    """Which true values count: numbers that are not the null value (None: every number counts)."""
    values = np.asarray(truth)
    there: NDArray[np.bool_] = np.isfinite(values)
    return there if null is None or math.isnan(null) else there & (values != values.dtype.type(null))


def score(truth: ArrayLike, forecast: ArrayLike, null: float | None = None) -> Score:
    """Errors of one array of forecasts; truth and forecast have the same shape.

    Raises
    ------
    ValueError
        The shapes differ, or the forecast is no number where the truth counts.
    """
    return _score(_terms(truth, forecast, null).reshape(NON_ZERO + 1, -1).sum(axis=1))


class ErrorSums:
    """Sums of errors over any number of batches, by sensor and horizon, and by groups of windows.

    Parameters
    ----------
    sensors, horizon
        Sizes of a forecast.
    null
        Null value of the data set; None: only NaN is left out.
    groups
        Names of groupings, each with its number of groups, such as ``{"hour": 24}``.
    """

    def __init__(
        self, sensors: int, horizon: int, null: float | None = None, groups: Mapping[str, int] | None = None
    ) -> None:
        self.null = null
        self.windows = 0
        self._sums_SH = np.zeros((NON_ZERO + 1, sensors, horizon))
        self._sums_GSH = {
            name: np.zeros((size, NON_ZERO + 1, sensors, horizon)) for name, size in (groups or {}).items()
        }

    def add(self, truth_BSH: ArrayLike, forecast_BSH: ArrayLike, **labels: NDArray[np.integer]) -> None:
        """Add the errors of some windows.

        Parameters
        ----------
        truth_BSH, forecast_BSH
            Shape (window, sensor, horizon), in the data's own units.
        labels
            For each grouping, the group of each window, shape (window,), or of each of its target steps, shape
            (window, horizon).

        Raises
        ------
        ValueError
            Shapes or groupings do not fit, or the forecast is no number where the truth counts.
        """
        if set(labels) != set(self._sums_GSH):
            raise ValueError(f"groupings {sorted(labels)}; expected {sorted(self._sums_GSH)}")
        terms_BSH = np.moveaxis(_terms(truth_BSH, forecast_BSH, self.null), 0, 1)
        if terms_BSH.shape[1:] != self._sums_SH.shape:
            raise ValueError(f"forecasts of shape {terms_BSH.shape[2:]}; expected {self._sums_SH.shape[1:]}")
        for terms_SH in terms_BSH:
            self._sums_SH += terms_SH
        for name, label_B in labels.items():
            self._add_group(self._sums_GSH[name], terms_BSH, np.asarray(label_B))
        self.windows += len(terms_BSH)

    @staticmethod
    def _add_group(sums_GSH: NDArray[np.float64], terms_BSH: NDArray[np.float64], label_B: NDArray[np.integer]) -> None:
        if label_B.shape not in ((len(terms_BSH),), (len(terms_BSH), terms_BSH.shape[-1])):
            raise ValueError(f"labels of shape {label_B.shape}; expected one a window, or one a target step")
        steps_H = np.arange(terms_BSH.shape[-1])
        for label, terms_SH in zip(label_B, terms_BSH, strict=True):
            # the steps differ, so no place is added to twice
            sums_GSH[label, :, :, steps_H] += np.moveaxis(terms_SH, -1, 0)

    def total(self) -> Score:
        """Errors over all valid values."""
        return _score(self._sums_SH.sum(axis=(1, 2)))

    def by_horizon(self) -> list[Score]:
        """Errors of each step ahead, over all sensors."""
        return [_score(sums) for sums in self._sums_SH.sum(axis=1).T]

    def by_sensor(self) -> list[Score]:
        """Errors of each sensor, over all steps ahead."""
        return [_score(sums) for sums in self._sums_SH.sum(axis=2).T]

    def over_sensors(self, chosen: NDArray[np.integer] | NDArray[np.bool_]) -> Score:
        """Errors of some sensors, such as those of one lane number, over all steps ahead."""
        return _score(self._sums_SH[:, chosen].sum(axis=(1, 2)))

    def by_group(self, name: str) -> list[Score]:
        """Errors of each group of one grouping, over all sensors and steps ahead."""
        return [_score(sums) for sums in self._sums_GSH[name].sum(axis=(2, 3))]

    def by_group_and_sensor(self, name: str) -> list[list[Score]]:
        """Errors of each group of one grouping, sensor by sensor."""
        return [[_score(sums) for sums in group.T] for group in self._sums_GSH[name].sum(axis=3)]

    def by_group_and_horizon(self, name: str) -> list[list[Score]]:
        """Errors of each group of one grouping, step ahead by step ahead."""
        return [[_score(sums) for sums in group.T] for group in self._sums_GSH[name].sum(axis=2)]


def masked_l1(forecast: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Mean absolute error over the true values that are numbers, as a loss: a missing truth has no gradient.

    Zero where no value counts.
    """
    import torch

    there = torch.isfinite(truth)
    error = torch.where(there, forecast - torch.where(there, truth, 0), 0).abs()
    return error.sum() / there.sum().clamp(min=1)


def _terms(truth: ArrayLike, forecast: ArrayLike, null: float | None) -> NDArray[np.float64]:
    """What each value adds to the sums, shape (5, ...)."""
    true, told = np.asarray(truth), np.asarray(forecast)
    if true.shape != told.shape:
        raise ValueError(f"a truth of shape {true.shape} and a forecast of shape {told.shape}; expected the same")
    counts = valid(true if true.dtype.kind == "f" else true.astype(np.float64), null)
    if not np.isfinite(told[counts]).all():
        place = np.argwhere(counts & ~np.isfinite(told))[0].tolist()
        raise ValueError(f"the forecast is no number at {place}, where the truth is {true[tuple(place)]}")
    error = np.abs(np.where(counts, told.astype(np.float64) - np.where(counts, true, 0), 0))
    relative = counts & (true != 0)
    ratio = error / np.where(relative, np.abs(true.astype(np.float64)), 1) * relative
    return np.stack([counts.astype(np.float64), error, error**2, ratio, relative.astype(np.float64)])


def _score(sums: NDArray[np.float64]) -> Score:
    count, non_zero = int(sums[COUNT]), int(sums[NON_ZERO])
    return Score(
        mae=float(sums[ABSOLUTE] / count) if count else None,
        rmse=math.sqrt(sums[SQUARED] / count) if count else None,
        mape=float(100 * sums[RELATIVE] / non_zero) if non_zero else None,
        count=count,
        mape_count=non_zero,
    )
