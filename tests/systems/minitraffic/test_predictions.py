"""Errors of forecasts as rows of a table."""

from __future__ import annotations

from itertools import islice

import numpy as np
import polars as pl
import pytest

from stages.systems.minitraffic.predictions import (
    KINDS,
    arm_errors,
    day_forecasts,
    open_test_part,
    road_means,
    shown_day,
    stride_of,
)
from tests.systems.minitraffic.tested import CONTEXT, HORIZON, LANES, ROADS, forecasts, target


def test_a_constant_error_is_the_mae_of_every_slice() -> None:
    found = target()
    part = open_test_part(found)
    table = arm_errors(forecasts(found, 2.0), part)
    assert set(table["by"]) == set(KINDS)
    lanes, roads = (table.filter(pl.col("granularity") == kind) for kind in ("lane", "road"))
    assert (lanes["absolute"] / lanes["count"]).to_numpy() == pytest.approx(2.0, abs=1e-5)
    assert (roads["absolute"] / roads["count"]).to_numpy() == pytest.approx(2.0, abs=1e-2)  # one lacks a lane once
    for (_, by), mine in table.group_by("granularity", "by"):
        assert mine["block"].null_count() == (mine.height if by == "sensor" else 0)


def test_every_kind_of_slice_adds_up_to_all_forecasts_that_have_a_truth() -> None:
    found = target()
    part = open_test_part(found)
    table = arm_errors(forecasts(found, 1.0, noise=1.0), part).filter(pl.col("granularity") == "lane")
    totals = table.group_by("by").agg(pl.col("count", "absolute", "squared").sum())
    expected = len(part.start_W) * HORIZON * LANES * ROADS - HORIZON  # one missing value, at each lead once
    assert set(totals["count"]) == {expected}
    assert totals["squared"].to_numpy() == pytest.approx(totals["squared"][0])


def test_the_size_of_a_batch_changes_nothing() -> None:
    found = target()
    part = open_test_part(found)
    one, other = (arm_errors(forecasts(found, 1.5, batch=size), part) for size in (4, len(part.start_W)))
    assert one.equals(other)


def test_windows_that_are_left_out_or_come_twice_are_refused() -> None:
    found = target()
    part = open_test_part(found)
    batches = list(forecasts(found, 1.0))
    with pytest.raises(ValueError, match="expected all"):
        arm_errors(batches[:-1], part)
    with pytest.raises(ValueError, match="each once and in order"):
        arm_errors([batches[0], *batches], part)


def test_identical_lanes_give_the_roads_forecast_and_a_road_is_the_mean_of_its_lanes() -> None:
    road_S = np.array([0, 0, 1])
    forecast_WSH = np.array([[[10.0], [20.0], [7.0]]], np.float32)
    assert road_means(forecast_WSH, road_S, 2)[0, :, 0].tolist() == [15.0, 7.0]
    assert np.isnan(road_means(forecast_WSH, road_S, 3)[0, 2, 0])
    alike = np.full((1, 3, 2), 42.0, np.float32)
    assert (road_means(alike, road_S, 2) == 42).all()


def test_opposite_errors_of_two_lanes_cancel_on_their_road() -> None:
    found = target()
    part = open_test_part(found)
    batches = [
        batch._replace(forecast_WHS=batch.observed_WHS + np.tile([2.0, -2.0], ROADS).astype(np.float32))
        for batch in forecasts(found, 0.0)
    ]
    filled = [
        batch._replace(forecast_WHS=np.where(np.isfinite(batch.forecast_WHS), batch.forecast_WHS, 50.0))
        for batch in batches
    ]
    table = arm_errors(filled, part).filter((pl.col("by") == "horizon") & (pl.col("member") == 1))
    mae = dict(table.group_by("granularity").agg(pl.col("absolute").sum() / pl.col("count").sum()).iter_rows())
    assert mae["lane"] == pytest.approx(2.0, abs=1e-4)
    assert mae["road"] < 0.2


def test_a_road_target_has_neither_lanes_nor_roads_beside_its_sensors() -> None:
    found = target("road", clock=False)
    table = arm_errors(forecasts(found, 1.0), open_test_part(found))
    assert set(table["granularity"]) == {"road"}
    assert set(table["by"]) == {"horizon", "sensor"}  # no clock: no time of day


def test_a_stride_keeps_every_time_of_day() -> None:
    assert stride_of(windows=300, most=1200, steps_per_day=288) == 1
    assert stride_of(windows=3500, most=1200, steps_per_day=24) == 5  # 3 and 4 would take some hours alone
    assert stride_of(windows=3500, most=1200, steps_per_day=1) == 3
    found = target()
    part = open_test_part(found, most=20)
    assert part.stride == 5
    assert np.diff(part.start_W).tolist() == [5] * (len(part.start_W) - 1)
    assert part.start_W[-1] <= found.accepted.part("test")[1] - HORIZON


def test_the_day_that_is_drawn_is_whole_and_every_step_of_it_has_each_lead() -> None:
    found = target()
    start, stop = shown_day(found)
    assert stop - start == 24
    assert found.accepted.local().minute_T[start] == 0
    table = day_forecasts(forecasts(found, 3.0), (start, stop), (1, HORIZON))
    assert table.height == 24 * LANES * ROADS * 2
    assert (table["forecast"] - table["observed"]).drop_nulls().to_numpy() == pytest.approx(3.0, abs=1e-4)
    truth = found.values_TS[start:stop]
    first = table.filter(pl.col("ahead") == 1)
    assert np.array_equal(first["observed"].fill_null(np.nan).to_numpy().reshape(24, -1), truth, equal_nan=True)


def test_a_test_part_without_a_whole_day_is_drawn_whole() -> None:
    found = target(days=2, step_minutes=30)
    start, stop = shown_day(found)
    assert (start, stop) == (found.accepted.part("test")[0] + CONTEXT + HORIZON - 1, found.accepted.part("test")[1])
    assert day_forecasts(islice(forecasts(found, 0.0), 100), (start, stop), (HORIZON,)).height
