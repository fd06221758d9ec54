"""Live comparison with tigramite on random series, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from causal_peer import run_peer

from stages.causal.errors import CausalDataError
from stages.causal.pcmci import run_pcmci
from stages.causal.simulators import simulate_random_var

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("seed", range(24))
def test_random_series_give_the_same_numbers(seed: int) -> None:
    pytest.importorskip("tigramite", reason="pip install -e .[peers]")
    pytest.importorskip("joblib", reason="tigramite needs it")
    rng = np.random.default_rng(seed)
    n, tau_max, steps = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.choice([120, 300]))
    data_TN = simulate_random_var(rng, steps=steps, variables=n, tau_max=tau_max).data_TN
    data_TN = data_TN @ (np.eye(n) + np.where(rng.random((n, n)) < 0.2, 0.5, 0.0))
    options: dict[str, Any] = {
        "tau_max": tau_max,
        "pc_alpha": float(rng.choice([0.01, 0.05, 0.2, 0.4])),
        "test": ["parcorr", "robust_parcorr"][seed % 2],
        "tau_min": int(rng.random() < 0.2),
    }
    for limit in ("max_conds_dim", "max_conds_py", "max_conds_px"):
        if rng.random() < 0.25:
            options[limit] = int(rng.integers(0, 4))
    if rng.random() < 0.3:
        candidates_NNL = rng.random((n, n, tau_max + 1)) < 0.7
        candidates_NNL[:, :, 0] |= candidates_NNL[:, :, 0].T
        candidates_NNL[:, :, : options["tau_min"]] = False
        options["candidates_NNL"] = candidates_NNL
    if rng.random() < 0.4:
        options["mask_TN"] = rng.random((steps, n)) < 0.2
    if rng.random() < 0.5:
        data_TN[rng.random(data_TN.shape) < 0.05] = np.nan
    try:
        ours = run_pcmci(data_TN, **options)
    except CausalDataError:  # the peer returns NaN there
        pytest.skip("too few samples")
    peer = run_peer(data_TN, **options)
    np.testing.assert_allclose(ours.value_NNL, peer.value_NNL, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.p_NNL, peer.p_NNL, rtol=0, atol=1e-10)
    assert [list(row) for row in ours.parents] == peer.parents
    found_NNL = ours.tested_NNL & (ours.p_NNL <= 0.05)
    np.testing.assert_array_equal((peer.graph_NNL != "")[:, :, 1:], found_NNL[:, :, 1:])
    if "mask_TN" not in options and not any(key.startswith("max_conds_p") for key in options):
        # With a test per direction the peer draws an arrow where only one of the two is significant; we do not.
        np.testing.assert_array_equal((peer.graph_NNL != "")[:, :, 0], found_NNL[:, :, 0])
