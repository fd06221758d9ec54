"""CKA: what it must not see, what it must, and that batches change nothing."""

from __future__ import annotations

import numpy as np
import pytest

from stages.metrics.similarity import LinearCKA, linear_cka


def features(seed: int, samples: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(samples, count)) + 3


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize(("samples", "count"), [(50, 7), (20, 60)])
def test_neither_rotation_nor_scaling_nor_shift_is_seen(samples: int, count: int, debiased: bool) -> None:
    x = features(0, samples, count)
    rotation, _ = np.linalg.qr(features(1, count, count))
    assert linear_cka(x, x, debiased=debiased) == pytest.approx(1, abs=1e-12)
    assert linear_cka(x, 5 * x @ rotation - 8, debiased=debiased) == pytest.approx(1, abs=1e-12)


def test_other_linear_maps_are_seen() -> None:
    x = features(0, 50, 7)
    assert linear_cka(x, x * np.array([1, 1, 1, 1, 1, 1, 100])) < 0.9


def test_orthogonal_features_have_none() -> None:
    """A balanced two by two design: what one factor says, the other says nothing of."""
    x, y = np.array([[1.0], [1], [-1], [-1]]), np.array([[1.0], [-1], [1], [-1]])
    assert linear_cka(x, y) == 0


def test_one_feature_each_gives_the_squared_correlation() -> None:
    x, y = features(0, 30, 1), features(1, 30, 1) + features(0, 30, 1)
    assert linear_cka(x, y) == pytest.approx(np.corrcoef(x[:, 0], y[:, 0])[0, 1] ** 2)


def test_by_hand() -> None:
    """Centred x = (-1, 0, 1), y = ((1, 1), (0, -2), (-1, 1)): |x'y|^2 = 4, |x'x| = 2, |y'y| = root of 4 + 36."""
    x, y = np.array([[1.0], [2], [3]]), np.array([[1.0, 1], [0, -2], [-1, 1]])
    assert linear_cka(x, y) == pytest.approx(4 / (2 * np.sqrt(40)))


def test_unrelated_features_are_similar_only_to_the_biased_form() -> None:
    """As many features as samples: the biased form tends to 1/2 or more, the debiased one to 0."""
    pairs = [(features(2 * seed, 40, 40), features(2 * seed + 1, 40, 40)) for seed in range(20)]
    assert min(linear_cka(x, y) for x, y in pairs) > 0.4
    assert np.mean([linear_cka(x, y, debiased=True) for x, y in pairs]) == pytest.approx(0, abs=0.02)


def test_the_debiased_form_is_that_of_the_kernel_matrices() -> None:
    """Song et al. 2012, written out with the (sample, sample) kernels and their diagonals set to 0."""
    x = features(0, 12, 3)
    y = np.tanh((x - 3) @ features(1, 3, 5))

    def hsic(a: np.ndarray, b: np.ndarray) -> float:
        n = len(a)
        k, el = a @ a.T, b @ b.T
        np.fill_diagonal(k, 0)
        np.fill_diagonal(el, 0)
        total = np.trace(k @ el) + k.sum() * el.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ el).sum()
        return float(total / (n * (n - 3)))

    assert linear_cka(x, y, debiased=True) == pytest.approx(hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y)))


@pytest.mark.parametrize("debiased", [False, True])
def test_batches_give_what_the_whole_gives_also_far_from_0(debiased: bool) -> None:
    x = {"embedding": features(0, 61, 4) + 1e6, "last": features(1, 61, 3).astype(np.float32)}
    y = {"only": np.tanh(features(0, 61, 4))}
    cka = LinearCKA()
    for cut in (slice(0, 1), slice(1, 40), slice(40, 61)):
        cka.update({name: v[cut] for name, v in x.items()}, {name: v[cut] for name, v in y.items()})
    whole = [[linear_cka(x[name], y["only"], debiased=debiased)] for name in x]
    assert cka.samples == 61
    np.testing.assert_allclose(cka.matrix(debiased=debiased), whole, rtol=1e-8)


def test_features_that_do_not_vary_have_no_similarity() -> None:
    constant = np.full((9, 3), 0.1)
    cka = LinearCKA()
    for cut in (slice(0, 4), slice(4, 9)):
        cka.update({"a": constant[cut]}, {"a": features(0, 9, 2)[cut]})
    for debiased in (False, True):
        assert np.isnan(linear_cka(constant, features(0, 9, 2), debiased=debiased))
        assert np.isnan(cka.matrix(debiased=debiased)).all()


@pytest.mark.parametrize(
    ("x", "y", "debiased", "words"),
    [
        (np.ones(4), np.ones((4, 1)), False, r"x has shape \(4,\); expected \(sample, feature\)"),
        (
            np.ones((4, 0)),
            np.ones((4, 1)),
            False,
            r"x has shape \(4, 0\); expected \(sample, feature\), none of them 0",
        ),
        (np.ones((4, 1)), np.ones((5, 1)), False, "x has 4 samples and y 5; expected the same samples in both"),
        (np.ones((4, 1)), np.full((4, 1), np.nan), False, "y holds numbers that are not finite"),
        (np.ones((1, 1)), np.ones((1, 1)), False, "1 samples; expected at least 2"),
        (np.ones((3, 1)), np.ones((3, 1)), True, "3 samples; expected at least 4"),
    ],
)
def test_broken_features_are_refused(x: np.ndarray, y: np.ndarray, debiased: bool, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        linear_cka(x, y, debiased=debiased)


def test_batches_have_the_layers_and_features_of_the_first() -> None:
    cka = LinearCKA()
    cka.update({"a": np.ones((3, 2))}, {"b": np.ones((3, 2))})
    with pytest.raises(
        ValueError, match=r"features by layer \{'a': 4\}; expected those of the first batch, \{'a': 2\}"
    ):
        cka.update({"a": np.ones((3, 4))}, {"b": np.ones((3, 2))})
    with pytest.raises(ValueError, match=r"layers of one batch have \[3, 5\] samples"):
        cka.update({"a": np.ones((3, 2))}, {"b": np.ones((5, 2))})
    with pytest.raises(ValueError, match="0 samples; expected at least 2"):
        LinearCKA().matrix()
