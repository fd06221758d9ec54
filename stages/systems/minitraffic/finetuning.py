"""Fine-tuning of a network on a target's few steps, in both modes.

lane
    FDA stays; the adaptive head and the reduction head are trained, everything else is frozen.
road
    FDA is replaced by extension and pooling: copies of a series that are smoothed more and more, whose representations
    are averaged; all weights are trained.

Shape suffixes: B window, S sensor, L step of the context, H step of the horizon, E copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stages.runtime import random_numbers
from stages.systems.minitraffic.augmentation import extended
from stages.systems.minitraffic.batches import CHUNK, Batch, Loaded, one_thread
from stages.systems.minitraffic.model import MiniTraffic, Neighbours, features
from stages.systems.minitraffic.notes import HEADS
from stages.systems.minitraffic.patches import Normalised
from stages.systems.minitraffic.pretraining import DECAY, augmented
from stages.systems.minitraffic.search import Chosen, Floats, Judge, Tensors, finite
from stages.systems.minitraffic.settings import Train
from stages.traffic.scores import masked_l1
from stages.traffic.windows import Windows


def copies_of(arm: str, mode: str, train: Train) -> int:
    """Copies of a series whose representations are pooled: 1 but for a road that is fine-tuned."""
    return train.finetuning.extension if mode == "road" and arm != "zero_shot" else 1


def trainable(network: MiniTraffic, arm: str, mode: str) -> list[str]:
    """Names of the weights that fine-tuning updates."""
    everything = mode == "road" or arm == "scratch"
    return [name for name, _ in network.named_parameters() if everything or name.startswith(HEADS)]


def forecast_batch(
    network: MiniTraffic, source: Loaded, seen: Normalised, clock_BF: Tensor, graph: Neighbours | None, copies: int
) -> Tensor:
    """Forecast in the data's unit out of normalised windows, pooled over copies, shape (window, sensor, horizon)."""
    known = features(seen, clock_BF, source.panel.level, source.panel.scale)
    views = [seen] if copies == 1 else [seen._replace(x_BSL=x_BSL) for x_BSL in extended(seen.x_BSL, copies)]
    represented = [network.represent(network.encode(view, known)) for view in views]
    pooled_BSD = represented[0] if copies == 1 else torch.stack(represented).mean(dim=0)
    return network.forecast(pooled_BSD, seen, graph)


def update(
    network: MiniTraffic,
    optimiser: torch.optim.Optimizer,
    source: Loaded,
    batch: Batch,
    graph: Neighbours | None,
    arm: str,
    mode: str,
    train: Train,
    rng: np.random.Generator,
) -> float:
    """One update; the loss is the mean absolute error in the set's typical standard deviations."""
    off = mode == "road" or arm == "no_fda"
    seen = augmented(source, batch.context_BSL, train.fda, rng, off=off)
    forecast_BSH = forecast_batch(network, source, seen, batch.clock_BF, graph, copies_of(arm, mode, train))
    loss = masked_l1(forecast_BSH, batch.target_BSH) / source.panel.scale
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return loss.item()


@one_thread()
def finetune(
    weights: dict[str, Tensor],
    source: Loaded,
    graph: Neighbours | None,
    *,
    arm: str,
    mode: str,
    train: Train,
    judge: Judge,
    seed: int,
) -> Chosen:
    """Fine-tune with each learning rate; the validation windows choose rate and step, and step 0 is a candidate.

    Parameters
    ----------
    weights
        State dict to start from.
    source
        The target's panel; its training steps are the few that may be learnt from.
    graph
        Neighbours, or None without a graph.
    arm, mode
        ``zero_shot`` is looked at once and not trained.
    train
        Settings.
    judge
        Validation windows.
    seed
        Of batches and noise, the same for every learning rate.
    """
    network = restored(weights, train, source.values_TS.device)
    copies = copies_of(arm, mode, train)

    def look() -> float:
        return judge.error(forecast_windows(network, source, graph, copies, judge.windows, judge.indices_B))

    def kept() -> dict[str, Tensor]:
        return {name: value.clone() for name, value in network.state_dict().items()}

    rates = train.finetuning.rates(arm)
    least, best, choice = look(), kept(), {"rate": rates[0], "step": 0}
    history = [_row(rates[0], 0, None, least, 0)]
    for rate in () if arm == "zero_shot" else rates:
        network.load_state_dict(weights)
        for step, loss, passed in _updates(network, source, graph, arm, mode, train, rate, seed):
            error = look()
            history.append(_row(rate, step, loss, error, passed))
            if error < least:
                least, best, choice = error, kept(), {"rate": rate, "step": step}
    for row in history:
        row["chosen"] = all(row[name] == value for name, value in choice.items())
    tensors: Tensors = {f"network.{name}": value.cpu().numpy() for name, value in best.items()}
    return Chosen(tensors, choice, len(history), finite(least), history)


def _row(rate: float, step: int, loss: float | None, error: float, passed: int) -> dict[str, Any]:
    return {
        **{"stage": "finetuning", "rate": rate, "step": step, "loss": loss},
        **{"validation_mae": finite(error), "windows": passed},
    }


def _updates(
    network: MiniTraffic,
    source: Loaded,
    graph: Neighbours | None,
    arm: str,
    mode: str,
    train: Train,
    rate: float,
    seed: int,
) -> Iterator[tuple[int, float, int]]:
    """Train with one rate; step, mean loss since the last look, and series that passed, at each look."""
    steps, check = train.finetuning.budget(arm, mode)
    chosen = trainable(network, arm, mode)
    for name, weight in network.named_parameters():
        weight.requires_grad_(name in chosen)
    learning = [weight for weight in network.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(learning, lr=rate, weight_decay=DECAY, fused=True)
    windows = source.windows(source.panel.train)
    rng = random_numbers(seed, "finetuning", source.panel.key)
    running, passed = list[float](), 0
    for step in range(1, steps + 1):
        batch = source.batch(windows, rng.integers(0, len(windows), source.passes(train.finetuning.batch)))
        running.append(update(network, optimiser, source, batch, graph, arm, mode, train, rng))
        passed += len(batch.context_BSL) * source.series
        if step % check == 0 or step == steps:
            yield step, float(np.mean(running)), passed
            running = []


def restored(weights: dict[str, Tensor], train: Train, place: torch.device) -> MiniTraffic:
    """A network out of its state dict, on a device."""
    network = MiniTraffic(train.network, train.context, train.horizon)
    network.load_state_dict(weights)
    return network.to(place)


@torch.no_grad()
def forecast_windows(
    network: MiniTraffic,
    source: Loaded,
    graph: Neighbours | None,
    copies: int,
    windows: Windows[Floats],
    indices_B: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> Floats:
    """Forecast of some windows of the panel, a part at a time, shape (window, sensor, step of the horizon)."""
    return np.concatenate(list(_parts(network, source, graph, copies, windows, indices_B)))


def _parts(
    network: MiniTraffic,
    source: Loaded,
    graph: Neighbours | None,
    copies: int,
    windows: Windows[Floats],
    indices_B: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> Iterator[Floats]:
    size = source.passes(CHUNK)
    for begin in range(0, len(indices_B), size):
        batch = source.at(windows.starts_W[indices_B[begin : begin + size]])
        seen = source.normalised(batch.context_BSL)
        yield forecast_batch(network, source, seen, batch.clock_BF, graph, copies).cpu().numpy()
