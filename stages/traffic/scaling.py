"""Standardisation that is fitted on training values alone: mean and standard deviation of what was measured.

Shape suffixes: T time, S sensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.traffic.scores import valid


@dataclass(frozen=True)
class Scaling:
    """Mean and scale of each sensor; ``(x - mean) / scale`` and its inverse.

    Attributes
    ----------
    mean_S, scale_S
        In the unit of the data, float32, shape (sensor,). A scale is never 0.
    constant_S
        Sensors whose training values are all equal: their standard deviation is 0, and their scale is 1.
    empty_S
        Sensors without a training value: they have the mean and the scale of all values together.
    """

    mean_S: NDArray[np.float32]
    scale_S: NDArray[np.float32]
    constant_S: NDArray[np.bool_]
    empty_S: NDArray[np.bool_]

    def standardised(self, x: Any, sensor_axis: int = -1) -> Any:
        """Values without unit; an array or a tensor with the sensors along one axis."""
        mean, scale = self._along(x, sensor_axis)
        return (x - mean) / scale

    def restored(self, z: Any, sensor_axis: int = -1) -> Any:
        """Values in the unit of the data again."""
        mean, scale = self._along(z, sensor_axis)
        return z * scale + mean

    def _along(self, x: Any, sensor_axis: int) -> tuple[Any, Any]:
        shape = [1] * len(x.shape)
        shape[sensor_axis] = -1
        mean, scale = self.mean_S.reshape(shape), self.scale_S.reshape(shape)
        if isinstance(x, np.ndarray):
            return mean, scale
        import torch

        return torch.from_numpy(mean).to(x.device), torch.from_numpy(scale).to(x.device)


def fit(
    values_TS: NDArray[np.floating],
    ranges: tuple[int, int] | list[tuple[int, int]],
    *,
    null: float | None = None,
    per_sensor: bool = True,
) -> Scaling:
    """Mean and population standard deviation of the training values that are numbers and not the null value.

    Parameters
    ----------
    values_TS
        The series, shape (time, sensor).
    ranges
        Half-open range, or ranges, of training steps; nothing outside them is read.
    null
        Null value of the data set; None: only NaN is left out.
    per_sensor
        One mean and scale a sensor; else one pair for all, given to each sensor.

    Raises
    ------
    ValueError
        There is no training value at all.
    """
    pairs = [ranges] if isinstance(ranges, tuple) else ranges
    count_S, sum_S = (np.zeros(values_TS.shape[1]) for _ in range(2))
    for start, stop in pairs:
        part_TS = values_TS[start:stop]
        there_TS = valid(part_TS, null)
        count_S += there_TS.sum(axis=0)
        sum_S += np.where(there_TS, part_TS, 0).sum(axis=0, dtype=np.float64)
    if not count_S.any():
        raise ValueError("no training value to fit a scale on: all are missing")
    overall = float(sum_S.sum() / count_S.sum())
    mean_S = (
        np.where(count_S > 0, sum_S / np.maximum(count_S, 1), overall) if per_sensor else np.full_like(sum_S, overall)
    )
    own_S, common = _squares(values_TS, pairs, null, mean_S), _squares(values_TS, pairs, null, overall)
    sd = np.sqrt(common.sum() / count_S.sum())
    sd_S = np.where(count_S > 0, np.sqrt(own_S / np.maximum(count_S, 1)), sd) if per_sensor else np.full_like(sum_S, sd)
    # equal values leave a rest of rounding in the sum of squares
    constant_S = sd_S <= 1e-6 * np.maximum(np.abs(mean_S), 1e-12)
    return Scaling(
        mean_S.astype(np.float32), np.where(constant_S, 1, sd_S).astype(np.float32), constant_S, count_S == 0
    )


def _squares(
    values_TS: NDArray[np.floating], pairs: list[tuple[int, int]], null: float | None, mean: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Sum of the squared distances of each sensor's training values from a mean."""
    total_S = np.zeros(values_TS.shape[1])
    for start, stop in pairs:
        part_TS = values_TS[start:stop]
        total_S += np.where(valid(part_TS, null), (part_TS - mean) ** 2, 0).sum(axis=0, dtype=np.float64)
    return total_S
