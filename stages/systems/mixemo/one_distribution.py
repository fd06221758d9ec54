"""Tests of "one distribution" for a subset, and a partition that splits until they pass.

Shape suffixes: N window, M window of a second sample, P component.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import ClusterError, kmeans2
from scipy.spatial.distance import cdist
from scipy.special import log_ndtr

#: Critical value of the corrected Anderson-Darling statistic at the level 0.0001 (Hamerly and Elkan 2003).
CRITICAL = 1.8692
SMALLEST = 20


def anderson_darling(values_N: NDArray[np.float64]) -> float:
    """Anderson-Darling statistic of normality with estimated mean and variance, with Stephens' correction for size."""
    n = len(values_N)
    spread = values_N.std(ddof=1)
    if not spread > 0:
        return 0.0
    z = np.sort((values_N - values_N.mean()) / spread)
    odd = 2 * np.arange(1, n + 1) - 1
    statistic = -n - np.mean(odd * (log_ndtr(z) + log_ndtr(-z[::-1])))
    return float(statistic * (1 + 4 / n - 25 / n**2))


def halves(values_NP: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Membership in the second of two clusters (2-means from a pair of windows drawn at random)."""
    start = values_NP[rng.choice(len(values_NP), 2, replace=False)]
    _, label = kmeans2(values_NP, start, minit="matrix", iter=20, missing="raise")
    return np.asarray(label == 1)


def along_halves(values_NP: NDArray[np.float64], second_N: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Values along the line through the means of two halves: where they are two, it shows there first."""
    direction = values_NP[second_N].mean(axis=0) - values_NP[~second_N].mean(axis=0)
    return np.asarray(values_NP @ direction)


def energy_test(
    first_NP: NDArray[np.float64], second_MP: NDArray[np.float64], permutations: int, rng: np.random.Generator
) -> float:
    """P-value of the energy distance between two samples (Szekely and Rizzo 2004) by permutation.

    For samples that were drawn apart. The halves of one cluster always differ: on those it rejects single Gaussians.
    """
    pooled = np.concatenate([first_NP, second_MP])
    apart = cdist(pooled, pooled)
    size = len(first_NP)

    def statistic(order: NDArray[np.int64]) -> float:
        one, two = order[:size], order[size:]
        within = apart[np.ix_(one, one)].mean() + apart[np.ix_(two, two)].mean()
        return float(2 * apart[np.ix_(one, two)].mean() - within)

    observed = statistic(np.arange(len(pooled)))
    drawn = [statistic(rng.permutation(len(pooled))) for _ in range(permutations)]
    return (1 + sum(value >= observed for value in drawn)) / (1 + permutations)


def split_until_normal(
    values_NP: NDArray[np.float64], most: int, rng: np.random.Generator, critical: float = CRITICAL
) -> NDArray[np.int64]:
    """Subset of each window: a subset is halved until it looks normal along its halves, or there are ``most``.

    The subset that is furthest from normal is halved first (G-means, Hamerly and Elkan 2003).
    """
    subset_N = np.zeros(len(values_NP), np.int64)
    judged = {0: _judge(values_NP, rng)}
    while len(judged) < most:
        worst = max(judged, key=lambda k: judged[k][0])
        statistic, second = judged[worst]
        if statistic <= critical:
            break
        mine = np.flatnonzero(subset_N == worst)
        new = len(judged)
        subset_N[mine[second]] = new
        for k in (worst, new):
            judged[k] = _judge(values_NP[subset_N == k], rng)
    return subset_N


def _judge(values_NP: NDArray[np.float64], rng: np.random.Generator) -> tuple[float, NDArray[np.bool_]]:
    """How far a subset is from normal, and its halves; a small one is left whole."""
    whole = np.zeros(len(values_NP), bool)
    if len(values_NP) < 2 * SMALLEST or not np.ptp(values_NP, axis=0).any():
        return 0.0, whole
    try:
        second = halves(values_NP, rng)
    except ClusterError:  # all windows went to one half
        return 0.0, whole
    if min(second.sum(), (~second).sum()) < SMALLEST:
        return 0.0, whole
    return anderson_darling(along_halves(values_NP, second)), second
