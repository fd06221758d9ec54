"""Series whose graph is known, analysed like a tower: what the method finds where the truth can be looked up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from stages.causal.simulators import Simulation, simulate_soil_bucket, simulate_var_chain
from stages.systems.pcmci.estimate import methods

if TYPE_CHECKING:
    from stages.systems.pcmci.train import Train

CHAIN_VARIABLES = 7


def twin_tables(train: Train, rng: np.random.Generator) -> Iterator[pl.DataFrame]:
    """Tested links of each simulated series, with the truth beside them.

    Yields
    ------
    polars.DataFrame
        twin, repeat, method, source, target, lag (steps), value, p, q, truth.
    """
    for repeat in range(train.twins.repeats):
        steps = train.twins.steps
        twins = {
            "VAR chain": simulate_var_chain(rng, steps=steps, variables=CHAIN_VARIABLES, tau_max=train.tau_max),
            "bucket model": simulate_soil_bucket(rng, steps=steps, tau_max=train.tau_max),
        }
        for twin, simulation in twins.items():
            label = [pl.lit(twin).alias("twin"), pl.lit(repeat).alias("repeat")]
            links = methods(simulation.data_TN, simulation.names, train)
            chosen = pl.col("method", "source", "target", "lag", "value", "p", "q")
            yield links.join(truth_table(simulation), on=["source", "target", "lag"], how="left").select(
                *label, chosen, pl.col("truth")
            )


def truth_table(simulation: Simulation) -> pl.DataFrame:
    """The true graph as a table: source, target, lag (steps), truth."""
    i, j, lag = np.indices(simulation.truth_NNL.shape).reshape(3, -1)
    return pl.DataFrame(
        {
            "source": [simulation.names[k] for k in i],
            "target": [simulation.names[k] for k in j],
            "lag": lag,
            "truth": simulation.truth_NNL.reshape(-1),
        }
    )
