"""Numbers, units and words as a reader expects them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.report.chart import chart_of
from stages.report.figures import column_decimals, interval_decimals, number, ticks
from stages.report.words import byte_size, cite, figure, humane, percent, plural, raised, slug, unit
from tests.report import fakes

FINITE = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.783451, "0.783"),
        (31.4159, "31.4"),
        (-0.05, "−0.0500"),
        (0.0, "0.00"),
        (1234.5, "1234"),
        (123456.0, "123 456"),
        (2013, "2013"),
        (18432, "18 432"),
        (-18432, "−18 432"),
        (3.1e-22, "3.10 × 10⁻²²"),
        (-4.5e9, "−4.50 × 10⁹"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_numbers_show_three_significant_digits(value: float | int | None, text: str) -> None:
    assert number(value).replace("\N{NARROW NO-BREAK SPACE}", " ") == text


def test_a_number_that_rounds_to_zero_has_no_sign() -> None:
    assert number(-0.0004, 2) == "0.00"


@given(FINITE)
def test_a_shown_number_is_the_number_to_half_of_its_last_digit(value: float) -> None:
    text = number(value).replace("\N{NARROW NO-BREAK SPACE}", "").replace("−", "-")
    if "×" in text:
        mantissa, exponent = text.split(" × 10")
        raised_digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
        text = f"{mantissa}e{exponent.translate(raised_digits)}"
    assert float(text) == pytest.approx(value, rel=0.0051, abs=1e-300)


def test_an_interval_decides_how_many_decimals_are_told() -> None:
    assert interval_decimals(0.7834512, 0.7413333, 0.8216667) == 3  # half-width 0.040
    assert interval_decimals(31.4159, 29.9, 33.02) == 1  # half-width 1.6
    assert interval_decimals(0.5, None, None) == 3
    assert interval_decimals(0.5, 0.5, 0.5) == 3
    assert interval_decimals(120.0, 60.0, 180.0) == 0


def test_a_column_shares_its_decimals_unless_magnitudes_lie_far_apart() -> None:
    assert column_decimals([0.2134, -0.0312, 0.4471, None]) == 3
    assert column_decimals([1.25, 0.5]) == 2
    assert column_decimals([0.5, 1.0]) == 1
    assert column_decimals([1.2e-9, 0.31]) is None
    assert column_decimals([12345.6, 10.2]) is None


@given(FINITE, FINITE)
def test_ticks_lie_on_the_axis_and_are_few(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if high - low < 1e-6 * max(1.0, abs(high), abs(low)):
        return
    found = ticks(low, high)
    slack = 1e-9 * (high - low) + 1e-12 * max(abs(low), abs(high))
    assert 1 <= len(found) <= 6
    assert all(low - slack <= tick <= high + slack for tick in found)


def test_ticks_are_round() -> None:
    assert ticks(0.58, 0.85) == pytest.approx([0.6, 0.7, 0.8])
    assert ticks(0, 100) == pytest.approx([0, 25, 50, 75, 100])


def test_a_chart_keeps_the_order_of_its_marks() -> None:
    chart = chart_of(fakes.graph_system().headline)
    assert chart is not None
    assert chart.baseline is not None
    assert chart.low is not None
    assert chart.value is not None
    assert chart.high is not None
    assert 0 < chart.baseline < chart.low < chart.value < chart.high < 100
    share = (chart.value - chart.baseline) / (chart.high - chart.baseline)
    assert share == pytest.approx((0.783451 - 0.612) / (0.821667 - 0.612), abs=1e-3)


def test_an_undefined_headline_has_no_chart() -> None:
    head = fakes.twin_system().headline.model_copy(update={"value": None})
    assert chart_of(head) is None
    lone = chart_of(fakes.twin_system().headline)
    assert lone is not None
    assert lone.value == 50


@pytest.mark.parametrize(
    ("given_unit", "text"),
    [("W m-2", "W m⁻²"), ("m3 m-3", "m³ m⁻³"), ("degC", "°C"), ("percent", "percent"), ("1", "1")],
)
def test_units_have_raised_exponents(given_unit: str, text: str) -> None:
    assert raised(given_unit).replace("\N{NO-BREAK SPACE}", " ") == text


def test_a_share_has_no_unit_behind_it() -> None:
    assert (unit(""), unit("1"), unit("K")) == ("", "", "\N{NO-BREAK SPACE}K")


def test_values_keep_their_exact_number_in_the_markup() -> None:
    assert figure(0.7834512, 2) == '<data value="0.7834512">0.78</data>'
    assert figure(None) == '<abbr title="undefined">–</abbr>'
    assert percent(0.0832) == '<data value="0.0832">8.3\N{NARROW NO-BREAK SPACE}%</data>'
    assert percent(0.25) == '<data value="0.25">25\N{NARROW NO-BREAK SPACE}%</data>'


def test_citations_are_text_with_links_for_dois_alone() -> None:
    linked = cite("A <b> (2020). https://example.org doi:10.1126/sciadv.aau4996.")
    assert linked == (
        'A &lt;b&gt; (2020). https://example.org <a href="https://doi.org/10.1126/sciadv.aau4996" rel="noreferrer">'
        "doi:10.1126/sciadv.aau4996</a>."
    )
    assert "javascript" not in cite("doi:javascript:alert(1)").replace("doi:javascript:alert(1)", "")
    assert '<a href="https://doi.org/10.1000/x%27y"' in cite("https://dx.doi.org/10.1000/x'y")


def test_names_become_words_and_ids() -> None:
    assert (humane("land_atmosphere"), humane("eeg"), humane("rna_structures")) == (
        "Land atmosphere",
        "EEG",
        "RNA structures",
    )
    assert len({slug(name) for name in ("a b", "a_b", "a-b", "a.b", "a<b", "ab", "a.3c.b")}) == 7
    assert (plural("site-month", 2), plural("molecule", 1), plural("category", 3)) == (
        "site-months",
        "molecule",
        "categories",
    )
    assert byte_size(24_518_204).replace("\N{NARROW NO-BREAK SPACE}", " ") == "24.5 MB"
    assert byte_size(999).replace("\N{NARROW NO-BREAK SPACE}", " ") == "999 B"
