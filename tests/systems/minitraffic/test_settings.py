"""Settings that contradict are refused; what targets may learn from."""

from __future__ import annotations

from typing import Any

import pytest

from stages.systems.minitraffic.settings import Train, arms_of, sources
from tests.systems.minitraffic.small import BLOCK, SETTINGS, settings


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"arms": ["scratch", "minitraffic"]}, "last_value should be among the arms"),
        ({"arms": ["last_value", "minitraffic", "last_value"]}, "one of the arms stands twice"),
        ({"shares": [0.1, 0.1]}, "one of the shares stands twice"),
        ({"context": 17}, "context is 17; patches of 3 steps every 3 should cover it exactly"),
        ({"network": BLOCK["network"] | {"heads": 5}}, "heads is 5, and should divide width, 32"),
        ({"finetuning": BLOCK["finetuning"] | {"dlinear_rates": [0.1]}}, "should be as many as learning_rates"),
        ({"finetuning": BLOCK["finetuning"] | {"scratch_rates": [0.1]}}, "scratch_rates are 1, and should be as many"),
        ({"pretraining": BLOCK["pretraining"] | {"roads": ["roads"]}}, "target roads should have other roads"),
    ],
)
def test_settings_that_contradict_are_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Train.model_validate(BLOCK | change)


def test_a_road_target_never_learns_from_itself_and_a_lane_target_may_from_its_roads() -> None:
    train = settings(pretraining={"roads": ["corridor", "roads"]})
    lane, road = train.targets
    assert sources(train, lane, own=True) == ("corridor", "roads")
    assert sources(train, lane, own=False) == ("roads",)
    assert sources(train, road, own=True) == sources(train, road, own=False) == ("corridor",)


def test_other_roads_is_an_arm_where_it_differs_and_has_roads() -> None:
    train = settings(arms=["last_value", "minitraffic", "other_roads"], pretraining={"roads": ["corridor", "roads"]})
    lane, road = train.targets
    assert "other_roads" in arms_of(train, lane)
    assert "other_roads" not in arms_of(train, road)
    alone = settings(
        arms=train.arms, targets=[{"set": "corridor", "mode": "lane"}], pretraining={"roads": ["corridor"]}
    )
    assert "other_roads" not in arms_of(alone, alone.targets[0])


def test_looks_are_every_rate_at_every_check_and_the_start() -> None:
    assert SETTINGS.finetuning.looks == 2 * 2 + 1
    assert settings(finetuning={"steps": 5}).finetuning.looks == 2 * 3 + 1


def test_arms_that_train_all_weights_train_longer_with_as_many_looks() -> None:
    budget = settings(finetuning={"longer": 5, "scratch_rates": [0.002, 0.02]}).finetuning
    assert budget.budget("scratch", "lane") == budget.budget("dlinear", "lane") == (20, 10)
    assert budget.budget("minitraffic", "road") == budget.budget("scratch", "road") == (20, 10)
    assert budget.budget("minitraffic", "lane") == (4, 2)
    assert budget.rates("scratch") == [0.002, 0.02]
    assert budget.rates("dlinear") == [0.01, 0.1]
    assert budget.rates("minitraffic") == SETTINGS.finetuning.rates("scratch") == [0.001, 0.01]
