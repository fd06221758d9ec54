"""Sites in one sample: no window crosses sites, and their means make no links."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from stages.causal.data_sets import GivenCells, pooled_sample, pooled_series, pooled_test
from stages.causal.errors import CausalDataError, ConstantVariable
from stages.causal.mixed import mixed_test
from stages.causal.pcmci import pcmci_on_sample, run_pcmci
from stages.causal.sample_test import SampleTest
from stages.causal.samples import lagged_sample
from stages.causal.simulators import simulate_var_chain

QUESTION: tuple[Any, Any, Any] = ((0, 1), (1, 0), [(1, 1), (2, 2)])


def sites(offset: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    lengths = {"A": 150, "B": 90, "C": 210}
    return {
        site: simulate_var_chain(rng, steps=steps, variables=3).data_TN + k * offset
        for k, (site, steps) in enumerate(lengths.items())
    }


@pytest.mark.parametrize("test", ["parcorr", "robust_parcorr"])
@pytest.mark.parametrize("dummies", [False, True])
def test_one_site_is_the_series_itself(test: Any, dummies: bool) -> None:
    data_TN = sites()["A"]
    data_TN[20, 1] = np.nan
    alone = lagged_sample(data_TN, tau_max=2, test=test)
    pooled = pooled_test([data_TN], tau_max=2, test=test, dummies=dummies)
    assert pooled.measure(*QUESTION) == SampleTest(alone).measure(*QUESTION)
    ours = pcmci_on_sample(pooled_sample([data_TN], tau_max=2, test=test), pc_alpha=0.1)
    np.testing.assert_array_equal(ours.p_NNL, pcmci_on_sample(alone, pc_alpha=0.1).p_NNL)


def test_no_window_crosses_sites() -> None:
    pooled = pooled_series(sites(), tau_max=2)
    windows_RL = pooled.site_T[pooled.rows[:, None] - np.arange(5)]
    assert (windows_RL == windows_RL[:, :1]).all()
    assert len(pooled.rows) == 150 + 90 + 210 - 3 * 4
    masks = {"B": np.arange(90) < 40}
    assert len(pooled_series(sites(), tau_max=2, masks=masks).rows) == 146 + 50 + 206


def test_dummies_are_centring_within_sites() -> None:
    """The correlation of residuals of columns that are centred site by site, df less by the sites but one."""
    series = sites(offset=3.0)
    result = pooled_test(series, tau_max=2).measure(*QUESTION)
    x, y, given = QUESTION
    columns = []
    for data_TN in series.values():
        times = np.arange(4, len(data_TN))
        part = np.column_stack([data_TN[times - lag, i] for i, lag in [*given, x, y]])
        columns.append(part - part.mean(axis=0))
    table = np.concatenate(columns)
    rest = table[:, 2:] - table[:, :2] @ np.linalg.lstsq(table[:, :2], table[:, 2:])[0]
    assert result.value == pytest.approx(rest[:, 0] @ rest[:, 1] / np.sqrt((rest**2).sum(axis=0).prod()), abs=1e-12)
    assert (result.samples, result.df) == (438, 438 - 2 - 2 - 2)


def test_means_of_sites_make_links_only_without_dummies() -> None:
    rng = np.random.default_rng(1)
    found = {False: 0, True: 0}
    for _ in range(200):
        series = [rng.standard_normal((80, 2)) + level for level in (0.0, 1.0, 2.0)]
        for dummies in found:
            found[dummies] += pooled_test(series, tau_max=1, dummies=dummies).measure((0, 1), (1, 0)).p <= 0.05
    assert found[False] == 200
    assert 2 <= found[True] <= 20


def test_a_constant_added_to_one_site_changes_nothing_with_dummies() -> None:
    plain, shifted = (pooled_test(sites(offset), tau_max=2).measure(*QUESTION) for offset in (0.0, 100.0))
    assert shifted.value == pytest.approx(plain.value, abs=1e-10)


def test_gaps_drop_rows_test_by_test_within_sites() -> None:
    series = sites(offset=5.0)
    whole = pooled_test(series, tau_max=2).measure(*QUESTION)
    series["B"][:, 2] = np.nan
    result = pooled_test(series, tau_max=2).measure(*QUESTION)
    assert (result.samples, result.df) == (whole.samples - 86, whole.df - 86)
    del series["B"]
    assert result.value == pytest.approx(pooled_test(series, tau_max=2).measure(*QUESTION).value, abs=1e-10)


def test_the_mixed_test_takes_the_site_as_a_discrete_condition() -> None:
    pooled = pooled_series(sites(offset=2.0), tau_max=2)
    base = mixed_test(np.column_stack([pooled.data_TN, pooled.site_T]), discrete=[3], tau_max=2, rows=pooled.rows)
    mixed = GivenCells(base, [(3, 0)], hidden=1).measure(*QUESTION)
    linear = pooled_test(sites(offset=2.0), tau_max=2).measure(*QUESTION)
    assert mixed.value == pytest.approx(linear.value, abs=1e-12)
    assert (mixed.samples, mixed.df) == (linear.samples, linear.df)


def test_what_cannot_be_pooled_is_named() -> None:
    series = sites()
    with pytest.raises(
        CausalDataError, match="site B: the mask leaves no target time with 90 steps before it, of 90 steps"
    ):
        pooled_series(series, tau_max=45)
    with pytest.raises(CausalDataError, match="site C: the mask leaves no target time"):
        pooled_series(series, tau_max=2, masks={"C": np.ones(210, np.bool_)})
    with pytest.raises(ValueError, match="site C: mask of bool and shape"):
        pooled_series(series, tau_max=2, masks={"C": np.ones(3, np.bool_)})
    with pytest.raises(ValueError, match="site B: data of shape"):
        pooled_series({**series, "B": series["B"][:, :2]}, tau_max=2)
    for k, data_TN in enumerate(series.values()):
        data_TN[:, 2] = k
    with pytest.raises(ConstantVariable, match="X2 is constant at every site"):
        pooled_test(series, tau_max=2)


@pytest.mark.peer
@pytest.mark.parametrize("gaps", [False, True])
def test_equals_tigramite_without_dummies(gaps: bool) -> None:
    pytest.importorskip("tigramite", reason="pip install -e .[peers]")
    pytest.importorskip("joblib", reason="tigramite needs it")
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    series = sites(offset=0.5)
    if gaps:
        for k, data_TN in enumerate(series.values()):
            data_TN[np.random.default_rng(k).random(data_TN.shape) < 0.05] = np.nan
    filled = {k: np.where(np.isnan(data_TN), 999.0, data_TN) for k, data_TN in enumerate(series.values())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = DataFrame(filled, analysis_mode="multiple", missing_flag=999.0)
        peer = PCMCI(frame, ParCorr(), verbosity=0).run_pcmci(tau_max=2, pc_alpha=0.2)
    ours = pcmci_on_sample(pooled_sample(series, tau_max=2), pc_alpha=0.2)
    np.testing.assert_allclose(ours.value_NNL, peer["val_matrix"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.p_NNL, peer["p_matrix"], rtol=0, atol=1e-10)
    pooled = pooled_series(series, tau_max=2)
    again = run_pcmci(pooled.data_TN, tau_max=2, pc_alpha=0.2, rows=pooled.rows)
    np.testing.assert_array_equal(again.value_NNL, ours.value_NNL)
