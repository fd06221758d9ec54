"""Headline, claims and figures of MiniTraffic: what is compared with what, and when something counts as shown.

A difference is MiniTraffic's error less another arm's, paired over the same blocks and seeds; it shows where its whole
95 % interval lies below zero on the target that counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.metrics.summary import Claim, Headline, Verdict
from stages.systems.minitraffic.scores_by_block import SCORES, ErrorTable, Interval, interval, paired, value_of
from stages.systems.minitraffic.settings import ABLATIONS, ARMS, BAR, BASELINES, MAIN

#: The share that leads the tables: of those trained, the nearest to it.
HEADLINE_SHARE = 0.05
#: What was learnt from the target's own few data without any pre-training.
TASK_SPECIFIC = (*BASELINES, BAR)
#: Units of the data that people write otherwise.
WRITTEN = {"1": "", "km h-1": "km/h", "m s-1": "m/s", "veh h-1": "veh/h", "veh per step": "vehicles a step"}
HEAVIER = 2.0  # an arm is heavier from this ratio of parameters and of FLOPs on


@dataclass(frozen=True)
class Cost:
    """Numbers an arm learns, those updated in fine-tuning, and FLOPs of forward passes of all sensors.

    Attributes
    ----------
    parameters, updated
        Learned numbers that a forecast uses; how many of them the target's own data set.
    forward
        FLOPs of the forecast of one window of all sensors.
    training, pretraining
        FLOPs of training on the target and on roads, three forward passes a step; 0 for arms solved in closed form.
    """

    parameters: int
    updated: int
    forward: int
    training: float
    pretraining: float


@dataclass(frozen=True)
class Tested:
    """One target: what it is, and how it was tested.

    Attributes
    ----------
    key, mode, unit, simulated
        Name of the set; lane or road; unit of the values; whether they are simulated.
    sensor_ids, lanes, road_ids
        Names in the order of the positions; road and lane number of a lane target's sensors, else empty.
    windows, stride, blocks, block_noun
        Test windows and the steps between them, the blocks that are resampled, and what a block is.
    records
        Sensor-days of the test part that were accepted.
    step_minutes, clock, horizon
        Of the set, and the steps that are forecast.
    sources, own_roads
        Sets whose roads were pre-trained on, simulated ones marked; whether this set's own roads are among them.
    few
        Share -> steps of its block and windows in it, as the first seed has it.
    arms
        Arms of this target, in the order of the tables.
    """

    key: str
    mode: str
    unit: str
    simulated: bool
    sensor_ids: tuple[str, ...]
    windows: int
    stride: int
    blocks: int
    block_noun: str
    records: int
    step_minutes: float
    clock: bool
    horizon: int
    sources: tuple[str, ...]
    own_roads: bool
    few: Mapping[float, tuple[int, int]]
    arms: tuple[str, ...]

    @property
    def title(self) -> str:
        """Name for titles; a simulated set says so."""
        return f"{self.key}{' (simulated)' if self.simulated else ''}"

    @property
    def granularity(self) -> str:
        """What a sensor is: lane or road."""
        return self.mode

    @property
    def counted(self) -> str:
        """What was resampled, in words."""
        return f"{self.blocks} {plural(self.block_noun) if self.blocks != 1 else self.block_noun}"


def plural(noun: str) -> str:
    """Several days, hours, or blocks of hours."""
    return noun.replace("block", "blocks") if "block" in noun else f"{noun}s"


def leading(tested: Mapping[str, Tested]) -> str:
    """The target that counts: the first of mode lane, else the first."""
    return next((key for key, target in tested.items() if target.mode == "lane"), next(iter(tested)))


def headline_share(shares: list[float]) -> float:
    """The trained share that leads."""
    return min(shares, key=lambda share: (abs(math.log(share / HEADLINE_SHARE)), share))


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:g} %"


def amount(found: Interval, unit: str, sign: str = "") -> str:
    """An estimate with its interval in words; ``sign`` is + for differences."""
    told = f"{found.value:{sign}.3g}{f' {unit}' if unit else ''}"
    if math.isnan(found.low):
        return f"{told} (no interval)"
    return f"{told} [{found.low:{sign}.3g}, {found.high:{sign}.3g}]"


def unit_of(score: str, target: Tested) -> str:
    """Unit of a score as people write it: percent, or that of the data; occupancy is a share and has none."""
    return "%" if score == "mape" else WRITTEN.get(target.unit, target.unit)


def judged(difference: Interval) -> Verdict:
    """Shown where the whole interval lies below zero; not tested where there is none."""
    if not math.isfinite(difference.high):
        return "not tested"
    return "shown" if difference.high < 0 else "not shown"


class Comparison:
    """Comparisons of arms on one table of errors.

    Parameters
    ----------
    errors
        The errors.
    tested
        Target -> what it is.
    """

    def __init__(self, errors: ErrorTable, tested: Mapping[str, Tested]) -> None:
        self.errors = errors
        self.tested = tested

    def estimate(self, target: str, share: float, arm: str, score: str, granularity: str = "") -> Interval:
        """A score of one arm, with its interval."""
        kind = granularity or self.tested[target].granularity
        return interval(self.errors.blocked(target, share, arm, kind), score, target)

    def value(self, target: str, share: float, arm: str, score: str) -> float:
        """A score of one arm."""
        sums_GKC = self.errors.blocked(target, share, arm, self.tested[target].granularity)
        return float(value_of(sums_GKC.sum(axis=(0, 1)), score))

    def difference(
        self, target: str, share: float, arm: str, score: str, one: str = MAIN, granularity: str = ""
    ) -> tuple[Interval, float]:
        """Error of ``one`` less that of an arm, paired, and the same in percent of the arm's."""
        kind = granularity or self.tested[target].granularity
        first, second = (self.errors.blocked(target, share, name, kind) for name in (one, arm))
        return paired(first, second, score, target)

    def best(self, target: str, share: float, score: str = "mae", among: tuple[str, ...] = TASK_SPECIFIC) -> str:
        """The arm with the lowest error among some: chosen with hindsight, to its favour."""
        there = [arm for arm in self.tested[target].arms if arm in among]
        return min(there, key=lambda arm: self.value(target, share, arm, score))


def headline(found: Comparison, share: float, seeds: int) -> Headline:
    """MiniTraffic's MAE on the target that counts, beside the best task-specific model's."""
    key = leading(found.tested)
    target = found.tested[key]
    value, low, high = found.estimate(key, share, MAIN, "mae")
    best = found.best(key, share)
    return Headline(
        metric=f"MAE over {target.horizon} steps ahead, {target.mode}s of {key}, learnt from {percent(share)} of its "
        "training steps",
        unit=target.unit,
        value=value,
        low=None if math.isnan(low) else low,
        high=None if math.isnan(high) else high,
        baseline=f"{ARMS[best]}, the best task-specific model with the same few data and looks",
        baseline_value=found.value(key, share, best, "mae"),
        records=target.records,
        groups=target.blocks,
        split_unit="time",
        seeds=seeds,
        simulated=target.simulated,
    )


def claims(found: Comparison, shares: list[float], costs: Mapping[str, Cost]) -> list[Claim]:
    """Everything the paper claims that was trained for, on the target that counts."""
    key, share = leading(found.tested), headline_share(shares)
    few = [one for one in shares if one < 1]
    said = [_beats(found, key, one, score) for one in few for score in ("mae", "rmse")]
    for arm, claim in (
        ("no_fda", "FDA lowers the MAE"),
        ("no_clustering", "Clustering and its graph lower the MAE"),
        (BAR, "Pre-training on roads lowers the MAE against the same network from scratch"),
    ):
        said.append(_helps(found, key, share, shares, arm, claim))
    if costs:
        said.append(lighter(found, key, share, costs))
    return [*said, simple_baselines(found, shares)]


def _beats(found: Comparison, key: str, share: float, score: str) -> Claim:
    target = found.tested[key]
    others = [arm for arm in target.arms if arm in TASK_SPECIFIC]
    differences = {arm: found.difference(key, share, arm, score)[0] for arm in others}
    verdicts = [judged(difference) for difference in differences.values()]
    all_of: Verdict = (
        "not tested" if "not tested" in verdicts else "shown" if set(verdicts) == {"shown"} else "not shown"
    )
    unit = unit_of(score, target)
    own = found.estimate(key, share, MAIN, score)
    compared = "; ".join(f"{ARMS[arm]} {amount(difference, unit, '+')}" for arm, difference in differences.items())
    return Claim(
        claim=f"Pre-trained and fine-tuned, it has a lower {SCORES[score]} than every task-specific model with "
        f"{percent(share)} of the training steps ({target.title})",
        verdict=all_of,
        evidence=f"{SCORES[score]} {amount(own, unit)}; MiniTraffic less each, paired over {target.counted} and the "
        f"seeds: {compared}",
    )


def _helps(found: Comparison, key: str, share: float, shares: list[float], arm: str, claim: str) -> Claim:
    target = found.tested[key]
    claim = f"{claim} ({target.title}, {percent(share)})"
    if arm not in target.arms:
        untold = f"The arm {ARMS[arm]!r} was not trained at this size; `python -m stages params apply study` trains it."
        return Claim(claim=claim, verdict="not tested", evidence=untold)
    difference, relative = found.difference(key, share, arm, "mae")
    others = [f"RMSE {_difference(found, key, share, arm, 'rmse')}"]
    others += [f"at {percent(one)}: MAE {_difference(found, key, one, arm, 'mae')}" for one in shares if one != share]
    return Claim(
        claim=claim,
        verdict=judged(difference),
        evidence=f"MiniTraffic less {ARMS[arm]}, paired over {target.counted} and the seeds: MAE "
        f"{amount(difference, unit_of('mae', target), '+')}, {relative:+.1f} %; {'; '.join(others)}",
    )


def _difference(found: Comparison, key: str, share: float, arm: str, score: str) -> str:
    difference, relative = found.difference(key, share, arm, score)
    return f"{amount(difference, unit_of(score, found.tested[key]), '+')}, {relative:+.1f} %"


def lighter(found: Comparison, key: str, share: float, costs: Mapping[str, Cost]) -> Claim:
    """Whether it reaches an error that only heavier arms reach: arms whose error is no higher decide.

    An arm counts as no worse unless MiniTraffic's MAE is lower by a whole interval. Shown where such an arm has at
    least twice the parameters and FLOPs and none has fewer of both; not tested where no arm is as good.
    """
    target, own = found.tested[key], costs[MAIN]
    rivals = [arm for arm in target.arms if arm in TASK_SPECIFIC and arm != BAR and arm in costs]
    as_good = [arm for arm in rivals if judged(found.difference(key, share, arm, "mae")[0]) != "shown"]
    cheaper = [a for a in as_good if costs[a].parameters < own.parameters and costs[a].forward < own.forward]
    heavier = [
        arm
        for arm in as_good
        if costs[arm].parameters >= HEAVIER * own.parameters and costs[arm].forward >= HEAVIER * own.forward
    ]
    verdict: Verdict = "not shown" if cheaper else "shown" if heavier else "not tested"
    told = [f"{ARMS[a]} {costs[a].parameters} parameters, {costs[a].forward / 1e6:.3g} MFLOPs" for a in (MAIN, *rivals)]
    why = (
        f"as good and cheaper: {', '.join(ARMS[arm] for arm in cheaper)}"
        if cheaper
        else f"as good and heavier: {', '.join(ARMS[arm] for arm in heavier)}"
        if heavier
        else "no other arm is as good, so none can be compared at the same error; larger networks are compared in "
        "benchmarks/traffic_lanes.py"
    )
    return Claim(
        claim=f"It has far fewer parameters and FLOPs than models of the same error ({target.title}, {percent(share)})",
        verdict=verdict,
        evidence=f"{why}. A forecast of one window of all sensors: {'; '.join(told)}",
    )


def simple_baselines(found: Comparison, shares: list[float]) -> Claim:
    """Where a simple baseline has the lower error, over all targets, shares, MAE and RMSE."""
    below, verdicts = [], []
    for key, target in found.tested.items():
        for share in shares:
            for score in ("mae", "rmse"):
                best = found.best(key, share, score, tuple(BASELINES))
                difference, _ = found.difference(key, share, best, score)
                verdicts.append(judged(difference))
                if difference.value > 0:
                    gap = amount(difference, unit_of(score, target))
                    below.append(f"{target.title}, {percent(share)}, {SCORES[score]}: {ARMS[best]} is lower by {gap}")
    shown: Verdict = "not tested" if set(verdicts) == {"not tested"} else "not shown"
    return Claim(
        claim="No simple baseline has the lower error, on any target, at any share, in MAE or RMSE",
        verdict="shown" if set(verdicts) == {"shown"} else shown,
        evidence="; ".join(below)
        if below
        else f"MiniTraffic's error is the lower one in all {len(verdicts)} comparisons; its whole interval in "
        f"{verdicts.count('shown')}",
    )


def figures(found: Comparison, shares: list[float], costs: Mapping[str, Mapping[str, Cost]]) -> dict[str, Any]:
    """Flat figures for ``dvc metrics``: MAE of every target, share and arm; parameters and FLOPs of every arm."""
    return {
        "mae": {
            key: {
                f"{100 * share:g}_percent": {arm: found.value(key, share, arm, "mae") for arm in target.arms}
                for share in shares
            }
            for key, target in found.tested.items()
        },
        "parameters": {key: {arm: cost.parameters for arm, cost in mine.items()} for key, mine in costs.items()},
        "forward_flops": {key: {arm: cost.forward for arm, cost in mine.items()} for key, mine in costs.items()},
    }


def kind_of(arm: str) -> str:
    """What an arm is, for tables."""
    return "baseline" if arm in BASELINES else "ablation" if arm in ABLATIONS else "network"
