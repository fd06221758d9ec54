"""PCMCI+ beside tigramite 5.2.10.1: one JSON object a line.

    python benchmarks/pcmci_plus.py            the whole table, about a minute on one core (of which the peer has most)
    python benchmarks/pcmci_plus.py --quick    a smoke test of a few seconds

Seconds are CPU seconds of this process with one thread for both sides. Compiling is left out: the first call of each
kernel is a warm-up. Ours is the median of several runs, the peer's is one run. Memory is the peak above the level
before the call, of Python's and numpy's allocations, in a separate, untimed run. `equal` is true when links and
directions are the same, all p-values agree within 1e-8, and so do the values of all links and of all lagged pairs.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.pcmci import PC_ALPHA, PEER, chain, cpu_seconds, peak_mb, restart_with_one_thread  # noqa: E402
from stages.causal.pcmci_plus import PCMCIPlusResult, run_pcmci_plus  # noqa: E402


def peer_call(data_TN: np.ndarray, tau_max: int, test: str, rule: str) -> Callable[[], Any] | None:
    """Prepare the same run of the peer; None when it is not installed."""
    try:
        from tigramite.data_processing import DataFrame
        from tigramite.independence_tests.parcorr import ParCorr
        from tigramite.independence_tests.robust_parcorr import RobustParCorr
        from tigramite.pcmci import PCMCI
    except ImportError:
        return None
    kind = {"parcorr": ParCorr, "robust_parcorr": RobustParCorr}[test]
    missing = bool(np.isnan(data_TN).any())
    filled_TN = np.where(np.isnan(data_TN), 9999.0, data_TN)

    def call() -> Any:
        frame = DataFrame(filled_TN, missing_flag=9999.0 if missing else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PCMCI(frame, kind(), verbosity=0).run_pcmciplus(
                tau_max=tau_max, pc_alpha=PC_ALPHA, contemp_collider_rule=rule
            )

    return call


def is_equal(ours: PCMCIPlusResult, peer: Any) -> bool:
    """Compare marks, p-values, and the values of links and lagged pairs."""
    compared_NNL = ours.graph_NNL != ""
    compared_NNL[:, :, 1:] = True
    value_gap = np.abs(ours.value_NNL - peer["val_matrix"])[compared_NNL].max()
    p_gap = np.abs(ours.p_NNL - peer["p_matrix"]).max()
    return bool((ours.graph_NNL == peer["graph"]).all() and max(value_gap, p_gap) < 1e-8)


def measure(
    name: str,
    data_TN: np.ndarray,
    tau_max: int,
    *,
    test: Any = "parcorr",
    rule: Any = "majority",
    repeats: int = 11,
    with_peer: bool = True,
    peer_memory: bool = False,
) -> None:
    """Print one line of the table."""
    steps, variables = data_TN.shape
    share = float(np.isnan(data_TN).mean())
    gaps = f", {100 * share:.0f} % missing" if share else ""
    work = f"PCMCI+ {test}, {rule}, T={steps}, N={variables}, tau_max={tau_max}, pc_alpha={PC_ALPHA}{gaps}"

    def call() -> PCMCIPlusResult:
        return run_pcmci_plus(data_TN, tau_max=tau_max, pc_alpha=PC_ALPHA, test=test, collider_rule=rule)

    call()
    ours_s, ours = cpu_seconds(call, repeats)
    row: dict[str, Any] = {"name": name, "work": work, "ours_s": round(ours_s, 6), "peer": PEER, "peer_s": None}
    row |= {"ratio": None, "ours_mb": peak_mb(call), "peer_mb": None, "equal": None}
    theirs = peer_call(data_TN, tau_max, test, rule) if with_peer else None
    if theirs is None:
        row["reason"] = "growth of ours alone" if not with_peer else f"{PEER} or joblib is not installed"
    else:
        peer_s, peer = cpu_seconds(theirs, 1)
        row |= {"peer_s": round(peer_s, 3), "ratio": round(peer_s / ours_s, 1), "equal": is_equal(ours, peer)}
        if peer_memory:
            row["peer_mb"] = peak_mb(theirs)
    print(json.dumps(row), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="PCMCI+ beside tigramite, one JSON object a line.")
    parser.add_argument("--quick", action="store_true", help="a smoke test of a few seconds")
    quick = parser.parse_args().quick
    restart_with_one_thread()
    if quick:
        measure("pcmci-plus", chain(300, 4), 2, repeats=3, peer_memory=True)
        measure("pcmci-plus-growth-N", chain(300, 8), 2, repeats=3, with_peer=False)
        return
    for variables in (10, 20):
        measure("pcmci-plus", chain(1000, variables), 5, peer_memory=variables == 10)
        measure("pcmci-plus-robust", chain(1000, variables), 5, test="robust_parcorr")
    for rule in ("none", "conservative"):
        measure("pcmci-plus-rule", chain(1000, 20), 5, rule=rule)
    gappy_TN = chain(1000, 10)
    gappy_TN[np.random.default_rng(1).random(gappy_TN.shape) < 0.02] = np.nan
    measure("pcmci-plus-missing", gappy_TN, 5, repeats=5)
    measure("pcmci-plus-missing-robust", gappy_TN, 5, test="robust_parcorr", repeats=5)
    for variables in (5, 10, 20, 40, 80):
        measure("pcmci-plus-growth-N", chain(1000, variables), 5, repeats=5, with_peer=False)
    for steps in (1_000, 4_000, 16_000, 64_000):
        measure("pcmci-plus-growth-T", chain(steps, 9), 5, repeats=5, with_peer=False)
    for tau_max in (1, 2, 5, 10, 20):
        measure("pcmci-plus-growth-tau", chain(1000, 10), tau_max, repeats=5, with_peer=False)


if __name__ == "__main__":
    main()
