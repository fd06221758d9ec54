"""Forecasts of a trained arm, a batch of windows at a time.

Shape suffixes: W window of a batch, S sensor, H step of the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.artifacts import read_json
from stages.errors import DataError
from stages.systems.minitraffic.problem import Panel, Target
from stages.systems.minitraffic.settings import BASELINES, Train, file_stem
from stages.traffic.windows import batch_indices

if TYPE_CHECKING:
    from stages.systems.minitraffic.batches import Loaded
    from stages.systems.minitraffic.model import MiniTraffic, Neighbours
    from stages.systems.minitraffic.search import Floats, Forecast, Tensors
    from stages.traffic.windows import Windows

REFERENCE_LEVEL = "level"


class Forecasts(NamedTuple):
    """Forecasts of some windows, in the data's unit.

    Attributes
    ----------
    start_W
        First step of each forecast.
    forecast_WHS
        Finite everywhere, shape (window, step of the horizon, sensor).
    observed_WHS
        What was measured; NaN where it was not.
    """

    start_W: NDArray[np.int64]
    forecast_WHS: Floats
    observed_WHS: Floats


@dataclass(frozen=True)
class Forecaster:
    """A trained arm.

    Attributes
    ----------
    arm, share
        Which one it is.
    tensors
        What training stored of it.
    network, source, graph, copies
        The network on its device, the target's series there, the graph, and copies that are pooled; None for baselines.
    """

    arm: str
    share: float
    tensors: Tensors
    network: MiniTraffic | None = None
    source: Loaded | None = None
    graph: Neighbours | None = None
    copies: int = 1


def weights_file(folder: Path, target: str, arm: str, share: float) -> Path:
    """Where training stores an arm."""
    return folder / "weights" / target / f"{file_stem(arm, share)}.safetensors"


def load(folder: Path, target: Target, arm: str, share: float) -> Forecaster:
    """Read an arm that was trained.

    Parameters
    ----------
    folder
        data/models/minitraffic/SEED.
    target
        The opened target.
    arm, share
        Which one.

    Raises
    ------
    DataError
        The file is not there, or it is of other sensors than the gate accepts now.
    """
    from safetensors.numpy import load_file

    file = weights_file(folder, target.key, arm, share)
    if not file.is_file():
        raise DataError(
            file,
            found="no such file",
            expected=f"the weights of {arm} for {target.key} and the share {share:g}",
            remedy="Run `python -m stages train minitraffic@SEED` again.",
        )
    tensors = load_file(file)
    if len(tensors[REFERENCE_LEVEL]) != target.sensors:
        raise DataError(
            file,
            found=f"levels of {len(tensors[REFERENCE_LEVEL])} sensors",
            expected=f"{target.sensors}, as {target.key} has",
            remedy="The set has changed: run `python -m stages train minitraffic@SEED` again.",
        )
    return forecaster(arm, share, tensors, target, trained_with(folder))


def trained_with(folder: Path) -> Train:
    """Settings that were trained with, out of config.json."""
    config = read_json(folder / "config.json")
    return Train.model_validate({name: config[name] for name in Train.model_fields})


def forecaster(arm: str, share: float, tensors: Tensors, target: Target, train: Train) -> Forecaster:
    """An arm out of what training stores of it."""
    if arm in BASELINES:
        return Forecaster(arm, share, tensors)
    import torch

    from stages.systems.minitraffic.batches import loaded
    from stages.systems.minitraffic.finetuning import copies_of, restored
    from stages.systems.minitraffic.model import Neighbours, device

    place = device()
    prefix = "network."
    weights = {name[len(prefix) :]: torch.from_numpy(v) for name, v in tensors.items() if name.startswith(prefix)}
    panel = Panel(
        key=target.key,
        values_TS=target.values_TS,
        clock_TF=target.clock_TF,
        train=(0, 0),
        validation=None,
        level=float(tensors["centre"]),
        scale=float(tensors["scale"]),
        level_S=tensors[REFERENCE_LEVEL],
    )
    graph = None
    if "graph.neighbours" in tensors:
        graph = Neighbours(
            torch.from_numpy(tensors["graph.neighbours"]).to(place), torch.from_numpy(tensors["graph.there"]).to(place)
        )
    return Forecaster(
        arm=arm,
        share=share,
        tensors=tensors,
        network=restored(weights, train, place),
        source=loaded(panel, target.context, target.horizon, place),
        graph=graph,
        copies=copies_of(arm, target.goal.mode, train),
    )


def predict(
    told: Forecaster, target: Target, *, part: str = "test", batch: int = 64, stride: int = 1
) -> Iterator[Forecasts]:
    """Forecasts of every window of a part, in order, each once.

    Parameters
    ----------
    told
        The arm.
    target
        The set.
    part
        train, validation or test.
    batch
        Windows in memory at once; no number depends on it.
    stride
        Steps from one window to the next.
    """
    windows, forecast = target.windows(part, stride), forecast_function(told, target)
    for at in batch_indices(len(windows), batch):
        forecast_BSH = forecast(windows, at)
        _, observed_BSH = windows.batch(at)
        start_W = windows.starts_W[at] + target.context
        yield Forecasts(start_W, forecast_BSH.swapaxes(1, 2), observed_BSH.swapaxes(1, 2))


def forecast_function(told: Forecaster, target: Target) -> Forecast:
    """What forecasts some windows of a target, shape (window, sensor, step of the horizon)."""
    if told.network is None or told.source is None:
        from stages.systems.minitraffic.fits import forecast_of

        return forecast_of(told.arm, told.tensors, target)
    from stages.systems.minitraffic.batches import one_thread
    from stages.systems.minitraffic.finetuning import forecast_windows

    network, source = told.network, told.source

    def forecast(windows: Windows[Floats], at: NDArray[np.int64]) -> Floats:
        with one_thread():
            return forecast_windows(network, source, told.graph, told.copies, windows, at)

    return forecast
