"""Sources that a program of this project writes from a seed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from pydantic import Field

from stages import manifest
from stages.errors import StageError, UsageError
from stages.params import Config


class Simulator(Protocol):
    """What a module named by ``sources.S.module`` offers."""

    def write(self, folder: Path, options: dict[str, Any], seed: int) -> None:
        """Write files into an empty folder; equal options and seed give equal bytes."""


class SimulatorSource(Config):
    """A simulator as a source: its module, its options and the seed."""

    kind: Literal["simulator"] = Field(description="where the source comes from")
    module: str = Field(
        pattern=r"^stages(\.[a-z_][a-z0-9_]*)+$", description="module of this project with write(folder, options, seed)"
    )
    seed: int = Field(ge=0, description="seed of its random numbers")
    options: dict[str, Any] = Field(default_factory=dict, description="options the module knows")
    licence: str | None = Field(default=None, description="terms of the simulated data")
    citation: str | None = Field(default=None, description="what to cite for the simulator")

    def write(self, folder: Path, key: str) -> manifest.Manifest:
        """Run the simulator in a folder and describe what it wrote."""
        load(self.module, key).write(folder, self.options, self.seed)
        written = sorted(path for path in folder.rglob("*") if path.is_file())
        if not written:
            raise StageError(f"sources.{key}: {self.module} wrote no file. Correct its options, or its write().")
        return manifest.Manifest(
            source=key,
            kind="simulator",
            origin={"module": self.module, "seed": self.seed, "options": self.options},
            files=tuple(manifest.hash_file(path, path.relative_to(folder).as_posix()) for path in written),
            licence=self.licence,
            citation=self.citation,
        )


def load(module: str, key: str) -> Simulator:
    """The simulator's module.

    Raises
    ------
    UsageError
        There is no such module, or it has no ``write``.
    """
    try:
        simulator = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # Only the module itself or a folder above it: a simulator with a broken import of its own is another fault.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise UsageError(f"params.yaml: sources.{key}.module: there is no module {error.name}.") from None
    if not callable(getattr(simulator, "write", None)):
        raise UsageError(f"params.yaml: sources.{key}.module: {module} has no function write(folder, options, seed).")
    return cast(Simulator, simulator)
