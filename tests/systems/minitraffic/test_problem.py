"""What a target gives: blocks inside the training part, levels and scales nothing outside moves, clocks or none."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.accepted.traffic import Accepted
from stages.errors import DataError
from stages.systems.minitraffic import problem
from stages.systems.minitraffic.problem import few_shot_block, level_and_scale, open_source, open_target, sensor_levels
from stages.systems.minitraffic.settings import Goal, Train
from tests.systems.minitraffic.small import waves
from tests.systems.minitraffic.tested import CONTEXT, HORIZON, accepted, target

SHORT = Train.model_construct(context=CONTEXT, horizon=HORIZON)


def opened(found: Accepted, mode: str = "lane") -> problem.Target:
    with mock.patch.object(problem, "open_set", return_value=found):
        return open_target(Goal.model_validate({"set": "corridor", "mode": mode}), SHORT)


@given(start=st.integers(0, 50), steps=st.integers(30, 3000), share=st.floats(0.001, 1), seed=st.integers(0, 20))
def test_a_block_is_contiguous_and_inside_the_training_part(start: int, steps: int, share: float, seed: int) -> None:
    block = few_shot_block((start, start + steps), share, length=24, windows=8, seed=seed, key="a")
    assert start <= block[0] < block[1] <= start + steps
    assert block[1] - block[0] == min(max(round(share * steps), 31), steps)


def test_the_seed_places_the_block_and_the_whole_share_is_the_whole_part() -> None:
    def block(share: float, seed: int) -> tuple[int, int]:
        return few_shot_block((0, 5644), share, length=24, windows=8, seed=seed, key="a")

    assert block(1.0, 0) == block(1.0, 1) == (0, 5644)
    assert block(0.05, 0) == block(0.05, 0)
    assert len({block(0.05, seed)[0] for seed in range(10)}) > 5
    assert block(0.05, 3)[1] - block(0.05, 3)[0] == 282


def test_level_and_scale_by_hand() -> None:
    values_TS = np.array([[1, 0], [3, np.nan], [10, 4], [10, 8], [1000, 1000]], np.float32)
    # windows of two steps: standard deviations 1, 0 and (alone), 2
    assert level_and_scale(values_TS, (0, 4), 2) == pytest.approx((36 / 7, 1.0))


def test_the_scale_is_the_same_for_few_steps_and_for_many() -> None:
    values_TS = waves(steps=2000)
    few, many = level_and_scale(values_TS, (300, 400), 18)[1], level_and_scale(values_TS, (0, 2000), 18)[1]
    assert few == pytest.approx(many, rel=0.05)


def test_a_set_that_never_moves_has_scale_one_and_one_without_a_value_level_zero() -> None:
    assert level_and_scale(np.full((40, 2), 5, np.float32), (0, 40), 18) == (5, 1)
    assert level_and_scale(np.full((40, 2), np.nan, np.float32), (0, 40), 18) == (0, 1)


def test_a_sensor_without_a_training_value_has_the_level_of_the_set() -> None:
    values_TS = np.array([[1, np.nan], [3, np.nan], [9, 7]], np.float32)
    assert sensor_levels(values_TS, (0, 2), 40.0).tolist() == [2, 40]


def test_values_outside_the_block_and_the_roads_training_part_move_nothing() -> None:
    found = target()
    before = found.panel((30, 50))
    other = accepted()
    other.values_TS[50:] += 100
    other.values_TS[:30] += 100
    assert other.roads_TR is not None
    other.roads_TR[other.parts["validation"][0] :] += 100
    after = opened(other).panel((30, 50))
    assert (after.level, after.scale) == (before.level, before.scale)
    assert (after.level_S == before.level_S).all()


def test_a_road_target_takes_level_and_scale_from_its_block() -> None:
    found = target(mode="road")
    assert found.own_roads is None
    assert found.panel((30, 50)).level == pytest.approx(found.values_TS[30:50].mean(), rel=1e-6)


def test_the_clock_is_sine_and_cosine_or_null() -> None:
    clock_TF = target().clock_TF  # hourly from midnight
    assert clock_TF[[0, 6, 12]] == pytest.approx(np.array([[0, 1, 1], [1, 0, 1], [0, -1, 1]]), abs=1e-6)
    without = target(clock=False)
    assert not without.clock_TF.any()
    assert without.slots == 1
    assert not without.slot().any()


def test_a_source_gives_its_roads_and_a_road_set_its_sensors() -> None:
    found = accepted()
    with mock.patch.object(problem, "open_set", return_value=found):
        assert open_source("corridor", SHORT)[0].values_TS.shape[1] == 3
    with mock.patch.object(problem, "open_set", return_value=replace(found, roads_TR=None)):
        panel, simulated = open_source("corridor", SHORT)
    assert panel.values_TS.shape[1] == 6
    assert simulated


def test_a_part_without_a_window_is_named() -> None:
    found = accepted()
    with pytest.raises(
        DataError, match=r"found 8 steps in the part validation; expected at least one window of 6 \+ 3"
    ):
        opened(replace(found, parts=found.parts | {"validation": (96, 104)}))
    with pytest.raises(DataError, match=r"found 0 steps in the part test"):
        opened(replace(found, parts={name: found.parts[name] for name in ("train", "validation")}))
    with (
        mock.patch.object(problem, "open_set", return_value=replace(found, parts=found.parts | {"train": (0, 5)})),
        pytest.raises(DataError, match="found 5 training steps"),
    ):
        open_source("corridor", SHORT)


def test_a_lane_target_without_lanes_is_refused() -> None:
    found = accepted()
    bare = found.sensors.with_columns(lane=found.sensors["lane"].replace(dict.fromkeys(range(2))))
    with pytest.raises(DataError, match="found no lanes; expected sensors of single lanes"):
        opened(replace(found, sensors=bare))
