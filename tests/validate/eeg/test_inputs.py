from __future__ import annotations

import numpy as np
import pytest

from stages.validate import expectations
from stages.validate.eeg import inputs

RNG = np.random.default_rng(0)
LABEL = np.repeat([0, 1, 2], 20)


def separation(*columns: np.ndarray, label: np.ndarray = LABEL, least: int = 10) -> list[float]:
    return inputs.separation(np.column_stack(columns).astype(float), label, least).tolist()


def test_a_trigger_is_certain_and_noise_is_chance() -> None:
    trigger, falling, noise = LABEL + 0.1 * RNG.random(60), -LABEL, RNG.normal(size=60)
    found = separation(trigger, falling, noise, np.full(60, 7.0))
    assert found[:2] == [1.0, 1.0]
    assert 0.5 <= found[2] < 0.75
    assert found[3] == 0.5, "a constant tells nothing"


def test_the_worst_pair_of_classes_counts() -> None:
    assert separation(np.where(LABEL == 2, 1.0, 0.0)) == [0.5]


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    """Values 1, 3 against 2, 4: three of four pairs are in order; a tie is half a pair."""
    two = np.array([0, 0, 1, 1])
    assert separation(np.array([1, 3, 2, 4]), label=two, least=1) == [0.75]
    assert separation(np.array([1, 2, 2, 3]), label=two, least=1) == [0.875]
    assert separation(np.array([4, 2, 3, 1]), label=two, least=1) == [0.75]


def test_few_trials_and_one_class_are_not_judged() -> None:
    assert np.isnan(separation(LABEL, least=21)).all()
    assert np.isnan(separation(LABEL, label=np.zeros(60, int))).all()
    gaps = np.where(np.arange(60) < 15, np.nan, LABEL)
    assert np.isnan(separation(gaps)).all()
    assert separation(np.where(np.arange(60) % 4 == 0, np.nan, LABEL)) == [1.0]


def test_the_input_is_named() -> None:
    table = inputs.table_of(["Fp1 delta", "validity gamma", "seconds"], np.array([0.71, 0.995, np.nan]))
    (result,) = expectations.judge(table, expectations.suite_of("c", [inputs.rule("c", 0.98)], table))
    assert (result.judged, result.not_judged) == (2, 1)
    assert [failure.reason for failure in result.failures] == [
        "validity gamma alone tells the classes of c apart (area under the ROC curve 0.995 for the worst pair; the "
        "gate reports above 0.98): a trigger or another channel that is no EEG?"
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_area_agrees_with_mann_and_whitney(seed: int) -> None:
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 9, 12), rng.integers(2, 11, 17)
    area = mannwhitneyu(a, b).statistic / (12 * 17)
    found = separation(np.concatenate([a, b]), label=np.repeat([0, 1], [12, 17]))
    np.testing.assert_allclose(found, max(area, 1 - area))
