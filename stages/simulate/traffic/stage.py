"""``python -m stages simulate traffic@NAME``: write simulated lanes in the layout of lane files to data/raw/NAME."""

from __future__ import annotations

from stages import raw
from stages.params import StageParams, bound
from stages.simulate.traffic.options import Simulation


class Params(StageParams):
    """The block of one simulated freeway."""

    simulation: Simulation = bound("traffic.simulated.{key}")


def run(params: Params, *, name: str, key: str) -> None:
    """Write data/raw/KEY: the lane files, the road table, adjacency, simulation.json, and manifest.json."""
    from stages.simulate.traffic import lanefiles

    simulation = params.simulation
    raw.simulate(
        key,
        lambda folder: lanefiles.write(folder, simulation),
        module=f"stages.simulate.{name}",
        seed=simulation.seed,
        options=simulation.model_dump(mode="json", exclude={"seed"}),
    )
