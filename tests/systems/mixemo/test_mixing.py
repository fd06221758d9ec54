"""Prototypes, mixtures of them, and the move."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stages.systems.mixemo.mixing import Prototypes, extrapolated, mixture_weights, move, prototypes

FOLDS, WINDOWS, DIMENSIONS, SUBSETS, CLASSES = 2, 240, 5, 4, 3


def windows(*, centred: bool) -> tuple[Tensor, Tensor, Tensor, Prototypes]:
    """Double-precision windows whose mean and spread depend on subset and class, and their prototypes."""
    torch.manual_seed(0)
    subset = functional.one_hot(torch.randint(SUBSETS, (FOLDS, WINDOWS)), SUBSETS).double()
    label = functional.one_hot(torch.randint(CLASSES, (FOLDS, WINDOWS)), CLASSES).double()
    shift = torch.bmm(subset, 3 * torch.randn(FOLDS, SUBSETS, DIMENSIONS).double())
    shift = shift + torch.bmm(label, torch.randn(FOLDS, CLASSES, DIMENSIONS).double())
    scale = torch.bmm(subset, torch.rand(FOLDS, SUBSETS, DIMENSIONS).double() + 0.5)
    value = shift + scale * torch.randn(FOLDS, WINDOWS, DIMENSIONS).double()
    return value, label, subset, prototypes(value, label, subset, centred=centred)


@pytest.mark.parametrize("centred", [False, True])
def test_a_moved_subset_has_the_mean_and_the_standard_deviation_of_the_mixture(centred: bool) -> None:
    value, label, subset, found = windows(centred=centred)
    weights = torch.tensor([0.2, 0.0, 0.5, 0.3]).double().expand(FOLDS, WINDOWS, SUBSETS)
    moved = move(value, label, subset, weights, found, None)
    rest = moved - torch.bmm(label, found.centre_FYD)
    for fold in range(FOLDS):
        target_mean, target_std = (weights[fold, 0] @ of[fold] for of in (found.mean_FKD, found.std_FKD))
        for k in range(SUBSETS):
            mine = rest[fold][subset[fold, :, k] > 0]
            torch.testing.assert_close(mine.mean(dim=0), target_mean, atol=1e-6, rtol=0)
            torch.testing.assert_close(mine.std(dim=0, correction=0), target_std, atol=1e-6, rtol=0)


@pytest.mark.parametrize("centred", [False, True])
def test_weight_1_on_its_own_prototype_leaves_a_window_where_it_is(centred: bool) -> None:
    value, label, subset, found = windows(centred=centred)
    torch.testing.assert_close(move(value, label, subset, subset, found, (0.33, 3.0)), value, atol=1e-12, rtol=0)


def test_the_ratio_of_standard_deviations_stays_within_its_bounds() -> None:
    value, label, subset, found = windows(centred=False)
    wide = Prototypes(found.centre_FYD, found.mean_FKD * 0, found.std_FKD.clone(), found.alive_FK)
    wide.std_FKD[:, 0] = 1000.0
    to_first = functional.one_hot(torch.zeros(FOLDS, WINDOWS, dtype=torch.long), SUBSETS).double()
    moved = move(value, label, subset, to_first, wide, (0.33, 3.0))
    others = subset[..., 0] == 0
    torch.testing.assert_close(moved[others], 3.0 * value[others])


def test_mixture_weights_are_positive_on_two_or_three_subsets_and_sum_to_1() -> None:
    torch.manual_seed(1)
    shape = (3, 500, 6)
    alive = torch.ones(shape, dtype=torch.bool)
    alive[0, :, 4:] = False
    weights = mixture_weights(torch.rand(shape), torch.rand(shape[:2]), alive, [2, 3], torch.rand(shape) + 0.01)
    torch.testing.assert_close(weights.sum(dim=2), torch.ones(shape[:2]))
    taken = (weights > 0).sum(dim=2)
    assert set(taken.unique().tolist()) == {2, 3}
    assert 0.4 < (taken == 2).float().mean() < 0.6
    assert (weights[0, :, 4:] == 0).all()


def test_a_single_allowed_subset_takes_all_the_weight() -> None:
    allowed = torch.zeros(1, 4, 3, dtype=torch.bool)
    allowed[..., 1] = True
    weights = mixture_weights(torch.rand(1, 4, 3), torch.rand(1, 4), allowed, [2, 3], torch.rand(1, 4, 3))
    assert weights.tolist() == [[[0.0, 1.0, 0.0]] * 4]


def test_extrapolated_weights_still_sum_to_1_and_take_no_new_prototype() -> None:
    weights = torch.tensor([[[0.8, 0.2, 0.0]]])
    torch.testing.assert_close(extrapolated(weights, 1.0), torch.tensor([[[1.1, -0.1, 0.0]]]))
    torch.testing.assert_close(extrapolated(weights, 0.0), weights)


def test_the_prototype_of_a_subset_is_its_mean_and_its_standard_deviation() -> None:
    value = torch.tensor([[[0.0], [2.0], [10.0], [14.0]]])
    subset = functional.one_hot(torch.tensor([[0, 0, 1, 1]]), 3).float()
    found = prototypes(value, torch.ones(1, 4, 1), subset, centred=False)
    torch.testing.assert_close(found.mean_FKD[0, :, 0], torch.tensor([1.0, 12.0, 0.0]))
    torch.testing.assert_close(found.std_FKD[0, :2, 0], torch.tensor([1.0, 2.0]))
    assert found.alive_FK.tolist() == [[True, True, False]]


def test_subsets_are_looked_at_after_the_mean_of_the_class_is_gone() -> None:
    value, label, subset, found = windows(centred=True)
    torch.testing.assert_close((value - torch.bmm(label, found.centre_FYD)).mean(dim=1), torch.zeros(2, 5).double())
    same = prototypes(value + torch.bmm(label, torch.tensor([[[5.0], [-3.0], [1.0]]] * 2).double()), label, subset,
                      centred=True)  # fmt: skip
    torch.testing.assert_close(same.mean_FKD, found.mean_FKD)
