"""MiniTraffic beside PatchTST, its cost as sensors grow, and the seconds of its training.

All seconds are those of the processor, on one thread: a busy machine does not count.

step
    One update (forecast, loss, backward, optimiser) of 40 sensors x 16 windows, beside `transformers`' PatchTST with
    as many patches, layers, heads and units, its dense layers widened until it has as many parameters. Ours is with its
    context token and graph. Where transformers is not installed, a line says so: install it with
    `pip install --no-deps transformers`, and what it imports, into an environment that sees the project's packages.
forward
    A forecast of one window of 40, 400 and 4,000 sensors with 5 neighbours each; slopes are those of the logarithms: 1
    is a cost of O(kN). `slope_s_last` is that of the seconds from 400 to 4,000. The building of the graph is beside it:
    neighbours are searched inside clusters.
training
    Pre-training on 40 simulated roads and fine-tuning of 40 lanes, with the budget in params.yaml.

    python benchmarks/minitraffic.py [--no-training]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SENSORS, WINDOWS = 40, 16
GROWN = (40, 400, 4000)
RUNS = 15


def settings() -> Any:
    from stages.params import load_params
    from stages.systems.minitraffic.settings import Train

    return Train.model_validate(load_params(ROOT / "params.yaml")["systems"]["minitraffic"]["train"])


def simulated(sensors: int, steps: int, seed: int = 0) -> np.ndarray:
    """Speeds with a daily rhythm of 5-minute steps and noise."""
    rng = np.random.default_rng(seed)
    day = 2 * np.pi * np.arange(steps)[:, None] / 288 + rng.uniform(0, 1, sensors)
    return (60 - 15 * np.maximum(np.sin(day), 0) + rng.normal(scale=3, size=(steps, sensors))).astype(np.float32)


def series(train: Any, sensors: int, steps: int, block: tuple[int, int]) -> Any:
    from stages.systems.minitraffic.batches import loaded
    from stages.systems.minitraffic.problem import Panel, level_and_scale, sensor_levels

    values = simulated(sensors, steps)
    level, scale = level_and_scale(values, block, train.context)
    clock = np.zeros((steps, 3), np.float32)
    levels = sensor_levels(values, block, level)
    panel = Panel("simulated", values, clock, block, None, level, scale, levels)
    return loaded(panel, train.context, train.horizon, torch.device("cpu"))


def new_network(train: Any) -> Any:
    from stages.runtime import random_numbers
    from stages.systems.minitraffic.model import MiniTraffic, initialise

    network = MiniTraffic(train.network, train.context, train.horizon)
    initialise(network, random_numbers(0, "weights"))
    return network


def graph_of(sensors: int, train: Any) -> tuple[Any, float]:
    """A graph of random projections, and the seconds it took."""
    from stages.systems.minitraffic.clustering import sparse_graph
    from stages.systems.minitraffic.model import neighbours_on

    rng = np.random.default_rng(0)
    projection = rng.normal(size=(sensors, 16)).astype(np.float32)
    begin = time.process_time()
    graph = sparse_graph(projection, train.clustering.clusters, train.clustering.neighbours, rng)
    return neighbours_on(graph, torch.device("cpu")), time.process_time() - begin


def alternated(works: dict[str, Callable[[], Any]], runs: int = RUNS) -> dict[str, float]:
    """Median seconds of each work; they take turns, so that a busy machine slows all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(runs):
        for name, work in works.items():
            begin = time.process_time()
            work()
            seconds[name].append(time.process_time() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


def our_step(train: Any) -> tuple[Callable[[], Any], int]:
    from stages.systems.minitraffic.finetuning import forecast_batch
    from stages.traffic.scores import masked_l1

    network, (graph, _) = new_network(train), graph_of(SENSORS, train)
    source = series(train, SENSORS, 600, (0, 400))
    batch = source.at(np.arange(WINDOWS))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        seen = source.normalised(batch.context_BSL)
        forecast = forecast_batch(network, source, seen, batch.clock_BF, graph, 1)
        optimiser.zero_grad(set_to_none=True)
        masked_l1(forecast, batch.target_BSH).backward()
        optimiser.step()

    return step, size_of(network)


def size_of(network: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in network.parameters())


def peer_step(train: Any, parameters: int) -> tuple[Callable[[], Any], int, str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import transformers
            from transformers import PatchTSTConfig, PatchTSTForPrediction
    except ImportError:
        return None

    def sized(dense: int) -> Any:
        config = PatchTSTConfig(
            num_input_channels=SENSORS,
            context_length=train.context,
            prediction_length=train.horizon,
            patch_length=train.network.patch,
            patch_stride=train.network.stride,
            d_model=train.network.width,
            num_hidden_layers=train.network.layers,
            num_attention_heads=train.network.heads,
            ffn_dim=dense,
            loss="mse",
        )
        return PatchTSTForPrediction(config)

    narrow = 2 * train.network.width
    grows = (size_of(sized(narrow + 1)) - size_of(sized(narrow))) or 1
    network = sized(narrow + max(0, round((parameters - size_of(sized(narrow))) / grows)))
    source = series(train, SENSORS, 600, (0, 400))
    batch = source.at(np.arange(WINDOWS))
    past, future = (x.swapaxes(1, 2).contiguous() for x in (batch.context_BSL, batch.target_BSH))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        network(past_values=past, future_values=future).loss.backward()
        optimiser.step()

    return step, size_of(network), f"transformers {transformers.__version__} PatchTST"


def steps(train: Any) -> None:
    ours, count = our_step(train)
    peer = peer_step(train, count)
    works = {"ours": ours} if peer is None else {"ours": ours, "peer": peer[0]}
    seconds = alternated(works)
    line: dict[str, Any] = {
        "name": "minitraffic.step",
        "work": f"{WINDOWS} windows x {SENSORS} sensors, forward, backward, AdamW",
        "ours_s": round(seconds["ours"], 5),
        "parameters": count,
    }
    if peer is None:
        line["peer"] = "transformers is not installed: no comparison"
    else:
        line |= {"peer": peer[2], "peer_s": round(seconds["peer"], 5), "peer_parameters": peer[1]}
        line["ratio"] = round(seconds["peer"] / seconds["ours"], 2)
    print(json.dumps(line), flush=True)


def growth(train: Any) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from stages.systems.minitraffic.finetuning import forecast_windows

    network = new_network(train)
    works, flops, built = {}, {}, {}
    for sensors in GROWN:
        source = series(train, sensors, 60, (0, 40))
        graph, built[sensors] = graph_of(sensors, train)
        windows = source.windows((0, 60))
        works[str(sensors)] = lambda s=source, g=graph, w=windows: forecast_windows(network, s, g, 1, w, np.arange(1))
        with FlopCounterMode(display=False) as counter:
            works[str(sensors)]()
        flops[sensors] = counter.get_total_flops()
    seconds = alternated(works)
    for sensors in GROWN:
        line = {
            "name": "minitraffic.forward",
            "work": f"1 window x {sensors} sensors, {train.clustering.neighbours} neighbours",
            "ours_s": round(seconds[str(sensors)], 5),
            "flops": flops[sensors],
            "graph_s": round(built[sensors], 5),
        }
        print(json.dumps(line), flush=True)
    logs = np.log(np.array(GROWN))
    last = np.log([seconds[str(sensors)] for sensors in GROWN[-2:]])
    slope = {
        "slope_s_last": round(float(np.diff(last)[0] / np.diff(logs)[-1]), 3),
        "slope_s": round(float(np.polyfit(logs, np.log([seconds[str(n)] for n in GROWN]), 1)[0]), 3),
        "slope_flops": round(float(np.polyfit(logs, np.log([flops[n] for n in GROWN]), 1)[0]), 3),
    }
    print(json.dumps({"name": "minitraffic.forward", "work": "slope over sensors", **slope}), flush=True)


def training(train: Any) -> None:
    from stages.systems.minitraffic.finetuning import finetune
    from stages.systems.minitraffic.pretraining import pretrain
    from stages.systems.minitraffic.search import Judge

    source = series(train, SENSORS, 2400, (0, 1600))
    graph, _ = graph_of(SENSORS, train)
    begin = time.process_time()
    weights = pretrain([source], train, without="nothing", seed=0).weights
    seconds = {"pre-training": time.process_time() - begin}
    few = series(train, SENSORS, 2400, (200, 280))
    windows = few.windows((1624, 1900))
    host = type(windows)(few.panel.values_TS, train.context, train.horizon, 1624, 1900)
    judge = Judge(host, train.finetuning.validation)
    for arm in ("minitraffic", "scratch"):
        begin = time.process_time()
        finetune(weights, few, graph, arm=arm, mode="lane", train=train, judge=judge, seed=0)
        seconds[f"fine-tuning, {arm}"] = time.process_time() - begin
    for work, taken in seconds.items():
        line = {"name": "minitraffic.training", "work": f"{work}, {SENSORS} sensors", "ours_s": round(taken, 2)}
        print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-training", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    train = settings()
    steps(train)
    growth(train)
    if not options.no_training:
        training(train)


if __name__ == "__main__":
    main()
