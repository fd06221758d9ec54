from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.validate import splits
from stages.validate.splits import Assignment, Shares

SHARES = Shares(train=0.6, validation=0.2, test=0.2)
rows = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=60)
steps = st.lists(st.tuples(st.sampled_from("abc"), st.integers(2000, 2008), st.booleans()), max_size=60)


def columns(rows: list[tuple[str, bool]]) -> tuple[pl.Series, pl.Series]:
    return pl.Series([r[0] for r in rows], dtype=pl.String), pl.Series([r[1] for r in rows], dtype=pl.Boolean)


def split(rows: list[tuple[str, bool]], *, seed: int = 0, shares: Shares = SHARES) -> Assignment:
    return splits.by_group(*columns(rows), shares, seed=seed, stream="by_site", noun="site")


@given(rows=rows, seed=st.integers(0, 9), shuffle=st.randoms(use_true_random=False))
def test_no_group_straddles_and_neither_order_nor_time_matters(
    rows: list[tuple[str, bool]], seed: int, shuffle: random.Random
) -> None:
    found = split(rows, seed=seed)
    parts = dict(zip([r[0] for r in rows], found.part, strict=True))
    assert found.part.to_list() == [parts[r[0]] for r in rows]
    assert set(found.part) <= set(splits.PARTS)
    assert splits.straddling(found.part, *columns(rows), noun="site") == []
    usable = {group for group, accepted in rows if accepted}
    assert {parts[group] for group in usable} == set(
        {0: (), 1: ("train",), 2: ("train", "test")}.get(len(usable), splits.PARTS)
    )
    mixed = rows.copy()
    shuffle.shuffle(mixed)
    assert dict(zip([r[0] for r in mixed], split(mixed, seed=seed).part, strict=True)) == parts


def test_shares_count_accepted_records() -> None:
    rows = [(f"g{i:02d}", True) for i in range(50) for _ in range(10)] + [("g00", False)] * 500
    found = split(rows)
    sizes = splits.sizes(found.part, *columns(rows))
    assert {part: sizes[part]["records"] for part in splits.PARTS} == {"train": 300, "validation": 100, "test": 100}
    assert split(rows, seed=1).part.to_list() != found.part.to_list()


def test_few_groups_are_noted() -> None:
    assert split([("a", True)]).notes == ("1 site with accepted records: all train, no site is left to test on",)
    assert split([("a", True), ("b", True)]).notes[0] == "2 sites with accepted records: none for validation"
    lone = split([("a", True), ("b", True), ("c", True), ("d", False)])
    assert lone.notes[0] == "without accepted records, counted nowhere: d"


def test_shares_far_from_those_asked_are_noted() -> None:
    rows = [("a", True)] * 11 + [("b", True)] + [("c", True)] * 8 + [("d", False)] * 30
    assert split(rows).notes[1:] == (
        "train/validation/test are 40/55/5 % of the accepted records, not 60/20/20: no site is divided",
    )
    even = [(f"g{i}", True) for i in range(10)]
    assert split(even).notes == ()


def test_a_part_without_a_share_stays_empty() -> None:
    found = split([(g, True) for g in "abcd"], shares=Shares(train=0.75, validation=0, test=0.25))
    assert sorted(found.part) == ["test", "train", "train", "train"]


def held_out(rows: list[tuple[str, bool]], *, seed: int = 0, validation: float = 0.2) -> splits.Folds:
    return splits.leave_one_out(*columns(rows), validation=validation, seed=seed, stream="subjects", noun="subject")


@given(rows=rows, seed=st.integers(0, 9), shuffle=st.randoms(use_true_random=False))
def test_every_group_is_held_out_once_and_never_validates_its_own_fold(
    rows: list[tuple[str, bool]], seed: int, shuffle: random.Random
) -> None:
    found = held_out(rows, seed=seed)
    usable = {group for group, accepted in rows if accepted}
    folds = {
        fold: {part: set(names) for part, names in table.group_by("part").agg("group").iter_rows()}
        for (fold,), table in found.table.group_by("fold")
    }
    assert found.table.height == len(folds) * len({group for group, _ in rows})
    if len(usable) > 1:
        assert set(folds) == usable
        assert all(parts["test"] == {fold} for fold, parts in folds.items())
        assert all(fold not in parts.get("validation", ()) and parts["train"] & usable for fold, parts in folds.items())
        serving = found.table.filter(pl.col("part") == "validation").group_by("group").len()["len"]
        assert set(serving) == ({1} if len(usable) > 2 else set()), "every subject validates in as many folds"
    mixed = rows.copy()
    shuffle.shuffle(mixed)
    assert held_out(mixed, seed=seed).table.equals(found.table)


def test_a_fifth_of_nine_other_subjects_is_two() -> None:
    ten = [(f"s{i:02d}", True) for i in range(10)]
    sizes = held_out(ten).table.group_by("fold", "part").len()
    assert set(sizes.filter(pl.col("part") == "validation")["len"]) == {2}
    assert set(sizes.filter(pl.col("part") == "train")["len"]) == {7}
    assert set(held_out(ten, validation=0).table["part"]) == {"train", "test"}
    assert not held_out(ten, seed=1).table.equals(held_out(ten).table)


def test_one_subject_is_all_train_and_two_have_none_to_validate_on() -> None:
    lone = held_out([("a", True), ("b", False)])
    assert lone.table.rows() == [("a", None, "train"), ("b", None, "train")]
    assert lone.notes == (
        "without accepted records, counted nowhere: b",
        "1 subject with accepted records: all train, no subject is left to test on",
    )
    pair = held_out([("a", True), ("b", True)])
    assert pair.table.rows() == [("a", "a", "test"), ("b", "a", "train"), ("a", "b", "train"), ("b", "b", "test")]
    assert pair.notes == ("2 subjects with accepted records: none for validation",)


@given(rows=steps)
def test_years_are_cut_in_order_and_never_within_a_year(rows: list[tuple[str, int, bool]]) -> None:
    group = pl.Series([r[0] for r in rows], dtype=pl.String)
    year = pl.Series([r[1] for r in rows], dtype=pl.Int64)
    accepted = pl.Series([r[2] for r in rows], dtype=pl.Boolean)
    found = splits.by_order(group, year, accepted, SHARES, noun="year")
    order = {"train": 0, "validation": 1, "test": 2}
    for name in set(group):
        mine = sorted((y, order[p]) for g, y, p in zip(group, year, found.part, strict=True) if g == name)
        assert [p for _, p in mine] == sorted(p for _, p in mine)
        assert len(set(mine)) == len({y for y, _ in mine})
        usable = {y for g, y, ok in rows if g == name and ok}
        counted = {p for g, y, p in zip(group, year, found.part, strict=True) if g == name and y in usable}
        assert counted == (set(splits.PARTS) if len(usable) >= 3 else {"train"} if usable else set())


def test_the_last_fifth_of_ten_years_is_test_and_the_fifth_before_validation() -> None:
    year = pl.Series(range(2003, 2013))
    found = splits.by_order(pl.Series(["a"] * 10), year, pl.Series([True] * 10), SHARES, noun="year")
    assert found.part.to_list() == ["train"] * 6 + ["validation"] * 2 + ["test"] * 2
    assert found.notes == ()


def test_a_site_of_two_years_is_all_train() -> None:
    found = splits.by_order(
        pl.Series(["a", "a", "b"]), pl.Series([2001, 2002, 2003]), pl.Series([True, True, True]), SHARES, noun="year"
    )
    assert set(found.part) == {"train"}
    assert found.notes == (
        "a: 2 years with accepted records: all train",
        "b: 1 year with accepted records: all train",
    )


def test_planted_leaks_are_named() -> None:
    part = pl.Series(["train", "test", "train", "validation"])
    accepted = pl.Series([True, True, True, True])
    group = pl.Series(["a", "a", "b", "c"])
    assert splits.straddling(part, group, accepted, noun="site") == ["site a lies in test and train"]
    digest = pl.Series(["00" * 32, "ff" * 32, "ff" * 32, "11" * 32])
    record = pl.Series(["a/1", "a/2", "b/1", "c/1"])
    assert splits.shared_content(part, digest, record, accepted) == [
        "the same content (sha256 ffffffffffff) in a/2 (test), b/1 (train)"
    ]
    refused = pl.Series([True, False, True, True])
    assert splits.straddling(part, group, refused, noun="site") == []
    assert splits.shared_content(part, digest, record, refused) == []


def shared(*rows: tuple[str, str, str, str, str], refused: str = "") -> list[splits.Shared]:
    """Rows of group, record, and digests of the whole, of LE and of TA; ``-`` for null."""
    group, record, whole, *pieces = (
        pl.Series([None if value == "-" else value for value in column], dtype=pl.String)
        for column in zip(*rows, strict=True)
    )
    return splits.shared_between(group, record, record != refused, whole, dict(zip(("LE", "TA"), pieces, strict=True)))


def test_equal_content_in_two_groups_is_a_copy_in_whatever_part() -> None:
    rows = [("a", "a/1", "w1", "-", "-"), ("a", "a/2", "w2", "-", "-"), ("b", "b/7", "w1", "-", "-")]
    assert shared(*rows) == [splits.Shared("a", "b", 1, ("a/1", "b/7"), (), copy=True)]
    assert shared(*rows, refused="b/7") == []
    assert shared(("a", "a/1", "w1", "x", "y"), ("a", "a/2", "w1", "x", "y")) == [], "one group may repeat itself"


def test_another_choice_of_one_column_hides_no_copy_and_one_shared_instrument_makes_none() -> None:
    one = ("a", "a/1", "w1", "le", "ta")
    assert shared(one, ("b", "b/1", "w2", "other", "ta")) == [
        splits.Shared("a", "b", 1, ("a/1", "b/1"), ("TA",), copy=False)
    ]
    assert shared(one, ("b", "b/1", "w2", "-", "ta")) == [
        splits.Shared("a", "b", 1, ("a/1", "b/1"), ("TA",), copy=True)
    ]
    assert shared(one, ("b", "b/1", "w2", "ta", "le")) == [], "LE of one is not TA of the other"


def test_windows_of_one_second_with_half_a_second_step_share_samples_when_split_at_random() -> None:
    start = [0.0, 0.5, 1.0, 1.5]
    frame = pl.DataFrame({"part": ["train", "test", "train", "train"], "start": start})
    frame = frame.with_columns(end=pl.col("start") + 1, lane=pl.lit("trial 1"), ok=pl.lit(True))
    record = pl.Series(["w0", "w1", "w2", "w3"])
    found = splits.overlapping_windows(frame["part"], frame["lane"], frame["start"], frame["end"], record, frame["ok"])
    assert found == [
        "w0 (train) and w1 (test) share samples of trial 1",
        "w1 (test) and w2 (train) share samples of trial 1",
    ]


def test_windows_that_touch_or_lie_in_different_series_or_the_same_part_share_nothing() -> None:
    frame = pl.DataFrame(
        {
            "part": ["train", "test", "test", "train"],
            "lane": ["a", "a", "a", "b"],
            "start": [0, 10, 15, 5],
            "end": [10, 20, 25, 15],
            "record": ["w0", "w1", "w2", "w3"],
            "ok": [True, True, True, True],
        }
    )
    assert splits.overlapping_windows(*(frame[c] for c in ("part", "lane", "start", "end", "record", "ok"))) == []


def test_a_long_window_is_caught_behind_a_short_one() -> None:
    frame = pl.DataFrame(
        {
            "part": ["train", "train", "test"],
            "lane": ["a", "a", "a"],
            "start": [0, 1, 50],
            "end": [100, 2, 60],
            "record": ["long", "short", "late"],
            "ok": [True, True, True],
        }
    )
    assert splits.overlapping_windows(*(frame[c] for c in ("part", "lane", "start", "end", "record", "ok"))) == [
        "long (train) and late (test) share samples of a"
    ]


def test_shares_must_sum_to_one() -> None:
    with pytest.raises(ValidationError, match=r"train \+ validation \+ test is 0.9, and should be 1"):
        Shares(train=0.6, validation=0.2, test=0.1)
