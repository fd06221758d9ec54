"""Training all folds at once: what reaches it, what it costs, and what it comes down to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from stages.systems.mixemo.collaboration import reading
from stages.systems.mixemo.fitting import predict
from stages.systems.mixemo.model import Layout, front, initialise
from stages.systems.mixemo.settings import ABLATIONS, BASELINES, READINGS, TRANSDUCTIVE
from stages.systems.mixemo.windows import leave_one_out, standardised_by_subject
from tests.systems.mixemo.small import BACKBONE, MIXING, TRAINING, folds_of, population, train

INDUCTIVE = [*BASELINES, *READINGS, *ABLATIONS]
CONV = BACKBONE.model_copy(update={"kind": "conv"})


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("method", INDUCTIVE)
def test_nothing_of_the_held_out_subject_reaches_its_model(method: str) -> None:
    """Other labels and other windows of the held-out subject leave every weight and moment as it is, bit by bit."""
    windows = population()
    folds = [folds_of(windows)[0]]
    rng = np.random.default_rng(5)
    held_out = windows.subject_N == 0
    label_N, x_ND = windows.label_N.copy(), windows.x_ND.copy()
    label_N[held_out] = rng.permutation(label_N[held_out])
    x_ND[held_out] = 100 * rng.normal(size=x_ND[held_out].shape)
    assert not np.array_equal(label_N, windows.label_N)
    other = replace(windows, label_N=label_N, x_ND=x_ND)
    assert same(train(windows, folds, method).weights, train(other, folds, method).weights)


def test_the_transductive_baseline_sees_windows_of_the_held_out_subject_but_no_labels() -> None:
    windows = population()
    folds = [folds_of(windows)[0]]
    label_N = windows.label_N.copy()
    label_N[windows.subject_N == 0] = label_N[windows.subject_N == 0][::-1]
    (method,) = TRANSDUCTIVE
    assert same(train(windows, folds, method).weights, train(replace(windows, label_N=label_N), folds, method).weights)
    of_each = standardised_by_subject(windows)
    for place in range(5):
        mine = of_each.x_ND[windows.subject_N == place]
        np.testing.assert_allclose(mine.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(mine.std(axis=0), 1, atol=1e-4)


def test_one_subset_without_augmentation_is_erm_with_the_same_numbers() -> None:
    windows = population()
    folds = folds_of(windows)
    one = MIXING.model_copy(update={"subsets": 1})
    erm, mixemo = train(windows, folds, "erm"), train(windows, folds, "no_augmentation", mixing=one)
    assert same(erm.weights, mixemo.weights)
    assert erm.history == mixemo.history


@pytest.mark.parametrize("method", ["erm", "mixup", "coral", "mixemo", "mixemo_literal", "mixemo_heads"])
def test_a_fold_is_trained_alone_as_among_others(method: str) -> None:
    windows = population()
    folds = folds_of(windows)
    together, alone = train(windows, folds, method), train(windows, folds[2:3], method)
    for name, value in alone.weights.items():
        torch.testing.assert_close(together.weights[name][2:3], value, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("method", [*INDUCTIVE, *TRANSDUCTIVE])
@pytest.mark.parametrize("backbone", [BACKBONE, CONV], ids=["mlp", "conv"])
def test_every_method_keeps_to_the_budget_and_repeats_under_a_seed(method: str, backbone: object) -> None:
    windows = population(shape=(4, 5) if backbone is BACKBONE else (4, 32))
    folds = folds_of(windows)[:2]
    first, again = (train(windows, folds, method, backbone=backbone) for _ in range(2))  # type: ignore[arg-type]
    assert same(first.weights, again.weights)
    budget = TRAINING.steps * TRAINING.batch
    spent = max(row["samples"] for row in first.history)
    passes = len(folds[0].train) * (1 + TRAINING.steps // MIXING.refresh)
    assert budget - passes - TRAINING.batch < spent <= budget
    assert {row["fold"] for row in first.history if row["chosen"]} == {fold.held_out for fold in folds}
    assert all(row["step"] > TRAINING.warmup for row in first.history if row["chosen"])


def test_classes_that_differ_are_learnt_and_predicted_on_subjects_never_seen() -> None:
    windows = population(subjects=6)
    folds = folds_of(windows)
    layout = Layout(windows.shape, 3, BACKBONE)
    longer = TRAINING.model_copy(update={"steps": 120, "warmup": 40})
    for method in ("erm", "mixemo"):
        log_p = predict(train(windows, folds, method, training=longer).weights, layout, windows, folds)
        right = [np.mean(p.argmax(axis=1) == windows.label_N[fold.test]) for p, fold in zip(log_p, folds, strict=True)]
        assert np.mean(right) > 0.8
        np.testing.assert_allclose(np.exp(log_p[0]).sum(axis=1), 1, rtol=1e-5)


def test_windows_of_one_trial_and_of_one_subject_stay_in_one_part() -> None:
    windows = population()
    for fold in leave_one_out(windows, 2, np.random.default_rng(0)):
        parts = (fold.train, fold.validation, fold.test)
        assert sorted(np.concatenate(parts)) == list(range(len(windows.label_N)))
        for of in (windows.trial_N, windows.subject_N):
            sets = [set(of[part].tolist()) for part in parts]
            assert len(set.union(*sets)) == sum(map(len, sets))
        assert set(windows.subject_N[fold.validation].tolist()).isdisjoint(windows.subject_N[fold.test].tolist())


def test_filters_of_a_fold_see_the_windows_of_that_fold_only() -> None:
    layout = Layout((3, 40), 2, CONV)
    generators = [np.random.default_rng(fold) for fold in range(2)]
    weights = initialise(layout, generators, torch.device("cpu"))
    torch.manual_seed(0)
    x = torch.randn(2, 5, 3, 40)
    together = front(weights, layout, x)
    assert together.shape == (2, 5, layout.features)
    for fold in range(2):
        mine = {name: value[fold : fold + 1] for name, value in weights.items()}
        torch.testing.assert_close(front(mine, layout, x[fold : fold + 1]), together[fold : fold + 1])


def test_log_power_of_a_signal_ten_times_as_large_is_2_ln_10_higher() -> None:
    layout = Layout((3, 40), 2, CONV)
    weights = initialise(layout, [np.random.default_rng(0)], torch.device("cpu"))
    torch.manual_seed(0)
    x = 100 * torch.randn(1, 5, 3, 40)
    rise = front(weights, layout, 10 * x) - front(weights, layout, x)
    torch.testing.assert_close(rise, torch.full_like(rise, 2 * np.log(10.0)), atol=1e-3, rtol=0)


def test_every_name_of_a_reading_stands_for_one() -> None:
    for method in (*READINGS, *ABLATIONS):
        reading(method, MIXING)


def test_moved_windows_come_on_top_where_the_budget_counts_real_ones() -> None:
    """As many updates as with moved windows counted, each with twice the real windows: another model."""
    windows = population()
    folds = folds_of(windows)[:1]
    on_top = TRAINING.model_copy(update={"counted": "real"})
    counted, free = train(windows, folds, "mixemo"), train(windows, folds, "mixemo", training=on_top)
    assert [row["step"] for row in counted.history] == [row["step"] for row in free.history]
    assert [row["samples"] for row in counted.history] == [row["samples"] for row in free.history]
    assert not same(counted.weights, free.weights)
    assert same(train(windows, folds, "erm").weights, train(windows, folds, "erm", training=on_top).weights)
