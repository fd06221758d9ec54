from __future__ import annotations

import numpy as np
import pytest

from stages.causal.errors import CausalDataError
from stages.systems.endogenous_context.regimes import Regimes, occupancy, regimes_by_quantile

NAMES = {"variable": "SWC", "unit": "m3 m-3"}


def halves(values_T: np.ndarray, fit_T: np.ndarray) -> Regimes:
    return regimes_by_quantile(values_T, fit_T, quantiles=[0.5], levels=["dry", "wet"], **NAMES)


def test_the_median_cuts_into_halves() -> None:
    values_T = np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    regimes = halves(values_T, np.ones(5, bool))
    assert regimes.threshold_K.tolist() == [3.0]
    assert regimes.classify(values_T).tolist() == [1, 0, 0, 0, 1]  # a value at the threshold is below it
    assert (regimes.bounds(0), regimes.bounds(1)) == ((-np.inf, 3.0), (3.0, np.inf))


def test_held_out_years_do_not_move_the_thresholds() -> None:
    rng = np.random.default_rng(0)
    values_T, training_T = rng.normal(size=200), np.arange(200) < 120
    changed_T = np.where(training_T, values_T, values_T + 100)
    assert halves(values_T, training_T).threshold_K == halves(changed_T, training_T).threshold_K


def test_a_day_without_a_value_has_no_regime_and_does_not_count() -> None:
    values_T = np.array([1.0, np.nan, 2.0, 3.0])
    regimes = halves(values_T, np.ones(4, bool))
    assert regimes.threshold_K.tolist() == [2.0]
    assert regimes.classify(values_T).tolist() == [0, -1, 0, 1]


def test_three_regimes_share_the_days() -> None:
    values_T = np.arange(300.0)
    three = regimes_by_quantile(
        values_T, np.ones(300, bool), quantiles=[1 / 3, 2 / 3], levels=["dry", "medium", "wet"], **NAMES
    )
    assert np.bincount(three.classify(values_T)).tolist() == [100, 100, 100]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.3] * 10, "SWC has no value in the regime wet, above 0.3 and up to 0.3 m3 m-3"),
        ([0.1] + [0.3] * 9, "SWC has no value in the regime wet"),
        ([0.3], "1 values of SWC to cut into the regimes dry, wet"),
    ],
)
def test_an_empty_regime_is_named(values: list[float], message: str) -> None:
    with pytest.raises(CausalDataError, match=message):
        halves(np.array(values), np.ones(len(values), bool))


def test_occupancy_and_spells_counted_by_hand() -> None:
    """Two years; an unknown day, a day out of season and the turn of the year end a spell."""
    level_T = np.array([0, 0, 1, -1, 1, 0, 0, 1, 1, 1])
    year_T = np.array([1, 1, 1, 1, 1, 1, 2, 2, 2, 2])
    season_T = np.array([True] * 8 + [False, True])
    rows = {(row["year"], row["level"]): row for row in occupancy(level_T, year_T, season_T, ["dry", "wet"]).to_dicts()}
    assert [rows[None, "dry"][name] for name in ("days", "occupancy", "spells", "mean_spell")] == [4, 0.5, 3, 4 / 3]
    assert [rows[None, "wet"][name] for name in ("days", "occupancy", "spells", "mean_spell")] == [4, 0.5, 4, 1]
    assert [rows[2, "wet"][name] for name in ("days", "occupancy", "spells")] == [2, 2 / 3, 2]


def test_the_spells_of_a_markov_chain_last_as_long_as_its_persistence_says() -> None:
    """Mean length of a spell that is left with probability 0.1 a day: 10 days."""
    rng = np.random.default_rng(0)
    level_T = np.cumsum(rng.random(100_000) < 0.1) % 2
    table = occupancy(level_T, np.zeros(100_000, np.int64), np.ones(100_000, bool), ["dry", "wet"])
    np.testing.assert_allclose(table["mean_spell"].to_numpy(), 10, rtol=0.05)


def test_a_regime_that_never_holds_has_no_length() -> None:
    table = occupancy(np.zeros(5, np.int64), np.zeros(5, np.int64), np.ones(5, bool), ["dry", "wet"])
    assert table.row(1) == (None, "wet", 0, 0.0, 0, None)
