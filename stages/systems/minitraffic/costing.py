"""What each arm of a target costs: read from its models and counted while it forecasts one window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages import artifacts
from stages.systems.minitraffic.comparisons import Cost
from stages.systems.minitraffic.cost import flops, growth_exponent, linear_flops, training_flops
from stages.systems.minitraffic.settings import PRETRAINED, Train, arms_of, sources

if TYPE_CHECKING:
    import polars as pl

    from stages.systems.minitraffic.forecasts import Forecaster
    from stages.systems.minitraffic.problem import Target

GROWN = (40, 400, 4000)
#: Pre-training passes two views of each series.
VIEWS = 2


def costs_of(
    name: str, seeds: list[int], train: Train, target: Target, learnt: dict[str, Any], share: float
) -> dict[str, Cost]:
    """Cost of every arm of a target at one share: forward of the first seed, training as the mean over seeds."""
    import polars as pl

    from stages.systems.minitraffic.forecasts import load

    history = pl.concat(
        artifacts.read_table(artifacts.model(name, seed) / "history.parquet").collect().with_columns(seed=pl.lit(seed))
        for seed in seeds
    )
    found: dict[str, Cost] = {}
    for arm in arms_of(train, target.goal):
        told = load(artifacts.model(name, seeds[0]), target, arm, share)
        forward = forward_flops(told, target)
        mine = history.filter((pl.col("target") == target.key) & (pl.col("share") == share) & (pl.col("arm") == arm))
        passes = dlinear_passes(train, target) if arm == "dlinear" else passed(mine, len(seeds))
        before = passed(pretraining_rows(history, train, target, arm), len(seeds)) if arm in PRETRAINED else 0
        found[arm] = Cost(
            parameters=int(learnt["parameters"][arm]),
            updated=int(learnt["trained"][arm]),
            forward=forward,
            training=training_flops(forward, target.sensors, passes),
            pretraining=VIEWS * training_flops(forward // told.copies, target.sensors, before),
        )
    return found


def forward_flops(told: Forecaster, target: Target) -> int:
    """FLOPs of the forecast of one window of all sensors."""
    from stages.systems.minitraffic.forecasts import predict

    weights = told.tensors.get("weights")
    if weights is not None:  # a regression in numpy, which the counter does not see
        return linear_flops(weights.shape[0], weights.shape[1], target.sensors)
    return flops(lambda: next(predict(told, target, batch=1)))


def passed(history: pl.DataFrame, seeds: int) -> int:
    """Series that passed while weights were learned, over all rates that were tried, mean over seeds."""
    import polars as pl

    mine = history.filter(pl.col("windows").is_not_null())
    return round(mine.group_by("seed", "rate").agg(pl.col("windows").max())["windows"].sum() / seeds)


def pretraining_rows(history: pl.DataFrame, train: Train, target: Target, arm: str) -> pl.DataFrame:
    """The pre-training that an arm starts from: one serves all arms and targets with the same roads and losses."""
    import polars as pl

    roads = "+".join(sources(train, target.goal, own=arm != "other_roads"))
    alike = [name for name, without in PRETRAINED.items() if without == PRETRAINED[arm]]
    return history.filter((pl.col("stage") == "pretraining") & (pl.col("target") == roads) & pl.col("arm").is_in(alike))


def dlinear_passes(train: Train, target: Target) -> int:
    """Series that pass in the training of DLinear."""
    settings = train.finetuning
    windows = max(1, settings.batch // target.sensors)
    return settings.steps * len(settings.dlinear_rates) * windows * target.sensors


def growth(train: Train) -> str:
    """How the FLOPs of a forecast grow with the number of sensors, in a sentence."""
    import numpy as np
    import torch

    from stages.systems.minitraffic.model import MiniTraffic, Neighbours, features
    from stages.systems.minitraffic.patches import normalise

    network = MiniTraffic(train.network, train.context, train.horizon)
    neighbours = train.clustering.neighbours
    counts = []
    for sensors in GROWN:
        place_SK = (torch.arange(sensors)[:, None] + torch.arange(1, neighbours + 1)) % sensors
        graph = Neighbours(place_SK, torch.ones_like(place_SK, dtype=torch.bool))
        seen = normalise(torch.zeros(1, sensors, train.context), torch.zeros(sensors), 1.0)
        known = features(seen, torch.zeros(1, 3), 0.0, 1.0)

        def once(seen: Any = seen, known: Any = known, graph: Any = graph) -> Any:
            with torch.no_grad():
                return network(seen, known, graph)

        counts.append(flops(once))
    told = ", ".join(f"{count / 1e6:.3g} million for {sensors}" for sensors, count in zip(GROWN, counts, strict=True))
    exponent = growth_exponent(np.array(GROWN).tolist(), counts)
    return (
        f"MiniTraffic's FLOPs grow with the sensors to the power {exponent:.2f}: {told} sensors, "
        f"{neighbours} neighbours each."
    )
