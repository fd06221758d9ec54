"""The tables of MiniTraffic's metrics.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.metrics.summary import Table
from stages.systems.minitraffic.comparisons import Comparison, Cost, Tested, judged, kind_of, percent, plural, unit_of
from stages.systems.minitraffic.scores_by_block import PERIODS, SCORES, empty_to_none, interval, value_of
from stages.systems.minitraffic.settings import ARMS, BASELINES, MAIN

#: Most sensors that a table shows one by one; above, the best and the worst.
SHOWN_SENSORS = 60
EDGE_SENSORS = 10


def with_unit(score: str, target: Tested) -> str:
    """Name of a column: a score and its unit."""
    unit = unit_of(score, target)
    return f"{SCORES[score]}, {unit}" if unit else SCORES[score]


def in_unit(target: Tested) -> str:
    """A comma and the unit of the data, if it has one."""
    unit = unit_of("mae", target)
    return f", {unit}" if unit else ""


def methods_table(found: Comparison, key: str, share: float, seeds: list[int]) -> Table:
    """All arms of one target at one share, with MiniTraffic's difference to each."""
    target = found.tested[key]
    rows: list[list[Any]] = []
    for arm in target.arms:
        mae, rmse, mape = (found.estimate(key, share, arm, score) for score in SCORES)
        gain: list[Any] = [None] * 4
        if arm != MAIN:
            difference, relative = found.difference(key, share, arm, "mae")
            gain = [*difference, relative]
        rows.append([ARMS[arm], kind_of(arm), *mae, *rmse, mape.value, *gain])
    names = [with_unit(score, target) for score in SCORES]
    return Table(
        title=f"{target.title}: arms at {percent(share)} of the training steps",
        caption=f"{described(target, share)} Means over {target.horizon} steps ahead and seeds "
        f"{', '.join(map(str, seeds))}; 95 % bootstrap intervals over {target.counted} and the seeds. Less: "
        "MiniTraffic's MAE less this arm's, paired; negative where MiniTraffic is better.",
        columns=[
            *("arm", "kind", names[0], "low", "high", names[1], "low", "high", names[2]),
            *("less", "less low", "less high", "less, %"),
        ],
        rows=empty_to_none(rows),
    )


def described(target: Tested, share: float) -> str:
    """What was tested and learnt from, for captions."""
    noun = "lanes" if target.mode == "lane" else "sensors"
    steps, windows = target.few[share]
    own = (
        f" The roads of {target.key} itself are among them over its whole training part; they are means of these very "
        "lanes."
        if target.own_roads
        else ""
    )
    every = " at every step" if target.stride == 1 else f" at every {target.stride}th step"
    few = f" Too few {plural(target.block_noun)} for a trustworthy interval." if target.blocks < 5 else ""
    return (
        f"{len(target.sensor_ids)} {noun}, {target.windows} test windows{every} ({target.step_minutes:g} "
        f"minutes a step); split by time with a gap of one window. Learnt from a contiguous block of {steps} steps "
        f"({windows} windows), placed by the seed. Pre-trained on the roads of {', '.join(target.sources) or 'none'}."
        f"{own} Missing values count nowhere.{few}"
    )


def share_table(found: Comparison, key: str, shares: list[float]) -> Table:
    """MAE and RMSE of every arm at every share: the few-shot curve."""
    target = found.tested[key]
    rows: list[list[Any]] = [
        [ARMS[arm], SCORES[score], *(found.value(key, share, arm, score) for share in shares)]
        for arm in target.arms
        for score in ("mae", "rmse")
    ]
    return Table(
        title=f"{target.title}: few-shot curve",
        caption="Errors on the whole test part by the share of the training steps that was learnt from"
        f"{in_unit(target)}. A share of a short set is lengthened to the least number of windows in params.yaml.",
        columns=["arm", "score", *(percent(share) for share in shares)],
        rows=empty_to_none(rows),
    )


def simple_table(found: Comparison, shares: list[float]) -> Table:
    """MiniTraffic beside the best simple baseline of each target, share and score: where the baseline wins."""
    rows: list[list[Any]] = []
    for key, target in found.tested.items():
        for share in shares:
            for score in SCORES:
                best = found.best(key, share, score, tuple(BASELINES))
                difference, relative = found.difference(key, share, best, score)
                wins = "baseline" if difference.low > 0 else "MiniTraffic" if judged(difference) == "shown" else "open"
                values = (found.value(key, share, arm, score) for arm in (best, MAIN))
                rows.append(
                    [
                        *(target.title, percent(share), with_unit(score, target), ARMS[best]),
                        *(*values, *difference, relative, wins),
                    ]
                )
    return Table(
        title="Where a simple baseline wins",
        caption="The simple baseline with the lowest error of each target, share and score, chosen with hindsight, and "
        "MiniTraffic. Less: MiniTraffic's less the baseline's. Lower: whose error is lower by the whole 95 % interval.",
        columns=[
            *("target", "share", "score", "best simple baseline", "baseline", "MiniTraffic"),
            *("less", "less low", "less high", "less, %", "lower"),
        ],
        rows=empty_to_none(rows),
    )


def horizon_table(found: Comparison, key: str, share: float) -> Table:
    """Errors of each arm by step ahead."""
    target = found.tested[key]
    leads = range(1, target.horizon + 1)
    rows: list[list[Any]] = []
    for arm in target.arms:
        sums = [found.errors.blocked(key, share, arm, target.granularity, "horizon", lead) for lead in leads]
        for score in SCORES:
            rows.append([ARMS[arm], with_unit(score, target), *(total(sums_GKC, score) for sums_GKC in sums)])
    return Table(
        title=f"{target.title}: errors by step ahead",
        caption=f"At {percent(share)}; steps of {target.step_minutes:g} minutes.",
        columns=["arm", "score", *(f"{lead * target.step_minutes:g} min" for lead in leads)],
        rows=empty_to_none(rows),
    )


def granularity_table(found: Comparison, key: str, share: float) -> Table:
    """Errors of lanes, and of roads as the means of their lanes' forecasts."""
    target = found.tested[key]
    kinds = ("lane", "road")
    rows: list[list[Any]] = []
    for arm in target.arms:
        sums = {kind: found.errors.blocked(key, share, arm, kind) for kind in kinds}
        gain: list[Any] = [None, None, None]
        if arm != MAIN:
            gain = list(found.difference(key, share, arm, "mae", granularity="road")[0])
        rows.append([ARMS[arm], *(total(sums[kind], score) for kind in kinds for score in SCORES), *gain])
    return Table(
        title=f"{target.title}: errors of lanes and of roads",
        caption=f"At {percent(share)}. A road is forecast by the mean of its lanes' forecasts and judged against the "
        "set's road values. Less: MiniTraffic's MAE of roads less this arm's.",
        columns=[
            "arm",
            *(f"{kind}: {with_unit(score, target)}" for kind in kinds for score in SCORES),
            *("road: less", "less low", "less high"),
        ],
        rows=empty_to_none(rows),
    )


def period_table(found: Comparison, key: str, share: float) -> Table:
    """MAE and RMSE of each arm by part of the day, with MiniTraffic's difference in MAE."""
    target, names = found.tested[key], list(PERIODS)
    there = found.errors.members(key, share, MAIN, "period", target.granularity)
    rows: list[list[Any]] = []
    for arm in target.arms:
        sums = [found.errors.blocked(key, share, arm, target.granularity, "period", place) for place in there]
        for score in ("mae", "rmse"):
            rows.append([ARMS[arm], with_unit(score, target), *(total(sums_GKC, score) for sums_GKC in sums)])
    missing = [name for place, name in enumerate(names) if place not in there]
    return Table(
        title=f"{target.title}: errors by time of day",
        caption=f"At {percent(share)}, by the local time of the step that is forecast."
        + (f" The test part holds no {', no '.join(missing)}." if missing else ""),
        columns=["arm", "score", *(names[place] for place in there)],
        rows=empty_to_none(rows),
    )


def lane_table(found: Comparison, key: str, share: float, order: str | None) -> Table:
    """Errors by lane number."""
    target = found.tested[key]
    lanes = found.errors.members(key, share, MAIN, "lane", "lane")
    rows: list[list[Any]] = []
    for arm in target.arms:
        found_lanes = [found.errors.blocked(key, share, arm, "lane", "lane", lane) for lane in lanes]
        for score in ("mae", "rmse"):
            rows.append([ARMS[arm], with_unit(score, target), *(total(sums_GKC, score) for sums_GKC in found_lanes)])
    return Table(
        title=f"{target.title}: errors by lane",
        caption=f"At {percent(share)}, over all roads{f'; lane {order}' if order else ''}.",
        columns=["arm", "score", *(f"lane {lane}" for lane in lanes)],
        rows=empty_to_none(rows),
    )


def sensor_table(found: Comparison, key: str, share: float, constant_S: NDArray[np.bool_]) -> Table:
    """MAE of single sensors: all, or the best and worst for MiniTraffic; sensors that never change stand apart."""
    target = found.tested[key]
    arms = shown_arms(found, key, share)
    value = {
        arm: [
            float(value_of(found.errors.sensor(key, share, arm, target.granularity, place), "mae"))
            for place in range(len(target.sensor_ids))
        ]
        for arm in arms
    }
    order = sorted(range(len(target.sensor_ids)), key=lambda place: (np.nan_to_num(value[MAIN][place], nan=1e9), place))
    scored = [place for place in order if np.isfinite(value[MAIN][place]) and not constant_S[place]]
    apart = [target.sensor_ids[place] for place in range(len(constant_S)) if place not in scored]
    many = len(scored) > SHOWN_SENSORS
    shown = scored[:EDGE_SENSORS] + scored[-EDGE_SENSORS:] if many else scored
    return Table(
        title=f"{target.title}: MAE by sensor",
        caption=f"At {percent(share)}{in_unit(target)}, in the order of "
        f"MiniTraffic's error{f': the {EDGE_SENSORS} best and worst of {len(scored)}' if many else ''}."
        + (f" Left out, since they have one value or none in the test part: {', '.join(apart)}." if apart else ""),
        columns=["sensor", *(ARMS[arm] for arm in arms)],
        rows=empty_to_none([[target.sensor_ids[place], *(value[arm][place] for arm in arms)] for place in shown]),
    )


def cost_table(target: Tested, share: float, costs: Mapping[str, Cost], grown: str) -> Table:
    """Parameters and FLOPs of every arm."""
    return Table(
        title=f"{target.title}: parameters and FLOPs at {percent(share)}",
        caption=f"A forecast of one window of all {len(target.sensor_ids)} sensors, counted by torch's flop counter "
        "(products and sums; normalisations and gathers are not in it). Training: three forward passes for each series "
        "that passed, two views of it in pre-training, all rates that were tried, mean over seeds; arms solved "
        f"in closed form have none. {grown}",
        columns=[
            *("arm", "learned numbers", "of them updated here", "FLOPs of a forecast", "FLOPs of training"),
            "FLOPs of pre-training",
        ],
        rows=[
            [ARMS[arm], cost.parameters, cost.updated, cost.forward, cost.training, cost.pretraining]
            for arm, cost in costs.items()
        ],
    )


def choices_table(found: Comparison, learnt: Mapping[str, Any], share: float) -> Table:
    """What every arm chose by the validation part, first seed."""
    rows: list[list[Any]] = []
    for key, target in found.tested.items():
        chosen = learnt[key]["chosen"][f"{share:g}"]
        for arm in target.arms:
            mine = chosen.get(arm, {})
            settings = ", ".join(
                f"{name.replace('_', ' ')} {value:g}"
                if isinstance(value, float)
                else f"{name.replace('_', ' ')} {value}"
                for name, value in sorted(mine.items())
                if name not in ("looks", "validation_mae") and value is not None
            )
            rows.append([target.title, ARMS[arm], settings or "nothing to choose", mine.get("looks")])
            rows[-1].append(mine.get("validation_mae"))
    return Table(
        title="What the validation part chose",
        caption=f"First seed, at {percent(share)}. Every arm may compare the same number of candidates; a step of 0 "
        "keeps the weights as they came.",
        columns=["target", "arm", "chosen", "candidates looked at", "MAE on the validation part"],
        rows=rows,
    )


def total(sums_GKC: NDArray[np.float64], score: str) -> float:
    """A score over all seeds and blocks."""
    return float(value_of(sums_GKC.sum(axis=(0, 1)), score))


def shown_arms(found: Comparison, key: str, share: float) -> list[str]:
    """Arms that pictures and long tables show: last value, the best task-specific ones, and MiniTraffic."""
    arms = found.tested[key].arms
    wanted = {"last_value", "scratch", found.best(key, share, "mae", tuple(BASELINES)), MAIN}
    return [arm for arm in arms if arm in wanted]


def bounds(found: Comparison, key: str, share: float, arm: str, by: str, member: int) -> tuple[float, float, float]:
    """MAE of one arm in one slice with its interval."""
    sums_GKC = found.errors.blocked(key, share, arm, found.tested[key].granularity, by, member)
    return interval(sums_GKC, "mae", key)
