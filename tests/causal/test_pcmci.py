"""PCMCI finds the chain, keeps its level, and returns what tigramite 5.2.10.1 returned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.causal import compiled
from stages.causal.errors import CausalDataError, ConstantVariable, TooFewSamples
from stages.causal.links import counted_links, link_graph
from stages.causal.partial_correlation import partial_correlation
from stages.causal.pcmci import lagged_correlation, run_pcmci
from stages.causal.samples import lagged_sample
from stages.causal.simulators import simulate_random_var, simulate_var_chain

REFERENCE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "reference.json").read_text())


@pytest.mark.parametrize("name", REFERENCE)
def test_equals_the_numbers_of_tigramite(name: str) -> None:
    case = REFERENCE[name]
    mask_TN = None if case["mask"] is None else np.array(case["mask"], bool)
    data_TN = np.array(case["data"], dtype=float)
    result = run_pcmci(data_TN, mask_TN=mask_TN, **case["options"])
    np.testing.assert_allclose(result.value_NNL, case["value"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.p_NNL, case["p"], rtol=0, atol=1e-12)
    assert [[list(cell) for cell in row] for row in result.parents] == case["parents"]


def test_chain_is_found_and_nothing_else() -> None:
    chain = simulate_var_chain(np.random.default_rng(0), steps=2000, variables=5, tau_max=3)
    result = run_pcmci(chain.data_TN, tau_max=3, pc_alpha=0.05)
    graph_NNL = link_graph(result, alpha=0.01, corrected=True)
    np.testing.assert_array_equal(graph_NNL, chain.truth_NNL)
    # The value of X0(t-1) -> X1(t), given X1's own past and X0's: .3 / sqrt(1 + .09) = .2873.
    assert result.value_NNL[0, 1, 1] == pytest.approx(0.2873, abs=0.04)


def test_mci_value_is_the_partial_correlation_given_both_sets_of_parents() -> None:
    system = simulate_random_var(np.random.default_rng(1), steps=400, variables=4, tau_max=2)
    result = run_pcmci(system.data_TN, tau_max=2, pc_alpha=0.1)
    sample = lagged_sample(system.data_TN, tau_max=2)
    for i, j, lag in np.argwhere(result.tested_NNL).tolist():
        given_y = [cell for cell in result.parents[j] if cell != (i, lag)]
        shifted = [(k, tau + lag) for k, tau in result.parents[i]]
        conditions = given_y + [cell for cell in shifted if cell not in result.parents[j]]
        single = partial_correlation(sample, (i, lag), (j, 0), conditions)
        assert result.value_NNL[i, j, lag] == pytest.approx(single.value, abs=1e-12)
        assert result.p_NNL[i, j, lag] == pytest.approx(single.p, abs=1e-12)
        assert (result.samples_NNL[i, j, lag], result.df_NNL[i, j, lag]) == (single.samples, single.df)


def test_false_links_of_independent_autocorrelated_series_come_at_the_level() -> None:
    """Own lags are conditioned on, so autocorrelation does not inflate the level; plain correlation it does."""
    found: list[float] = []
    plain: list[float] = []
    for seed in range(60):
        system = simulate_random_var(
            np.random.default_rng(seed), steps=300, variables=5, density=0.0, tau_max=2, autocorrelation=(0.8, 0.9)
        )
        for rates, run in ((found, run_pcmci), (plain, lagged_correlation)):
            extra = {"pc_alpha": 0.2} if run is run_pcmci else {}
            result = run(system.data_TN, tau_max=2, **extra)
            absent_NNL = counted_links(result) & ~np.eye(5, dtype=bool)[:, :, None]
            rates.append(float(link_graph(result, alpha=0.05)[absent_NNL].mean()))
    # 60 x 50 tests; standard error .004 if they were independent.
    assert np.mean(found) == pytest.approx(0.05, abs=0.015)
    assert np.mean(plain) > 0.3


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 10**6), st.booleans())
def test_relabelling_the_variables_relabels_the_result(order: list[int], seed: int, gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    data_TN = simulate_random_var(rng, steps=150, variables=5, tau_max=2).data_TN
    if gaps:
        data_TN[rng.random(data_TN.shape) < 0.03] = np.nan
    plain = run_pcmci(data_TN, tau_max=2, pc_alpha=0.2)
    moved = run_pcmci(data_TN[:, order], tau_max=2, pc_alpha=0.2)
    np.testing.assert_allclose(moved.value_NNL, plain.value_NNL[np.ix_(order, order)], rtol=0, atol=1e-10)
    np.testing.assert_array_equal(moved.samples_NNL, plain.samples_NNL[np.ix_(order, order)])
    assert [[(order[i], lag) for i, lag in row] for row in moved.parents] == [list(plain.parents[k]) for k in order]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["parcorr", "robust_parcorr"]))
def test_complete_and_gappy_paths_agree(seed: int, test: Any) -> None:
    """A missing value that no target time needs: the last step's only reader is masked."""
    rng = np.random.default_rng(seed)
    data_TN = simulate_random_var(rng, steps=150, variables=4, tau_max=2).data_TN
    mask_T = rng.random(150) < 0.2
    mask_T[-1] = True
    whole = run_pcmci(data_TN, tau_max=2, pc_alpha=0.2, test=test, mask_T=mask_T)
    data_TN[-1] = np.nan
    gappy = run_pcmci(data_TN, tau_max=2, pc_alpha=0.2, test=test, mask_T=mask_T)
    np.testing.assert_allclose(gappy.value_NNL, whole.value_NNL, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(gappy.samples_NNL, whole.samples_NNL)
    assert gappy.parents == whole.parents


def test_monotone_transforms_leave_the_robust_test_alone() -> None:
    data_TN = simulate_var_chain(np.random.default_rng(2), steps=300, variables=3).data_TN
    plain = run_pcmci(data_TN, tau_max=2, pc_alpha=0.1, test="robust_parcorr")
    bent = run_pcmci(np.exp(data_TN), tau_max=2, pc_alpha=0.1, test="robust_parcorr")
    np.testing.assert_allclose(bent.value_NNL, plain.value_NNL, rtol=0, atol=1e-12)


def test_contemporaneous_values_are_symmetric_and_own_lag_zero_is_no_test() -> None:
    data_TN = simulate_var_chain(np.random.default_rng(3), steps=300, variables=4).data_TN
    result = run_pcmci(data_TN, tau_max=1, pc_alpha=0.2, max_conds_px=0)
    np.testing.assert_array_equal(result.value_NNL[:, :, 0], result.value_NNL[:, :, 0].T)
    assert (np.diag(result.p_NNL[:, :, 0]) == 1.0).all()
    assert not np.diag(result.tested_NNL[:, :, 0]).any()


def test_rows_of_all_target_times_are_the_sample_itself() -> None:
    data_TN = simulate_var_chain(np.random.default_rng(4), steps=300, variables=4).data_TN
    whole = run_pcmci(data_TN, tau_max=3, pc_alpha=0.1)
    same = run_pcmci(data_TN, tau_max=3, pc_alpha=0.1, rows=np.arange(6, 300))
    np.testing.assert_allclose(same.value_NNL, whole.value_NNL, rtol=0, atol=1e-13)
    twice = run_pcmci(data_TN, tau_max=3, pc_alpha=1.0, max_conds_dim=0, rows=np.tile(np.arange(6, 300), 2))
    once = run_pcmci(data_TN, tau_max=3, pc_alpha=1.0, max_conds_dim=0)
    np.testing.assert_allclose(twice.value_NNL, once.value_NNL, rtol=0, atol=1e-12)
    assert (twice.samples_NNL == 2 * once.samples_NNL).all()


def test_without_lags_the_links_are_plain_correlations() -> None:
    data_TN = np.random.default_rng(13).standard_normal((40, 3))
    result = run_pcmci(data_TN, tau_max=0, pc_alpha=0.1)
    expected = np.corrcoef(data_TN.T) - np.eye(3)
    np.testing.assert_allclose(result.value_NNL[:, :, 0], expected, rtol=0, atol=1e-13)


def test_a_single_variable_has_its_own_past_only() -> None:
    data_TN = simulate_var_chain(np.random.default_rng(14), steps=500, variables=1).data_TN
    result = run_pcmci(data_TN, tau_max=2, pc_alpha=0.05)
    assert result.parents[0][0] == (0, 1)
    assert result.value_NNL[0, 0, 1] == pytest.approx(0.45, abs=0.1)


def test_lagged_correlation_is_the_plain_correlation() -> None:
    data_TN = simulate_var_chain(np.random.default_rng(5), steps=200, variables=3).data_TN
    result = lagged_correlation(data_TN, tau_max=3)
    expected = np.corrcoef(data_TN[4:-2, 0], data_TN[6:, 2])[0, 1]
    assert result.value_NNL[0, 2, 2] == pytest.approx(expected, abs=1e-13)
    assert (result.df_NNL[result.tested_NNL] == 200 - 6 - 2).all()
    assert result.pc_alpha is None
    assert result.parents == ((), (), ())


def test_an_all_missing_variable_outside_the_candidates_shrinks_no_sample() -> None:
    """Case 38."""
    data_TN = simulate_var_chain(np.random.default_rng(6), steps=200, variables=7).data_TN
    six = run_pcmci(data_TN[:, :6], tau_max=2, pc_alpha=0.1)
    data_TN[:, 6] = np.nan
    with pytest.raises(CausalDataError, match="X6 has no value at all"):
        run_pcmci(data_TN, tau_max=2, pc_alpha=0.1)
    candidates_NNL = np.ones((7, 7, 3), bool)
    candidates_NNL[6] = candidates_NNL[:, 6] = False
    seven = run_pcmci(data_TN, tau_max=2, pc_alpha=0.1, candidates_NNL=candidates_NNL)
    np.testing.assert_allclose(seven.value_NNL[:6, :6], six.value_NNL, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(seven.samples_NNL[:6, :6], six.samples_NNL)
    assert not seven.tested_NNL[6].any()


def test_sample_sizes_count_the_clock_times_that_are_left() -> None:
    data_TN = simulate_var_chain(np.random.default_rng(7), steps=200, variables=3).data_TN
    data_TN[100, 2] = np.nan
    result = run_pcmci(data_TN, tau_max=2, pc_alpha=1e-12)
    assert result.parents[0] == ((0, 1),)
    assert result.samples_NNL[0, 0, 1] == 196  # X2 is in none of its cells
    assert result.samples_NNL[2, 0, 1] == 194  # X2(t-1), and its parent X2(t-2)


def test_a_mask_that_leaves_nothing_names_the_link() -> None:
    """Case 35."""
    data_TN = simulate_var_chain(np.random.default_rng(8), steps=100, variables=3).data_TN
    mask_TN = np.zeros((100, 3), bool)
    mask_TN[:, 1] = True
    with pytest.raises(TooFewSamples, match=r"SWC\(t-1\) -> LE\(t\): 0 samples .*True = not used") as caught:
        run_pcmci(data_TN, tau_max=2, pc_alpha=0.1, mask_TN=mask_TN, names=["SWC", "LE", "H"])
    assert (caught.value.link, caught.value.found, caught.value.needed) == ("SWC(t-1) -> LE(t)", 0, 3)


def test_too_many_conditions_for_the_sample_name_the_link() -> None:
    data_TN = np.random.default_rng(9).standard_normal((30, 6))
    with pytest.raises(TooFewSamples, match=r"X0\(t-1\) -> X0\(t\): 22 samples .* 29 conditions needs 32"):
        run_pcmci(data_TN, tau_max=4, pc_alpha=1.0, max_conds_dim=0)


@pytest.mark.parametrize("test", ["parcorr", "robust_parcorr"])
def test_constant_column_in_one_targets_sample_is_named(test: Any) -> None:
    data_TN = simulate_var_chain(np.random.default_rng(10), steps=100, variables=2).data_TN
    data_TN[:50, 0] = 2.5
    mask_TN = np.zeros((100, 2), bool)
    mask_TN[50:, 1] = True
    with pytest.raises(ConstantVariable, match=r"P\(t-1\) -> LE\(t\): P\(t-1\) is constant over the 46 samples"):
        run_pcmci(data_TN, tau_max=2, pc_alpha=0.1, mask_TN=mask_TN, names=["P", "LE"], test=test)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pc_alpha": 0.0}, "pc_alpha 0.0"),
        ({"tau_min": 3}, "tau_min 3: expected 0 to tau_max 2"),
        ({"max_conds_px": -1}, "max_conds_px -1"),
        ({"candidates_NNL": np.ones((3, 3, 2), bool)}, "candidates: found bool"),
        ({"candidates_NNL": np.triu(np.ones((3, 3), bool))[:, :, None].repeat(3, 2)}, "must be symmetric"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], message: str) -> None:
    data_TN = np.random.default_rng(11).standard_normal((50, 3))
    with pytest.raises(ValueError, match=message):
        run_pcmci(data_TN, **{"tau_max": 2, "pc_alpha": 0.1, **options})


def test_a_copy_of_a_variable_does_not_break_the_search() -> None:
    """Perfect collinearity: the copies correlate perfectly at lag 0, and values stay in [-1, 1]."""
    data_TN = simulate_var_chain(np.random.default_rng(12), steps=200, variables=3).data_TN
    data_TN = np.column_stack([data_TN, 2.0 * data_TN[:, 0] + 1.0])
    result = run_pcmci(data_TN, tau_max=2, pc_alpha=0.2)
    assert np.isfinite(result.value_NNL).all()
    assert (np.abs(result.value_NNL) <= 1.0).all()


def test_every_module_with_kernels_is_in_the_key_of_the_kernel_cache() -> None:
    folder = Path(compiled.__file__).parent
    using = {p.name for p in folder.glob("*.py") if "@compiled\n" in p.read_text()}
    assert using <= set(compiled.KERNEL_MODULES)
