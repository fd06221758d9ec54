"""The p-value of a correlation is Student's; the quantile is the normal distribution's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from stages.causal.student import critical_correlation, normal_quantile, two_sided_p

DF = [1.0, 2.0, 5.0, 39.0, 40.0, 41.0, 985.0, 175_000.0]


@pytest.mark.parametrize("df", DF)
def test_p_value_is_students_two_sided_tail(df: float) -> None:
    for t in [1e-6, 0.3, 1.0, 1.22, 1.23, 2.0, 5.0, 20.0]:
        r = t / np.sqrt(df + t * t)
        assert two_sided_p(r, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-10)
        assert two_sided_p(-r, df) == two_sided_p(r, df)


def test_no_correlation_has_p_one_and_a_perfect_one_has_p_zero() -> None:
    assert two_sided_p(0.0, 10.0) == 1.0
    assert two_sided_p(1.0, 10.0) == two_sided_p(-1.0, 10.0) == 0.0


def test_textbook_critical_values() -> None:
    # Tables of the product-moment correlation: df 10, 5 % two-sided .576; df 100, 1 % .254.
    assert critical_correlation(0.05, 10.0) == pytest.approx(0.5760, abs=5e-5)
    assert critical_correlation(0.01, 100.0) == pytest.approx(0.2540, abs=5e-5)


@given(st.floats(1e-4, 0.999), st.sampled_from(DF))
def test_critical_correlation_inverts_the_p_value(alpha: float, df: float) -> None:
    assert two_sided_p(critical_correlation(alpha, df), df) == pytest.approx(alpha, rel=1e-6)


@given(st.floats(1e-12, 1 - 1e-12))
def test_normal_quantile_inverts_the_distribution_function(u: float) -> None:
    assert special.ndtr(normal_quantile(u)) == pytest.approx(u, rel=1e-12)
    assert normal_quantile(u) == pytest.approx(special.ndtri(u), rel=1e-11, abs=1e-14)
