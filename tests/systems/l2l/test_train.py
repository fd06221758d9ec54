"""Training from end to end on a made-up set: files, columns, equal bytes, arms that share a burn-in."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stages import artifacts
from stages.systems.l2l import train
from stages.systems.l2l.predictions import enlarged, table
from stages.systems.l2l.settings import ARMS, Train
from tests.systems.l2l.small import SETTINGS, made, settings, study

ALL = settings(arms=list(ARMS))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stages.accepted.refcoco.open_set", lambda key: made())
    return tmp_path


def trained(of: Train = SETTINGS) -> Path:
    train.run(train.Params(train=of), name="l2l", key="0")
    return artifacts.model("l2l", 0)


def test_all_arms_train_and_predict_every_sentence_of_validation_and_test(project: Path) -> None:
    folder = trained(ALL)
    predictions = pl.read_parquet(folder / "predictions.parquet")
    accepted = made()
    wanted = len(accepted.sentence_S) - len(accepted.part("train"))
    counts = dict(predictions.group_by("arm").len().iter_rows())
    assert counts == dict.fromkeys(ARMS, wanted)
    assert (predictions["intersection"] <= predictions["union"]).all()
    assert set(predictions["part"]) == {"validation", "testA", "testB"}
    assert {path.stem for path in (folder / "weights" / "made" / "0.5").iterdir()} == set(ARMS) - {"prior"}
    config = artifacts.read_json(folder / "config.json")["learnt"]["made"]["0.5"]
    assert config["simulated"] is True
    assert (config["images"]["labelled"], config["images"]["unlabelled"]) == (4, 4)
    assert set(config["thresholds"]) == {"maps/prior", "none/prior", "maps/no prior"}


def test_rounds_and_policies_are_kept(project: Path) -> None:
    folder = trained(ALL)
    rounds = pl.read_parquet(folder / "rounds.parquet")
    of_all = rounds.filter(pl.col("arm") == "accept_all")
    assert of_all["round"].to_list() == [0, 1]
    assert of_all["accepted"].to_list() == of_all["pool"].to_list()
    assert "supervised" not in rounds["arm"]
    policy = pl.read_parquet(folder / "policy.parquet")
    assert policy.group_by("arm").agg(pl.col("chosen").sum())["chosen"].to_list() == [1] * policy["arm"].n_unique()
    history = pl.read_parquet(folder / "history.parquet")
    assert history.filter(pl.col("arm") == "learned")["step"].to_list() == [2, 4]


def test_equal_inputs_give_equal_bytes(project: Path) -> None:
    first = artifacts.sha256_tree(trained())
    assert artifacts.sha256_tree(trained()) == first
    assert not (artifacts.DATA / ".checkpoints" / "l2l" / "0").exists()


def test_test_sentences_reach_no_weight(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = artifacts.sha256_tree(trained() / "weights")
    other = made()
    image_I = list(other.image_I)
    for i in {int(other.image_O[other.object_S[s]]) for part in ("testA", "testB") for s in other.part(part)}:
        image_I[i] = other.image_I[0]
    object.__setattr__(other, "image_I", tuple(image_I))
    monkeypatch.setattr("stages.accepted.refcoco.open_set", lambda key: other)
    assert artifacts.sha256_tree(trained() / "weights") == first


def test_the_prior_arm_is_the_prior_in_the_frame_of_the_image() -> None:
    of = study(settings(arms=["prior", "burn_in", "learned"]))
    of.arm("prior")
    found = table(of.predictions, dict.fromkeys(of.predictions[0]))
    # The priors are the true masks at 16 x 16 pixels; the images have 40 x 32.
    assert (found["intersection"] / found["union"]).min() > 0.5


def test_a_map_is_enlarged_to_the_image() -> None:
    import torch

    found = enlarged(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), 4, 8)
    assert found.tolist() == [[True] * 4 + [False] * 4] * 4


def test_arms_of_a_base_share_one_burn_in() -> None:
    of = study(settings(arms=["burn_in", "supervised", "learned"]))
    for arm in ("burn_in", "supervised", "learned"):
        of.arm(arm)
    assert len([key for key in of._fitted if key[1] == "whole"]) == 1
