from __future__ import annotations

import numpy as np
import pytest

from stages.traffic.clock import day_circle, local_time, slot_of_day, steps_per_day, weekend


def hours(first: str, count: int) -> np.ndarray:
    return np.datetime64(first, "m") + np.arange(count) * np.timedelta64(60, "m")


def test_local_time_of_a_zone_and_of_a_fixed_offset() -> None:
    stamps = hours("2017-02-05T08:00", 2)
    for zone in ("America/Los_Angeles", "-08:00"):
        found = local_time(stamps, zone)
        assert found.minute_T.tolist() == [0, 60]
        assert found.weekday_T.tolist() == [6, 6]  # a Sunday
    assert local_time(stamps).minute_T.tolist() == [480, 540]
    assert local_time(stamps, "+05:30").minute_T.tolist() == [810, 870]


def test_a_clock_change_makes_a_day_of_23_or_25_hours() -> None:
    spring = local_time(hours("2025-03-08T08:00", 72), "America/Los_Angeles")
    autumn = local_time(hours("2025-11-01T07:00", 72), "America/Los_Angeles")
    assert np.bincount(spring.day_T).tolist()[:2] == [24, 23]
    assert np.bincount(autumn.day_T).tolist()[:2] == [24, 25]
    assert autumn.minute_T[24:28].tolist() == [0, 60, 60, 120]


def test_without_a_clock_there_are_days_and_no_weekdays() -> None:
    found = local_time(hours("1970-01-01T00:00", 49), "America/Los_Angeles", clock=False)
    assert found.day_T[[0, 23, 24, 48]].tolist() == [0, 0, 1, 2]
    assert set(found.weekday_T.tolist()) == {-1}
    assert not weekend(found.weekday_T).any()


def test_slots_and_steps_of_a_day() -> None:
    assert slot_of_day(np.array([0, 4, 5, 1439]), 5).tolist() == [0, 0, 1, 287]
    assert (steps_per_day(5), steps_per_day(60), steps_per_day(0.5)) == (288, 24, 2880)


def test_midnight_is_next_to_the_minute_before_it() -> None:
    circle = day_circle(np.array([0, 360, 720, 1439]))
    np.testing.assert_allclose(circle[:3], [[0, 1], [1, 0], [0, -1]], atol=1e-6)
    assert np.linalg.norm(circle[0] - circle[3]) == pytest.approx(2 * np.pi / 1440, rel=1e-3)


def test_saturday_and_sunday_are_the_weekend() -> None:
    week = local_time(hours("2024-01-01T00:00", 168)).weekday_T  # from a Monday on
    assert weekend(week[::24]).tolist() == [False] * 5 + [True] * 2
