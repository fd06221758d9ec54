"""Both verbs on a corpus in the layout of ingest, behind the real gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file

from stages import artifacts
from stages.errors import DataError, UsageError
from stages.metrics.summary import Summary, read_summary
from stages.systems.mixemo import evaluate, train
from stages.systems.mixemo.corpus import chosen_corpora, read_windows
from stages.systems.mixemo.settings import METHODS, Study, Train
from stages.validate.eeg import stage
from tests.systems.mixemo.small import BACKBONE, BASELINES, MIXING, TRAINING
from tests.validate.eeg.fakes import LABELS, features, frame, ingested, params, signal, subjects

PEOPLE = ("s01", "s02", "s03", "s04")
METHODS_HERE = ["erm", "mixup", "mixemo", "mixemo_literal", "erm_standardised"]
SETTINGS = Train(
    corpora=["four"],
    methods=METHODS_HERE,
    backbone=BACKBONE,
    training=TRAINING,
    baselines=BASELINES,
    mixing=MIXING,
    study=Study(
        populations=2,
        kinds=["coupled", "control"],
        methods=["erm", "mixemo", "iid_prototypes"],
        subsets=[1, 3],
        subjects=4,
        trials=3,
        windows=4,
    ),
)


@pytest.fixture
def four(workspace: Path) -> Path:
    """Four people; a feature of theirs tells the classes apart."""
    records = frame(*subjects("four", PEOPLE))
    stores = {}
    for seed, name in enumerate(PEOPLE):
        mine = records.filter(pl.col("subject") == name)
        store = features(mine, seed=seed)
        kind = np.array([LABELS.index(label) for label in mine["label"]])
        store["de"][:, 0, 0] = store["de"][:, 0, 0] * 0.1 + kind[store["trial"].to_numpy()]
        stores[name] = store
    ingested("four", records, stores)
    stage.run(params("four"), name="eeg", key="")
    return workspace


@pytest.fixture
def summary(four: Path, capsys: pytest.CaptureFixture[str]) -> Summary:
    for seed in ("0", "1"):
        train.run(train.Params(train=SETTINGS), name="mixemo", key=seed)
    artifacts.model("mixemo", 7).mkdir()
    evaluate.run(evaluate.Params(seeds=[0, 1]), name="mixemo", key="")
    assert "data/models/mixemo/7: not among the seeds [0, 1]" in capsys.readouterr().err
    return read_summary(artifacts.evaluation("mixemo"))


def rows(summary: Summary, title: str) -> list[list[Any]]:
    return next(table.rows for table in summary.tables if title in table.title)


def test_every_labelled_corpus_is_learnt_from_unless_some_are_named(
    four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = frame(*subjects("two", ("s01", "s02")))
    stores = {name: features(two.filter(pl.col("subject") == name), seed=0) for name in ("s01", "s02")}
    ingested("two", two, stores)
    stage.run(params("four", "two"), name="eeg", key="")
    assert chosen_corpora("labelled") == ["four"]
    assert "two: 3 classes, 2 subjects accepted, not learnt from" in capsys.readouterr().err
    assert chosen_corpora(["two", "four"]) == ["two", "four"]


def test_the_report_says_what_it_was_measured_on(summary: Summary) -> None:
    said = summary.headline
    assert (said.records, said.groups, said.split_unit, said.seeds, said.simulated) == (24, 4, "subject", 2, True)
    assert said.baseline_value is not None
    assert 0 <= said.baseline_value <= 1


def test_the_headline_is_the_mean_over_held_out_subjects_of_the_predictions(summary: Summary) -> None:
    table = artifacts.read_table(artifacts.evaluation("mixemo") / "predictions.parquet").collect()
    assert table.height == 2 * len(METHODS_HERE) * 24 * 4
    mine = table.filter(pl.col("method") == "mixemo").with_columns(right=pl.col("label") == pl.col("predicted"))
    by_subject = mine.group_by("subject").agg(pl.col("right").mean())
    assert summary.headline.value == pytest.approx(by_subject["right"].to_numpy().mean(), abs=1e-5)
    assert set(table["record_id"].str.split("/").list.get(1)) == set(PEOPLE)
    assert (table["record_id"].str.split("/").list.get(1) == table["subject"]).all()


def test_every_method_has_its_row_and_the_transductive_one_stands_last_and_is_marked(summary: Summary) -> None:
    found = rows(summary, "four (simulated): methods at one budget")
    assert [row[0] for row in found] == [METHODS[method] for method in METHODS_HERE]
    assert [row[1] for row in found] == ["baseline", "baseline", "reading", "reading", "transductive"]
    assert found[0][-4:] == [None] * 4  # ERM has no gain over itself
    assert len(rows(summary, "accuracy by subject")) == 4


def test_the_study_has_its_populations_control_and_curve(summary: Summary) -> None:
    found = rows(summary, "Fresh populations (simulated): methods")
    assert [row[:2] for row in found] == [
        [kind, METHODS[method]] for kind in ("coupled", "control") for method in ("erm", "mixemo", "iid_prototypes")
    ]
    assert [row[0] for row in rows(summary, "number of subsets")] == [1, 3]
    verdicts = {claim.claim: claim.verdict for claim in summary.claims}
    assert verdicts["Subsets tell more than subjects: subjects as subsets do worse (simulated)"] == "not tested"
    assert any("control" in claim and verdict != "not tested" for claim, verdict in verdicts.items())
    assert all("simulated" in claim for claim in verdicts)


def test_every_plot_is_there(summary: Summary) -> None:
    folder = artifacts.evaluation("mixemo") / "plots"
    assert sorted(plot.file for plot in summary.plots) == sorted(path.name for path in folder.iterdir())
    assert {"subjects_four.svg", "confusion_four.svg", "prototypes_four.svg", "subsets.svg"} <= {
        plot.file for plot in summary.plots
    }


def test_equal_inputs_give_equal_bytes(four: Path) -> None:
    digests = []
    for _ in range(2):
        train.run(train.Params(train=SETTINGS), name="mixemo", key="0")
        digests.append(artifacts.sha256_tree(artifacts.model("mixemo", 0)))
    assert digests[0] == digests[1]


def test_other_labels_of_the_held_out_subject_change_no_weight_of_its_fold(four: Path) -> None:
    """The same fact as for arrays, through files, gate and verb."""
    train.run(train.Params(train=SETTINGS), name="mixemo", key="0")
    path = artifacts.model("mixemo", 0) / "weights" / "four" / "mixemo.safetensors"
    before = load_file(path)
    records = artifacts.ingested("eeg", "four") / "records.parquet"
    table = pl.read_parquet(records)
    swapped = pl.when(pl.col("subject") == "s01").then(
        pl.col("label").replace({LABELS[0]: LABELS[1], LABELS[1]: LABELS[0]})
    )
    table.with_columns(label=swapped.otherwise(pl.col("label"))).write_parquet(records)
    train.run(train.Params(train=SETTINGS), name="mixemo", key="0")
    after = load_file(path)
    assert all((before[name][0] == after[name][0]).all() for name in before)
    assert any((before[name][1] != after[name][1]).any() for name in before)


def test_signals_train_the_convolutional_backbone(four: Path) -> None:
    for name in PEOPLE:
        store = artifacts.ingested("eeg", "four") / "subjects" / f"{name}.zarr"
        mine = frame(*subjects("four", [name]))
        samples = signal(mine)
        samples["signal"][:] = np.random.default_rng(0).normal(size=samples["signal"].shape)
        artifacts.write_dataset(store, {"signal": samples})
    conv = BACKBONE.model_copy(update={"kind": "conv"})
    short = TRAINING.model_copy(update={"steps": 12, "warmup": 4})
    settings = SETTINGS.model_copy(update={"backbone": conv, "training": short})
    train.run(train.Params(train=settings), name="mixemo", key="0")
    evaluate.run(evaluate.Params(seeds=[0]), name="mixemo", key="")
    assert read_summary(artifacts.evaluation("mixemo")).headline.records == 24


def test_a_corpus_that_cannot_be_learnt_from_is_named(four: Path) -> None:
    with pytest.raises(UsageError, match=r"fuor was not ingested; did you mean 'four'"):
        read_windows("fuor", signals=False)
    one = frame(*subjects("one", PEOPLE, 6, label=LABELS[0], label_value=-1.0))
    ingested("one", one)
    loose = {"gate": {"max_majority": 1.0}}
    stage.run(params("four", "one", one=loose, gate={"max_majority": 1.0}), name="eeg", key="")
    with pytest.raises(DataError, match="found windows of 1 classes"):
        read_windows("one", signals=False)


def test_models_of_other_subjects_than_the_gate_accepts_are_refused(four: Path) -> None:
    train.run(train.Params(train=SETTINGS), name="mixemo", key="0")
    config = artifacts.read_json(artifacts.model("mixemo", 0) / "config.json")
    config["learnt"]["four"]["subjects"] = ["s01", "s02", "s03"]
    artifacts.write_json(artifacts.model("mixemo", 0) / "config.json", config)
    with pytest.raises(
        DataError, match="found models of s01, s02, s03; expected a model for each of s01, s02, s03, s04"
    ):
        evaluate.run(evaluate.Params(seeds=[0]), name="mixemo", key="")


def test_a_seed_that_was_not_trained_is_named(workspace: Path) -> None:
    with pytest.raises(DataError, match=r"data/models/mixemo/3/history\.parquet: found no such file"):
        evaluate.run(evaluate.Params(seeds=[3]), name="mixemo", key="")


def test_settings_that_contradict_are_refused() -> None:
    block = SETTINGS.model_dump()
    for change, why in (
        ({"methods": ["erm", "mixup"]}, "mixemo should be among the methods"),
        ({"methods": ["erm", "mixemo", "erm"]}, "the same method stands twice"),
        ({"training": block["training"] | {"warmup": 30}}, "warmup is 30, and should be less than steps, 30"),
        ({"mixing": block["mixing"] | {"clip": [2, 3]}}, "the bounds should enclose 1"),
    ):
        with pytest.raises(ValueError, match=why):
            Train.model_validate(block | change)
