"""Both verbs on made-up families behind a gate that is taken as passed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stages import artifacts
from stages.accepted import rna
from stages.errors import DataError
from stages.metrics.summary import Summary, read_summary
from stages.report.svg import inline
from stages.systems.rna_transfer import evaluate, train
from stages.systems.rna_transfer.evaluate import Evaluate, Params
from tests.systems.rna_transfer import small

HOW = Evaluate(shown=2, lengths=[20], identities=[0.7])
SETTINGS = small.settings(arms=["random", "fine_tuned", "frozen", "random_frozen", "one_hot"])


def params(*seeds: int) -> Params:
    return Params(seeds=list(seeds), evaluate=HOW, identity=0.8)


def trained(patch: pytest.MonkeyPatch) -> None:
    """Two seeds, the molecules of which the gate accepts."""
    artifacts.ingested("rna", "made").mkdir(parents=True)
    patch.setattr(rna, "open_set", lambda keys: small.accepted())
    for seed in ("0", "1"):
        train.run(train.Params(train=SETTINGS), name="rna_transfer", key=seed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace in which two seeds were trained and evaluated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("evaluated"))
        trained(patch)
        evaluate.run(params(0, 1), name="rna_transfer", key="")
        yield artifacts.evaluation("rna_transfer").resolve()


@pytest.fixture
def summary(folder: Path) -> Summary:
    return read_summary(folder)


def test_metrics_say_what_was_measured_on_what_and_all_of_it_is_there(summary: Summary, folder: Path) -> None:
    said = summary.headline
    assert (said.seeds, said.simulated, said.groups) == (2, True, 2)
    assert said.split_unit == "family and 80 % sequence identity"
    titles = [table.title for table in summary.tables]
    for task in ("Base pairs", "Paired or unpaired bases", "RNA type of the molecule"):
        for name in ("arms", "strata", "test families"):
            assert f"{task}: {name} (simulated)" in titles
    assert all(title.endswith("(simulated)") for title in titles)
    assert len(summary.claims) == 8
    assert sorted(plot.file for plot in summary.plots) == sorted(path.name for path in (folder / "plots").iterdir())
    for plot in summary.plots:
        assert inline(folder / "plots" / plot.file, prefix="p", label=plot.title, system="rna_transfer").width > 0
    assert "NaN" not in json.dumps(summary.model_dump())


def test_scores_hold_every_test_molecule_of_every_arm_and_seed(summary: Summary, folder: Path) -> None:
    table = artifacts.read_table(folder / "scores.parquet").collect()
    pairs = table.filter((pl.col("task") == "base_pairs") & (pl.col("arm") == "fine_tuned"))
    assert pairs["seed"].value_counts().sort("seed")["count"].to_list() == [6, 6]  # four of families, two without
    mine = pairs.filter(pl.col("kind") == "families")
    assert summary.headline.value == pytest.approx(mine["value"].mean(), abs=1e-5)
    assert set(table["task"]) == set(SETTINGS.tasks)


def test_drawn_structures_are_those_of_the_first_seed(folder: Path) -> None:
    drawn = artifacts.read_table(folder / "predictions.parquet").collect()
    assert drawn["record_id"].n_unique() == 2
    assert set(drawn["arm"]) == {"fine-tuned", "random"}
    predicted = artifacts.read_table(artifacts.model("rna_transfer", 0) / "predictions.parquet").collect()
    mine = predicted.filter((pl.col("arm") == "fine_tuned") & (pl.col("task") == "base_pairs"))
    pairs = dict(mine.select("record_id", "pairs_left").iter_rows())
    for record, left in drawn.filter(pl.col("arm") == "fine-tuned").select("record_id", "pairs_left").iter_rows():
        assert pairs[record] == left


def test_equal_models_give_equal_bytes_and_other_seeds_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = artifacts.sha256_tree(folder)
    artifacts.model("rna_transfer", 7).mkdir(exist_ok=True)
    evaluate.run(params(0, 1), name="rna_transfer", key="")
    assert "data/models/rna_transfer/7: not among the seeds [0, 1] of params.yaml, ignored" in capsys.readouterr().err
    assert artifacts.sha256_tree(folder) == before


def test_answers_to_molecules_that_are_not_tested_now_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = [row._replace(part="train") if row.family == "F11" else row for row in small.molecules()]
    monkeypatch.setattr(rna, "open_set", lambda keys: small.accepted(moved))
    with pytest.raises(
        DataError, match="molecules that are not in the test part of transfer-0; expected the molecules"
    ):
        evaluate.run(params(0, 1), name="rna_transfer", key="")
    longer = [row._replace(sequence=row.sequence + "A") if row.part == "test" else row for row in small.molecules()]
    monkeypatch.setattr(rna, "open_set", lambda keys: small.accepted(longer))
    with pytest.raises(DataError, match=r"found answers for \d+ bases; expected \d+, the bases of the molecule"):
        evaluate.run(params(0, 1), name="rna_transfer", key="")


def test_a_seed_that_was_not_trained_is_named(workspace: Path) -> None:
    with pytest.raises(DataError, match=r"data/models/rna_transfer/3/pretraining\.parquet: found no such file"):
        evaluate.run(params(3), name="rna_transfer", key="")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"identities": []}, "at least 1 item"), ({"shown": 0}, "greater than or equal to 1"), ({"lengths": [0]}, "1")],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        Evaluate.model_validate(HOW.model_dump() | changes)
