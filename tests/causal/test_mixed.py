"""A mixed test is a partial correlation where it can be one, and keeps its level where it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, f_oneway

from stages.causal.errors import CausalDataError, ConstantVariable, TooFewSamples
from stages.causal.mixed import mixed_test, rao_p
from stages.causal.partial_correlation import partial_correlation
from stages.causal.samples import lagged_sample

Cell = tuple[int, int]


def regimes(rng: np.random.Generator, steps: int, stay: float, levels: int = 2) -> np.ndarray:
    """A Markov chain that keeps its level with a probability, else draws one."""
    level_T = rng.integers(0, levels, steps)
    for t in range(1, steps):
        if rng.random() < stay:
            level_T[t] = level_T[t - 1]
    return level_T


def driven(seed: int, steps: int = 300) -> np.ndarray:
    """Three linked continuous variables, and a fourth of two levels, 1 while the first is large."""
    rng = np.random.default_rng(seed)
    data_TN = rng.standard_normal((steps, 4))
    for t in range(1, steps):
        data_TN[t, :3] += 0.5 * data_TN[t - 1, :3]
        data_TN[t, 1:3] += 0.3 * data_TN[t - 1, :2]
    data_TN[:, 3] = data_TN[:, 0] + data_TN[:, 3] > 0.5
    return data_TN


QUESTIONS: list[tuple[Cell, Cell, list[Cell]]] = [
    ((0, 1), (1, 0), []),
    ((0, 0), (3, 0), [(3, 1), (0, 1)]),
    ((3, 1), (2, 0), [(2, 1), (1, 1), (3, 3)]),
    ((0, 2), (2, 0), [(3, 0), (2, 1), (1, 4)]),
]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("robust", "test"), [(False, "parcorr"), (True, "robust_parcorr")])
@pytest.mark.parametrize(("x", "y", "given"), QUESTIONS)
def test_two_levels_are_a_partial_correlation(
    x: Cell, y: Cell, given: list[Cell], robust: bool, test: Any, gaps: bool
) -> None:
    data_TN = driven(0) * [1.0, 1e4, 1e-5, 1.0] + [3.0, 1e6, 0.0, 0.0]
    if gaps:
        data_TN[np.random.default_rng(1).random(data_TN.shape) < 0.03] = np.nan
    mask_T = np.arange(300) % 7 == 0
    ours = mixed_test(data_TN, discrete=[3], tau_max=2, mask_T=mask_T, robust=robust).measure(x, y, given)
    other = partial_correlation(lagged_sample(data_TN, tau_max=2, mask_T=mask_T, test=test), x, y, given)
    assert (ours.samples, ours.df) == (other.samples, other.df)
    assert ours.value == pytest.approx(other.value, abs=1e-12)
    assert ours.p == pytest.approx(other.p, rel=1e-9)


def test_levels_without_conditions_are_an_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    level_T = rng.integers(0, 4, 200)
    x_T = rng.standard_normal(200) + 0.2 * level_T
    expected = f_oneway(*(x_T[level_T == k] for k in range(4))).pvalue
    for columns, x, y in (([x_T, level_T], (0, 0), (1, 0)), ([level_T, x_T], (0, 0), (1, 0))):
        discrete = [columns.index(level_T) if columns[0] is level_T else 1]
        result = mixed_test(np.column_stack(columns), discrete=discrete, tau_max=0).measure(x, y)
        assert result.p == pytest.approx(expected, rel=1e-10)
    within = sum(((x_T[level_T == k] - x_T[level_T == k].mean()) ** 2).sum() for k in range(4))
    assert result.value == pytest.approx(np.sqrt(1.0 - within / ((x_T - x_T.mean()) ** 2).sum()), abs=1e-12)


def test_which_number_stands_for_which_level_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    data_TN = np.column_stack([regimes(rng, 200, 0.5, 3), regimes(rng, 200, 0.5, 3), rng.standard_normal(200)])
    test = mixed_test(data_TN, discrete=[0, 1], tau_max=1, slopes=True)
    renamed_TN = data_TN.copy()
    renamed_TN[:, 0] = np.array([2, 0, 1])[data_TN[:, 0].astype(int)]
    other = mixed_test(renamed_TN, discrete=[0, 1], tau_max=1, slopes=True)
    for x, y, given in (((0, 1), (1, 0), []), ((2, 0), (0, 0), [(0, 1), (2, 1)]), ((2, 1), (2, 0), [(0, 0), (1, 0)])):
        assert test.measure(x, y, given).p == pytest.approx(other.measure(x, y, given).p, rel=1e-9)
        assert test.measure(y, x, given).p == pytest.approx(test.measure(x, y, given).p, rel=1e-9)


def test_raos_approximation_is_exact_for_two_columns() -> None:
    """Rao's F on (2p, 2(error_df - 1)): ((1 - sqrt(lambda)) / sqrt(lambda)) (error_df - 1) / p (Anderson 2003, 8.4)."""
    from scipy.stats import f

    root, left, error_df = 0.9, 3, 40
    expected = f.sf((1 - root) / root * (error_df - 1) / left, 2 * left, 2 * (error_df - 1))
    assert rao_p(2 * np.log(root), left, 2, error_df) == pytest.approx(expected, rel=1e-12)


def slope_switch(seed: int, steps: int = 400, stay: float = 0.8, lag: int = 0) -> np.ndarray:
    """Y = +-0.6 Z by the level of R, which nothing drives."""
    rng = np.random.default_rng(seed)
    level_T, z_T = regimes(rng, steps, stay), rng.standard_normal(steps)
    y_T = rng.standard_normal(steps) + np.where(np.roll(level_T, lag) == 1, 0.6, -0.6) * z_T
    return np.column_stack([z_T, y_T, level_T])


def test_a_slope_that_switches_is_seen_by_the_chow_test_only() -> None:
    plain, slopes = 0, 0
    for seed in range(40):
        data_TN = slope_switch(seed)
        question = ((2, 0), (1, 0), [(0, 0)])
        plain += mixed_test(data_TN, discrete=[2], tau_max=1).measure(*question).p <= 0.05
        slopes += mixed_test(data_TN, discrete=[2], tau_max=1, slopes=True).measure(*question).p <= 0.05
    assert slopes == 40
    assert plain <= binom.ppf(0.999, 40, 0.05)


def test_inside_the_levels_of_the_lag_that_switches_the_other_lag_does_nothing() -> None:
    """R_{t-1} switches the slope: R_t depends on Y_t through R_{t-1} alone, however persistent R is."""
    found = {0: 0, 1: 0}
    for seed in range(200):
        test = mixed_test(slope_switch(seed, lag=1), discrete=[2], tau_max=1, slopes=True)
        for lag in (0, 1):
            found[lag] += test.measure((2, lag), (1, 0), [(0, 0), (2, 1 - lag)]).p <= 0.05
    assert found[1] >= 195
    assert found[0] <= binom.ppf(0.999, 200, 0.05)


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("permutations", [0, 99])
@pytest.mark.parametrize("stay", [0.5, 0.95])
def test_the_level_is_kept_for_a_persistent_context(stay: float, permutations: int, slopes: bool) -> None:
    """X_{t-1} drives R_t and Y_t; given X_{t-1} and R_{t-1}, R_t and Y_t are independent."""
    runs, found = 300, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x_T, level_T = rng.standard_normal(400), np.zeros(400)
        for t in range(1, 400):
            level_T[t] = level_T[t - 1] if rng.random() < stay else x_T[t - 1] > 0
        y_T = 0.7 * np.roll(x_T, 1) + rng.standard_normal(400)
        options: dict[str, Any] = {"permutations": permutations, "slopes": slopes, "rng": rng, "least_per_level": 1}
        test = mixed_test(np.column_stack([x_T, y_T, level_T]), discrete=[2], tau_max=1, **options)
        found += test.measure((2, 0), (1, 0), [(0, 1), (2, 1)]).p <= 0.05
    low = 0.0 if slopes else binom.ppf(0.001, runs, 0.05)
    assert low <= found <= binom.ppf(0.999, runs, 0.05)


def test_permutations_agree_with_the_f_distribution_for_normal_noise() -> None:
    data_TN = driven(3, steps=120)
    data_TN[:, 3] = regimes(np.random.default_rng(0), 120, 0.3, 3)
    analytic = mixed_test(data_TN, discrete=[3], tau_max=1)
    permuted = mixed_test(data_TN, discrete=[3], tau_max=1, permutations=4000, rng=np.random.default_rng(0))
    for x, y, given in (((3, 0), (1, 0), [(1, 1)]), ((3, 1), (3, 0), [(0, 0)]), ((0, 1), (1, 0), [(3, 0), (2, 0)])):
        expected = analytic.measure(x, y, given).p
        error = 4.0 * np.sqrt(expected * (1.0 - expected) / 4000) + 0.01
        assert permuted.measure(x, y, given).p == pytest.approx(expected, abs=error)


def test_permutations_depend_on_the_seed_and_the_cells_only() -> None:
    data_TN = driven(4)
    options: dict[str, Any] = {"discrete": [3], "tau_max": 1, "permutations": 200, "slopes": True}
    first = mixed_test(data_TN, rng=np.random.default_rng(7), **options)
    second = mixed_test(data_TN, rng=np.random.default_rng(7), **options)
    second.measure((0, 1), (1, 0))
    a = first.measure((2, 1), (3, 0), [(2, 2), (3, 1)])
    assert a.p == second.measure((2, 1), (3, 0), [(3, 1), (2, 2)]).p
    assert a.p == first.measure((3, 0), (2, 1), [(2, 2), (3, 1)]).p
    assert first.measure((0, 0), (3, 0)).p == pytest.approx(2 / 201 / 2)  # nothing to add: the indicators' test alone


def test_blocks_keep_the_level_under_serial_dependence() -> None:
    """Single rows are not exchangeable when both sides are persistent; blocks of 20 nearly are."""
    found = {1: 0, 20: 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y_T = rng.standard_normal(400)
        for t in range(1, 400):
            y_T[t] += 0.9 * y_T[t - 1]
        data_TN = np.column_stack([regimes(rng, 400, 0.9), y_T])
        for length in found:
            test = mixed_test(
                data_TN, discrete=[0], tau_max=0, permutations=99, block_length=length, rng=np.random.default_rng(seed)
            )
            found[length] += test.measure((0, 0), (1, 0)).p <= 0.05
    assert found[1] > 60
    assert found[20] < 30


def test_repeated_rows_count_as_often_as_they_stand_there() -> None:
    data_TN = driven(5, steps=60)
    once = mixed_test(data_TN, discrete=[3], tau_max=1, rows=np.arange(2, 60)).measure((0, 1), (3, 0))
    twice = mixed_test(data_TN, discrete=[3], tau_max=1, rows=np.tile(np.arange(2, 60), 2)).measure((0, 1), (3, 0))
    assert twice.value == pytest.approx(once.value, abs=1e-12)
    assert twice.samples == 2 * once.samples


def test_conditions_that_are_constant_or_repeat_others_cost_nothing() -> None:
    rng = np.random.default_rng(6)
    level_T = regimes(rng, 100, 0.5, 3)
    data_TN = np.column_stack([rng.standard_normal((100, 2)), level_T, level_T == 2, level_T])
    mask_T = level_T == 1
    test = mixed_test(data_TN, discrete=[2, 3, 4], tau_max=0, mask_T=mask_T)
    many, one = (test.measure((0, 0), (1, 0), given) for given in ([(2, 0), (3, 0), (4, 0)], [(3, 0)]))
    assert many.value == pytest.approx(one.value, abs=1e-12)
    assert (many.samples, many.df) == (one.samples, one.df)
    spanned = test.measure((0, 0), (2, 0), [(3, 0), (4, 0)])
    assert (spanned.value, spanned.p) == (0.0, 1.0)


def test_what_a_test_cannot_carry_is_named() -> None:
    data_TN = driven(7, steps=40)
    data_TN[:, 3] = 0.0
    data_TN[[10, 20], 3] = 1.0
    test = mixed_test(data_TN, discrete=[3], tau_max=1, names=["A", "B", "C", "R"])
    with pytest.raises(TooFewSamples, match=r"A\(t-1\) -> R\(t\), level 1 of R\(t\): 2 samples .* needs 3"):
        test.measure((0, 1), (3, 0))
    mask_T = np.ones(40, np.bool_)
    mask_T[22:36] = False
    masked = mixed_test(data_TN, discrete=[3], tau_max=1, names=["A", "B", "C", "R"], mask_T=mask_T)
    with pytest.raises(ConstantVariable, match=r"A\(t-1\) -> R\(t\): R\(t\) is constant over the 14 samples"):
        masked.measure((0, 1), (3, 0))
    mask_T[27:] = True
    few = mixed_test(data_TN, discrete=[3], tau_max=1, names=["A", "B", "C", "R"], mask_T=mask_T)
    with pytest.raises(TooFewSamples, match=r"A\(t-1\) -> B\(t\): 5 samples .* with 3 conditions needs 6"):
        few.measure((0, 1), (1, 0), [(1, 1), (2, 1), (2, 2)])
    with pytest.raises(CausalDataError, match=r"X0: value -?[0-9.]+ is no level"):
        mixed_test(data_TN, discrete=[0], tau_max=1)
    with pytest.raises(ConstantVariable, match="X3 is constant"):
        mixed_test(data_TN[:9], discrete=[3], tau_max=1)
    with pytest.raises(ValueError, match="permutations need rng"):
        mixed_test(data_TN, discrete=[3], tau_max=1, permutations=9)
