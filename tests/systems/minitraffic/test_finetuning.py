"""Both modes of fine-tuning: what they train, what they keep, and that step 0 may be chosen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.systems.minitraffic.batches import Loaded
from stages.systems.minitraffic.finetuning import copies_of, finetune, forecast_batch, forecast_windows, trainable
from stages.systems.minitraffic.search import Chosen, Judge
from stages.systems.minitraffic.settings import Train
from stages.traffic.windows import Windows
from tests.systems.minitraffic.small import SETTINGS, network, on_cpu, settings, waves

HEADS = {"reduction_head.0.weight", "reduction_head.0.bias", "adaptive_head.weight", "adaptive_head.bias"}
EAGER = settings(finetuning={"steps": 12, "check": 4, "learning_rates": [0.01, 0.02], "batch": 48})


def fitted(arm: str, mode: str, train: Train = EAGER, values_TS: np.ndarray | None = None) -> tuple[Chosen, Loaded]:
    source = on_cpu(waves() if values_TS is None else values_TS, (0, 60))
    judge = Judge(Windows(source.panel.values_TS, 18, 6, 60, 100), 8)
    weights = network(told=False).state_dict()
    return finetune(weights, source, None, arm=arm, mode=mode, train=train, judge=judge, seed=0), source


def changed(found: Chosen) -> set[str]:
    start = network().state_dict()
    return {
        name.removeprefix("network.")
        for name, value in found.tensors.items()
        if not np.array_equal(value, start[name.removeprefix("network.")].numpy())
    }


def test_a_lane_trains_the_adaptive_and_the_reduction_head_alone() -> None:
    found, _ = fitted("minitraffic", "lane")
    assert found.choice["step"] > 0
    assert changed(found) <= HEADS
    assert set(trainable(network(), "minitraffic", "lane")) == HEADS


def test_a_road_and_the_network_from_scratch_train_everything() -> None:
    for arm, mode in (("minitraffic", "road"), ("scratch", "lane")):
        found, _ = fitted(arm, mode)
        assert {"embedding.weight", "layers.0.dense.0.weight"} <= changed(found)


def test_step_zero_is_a_candidate_and_stays_where_nothing_is_better() -> None:
    """Series that do not move: the last value is exact, and any update makes it worse."""
    rng = np.random.default_rng(0)
    still = np.repeat(rng.uniform(20, 60, (1, 6)), 200, axis=0).astype(np.float32)
    still[:60] += rng.normal(size=(60, 6)).astype(np.float32)
    found, _ = fitted("minitraffic", "lane", values_TS=still)
    assert found.choice["step"] == 0
    assert changed(found) == set()


def test_zero_shot_is_looked_at_once_and_not_trained() -> None:
    found, _ = fitted("zero_shot", "road")
    assert (found.looks, changed(found)) == (1, set())


def test_every_trained_arm_has_as_many_looks_and_the_chosen_one_is_the_best() -> None:
    for arm, mode in (("minitraffic", "lane"), ("scratch", "lane"), ("minitraffic", "road")):
        found, _ = fitted(arm, mode)
        assert found.looks == EAGER.finetuning.looks == 7
        best = min(found.history, key=lambda row: row["validation_mae"])
        assert best["chosen"]
        assert sum(row["chosen"] for row in found.history) == 1
        assert found.validation_mae == best["validation_mae"]


def test_from_scratch_the_looks_lie_further_apart() -> None:
    longer = settings(finetuning={"longer": 3})
    assert [row["step"] for row in fitted("scratch", "lane", longer)[0].history] == [0, 6, 12, 6, 12]
    assert [row["step"] for row in fitted("minitraffic", "lane", longer)[0].history] == [0, 2, 4, 2, 4]


def test_steps_after_the_block_reach_the_weights_through_the_choice_alone() -> None:
    once = settings(finetuning={"steps": 4, "check": 4, "learning_rates": [0.01], "dlinear_rates": [0.1]})
    values_TS = waves()
    before, _ = fitted("scratch", "lane", once, values_TS)
    values_TS[100:] = 0
    after, _ = fitted("scratch", "lane", once, values_TS)
    assert all(np.array_equal(before.tensors[name], after.tensors[name]) for name in before.tensors)


def test_copies_are_for_roads_that_are_tuned() -> None:
    assert copies_of("minitraffic", "road", SETTINGS) == 2
    assert copies_of("minitraffic", "lane", SETTINGS) == copies_of("zero_shot", "road", SETTINGS) == 1


def test_pooling_one_copy_is_no_pooling_and_pooling_more_smooths() -> None:
    made, source = network(told=True), on_cpu(waves())
    batch = source.at(np.arange(2))
    seen = source.normalised(batch.context_BSL)
    with torch.no_grad():
        found = [forecast_batch(made, source, seen, batch.clock_BF, None, copies) for copies in (1, 2, 3)]
    assert (found[0] - found[1]).abs().max() > 1e-3
    flat = source.normalised(torch.full_like(batch.context_BSL, 40))
    with torch.no_grad():
        alike = [forecast_batch(made, source, flat, batch.clock_BF, None, copies) for copies in (1, 3)]
    torch.testing.assert_close(alike[0], alike[1])


@pytest.mark.parametrize("size", [1, 4, 64])
def test_no_forecast_depends_on_the_windows_beside_it(size: int) -> None:
    made, source = network(told=True), on_cpu(waves())
    windows = Windows(source.panel.values_TS, 18, 6, 120, 160)
    whole = forecast_windows(made, source, None, 1, windows, np.arange(len(windows)))
    parts = [
        forecast_windows(made, source, None, 1, windows, np.arange(begin, min(begin + size, len(windows))))
        for begin in range(0, len(windows), size)
    ]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-4)
