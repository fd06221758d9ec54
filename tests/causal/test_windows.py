"""Windows are masks: each gives what a run on its target times gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from stages.causal.covariance import Booleans
from stages.causal.errors import CausalDataError
from stages.causal.links import link_graph
from stages.causal.pcmci import PCMCIResult, run_pcmci
from stages.causal.simulators import simulate_var_chain
from stages.causal.windows import SlidingWindows, sliding_windows


def chain(steps: int) -> np.ndarray:
    return simulate_var_chain(np.random.default_rng(0), steps=steps, variables=3).data_TN


def in_windows(data_TN: np.ndarray, **options: Any) -> SlidingWindows[PCMCIResult]:
    def run(mask_T: Booleans) -> PCMCIResult:
        return run_pcmci(data_TN, tau_max=2, pc_alpha=0.2, mask_T=mask_T)

    return sliding_windows(len(data_TN), run=run, **options)


def test_a_window_as_long_as_the_series_is_the_whole_run() -> None:
    data_TN = chain(200)
    found = in_windows(data_TN, length=200, step=1)
    assert [(window.start, window.stop) for window in found.windows] == [(0, 200)]
    np.testing.assert_array_equal(found.results[0].value_NNL, run_pcmci(data_TN, tau_max=2, pc_alpha=0.2).value_NNL)


def test_lags_reach_back_before_a_window() -> None:
    found = in_windows(chain(400), length=100, step=75)
    assert [window.start for window in found.windows] == [0, 75, 150, 225, 300]
    assert [int(result.samples_NNL.max()) for result in found.results] == [96, 100, 100, 100, 100]


def test_a_link_that_stops_is_in_the_windows_before() -> None:
    rng = np.random.default_rng(1)
    data_TN = rng.standard_normal((1000, 2))
    data_TN[1:500, 1] += 0.8 * data_TN[:499, 0]
    found = sliding_windows(
        1000, length=250, step=250, run=lambda mask_T: run_pcmci(data_TN, tau_max=1, pc_alpha=0.01, mask_T=mask_T)
    )
    assert [bool(link_graph(result, alpha=1e-4)[0, 1, 1]) for result in found.results] == [True, True, False, False]
    assert found.share(lambda result: link_graph(result, alpha=1e-4))[0, 1, 1] == 0.5


def test_windows_that_cannot_carry_a_test_are_named_and_left_out() -> None:
    data_TN = chain(300)
    data_TN[95:205, 1] = 3.0
    found = in_windows(data_TN, length=100, step=100)
    assert [window.result is None for window in found.windows] == [False, True, False]
    assert "X1(t) is constant over the 100 samples" in found.faults[100]
    assert found.share(lambda result: result.tested_NNL)[0, 2, 1] == 1.0
    mask_T = np.zeros(300, np.bool_)
    mask_T[2:99] = True
    assert "every link" in in_windows(data_TN, length=100, step=200, mask_T=mask_T).faults[0]
    none = in_windows(data_TN, length=2, step=100)
    with pytest.raises(CausalDataError, match="none of 3 windows has a result; the first, from step 0: every link"):
        none.share(lambda result: result.tested_NNL)


def test_the_most_frequent_mark_and_its_share() -> None:
    marks = iter([["-->", ""], ["-->", "o-o"], ["", "x-x"]])
    found = sliding_windows(3, length=1, step=1, run=lambda mask_T: np.array(next(marks)))
    mark_N, share_N = found.most_frequent(lambda mark: mark)
    assert mark_N.tolist() == ["-->", ""]
    np.testing.assert_allclose(share_N, [2 / 3, 1 / 3])


def test_impossible_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="length 11: expected 1 to 10"):
        sliding_windows(10, length=11, step=1, run=lambda mask_T: 0)
    with pytest.raises(ValueError, match="step 0"):
        sliding_windows(10, length=1, step=0, run=lambda mask_T: 0)
    with pytest.raises(ValueError, match="mask_T: found int64"):
        sliding_windows(10, length=1, step=1, run=lambda mask_T: 0, mask_T=np.zeros(10, np.int64))


@pytest.mark.peer
def test_equals_tigramite() -> None:
    pytest.importorskip("tigramite", reason="pip install -e .[peers]")
    pytest.importorskip("joblib", reason="tigramite needs it")
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    data_TN = chain(520)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = PCMCI(DataFrame(data_TN), ParCorr(), verbosity=0).run_sliding_window_of(
            "run_pcmci", {"tau_max": 2, "pc_alpha": 0.2}, window_step=70, window_length=150
        )
    ours = in_windows(data_TN, length=150, step=70)
    theirs_W = np.array(peer["window_results"]["val_matrix"])
    np.testing.assert_allclose([result.value_NNL for result in ours.results], theirs_W, rtol=0, atol=1e-10)
    mark_NNL, share_NNL = ours.most_frequent(lambda r: np.where(link_graph(r, alpha=0.05), "-->", "")[:, :, 1:])
    np.testing.assert_array_equal(mark_NNL, peer["summary_results"]["most_frequent_links"][:, :, 1:])
    np.testing.assert_allclose(share_NNL, peer["summary_results"]["link_frequency"][:, :, 1:])
