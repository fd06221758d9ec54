"""Numbers as a reader wants them: few digits, aligned decimals, a true minus sign, units kept with the value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MINUS = "\N{MINUS SIGN}"
THIN_SPACE = "\N{NARROW NO-BREAK SPACE}"
UNDEFINED = "\N{EN DASH}"

SIGNIFICANT = 3
#: Beyond these magnitudes a number is written with a power of ten.
SMALLEST, LARGEST = 1e-4, 1e7
#: Whole numbers of fewer digits are not grouped: 2013 is a year as often as a count.
GROUPED_FROM = 10_000

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | int | None, decimals: int | None = None) -> str:
    """Write a number with some decimals, or with three significant digits; an undefined one is a dash."""
    if value is None or not math.isfinite(value):
        return UNDEFINED
    if isinstance(value, int):
        return _grouped(value)
    if value != 0 and not SMALLEST <= abs(value) < LARGEST:
        return _power_of_ten(value)
    if decimals is None:
        decimals = decimals_for(abs(value))
    if decimals == 0 and abs(value) >= GROUPED_FROM:
        return _grouped(round(value))
    text = f"{abs(value):.{decimals}f}"
    return MINUS + text if value < 0 and float(text) != 0 else text


def _grouped(value: int) -> str:
    text = f"{abs(value):,}".replace(",", THIN_SPACE) if abs(value) >= GROUPED_FROM else str(abs(value))
    return MINUS + text if value < 0 else text


def _power_of_ten(value: float) -> str:
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa.replace('-', MINUS)} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def decimals_for(magnitude: float, significant: int = SIGNIFICANT) -> int:
    """Decimals that show a magnitude with some significant digits."""
    if magnitude == 0 or not math.isfinite(magnitude):
        return significant - 1
    return max(0, significant - 1 - math.floor(math.log10(magnitude)))


def interval_decimals(value: float | None, low: float | None, high: float | None) -> int:
    """Decimals for an estimate and its interval: two significant digits of the half-width."""
    known = [abs(bound) for bound in (value, low, high) if bound is not None and math.isfinite(bound)]
    plain = decimals_for(max(known, default=0.0))
    if low is None or high is None or not high > low:
        return plain
    return min(max(plain, 0) + 2, decimals_for((high - low) / 2, significant=2))


def column_decimals(cells: Iterable[object]) -> int | None:
    """One number of decimals for a column, or None where its magnitudes lie too far apart for one."""
    sizes = [abs(cell) for cell in cells if isinstance(cell, float) and math.isfinite(cell) and cell != 0]
    if not sizes:
        return 1
    if min(sizes) < SMALLEST or max(sizes) >= LARGEST or max(sizes) / min(sizes) > 1e3:
        return None
    close = max(sizes) / min(sizes) <= 10  # 4.88 and 10.3 are to be compared digit by digit
    least = decimals_for(min(sizes), significant=SIGNIFICANT if close else 2)
    return min(max(decimals_for(max(sizes)), least), _written(sizes))


def _written(sizes: Sequence[float]) -> int:
    """Decimals the numbers themselves have: 0.5 and 1.0 need one, not three."""
    return max(len(f"{size:.6f}".rstrip("0").partition(".")[2]) for size in sizes)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers that divide an axis into about so many steps; all lie inside it."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]
