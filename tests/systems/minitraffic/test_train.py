"""The verb: equal bytes for equal seeds, forecasts out of what is stored, and no step that it may not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

from stages import artifacts
from stages.accepted.traffic import Accepted
from stages.errors import DataError
from stages.systems.minitraffic import problem, train
from stages.systems.minitraffic.forecasts import load, predict, weights_file
from stages.systems.minitraffic.problem import open_target
from stages.systems.minitraffic.settings import ARMS, Train, arms_of
from tests.systems.minitraffic.small import BLOCK
from tests.systems.minitraffic.tested import accepted

SMALL = Train.model_validate(
    BLOCK
    | {
        "arms": list(ARMS),
        "context": 6,
        "horizon": 3,
        "network": {"patch": 3, "stride": 3, "width": 8, "layers": 1, "heads": 2},
        "clustering": BLOCK["clustering"] | {"neighbours": 2},
        "targets": [{"set": "corridor", "mode": "lane"}],
        "pretraining": BLOCK["pretraining"] | {"roads": ["corridor", "elsewhere"]},
    }
)


def made_sets() -> dict[str, Accepted]:
    return {"corridor": accepted(), "elsewhere": accepted(seed=3)}


@pytest.fixture
def sets(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Accepted]:
    """Sets that a test may change, in an empty folder."""
    made = made_sets()
    monkeypatch.setattr(problem, "open_set", lambda key, variable=None: made[key])
    return made


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The models of seed 0 in a folder that tests only read."""
    made = made_sets()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("once"))
        patch.setattr(problem, "open_set", lambda key, variable=None: made[key])
        trained()
        yield artifacts.model("minitraffic", 0).absolute()


def trained(seed: int = 0) -> str:
    train.run(train.Params(train=SMALL), name="minitraffic", key=str(seed))
    return artifacts.sha256_tree(artifacts.model("minitraffic", seed))


def test_equal_seeds_give_equal_bytes(sets: dict[str, Accepted]) -> None:
    assert trained() == trained()
    known = artifacts.read_json(artifacts.model("minitraffic", 0) / "config.json")["learnt"]["corridor"]
    assert (known["blocks"]["0.2"]["steps"], known["blocks"]["0.2"]["windows"]) == (19, 11)


def test_the_test_part_reaches_nothing(sets: dict[str, Accepted]) -> None:
    before = trained()
    for each in sets.values():
        start, stop = each.parts["test"]
        each.values_TS[start:stop] = np.nan
        assert each.roads_TR is not None
        each.roads_TR[start:stop] = 0
    assert trained() == before


def test_lanes_outside_the_block_reach_no_weight_but_through_the_choice(sets: dict[str, Accepted]) -> None:
    trained()
    folder = artifacts.model("minitraffic", 0)
    block = artifacts.read_json(folder / "config.json")["learnt"]["corridor"]["blocks"]["0.2"]
    file = weights_file(folder, "corridor", "zero_shot", 0.2)
    before = load_file(file)
    lanes = sets["corridor"].values_TS
    lanes[: block["start"]] = 7
    lanes[block["stop"] : sets["corridor"].parts["train"][1]] = 7
    trained()
    after = load_file(file)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_every_arm_forecasts_every_window_once_whatever_the_batch(once: Path) -> None:
    goal = SMALL.targets[0]
    target = open_target(goal, SMALL)
    for arm in arms_of(SMALL, goal):
        told = load(once, target, arm, 0.2)
        whole = list(predict(told, target, batch=1000))
        parts = list(predict(told, target, batch=4))
        assert len(whole) == 1
        start, stop = target.accepted.part("test")
        assert np.concatenate([each.start_W for each in parts]).tolist() == list(range(start + 6, stop - 2))
        joined = np.concatenate([each.forecast_WHS for each in parts])
        assert joined.shape == (stop - start - 8, 3, 6)
        assert np.isfinite(joined).all()
        np.testing.assert_allclose(joined, whole[0].forecast_WHS, atol=1e-4)
        there = whole[0].observed_WHS
        np.testing.assert_array_equal(there[:, 0], target.values_TS[start + 6 : stop - 2])


def test_what_was_chosen_is_what_is_stored(once: Path) -> None:
    """The stored weights, read again, have the validation error that their choice was made by."""
    folder, goal = once, SMALL.targets[0]
    target = open_target(goal, SMALL)
    known = artifacts.read_json(folder / "config.json")["learnt"]["corridor"]
    few = target.windows("validation")
    indices = np.unique(np.linspace(0, len(few) - 1, 8).round().astype(int))
    for arm in arms_of(SMALL, goal):
        told = list(predict(load(folder, target, arm, 0.2), target, part="validation"))
        error = np.abs(
            np.concatenate([each.forecast_WHS for each in told]) - np.concatenate([each.observed_WHS for each in told])
        )
        chosen = known["chosen"]["0.2"][arm]
        assert np.nanmean(error[indices]) == pytest.approx(chosen["validation_mae"], rel=1e-4), arm
        tuned = arm not in ("last_value", "zero_shot")
        assert chosen["looks"] == (SMALL.finetuning.looks if tuned else 1)


def test_the_tables_say_what_was_tried_and_which_lanes_are_neighbours(once: Path) -> None:
    folder = once
    history = pl.read_parquet(folder / "history.parquet")
    pretrained = history.filter(stage="pretraining")["target"].unique().sort().to_list()
    assert pretrained == ["corridor+elsewhere", "elsewhere"]
    found = history.filter(pl.col("stage") != "pretraining").group_by("arm").agg(pl.col("chosen").sum())
    assert set(found["arm"]) == set(ARMS)
    assert found["chosen"].to_list() == [1] * len(ARMS)
    graph = pl.read_parquet(folder / "graph.parquet")
    assert set(graph["sensor"]) == set(accepted().sensors["sensor"])
    assert not graph.filter(pl.col("position") == pl.col("neighbour_position")).height
    own = dict(graph.select("position", "cluster").iter_rows())
    edges = graph.drop_nulls("neighbour_position")
    assert all(own[here] == own[there] for here, there in edges.select("position", "neighbour_position").iter_rows())


def test_the_numbers_of_an_arm_are_counted(once: Path) -> None:
    known = artifacts.read_json(once / "config.json")["learnt"]["corridor"]
    assert known["parameters"]["last_value"] == 0
    assert known["parameters"]["ridge"] == 6 * 3  # five differences and a constant
    assert known["parameters"]["dlinear"] == 2 * (6 * 3 + 3)
    assert known["parameters"]["minitraffic"] == known["trained"]["scratch"]
    assert known["trained"]["minitraffic"] == (3 * 8 * 8 + 8) + (8 * 3 + 3)  # reduction and adaptive head
    assert known["trained"]["zero_shot"] == 0
    assert known["own_roads"]
    assert known["sources"] == ["corridor", "elsewhere"]


def test_weights_of_other_sensors_and_missing_ones_are_refused(once: Path) -> None:
    target = open_target(SMALL.targets[0], SMALL)
    with pytest.raises(DataError, match=r"ridge_0\.5\.safetensors: found no such file"):
        load(once, target, "ridge", 0.5)
    other = type(target)(target.goal, target.accepted, 6, 3, target.values_TS[:, :5], target.clock_TF)
    with pytest.raises(DataError, match="found levels of 6 sensors; expected 5, as corridor has"):
        load(once, other, "ridge", 0.2)


def test_lanes_without_roads_are_no_source_for_themselves(sets: dict[str, Accepted]) -> None:
    sets["corridor"] = replace(sets["corridor"], roads_TR=None, road_ids=(), road_of_sensor_S=np.full(6, -1))
    with pytest.raises(DataError, match="found lanes without roads; expected roads to pre-train on"):
        trained()
