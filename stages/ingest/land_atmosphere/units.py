"""Units of flux-tower variables: conversion to the harmonised unit, and values that contradict a declared unit."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MINUTES_PER_DAY = 1440

_HEAT_FLUX = {
    "W m-2": 1.0,
    "J m-2 s-1": 1.0,
    "kW m-2": 1e3,
    "MJ m-2 d-1": 1e6 / 86400,
    "MJ m-2 h-1": 1e6 / 3600,
    "kJ m-2 h-1": 1e3 / 3600,
    "J m-2 d-1": 1 / 86400,
    "cal cm-2 min-1": 4.184e4 / 60,
    "cal cm-2 d-1": 4.184e4 / 86400,
}

#: Scale (and offset) of each known unit; the first of each quantity is the harmonised one.
_LINEAR: dict[str, dict[str, float | tuple[float, float]]] = {
    "SWC": {"m3 m-3": 1.0, "cm3 cm-3": 1.0, "fraction": 1.0, "1": 1.0, "percent": 0.01, "mm m-1": 0.001},
    "VPD": {"hPa": 1.0, "mbar": 1.0, "kPa": 10.0, "Pa": 0.01, "mmHg": 1.33322387415},
    "TA": {"degC": 1.0, "K": (1.0, -273.15), "degF": (5 / 9, -160 / 9)},
    **{name: dict(_HEAT_FLUX) for name in ("LE", "H", "G", "NETRAD", "SW_IN")},
}

#: Precipitation as depth of the step, and as a rate in mm per minute.
_DEPTH = {"mm": 1.0, "cm": 10.0, "m": 1000.0, "in": 25.4, "kg m-2": 1.0}
_RATE = {
    "mm min-1": 1.0,
    "mm h-1": 1 / 60,
    "mm d-1": 1 / MINUTES_PER_DAY,
    "mm s-1": 60.0,
    "kg m-2 s-1": 60.0,
    "m s-1": 6e4,
    "in h-1": 25.4 / 60,
    "in d-1": 25.4 / MINUTES_PER_DAY,
}

_ALIASES = {
    "%": "percent",
    "pct": "percent",
    "vol%": "percent",
    "%vol": "percent",
    "m3 m3-1": "m3 m-3",
    "cm3 cm3-1": "cm3 cm-3",
    "-": "1",
    "dimensionless": "1",
    "c": "degc",
    "°c": "degc",
    "deg c": "degc",
    "celsius": "degc",
    "kelvin": "k",
    "deg k": "k",
    "f": "degf",
    "°f": "degf",
    "deg f": "degf",
    "fahrenheit": "degf",
    "mb": "mbar",
    "millibar": "mbar",
    "inch": "in",
    "inches": "in",
    "mm step-1": "mm",
    "mm 30min-1": "mm",
    "mm hh-1": "mm",
}


_PLAIN_CHARACTERS = str.maketrans("²³⁻¹·_", "23-1  ")


def known_units(variable: str) -> list[str]:
    """Units a variable may be declared in."""
    return [*_DEPTH, *_RATE] if variable == "P" else list(_LINEAR[variable])


def canonical(variable: str, unit: str) -> str:
    """The known spelling of a unit (``W/m^2`` -> ``W m-2``).

    Raises
    ------
    ValueError
        The unit is unknown; the message lists the known ones.
    """
    plain = _plain(unit)
    by_plain = {known.lower(): known for known in known_units(variable)}
    plain = _ALIASES.get(plain, plain)
    if plain not in by_plain:
        raise ValueError(f"unit {unit!r} is not known for {variable}; known are: {', '.join(known_units(variable))}")
    return by_plain[plain]


def _plain(unit: str) -> str:
    text = unit.strip().lower().translate(_PLAIN_CHARACTERS)
    text = text.replace("**", "").replace("^", "").replace(" per ", "/").replace("day", "d").replace("hour", "h")
    text = re.sub(r"/\s*([a-z]+)(\d*)", lambda match: f" {match[1]}-{match[2] or 1}", text)
    text = re.sub(r"/\s*(\d+min|step)", r" \1-1", text)
    return " ".join(text.split())


def convert(
    variable: str, values: NDArray[np.float64], unit: str, step_minutes: int | NDArray[np.int64]
) -> NDArray[np.float64]:
    """Convert values to the harmonised unit, in place where they are not so already.

    Parameters
    ----------
    variable
        Name in the harmonised schema.
    values
        Values (time) in ``unit``.
    unit
        A unit of :func:`known_units`, in any spelling.
    step_minutes
        Length of the averaging interval; an array (time) where it varies. Only rates of precipitation depend on it.

    Returns
    -------
    NDArray[np.float64]
        The same array.
    """
    known = canonical(variable, unit)
    if variable == "P":
        if known in _RATE:
            values *= _RATE[known] * step_minutes
        elif _DEPTH[known] != 1.0:
            values *= _DEPTH[known]
        return values
    factor = _LINEAR[variable][known]
    scale, offset = factor if isinstance(factor, tuple) else (factor, 0.0)
    if scale != 1.0:
        values *= scale
    if offset != 0.0:
        values += offset
    return values


@dataclass(frozen=True)
class Doubt:
    """Values that cannot well be in the unit they were declared in."""

    declared: str
    looks: str
    likely: str | None = None

    def told(self, variable: str, column: str) -> str:
        """One sentence for what is wrong, one for what to write in params.yaml."""
        unit = self.likely or "..."
        return (
            f"{variable} is declared in {self.declared}, but {self.looks}; nothing was changed. Correct the unit in "
            f"the site's `format`: `columns: {{{variable}: {{column: {column}, unit: {unit}}}}}`"
        )


def contradiction(
    variable: str,
    unit: str,
    values: NDArray[np.float64],
    step_minutes: int | None,
    temperature: NDArray[np.float64] | None = None,
) -> Doubt | None:
    """What speaks against the unit that values were declared in, else None.

    Parameters
    ----------
    values
        Measured values (time) in the harmonised unit; nothing is changed.
    temperature
        Air temperature (time), degC, if its own unit is not in doubt: it bounds VPD from above in any climate.
    """
    thin = slice(None, None, 1 + values.size // MAX_VALUES_TO_JUDGE)
    sample = values[thin]
    finite = sample[np.isfinite(sample)]
    if finite.size < MIN_VALUES_TO_JUDGE:
        return None
    median, high = (float(x) for x in np.quantile(finite, [0.5, 0.995]))
    known = canonical(variable, unit)
    if variable == "VPD":
        return _doubt_of_vpd(known, sample, high, None if temperature is None else temperature[thin])
    if variable == "SWC" and known == "percent" and high <= 0.01:
        looks = f"99.5 % of the values are at most {100 * high:.3g}: they look like fractions (m3 m-3)"
        return Doubt(known, looks, "m3 m-3")
    if variable == "SWC" and known != "percent" and high > 1:
        return Doubt(known, f"values reach {high:.3g} m3 m-3: they look like percent", "percent")
    if variable == "TA" and median > 100:
        return Doubt(known, f"the median is {median:.4g} degC: they look like kelvin", "K")
    if variable == "TA" and median < -100:
        return Doubt(known, f"the median is {median:.4g} degC: they look like degrees Celsius", "degC")
    if variable == "TA" and known == "degC" and high > 60:
        return Doubt(known, f"values reach {high:.3g} degC: they look like degrees Fahrenheit", "degF")
    if variable == "SW_IN" and 0 < high < 60:
        return Doubt(known, f"99.5 % of the values are below {high:.3g} W m-2: they look like MJ m-2 of a step or day")
    if variable == "P" and step_minutes is not None and step_minutes <= 60 and median > 0.5:
        return Doubt(
            known, f"half of all steps have more than {median:.3g} mm: they look like a rate or a running total"
        )
    return None


def _doubt_of_vpd(
    known: str, vpd: NDArray[np.float64], high: float, temperature: NDArray[np.float64] | None
) -> Doubt | None:
    """Hold VPD (time) against the saturation vapour pressure at TA; without TA against what a year anywhere has.

    Air that is always above 90 % relative humidity (VPD below a tenth of saturation) is no climate but a factor of 10,
    and so is air that mostly lacks more vapour than it can hold.
    """
    larger, smaller = LARGER.get(known), {unit: other for other, unit in LARGER.items()}.get(known)
    share = np.full(0, np.nan) if temperature is None else vpd / saturation_pressure(temperature)
    share = share[np.isfinite(share)]
    if share.size < MIN_VALUES_TO_JUDGE:
        if larger is not None and high < 6:
            return Doubt(known, f"99.5 % of the values are below {high:.3g} hPa: they look like {larger}", larger)
        driest, middle = 1.0, 0.0
    else:
        middle, driest = (float(x) for x in np.quantile(share, [0.5, 0.995]))
    if larger is not None and driest < HUMID_ALWAYS:
        looks = f"99.5 % of the values are below {driest:.2g} of saturation at TA: they look like {larger}"
        return Doubt(known, looks, larger)
    if high > 120 or middle > 1:
        looks = f"values reach {high:.4g} hPa, more than the air can take up: the factor is 10 or 100"
        return Doubt(known, looks, smaller)
    return None


def saturation_pressure(temperature: NDArray[np.float64]) -> NDArray[np.float64]:
    """Saturation vapour pressure (hPa) over water at a temperature (degC; Magnus, Alduchov and Eskridge 1996)."""
    return 6.1094 * np.exp(17.625 * temperature / (temperature + 243.04))


#: Unit of VPD -> the one that its values are in if they look too small.
LARGER = {"Pa": "hPa", "mbar": "kPa", "hPa": "kPa"}

#: VPD as a share of saturation that some step of any series reaches.
HUMID_ALWAYS = 0.1

#: Fewer measured values than these say nothing about a unit.
MIN_VALUES_TO_JUDGE = 100

#: Of longer series every second, third, ... value is looked at.
MAX_VALUES_TO_JUDGE = 50_000
