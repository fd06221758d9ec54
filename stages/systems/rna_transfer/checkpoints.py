"""Checkpoints of a pre-training run: what a killed one goes on from, to the same bytes.

They lie in data/.checkpoints, which git ignores and DVC does not know, under the hash of all that the run depends on.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stages import artifacts

#: What AdamW keeps of each weight.
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
#: Modules of this room whose text decides the weights.
CODE = ("encoder.py", "masking.py", "pretraining.py", "checkpoints.py")


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two updates.

    Attributes
    ----------
    weights, moments
        State dict of the network, and of AdamW as ``MOMENT.WEIGHT``.
    progress
        Plain numbers and lists: where the run is, and its history so far.
    """

    weights: dict[str, Tensor]
    moments: dict[str, Tensor]
    progress: dict[str, Any]


def run_key(settings: Mapping[str, Any], molecules: Sequence[NDArray[np.uint8]]) -> str:
    """Hash of a run: its settings, its molecules, the library and the code."""
    digest = hashlib.sha256(json.dumps({"torch": torch.__version__, **settings}, sort_keys=True).encode())
    for name in CODE:
        digest.update((Path(__file__).parent / name).read_bytes())
    for molecule in molecules:
        digest.update(len(molecule).to_bytes(8, "little") + molecule.tobytes())
    return digest.hexdigest()[:32]


def folder(system: str, seed: int) -> Path:
    """Where the checkpoints of one training lie."""
    return artifacts.DATA / ".checkpoints" / system / str(seed)


def forget(system: str, seed: int) -> None:
    """Remove the checkpoints of a training that has ended."""
    shutil.rmtree(folder(system, seed), ignore_errors=True)


def save(path: Path, network: nn.Module, optimiser: torch.optim.Optimizer, progress: Mapping[str, Any]) -> None:
    """Write a checkpoint; a run that is killed here leaves the one before."""
    from safetensors.torch import save as to_bytes

    tensors = {f"weights.{name}": value for name, value in network.state_dict().items()}
    for name, weight in network.named_parameters():
        tensors |= {f"moments.{moment}.{name}": optimiser.state[weight][moment] for moment in MOMENTS}
    stored = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with artifacts.atomic(path) as draft:
        draft.write_bytes(to_bytes(stored, metadata={"progress": json.dumps(progress)}))


def load(path: Path) -> Checkpoint | None:
    """Read a checkpoint; None where there is none."""
    from safetensors import safe_open

    if not path.exists():
        return None
    kinds: dict[str, dict[str, Tensor]] = {"weights": {}, "moments": {}}
    with safe_open(path, framework="pt") as stored:
        progress = json.loads(stored.metadata()["progress"])
        for name in stored.keys():  # noqa: SIM118 (no mapping)
            kind, rest = name.split(".", 1)
            kinds[kind][rest] = stored.get_tensor(name)
    return Checkpoint(kinds["weights"], kinds["moments"], progress)


def restore(found: Checkpoint, network: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Put a checkpoint's state into a network and its AdamW."""
    network.load_state_dict(found.weights)
    for name, weight in network.named_parameters():
        state = {moment: found.moments[f"{moment}.{name}"] for moment in MOMENTS}
        # AdamW counts its updates on the device only where it is fused there; the counter's own place is kept.
        optimiser.state[weight] = {moment: value.to(weight.device) for moment, value in state.items()}
