"""Checkpoints: what a killed run goes on from, to the same bytes.

They lie in data/.checkpoints, which git ignores and DVC does not know, under the hash of all that a fit depends on.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from stages import artifacts

#: Modules of this room whose text decides the weights.
CODE = (
    *("model.py", "views.py", "words.py", "pictures.py", "priors.py", "grounder.py", "proposals.py", "policy.py"),
    *("experience.py", "selection.py", "fitting.py", "selftraining.py", "checkpoints.py", "study.py"),
)


@dataclass(frozen=True)
class Checkpoint:
    """The state of a fit between two updates: tensors by name, and plain numbers and lists."""

    tensors: dict[str, Tensor]
    progress: dict[str, Any]


def run_key(described: Mapping[str, Any]) -> str:
    """Hash of a fit: what describes it, the library and the code."""
    digest = hashlib.sha256(json.dumps({"torch": torch.__version__, **described}, sort_keys=True).encode())
    for name in CODE:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()[:32]


def shared_folder(system: str) -> Path:
    """Where what all seeds share is kept: priors, and answers of an endpoint."""
    return artifacts.DATA / ".checkpoints" / system / "priors"


def folder(system: str, seed: int) -> Path:
    """Where the checkpoints of one training lie."""
    return artifacts.DATA / ".checkpoints" / system / str(seed)


def forget(system: str, seed: int) -> None:
    """Remove the checkpoints of a training that has ended."""
    shutil.rmtree(folder(system, seed), ignore_errors=True)


def save(path: Path, tensors: Mapping[str, Tensor], progress: Mapping[str, Any]) -> None:
    """Write a checkpoint; a run that is killed here leaves the one before."""
    from safetensors.torch import save as to_bytes

    stored = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with artifacts.atomic(path) as draft:
        draft.write_bytes(to_bytes(stored, metadata={"progress": json.dumps(progress)}))


def load(path: Path) -> Checkpoint | None:
    """Read a checkpoint; None where there is none."""
    from safetensors import safe_open

    if not path.exists():
        return None
    with safe_open(path, framework="pt") as stored:
        progress = json.loads(stored.metadata()["progress"])
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (no mapping)
    return Checkpoint(tensors, progress)
