"""Pre-training on roads: masked patches, forecasts, and the contrastive projection that the graph is built on.

Shape suffixes: B window, S sensor, L step of the context, H step of the horizon, P patch, D unit, F frequency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.runtime import random_numbers
from stages.systems.minitraffic.augmentation import drawn_noise, perturbed
from stages.systems.minitraffic.batches import CHUNK, Batch, Loaded, one_thread, spread
from stages.systems.minitraffic.clustering import Graph, info_nce, sparse_graph
from stages.systems.minitraffic.model import MiniTraffic, Neighbours, features, initialise, neighbours_on
from stages.systems.minitraffic.patches import (
    Normalised,
    drawn_mask,
    masked_error,
    patch_count,
    patches,
)
from stages.systems.minitraffic.settings import Fda, Train
from stages.traffic.scores import masked_l1

#: The graph joins after this share of the updates: before, projections tell little.
GRAPH_JOINS = 1 / 3
#: Windows that a series' projection is averaged over.
PROJECTED = 64
#: AdamW's decoupled weight decay.
DECAY = 1e-4


@dataclass(frozen=True)
class Pretrained:
    """A pre-trained network.

    Attributes
    ----------
    weights
        State dict on the CPU; it loads for any number of sensors.
    history
        step, loss, validation_mae (in the sets' typical standard deviations), windows: series passed so far.
    """

    weights: dict[str, Tensor]
    history: list[dict[str, Any]]


@one_thread()
def pretrain(sources: Sequence[Loaded], train: Train, *, without: str, seed: int) -> Pretrained:
    """Pre-train one network on the roads of one or several sets, in turns.

    Parameters
    ----------
    sources
        Panels of roads.
    train
        Settings.
    without
        What is left out: nothing, fda, clustering (contrast and graph), or forecast (reconstruction alone).
    seed
        Of weights, batches, masks and noise.
    """
    place = sources[0].values_TS.device
    network = MiniTraffic(train.network, train.context, train.horizon)
    initialise(network, random_numbers(seed, "weights"))
    network.to(place)
    settings = train.pretraining
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=DECAY, fused=True)
    rng = random_numbers(seed, "pretraining", *(source.panel.key for source in sources))
    joins = math.ceil(GRAPH_JOINS * settings.steps)
    graphs: list[Neighbours | None] = [None] * len(sources)
    history: list[dict[str, Any]] = []
    running: list[float] = []
    passed = 0
    for step in range(settings.steps):
        turn = step % len(sources)
        source = sources[turn]
        if step == joins and without not in ("clustering", "forecast"):
            graphs = [graph_of(network, each, each.panel.train, train, seed)[1] for each in sources]
        for group in optimiser.param_groups:
            group["lr"] = cosine(settings.learning_rate, step, settings.steps)
        windows = source.windows(source.panel.train)
        batch = source.batch(windows, rng.integers(0, len(windows), source.passes(settings.batch)))
        loss = pretraining_loss(network, source, batch, graphs[turn], train, without, rng)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        running.append(loss.item())
        passed += len(batch.context_BSL) * source.series
        if (step + 1) % settings.check == 0 or step + 1 == settings.steps:
            found = [_validation(network, each, graph) for each, graph in zip(sources, graphs, strict=True)]
            known = [error for error in found if error is not None]
            history.append(
                {
                    "step": step + 1,
                    "loss": float(np.mean(running)),
                    "validation_mae": float(np.mean(known)) if known else None,
                    "windows": passed,
                }
            )
            running = []
    return Pretrained({name: value.cpu() for name, value in network.state_dict().items()}, history)


def pretraining_loss(
    network: MiniTraffic,
    source: Loaded,
    batch: Batch,
    graph: Neighbours | None,
    train: Train,
    without: str,
    rng: np.random.Generator,
) -> Tensor:
    """Masked L1 + L1 of the forecast + weighted InfoNCE of two views of each series.

    Both views have noise of FDA of their own; patches of the first are masked. The error of the forecast is in the
    set's typical standard deviations.
    """
    count = patch_count(train.context, train.network.patch, train.network.stride)
    views = [augmented(source, batch.context_BSL, train.fda, rng, off=without == "fda") for _ in range(2)]
    known = [features(seen, batch.clock_BF, source.panel.level, source.panel.scale) for seen in views]
    mask_BSP = torch.from_numpy(drawn_mask(tuple(batch.context_BSL.shape[:2]), count, train.pretraining.mask, rng))
    mask_BSP = mask_BSP.to(batch.context_BSL.device)
    token = network.encode(views[0], known[0], mask_BSP)
    cut = [patches(x, train.network.patch, train.network.stride) for x in (views[0].x_BSL, views[0].there_BSL)]
    loss = masked_error(network.reconstruct(token), cut[0], cut[1], mask_BSP)
    if without == "forecast" and not train.clustering.weight:
        return loss
    first_BSD = network.represent(token)
    second_BSD = network.represent(network.encode(views[1], known[1]))
    if without != "forecast":
        forecast_BSH = network.forecast(second_BSD, views[1], graph)
        loss = loss + masked_l1(forecast_BSH, batch.target_BSH) / source.panel.scale
    if without != "clustering" and train.clustering.weight:
        chosen = rng.integers(0, len(first_BSD))
        contrast = info_nce(
            network.project(first_BSD[chosen]), network.project(second_BSD[chosen]), train.clustering.temperature
        )
        loss = loss + train.clustering.weight * contrast
    return loss


def augmented(
    source: Loaded, context_BSL: Tensor, fda: Fda, rng: np.random.Generator, *, off: bool = False
) -> Normalised:
    """Normalised windows after FDA; missing values stay missing."""
    seen = source.normalised(context_BSL)
    if off or not fda.strength:
        return seen
    noise, mask = drawn_noise(tuple(context_BSL.shape[:2]), context_BSL.shape[2], fda.frequencies, rng)
    place = context_BSL.device
    # A missing value stands at the window's mean while frequencies are taken.
    moved_BSL = perturbed(seen.x_BSL, torch.from_numpy(noise).to(place), torch.from_numpy(mask).to(place), fda.strength)
    values_BSL = moved_BSL * seen.sd_BS[..., None] + seen.mean_BS[..., None]
    return source.normalised(torch.where(seen.there_BSL, values_BSL, context_BSL))


@torch.no_grad()
def graph_of(
    network: MiniTraffic, source: Loaded, steps: tuple[int, int], train: Train, seed: int
) -> tuple[Graph, Neighbours]:
    """Graph of a panel out of the projections of windows within some steps: never those of validation or test."""
    projection_SD = projections(network, source, steps)
    clustering = train.clustering
    graph = sparse_graph(
        projection_SD, clustering.clusters, clustering.neighbours, random_numbers(seed, "clusters", source.panel.key)
    )
    return graph, neighbours_on(graph, source.values_TS.device)


@torch.no_grad()
def projections(network: MiniTraffic, source: Loaded, steps: tuple[int, int]) -> NDArray[np.float32]:
    """Mean over windows of each series' projection, shape (series, unit)."""
    windows = source.windows(steps)
    chosen = spread(len(windows), PROJECTED)
    total: Tensor | None = None
    for part in np.array_split(chosen, max(1, -(-len(chosen) // source.passes(CHUNK)))):
        batch = source.batch(windows, part)
        seen = source.normalised(batch.context_BSL)
        known = features(seen, batch.clock_BF, source.panel.level, source.panel.scale)
        found = torch.nn.functional.normalize(network.project(network.represent(network.encode(seen, known))), dim=-1)
        total = found.sum(dim=0) if total is None else total + found.sum(dim=0)
    if total is None:
        raise ValueError("no window to project")
    return np.asarray((total / len(chosen)).cpu().numpy(), dtype=np.float32)


@torch.no_grad()
def _validation(network: MiniTraffic, source: Loaded, graph: Neighbours | None) -> float | None:
    """Error of the forecasts of some validation windows of a source, in its typical standard deviations."""
    if source.panel.validation is None:
        return None
    windows = source.windows(source.panel.validation)
    batch = source.batch(windows, spread(len(windows), source.passes(CHUNK)))
    seen = source.normalised(batch.context_BSL)
    forecast = network(seen, features(seen, batch.clock_BF, source.panel.level, source.panel.scale), graph)
    return masked_l1(forecast, batch.target_BSH).item() / source.panel.scale


def cosine(rate: float, step: int, steps: int) -> float:
    """Learning rate of a step: it falls from ``rate`` towards 0 along half a cosine."""
    return rate * 0.5 * (1 + math.cos(math.pi * step / steps))
