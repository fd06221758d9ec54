"""The mixed test beside tigramite 5.2.10.1, and its type-I error: one JSON object a line.

    python benchmarks/mixed.py            the whole table, about 2 minutes on one core (of which the peer has most)
    python benchmarks/mixed.py --quick    a smoke test of a few seconds

Seconds are CPU seconds of this process with one thread for both sides, per test: the median of several for ours, one
test for the peer. Compiling and the preparation of the sample are left out on both sides. The peers need scikit-learn
and answer other questions than a partial correlation (RegressionCI a deviance, CMIknnMixed a mutual information), so
that `equal` is null; `p` and `peer_p` stand beside each other instead.

The lines `mixed-type-1` give the share of p-values not above .05 where X_{t-1} drives both Y_t and the regime R_t, R
keeps its level with a probability, and R_t is tested with Y_t given X_{t-1} and R_{t-1}, T=400.
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

from benchmarks.pcmci import PEER, cpu_seconds, peak_mb, restart_with_one_thread  # noqa: E402
from stages.causal.errors import CausalDataError  # noqa: E402
from stages.causal.mixed import MixedTest, mixed_test  # noqa: E402

QUESTION = ((1, 0), (2, 0), [(0, 1), (2, 1)])


def driven_regime(rng: np.random.Generator, steps: int, stay: float) -> np.ndarray:
    """Simulate a driver X, its response Y_t, and a regime R_t that follows X_{t-1} or stays."""
    x_T, regime_T = rng.standard_normal(steps), np.zeros(steps)
    for t in range(1, steps):
        regime_T[t] = regime_T[t - 1] if rng.random() < stay else x_T[t - 1] > 0
    return np.column_stack([x_T, 0.7 * np.roll(x_T, 1) + rng.standard_normal(steps), regime_T])


def fresh_test(data_TN: np.ndarray, **options: Any) -> Callable[[], Any]:
    """Prepare a test that remembers nothing of the last call."""
    test: MixedTest = mixed_test(data_TN, discrete=[2], tau_max=1, rng=np.random.default_rng(0), **options)

    def call() -> Any:
        test.forget()
        return test.measure(*QUESTION)

    return call


def peer_test(data_TN: np.ndarray, kind: str, permutations: int) -> Callable[[], Any] | str:
    """Prepare the same question to the peer; why not, where it cannot be asked."""
    try:
        from tigramite.data_processing import DataFrame

        if kind == "RegressionCI":
            from tigramite.independence_tests.regressionCI import RegressionCI

            peer: Any = RegressionCI()
        else:
            from tigramite.independence_tests.cmiknn_mixed import CMIknnMixed

            peer = CMIknnMixed(significance="shuffle_test", sig_samples=permutations)
    except ImportError as error:
        return f"{PEER} or one of its dependencies is not installed: {error}"
    type_TN = np.zeros(data_TN.shape, np.int64)
    type_TN[:, 2] = 1
    x, y, given = QUESTION

    def call() -> Any:
        # The peer remembers its answers, so it starts anew; that takes it no time.
        peer.set_dataframe(DataFrame(data_TN, data_type=type_TN))
        cells = {"X": [(x[0], -x[1])], "Y": [(y[0], -y[1])], "Z": [(i, -lag) for i, lag in given]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return peer.run_test(**cells, tau_max=1)

    return call


def measure(name: str, steps: int, *, peer: str | None = None, repeats: int = 21, **options: Any) -> None:
    """Print one line of the table."""
    data_TN = driven_regime(np.random.default_rng(1), steps, 0.8)
    words = ", ".join(f"{key} {value}" for key, value in options.items()) or "F distribution"
    call = fresh_test(data_TN, **options)
    call()
    ours_s, ours = cpu_seconds(call, repeats)
    row: dict[str, Any] = {"name": name, "work": f"one test, T={steps}, two conditions, {words}"}
    row |= {"ours_s": round(ours_s, 7), "peer": None, "peer_s": None, "ratio": None, "ours_mb": peak_mb(call)}
    row |= {"peer_mb": None, "equal": None, "p": round(ours.p, 4), "peer_p": None}
    theirs = (
        "not compared: the growth of ours, or no such test there"
        if peer is None
        else peer_test(data_TN, peer, options.get("permutations", 0))
    )
    if isinstance(theirs, str):
        row["reason"] = theirs
    else:
        peer_s, answer = cpu_seconds(theirs, 1)
        row |= {"peer": f"{PEER} {peer}", "peer_s": round(peer_s, 4), "ratio": round(peer_s / ours_s, 1)}
        row |= {"peer_p": round(float(answer[1]), 4)}
    print(json.dumps(row), flush=True)


def type_1(runs: int, stay: float, **options: Any) -> None:
    """Print the share of rejections at .05 of a true independence."""
    rejected = possible = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        data_TN = driven_regime(rng, 400, stay)
        try:
            rejected += mixed_test(data_TN, discrete=[2], tau_max=1, rng=rng, **options).measure(*QUESTION).p <= 0.05
            possible += 1
        except CausalDataError:
            continue
    words = ", ".join(f"{key} {value}" for key, value in options.items()) or "F distribution"
    share = rejected / possible
    row = {"name": "mixed-type-1", "work": f"R stays with {stay}, {words}", "runs": possible}
    row |= {"rejected_at_05": round(share, 4), "standard_error": round((share * (1 - share) / possible) ** 0.5, 4)}
    print(json.dumps(row), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The mixed test beside tigramite, one JSON object a line.")
    parser.add_argument("--quick", action="store_true", help="a smoke test of a few seconds")
    quick = parser.parse_args().quick
    restart_with_one_thread()
    if quick:
        measure("mixed", 300, repeats=3)
        measure("mixed-growth-permutations", 300, permutations=100, repeats=3)
        type_1(50, 0.8)
        return
    measure("mixed", 500, peer="RegressionCI")
    measure("mixed-slopes", 500, slopes=True)
    measure("mixed-permutations", 500, peer="CMIknnMixed", permutations=200)
    for permutations in (100, 1_000, 10_000, 100_000):
        measure("mixed-growth-permutations", 500, permutations=permutations, repeats=5)
    for steps in (250, 1_000, 4_000, 16_000):
        measure("mixed-growth-T", steps, permutations=1_000, repeats=5)
    for stay in (0.5, 0.8, 0.95):
        type_1(2_000, stay)
        type_1(2_000, stay, slopes=True)
        type_1(2_000, stay, permutations=199)


if __name__ == "__main__":
    main()
