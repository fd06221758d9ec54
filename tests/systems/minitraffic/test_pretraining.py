"""Pre-training learns, repeats itself, and leaves out what it is told to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.systems.minitraffic.model import features
from stages.systems.minitraffic.pretraining import augmented, cosine, graph_of, pretrain, pretraining_loss, projections
from tests.systems.minitraffic.small import SETTINGS, network, on_cpu, settings, waves

LEARNS = settings(pretraining={"steps": 60, "batch": 96, "learning_rate": 0.01, "check": 20})


def test_it_learns_a_rhythm_that_the_last_value_does_not_know() -> None:
    source = on_cpu(waves())
    found = pretrain([source], LEARNS, without="nothing", seed=0)
    windows = source.windows((120, 160))
    batch = source.batch(windows, np.arange(len(windows)))
    last = (batch.context_BSL[..., -1:] - batch.target_BSH).abs().mean().item() / source.panel.scale
    assert found.history[-1]["validation_mae"] < 0.6 * last
    assert [row["step"] for row in found.history] == [20, 40, 60]
    assert found.history[-1]["windows"] == 60 * 96


@pytest.mark.parametrize("without", ["nothing", "fda", "clustering", "forecast"])
def test_equal_seeds_give_equal_weights_and_other_seeds_others(without: str) -> None:
    sources = [on_cpu(waves()), on_cpu(waves(4, seed=1))]
    first, again, other = (pretrain(sources, SETTINGS, without=without, seed=seed).weights for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embedding.weight"], other["embedding.weight"])


def test_steps_after_the_training_part_do_not_reach_the_weights() -> None:
    values_TS = waves()
    before = pretrain([on_cpu(values_TS)], SETTINGS, without="nothing", seed=0).weights
    values_TS[120:] = np.random.default_rng(5).normal(size=values_TS[120:].shape)
    after = pretrain([on_cpu(values_TS)], SETTINGS, without="nothing", seed=0).weights
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_reconstruction_alone_leaves_the_heads_as_they_were() -> None:
    start = network().state_dict()
    found = pretrain([on_cpu(waves())], SETTINGS, without="forecast", seed=0).weights
    assert not found["adaptive_head.weight"].any()
    assert not found["graph.out.weight"].any()
    assert not torch.equal(found["reconstruction.weight"], start["reconstruction.weight"])


def test_without_clustering_the_projection_and_the_graph_are_not_learned() -> None:
    start = network().state_dict()
    found = pretrain([on_cpu(waves())], SETTINGS, without="clustering", seed=0).weights
    for name in ("projection.bias", "graph.out.weight"):
        assert torch.equal(found[name], start[name])


def test_a_missing_target_has_no_gradient_and_a_missing_value_stays_missing() -> None:
    source = on_cpu(waves())
    batch = source.at(np.arange(2))
    gone = batch._replace(target_BSH=torch.full_like(batch.target_BSH, torch.nan))
    made = network()
    for each in (batch, gone):
        made.zero_grad()
        loss = pretraining_loss(made, source, each, None, SETTINGS, "nothing", np.random.default_rng(0))
        loss.backward()  # type: ignore[no-untyped-call]
        assert torch.isfinite(loss)
    assert made.adaptive_head.weight.grad is not None
    assert not made.adaptive_head.weight.grad.any()
    context_BSL = batch.context_BSL.clone()
    context_BSL[0, 0, 3:7] = torch.nan
    seen = augmented(source, context_BSL, SETTINGS.fda, np.random.default_rng(0))
    assert (seen.there_BSL == torch.isfinite(context_BSL)).all()
    assert torch.isfinite(seen.x_BSL).all()


def test_without_fda_or_strength_a_view_is_the_window() -> None:
    source = on_cpu(waves())
    context_BSL = source.at(np.arange(2)).context_BSL
    plain, rng = source.normalised(context_BSL), np.random.default_rng(0)
    assert torch.equal(augmented(source, context_BSL, SETTINGS.fda, rng, off=True).x_BSL, plain.x_BSL)
    none = SETTINGS.fda.model_copy(update={"strength": 0.0})
    assert torch.equal(augmented(source, context_BSL, none, rng).x_BSL, plain.x_BSL)
    assert not torch.equal(augmented(source, context_BSL, SETTINGS.fda, rng).x_BSL, plain.x_BSL)


def test_the_graph_is_that_of_the_steps_it_is_given() -> None:
    values_TS = waves(12)
    graph, _ = graph_of(network(), on_cpu(values_TS), (40, 80), SETTINGS, 0)
    values_TS[80:] = 0
    values_TS[:40] = 0
    again, _ = graph_of(network(), on_cpu(values_TS, (40, 80)), (40, 80), SETTINGS, 0)
    assert (graph.cluster_S >= 0).all()
    # level and scale are those of other training steps, so only the series' likeness is the same
    assert projections(network(), on_cpu(values_TS, (40, 80)), (40, 80)).shape == (12, 16)
    assert again.neighbour_SK.shape == (12, 5)


def test_the_context_token_knows_no_unit() -> None:
    values_TS = waves()
    found = []
    for factor in (1.0, 0.621371):
        source = on_cpu(values_TS * np.float32(factor))
        batch = source.at(np.arange(3))
        seen = source.normalised(batch.context_BSL)
        found.append(features(seen, batch.clock_BF, source.panel.level, source.panel.scale))
    torch.testing.assert_close(found[0], found[1], atol=1e-4, rtol=1e-4)


def test_the_rate_falls_from_its_start_to_nothing() -> None:
    assert [cosine(0.2, step, 100) for step in (0, 50, 100)] == pytest.approx([0.2, 0.1, 0])
