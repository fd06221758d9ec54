"""Live comparison with tigramite on random series, where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
from contemporaneous import random_case, random_system
from pcmci_plus_peer import run_peer_plus

from stages.causal.errors import CausalDataError
from stages.causal.links import link_q_values
from stages.causal.pcmci_plus import run_pcmci_plus

pytestmark = pytest.mark.peer


@pytest.fixture(autouse=True)
def _peer() -> None:
    pytest.importorskip("tigramite", reason="pip install -e .[peers]")
    pytest.importorskip("joblib", reason="tigramite needs it")


@pytest.mark.parametrize("seed", range(36))
def test_random_series_give_the_same_graph_and_numbers(seed: int) -> None:
    data_TN, options = random_case(seed)
    try:
        ours = run_pcmci_plus(data_TN, **options)
    except CausalDataError:  # the peer returns NaN there
        pytest.skip("too few samples")
    peer = run_peer_plus(data_TN, **options)
    np.testing.assert_array_equal(ours.graph_NNL, peer.graph_NNL)
    assert [list(triple) for triple in ours.ambiguous] == peer.ambiguous
    # The peer gives required links value 1 and p-value 0; ours are those of their tests.
    free_NNL = ~ours.required_NNL
    np.testing.assert_allclose(ours.p_NNL[free_NNL], peer.p_NNL[free_NNL], rtol=0, atol=1e-9)
    # Pairs that are not adjacent at lag 0: the peer's value may be that of another test than its p-value.
    free_NNL[:, :, 0] &= ours.graph_NNL[:, :, 0] != ""
    np.testing.assert_allclose(ours.value_NNL[free_NNL], peer.value_NNL[free_NNL], rtol=0, atol=1e-10)


def test_ten_variables_give_the_same_graph() -> None:
    data_TN = random_system(np.random.default_rng(0), steps=300, variables=10, contemporaneous=0.2, lagged=0.15)
    ours = run_pcmci_plus(data_TN, tau_max=3, pc_alpha=0.01)
    peer = run_peer_plus(data_TN, tau_max=3, pc_alpha=0.01)
    assert (ours.graph_NNL[:, :, 0] == "-->").any()
    np.testing.assert_array_equal(ours.graph_NNL, peer.graph_NNL)
    np.testing.assert_allclose(ours.p_NNL, peer.p_NNL, rtol=0, atol=1e-9)


def test_q_values_are_the_peers_with_lag_0_left_out_of_the_family() -> None:
    data_TN = random_system(np.random.default_rng(1), steps=200, variables=5)
    ours = run_pcmci_plus(data_TN, tau_max=2, pc_alpha=0.1)
    peer = run_peer_plus(data_TN, tau_max=2, pc_alpha=0.1, fdr_method="fdr_bh")
    q_NNL = link_q_values(ours, exclude_contemporaneous=True)
    np.testing.assert_allclose(q_NNL, peer.p_NNL, rtol=0, atol=1e-10)
