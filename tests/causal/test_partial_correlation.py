"""A partial correlation is the correlation of the residuals of two regressions, whatever the sample looks like."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from stages.causal.errors import CausalDataError, ConstantVariable, TooFewSamples
from stages.causal.partial_correlation import partial_correlation
from stages.causal.samples import lagged_sample, resampled

Cell = tuple[int, int]


def autoregressive(seed: int, steps: int = 120, variables: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    data_TN = rng.standard_normal((steps, variables))
    for t in range(1, steps):
        data_TN[t] += 0.6 * data_TN[t - 1]
        data_TN[t, 1:] += 0.4 * data_TN[t - 1, :-1]
    return data_TN * [1.0, 1e-4, 1e5, 3.0][:variables] + [0.0, 2.0, 1e6, -300.0][:variables]


def columns(data_TN: np.ndarray, cells: list[Cell], times: np.ndarray) -> np.ndarray:
    return np.column_stack([data_TN[times - lag, i] for i, lag in cells])


def residual_correlation(table_RK: np.ndarray) -> float:
    """Last two columns, each regressed on the others with an intercept."""
    design = np.column_stack([np.ones(len(table_RK)), table_RK[:, :-2]])
    design = np.linalg.qr(design)[0]
    left = table_RK[:, -2:] - design @ (design.T @ table_RK[:, -2:])
    left -= design @ (design.T @ left)
    return float(np.corrcoef(left.T)[0, 1])


def normal_scores(table_RK: np.ndarray) -> np.ndarray:
    u_RK = rankdata(table_RK, method="max", axis=0) / len(table_RK)
    return ndtri(np.where(u_RK == 1.0, 0.99999, u_RK))


TESTS: list[tuple[Cell, Cell, list[Cell]]] = [
    ((0, 1), (1, 0), []),
    ((0, 1), (1, 0), [(1, 1)]),
    ((2, 0), (3, 0), [(2, 1), (3, 1), (0, 2), (1, 4)]),
]


@pytest.mark.parametrize(("x", "y", "given"), TESTS)
def test_equals_the_correlation_of_regression_residuals(x: Cell, y: Cell, given: list[Cell]) -> None:
    data_TN = autoregressive(0)
    result = partial_correlation(lagged_sample(data_TN, tau_max=2), x, y, given)
    times = np.arange(4, 120)
    assert result.value == pytest.approx(residual_correlation(columns(data_TN, [*given, x, y], times)), abs=1e-11)
    assert (result.samples, result.df) == (116, 114 - len(given))


@pytest.mark.parametrize(("x", "y", "given"), TESTS)
def test_robust_test_is_the_same_on_normal_scores(x: Cell, y: Cell, given: list[Cell]) -> None:
    data_TN = autoregressive(1)
    result = partial_correlation(lagged_sample(data_TN, tau_max=2, test="robust_parcorr"), x, y, given)
    scores_RK = normal_scores(columns(data_TN, [*given, x, y], np.arange(4, 120)))
    assert result.value == pytest.approx(residual_correlation(scores_RK), abs=1e-12)


def test_closed_form_for_one_condition() -> None:
    """r_xy.z = (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2)), with .5, .4, .3: .4346."""
    orthogonal = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 4)) - 0.0)[0]
    centred = np.linalg.qr(orthogonal - orthogonal.mean(axis=0))[0][:, :3]
    corr = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.3], [0.4, 0.3, 1.0]])
    sample = lagged_sample(centred @ np.linalg.cholesky(corr).T, tau_max=0)
    assert partial_correlation(sample, (0, 0), (1, 0)).value == pytest.approx(0.5, abs=1e-12)
    expected = (0.5 - 0.4 * 0.3) / np.sqrt((1 - 0.16) * (1 - 0.09))
    assert expected == pytest.approx(0.4346, abs=1e-4)
    assert partial_correlation(sample, (0, 0), (1, 0), [(2, 0)]).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("test", ["parcorr", "robust_parcorr"])
def test_missing_values_drop_target_times_by_the_clock(test: str) -> None:
    """x missing at 10 and y at 50: with x at lag 2, the targets 12 and 50 are lost and no lag is shortened."""
    data_TN = autoregressive(2, variables=2)
    data_TN[10, 0] = data_TN[50, 1] = np.nan
    result = partial_correlation(lagged_sample(data_TN, tau_max=2, test=test), (0, 2), (1, 0))
    times = np.setdiff1d(np.arange(4, 120), [12, 50])
    table_RK = columns(data_TN, [(0, 2), (1, 0)], times)
    expected = residual_correlation(normal_scores(table_RK) if test == "robust_parcorr" else table_RK)
    assert result.samples == 114
    assert result.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("share", [0.02, 0.4])
def test_many_gaps_give_the_regression_on_the_rows_that_are_left(share: float) -> None:
    data_TN = autoregressive(3, steps=300)
    data_TN[np.random.default_rng(3).random(data_TN.shape) < share] = np.nan
    sample = lagged_sample(data_TN, tau_max=2)
    for x, y, given in TESTS:
        table_RK = columns(data_TN, [*given, x, y], np.arange(4, 300))
        kept_RK = table_RK[~np.isnan(table_RK).any(axis=1)]
        result = partial_correlation(sample, x, y, given)
        assert result.samples == len(kept_RK)
        assert result.value == pytest.approx(residual_correlation(kept_RK), abs=1e-10)


def test_an_all_missing_variable_shrinks_no_other_test() -> None:
    """Case 38: a seventh variable without values, six with."""
    rng = np.random.default_rng(4)
    data_TN = rng.standard_normal((200, 7))
    data_TN[5, 2] = np.nan
    whole = partial_correlation(lagged_sample(data_TN[:, :6], tau_max=1), (0, 1), (1, 0), [(2, 1)])
    data_TN[:, 6] = np.nan
    result = partial_correlation(lagged_sample(data_TN, tau_max=1), (0, 1), (1, 0), [(2, 1)])
    assert result == whole
    assert result.samples == 197


def test_gaps_that_hold_almost_all_of_the_variance_cost_no_digits() -> None:
    data_TN = autoregressive(5, steps=200, variables=2)
    data_TN[60, 0] = 1e12
    mended_TN = data_TN.copy()
    data_TN[60, 1] = np.nan  # drops the target time that would carry the spike at lag 0
    mended_TN[60] = np.nan
    spiked = partial_correlation(lagged_sample(data_TN, tau_max=0), (0, 0), (1, 0))
    clean = partial_correlation(lagged_sample(mended_TN, tau_max=0), (0, 0), (1, 0))
    assert spiked.samples == clean.samples
    assert spiked.value == pytest.approx(clean.value, abs=1e-4)  # 1e12 leaves 4 digits of values near 1


@pytest.mark.parametrize("where", [0, 119])
@pytest.mark.parametrize("gap", [False, True])
def test_a_spike_that_a_test_does_not_read_costs_no_digits(where: int, gap: bool) -> None:
    """Step 0 is read at lag 4 only, step 119 at lag 0 only."""
    data_TN = autoregressive(18, variables=3)
    data_TN[where] = 1e12
    if gap:
        data_TN[50, 2] = np.nan
    x, y, given = ((0, 1), (1, 2), [(2, 3)]) if where else ((0, 1), (1, 0), [(2, 2)])
    table_RK = columns(data_TN, [*given, x, y], np.arange(4, 120))
    table_RK = table_RK[~np.isnan(table_RK).any(axis=1)]
    result = partial_correlation(lagged_sample(data_TN, tau_max=2), x, y, given)
    assert result.value == pytest.approx(residual_correlation(table_RK), abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_smooth_series_keep_eight_digits(seed: int) -> None:
    """Twice integrated noise: its lags are collinear to 1e-7."""
    data_TN = np.cumsum(np.cumsum(np.random.default_rng(seed).standard_normal((400, 3)), axis=0), axis=0)
    cells = [(0, 2), (1, 1), (1, 2), (2, 1), (2, 2), (0, 1), (1, 0)]
    result = partial_correlation(lagged_sample(data_TN, tau_max=2), cells[-2], cells[-1], cells[:-2])
    expected = residual_correlation(columns(data_TN, cells, np.arange(4, 400)))
    assert result.value == pytest.approx(expected, abs=1e-8)


def test_mask_true_means_not_used() -> None:
    """Case 35: the masked target times go; masked values still serve as causes."""
    data_TN = autoregressive(6, variables=2)
    mask_T = np.zeros(120, bool)
    mask_T[40:100] = True
    result = partial_correlation(lagged_sample(data_TN, tau_max=2, mask_T=mask_T), (0, 1), (1, 0))
    times = np.r_[4:40, 100:120]
    assert result.samples == 56
    assert result.value == pytest.approx(residual_correlation(columns(data_TN, [(0, 1), (1, 0)], times)), abs=1e-12)


def test_mask_of_one_variable_counts_where_it_is_the_target() -> None:
    data_TN = autoregressive(7, variables=2)
    mask_TN = np.zeros((120, 2), bool)
    mask_TN[30:60, 1] = True
    sample = lagged_sample(data_TN, tau_max=2, mask_TN=mask_TN)
    assert partial_correlation(sample, (0, 1), (1, 0)).samples == 86
    assert partial_correlation(sample, (1, 1), (0, 0)).samples == 116


@pytest.mark.parametrize("test", ["parcorr", "robust_parcorr"])
@pytest.mark.parametrize("gap", [False, True])
def test_repeated_rows_count_as_often_as_they_stand(test: str, gap: bool) -> None:
    data_TN = autoregressive(8, variables=3)
    if gap:
        data_TN[70, 2] = np.nan
    rows = np.random.default_rng(8).integers(4, 120, size=150)
    given, x, y = [(2, 1)], (0, 1), (1, 0)
    table_RK = columns(data_TN, [*given, x, y], rows)
    table_RK = table_RK[~np.isnan(table_RK).any(axis=1)]
    expected = residual_correlation(normal_scores(table_RK) if test == "robust_parcorr" else table_RK)
    for sample in (
        lagged_sample(data_TN, tau_max=2, test=test, rows=rows),
        resampled(lagged_sample(data_TN, tau_max=2, test=test), rows),
    ):
        result = partial_correlation(sample, x, y, given)
        assert result.samples == len(table_RK)
        assert result.value == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("noise", [1e-3, 1e-4, 1e-5, 1e-6])
def test_near_collinear_conditions(noise: float) -> None:
    rng = np.random.default_rng(9)
    data_TN = rng.standard_normal((150, 4))
    data_TN[:, 1] = data_TN[:, 0] + noise * data_TN[:, 1]
    data_TN[:, 3] += 0.5 * data_TN[:, 2] + data_TN[:, 0]
    result = partial_correlation(lagged_sample(data_TN, tau_max=0), (2, 0), (3, 0), [(0, 0), (1, 0)])
    assert result.value == pytest.approx(residual_correlation(data_TN), abs=2e-9)


@pytest.mark.parametrize("test", ["parcorr", "robust_parcorr"])
def test_a_condition_that_repeats_another_changes_only_the_degrees_of_freedom(test: str) -> None:
    data_TN = autoregressive(10, variables=4)
    data_TN[:, 3] = 2.0 * data_TN[:, 2] - 7.0
    sample = lagged_sample(data_TN, tau_max=1, test=test)
    once = partial_correlation(sample, (0, 1), (1, 0), [(2, 0)])
    twice = partial_correlation(sample, (0, 1), (1, 0), [(2, 0), (3, 0)])
    assert twice.value == pytest.approx(once.value, abs=1e-12)
    assert twice.df == once.df - 1


def test_a_cell_that_the_conditions_determine_is_independent_of_all() -> None:
    data_TN = autoregressive(11)
    data_TN[:, 3] = data_TN[:, 2] / 3.0
    result = partial_correlation(lagged_sample(data_TN, tau_max=1), (3, 0), (1, 0), [(2, 0)])
    assert (result.value, result.p) == (0.0, 1.0)


def test_a_constant_variable_is_named() -> None:
    data_TN = autoregressive(12)
    data_TN[:, 2] = 0.1
    with pytest.raises(ConstantVariable, match=r"^VPD is constant \(0\.1\)"):
        lagged_sample(data_TN, tau_max=1, names=["SWC", "LE", "VPD", "TA"])


@pytest.mark.parametrize("gap", [False, True])
def test_a_variable_constant_in_the_sample_is_named_with_its_lag(gap: bool) -> None:
    data_TN = autoregressive(13, variables=2)
    data_TN[:, 0] = np.where(np.arange(120) < 60, 0.3, data_TN[:, 0])
    if gap:
        data_TN[100, 1] = np.nan
    mask_T = np.arange(120) >= 61
    options = {"tau_max": 2, "mask_T": mask_T, "names": ["P", "LE"]}
    with pytest.raises(ConstantVariable, match=r"P\(t-1\) is constant over the 57 samples"):
        partial_correlation(lagged_sample(data_TN, **options), (0, 1), (1, 0))


def test_too_few_samples_name_the_link() -> None:
    data_TN = autoregressive(14)
    data_TN[7:, 0] = np.nan
    sample = lagged_sample(data_TN, tau_max=1, names=["SWC", "LE", "VPD", "TA"])
    with pytest.raises(TooFewSamples, match=r"^SWC\(t-1\) -> LE\(t\): 6 samples .* 4 conditions needs 7\. Use"):
        partial_correlation(sample, (0, 1), (1, 0), [(2, 1), (3, 1), (1, 1), (2, 0)])
    assert partial_correlation(sample, (0, 1), (1, 0), [(2, 1), (3, 1), (1, 1)]).df == 1


def test_infinite_values_are_refused_by_name_and_step() -> None:
    data_TN = autoregressive(15)
    data_TN[33, 1] = -np.inf
    with pytest.raises(CausalDataError, match=r"^LE: infinite value at step 33"):
        lagged_sample(data_TN, tau_max=1, names=["SWC", "LE", "VPD", "TA"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_T": np.zeros(119, bool)}, r"mask_T: found bool of shape \(119,\); expected bool of shape \(120,\)"),
        ({"mask_T": np.zeros(120)}, "mask_T: found float64"),
        ({"mask_TN": np.zeros((4, 120), bool)}, "mask_TN: found bool"),
        ({"rows": np.array([3, 50, 60])}, "rows reach from 3 to 60; target times with a full past are 4 to 119"),
        ({"rows": np.array([4.0, 50.0])}, "rows: found float64"),
        ({"names": ["a", "b", "a", "c"]}, "4 different names"),
        ({"test": "kendall"}, "test 'kendall': expected one of parcorr, robust_parcorr"),
        ({"tau_max": -1}, "tau_max -1"),
        ({"tau_max": 59}, "120 time steps: tau_max 59 needs at least 121"),
        ({"mask_T": np.ones(120, bool)}, "every link: 0 samples are left by mask"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lagged_sample(autoregressive(16), **{"tau_max": 2, **options})


def test_units_do_not_matter() -> None:
    data_TN = autoregressive(17)
    plain = partial_correlation(lagged_sample(data_TN, tau_max=1), (0, 1), (3, 0), [(1, 1)])
    scaled = partial_correlation(lagged_sample(data_TN * 1e200 / 1e6, tau_max=1), (0, 1), (3, 0), [(1, 1)])
    assert scaled.value == pytest.approx(plain.value, abs=1e-12)
