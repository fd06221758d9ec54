"""Linear and additive processes with known links.

Links are {j: [((i, -lag), coefficient), ...]}, or with a function of the cause as third entry. A coefficient of 0 is no
link. The random numbers are drawn in the order that makes the series those of the peer, found from its output.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

Links = dict[int, list[tuple[Any, ...]]]


def _iter_coeffs(links: Links) -> Iterator[tuple[int, int, int, float]]:
    """Target, source, -lag and coefficient of each link."""
    for j, causes in links.items():
        for (i, tau), coefficient, *_ in causes:
            yield j, i, tau, coefficient


def _get_minmax_lag(links: Links) -> tuple[int, int]:
    """Smallest and largest lag of the links."""
    lags = [-tau for _, _, tau, coefficient in _iter_coeffs(links) if coefficient]
    return (min(lags), max(lags)) if lags else (0, 0)


def links_to_graph(links: Links, tau_max: int | None = None) -> np.ndarray:
    """Graph of the links: [i, j, lag] is ``-->`` where i causes j; at lag 0 [j, i] is ``<--``."""
    depth = _get_minmax_lag(links)[1] if tau_max is None else tau_max
    graph_NNL = np.full((len(links), len(links), depth + 1), "", dtype="<U3")
    for j, i, tau, coefficient in _iter_coeffs(links):
        if coefficient:
            graph_NNL[i, j, -tau] = "-->"
            if tau == 0:
                graph_NNL[j, i, 0] = "<--"
    return graph_NNL


def var_process(links: Links, T: int = 1000) -> tuple[np.ndarray, dict[int, list[tuple[int, int]]]]:
    """Vector autoregression with standard normal noise from numpy's global state, and its parents."""
    n, depth = len(links), _get_minmax_lag(links)[1]
    data_TN = np.random.randn(n, T).T.copy()  # noqa: NPY002 - the test files seed the global state
    noise_TN = np.random.randn(T, n)  # noqa: NPY002
    for t in range(depth + 1, T):
        data_TN[t] = noise_TN[t]
        for j, i, tau, coefficient in _iter_coeffs(links):
            data_TN[t, j] += coefficient * data_TN[t + tau, i]
    return data_TN, {j: [cause[0] for cause in causes] for j, causes in links.items()}


def structural_causal_process(
    links: Links, T: int, noises: None = None, seed: int | None = None
) -> tuple[np.ndarray, bool]:
    """Additive process with standard normal noise after a transient of T / 5, and whether it left all bounds."""
    if noises is not None:
        raise NotImplementedError("noises: None, standard normal")
    n, depth, transient = len(links), _get_minmax_lag(links)[1], T // 5
    data_TN = np.random.RandomState(seed).randn(n, T + transient).T.copy()
    same_time = {j: {i for (i, tau), c, _ in causes if tau == 0 and c} for j, causes in links.items()}
    order = list(TopologicalSorter(same_time).static_order())
    for t in range(depth, T + transient):
        for j in order:
            for (i, tau), coefficient, function in links[j]:
                data_TN[t, j] += coefficient * function(data_TN[t + tau, i])
    return data_TN[transient:], not bool(np.abs(data_TN).max() < 1e6)
