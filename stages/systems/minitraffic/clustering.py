"""Contrastive projection, clusters of series, and the nearest neighbours inside each cluster.

Shape suffixes: N pair of views, S series, D unit of a projection, C cluster, K neighbour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

#: Rounds of k-means; it stops earlier where no series moves.
ROUNDS = 50
#: Series whose similarities to their cluster are held at once.
CHUNK = 1024


class Graph(NamedTuple):
    """Neighbours of each series, most similar first.

    Attributes
    ----------
    neighbour_SK
        Places of the neighbours; the series itself where it has fewer than k.
    there_SK
        Whether there is such a neighbour.
    similarity_SK
        Cosine similarity of the projections, 0 where there is no neighbour.
    cluster_S
        Cluster of each series.
    """

    neighbour_SK: NDArray[np.int64]
    there_SK: NDArray[np.bool_]
    similarity_SK: NDArray[np.float32]
    cluster_S: NDArray[np.int64]


def info_nce(first_ND: Tensor, second_ND: Tensor, temperature: float) -> Tensor:
    """InfoNCE of two views: minus the mean log probability of a view's partner among all N (van den Oord et al. 2018).

    Where all similarities are equal it is log N.
    """
    first, second = functional.normalize(first_ND, dim=-1), functional.normalize(second_ND, dim=-1)
    logits_NN = first @ second.T / temperature
    return functional.cross_entropy(logits_NN, torch.arange(len(first), device=first.device))


def unit_length(x_SD: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows with length 1; a row of zeros stays."""
    length = np.linalg.norm(x_SD, axis=1, keepdims=True)
    return np.asarray(x_SD / np.where(length > 0, length, 1), dtype=np.float32)


def clusters(projection_SD: NDArray[np.float32], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Spherical k-means: the cluster of each series by cosine similarity to the clusters' mean directions.

    The first centre is drawn, each next one is the series least like all before; an empty cluster stays empty.
    """
    x_SD = unit_length(projection_SD)
    chosen = [int(rng.integers(len(x_SD)))]
    nearest_S = x_SD @ x_SD[chosen[0]]
    while len(chosen) < min(count, len(x_SD)):
        chosen.append(int(nearest_S.argmin()))
        nearest_S = np.maximum(nearest_S, x_SD @ x_SD[chosen[-1]])
    centre_CD = x_SD[chosen]
    cluster_S = np.full(len(x_SD), -1)
    for _ in range(ROUNDS):
        moved_S = (x_SD @ centre_CD.T).argmax(axis=1)
        if (moved_S == cluster_S).all():
            break
        cluster_S = moved_S
        for place in np.unique(cluster_S):
            centre_CD[place] = unit_length(x_SD[cluster_S == place].mean(axis=0, keepdims=True))[0]
    return cluster_S.astype(np.int64)


def nearest(
    projection_SD: NDArray[np.float32], cluster_S: NDArray[np.int64], neighbours: int, chunk: int = CHUNK
) -> Graph:
    """The k most similar other series of each series' own cluster.

    At most ``chunk`` rows of similarities are in memory; the edges are at most k times the number of series.
    """
    x_SD = unit_length(projection_SD)
    neighbour_SK = np.tile(np.arange(len(x_SD))[:, None], (1, neighbours))
    similarity_SK = np.zeros((len(x_SD), neighbours), np.float32)
    there_SK = np.zeros((len(x_SD), neighbours), bool)
    for place in np.unique(cluster_S):
        mine = np.flatnonzero(cluster_S == place)
        kept = min(neighbours, len(mine) - 1)
        if not kept:
            continue
        for begin in range(0, len(mine), chunk):
            rows = mine[begin : begin + chunk]
            similarity = x_SD[rows] @ x_SD[mine].T
            similarity[np.arange(len(rows)), begin + np.arange(len(rows))] = -np.inf  # no series is its own neighbour
            order = np.argsort(-similarity, axis=1, kind="stable")[:, :kept]
            neighbour_SK[rows, :kept] = mine[order]
            similarity_SK[rows, :kept] = np.take_along_axis(similarity, order, axis=1)
            there_SK[rows, :kept] = True
    return Graph(neighbour_SK, there_SK, similarity_SK, cluster_S)


def sparse_graph(projection_SD: NDArray[np.float32], count: int, neighbours: int, rng: np.random.Generator) -> Graph:
    """Clusters of projections, and the neighbours inside them."""
    return nearest(projection_SD, clusters(projection_SD, count, rng), neighbours)
