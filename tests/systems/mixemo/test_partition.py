"""Components and clusters of all folds at once, and tests of one distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import anderson

from stages.systems.mixemo import one_distribution, partition

FOLDS = 3


def generators(seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, fold]) for fold in range(FOLDS)]


def clusters() -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Three distant clusters in each fold; the last fold has fewer windows, its gaps hold nonsense."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, (FOLDS, 90))
    centres = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])
    values = centres[truth] + rng.normal(size=(FOLDS, 90, 2))
    filled = np.ones((FOLDS, 90), bool)
    filled[2, 60:] = False
    values[2, 60:] = 1e4
    return torch.from_numpy(values).float(), torch.from_numpy(filled), truth


def test_k_means_finds_distant_clusters_in_every_fold_and_ignores_gaps() -> None:
    values, filled, truth = clusters()
    found = partition.k_means(values, filled, 3, 4, generators()).numpy()
    for fold in range(FOLDS):
        mine = filled[fold].numpy()
        pairs = set(zip(truth[fold][mine].tolist(), found[fold][mine].tolist(), strict=True))
        assert len(pairs) == 3


def test_a_fold_is_clustered_alone_as_among_others() -> None:
    values, filled, _ = clusters()
    together = partition.k_means(values, filled, 3, 2, generators())
    alone = partition.k_means(values[1:2], filled[1:2], 3, 2, generators()[1:2])
    assert torch.equal(together[1], alone[0])


def test_components_are_those_of_a_singular_value_decomposition() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(FOLDS, 50, 6)) * np.array([5, 4, 3, 2, 1, 0.5])
    filled = torch.ones(FOLDS, 50, dtype=torch.bool)
    filled[0, 40:] = False
    found = partition.principal_components(torch.from_numpy(values).float(), filled, 3).numpy()
    for fold in range(FOLDS):
        mine = values[fold][filled[fold].numpy()]
        left, size, _ = np.linalg.svd(mine - mine.mean(axis=0), full_matrices=False)
        np.testing.assert_allclose(np.abs(found[fold][: len(mine)]), np.abs(left * size)[:, :3], atol=1e-3)
    np.testing.assert_array_equal(found[0, 40:], 0)


def test_class_centred_windows_have_mean_0_in_every_class() -> None:
    torch.manual_seed(0)
    label = partition.one_hot(torch.arange(60).reshape(1, 60) % 3, 3, torch.ones(1, 60, dtype=torch.bool))
    centred = partition.class_centred(torch.randn(1, 60, 4) + 10 * label @ torch.randn(3, 4), label)
    torch.testing.assert_close(partition.group_means(centred, label), torch.zeros(1, 3, 4), atol=1e-5, rtol=0)


def test_shuffled_subsets_keep_their_sizes() -> None:
    subset = torch.tensor([[0] * 10 + [1] * 20 + [2] * 5] * FOLDS)
    filled = torch.ones(FOLDS, 35, dtype=torch.bool)
    mixed = partition.shuffled(subset, filled, generators())
    assert not torch.equal(mixed, subset)
    for fold in range(FOLDS):
        assert torch.bincount(mixed[fold]).tolist() == [10, 20, 5]


def test_the_anderson_darling_statistic_is_that_of_scipy_with_stephens_correction() -> None:
    values = np.random.default_rng(0).gamma(2, size=200)
    with pytest.warns(FutureWarning):
        peer = anderson(values, "norm").statistic
    assert one_distribution.anderson_darling(values) == pytest.approx(peer * (1 + 4 / 200 - 25 / 200**2), rel=1e-9)


def test_at_its_critical_value_single_gaussians_stay_whole_and_at_the_nominal_one_many_do_not() -> None:
    """The halves choose the line on which normality looks worst: 0.752, the 5 % point for a given line, is too low."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(40):
        values = rng.normal(size=(1200, 10))
        found.append(one_distribution.anderson_darling(
            one_distribution.along_halves(values, one_distribution.halves(values, rng))
        ))  # fmt: skip
    assert np.sum(np.array(found) > one_distribution.CRITICAL) == 0
    assert np.mean(np.array(found) > 0.752) > 0.25


def test_two_gaussians_far_apart_are_split_into_them() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=(100, 3)), rng.normal([12, 0, 0], size=(100, 3))])
    subset = one_distribution.split_until_normal(values, 8, rng)
    assert set(subset[:100].tolist()).isdisjoint(subset[100:].tolist())
    assert subset.max() == 1


def test_the_energy_test_is_no_test_of_the_halves_of_one_cluster() -> None:
    """It accepts two samples of one Gaussian, and rejects its 2-means halves nearly always: why it does not split."""
    rng = np.random.default_rng(0)
    apart, halved = [], []
    for _ in range(20):
        values = rng.normal(size=(80, 4))
        second = one_distribution.halves(values, rng)
        halved.append(one_distribution.energy_test(values[~second], values[second], 99, rng))
        apart.append(one_distribution.energy_test(values[:40], values[40:], 99, rng))
    assert np.mean(np.array(halved) <= 0.05) >= 0.95
    assert np.mean(np.array(apart) <= 0.05) <= 0.2
