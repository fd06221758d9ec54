"""PCMCI beside tigramite 5.2.10.1: one JSON object a line.

    python benchmarks/pcmci.py            the whole table, about 3 minutes on one core (of which the peer has most)
    python benchmarks/pcmci.py --quick    a smoke test of a few seconds

Seconds are CPU seconds of this process with one thread for both sides, because both are serial. Compiling is left out:
the first call of each kernel is a warm-up (numba keeps the machine code on disk). Ours is the median of several runs,
the peer's is one run. Memory is the peak above the level before the call: of Python's and numpy's allocations
(tracemalloc) in a separate, untimed run, null where that run would take minutes. `equal` is true when the selected
parents and the graph at .05 are the same and all values and p-values agree within 1e-8.

The bootstrap lines compare with the peer's single run times the number of resamples, since it has no such bootstrap;
`ours_wall_s` is the wall time with the threads of `workers`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from stages.causal.bootstrap import available_cores, block_bootstrap  # noqa: E402
from stages.causal.pcmci import PCMCIResult, run_pcmci  # noqa: E402
from stages.causal.simulators import simulate_soil_bucket, simulate_var_chain  # noqa: E402

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PC_ALPHA = 0.05
ALPHA = 0.05
PEER = "tigramite 5.2.10.1"


def restart_with_one_thread() -> None:
    """Start this process afresh with one thread, because BLAS reads its settings when numpy is imported.

    A BLAS core type forced from outside is taken away too: it would pick other kernels than this machine's own.
    """
    wanted = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    wanted |= dict.fromkeys(THREADS, "1")
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)


def cpu_seconds(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median CPU time of a call, and its last result."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), result


def peak_mb(call: Callable[[], Any]) -> float:
    """Peak of the memory that a call allocates through Python and numpy."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / 1e6, 2)


def peer_call(data_TN: np.ndarray, tau_max: int, test: str, mask_T: np.ndarray | None) -> Callable[[], Any] | None:
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
    mask_TN = None if mask_T is None else np.repeat(mask_T[:, None], data_TN.shape[1], axis=1)

    def call() -> Any:
        frame = DataFrame(filled_TN, mask=mask_TN, missing_flag=9999.0 if missing else None)
        search = PCMCI(frame, kind(mask_type=None if mask_T is None else "y"), verbosity=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = search.run_pcmci(tau_max=tau_max, pc_alpha=PC_ALPHA, alpha_level=ALPHA)
        return result, search.all_parents

    return call


def is_equal(ours: PCMCIResult, peer: Any) -> bool:
    """Compare parents, graph, values and p-values."""
    result, parents = peer
    same_parents = all([(i, -lag) for i, lag in row] == list(parents[j]) for j, row in enumerate(ours.parents))
    graph_NNL = ours.tested_NNL & (ours.p_NNL <= ALPHA)
    same_graph = bool(((result["graph"] != "") == graph_NNL).all())
    gap = max(np.abs(ours.value_NNL - result["val_matrix"]).max(), np.abs(ours.p_NNL - result["p_matrix"]).max())
    return same_parents and same_graph and bool(gap < 1e-8)


def measure(
    name: str,
    data_TN: np.ndarray,
    tau_max: int,
    *,
    test: Any = "parcorr",
    repeats: int = 7,
    with_peer: bool = True,
    peer_memory: bool = False,
    mask_T: np.ndarray | None = None,
    reason: str | None = None,
) -> float | None:
    """Print one line of the table and return the seconds of the peer."""
    steps, variables = data_TN.shape
    share = float(np.isnan(data_TN).mean())
    gaps = f", {100 * share:.0f} % missing" if share else ""
    gaps += f", {100 * (1 - mask_T.mean()):.0f} % in season" if mask_T is not None else ""
    row: dict[str, Any] = {
        "name": name,
        "work": f"PCMCI {test}, T={steps}, N={variables}, tau_max={tau_max}, pc_alpha={PC_ALPHA}{gaps}",
    }

    def call() -> PCMCIResult:
        return run_pcmci(data_TN, tau_max=tau_max, pc_alpha=PC_ALPHA, test=test, mask_T=mask_T)

    call()
    ours_s, ours = cpu_seconds(call, repeats)
    row |= {"ours_s": round(ours_s, 6), "peer": PEER, "peer_s": None, "ratio": None, "ours_mb": peak_mb(call)}
    row |= {"peer_mb": None, "equal": None}
    theirs = peer_call(data_TN, tau_max, test, mask_T) if with_peer else None
    peer_s = None
    if theirs is None:
        row["reason"] = reason or f"{PEER} or one of its dependencies (joblib) is not installed"
    else:
        peer_s, peer = cpu_seconds(theirs, 1)
        row |= {"peer_s": round(peer_s, 3), "ratio": round(peer_s / ours_s, 1), "equal": is_equal(ours, peer)}
        if peer_memory:
            row["peer_mb"] = peak_mb(theirs)
    print(json.dumps(row), flush=True)
    return peer_s


def tower(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate a tower like the real ones: rain with ties, gaps in the fluxes, targets from May to September."""
    rng = np.random.default_rng(0)
    data_TN = simulate_soil_bucket(rng, steps=steps).data_TN.copy()
    for start in rng.integers(0, steps - 15, steps // 150):
        data_TN[start : start + 15, 2:4] = np.nan
    data_TN[rng.random(steps) < 0.02, 1] = np.nan
    day_T = np.arange(steps) % 365
    return data_TN, (day_T < 120) | (day_T >= 273)


def measure_tower(steps: int, replicates: int, tests: tuple[Any, ...]) -> None:
    """Print the lines of a tower: single runs, and the bootstrap with one thread and with all."""
    data_TN, mask_T = tower(steps)
    for test in tests:
        single_s = measure("pcmci-tower-gaps", data_TN, 5, test=test, mask_T=mask_T, repeats=5)
        settings: dict[str, Any] = {"tau_max": 5, "pc_alpha": PC_ALPHA, "test": test, "mask_T": mask_T}
        for workers in sorted({1, available_cores()}):

            def call(workers: int = workers, settings: dict[str, Any] = settings) -> Any:
                rng = np.random.default_rng(1)
                return block_bootstrap(
                    data_TN, rng=rng, replicates=replicates, block_length=15, workers=workers, **settings
                )

            wall = time.perf_counter()
            ours_s, _ = cpu_seconds(call, 1)
            wall = time.perf_counter() - wall
            peer_s = None if single_s is None else replicates * single_s
            row = {
                "name": "pcmci-bootstrap",
                "work": f"{replicates} resamples of the tower above, {test}",
                "workers": workers,
                "ours_s": round(ours_s, 3),
                "ours_wall_s": round(wall, 3),
                "peer": f"{PEER}, its single run times {replicates}",
                "peer_s": None if peer_s is None else round(peer_s, 1),
                "ratio": None if peer_s is None else round(peer_s / ours_s, 1),
                "ours_mb": peak_mb(call) if replicates <= 10 else None,
                "peer_mb": None,
                "equal": None,
                "reason": "the resamples are random; single runs are compared above",
            }
            print(json.dumps(row), flush=True)


def chain(steps: int, variables: int) -> np.ndarray:
    """Simulate the VAR chain of the comparison."""
    return simulate_var_chain(np.random.default_rng(0), steps=steps, variables=variables).data_TN


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="PCMCI beside tigramite, one JSON object a line.")
    parser.add_argument("--quick", action="store_true", help="a smoke test of a few seconds")
    quick = parser.parse_args().quick
    restart_with_one_thread()
    if quick:
        measure("pcmci", chain(300, 4), 2, repeats=3, peer_memory=True)
        measure("pcmci-growth-T", chain(2000, 4), 2, repeats=3, with_peer=False, reason="growth of ours alone")
        measure_tower(800, 5, ("robust_parcorr",))
        return
    measure("pcmci", chain(1000, 10), 5, repeats=21, peer_memory=True)
    measure("pcmci", chain(1000, 40), 5, repeats=11)
    measure("pcmci-robust", chain(1000, 10), 5, test="robust_parcorr", repeats=11)
    gappy_TN = chain(1000, 10)
    gappy_TN[np.random.default_rng(1).random(gappy_TN.shape) < 0.02] = np.nan
    measure("pcmci-missing", gappy_TN, 5, repeats=5)
    measure("pcmci-tower", chain(175_000, 9), 5, repeats=5)
    alone: dict[str, Any] = {"with_peer": False, "reason": "growth of ours alone", "repeats": 5}
    for steps in (1_000, 4_000, 16_000, 64_000, 256_000):
        measure("pcmci-growth-T", chain(steps, 9), 5, **alone)
    for variables in (5, 10, 20, 40, 80):
        measure("pcmci-growth-N", chain(1000, variables), 5, **alone)
    for tau_max in (1, 2, 5, 10, 20):
        measure("pcmci-growth-tau", chain(1000, 10), tau_max, **alone)
    measure_tower(3650, 100, ("robust_parcorr", "parcorr"))


if __name__ == "__main__":
    main()
