"""Random linear systems with contemporaneous links, and random settings of a search for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stages.causal.assumptions import LinkAssumptions
from stages.causal.independence import Cell
from stages.causal.partial_correlation import TestResult, partial_correlation
from stages.causal.samples import LaggedSample


class OneByOne:
    """A sample as a test like any other, so that the search with any test can be held against the compiled one."""

    def __init__(self, sample: LaggedSample) -> None:
        self.sample, self.names, self.tau_max = sample, sample.names, sample.tau_max

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult:
        return partial_correlation(self.sample, x, y, conditions)


def random_system(
    rng: np.random.Generator, *, steps: int, variables: int, contemporaneous: float = 0.4, lagged: float = 0.25
) -> np.ndarray:
    """Simulate x[t] = A x[t] + B x[t-1] + e[t], A acyclic in a random order, the process stationary."""
    n = variables
    order = rng.permutation(n)
    a_NN = np.tril(rng.random((n, n)) < contemporaneous, -1) * rng.uniform(-0.8, 0.8, (n, n))
    a_NN = a_NN[np.ix_(order, order)]
    b_NN = (rng.random((n, n)) < lagged) * rng.uniform(-0.3, 0.3, (n, n)) + np.diag(rng.uniform(0, 0.6, n))
    mixing_NN = np.linalg.inv(np.eye(n) - a_NN)
    while np.abs(np.linalg.eigvals(mixing_NN @ b_NN)).max() > 0.95:
        b_NN *= 0.8
    data_TN = rng.standard_normal((steps, n))
    for t in range(1, steps):
        data_TN[t] = mixing_NN @ (data_TN[t] + b_NN @ data_TN[t - 1])
    return data_TN


def random_limits(rng: np.random.Generator) -> dict[str, int]:
    """Draw a limit for each kind of conditions, or none."""
    names = ("max_conds_dim", "max_conds_py", "max_conds_px")
    return {name: int(rng.integers(0, 4)) for name in names if rng.random() < 0.3}


def random_assumptions(rng: np.random.Generator, variables: int, tau_max: int) -> LinkAssumptions:
    """Draw assumptions that do not contradict each other: directions follow a random order."""
    rank = rng.permutation(variables)
    forbidden, required, oriented = [], [], []
    for i in range(variables):
        for j in range(variables):
            for lag in range(tau_max + 1):
                if lag == 0 and rank[i] >= rank[j]:
                    continue
                draw = rng.random()
                if draw < 0.15:
                    forbidden.append((i, j, lag))
                elif draw < 0.25:
                    required.append((i, j, lag))
                if lag == 0 and draw >= 0.15 and rng.random() < 0.3:
                    oriented.append((i, j, lag))
    return LinkAssumptions(forbidden, required, oriented)


def random_case(seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Draw a series and the arguments of a search: all rules, limits, missing values, masks, assumptions."""
    rng = np.random.default_rng(seed)
    n, tau_max = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    data_TN = random_system(rng, steps=int(rng.integers(90, 250)), variables=n)
    if rng.random() < 0.4:
        data_TN[rng.random(data_TN.shape) < 0.03] = np.nan
    options: dict[str, Any] = {
        "tau_max": tau_max,
        "pc_alpha": float(rng.choice([0.01, 0.05, 0.1, 0.3])),
        "test": "robust_parcorr" if rng.random() < 0.4 else "parcorr",
        "collider_rule": ["majority", "conservative", "none"][seed % 3],
        "conflict_resolution": bool(rng.random() < 0.7),
        "tau_min": int(rng.random() < 0.1),
        **random_limits(rng),
    }
    if rng.random() < 0.3:
        options["mask_TN"] = rng.random(data_TN.shape) < 0.15
    if rng.random() < 0.4 and options["tau_min"] == 0:
        options["assumptions"] = random_assumptions(rng, n, tau_max)
    return data_TN, options
