"""What a target and a source of roads give: series, clock, the steps that may be learnt from, and their scale.

Sets differ in unit and step (km/h and mph, 5 minutes and an hour). They are made comparable by the series themselves:
each window is normalised by its own mean and standard deviation, each set has a level and a scale, and a step is a
step. Missing values stay missing: the network sees which ones they are, the baselines carry the last one forward, and a
missing target counts nowhere.

Shape suffixes: T time, S sensor, L step of the context, H step of the horizon, F feature of the clock, W window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.accepted.traffic import DOMAIN, Accepted, open_set
from stages.artifacts import ingested
from stages.errors import DataError
from stages.runtime import random_numbers
from stages.systems.minitraffic.settings import Goal, Train
from stages.traffic.clock import day_circle, slot_of_day
from stages.traffic.windows import Windows

Range = tuple[int, int]


@dataclass(frozen=True)
class Panel:
    """Series that are learnt from together, of one set.

    Attributes
    ----------
    key
        Name of the set.
    values_TS
        float32 in the set's unit, NaN where missing.
    clock_TF
        Sine and cosine of the time of day and 1; three zeros without a clock.
    train, validation
        Steps that may be learnt from, and steps that choose; ``validation`` is None where the set has none.
    level, scale
        Typical value, and typical standard deviation within a window, of the steps that they may be taken from.
    level_S
        What a sensor is taken to be at where a window has no value of it: the mean of its training steps.
    """

    key: str
    values_TS: NDArray[np.float32]
    clock_TF: NDArray[np.float32]
    train: Range
    validation: Range | None
    level: float
    scale: float
    level_S: NDArray[np.float32]


@dataclass(frozen=True)
class Target:
    """A set to forecast.

    Attributes
    ----------
    goal
        Its block in params.yaml.
    accepted
        The set through its gate.
    context, horizon
        Steps that a forecast sees, and steps that are forecast.
    values_TS
        The series, float32, NaN where missing.
    clock_TF
        Sine and cosine of the time of day and 1; three zeros without a clock.
    """

    goal: Goal
    accepted: Accepted
    context: int
    horizon: int
    values_TS: NDArray[np.float32]
    clock_TF: NDArray[np.float32]

    @property
    def key(self) -> str:
        """Name of the set."""
        return self.accepted.key

    @property
    def sensors(self) -> int:
        """Number of sensors."""
        return int(self.values_TS.shape[1])

    @property
    def own_roads(self) -> NDArray[np.float32] | None:
        """Roads of the same set, which a lane target may learn from over the whole training part."""
        return self.accepted.roads_TR if self.goal.mode == "lane" else None

    @property
    def slots(self) -> int:
        """Slots of the day; one where the set has no clock, so that its profile is a mean."""
        return self.accepted.steps_per_day if self.accepted.clock else 1

    def slot(self) -> NDArray[np.int64]:
        """Slot of the local day of each step; 0 without a clock."""
        if not self.accepted.clock:
            return np.zeros(len(self.values_TS), np.int64)
        found = slot_of_day(self.accepted.local().minute_T, self.accepted.step_minutes)
        return np.minimum(found, self.slots - 1)  # a step that does not divide the day leaves a short last slot

    def windows(self, part: str, stride: int = 1) -> Windows[NDArray[np.float32]]:
        """Windows of one part."""
        return self.accepted.windows(part, self.context, self.horizon, stride)

    def panel(self, block: Range) -> Panel:
        """The series with few steps to learn from; level and scale are the roads' where a lane target has roads."""
        roads_TR, train = self.own_roads, self.accepted.part("train")
        typical = (self.values_TS, block) if roads_TR is None else (roads_TR, train)
        level, scale = level_and_scale(*typical, self.context)
        return Panel(
            key=self.key,
            values_TS=self.values_TS,
            clock_TF=self.clock_TF,
            train=block,
            validation=self.accepted.part("validation"),
            level=level,
            scale=scale,
            level_S=sensor_levels(self.values_TS, block, level),
        )


def open_target(goal: Goal, train: Train) -> Target:
    """Open a target through its gate.

    Raises
    ------
    DataError
        The set is too short for a window in its training, validation or test part, or a lane target has no lanes.
    """
    accepted = open_set(goal.set, goal.variable)
    file = ingested(DOMAIN, goal.set) / "data.zarr"
    if goal.mode == "lane" and not accepted.is_lanes:
        raise DataError(
            file,
            found="no lanes",
            expected="sensors of single lanes for a target of mode lane",
            remedy=f"Give the target {goal.set} the mode road in params.yaml.",
        )
    for part in ("train", "validation", "test"):
        start, stop = accepted.parts.get(part, (0, 0))
        if stop - start < train.context + train.horizon:
            raise DataError(
                file,
                found=f"{stop - start} steps in the part {part}",
                expected=f"at least one window of {train.context} + {train.horizon} steps",
                remedy="Give a longer set, other shares in traffic.splits, or a shorter context.",
            )
    return Target(goal, accepted, train.context, train.horizon, accepted.values_TS, clock_features(accepted))


def open_source(key: str, train: Train) -> tuple[Panel, bool]:
    """Roads of a set (its sensors where it has no roads) to pre-train on, and whether they are simulated."""
    accepted = open_set(key)
    values_TS = accepted.values_TS if accepted.roads_TR is None else accepted.roads_TR
    part = accepted.part("train")
    validation = accepted.parts.get("validation")
    length = train.context + train.horizon
    if part[1] - part[0] < length:
        raise DataError(
            ingested(DOMAIN, key) / "data.zarr",
            found=f"{part[1] - part[0]} training steps",
            expected=f"at least one window of {train.context} + {train.horizon} steps",
            remedy="Take the set out of systems.minitraffic.train.pretraining.roads, or give a longer one.",
        )
    level, scale = level_and_scale(values_TS, part, train.context)
    panel = Panel(
        key=key,
        values_TS=values_TS,
        clock_TF=clock_features(accepted),
        train=part,
        validation=validation if validation and validation[1] - validation[0] >= length else None,
        level=level,
        scale=scale,
        level_S=sensor_levels(values_TS, part, level),
    )
    return panel, accepted.simulated


def clock_features(accepted: Accepted) -> NDArray[np.float32]:
    """Sine and cosine of the local time of day, and 1; three zeros for each step of a set without a clock."""
    steps = len(accepted.time_T)
    if not accepted.clock:
        return np.zeros((steps, 3), np.float32)
    return np.concatenate([day_circle(accepted.local().minute_T), np.ones((steps, 1), np.float32)], axis=1)


def level_and_scale(values_TS: NDArray[np.float32], steps: Range, context: int) -> tuple[float, float]:
    """Mean of the measured values, and mean over windows of ``context`` steps of their standard deviation.

    The standard deviation within windows is the same for few steps and for many, which that of whole series is not. It
    is 1 where nothing moves.
    """
    part_TS = values_TS[slice(*steps)]
    there_TS = np.isfinite(part_TS)
    level = float(part_TS[there_TS].mean(dtype=np.float64)) if there_TS.any() else 0.0
    whole = max(1, len(part_TS) // context) * context
    cut = part_TS[:whole].T.reshape(part_TS.shape[1], -1, min(context, len(part_TS)))
    there = np.isfinite(cut)
    count = there.sum(axis=-1)
    mean = np.where(there, cut, 0).sum(axis=-1, dtype=np.float64) / np.maximum(count, 1)
    square = np.where(there, (cut - mean[..., None]) ** 2, 0).sum(axis=-1) / np.maximum(count, 1)
    measured = count > 1
    scale = float(np.sqrt(square[measured]).mean()) if measured.any() else 0.0
    return level, scale if scale > 0 else 1.0


def sensor_levels(values_TS: NDArray[np.float32], steps: Range, otherwise: float) -> NDArray[np.float32]:
    """Mean of each sensor's measured training values; ``otherwise`` where it has none, shape (sensor,)."""
    part_TS = values_TS[slice(*steps)]
    there_TS = np.isfinite(part_TS)
    count_S = there_TS.sum(axis=0)
    sum_S = np.where(there_TS, part_TS, 0).sum(axis=0, dtype=np.float64)
    return np.where(count_S > 0, sum_S / np.maximum(count_S, 1), otherwise).astype(np.float32)


def few_shot_block(train: Range, share: float, *, length: int, windows: int, seed: int, key: str) -> Range:
    """A contiguous block of the training part, placed by the seed: days in a row, as a new detector would give them.

    Parameters
    ----------
    train
        Steps of the training part.
    share
        Share of these steps.
    length
        Steps of a window.
    windows
        The block is lengthened to hold this many windows, at most to the training part.
    seed, key
        Place the block: the same for every arm.
    """
    start, stop = train
    steps = min(max(round(share * (stop - start)), length + windows - 1), stop - start)
    place = random_numbers(seed, "block", key, f"{share:g}").integers(0, stop - start - steps, endpoint=True)
    return start + int(place), start + int(place) + steps
