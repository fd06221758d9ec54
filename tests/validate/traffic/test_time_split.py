from __future__ import annotations

import polars as pl
import pytest
from pydantic import ValidationError

from stages.validate.traffic.time_split import Splits, audit, copied_days, cut, rows

SHARES = Splits(train=0.7, validation=0.1, test=0.2, window=24)


def records(*ranges: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        [(f"k/s/{start}", "k/s", start, stop) for start, stop in ranges],
        schema={"record_id": pl.String, "group": pl.String, "start": pl.Int64, "stop": pl.Int64},
        orient="row",
    )


def test_the_lanes_of_28_days_at_5_minutes() -> None:
    assert cut(8064, SHARES).parts == {"train": (0, 5644), "validation": (5668, 6451), "test": (6475, 8064)}


def test_parts_and_gaps_are_all_steps_once() -> None:
    for steps in (500, 960, 8064, 34_272):
        bounds = list(cut(steps, SHARES).ranges.values())
        assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
        assert bounds[-1][1] == steps


def test_a_part_without_room_for_a_window_is_noted() -> None:
    found = cut(200, SHARES)
    assert found.parts == {"train": (0, 140), "test": (184, 200)}
    assert found.notes == (
        "validation holds no window of 24 steps: 0 of the set's 200 lie in it",
        "test holds no window of 24 steps: 16 of the set's 200 lie in it",
    )


def test_no_test_share_is_no_test_part() -> None:
    assert cut(100, Splits(train=1, validation=0, test=0, window=5)).parts == {"train": (0, 100)}


def test_a_day_has_a_row_for_each_part_it_reaches_into() -> None:
    found = rows(records((620, 720), (0, 96)), cut(960, SHARES))
    assert found.select("record_id", "part", "start", "stop").rows() == [
        ("k/s/620", "train", 620, 672),
        ("k/s/620", "gap", 672, 696),
        ("k/s/620", "validation", 696, 720),
        ("k/s/0", "train", 0, 96),
    ]


def test_most_of_a_day_decides_where_it_belongs() -> None:
    found = cut(960, SHARES)
    assert found.part_of(620, 720) == "train"
    assert found.part_of(660, 768) == "validation"
    assert found.part_of(672, 696) == "gap"
    assert found.part_of(None, None) == "gap"


def test_a_sound_split_has_no_leak() -> None:
    table = rows(records(*((start, start + 96) for start in range(0, 960, 96))), cut(960, SHARES))
    assert audit(table, pl.Series([True] * table.height), 24) == []


def test_shared_steps_and_a_gap_shorter_than_a_window_leak() -> None:
    table = pl.DataFrame(
        {
            "record_id": ["k/s/0", "k/s/1", "k/s/2"],
            "group": "k/s",
            "part": ["train", "validation", "test"],
            "start": [0, 95, 210],
            "stop": [96, 200, 300],
        }
    )
    found = audit(table, pl.Series([True, True, True]), 24)
    assert found == [
        "k/s/0 (train) and k/s/1 (validation) share samples of k/s",
        "validation starts -1 steps after the end of train, and a window has 24: one that starts in the first reaches "
        "the second",
        "test starts 10 steps after the end of validation, and a window has 24: one that starts in the first reaches "
        "the second",
    ]
    assert audit(table, pl.Series([True, False, True]), 24) == []


def test_equal_days_in_different_parts_are_copies_unless_nothing_moves_in_them() -> None:
    table = pl.DataFrame(
        {
            "record_id": ["a", "b", "c", "d", "e"],
            "sha256": ["x", "x", "x", "y", "y"],
            "start": [0, 96, 800, 0, 800],
            "moves": [True, True, True, False, False],
        }
    )
    part = pl.Series(["train", "train", "test", "train", "test"])
    accepted = pl.Series([True] * 5)
    assert copied_days(table, accepted, part).rows() == [("c", "a", "train")]
    assert copied_days(table, pl.Series([True, True, False, True, True]), part).is_empty()


def test_shares_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"train \+ validation \+ test is 0.9, and should be 1"):
        Splits(train=0.7, validation=0.1, test=0.1, window=24)
