"""Simulated systems: what their equations say of the series."""

from __future__ import annotations

import numpy as np
import pytest

from stages.systems.endogenous_context.models import (
    ContextModel,
    collider_example,
    proxy_example,
    random_context_model,
)


def test_the_context_follows_its_drivers_where_it_does_not_persist() -> None:
    data_TN, context_T = collider_example(0.0).simulate(np.random.default_rng(0), 400)
    np.testing.assert_array_equal(context_T, data_TN[:, 0] + data_TN[:, 1] > 0)


def test_a_persistent_context_changes_half_as_often_as_it_could() -> None:
    _, context_T = collider_example(0.8).simulate(np.random.default_rng(1), 20_000)
    # It is drawn anew with probability 0.2, and then differs about half of the time.
    assert np.diff(context_T).astype(bool).mean() == pytest.approx(0.1, abs=0.015)


@pytest.mark.parametrize("switch_lag", [0, 1])
def test_a_switched_link_works_in_its_context_only(switch_lag: int) -> None:
    model = collider_example(0.5, coefficient=0.7, autocorrelation=0.0, switch_lag=switch_lag)
    data_TN, context_T = model.simulate(np.random.default_rng(2), 20_000)
    on_T = context_T[1 - switch_lag : context_T.size - switch_lag] == 1
    slopes = [np.polyfit(data_TN[:-1, 2][rows], data_TN[1:, 3][rows], 1)[0] for rows in (on_T, ~on_T)]
    assert slopes == pytest.approx([0.7, 0.0], abs=0.03)


def test_the_proxy_is_a_threshold_of_its_variable() -> None:
    data_TN, context_T = proxy_example(np.random.default_rng(3), 500, memory=0.8)
    np.testing.assert_array_equal(context_T, data_TN[:, 4] > 0)


def test_equal_seeds_draw_equal_systems_and_series() -> None:
    first, second = (
        random_context_model(np.random.default_rng(4), variables=6, persistence=0.5).simulate(
            np.random.default_rng(5), 100
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("seed", range(20))
def test_random_systems_are_what_was_asked_for(seed: int) -> None:
    model = random_context_model(np.random.default_rng(seed), variables=5, persistence=0.5, changed=2)
    differ = (model.coefficient_MNNL[0] != model.coefficient_MNNL[1]).any(axis=2)
    np.testing.assert_array_equal(differ, model.switch_NN >= 0)
    assert differ.sum() == 2
    assert (model.drive_NL != 0).sum() == 2
    assert model.is_stationary()
    graph_MNNL = model.full_graphs()
    assert graph_MNNL[:, -1, -1, 1].all()
    data_TN, _ = model.simulate(np.random.default_rng(seed), 300)
    assert np.isfinite(data_TN).all()


def test_a_link_that_flips_is_in_both_graphs() -> None:
    model = random_context_model(np.random.default_rng(6), variables=5, persistence=0.5, changed=1, flips=True)
    np.testing.assert_array_equal(model.graphs[0], model.graphs[1])
    np.testing.assert_array_equal(abs(model.coefficient_MNNL[0]), abs(model.coefficient_MNNL[1]))


def test_a_cycle_through_the_context_is_refused() -> None:
    """W drives R_t at once, and R_t switches what W is made of."""
    model = collider_example(0.5)
    drive_NL = model.drive_NL.copy()
    drive_NL[3, 0] = 1.0
    cyclic = ContextModel(model.names, model.coefficient_MNNL, model.switch_NN, drive_NL, 0.5)
    with pytest.raises(ValueError, match="cycle"):
        cyclic.simulate(np.random.default_rng(0), 10)


def test_too_many_strong_links_are_said() -> None:
    with pytest.raises(ValueError, match="smaller density"):
        random_context_model(
            np.random.default_rng(0), variables=8, persistence=0.5, density=1.0, coefficient=(0.9, 1.0), attempts=3
        )
