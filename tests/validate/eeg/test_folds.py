from __future__ import annotations

import polars as pl

from stages.validate.eeg import folds
from stages.validate.eeg.folds import Splits
from tests.validate.eeg.fakes import PEOPLE, frame, subjects

SPLITS = Splits(seed=0, validation=0.2)


def split(records: pl.DataFrame, refused: str = "", noun: str = "subject") -> folds.CorpusSplit:
    return folds.split("c", records, ~records["record_id"].str.starts_with(refused or "-"), SPLITS, noun=noun)


def test_each_subject_is_held_out_once_with_all_its_trials() -> None:
    found = split(frame(*subjects("c", PEOPLE)))
    assert found.name == "leave one subject out, c"
    assert found.table.columns == ["record_id", "group", "fold", "part"]
    assert found.table.height == 36 * 6
    tested = found.table.filter(pl.col("part") == "test")
    assert sorted(tested["record_id"]) == sorted(frame(*subjects("c", PEOPLE))["record_id"])
    assert (tested["group"] == tested["fold"]).all()
    assert found.leaks == []
    parts = {part: size["records"] for part, size in found.described["parts"].items()}
    assert parts == {"train": 24, "validation": 6, "test": 6}
    assert found.described["folds"] == 6


def test_clips_that_all_subjects_saw_are_reported_and_no_leak() -> None:
    found = split(frame(*subjects("c", PEOPLE)))
    assert found.described["notes"] == [
        "6 folds, each holds out one subject; the parts are those of an average fold",
        "shared stimuli: 6 of 6 stimuli shown to a subject that is held out are also in the training part of that "
        "fold; results hold for new subjects, not for new stimuli",
    ]
    own = [row | {"stimulus": row["record_id"]} for row in subjects("c", PEOPLE)]
    assert not any("shared" in note for note in split(frame(*own)).described["notes"])


def test_blocks_are_called_blocks() -> None:
    found = split(frame(*subjects("c", PEOPLE, stimulus=None)), noun="block")
    assert found.described["notes"] == [
        "6 folds, each holds out one block; the parts are those of an average fold",
        "the corpus does not say who was recorded: a block may share people with others",
    ]


def test_one_subject_is_all_train_in_no_fold() -> None:
    found = split(frame(*subjects("c", ["a"])))
    assert found.table["fold"].null_count() == found.table.height == 6
    assert found.described["notes"] == ["1 subject with accepted records: all train, no subject is left to test on"]


def test_a_subject_without_accepted_trials_has_no_fold_and_every_trial_a_part() -> None:
    found = split(frame(*subjects("c", PEOPLE)), refused="c/s01")
    assert found.described["folds"] == 5
    assert set(found.table.filter(pl.col("group") == "c/s01")["part"]) == {"train"}
    assert found.table["record_id"].n_unique() == 36
    nobody = frame(*subjects("c", ["a", "b", "c"])).with_columns(
        group=pl.when(pl.col("subject") == "b").then(None).otherwise("group")
    )
    assert split(nobody).table.filter(pl.col("group").is_null())["part"].to_list() == ["train"] * 6


def test_equal_content_in_two_parts_of_a_fold_is_a_leak_and_in_one_part_it_is_none() -> None:
    rows = subjects("c", ["a", "b", "d", "e"], 2)
    rows[2] |= {"sha256": rows[0]["sha256"]}
    leaks = split(frame(*rows)).leaks
    assert {leak.split(":")[0] for leak in leaks} >= {"fold c/a", "fold c/b"}
    assert all("in c/a/1/1 (" in leak and "c/b/1/1 (" in leak for leak in leaks)
    rows[2] |= {"sha256": "other"}
    rows[1] |= {"sha256": rows[0]["sha256"]}
    assert split(frame(*rows)).leaks == []
