"""The verb: equal bytes for equal seeds, every arm answers every test molecule, nothing of the test part is seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

from stages import artifacts
from stages.accepted.rna import Accepted
from stages.rna import structure
from stages.systems.rna_transfer import corpus, train
from stages.systems.rna_transfer.encoder import Encoder
from stages.systems.rna_transfer.settings import Train, applies, runs_of
from tests.systems.rna_transfer.small import SETTINGS, TASKS, accepted, molecules, settings

FEW = settings(tasks=["paired"], arms=["random", "random_frozen", "fine_tuned", "one_hot"], geometry={"twins": False})


def trained(asked: Train = SETTINGS, seed: int = 0) -> Path:
    train.run(train.Params(train=asked), name="rna_transfer", key=str(seed))
    return artifacts.model("rna_transfer", seed).absolute()


def sees(patch: pytest.MonkeyPatch, made: Accepted) -> None:
    artifacts.ingested("rna", "made").mkdir(parents=True, exist_ok=True)
    patch.setattr(corpus.rna, "open_set", lambda keys: made)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The models of seed 0 in a folder that tests only read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("once"))
        sees(patch, accepted())
        yield trained()


def test_every_arm_answers_every_test_molecule_once(once: Path) -> None:
    found = pl.read_parquet(once / "predictions.parquet")
    told = artifacts.read_json(once / "config.json")["learnt"]["tasks"]
    for task in TASKS:
        number = told[task]["molecules"]["test"] + told[task]["molecules"]["external"]
        for run in runs_of(SETTINGS):
            mine = found.filter(task=task, model=run.model, tokens=run.tokens, arm=run.arm)
            assert mine.height == mine["record_id"].n_unique() == (number if applies(run.arm, task) else 0)
    made = accepted()
    lengths = dict(zip(made.record_ids, made.lengths.tolist(), strict=True))
    for record, score in found.filter(task="paired").select("record_id", "scores").iter_rows():
        assert len(score) == lengths[record]
        assert 0 <= min(score) <= max(score) <= 1
    for record, left, right in found.filter(task="base_pairs")["record_id", "pairs_left", "pairs_right"].iter_rows():
        pairs = np.stack([left, right], axis=1).astype(np.int32).reshape(-1, 2)
        np.testing.assert_array_equal(structure.checked(pairs, lengths[record]), pairs)
    totals = found.filter(task="rna_type")["scores"].list.eval(pl.element().exp()).list.sum()
    np.testing.assert_allclose(totals.to_numpy(), 1, atol=1e-5)


def test_pre_trained_weights_are_an_encoder(once: Path) -> None:
    weights = load_file(once / "weights" / "pretrained_small_600.safetensors")
    Encoder(SETTINGS.sizes["small"]).load_state_dict(weights)
    rows = pl.read_parquet(once / "pretraining.parquet")
    assert rows["seen"].is_sorted()
    assert rows["seen"][-1] >= 600
    assert rows["validation_loss"].null_count() == 0


def test_histories_start_before_the_first_update_and_name_the_step_that_answers(once: Path) -> None:
    history = pl.read_parquet(once / "history.parquet")
    by_arm = history.group_by("model", "tokens", "task", "arm")
    assert by_arm.agg(pl.col("chosen").sum())["chosen"].to_list() == [1] * by_arm.len().height
    assert history.filter(step=0)["loss"].null_count() == history.filter(step=0).height
    assert history.filter(step=0, task="base_pairs")["threshold"].null_count() == 0


def test_frozen_arms_go_nowhere_and_the_others_are_measured(once: Path) -> None:
    found = pl.read_parquet(once / "geometry.parquet")
    whole = found.filter(pl.col("layer").is_null(), measure="distance", task="paired")
    assert set(whole["arm"]) == {"random", "fine_tuned", "lower", "upper", "shuffled"}
    matched = found.filter(measure="matched_loss")
    assert set(matched["arm"]) == {"random", "fine_tuned"}
    assert matched["value"].n_unique() == 1
    assert set(found.filter(measure="barrier_twin")["arm"]) == {"random", "fine_tuned"}
    cka = found.filter(measure="cka_pretrained_random", task="paired")
    assert set(cka["arm"]) == {"frozen"}
    assert cka.height == 9
    assert cka["value"].is_between(0, 1 + 1e-9).all()


def test_what_was_learnt_from_is_told(once: Path) -> None:
    told = artifacts.read_json(once / "config.json")
    assert Train.model_validate({name: value for name, value in told.items() if name != "learnt"}) == SETTINGS
    learnt = told["learnt"]
    assert learnt["simulated"]
    assert learnt["corpus"]["split"] == "transfer-0"
    encoder = Encoder(SETTINGS.sizes["small"])
    assert learnt["sizes"]["small"]["parameters"] == sum(weight.numel() for weight in encoder.parameters())
    assert learnt["tasks"]["paired"]["head_parameters"] == {"small": 16 + 1, "one_hot": 5 + 1}


def test_equal_seeds_give_equal_bytes_and_no_scratch(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sees(monkeypatch, accepted())
    before = artifacts.sha256_tree(trained(FEW))
    assert artifacts.sha256_tree(trained(FEW)) == before
    assert artifacts.sha256_tree(trained(FEW, seed=1)) != before
    assert not list((artifacts.DATA / ".checkpoints" / "rna_transfer").iterdir())


def test_the_test_part_reaches_no_weight(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sees(monkeypatch, accepted())
    folder = trained(FEW)
    before = [pl.read_parquet(folder / f"{name}.parquet") for name in ("history", "pretraining", "geometry")]
    weights = load_file(folder / "weights" / "pretrained_small_600.safetensors")
    changed = [
        row._replace(sequence="C" * len(row.sequence)) if row.part in ("test", "external") else row
        for row in molecules()
    ]
    sees(monkeypatch, accepted(changed))
    folder = trained(FEW)
    after = [pl.read_parquet(folder / f"{name}.parquet") for name in ("history", "pretraining", "geometry")]
    assert all(first.equals(second) for first, second in zip(before, after, strict=True))
    again = load_file(folder / "weights" / "pretrained_small_600.safetensors")
    assert all(torch.equal(weights[name], again[name]) for name in weights)
