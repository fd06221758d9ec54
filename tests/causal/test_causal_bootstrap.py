"""The block bootstrap keeps the clock, repeats under a seed, and knows a stable link from a chance one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.causal.bootstrap import block_bootstrap, default_block_length, draw_block_rows
from stages.causal.errors import CausalDataError
from stages.causal.simulators import simulate_var_chain


@given(st.integers(0, 10), st.integers(1, 60), st.integers(1, 60), st.integers(0, 1000))
def test_blocks_are_runs_of_neighbouring_target_times(first: int, count: int, length: int, seed: int) -> None:
    length = min(length, count)
    rows = draw_block_rows(np.random.default_rng(seed), first=first, steps=first + count, block_length=length)
    assert rows.size == count
    assert rows.min() >= first
    assert rows.max() < first + count
    for begin in range(0, count, length):
        assert (np.diff(rows[begin : begin + length]) == 1).all()


def test_block_length_grows_with_the_cube_root() -> None:
    assert [default_block_length(n) for n in (1, 27, 28, 1000, 3640)] == [1, 3, 4, 10, 16]


def test_true_links_are_stable_and_the_same_seed_repeats() -> None:
    chain = simulate_var_chain(np.random.default_rng(0), steps=500, variables=3, tau_max=2)
    first, second = (
        block_bootstrap(chain.data_TN, tau_max=2, pc_alpha=0.1, rng=np.random.default_rng(1), replicates=40)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.frequency_NNL, second.frequency_NNL)
    np.testing.assert_array_equal(first.low_NNL, second.low_NNL)
    lagged_NNL = first.frequency_NNL[:, :, 1:]
    assert (lagged_NNL[chain.truth_NNL[:, :, 1:]] > 0.95).all()
    assert lagged_NNL[~chain.truth_NNL[:, :, 1:]].mean() < 0.3
    assert first.low_NNL[0, 1, 1] < 0.3 / np.sqrt(1.09) < first.high_NNL[0, 1, 1]
    assert np.isnan(first.low_NNL[0, 0, 0])


def test_spread_of_the_replicates_is_the_sampling_spread() -> None:
    """White noise, one lag: the standard deviation of a correlation is about 1 / sqrt(n)."""
    data_TN = np.random.default_rng(2).standard_normal((400, 2))
    result = block_bootstrap(
        data_TN, tau_max=1, pc_alpha=1e-9, rng=np.random.default_rng(3), replicates=300, level=0.6827
    )
    half = 0.5 * (result.high_NNL - result.low_NNL)[0, 1, 1]
    assert half == pytest.approx(1 / np.sqrt(398), rel=0.2)


def test_replicates_without_any_rain_are_drawn_again() -> None:
    rng = np.random.default_rng(4)
    data_TN = rng.standard_normal((80, 2))
    data_TN[:, 0] = 0.0
    data_TN[[30, 31], 0] = 5.0
    result = block_bootstrap(
        data_TN, tau_max=1, pc_alpha=0.1, rng=rng, replicates=20, block_length=8, max_conds_dim=0, names=["P", "LE"]
    )
    assert result.redrawn > 0
    assert result.replicates == 20


def test_a_series_that_resampling_mostly_breaks_is_refused() -> None:
    """Rain on the last two days only: a resample sees it at lag 1 only when a block ends on the last day."""
    rng = np.random.default_rng(5)
    data_TN = rng.standard_normal((60, 2))
    data_TN[:, 0] = 0.0
    data_TN[58:, 0] = [1.0, 2.0]
    settings = {"tau_max": 1, "pc_alpha": 0.1, "rng": rng, "replicates": 5, "block_length": 29, "names": ["P", "LE"]}
    with pytest.raises(CausalDataError, match=r"6 of \d+ resamples failed, the last with: P\(t.* is constant"):
        block_bootstrap(data_TN, **settings)


def test_block_longer_than_the_series_is_refused() -> None:
    data_TN = np.random.default_rng(6).standard_normal((30, 2))
    with pytest.raises(ValueError, match="block length 40: expected 1 to 28"):
        block_bootstrap(data_TN, tau_max=1, pc_alpha=0.1, rng=np.random.default_rng(0), block_length=40)


@pytest.mark.parametrize("test", ["parcorr", "robust_parcorr"])
def test_number_of_threads_leaves_the_result_alone(test: Any) -> None:
    rng = np.random.default_rng(7)
    data_TN = rng.standard_normal((80, 3)).round(1)
    data_TN[:, 0] = 0.0
    data_TN[[30, 31], 0] = 5.0  # some resamples see no rain and are drawn again
    data_TN[rng.random(80) < 0.1, 2] = np.nan
    first, *others = (
        block_bootstrap(
            data_TN,
            tau_max=1,
            pc_alpha=0.1,
            rng=np.random.default_rng(8),
            replicates=15,
            block_length=8,
            max_conds_dim=0,
            test=test,
            workers=workers,
        )
        for workers in (1, 2, 7)
    )
    assert first.redrawn > 0
    for other in others:
        assert other.redrawn == first.redrawn
        for name in ("frequency_NNL", "low_NNL", "high_NNL"):
            assert getattr(other, name).tobytes() == getattr(first, name).tobytes()


def test_no_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="workers 0: expected 1 or more"):
        block_bootstrap(np.ones((30, 2)), tau_max=1, pc_alpha=0.1, rng=np.random.default_rng(0), workers=0)
