"""The candidates of each baseline on a target's few steps, and their forecasts out of what is stored.

Shape suffixes: B window, S sensor, L step of the context, H step of the horizon, V slot of the day, T time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.runtime import random_numbers
from stages.systems.minitraffic.baselines import (
    PENALTIES,
    PULLS,
    Doubles,
    Moments,
    carried_forward,
    complete_profile,
    grid,
    lag_regressors,
    last_value,
    moments,
    profile_regressors,
    pulled_profile,
    ridge,
    slot_means,
)
from stages.systems.minitraffic.patches import FLOOR
from stages.systems.minitraffic.problem import Panel, Range, Target, sensor_levels
from stages.systems.minitraffic.search import Candidate, Floats, Forecast, Tensors
from stages.systems.minitraffic.settings import Finetuning
from stages.traffic.scaling import fit
from stages.traffic.windows import Windows, batch_indices

#: Windows whose regressors are in memory at once.
CHUNK = 256
#: The road regression itself has a penalty that only keeps it solvable.
LITTLE = 1e-6


@dataclass(frozen=True)
class FewShot:
    """A target with the few steps that may be learnt from.

    Attributes
    ----------
    target
        The set.
    panel
        Its series with level, scale and the sensors' levels, out of the few steps (and the roads of a lane target).
    sources
        Panels of roads, for the regression that others are shrunk to.
    settings
        Budget.
    seed
        Of what is drawn.
    """

    target: Target
    panel: Panel
    sources: Sequence[Panel]
    settings: Finetuning
    seed: int

    @property
    def block(self) -> Range:
        """The few steps."""
        return self.panel.train

    def windows(self, panel: Panel | None = None) -> Windows[Floats]:
        """Windows within the few steps, or within the training steps of a source."""
        panel = panel or self.panel
        return Windows(panel.values_TS, self.target.context, self.target.horizon, *panel.train)


def candidates(arm: str, few: FewShot) -> Iterable[Candidate]:
    """Candidates of a baseline, as many as every arm may have."""
    return {
        "last_value": _last_value,
        "historical_average": _historical_average,
        "ridge": _ridge,
        "road_ridge": _road_ridge,
        "dlinear": _dlinear,
    }[arm](few)


def forecast_of(arm: str, tensors: Tensors, target: Target) -> Forecast:
    """Forecast of a baseline out of what is stored; last value stores levels alone."""
    if arm == "historical_average":
        return _historical_forecast(tensors["profile"], target.slot(), target.context, target.horizon)
    if arm in ("ridge", "road_ridge"):
        profile = tensors.get("profile")
        return _regression_forecast(
            tensors["weights"], tensors["level"], float(tensors["scale"]), profile, target.slot()
        )
    if arm == "dlinear":
        return _dlinear_forecast(tensors)
    return lambda windows, at: last_value(windows.batch(at)[0], tensors["level"], windows.horizon)


def _last_value(few: FewShot) -> Iterator[Candidate]:
    tensors: Tensors = {"level": few.panel.level_S}
    yield Candidate(tensors, {}, forecast_of("last_value", tensors, few.target))


def _historical_average(few: FewShot) -> Iterator[Candidate]:
    target, slot_T = few.target, few.target.slot()
    block = slice(*few.block)
    own_VS, count_VS = slot_means(few.panel.values_TS[block], slot_T[block], target.slots)
    base_VS = road_profile(target)
    if base_VS is None:
        base_VS = np.broadcast_to(few.panel.level_S.astype(np.float64), own_VS.shape)
    pulls = grid(PULLS, few.settings.looks) if target.slots > 1 else [PULLS[0]]
    for pull in pulls:
        tensors: Tensors = {"profile": pulled_profile(own_VS, count_VS, base_VS, pull).astype(np.float32)}
        yield Candidate(tensors, {"pull": pull}, forecast_of("historical_average", tensors, target))


def _historical_forecast(profile_VS: Floats, slot_T: NDArray[np.int64], context: int, horizon: int) -> Forecast:
    def forecast(windows: Windows[Floats], at: NDArray[np.int64]) -> Floats:
        step_BH = windows.starts_W[at][:, None] + context + np.arange(horizon)
        return np.asarray(profile_VS[slot_T[step_BH]].swapaxes(1, 2))

    return forecast


def road_profile(target: Target) -> Doubles | None:
    """Profile of each sensor's road over the whole training part, shape (slot, sensor); None without roads or clock.

    A sensor without a road has the mean of the roads.
    """
    roads_TR = target.own_roads
    if roads_TR is None or target.slots == 1:
        return None
    train = slice(*target.accepted.part("train"))
    mean_VR, _ = slot_means(roads_TR[train], target.slot()[train], target.slots)
    level_R = sensor_levels(roads_TR, target.accepted.part("train"), 0.0)
    complete_VR = complete_profile(mean_VR, level_R)
    road_S = target.accepted.road_of_sensor_S
    return np.where(road_S >= 0, complete_VR[:, road_S], complete_VR.mean(axis=1, keepdims=True))


def _ridge(few: FewShot) -> Iterator[Candidate]:
    sums = moments(_rows(few.windows(), few.panel.level_S, few.panel.scale, None, few.target.slot()))
    yield from _regressions("ridge", few, sums, grid(PENALTIES, few.settings.looks))


def _road_ridge(few: FewShot) -> Iterator[Candidate]:
    target, slot_T = few.target, few.target.slot()
    profile_VS = road_profile(target)
    own = moments(_rows(few.windows(), few.panel.level_S, few.panel.scale, profile_VS, slot_T))
    if profile_VS is not None and target.own_roads is not None:
        train = target.accepted.part("train")
        roads_TR = target.own_roads
        mean_VR, _ = slot_means(roads_TR[slice(*train)], slot_T[slice(*train)], target.slots)
        level_R = sensor_levels(roads_TR, train, few.panel.level)
        windows = Windows(roads_TR, target.context, target.horizon, *train)
        roads = moments(_rows(windows, level_R, few.panel.scale, complete_profile(mean_VR, level_R), slot_T))
    else:
        roads = pooled(
            moments(
                _rows(Windows(each.values_TS, target.context, target.horizon, *each.train), each.level_S, each.scale)
            )
            for each in few.sources
        )
    towards_PH = ridge(roads, LITTLE)
    tensors: Tensors = {} if profile_VS is None else {"profile": profile_VS.astype(np.float32)}
    yield from _regressions("road_ridge", few, own, grid(PENALTIES, few.settings.looks), towards_PH, tensors)


def _regressions(
    arm: str,
    few: FewShot,
    sums: Moments,
    penalties: list[float],
    towards_PH: Doubles | None = None,
    stored: Tensors | None = None,
) -> Iterator[Candidate]:
    for penalty in penalties:
        tensors: Tensors = {
            "weights": ridge(sums, penalty, towards_PH).astype(np.float32),
            "level": few.panel.level_S,
            "scale": np.array(few.panel.scale, np.float32),
            **(stored or {}),
        }
        yield Candidate(tensors, {"penalty": penalty}, forecast_of(arm, tensors, few.target))


def pooled(several: Iterable[Moments]) -> Moments:
    """Sums over sets, each with the weight of one row a row: sets with more rows weigh more."""
    found = list(several)
    return Moments(
        np.sum([each.gram_PP for each in found], axis=0),
        np.sum([each.cross_PH for each in found], axis=0),
        sum(each.rows for each in found),
    )


def _regressors(
    windows: Windows[Floats],
    at: NDArray[np.int64],
    level_S: Floats,
    scale: float,
    profile_VS: NDArray[np.floating] | None,
    slot_T: NDArray[np.int64] | None,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Regressors in units of the set's scale, last values, standard deviations and targets of some windows."""
    context_BSL, target_BSH = windows.batch(at)
    filled_BSL = carried_forward(context_BSL, level_S)
    last_BS = filled_BSL[..., -1]
    parts = [lag_regressors(filled_BSL) / scale, np.ones((*last_BS.shape, 1), np.float32)]
    if profile_VS is not None and slot_T is not None:
        now_B = windows.starts_W[at] + windows.context - 1
        ahead_BH = now_B[:, None] + 1 + np.arange(windows.horizon)
        ahead_BSH = profile_VS[slot_T[ahead_BH]].swapaxes(1, 2)
        told = profile_regressors(last_BS, profile_VS[slot_T[now_B]].astype(np.float32), ahead_BSH.astype(np.float32))
        parts.append(told / scale)
    return np.concatenate(parts, axis=-1), last_BS, filled_BSL.std(axis=-1), target_BSH


def _rows(
    windows: Windows[Floats],
    level_S: Floats,
    scale: float,
    profile_VS: NDArray[np.floating] | None = None,
    slot_T: NDArray[np.int64] | None = None,
) -> Iterator[tuple[Floats, Floats]]:
    """Rows of a regression; each weighs 1 / (standard deviation of its window): busy hours do not drown the others."""
    for at in batch_indices(len(windows), CHUNK):
        x_BSP, last_BS, sd_BS, target_BSH = _regressors(windows, at, level_S, scale, profile_VS, slot_T)
        weight_BS1 = np.sqrt(sd_BS / scale + FLOOR)[..., None]
        yield x_BSP / weight_BS1, (target_BSH - last_BS[..., None]) / scale / weight_BS1


def _regression_forecast(
    weights_PH: Floats,
    level_S: Floats,
    scale: float,
    profile_VS: Floats | None,
    slot_T: NDArray[np.int64],
) -> Forecast:
    def forecast(windows: Windows[Floats], at: NDArray[np.int64]) -> Floats:
        x_BSP, last_BS, _, _ = _regressors(windows, at, level_S, scale, profile_VS, slot_T)
        return np.asarray(last_BS[..., None] + scale * (x_BSP @ weights_PH), dtype=np.float32)

    return forecast


def _dlinear(few: FewShot) -> Iterator[Candidate]:
    from stages.systems.minitraffic.dlinear import Plan, snapshots

    settings, windows = few.settings, few.windows()
    scaling = fit(few.panel.values_TS, few.block)
    scales: Tensors = {"mean": scaling.mean_S, "scale": scaling.scale_S, "level": few.panel.level_S}
    size = max(1, settings.batch // few.target.sensors)
    steps, check = settings.budget("dlinear", few.target.goal.mode)
    for number, rate in enumerate(settings.rates("dlinear")):
        plan = Plan(rate, steps, size, check)
        rng = random_numbers(few.seed, "dlinear", few.target.key)
        for step, _, model in snapshots(windows, few.panel.level_S, scaling.mean_S, scaling.scale_S, plan, rng):
            if step == 0 and number:
                continue  # the same for every rate
            tensors = {f"dlinear.{name}": value.numpy().copy() for name, value in model.state_dict().items()} | scales
            yield Candidate(tensors, {"rate": rate, "step": step}, forecast_of("dlinear", tensors, few.target))


def _dlinear_forecast(tensors: Tensors) -> Forecast:
    from stages.systems.minitraffic.dlinear import forecast, restored

    model = restored(tensors)

    def told(windows: Windows[Floats], at: NDArray[np.int64]) -> Floats:
        filled_BSL = carried_forward(windows.batch(at)[0], tensors["level"])
        return forecast(model, filled_BSL, tensors["mean"], tensors["scale"])

    return told
