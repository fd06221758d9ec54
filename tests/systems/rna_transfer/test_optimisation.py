"""Convergence, similarity and sharpness over seeds."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from stages.systems.rna_transfer.optimisation import Optimisation
from stages.systems.rna_transfer.settings import Run
from stages.systems.rna_transfer.tables import GEOMETRY, HISTORY, Schema
from tests.systems.rna_transfer.answered import optimisation

RANDOM, TUNED = Run("small", 0, "random"), Run("small", 600, "fine_tuned")


def geometry(*rows: dict[str, object]) -> Optimisation:
    """One seed of the fine-tuned arm."""
    full = [dict.fromkeys(GEOMETRY) | TUNED._asdict() | {"task": "paired", "seed": 0} | row for row in rows]
    schema: Schema = {"seed": pl.Int64}
    return Optimisation(pl.DataFrame(schema=HISTORY | schema), pl.DataFrame(full, schema=GEOMETRY | schema), [0])


def test_a_seed_in_which_the_level_is_never_reached_leaves_no_mean_change() -> None:
    found = optimisation({"random": [0.0, 0.2, 0.5], "fine_tuned": [0.0, 0.5, 0.5]})
    reached = found.reached("base_pairs", TUNED, RANDOM, [0.0, 0.0])
    assert (reached.steps, reached.baseline_steps, reached.median) == ([10, 10], [20, 20], 10)
    assert reached.change == (-0.5, -0.5, -0.5)
    never = found.reached("base_pairs", TUNED, RANDOM, [0.0, 0.49])  # the second seed's random arm is at chance
    assert never.levels == [pytest.approx(0.45)]
    other = optimisation({"random": [0.0, 0.5], "fine_tuned": [0.0, 0.1]})
    reached = other.reached("base_pairs", TUNED, RANDOM, [0.0, 0.0])
    assert (reached.never, reached.median) == (2, None)
    assert math.isnan(reached.change.value)


def test_sharpness_counts_only_where_losses_are_equal_and_the_eigenvalue_was_found() -> None:
    rows = [
        {"measure": "sharpness", "value": 4.0, "error": 0.1},
        {"measure": "trace", "value": 9.0, "error": 1.0},
        {"measure": "matched_loss", "value": 1.0},
    ]
    near = geometry(*rows, {"measure": "loss_at", "value": 1.01})
    assert near.sharpness("paired", TUNED, "sharpness") == [4.0]
    far = geometry(*rows, {"measure": "loss_at", "value": 0.7})
    assert math.isnan(far.sharpness("paired", TUNED, "sharpness")[0])
    assert math.isnan(far.sharpness("paired", TUNED, "trace")[0])
    loose = geometry(rows[0] | {"error": 2.0}, *rows[1:], {"measure": "loss_at", "value": 1.0})
    assert math.isnan(loose.sharpness("paired", TUNED, "sharpness")[0])
    assert loose.sharpness("paired", TUNED, "trace") == [9.0]


def test_layers_stand_from_the_embedding_up_whatever_their_number() -> None:
    names = ["layer_10", "layer_2", "embedding", "layer_1"]
    rows = [
        {"measure": "cka_start", "layer": a, "other_layer": b, "value": float(a == b)} for a in names for b in names
    ]
    matrix = geometry(*rows).similarity("paired", TUNED, "cka_start")
    assert matrix is not None
    assert matrix[0] == ["embedding", "layer_1", "layer_2", "layer_10"]
    assert (matrix[1] == np.eye(4)).all()
    assert geometry(*rows).similarity("paired", RANDOM, "cka_start") is None


def test_a_measure_of_the_whole_encoder_is_not_that_of_a_layer() -> None:
    found = geometry({"measure": "distance", "value": 2.0}, {"measure": "distance", "layer": "embedding", "value": 0.5})
    assert found.measured("paired", TUNED, "distance") == [2.0]
    assert found.measured("paired", TUNED, "distance", "embedding") == [0.5]
    assert math.isnan(found.measured("paired", RANDOM, "distance")[0])
