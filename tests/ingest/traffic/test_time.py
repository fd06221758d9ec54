"""Stamps to a regular grid in UTC: clock changes, copies, gaps, order; pandas resolves the same hours."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.errors import DataError
from stages.ingest.traffic.records import days
from stages.ingest.traffic.sets import TrafficSet
from tests.ingest.traffic.layouts import csv, opened, speeds

LOS_ANGELES = "America/Los_Angeles"


def read(tmp_path: Path, stamps: list[str], values: Any = None, **options: Any) -> TrafficSet:
    """A csv of two sensors with the given stamps."""
    numbers = speeds(len(stamps), 2) if values is None else np.asarray(values)
    csv(tmp_path / "speed.csv", ["time", "a", "b"], [[stamp, *row] for stamp, row in zip(stamps, numbers, strict=True)])
    return opened(tmp_path, {"reader": "wide", "time": "time", "unit": "mph", **options})


def local(start: str, steps: int, step: int = 5) -> list[str]:
    first = datetime.fromisoformat(start)
    return [f"{first + timedelta(minutes=step * index):%Y-%m-%d %H:%M}" for index in range(steps)]


def autumn() -> list[str]:
    """A day in California on which 01:00 to 01:55 comes twice: 300 steps."""
    return [*local("2025-11-02 00:00", 24), *local("2025-11-02 01:00", 276)]


class TestClockChanges:
    def test_the_repeated_hour_is_kept_in_order(self, tmp_path: Path) -> None:
        values = speeds(300, 2)
        traffic = read(tmp_path, autumn(), values, timezone=LOS_ANGELES)
        expected = pd.DatetimeIndex(autumn()).tz_localize(LOS_ANGELES, ambiguous="infer").tz_convert("UTC")
        np.testing.assert_array_equal(traffic.time_T, expected.tz_localize(None).to_numpy().astype("datetime64[m]"))
        np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
        assert traffic.notes == ()
        assert list(days(traffic)) == [("2025-11-02", 0, 300)]

    def test_the_repeated_hour_is_kept_by_its_offset(self, tmp_path: Path) -> None:
        summer, winter = ([f"{stamp.replace(' ', 'T')}-0{hours}:00" for stamp in autumn()] for hours in (7, 8))
        stamps = summer[:24] + winter[24:]
        shuffled = [*stamps[12:36:2], *stamps[13:36:2], *stamps[:12], *stamps[36:]]
        traffic = read(tmp_path, shuffled, timezone=LOS_ANGELES)
        assert len(traffic.time_T) == 300
        assert str(traffic.time_T[0]) == "2025-11-02T07:00"
        assert not any("missing" in note for note in traffic.notes)

    @pytest.mark.parametrize(
        "stamps",
        [
            pytest.param(local("2025-11-02 00:00", 100), id="the hour once"),
            pytest.param(
                sorted([*local("2025-11-02 00:00", 48), *local("2025-11-02 01:00", 12)]), id="the two passes mixed"
            ),
            pytest.param(
                [*local("2025-11-02 00:00", 24), *local("2025-11-02 02:00", 12), *local("2025-11-02 01:00", 12)],
                id="the second pass behind the hour that follows it",
            ),
        ],
    )
    def test_without_an_order_it_is_ambiguous(self, tmp_path: Path, stamps: list[str]) -> None:
        with pytest.raises(DataError, match=r"speed\.csv, line 14 to line \d+: found stamps from") as caught:
            read(tmp_path, stamps, timezone=LOS_ANGELES)
        assert "2025-11-02 01:00 to 2025-11-02 01:55, an hour that clocks in America/Los_Angeles showed twice" in str(
            caught.value
        )
        assert "Nothing is averaged" in str(caught.value)

    def test_without_a_zone_it_is_refused_and_never_averaged(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="two rows for 2025-11-02 01:00, with") as caught:
            read(tmp_path, autumn())
        assert "line 14 and line 26" in str(caught.value)
        assert "the stamps are ambiguous: set `timezone`" in str(caught.value)

    def test_the_missing_spring_hour_is_no_gap(self, tmp_path: Path) -> None:
        stamps = [*local("2017-03-12 00:00", 24), *local("2017-03-12 03:00", 252 + 288)]
        traffic = read(tmp_path, stamps, timezone=LOS_ANGELES)
        assert traffic.variables["speed"].shape == (276 + 288, 2)
        assert np.isfinite(traffic.variables["speed"]).all()
        assert traffic.notes == ()
        assert list(days(traffic)) == [("2017-03-12", 0, 276), ("2017-03-13", 276, 564)]

    def test_stamps_that_know_no_summer_time(self, tmp_path: Path) -> None:
        stamps = local("2012-03-11 00:00", 288)
        with pytest.raises(DataError, match="line 26: found the stamp 2012-03-11 02:00, which no clock in") as caught:
            read(tmp_path, stamps, timezone=LOS_ANGELES)
        assert "set `timezone` to a fixed offset such as -08:00" in str(caught.value)
        traffic = read(tmp_path, stamps, timezone="-08:00")
        assert str(traffic.time_T[0]) == "2012-03-11T08:00"
        assert list(days(traffic)) == [("2012-03-11", 0, 288)]

    @pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata"])
    def test_other_zones_as_pandas_reads_them(self, tmp_path: Path, zone: str) -> None:
        utc = pd.date_range("2017-09-20", "2017-11-10", freq="30min", tz="UTC")
        stamps = [f"{moment:%Y-%m-%d %H:%M}" for moment in utc.tz_convert(zone)]
        traffic = read(tmp_path, stamps, timezone=zone)
        np.testing.assert_array_equal(traffic.time_T, utc.tz_localize(None).to_numpy().astype("datetime64[m]"))
        of_day = pd.Series(1, utc.tz_convert(zone)).groupby(utc.tz_convert(zone).date).size()
        assert [stop - start for _, start, stop in days(traffic)] == of_day.to_list()

    def test_a_clock_starts_at_local_time(self, tmp_path: Path) -> None:
        (tmp_path / "speed.txt").write_text("60 61\n62 63\n")
        clock = {"start": "2015-07-01", "step_minutes": 60}
        traffic = opened(tmp_path, {"reader": "wide", "unit": "mph", "clock": clock, "timezone": LOS_ANGELES})
        assert [str(moment) for moment in traffic.time_T] == ["2015-07-01T07:00", "2015-07-01T08:00"]


class TestRows:
    def test_missing_steps_are_told_one_by_one(self, tmp_path: Path) -> None:
        stamps = local("2017-02-05 00:00", 40)
        kept = [stamp for index, stamp in enumerate(stamps) if index not in (3, 20, 21)]
        values = speeds(40, 2)
        traffic = read(tmp_path, kept, np.delete(values, (3, 20, 21), axis=0))
        assert traffic.notes == (
            "speed.csv, 2017-02-05 00:15: missing",
            "speed.csv, 2017-02-05 01:40 to 2017-02-05 01:45: 2 steps missing",
        )
        expected = values.astype(np.float32)
        expected[[3, 20, 21]] = np.nan
        np.testing.assert_array_equal(traffic.variables["speed"], expected)

    def test_equal_copies_are_merged_and_told(self, tmp_path: Path) -> None:
        stamps = local("2017-02-05 00:00", 4)
        values = speeds(4, 2)
        values[1, 0] = np.nan
        traffic = read(tmp_path, [*stamps, stamps[1]], [*values, values[1]])
        assert traffic.variables["speed"].shape == (4, 2)
        assert "speed.csv, line 6: repeats 2017-02-05 00:05 of line 3; merged" in traffic.notes

    def test_copies_that_differ_are_refused(self, tmp_path: Path) -> None:
        stamps = [*local("2017-02-05 00:00", 3), "2017-02-05 00:05"]
        with pytest.raises(DataError, match=r"line 3 and line 5: found two rows for 2017-02-05 00:05, with 61 and 63"):
            read(tmp_path, stamps, [[60, 60], [60, 61], [60, 62], [60, 63]])

    def test_order_is_restored_and_told(self, tmp_path: Path) -> None:
        stamps = local("2017-02-05 00:00", 6)
        order = [0, 1, 4, 2, 3, 5]
        values = speeds(6, 2)
        traffic = read(tmp_path, [stamps[index] for index in order], values[order])
        np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))
        assert traffic.notes == (
            "speed.csv, line 5: 2017-02-05 00:10 stands behind 2017-02-05 00:20; the rows are put in order",
        )

    def test_a_blank_stamp_is_told_and_left_out(self, tmp_path: Path) -> None:
        values = speeds(3, 2)
        stamps = local("2017-02-05 00:00", 3)
        traffic = read(tmp_path, [*stamps[:2], "", stamps[2]], [*values[:2], values[0], values[2]])
        assert traffic.notes == ("speed.csv, line 4: no time stamp, the row is left out",)
        np.testing.assert_array_equal(traffic.variables["speed"], values.astype(np.float32))

    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(st.permutations(range(12)), st.sets(st.integers(1, 10), max_size=4))
    def test_any_order_and_any_gaps_leave_values_at_their_times(
        self, tmp_path: Path, order: list[int], gaps: set[int]
    ) -> None:
        values = speeds(12, 2)
        stamps = local("2017-02-05 00:00", 12)
        kept = [index for index in order if index not in gaps]
        traffic = read(tmp_path, [stamps[index] for index in kept], values[kept], step_minutes=5)
        expected = values.astype(np.float32)
        expected[list(gaps)] = np.nan
        np.testing.assert_array_equal(traffic.variables["speed"], expected)

    @pytest.mark.parametrize(
        ("stamps", "told"),
        [
            (
                ["2017-02-05 00:00", "2017-02-05 00:05", "05.02.2017 00:10"],
                "line 4: found the stamp '05.02.2017 00:10'",
            ),
            (
                ["2017-02-05 00:00", "2017-02-05 00:05:30"],
                "line 3: found the stamp 2017-02-05 00:05:30; expected a whole",
            ),
            (["2017-02-05 00:00-08:00", "2017-02-05 00:05"], "line 3: found '2017-02-05 00:05', a stamp without"),
            (
                [*local("2017-02-05 00:00", 5), "2017-02-05 00:22"],
                "line 7: found the stamp 2017-02-05 00:22; expected whole",
            ),
            ([*local("2017-02-05 00:00", 5), "2117-02-05 00:20"], "found stamps from 2017-02-05 00:00 to 2117-02-05"),
            (["2017-02-05 00:00"], "found one row; expected at least two"),
            (["", ""], "found no row with a time stamp"),
            (local("2017-02-05 00:00", 4, step=7), "found rows that are mostly 7 minutes apart"),
        ],
    )
    def test_stamps_that_are_refused(self, tmp_path: Path, stamps: list[str], told: str) -> None:
        with pytest.raises(DataError) as caught:
            read(tmp_path, stamps)
        assert told in str(caught.value)

    def test_a_declared_form(self, tmp_path: Path) -> None:
        traffic = read(tmp_path, ["05.02.2017 00:00", "05.02.2017 00:05"], time_format="%d.%m.%Y %H:%M")
        assert str(traffic.time_T[0]) == "2017-02-05T00:00"
