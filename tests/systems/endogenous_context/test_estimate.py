from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stages.accepted.tower_series import Series
from stages.causal.processes import processes
from stages.runtime import random_numbers
from stages.systems.endogenous_context import estimate
from stages.systems.endogenous_context.estimate import Attempt, Case, Draws, draw_rows, stability, usable_case
from stages.systems.endogenous_context.towers import prepare
from tests.systems.endogenous_context.bucket_towers import TRAIN, bucket_tower


@pytest.fixture(scope="module")
def case() -> Case:
    _, ready = prepare(bucket_tower("de-fak", years=3), TRAIN)
    assert ready is not None
    return ready.case


def test_whole_years_are_drawn() -> None:
    year_T = np.repeat([2010, 2011, 2012, 2013], 10)
    target_T = np.tile(np.arange(10) >= 5, 4)
    rows = draw_rows(target_T, year_T, random_numbers(0, "rows"), first=7, block=3)
    years, counts = np.unique(year_T[rows], return_counts=True)
    of_year = {year: np.flatnonzero(target_T & (year_T == year) & (np.arange(40) >= 7)).tolist() for year in years}
    assert sum(counts // [len(of_year[year]) for year in years]) == 4
    for year, count in zip(years, counts, strict=True):
        assert sorted(rows[year_T[rows] == year]) == sorted(of_year[year] * (count // len(of_year[year])))


def test_a_short_record_is_drawn_in_blocks() -> None:
    target_T = np.arange(60) % 30 >= 10
    rows = draw_rows(target_T, np.repeat([2010, 2011], 30), random_numbers(0, "rows"), first=2, block=5)
    usable = np.flatnonzero(target_T)
    assert rows.size == usable.size
    place = np.searchsorted(usable, rows)
    assert (usable[place] == rows).all()
    assert (np.diff(place.reshape(-1, 5)) == 1).all()  # forty targets are eight blocks of five neighbours


def test_a_resample_does_not_depend_on_who_draws_it(case: Case) -> None:
    alone = Draws(case, "A", TRAIN.search, 0, range(6), TRAIN.block).run()
    parts = [Draws(case, "A", TRAIN.search, 0, numbers, TRAIN.block) for numbers in (range(2), range(2, 6))]
    with processes(2) as spread:
        spread_out = list(spread.map(Draws.run, parts))
    np.testing.assert_array_equal(np.concatenate([part.value_BMNNL for part in spread_out]), alone.value_BMNNL)
    np.testing.assert_array_equal(np.concatenate([part.mark_BMNNL for part in spread_out]), alone.mark_BMNNL)
    one, two = stability(case, [alone]), stability(case, spread_out)
    assert one is not None
    assert two is not None
    assert one.equals(two)


def test_shares_of_the_resamples_counted_by_hand(case: Case) -> None:
    n = len(case.series.names)
    value_BMNNL = np.zeros((4, 2, n, n, TRAIN.tau_max + 1))
    mark_BMNNL = np.full(value_BMNNL.shape, "", "<U3")
    mark_BMNNL[:3, 0, 0, 1, 0] = ["-->", "<--", "o-o"]
    table = stability(case, [estimate.Resamples(value_BMNNL, mark_BMNNL, 1)])
    assert table is not None
    source, target = case.series.names[:2]
    (found,) = [
        row
        for row in table.to_dicts()
        if (row["level"], row["source"], row["target"], row["lag"]) == ("dry", source, target, 0)
    ]
    assert [found[name] for name in ("frequency", "forward", "backward")] == [0.75, 0.25, 0.25]
    assert [found[name] for name in ("resamples", "failed")] == [4, 1]
    assert table.height == 2 * (n * (n - 1) // 2 + n * n * TRAIN.tau_max)


def test_a_context_with_too_few_days_is_named_and_pooled_data_go_on(case: Case) -> None:
    rare = np.where(np.arange(case.level_T.size) < 700, case.level_T, np.minimum(case.level_T, 0))
    rare[:690] = 0
    few = replace(case, level_T=rare)
    assert Attempt(few, "pooled", TRAIN.search).run().failure is None
    failure = Attempt(few, "A", TRAIN.search).run().failure
    assert failure is not None
    assert "R = wet" in failure


def test_the_scarcest_variable_leaves_but_never_soil_moisture() -> None:
    """Soil moisture has the fewest values, and no day in common with evaporation."""
    rng = np.random.default_rng(0)
    data_TN = rng.normal(size=(400, 3))
    data_TN[200:, 0] = np.nan
    data_TN[:210, 1] = np.nan
    series = Series(["SWC", "LE", "SW_IN"], data_TN, np.zeros(400, bool), {})
    case = Case("x", series, np.arange(400) // 20 % 2, ("dry", "wet"), np.zeros(400, np.int64))
    used = usable_case(case, TRAIN.search).series
    assert used.names == ["SWC", "SW_IN"]
    assert "samples are left" in used.dropped["LE"]
