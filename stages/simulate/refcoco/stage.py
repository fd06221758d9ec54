"""``python -m stages simulate refcoco@NAME``: write simulated scenes in the REFER layout to data/raw/NAME."""

from __future__ import annotations

from stages import raw
from stages.params import StageParams, bound
from stages.simulate.refcoco.options import Simulation


class Params(StageParams):
    """The block of one set of simulated scenes."""

    simulation: Simulation = bound("refcoco.simulated.{key}")


def run(params: Params, *, name: str, key: str) -> None:
    """Write data/raw/KEY: refcoco/, refcoco+/, images/, simulation.json, read-only, and manifest.json."""
    from stages.simulate.refcoco import layout

    simulation = params.simulation
    raw.simulate(
        key,
        lambda folder: layout.write(folder, simulation),
        module=f"stages.simulate.{name}",
        seed=simulation.seed,
        options=simulation.model_dump(mode="json", exclude={"seed"}),
    )
