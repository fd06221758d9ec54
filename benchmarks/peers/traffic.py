"""PatchTST and DCRNN for traffic_lanes.py, run by the Python of the peers' own environment.

    PYTHON benchmarks/peers/traffic.py TASK.npz ANSWER.npz

Values are standardised by the mean and standard deviation of the few steps that may be learnt from; the loss is the
mean absolute error over measured values; the candidate with the least error on the validation windows is kept.

Shape suffixes: T time, S sensor.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

NETWORK_BATCH = 64  # windows at once where nothing is learned
HOPS = 3  # of DCRNN, as published: diffusion of two steps, and the sensor itself


def work(task: Path, answer: Path) -> None:
    """Fit one peer, choose by the validation part, forecast the test part."""
    import torch

    from stages.systems.minitraffic.cost import flops, parameters

    torch.set_num_threads(1)
    with np.load(task) as given:
        about = json.loads(str(given["about"]))
        values_TS, clock_TF = given["values"], given["clock"]
        edges = {name: given[name] for name in ("source", "target", "weight")}
    known = values_TS[slice(*about["block"])]
    mean, sd = float(np.nanmean(known)), float(np.nanstd(known)) or 1.0
    scaled_TS = torch.from_numpy((values_TS - mean) / sd).float()
    clock_TF = torch.from_numpy(clock_TF)

    def windows(steps: tuple[int, int], count: int | None = None) -> np.ndarray:
        last = steps[1] - about["context"] - about["horizon"] + 1
        starts = np.arange(steps[0], last)
        return (
            starts if count is None else starts[np.unique(np.linspace(0, len(starts) - 1, count).round().astype(int))]
        )

    def batch(starts: np.ndarray) -> tuple[Any, Any, Any]:
        steps = torch.from_numpy(starts[:, None] + np.arange(about["context"] + about["horizon"]))
        rows = scaled_TS[steps]
        return rows[:, : about["context"]], rows[:, about["context"] :], clock_TF[steps[:, : about["context"]]]

    def forecast(network: Any, starts: np.ndarray) -> Any:
        network.eval()
        with torch.no_grad():
            parts = [starts[at : at + NETWORK_BATCH] for at in range(0, len(starts), NETWORK_BATCH)]
            found = [network(past, clock) for past, _, clock in (batch(part) for part in parts)]
        return torch.cat(found)

    def error(told: Any, truth: Any) -> Any:
        there = torch.isfinite(truth)
        return torch.where(there, told - torch.where(there, truth, 0), 0).abs().sum() / there.sum().clamp(min=1)

    validation, training = windows(about["validation"], about["looked"]), windows(about["block"])
    truth = batch(validation)[1]
    each = max(1, about["batch"] // values_TS.shape[1])
    check = max(1, about["steps"] // about["checks"])
    best: dict[str, Any] = {"mae": np.inf}
    begin, looks = time.perf_counter(), 0
    for rate in about["rates"]:
        torch.manual_seed(about["seed"])
        network = BUILT[about["peer"]](about, edges, values_TS.shape[1])
        optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-4)
        rng = np.random.default_rng(about["seed"])
        for step in range(about["steps"] + 1):
            if step % check == 0 and (step or not looks):
                found = float(error(forecast(network, validation), truth)) * sd
                looks += 1
                if found < best["mae"]:
                    kept = {name: value.clone() for name, value in network.state_dict().items()}
                    best = {"mae": found, "weights": kept, "rate": rate, "step": step}
            if step == about["steps"]:
                break
            network.train()
            past, ahead, clock = batch(rng.choice(training, each))
            loss = error(network(past, clock), ahead)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimiser.step()
    seconds = time.perf_counter() - begin
    network.load_state_dict(best["weights"])
    told = forecast(network, windows(about["test"])) * sd + mean
    past, _, clock = batch(windows(about["test"])[:1])
    network.eval()
    said = {
        "parameters": parameters(network),
        "flops": flops(lambda: network(past, clock)),
        "seconds": seconds,
        "updates": about["steps"] * len(about["rates"]),
        "rate": best["rate"],
        "chosen_step": best["step"],
        "validation_mae": best["mae"],
        "looks": looks,
    }
    np.savez(answer, forecast=told.numpy().astype(np.float32), about=json.dumps(said))


def carried(past: Any) -> Any:
    """Contexts (window, step, sensor) with missing values carried forward; 0, the mean, where nothing was before."""
    import torch

    steps = torch.arange(past.shape[1])[None, :, None].expand_as(past)
    last = torch.where(torch.isfinite(past), steps, -1).cummax(dim=1).values
    return torch.where(last >= 0, past.nan_to_num().gather(1, last.clamp(min=0)), 0)


def patchtst(about: dict[str, Any], edges: dict[str, Any], sensors: int) -> Any:
    """The PatchTST of transformers with our patches, width and layers: channels share all weights."""
    import torch
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    config = PatchTSTConfig(
        num_input_channels=sensors, context_length=about["context"], prediction_length=about["horizon"],
        patch_length=about["patch"], patch_stride=about["stride"], d_model=about["width"],
        num_hidden_layers=about["layers"], num_attention_heads=about["heads"], ffn_dim=2 * about["width"],
        attention_dropout=0.0, head_dropout=0.0, scaling="std", loss="mse",
    )  # fmt: skip

    class Forecaster(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = PatchTSTForPrediction(config)

        def forward(self, past: Any, clock: Any) -> Any:
            return self.network(past_values=carried(past)).prediction_outputs

    return Forecaster()


def dcrnn(about: dict[str, Any], edges: dict[str, Any], sensors: int) -> Any:
    """A layer of torch-geometric-temporal's DCRNN, as wide as our network, on the set's own graph, and a linear head.

    Only the file that holds the model is loaded: importing the package asks for compiled libraries that DCRNN does not
    use. Every sensor has an edge to itself, since a sensor without any would divide by zero.
    """
    import torch

    kind = published_dcrnn()
    weight_SS = np.eye(sensors)
    np.maximum.at(weight_SS, (edges["source"], edges["target"]), edges["weight"])
    if not about["directed"]:
        weight_SS = np.maximum(weight_SS, weight_SS.T)
    index = torch.from_numpy(np.stack(np.nonzero(weight_SS)))
    weight = torch.from_numpy(weight_SS[np.nonzero(weight_SS)]).float()

    class Forecaster(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = kind(4, about["width"], HOPS)
            self.head = torch.nn.Linear(about["width"], about["horizon"])

        def forward(self, past: Any, clock: Any) -> Any:
            seen = carried(past)[..., None]
            seen = torch.cat([seen, clock[:, :, None].expand(*seen.shape[:3], 3)], dim=-1)
            hidden = self.cell(seen, index, weight)
            return (carried(past)[:, -1:] + self.head(hidden[:, -1]).swapaxes(1, 2)).float()

    return Forecaster()


def published_dcrnn() -> Any:
    """The class of torch-geometric-temporal that takes batches."""
    found = importlib.util.find_spec("torch_geometric_temporal")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'torch_geometric_temporal'")
    file = Path(found.submodule_search_locations[0]) / "nn" / "recurrent" / "dcrnn.py"
    specification = importlib.util.spec_from_file_location("published_dcrnn", file)
    if specification is None or specification.loader is None:
        raise ModuleNotFoundError(f"{file} cannot be loaded")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # torch_geometric looks its layers up there
    specification.loader.exec_module(module)
    return module.BatchedDCRNN


BUILT = {"patchtst": patchtst, "dcrnn": dcrnn}


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
