"""q-values, intervals, tables and graphs of a result."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from stages.causal.links import (
    benjamini_hochberg,
    confidence_bounds,
    counted_links,
    link_graph,
    link_q_values,
    link_table,
)
from stages.causal.pcmci import PCMCIResult, run_pcmci
from stages.causal.simulators import simulate_var_chain


@pytest.fixture(scope="module")
def result() -> PCMCIResult:
    data_TN = simulate_var_chain(np.random.default_rng(0), steps=400, variables=3).data_TN
    data_TN[40, 2] = np.nan
    return run_pcmci(data_TN, tau_max=2, pc_alpha=0.1, names=["SW_IN", "LE", "H"])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_benjamini_hochberg_is_scipys(p: list[float]) -> None:
    np.testing.assert_allclose(benjamini_hochberg(np.array(p)), false_discovery_control(p), rtol=1e-12)


def test_published_example_of_benjamini_and_hochberg() -> None:
    """Their 15 p-values (1995, section 3.2): four are rejected at .05, three of them by Bonferroni."""
    p = np.array([1, 4, 19, 95, 201, 278, 298, 344, 459, 3240, 4262, 5719, 6528, 7590, 10000]) / 1e4
    assert (benjamini_hochberg(p) <= 0.05).sum() == 4
    assert (p * 15 <= 0.05).sum() == 3


def test_family_counts_a_contemporaneous_pair_once(result: PCMCIResult) -> None:
    counted_NNL = counted_links(result)
    assert counted_NNL.sum() == 3 * 3 * 2 + 3
    q_NNL = link_q_values(result)
    expected = false_discovery_control(result.p_NNL[counted_NNL])
    np.testing.assert_allclose(q_NNL[counted_NNL], expected)
    np.testing.assert_array_equal(q_NNL[:, :, 0], q_NNL[:, :, 0].T)
    assert (np.diag(q_NNL[:, :, 0]) == 1.0).all()


def test_contemporaneous_pairs_can_be_left_out_of_the_family(result: PCMCIResult) -> None:
    q_NNL = link_q_values(result, exclude_contemporaneous=True)
    np.testing.assert_array_equal(q_NNL[:, :, 0], result.p_NNL[:, :, 0])
    np.testing.assert_allclose(q_NNL[:, :, 1:].ravel(), false_discovery_control(result.p_NNL[:, :, 1:].ravel()))


def test_table_has_one_row_per_test(result: PCMCIResult) -> None:
    table = link_table(result)
    assert table.columns == ["source", "target", "lag", "value", "p", "q", "samples", "low", "high"]
    assert table.height == 21
    row = table.row(by_predicate=(pl.col("source") == "SW_IN") & (pl.col("target") == "LE") & (pl.col("lag") == 1))
    assert row[3] == result.value_NNL[0, 1, 1]
    assert row[6] == 396
    assert (table["low"] < table["value"]).all()
    assert (table["value"] < table["high"]).all()
    assert (table["q"] >= table["p"]).all()


def test_interval_by_hand() -> None:
    """r = .5 from 52 samples and 2 conditions: z = .5493, standard error 1 / sqrt(47) = .1459, .2575 to .6832."""
    one = np.ones((1, 1, 2), np.int64)
    by_hand = PCMCIResult(
        value_NNL=0.5 * one,
        p_NNL=0.0 * one,
        samples_NNL=52 * one,
        df_NNL=48 * one,
        tested_NNL=one > 0,
        parents=((),),
        names=("x",),
        tau_min=0,
        tau_max=1,
        pc_alpha=None,
        test="parcorr",
    )
    low_NNL, high_NNL = confidence_bounds(by_hand)
    assert low_NNL[0, 0, 1] == pytest.approx(0.2575, abs=1e-4)
    assert high_NNL[0, 0, 1] == pytest.approx(0.6832, abs=1e-4)


def test_interval_covers_at_its_level() -> None:
    inside = 0
    for seed in range(200):
        data_TN = simulate_var_chain(np.random.default_rng(seed), steps=150, variables=2).data_TN
        low_NNL, high_NNL = confidence_bounds(run_pcmci(data_TN, tau_max=1, pc_alpha=0.05), level=0.9)
        inside += low_NNL[0, 1, 1] <= 0.3 / np.sqrt(1.09) <= high_NNL[0, 1, 1]
    assert inside / 200 == pytest.approx(0.9, abs=0.07)


def test_untested_links_are_in_no_graph(result: PCMCIResult) -> None:
    graph_NNL = link_graph(result, alpha=1.0)
    np.testing.assert_array_equal(graph_NNL, result.tested_NNL)
    assert not np.diag(graph_NNL[:, :, 0]).any()
    corrected_NNL = link_graph(result, alpha=0.05, corrected=True)
    assert (corrected_NNL <= link_graph(result, alpha=0.05)).all()
