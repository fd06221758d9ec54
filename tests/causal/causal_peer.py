"""Run tigramite (a peer that is only compared with, and whose source is never read) with our arguments."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

MISSING = 999.0


class PeerResult(NamedTuple):
    value_NNL: np.ndarray
    p_NNL: np.ndarray
    graph_NNL: np.ndarray
    parents: list[list[tuple[int, int]]]  # (source, lag), lag counted forward as ours


def run_peer(
    data_TN: np.ndarray,
    *,
    tau_max: int,
    pc_alpha: float,
    test: str = "parcorr",
    mask_TN: np.ndarray | None = None,
    candidates_NNL: np.ndarray | None = None,
    tau_min: int = 0,
    alpha: float = 0.05,
    **limits: Any,
) -> PeerResult:
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.independence_tests.robust_parcorr import RobustParCorr
    from tigramite.pcmci import PCMCI

    kind = {"parcorr": ParCorr, "robust_parcorr": RobustParCorr}[test]
    independence = kind(significance="analytic", mask_type=None if mask_TN is None else "y")
    frame = DataFrame(
        np.where(np.isnan(data_TN), MISSING, data_TN),
        mask=mask_TN,
        missing_flag=MISSING if np.isnan(data_TN).any() else None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = PCMCI(frame, independence, verbosity=0)
        result = search.run_pcmci(
            tau_min=tau_min,
            tau_max=tau_max,
            pc_alpha=pc_alpha,
            alpha_level=alpha,
            link_assumptions=None if candidates_NNL is None else _assumptions(candidates_NNL),
            **limits,
        )
    parents = [[(i, -lag) for i, lag in search.all_parents[j]] for j in range(data_TN.shape[1])]
    return PeerResult(result["val_matrix"], result["p_matrix"], result["graph"], parents)


def _assumptions(candidates_NNL: np.ndarray) -> dict[int, dict[tuple[int, int], str]]:
    n = candidates_NNL.shape[0]
    links: dict[int, dict[tuple[int, int], str]] = {j: {} for j in range(n)}
    for i, j, lag in np.argwhere(candidates_NNL).tolist():
        if lag or i != j:
            links[j][(i, -lag)] = "-?>" if lag else "o?o"
    return links
