"""The regular axis: gaps, doubles, order, hour 24, clocks that change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stages.errors import DataError
from stages.ingest.land_atmosphere.native import Native
from stages.ingest.land_atmosphere.records import monthly
from tests.ingest.towers import digits, half_hours, ingest, stamps, table, values, write


def rows(minutes: list[np.datetime64], temperature: list[float | str]) -> str:
    return table(
        {
            "TIMESTAMP_START": [digits(m) for m in minutes],
            "TIMESTAMP_END": [digits(m + 30) for m in minutes],
            "TA": temperature,
        }
    )


def read(tmp_path: Path, minutes: list[np.datetime64], temperature: list[float | str], **options: object) -> Native:
    write(tmp_path / "tower.csv", rows(minutes, temperature))
    return ingest(tmp_path, {"reader": "base", **options})


def test_a_missing_stamp_becomes_a_missing_value(tmp_path: Path) -> None:
    when = stamps("2015-01-01", 5)
    native = read(tmp_path, when[:2] + when[3:], [1, 2, 4, 5])
    assert values(native, "TA") == [1, 2, None, 4, 5]
    assert native.dataset["time"].values[2] == when[2]
    assert monthly(native, "x")["present_steps"].to_list() == [4]


def test_unsorted_rows_are_sorted_and_counted(tmp_path: Path) -> None:
    when = stamps("2015-01-01", 4)
    native = read(tmp_path, [when[2], when[0], when[1], when[3]], [3, 1, 2, 4])
    assert values(native, "TA") == [1, 2, 3, 4]
    assert monthly(native, "x")["unsorted_stamps"].to_list() == [1]


def test_an_equal_row_is_kept_once_and_counted(tmp_path: Path) -> None:
    when = stamps("2015-01-01", 3)
    native = read(tmp_path, [when[0], when[1], when[1], when[2]], [1, 2, 2, 3])
    assert values(native, "TA") == [1, 2, 3]
    record = monthly(native, "x")
    assert record["duplicate_stamps"].to_list() == [1]
    assert record["conflicting_stamps"].to_list() == [0]


def test_rows_that_contradict_each_other_are_missing_and_never_averaged(tmp_path: Path) -> None:
    when = stamps("2015-01-01", 3)
    native = read(tmp_path, [when[0], when[1], when[1], when[2]], [1, 2, 8, 3])
    assert values(native, "TA") == [1, None, 3]
    assert monthly(native, "x")["conflicting_stamps"].to_list() == [1]
    assert any("contradict each other" in note for note in native.notes)


def test_a_padded_row_contradicts_nothing(tmp_path: Path) -> None:
    when = stamps("2015-01-01", 3)
    native = read(tmp_path, [when[0], when[1], when[1], when[2]], [1, -9999, 8, 3])
    assert values(native, "TA") == [1, 8, 3]


def test_hour_24_is_midnight(tmp_path: Path) -> None:
    text = "TIMESTAMP_END,TA\n201412312330,1\n201412312400,2\n201501010030,3\n"
    write(tmp_path / "tower.csv", text)
    native = ingest(tmp_path, "base")
    assert str(native.dataset["time"].values[1])[:16] == "2014-12-31T23:30"
    assert values(native, "TA") == [1, 2, 3]


def year(first: str = "2015-01-01", days: int = 365) -> list[np.datetime64]:
    return stamps(first, days * 48)


def autumn(when: list[np.datetime64], night: str) -> list[np.datetime64]:
    """Stamps of a clock that is set back: the hour from 02:00 stands twice."""
    back = when.index(np.datetime64(f"{night}T03:00"))
    return when[:back] + when[back - 2 : back] + when[back:]


def test_the_repeated_hour_of_autumn_is_refused(tmp_path: Path) -> None:
    when = autumn(year("2015-10-01", 61), "2015-10-25")
    with pytest.raises(DataError) as caught:
        read(tmp_path, when, list(range(len(when))))
    message = str(caught.value)
    assert "the hour from 2015-10-25 02:00 twice, with different values" in message
    assert "daylight-saving time" in message
    assert "`clock: utc`" in message
    assert "`clock: standard`" in message


def test_the_missing_hour_of_spring_is_refused(tmp_path: Path) -> None:
    when = year("2015-03-01", 60)
    gap = when.index(np.datetime64("2015-03-29T02:00"))
    with pytest.raises(DataError, match="the hour from 2015-03-29 02:00 not at all"):
        read(tmp_path, when[:gap] + when[gap + 2 :], list(range(len(when) - 2)))


def test_a_stated_standard_clock_is_believed(tmp_path: Path) -> None:
    when = autumn(year("2015-10-01", 61), "2015-10-25")
    native = read(tmp_path, when, list(range(len(when))), clock="standard")
    assert monthly(native, "x")["conflicting_stamps"].to_list() == [2, 0]


@pytest.mark.parametrize("hour", ["2015-03-25T02:00", "2015-03-29T12:00"])
def test_an_outage_of_an_hour_is_no_clock_change(tmp_path: Path, hour: str) -> None:
    when = year("2015-03-01", 60)
    gap = when.index(np.datetime64(hour))
    native = read(tmp_path, when[:gap] + when[gap + 2 :], list(range(len(when) - 2)))
    assert np.isnan(native.dataset["TA"].values[gap : gap + 2]).all()


def test_an_hour_missing_among_other_gaps_is_no_clock_change(tmp_path: Path) -> None:
    when = year("2015-03-01", 60)
    lost = {np.datetime64(stamp) for stamp in ("2015-03-29T02:00", "2015-03-29T02:30", "2015-03-29T14:00")}
    when = [stamp for stamp in when if stamp not in lost]
    assert int(np.isnan(read(tmp_path, when, list(range(len(when)))).dataset["TA"]).sum()) == 3


def test_irregular_stamps_are_refused(tmp_path: Path) -> None:
    minutes = np.cumsum([7, 11, 13, 29, 31, 37, 41, 43])
    text = table({"TIMESTAMP_END": [digits(np.datetime64("2015-01-01") + m) for m in minutes], "TA": range(8)})
    write(tmp_path / "tower.csv", text)
    with pytest.raises(DataError, match="stamps at irregular distances"):
        ingest(tmp_path, "base")


def test_steps_that_do_not_divide_a_day_are_refused(tmp_path: Path) -> None:
    text = table({"TIMESTAMP_END": [digits(m) for m in stamps("2015-01-01", 8, 7)], "TA": range(8)})
    write(tmp_path / "tower.csv", text)
    with pytest.raises(DataError, match="found steps of 7 min; expected a resolution that divides a day"):
        ingest(tmp_path, "base")


def test_a_resolution_that_changes_is_refused_where_it_does(tmp_path: Path) -> None:
    when = stamps("2015-01-01", 200) + stamps("2015-01-05T05:00", 60, 60)
    text = table({"TIMESTAMP_END": [digits(m) for m in when], "TA": range(260)})
    write(tmp_path / "tower.csv", text)
    with pytest.raises(DataError, match=r"line 20[123]: found \d+ steps of 60 min from here on; expected steps of 30"):
        ingest(tmp_path, "base")


def test_the_offset_is_stated_or_said_to_be_unknown(tmp_path: Path) -> None:
    write(tmp_path / "tower.csv", table(half_hours("2015-01-01T00:00", {"TA": [1, 2]})))
    assert ingest(tmp_path, "base").dataset.attrs["utc_offset"] == "not stated"
    assert ingest(tmp_path, {"reader": "base", "utc_offset": 5.5}).dataset.attrs["utc_offset"] == 5.5
    moved = ingest(tmp_path, {"reader": "base", "utc_offset": -3.5, "clock": "utc"}).dataset
    assert moved["time"].values[0] == np.datetime64("2014-12-31T20:30")
    assert moved.attrs["utc_offset"] == -3.5
    with pytest.raises(DataError, match="`clock: utc` without `utc_offset`"):
        ingest(tmp_path, {"reader": "base", "clock": "utc"})
