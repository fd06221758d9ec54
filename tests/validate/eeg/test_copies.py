from __future__ import annotations

from typing import Any

import polars as pl

from stages.validate.eeg.copies import mark_copies, told
from tests.validate.eeg.fakes import frame, subjects, trial

MARKS = ["copied_label", "copied_subject", "copied_session", "copied_trial"]


def marked(*rows: dict[str, Any]) -> pl.DataFrame:
    return mark_copies(frame(*rows))


def same(row: dict[str, Any], other: dict[str, Any], **more: Any) -> dict[str, Any]:
    return row | {"sha256": other["sha256"], "label": other["label"]} | more


def found(table: pl.DataFrame) -> dict[str, tuple[Any, ...]]:
    """Record -> marks, of the trials that have any."""
    rows = table.select("record_id", *MARKS).iter_rows()
    return {record: tuple(marks) for record, *marks in rows if any(marks)}


def test_the_second_copy_is_marked_in_the_order_of_reading_within_and_across_subjects() -> None:
    rows = [trial("c", s, 1, n) for s in ("b", "a") for n in range(1, 11)]
    rows[9] = same(rows[9], rows[1])
    rows[10] = same(rows[10], rows[4])
    table = marked(*rows)
    assert found(table) == {"c/b/1/10": (None, None, None, "c/b/1/2"), "c/a/1/1": (None, None, None, "c/b/1/5")}
    assert told(table) == ["2 single trials are copies of others"]


def test_the_copies_in_the_blink_set_are_found() -> None:
    """TRAIN 450-499 = TRAIN 250-299 and TEST 200-249 = TRAIN 300-349, in 10 blocks of 95 in the order of the files."""
    rows = [trial("blink", f"block{n // 95:02d}", 1, n, label="short" if n % 2 else "long") for n in range(950)]
    copies = {450 + k: 250 + k for k in range(50)} | {500 + 200 + k: 300 + k for k in range(50)}
    for copy, original in copies.items():
        rows[copy] = same(rows[copy], rows[original])
    table = mark_copies(frame(*rows), ())
    refused = table.filter(pl.any_horizontal(pl.col(MARKS).is_not_null()))
    assert refused["trial"].to_list() == sorted(copies)
    assert table["sha256"].n_unique() == 850
    assert told(table) == ["100 single trials are copies of others"]


def test_a_session_that_is_a_copy_of_another_is_named_as_such() -> None:
    rows = [trial("c", "a", session, n) for session in (1, 2, 3) for n in range(1, 5)]
    rows[8:12] = [same(row, original) for row, original in zip(rows[8:12], rows[4:8], strict=True)]
    table = marked(*rows)
    assert found(table) == {f"c/a/3/{n}": (None, None, "a/2", None) for n in range(1, 5)}
    assert told(table) == ["session a/3 is a copy of a/2: 4 trials"]


def test_a_subject_under_another_name_is_a_copy_though_one_trial_differs() -> None:
    rows = subjects("c", ["a", "b", "z"], 4)
    rows[8:11] = [same(row, original) for row, original in zip(rows[8:11], rows[0:3], strict=True)]
    table = marked(*rows)
    assert found(table) == {f"c/z/1/{n}": (None, "a", None, None) for n in range(1, 4)}
    assert told(table) == ["subject z is a copy of a: 3 trials"]


def test_equal_content_with_two_labels_speaks_against_both() -> None:
    rows = [trial("c", "a", 1, n) for n in range(1, 7)]
    rows[4] = same(rows[4], rows[0], label="positive")
    assert found(marked(*rows)) == {
        "c/a/1/1": ("c/a/1/5", None, None, None),
        "c/a/1/5": ("c/a/1/1", None, None, "c/a/1/1"),
    }


def test_trials_without_a_digest_are_copies_of_nothing() -> None:
    assert found(marked(*subjects("c", ["a", "b"], 3, sha256=None))) == {}
