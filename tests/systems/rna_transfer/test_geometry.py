"""Geometry: distances, and sharpness where training losses are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from stages.metrics.objectives import Objective
from stages.runtime import random_numbers
from stages.systems.rna_transfer import geometry
from stages.systems.rna_transfer.corpus import Corpus
from stages.systems.rna_transfer.encoder import Encoder, initialise
from stages.systems.rna_transfer.finetuning import Downstream, Snapshot, finetune, new_model
from stages.systems.rna_transfer.settings import Run
from tests.systems.rna_transfer.small import SETTINGS, SIZE, TASKS, accepted, settings

LONGER = settings(finetuning={"epochs": dict.fromkeys(TASKS, 10), "checks": 5}).finetuning
CORPUS = Corpus(accepted(), "transfer-0", SETTINGS, 0)


def made(name: str = "paired", encoder_seed: int = 0) -> tuple[Downstream, Any]:
    task, parts, _ = CORPUS.examples(name)
    encoder = Encoder(SIZE)
    initialise(encoder, random_numbers(encoder_seed, "encoder"))
    return new_model(encoder, task, SIZE.width, 0), parts


def snapshot(step: int, x: float, curvature: float = 2.0) -> Snapshot:
    return Snapshot(step, curvature / 2 * x**2, {"x": torch.tensor([float(x)])})


def bowl(weights: Any) -> Tensor:
    found: Tensor = weights["x"].square().sum()
    return found


def test_distance_is_pythagoras_and_relative_to_the_start() -> None:
    begun = {"embedding.weight": torch.tensor([3.0, 0.0]), "layers.0.out.weight": torch.tensor([0.0, 4.0])}
    ended = {"embedding.weight": torch.tensor([0.0, 0.0]), "layers.0.out.weight": torch.tensor([4.0, 4.0])}
    rows = {(row["measure"], row["layer"]): row["value"] for row in geometry.distances(ended, begun)}
    assert rows["distance", None] == 5
    assert rows["distance_relative", None] == 1
    assert (rows["distance", "embedding"], rows["distance", "layer_1"]) == (3, 4)


def test_arms_are_compared_where_the_worst_of_them_gets() -> None:
    quick = [snapshot(0, 4), snapshot(10, 2), snapshot(20, 0.1)]
    slow = [snapshot(0, 4), snapshot(10, 3), snapshot(20, 2.5)]
    level = geometry.common_loss([quick, slow])
    assert level == 2.5**2
    found = geometry.at_loss(quick, level, Objective(bowl), ["x"])
    assert float(found.weights["x"]) == pytest.approx(2.5, abs=0.01)
    assert found.loss == pytest.approx(level, rel=0.01)
    assert found.loss <= level
    assert found.step == pytest.approx(7.5, abs=0.1)
    assert geometry.at_loss(slow, level, Objective(bowl), ["x"]).step == 20
    assert geometry.at_loss([snapshot(0, 1)], level, Objective(bowl), ["x"]).loss == 1
    with pytest.raises(ValueError, match="the loss never comes down to 1"):
        geometry.at_loss(slow, 1.0, Objective(bowl), ["x"])
    with pytest.raises(ValueError, match="no arm, or an arm without a snapshot"):
        geometry.common_loss([quick, []])


def test_sharpness_of_a_bowl_is_its_curvature() -> None:
    rows = {
        row["measure"]: row for row in geometry.sharpness(Objective(bowl), {"x": torch.ones(3)}, SETTINGS.geometry, 0)
    }
    assert rows["sharpness"]["value"] == pytest.approx(2)
    assert rows["sharpness"]["converged"]
    assert rows["trace"]["value"] == pytest.approx(6)
    assert rows["ball"]["value"] > 0


@pytest.mark.parametrize("name", ["base_pairs", "paired", "rna_type"])
def test_the_loss_of_named_weights_is_the_loss_and_is_twice_differentiable(name: str) -> None:
    model, parts = made(name)
    loss, names = geometry.objective(model, parts.probe), geometry.names_used(model, parts.probe)
    assert "encoder.predict.weight" not in names
    assert {"encoder.embedding.weight", "encoder.layers.1.query_key_value.weight"} <= set(names)
    at = {place: weight.detach() for place, weight in model.named_parameters() if place in names}
    with torch.no_grad():
        assert loss.value(at) == pytest.approx(float(model(parts.probe)), rel=1e-6)
    hessian = loss.hessian(at)
    generator = torch.Generator().manual_seed(0)
    u_P, v_P = (hessian.space.normal(generator) for _ in range(2))
    # A Hessian is symmetric.
    assert float(u_P @ hessian.product(v_P)) == pytest.approx(float(v_P @ hessian.product(u_P)), rel=1e-2, abs=1e-2)


def test_every_arm_is_measured_at_one_loss() -> None:
    trails, twins = {}, {}
    for encoder_seed, run in enumerate([Run("small", 0, "random"), Run("small", 600, "fine_tuned")]):
        for order, kept in (("order", trails), ("other order", twins)):
            model, parts = made(encoder_seed=encoder_seed)
            kept[run] = finetune(model, parts, LONGER, trained=True, seed=0, order=order, trail=True).trail
    rows = list(
        geometry.compared(
            trails, twins, model, parts.probe, SETTINGS.geometry, baseline=Run("small", 0, "random"), seed=0
        )
    )
    levels = {row["value"] for _, row in rows if row["measure"] == "matched_loss"}
    reached = [row["value"] for _, row in rows if row["measure"] == "loss_at"]
    assert len(levels) == 1
    assert reached == pytest.approx([levels.pop()] * 2, rel=0.02)
    measures = {run.arm: [row["measure"] for arm, row in rows if arm == run] for run in trails}
    shared = ["matched_loss", "loss_at", "matched_step", "sharpness", "trace", "ball"]
    assert measures["random"] == [*shared, "barrier_twin"]
    assert measures["fine_tuned"] == [*shared, "barrier_random", "barrier_twin"]


def test_layers_are_compared_at_the_same_bases() -> None:
    model, parts = made()
    encoder = model.encoder
    assert isinstance(encoder, Encoder)
    features = geometry.layer_features(encoder, parts.validation, 20)
    assert list(features) == ["embedding", "layer_1", "layer_2"]
    assert {x_BD.shape for x_BD in features.values()} == {(20, SIZE.width)}
    rows = geometry.similarities("cka_start", features, features)
    own = [row["value"] for row in rows if row["layer"] == row["other_layer"]]
    np.testing.assert_allclose(own, 1)
    assert len(rows) == 9


def test_numbers_that_are_not_finite_become_null() -> None:
    assert geometry.row("distance", float("nan"))["value"] is None
    assert geometry.row("distance", None)["value"] is None
