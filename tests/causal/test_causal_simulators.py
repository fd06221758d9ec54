"""Simulated series obey their equations, and their graphs are those of the equations."""

from __future__ import annotations

import numpy as np
import pytest

from stages.causal.simulators import (
    MM_PER_DAY_PER_WATT,
    simulate_random_var,
    simulate_soil_bucket,
    simulate_var_chain,
    spectral_radius,
)


def test_chain_has_the_variance_and_the_graph_of_its_equation() -> None:
    chain = simulate_var_chain(np.random.default_rng(0), steps=50_000, variables=3, tau_max=2)
    noise_TN = chain.data_TN[1:] - 0.5 * chain.data_TN[:-1]
    noise_TN[:, 1:] -= 0.3 * chain.data_TN[:-1, :-1]
    np.testing.assert_allclose(noise_TN.std(axis=0), 1.0, atol=0.02)
    assert chain.data_TN[:, 0].var() == pytest.approx(1 / (1 - 0.25), rel=0.03)
    assert {tuple(k) for k in np.argwhere(chain.truth_NNL).tolist()} == {
        (0, 0, 1), (1, 1, 1), (2, 2, 1), (0, 1, 1), (1, 2, 1),
    }  # fmt: skip


def test_spectral_radius_by_hand() -> None:
    """x_t = .5 x_{t-1} + .3 x_{t-2}: z^2 - .5 z - .3 = 0 has the root .25 + sqrt(.0625 + .3) = .8521."""
    assert spectral_radius(np.array([[[0.0, 0.5, 0.3]]])) == pytest.approx(0.8521, abs=1e-4)


def test_regression_on_true_parents_gives_back_the_coefficients() -> None:
    system = simulate_random_var(np.random.default_rng(1), steps=20_000, variables=4, density=0.4, tau_max=3)
    design = np.column_stack([system.data_TN[3 - lag : -lag] for lag in (1, 2, 3)])
    found = np.linalg.lstsq(design, system.data_TN[3:], rcond=None)[0].reshape(3, 4, 4)
    coefficient_NNL = found.transpose(1, 2, 0)
    np.testing.assert_array_equal(np.abs(coefficient_NNL) > 0.1, system.truth_NNL[:, :, 1:])
    assert not system.truth_NNL[:, :, 0].any()


def test_unstable_systems_are_refused() -> None:
    with pytest.raises(ValueError, match="none of 5 random systems has a spectral radius up to"):
        simulate_random_var(
            np.random.default_rng(2), steps=10, variables=8, density=1.0, coefficient=(0.9, 1.0), attempts=5
        )


def test_bucket_keeps_its_water_and_energy_balance() -> None:
    bucket = simulate_soil_bucket(np.random.default_rng(3), steps=3000, flux_noise=8.0)
    rain, soil, le, h, vpd, sw, _ = bucket.data_TN.T
    change = np.diff(soil) - (rain - MM_PER_DAY_PER_WATT * le)[1:]
    inside = (soil[1:] < 150.0) & (soil[1:] > 0.0)
    np.testing.assert_allclose(change[inside], 0.0, atol=1e-9)
    assert (change[soil[1:] == 150.0] < 0.0).all()  # what does not fit drains
    assert np.std(sw - le - h) == pytest.approx(8.0, rel=0.1)
    assert (rain >= 0).all()
    assert (vpd > 0).all()
    assert soil.max() <= 150.0


def test_bucket_evaporates_by_radiation_when_wet_and_by_water_when_dry() -> None:
    bucket = simulate_soil_bucket(np.random.default_rng(4), steps=4000)
    soil, le, sw = (bucket.data_TN[:, bucket.names.index(name)] for name in ("SWC", "LE", "SW_IN"))
    wet_T = bucket.wet_T
    assert 0.2 < wet_T.mean() < 0.8
    np.testing.assert_array_equal(wet_T[1:], soil[:-1] >= 80.0)
    np.testing.assert_allclose((le - sw)[wet_T].std(), 8.0, rtol=0.1)
    dry = np.flatnonzero(~wet_T[1:]) + 1
    assert np.corrcoef(soil[dry - 1], (le / sw)[dry])[0, 1] > 0.7


def test_bucket_graphs() -> None:
    bucket = simulate_soil_bucket(np.random.default_rng(5), steps=50, tau_max=3)
    p, swc, le = (bucket.names.index(name) for name in ("P", "SWC", "LE"))
    assert bucket.truth_NNL.shape == (7, 7, 4)
    assert bucket.truth_NNL[p, swc, 0]
    assert bucket.truth_NNL[swc, p, 0]
    assert bucket.truth_NNL[swc, le, 1]
    assert not bucket.truth_wet_NNL[swc, le, 1]
    np.testing.assert_array_equal(bucket.truth_NNL[:, :, 0], bucket.truth_NNL[:, :, 0].T)


def test_season_adds_a_yearly_cycle_and_nothing_else_does() -> None:
    month = np.arange(3650) // 30 % 12
    spreads = []
    for season in (False, True):
        bucket = simulate_soil_bucket(np.random.default_rng(6), steps=3650, season=season)
        sw = bucket.data_TN[:, bucket.names.index("SW_IN")]
        spreads.append(np.std([sw[month == k].mean() for k in range(12)]))
    assert spreads[0] < 5.0
    assert spreads[1] > 30.0


def test_the_same_seed_gives_the_same_series() -> None:
    for simulate in (
        lambda rng: simulate_var_chain(rng, steps=50, variables=3),
        lambda rng: simulate_random_var(rng, steps=50, variables=3),
        lambda rng: simulate_soil_bucket(rng, steps=50),
    ):
        first, second = (simulate(np.random.default_rng(7)).data_TN for _ in range(2))
        np.testing.assert_array_equal(first, second)
        assert first.shape[0] == 50
