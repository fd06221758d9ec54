"""Conversions with hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from stages.ingest.land_atmosphere.config import Format
from stages.ingest.land_atmosphere.schema import UNITS, VARIABLES
from stages.ingest.land_atmosphere.units import canonical, contradiction, convert, known_units


@pytest.mark.parametrize(
    ("variable", "unit", "value", "expected"),
    [
        ("SWC", "percent", 25.0, 0.25),
        ("SWC", "%", 25.0, 0.25),
        ("SWC", "m³ m⁻³", 0.25, 0.25),
        ("VPD", "kPa", 1.5, 15.0),
        ("VPD", "Pa", 1500.0, 15.0),
        ("VPD", "mbar", 15.0, 15.0),
        ("TA", "K", 273.15, 0.0),
        ("TA", "degF", 212.0, 100.0),
        ("TA", "°C", 21.5, 21.5),
        ("P", "mm", 0.4, 0.4),
        ("P", "m", 0.0004, 0.4),
        ("P", "inches", 1.0, 25.4),
        ("P", "mm/h", 1.2, 0.6),
        ("P", "mm s-1", 0.001, 1.8),
        ("P", "kg m-2 s-1", 0.001, 1.8),
        ("P", "mm/day", 48.0, 1.0),
        ("LE", "W/m2", 100.0, 100.0),
        ("LE", "W m^-2", 100.0, 100.0),
        ("LE", "w_m-2", 100.0, 100.0),
        ("SW_IN", "MJ m-2 d-1", 8.64, 100.0),
        ("SW_IN", "MJ/m2/d", 8.64, 100.0),
        ("SW_IN", "cal cm-2 min-1", 1.0, 697.3333333333334),
        ("H", "kJ m-2 h-1", 360.0, 100.0),
    ],
)
def test_half_hour_in_the_harmonised_unit(variable: str, unit: str, value: float, expected: float) -> None:
    assert convert(variable, np.array([value]), unit, 30)[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_rate_of_precipitation_depends_on_the_length_of_each_step() -> None:
    month_days = np.array([31, 28]) * 1440
    assert convert("P", np.array([2.0, 2.0]), "mm d-1", month_days).tolist() == [62.0, 56.0]


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_harmonised_unit_changes_nothing_and_keeps_missing(variable: str) -> None:
    values = np.array([0.1, np.nan, 3.0])
    converted = convert(variable, values.copy(), UNITS[variable], 30)
    assert np.array_equal(converted, values, equal_nan=True)
    assert canonical(variable, UNITS[variable]) in known_units(variable)


def test_an_unknown_unit_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unit 'furlong' is not known for VPD; known are: hPa, mbar, kPa, Pa, mmHg"):
        canonical("VPD", "furlong")


def test_params_refuse_an_unknown_unit_before_anything_is_read() -> None:
    block = {
        "reader": "table",
        "time": {"column": "t", "label": "start"},
        "columns": {"TA": {"column": "T", "unit": "furlong"}},
    }
    with pytest.raises(ValidationError, match="unit 'furlong' is not known for TA"):
        TypeAdapter(Format).validate_python(block)


@pytest.mark.parametrize(
    ("variable", "unit", "low", "high", "words"),
    [
        ("SWC", "percent", 0.1, 0.4, "they look like fractions"),
        ("SWC", "m3 m-3", 10, 40, "they look like percent"),
        ("VPD", "hPa", 0, 3, "they look like kPa"),
        ("TA", "degC", 270, 300, "they look like kelvin"),
        ("TA", "degC", 30, 90, "Fahrenheit"),
        ("SW_IN", "W m-2", 0, 25, "MJ m-2"),
    ],
)
def test_values_that_contradict_their_unit_are_named(
    variable: str, unit: str, low: float, high: float, words: str
) -> None:
    declared = np.linspace(low, high, 1000)
    harmonised = convert(variable, declared, unit, 30)
    note = contradiction(variable, unit, harmonised, 30)
    assert note is not None
    assert words in note


@pytest.mark.parametrize(
    ("variable", "unit", "low", "high"),
    [("SWC", "percent", 5, 45), ("SWC", "m3 m-3", 0.05, 0.45), ("VPD", "hPa", 0, 35), ("VPD", "kPa", 0, 3.5)],
)
def test_ordinary_values_are_not_doubted(variable: str, unit: str, low: float, high: float) -> None:
    assert contradiction(variable, unit, convert(variable, np.linspace(low, high, 1000), unit, 30), 30) is None
