"""What the baselines and MixEmo minimise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stages.systems.mixemo.collaboration import Reading, collaborative_loss, divergence, of_heads
from stages.systems.mixemo.mixing import prototypes
from stages.systems.mixemo.model import (
    Layout,
    Weights,
    ensemble,
    head_logits,
    initialise,
    log_probabilities,
    with_heads,
)
from stages.systems.mixemo.objectives import (
    GroupDro,
    MixStyle,
    Mixup,
    Objective,
    cross_entropy,
    moment_distance,
)
from stages.systems.mixemo.problem import Batch, Draws, Problem, make_problem
from tests.systems.mixemo.small import BACKBONE, folds_of, population

CPU = torch.device("cpu")


def problem() -> tuple[Problem, Weights, Batch, Draws]:
    windows = population()
    folds = folds_of(windows)
    made = make_problem(windows, folds, Layout(windows.shape, 3, BACKBONE), CPU)
    generators = [np.random.default_rng([7, fold]) for fold in range(len(folds))]
    weights = initialise(made.layout, generators, CPU)
    draws = Draws(generators, CPU)
    return made, weights, made.batch(made.drawn_evenly(draws.uniform(24))), draws


def test_what_a_fold_sees_has_mean_0_and_standard_deviation_1_over_its_training_windows() -> None:
    made, _, _, _ = problem()
    seen = made.standardised(made.train_FM)
    torch.testing.assert_close(seen.mean(dim=1), torch.zeros_like(seen[:, 0]), atol=1e-5, rtol=0)
    torch.testing.assert_close(seen.std(dim=1, correction=0), torch.ones_like(seen[:, 0]), atol=1e-4, rtol=0)


def test_an_ignorant_network_has_cross_entropy_ln_3() -> None:
    made, weights, batch, draws = problem()
    still = {name: torch.zeros_like(value) for name, value in weights.items()}
    loss = Objective(made, draws).loss(still, batch)
    torch.testing.assert_close(loss, torch.full((5,), np.log(3.0), dtype=torch.float32))


def test_mixup_of_equal_windows_is_cross_entropy() -> None:
    made, weights, batch, draws = problem()
    same = replace(
        batch,
        x_FSCT=batch.x_FSCT[:, :1].expand_as(batch.x_FSCT),
        label_FS=batch.label_FS[:, :1].expand_as(batch.label_FS),
    )
    plain = Objective(made, draws).loss(weights, same)
    torch.testing.assert_close(Mixup(made, draws, 2.0).loss(weights, same), plain)


def test_mixstyle_that_never_mixes_is_cross_entropy_and_otherwise_not() -> None:
    made, weights, batch, draws = problem()
    plain = Objective(made, draws).loss(weights, batch)
    assert torch.equal(MixStyle(made, draws, 0.1, 0.0).loss(weights, batch), plain)
    assert not torch.allclose(MixStyle(made, draws, 1.0, 1.0).loss(weights, batch), plain)


def test_group_dro_with_equal_weights_is_the_mean_over_subjects_and_moves_towards_the_worst() -> None:
    made, weights, batch, draws = problem()
    each = cross_entropy(log_probabilities(weights, made.layout, batch.x_FSCT), batch.label_FS)
    for step in (0.0, 60.0):  # large steps: all weight on the worst
        loss = GroupDro(made, draws, step).loss(weights, batch)
        for fold in range(5):
            subjects = batch.subject_FS[fold]
            means = torch.stack([each[fold][subjects == g].mean() for g in subjects.unique()])
            wanted = means.mean() if step == 0 else means.max()
            torch.testing.assert_close(loss[fold], wanted, rtol=0.02, atol=0)


def test_the_distance_of_moments_is_that_of_a_pair_of_groups() -> None:
    torch.manual_seed(0)
    h = torch.randn(1, 12, 3)
    member = functional.one_hot(torch.tensor([[0] * 5 + [1] * 7]), 3).float()
    one, two = h[0, :5], h[0, 5:]
    wanted = (one.mean(0) - two.mean(0)).square().mean() + (torch.cov(one.T) - torch.cov(two.T)).square().mean()
    torch.testing.assert_close(moment_distance(h, member)[0], wanted)
    copied = torch.cat([h[:, :6], h[:, :6]], dim=1)
    halves = functional.one_hot(torch.tensor([[0] * 6 + [1] * 6]), 2).float()
    torch.testing.assert_close(moment_distance(copied, halves), torch.zeros(1))


READINGS = [
    Reading(),
    Reading(heads="mixed"),
    Reading(heads="own", layer="hidden", variance=1.0),
    Reading(heads="own", augment=False),
]


@pytest.mark.parametrize("reading", READINGS)
def test_numbering_the_subsets_otherwise_leaves_the_loss_as_it_is(reading: Reading) -> None:
    subsets, order = 4, torch.tensor([2, 0, 3, 1])
    torch.manual_seed(0)
    _, weights, batch, _ = problem()
    if reading.heads != "one":
        weights = with_heads(weights, subsets)
        weights["head.weight"] = torch.randn_like(weights["head.weight"])
    z = batch.x_FSCT.flatten(2)
    width = BACKBONE.hidden[0] if reading.layer == "hidden" else z.shape[2]
    label = functional.one_hot(batch.label_FS, 3).float()
    subset = functional.one_hot(torch.randint(subsets, batch.label_FS.shape), subsets).float()
    layer = torch.randn(*z.shape[:2], width)
    mixture = torch.rand(*z.shape[:2], subsets)
    mixture = mixture / mixture.sum(dim=2, keepdim=True)

    def loss(weights: Weights, subset: Tensor, mixture: Tensor) -> Tensor:
        found = prototypes(layer, label, subset, centred=True)
        moved = mixture if reading.augment else None
        return collaborative_loss(weights, 3, z, batch.label_FS, label, subset, moved, found, reading, (0.33, 3.0))

    renamed = dict(weights)
    if reading.heads != "one":
        for name in ("head.weight", "head.bias"):
            value = weights[name]
            renamed[name] = value.reshape(*value.shape[:2], subsets, 3)[:, :, order].reshape(value.shape)
    torch.testing.assert_close(loss(renamed, subset[..., order], mixture[..., order]), loss(weights, subset, mixture))


def test_the_divergence_of_a_prediction_from_itself_is_0_and_of_others_is_positive() -> None:
    log_p = torch.log(torch.tensor([[[0.5, 0.5]]]))
    log_q = torch.log(torch.tensor([[[0.25, 0.75]]]))
    assert divergence(log_p, log_p).item() == 0
    assert divergence(log_p, log_q).item() == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3), rel=1e-5)


def test_copied_heads_predict_what_the_one_head_did() -> None:
    _, weights, batch, _ = problem()
    h = torch.rand(5, 24, BACKBONE.hidden[1])
    one = ensemble(head_logits(weights, h, 3))
    many = head_logits(with_heads(weights, 4), h, 3)
    torch.testing.assert_close(ensemble(many), one)
    mixture = torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(5, 24, 4)
    torch.testing.assert_close(of_heads(many, mixture), one)
    assert batch.label_FS.shape == (5, 24)
