"""Conversions with hand-computed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from stages.ingest.land_atmosphere.config import Format
from stages.ingest.land_atmosphere.schema import UNITS, VARIABLES
from stages.ingest.land_atmosphere.units import canonical, contradiction, convert, known_units, saturation_pressure


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


def test_a_doubt_says_what_to_write() -> None:
    doubt = contradiction("VPD", "hPa", np.linspace(0, 3, 1000), 30)
    assert doubt is not None
    assert doubt.told("VPD", "VPD_PI_1_1_1") == (
        "VPD is declared in hPa, but 99.5 % of the values are below 2.98 hPa: they look like kPa; nothing was changed. "
        "Correct the unit in the site's `format`: `columns: {VPD: {column: VPD_PI_1_1_1, unit: kPa}}`"
    )


def test_saturation_pressure_at_the_triple_point_and_at_room_temperature() -> None:
    found = saturation_pressure(np.array([0.01, 20.0, 30.0]))
    assert found.tolist() == pytest.approx([6.117, 23.39, 42.47], rel=4e-3)  # hPa, steam tables


@pytest.mark.parametrize(
    ("unit", "factor", "likely"),
    [
        ("hPa", 1, None),
        ("kPa", 0.1, None),
        ("hPa", 0.1, "kPa"),
        ("Pa", 1, "hPa"),
        ("kPa", 1, "hPa"),
        ("hPa", 100, "Pa"),
    ],
)
@pytest.mark.parametrize("climate", [-25.0, 0.0, 25.0])
def test_vpd_is_held_against_the_air_it_was_measured_in(
    unit: str, factor: float, likely: str | None, climate: float
) -> None:
    """Relative humidity from 40 to 100 %: an arctic winter, whose VPD never reaches 1 hPa, is not taken for kPa."""
    temperature = climate + np.linspace(-5, 5, 1000)
    vpd = saturation_pressure(temperature) * np.linspace(0.6, 0, 1000)[np.argsort(np.arange(1000) * 7919 % 1000)]
    doubt = contradiction("VPD", unit, convert("VPD", vpd * factor, unit, 30), 30, temperature)
    assert (None if doubt is None else doubt.likely) == likely
    assert (doubt is None) == (likely is None)


@pytest.mark.parametrize("reader", ["base", "fluxnet"])
def test_params_refuse_an_unknown_unit_at_its_own_place(reader: str) -> None:
    block = {"reader": reader, "columns": {"TA": "TA_2", "VPD": {"column": "VPD_F", "unit": "bar{s}"}}}
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Format).validate_python(block)
    (fault,) = caught.value.errors()
    assert fault["loc"] == (reader, "columns", "VPD", "unit")
    assert fault["input"] == "bar{s}"
    assert fault["msg"] == "unit 'bar{s}' is not known for VPD; known are: hPa, mbar, kPa, Pa, mmHg"


@pytest.mark.parametrize("block", ["basis", {"reader": "basis", "utc_offset": 1}])
def test_params_refuse_an_unknown_reader_with_the_known_ones(block: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Format).validate_python(block)
    (fault,) = caught.value.errors()
    assert (fault["loc"], fault["input"]) == (("reader",), "basis")
    assert fault["msg"] == "no reader has this name; did you mean 'base'? the readers are fluxnet, base, table"


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
    doubt = contradiction(variable, unit, harmonised, 30)
    assert doubt is not None
    assert words in doubt.looks
    assert doubt.declared == unit


@pytest.mark.parametrize(
    ("variable", "unit", "low", "high"),
    [("SWC", "percent", 5, 45), ("SWC", "m3 m-3", 0.05, 0.45), ("VPD", "hPa", 0, 35), ("VPD", "kPa", 0, 3.5)],
)
def test_ordinary_values_are_not_doubted(variable: str, unit: str, low: float, high: float) -> None:
    assert contradiction(variable, unit, convert(variable, np.linspace(low, high, 1000), unit, 30), 30) is None
