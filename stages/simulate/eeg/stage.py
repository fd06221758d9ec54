"""``python -m stages simulate eeg@NAME``: write a simulated corpus in SEED's layout to data/raw/NAME."""

from __future__ import annotations

from stages import raw
from stages.params import StageParams, bound
from stages.simulate.eeg.options import Simulation


class Params(StageParams):
    """The block of one simulated corpus."""

    simulation: Simulation = bound("eeg.simulated.{key}")


def run(params: Params, *, name: str, key: str) -> None:
    """Write data/raw/KEY: Preprocessed_EEG/ as SEED has it, read-only, and manifest.json."""
    from stages.simulate.eeg import corpus

    simulation = params.simulation
    raw.simulate(
        key,
        lambda folder: corpus.write(folder, simulation),
        module=f"stages.simulate.{name}",
        seed=simulation.seed,
        options=simulation.model_dump(mode="json", exclude={"seed"}),
    )
