"""Simulated systems with a context that they themselves influence, and whose graph in each context is known.

X^j_t = sum over i, lag of a_r[i, j, lag] X^i_{t-lag} + noise of sd 1. The context R_t is that of the step before with
probability ``persistence``; otherwise it is 1 where the weighted sum of its drivers is above 0, else 0. A link that
changes with the context follows R_{t-s}, with a lag s of its own (0 or 1).

Shape suffixes: T time, N variable, L lag 0 to the largest, M level of the context; [i, j, lag] is the link from i, lag
steps before, to j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]

BURN_IN = 200
LEVELS = (0, 1)


@dataclass(frozen=True)
class ContextModel:
    """A linear system with an endogenous context of two levels.

    Attributes
    ----------
    names
        Names of the N variables; the context itself is none of them.
    coefficient_MNNL
        Coefficients in each level; contemporaneous ones have no cycle, whatever the levels.
    switch_NN
        Lag at which the context switches the links from i to j, -1 where it switches none.
    drive_NL
        Weights of the variables, lag steps before, in the sum that decides the context.
    persistence
        Probability that the context stays as it is whatever the drivers say, 0 to 1.
    """

    names: tuple[str, ...]
    coefficient_MNNL: Floats
    switch_NN: Integers
    drive_NL: Floats
    persistence: float

    @property
    def graphs(self) -> Booleans:
        """The graph of each level; contemporaneous links point from i to j."""
        return np.asarray(self.coefficient_MNNL != 0.0)

    @property
    def tau_max(self) -> int:
        """Largest lag."""
        return int(self.coefficient_MNNL.shape[3]) - 1

    def full_graphs(self) -> Booleans:
        """The graph of each level with the context as last variable, its own past among its parents if it has any."""
        m, n, _, lags = self.coefficient_MNNL.shape
        graph_MNNL = np.zeros((m, n + 1, n + 1, lags), np.bool_)
        graph_MNNL[:, :n, :n] = self.graphs
        graph_MNNL[:, :n, n] = self.drive_NL != 0.0
        graph_MNNL[:, n, n, 1] = self.persistence > 0.0
        for i, j in np.argwhere(self.switch_NN >= 0):
            graph_MNNL[:, n, j, self.switch_NN[i, j]] = True
        return graph_MNNL

    def simulate(self, rng: np.random.Generator, steps: int) -> tuple[Floats, Integers]:
        """Draw a series.

        Parameters
        ----------
        rng
            Source of randomness.
        steps
            Length of the series.

        Returns
        -------
        tuple
            data_TN and context_T, after a burn-in.
        """
        _, n, _, lags = self.coefficient_MNNL.shape
        total = steps + BURN_IN
        data_TN = rng.standard_normal((total, n))
        stays_T = rng.random(total) < self.persistence
        context_T = np.zeros(total, np.int64)
        context_T[:lags] = rng.integers(0, 2, lags)
        order = self._order()
        by_level = [np.ascontiguousarray(a_NNL.transpose(1, 2, 0)) for a_NNL in self.coefficient_MNNL]  # [j, lag, i]
        switched = [np.flatnonzero(self.switch_NN[:, j] >= 0).tolist() for j in range(n)]
        drive_LN = np.ascontiguousarray(self.drive_NL.T)
        for t in range(lags, total):
            past_LN = data_TN[t - lags + 1 : t + 1][::-1]  # lag 0 first; what is not computed yet has no coefficient
            for j in order:
                if j == n:
                    driven = int((drive_LN * past_LN).sum() > 0.0)
                    context_T[t] = context_T[t - 1] if stays_T[t] else driven
                    continue
                data_TN[t, j] += (by_level[0][j] * past_LN).sum()
                for i in switched[j]:
                    if context_T[t - self.switch_NN[i, j]] == 1:
                        data_TN[t, j] += ((by_level[1][j] - by_level[0][j])[:, i] * past_LN[:, i]).sum()
        return data_TN[BURN_IN:].copy(), context_T[BURN_IN:].copy()

    def _order(self) -> list[int]:
        """Variables, the context as N, each after its contemporaneous causes in any level."""
        left = set(range(len(self.names) + 1))
        graph_NN = np.asarray(self.full_graphs().any(axis=0))[:, :, 0]
        order: list[int] = []
        while left:
            ready = [j for j in sorted(left) if not any(graph_NN[i, j] for i in left)]
            if not ready:
                raise ValueError("the contemporaneous links, those of the context included, have a cycle")
            order += ready
            left.difference_update(ready)
        return order

    def is_stationary(self, most: float = 0.95) -> bool:
        """Whether the system of each level, left alone, has a spectral radius up to ``most``."""
        return all(_spectral_radius(a_NNL) <= most for a_NNL in self.coefficient_MNNL)


def _spectral_radius(coefficient_NNL: Floats) -> float:
    n, _, lags = coefficient_NNL.shape
    now_NN = np.linalg.inv(np.eye(n) - coefficient_NNL[:, :, 0].T)
    companion = np.zeros((n * (lags - 1), n * (lags - 1)))
    for lag in range(1, lags):
        companion[:n, (lag - 1) * n : lag * n] = now_NN @ coefficient_NNL[:, :, lag].T
    companion[n:, : n * (lags - 2)] = np.eye(n * (lags - 2))
    return float(np.abs(np.linalg.eigvals(companion)).max())


def collider_example(
    persistence: float, *, coefficient: float = 0.5, autocorrelation: float = 0.3, switch_lag: int = 0
) -> ContextModel:
    """X_t -> R_t <- Y_t, and Z_{t-1} -> W_t where R is 1: masking by R joins X and Y, pooling blurs Z -> W.

    Parameters
    ----------
    persistence
        Probability that the context stays.
    coefficient, autocorrelation
        Of Z -> W, and of each variable with its own past.
    switch_lag
        Lag at which the context switches Z -> W.

    Returns
    -------
    ContextModel
        Variables X, Y, Z, W; lags up to 2.
    """
    names = ("X", "Y", "Z", "W")
    coefficient_MNNL = np.zeros((2, 4, 4, 3))
    coefficient_MNNL[:, range(4), range(4), 1] = autocorrelation
    coefficient_MNNL[1, 2, 3, 1] = coefficient
    switch_NN = np.full((4, 4), -1)
    switch_NN[2, 3] = switch_lag
    drive_NL = np.zeros((4, 3))
    drive_NL[:2, 0] = 1.0
    return ContextModel(names, coefficient_MNNL, switch_NN, drive_NL, persistence)


def proxy_example(
    rng: np.random.Generator, steps: int, *, memory: float, coefficient: float = 0.5, autocorrelation: float = 0.3
) -> tuple[Floats, Integers]:
    """As the collider example, but the context says whether a continuous C is above its median.

    C_t = memory C_{t-1} + X_t + Y_t + noise of sd 0.5; Z_{t-1} -> W_t where C_t is above it.

    Returns
    -------
    tuple
        data_TN of X, Y, Z, W, C, and context_T.
    """
    total = steps + BURN_IN
    noise_TN = rng.standard_normal((total, 4))
    proxy_T = 0.5 * rng.standard_normal(total)
    for t in range(1, total):
        noise_TN[t, :3] += autocorrelation * noise_TN[t - 1, :3]
        proxy_T[t] += memory * proxy_T[t - 1] + noise_TN[t, 0] + noise_TN[t, 1]
        noise_TN[t, 3] += autocorrelation * noise_TN[t - 1, 3] + coefficient * (proxy_T[t] > 0.0) * noise_TN[t - 1, 2]
    data_TN = np.column_stack([noise_TN, proxy_T])[BURN_IN:]
    return data_TN, (data_TN[:, 4] > 0.0).astype(np.int64)


def random_context_model(
    rng: np.random.Generator,
    *,
    variables: int,
    persistence: float,
    density: float = 0.4,
    changed: int = 2,
    tau_max: int = 2,
    contemporaneous: float = 0.3,
    coefficient: tuple[float, float] = (0.3, 0.6),
    autocorrelation: tuple[float, float] = (0.2, 0.6),
    flips: bool = False,
    attempts: int = 1000,
) -> ContextModel:
    """Draw a system: links at random, some of them switched by a context that two of the variables drive.

    Parameters
    ----------
    rng
        Source of randomness.
    variables
        Number N of variables, at least 3.
    persistence
        Probability that the context stays.
    density
        Share of the ordered pairs that are linked.
    changed
        How many links the context switches off in one of its levels.
    tau_max
        Largest lag.
    contemporaneous
        Share of the links at lag 0; those follow one order of the variables, so that they have no cycle.
    coefficient, autocorrelation
        Ranges of the size of a link (either sign), and of the effect of a variable's own past.
    flips
        The changed links change their sign instead.
    attempts
        How many systems may be drawn until one is stationary.

    Returns
    -------
    ContextModel
        The system.

    Raises
    ------
    ValueError
        None of the systems was stationary.
    """
    names = tuple(f"X{j}" for j in range(variables))
    for _ in range(attempts):
        order = rng.permutation(variables)
        rank = np.argsort(order)
        a_NNL = np.zeros((variables, variables, tau_max + 1))
        for i, j in np.argwhere(rng.random((variables, variables)) < density):
            if i != j and not a_NNL[j, i, 0]:
                at_once = rng.random() < contemporaneous and rank[i] < rank[j]
                lag = 0 if at_once else int(rng.integers(1, tau_max + 1))
                a_NNL[i, j, lag] = rng.uniform(*coefficient) * rng.choice([-1.0, 1.0])
        links = np.argwhere(a_NNL != 0.0)
        own = np.arange(variables)
        a_NNL[own, own, 1] = rng.uniform(*autocorrelation, size=variables)
        if len(links) < changed:
            continue
        coefficient_MNNL = np.stack([a_NNL, a_NNL])
        switch_NN = np.full((variables, variables), -1)
        for i, j, lag in rng.permutation(links)[:changed]:
            level = rng.integers(0, 2)
            coefficient_MNNL[level, i, j, lag] *= -1.0 if flips else 0.0
            switch_NN[i, j] = rng.integers(0, 2)
        drive_NL = np.zeros((variables, tau_max + 1))
        for i in rng.permutation(variables)[:2]:
            drive_NL[i, rng.integers(0, 2)] = rng.choice([-1.0, 1.0])
        model = ContextModel(names, coefficient_MNNL, switch_NN, drive_NL, persistence)
        if model.is_stationary() and _has_order(model):
            return model
    raise ValueError(f"none of {attempts} random systems is stationary: use a smaller density ({density}) or links")


def _has_order(model: ContextModel) -> bool:
    try:
        model._order()
    except ValueError:
        return False
    return True
