"""The contrast at its limit, and a graph that is sparse, inside clusters, and without self-loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stages.systems.minitraffic.clustering import Graph, clusters, info_nce, nearest, sparse_graph


def groups(series: int = 40, seed: int = 0) -> np.ndarray:
    """Directions around four axes, ten series each."""
    rng = np.random.default_rng(seed)
    return (np.eye(16)[np.arange(series) % 4] + 0.05 * rng.normal(size=(series, 16))).astype(np.float32)


@pytest.mark.parametrize("count", [2, 8, 40])
def test_at_uniform_similarity_the_contrast_is_log_n(count: int) -> None:
    same = torch.ones(count, 16)
    assert info_nce(same, 3 * same, 0.1).item() == pytest.approx(math.log(count), rel=1e-6)


def test_views_that_agree_and_differ_from_all_others_have_no_contrast_left() -> None:
    axes = torch.eye(16)
    assert info_nce(axes, axes, 0.01).item() < 1e-6
    assert info_nce(axes, axes.roll(1, dims=0), 0.1).item() > 9


def test_clusters_are_the_directions_whatever_the_draw() -> None:
    for seed in range(5):
        found = clusters(groups(), 4, np.random.default_rng(seed))
        assert [len(set(found[place::4])) for place in range(4)] == [1, 1, 1, 1]
        assert len(set(found)) == 4


def edges(graph: Graph) -> list[tuple[int, int]]:
    return [
        (place, int(neighbour))
        for place, row in enumerate(graph.neighbour_SK)
        for neighbour, there in zip(row, graph.there_SK[place], strict=True)
        if there
    ]


@given(
    series=st.integers(1, 30),
    count=st.integers(1, 5),
    neighbours=st.integers(1, 6),
    chunk=st.sampled_from([1, 7, 1024]),
    seed=st.integers(0, 20),
)
def test_at_most_kn_edges_none_across_clusters_no_self_loop(
    series: int, count: int, neighbours: int, chunk: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    projection = rng.normal(size=(series, 16)).astype(np.float32)
    graph = nearest(projection, clusters(projection, count, rng), neighbours, chunk)
    found = edges(graph)
    assert len(found) <= neighbours * series
    assert len(set(found)) == len(found)
    assert all(graph.cluster_S[here] == graph.cluster_S[there] and here != there for here, there in found)
    size = np.bincount(graph.cluster_S)[graph.cluster_S]
    assert graph.there_SK.sum(axis=1).tolist() == np.minimum(size - 1, neighbours).tolist()


def test_the_neighbours_are_the_most_similar_ones_in_any_chunk() -> None:
    projection = np.random.default_rng(1).normal(size=(50, 16)).astype(np.float32)
    unit = projection / np.linalg.norm(projection, axis=1, keepdims=True)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -2)
    whole = nearest(projection, np.zeros(50, np.int64), 5)
    assert (whole.neighbour_SK == np.argsort(-similarity, axis=1)[:, :5]).all()
    assert (nearest(projection, np.zeros(50, np.int64), 5, chunk=3).neighbour_SK == whole.neighbour_SK).all()


def test_series_alike_and_series_of_zeros_make_a_graph() -> None:
    for projection in (np.ones((6, 16), np.float32), np.zeros((6, 16), np.float32)):
        graph = sparse_graph(projection, 4, 2, np.random.default_rng(0))
        assert all(here != there for here, there in edges(graph))


def test_a_lone_series_has_no_neighbour() -> None:
    graph = sparse_graph(np.ones((1, 16), np.float32), 4, 5, np.random.default_rng(0))
    assert edges(graph) == []
    assert graph.neighbour_SK.tolist() == [[0] * 5]
