"""Run PCMCI+ of tigramite (a peer that is only compared with, and whose source is never read) with our arguments."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from stages.causal.assumptions import LinkAssumptions

MISSING = 999.0


class PeerPlusResult(NamedTuple):
    value_NNL: np.ndarray
    p_NNL: np.ndarray
    graph_NNL: np.ndarray
    ambiguous: list[list[int]]  # source, lag, middle, target, as ours


def run_peer_plus(
    data_TN: np.ndarray,
    *,
    tau_max: int,
    pc_alpha: float,
    test: str = "parcorr",
    mask_TN: np.ndarray | None = None,
    assumptions: LinkAssumptions | None = None,
    collider_rule: str = "majority",
    **settings: Any,
) -> PeerPlusResult:
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
        result = PCMCI(frame, independence, verbosity=0).run_pcmciplus(
            tau_max=tau_max,
            pc_alpha=pc_alpha,
            contemp_collider_rule=collider_rule,
            link_assumptions=None if assumptions is None else _marks(assumptions, data_TN.shape[1], tau_max),
            **settings,
        )
    triples = result["ambiguous_triples"] or []
    ambiguous = [[int(x[0]), -int(x[1]), int(middle), int(target)] for x, middle, target in triples]
    return PeerPlusResult(result["val_matrix"], result["p_matrix"], result["graph"], ambiguous)


def _marks(assumptions: LinkAssumptions, n: int, tau_max: int) -> dict[int, dict[tuple[int, int], str]]:
    forbidden, required, oriented = (
        {tuple(link) for link in links} for links in (assumptions.forbidden, assumptions.required, assumptions.oriented)
    )
    marks: dict[int, dict[tuple[int, int], str]] = {j: {} for j in range(n)}
    for i, j, lag in np.ndindex(n, n, tau_max + 1):
        link, back = (i, j, lag), (j, i, 0)
        if (lag == 0 and (i == j or back in forbidden)) or link in forbidden:
            continue
        middle = "-" if link in required or (lag == 0 and back in required) else "?"
        ends = "->" if lag or link in oriented else "<-" if back in oriented else "oo"
        marks[j][(i, -lag)] = ends[0] + middle + ends[1]
    return marks
