"""Intervals over families and seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stages.rna.structure import no_pairs, parse
from stages.systems.rna_transfer.estimates import (
    Cells,
    Interval,
    Term,
    amount,
    contrast,
    judged,
    over_seeds,
    point,
    ratio_over_seeds,
)
from stages.systems.rna_transfer.scored import pair_sums

HAIRPIN = parse("(...)")


def cells(right: list[bool], groups: list[str], seeds: list[int] | None = None) -> Cells:
    """Molecules of one pair that is found or not."""
    sums = pair_sums([HAIRPIN] * len(right), [HAIRPIN if found else no_pairs() for found in right])
    return Cells(sums, np.array(seeds or [0] * len(right)), np.array(groups))


def test_families_are_resampled_and_not_molecules() -> None:
    alike = cells([True] * 50 + [False] * 50, ["a"] * 50 + ["b"] * 50)
    apart = cells([True, False] * 50, [str(number) for number in range(100)])
    wide, narrow = contrast([Term(1, alike, "f1")]), contrast([Term(1, apart, "f1")])
    assert wide.value == narrow.value == 0.5
    assert (wide.low, wide.high) == (0, 1)
    assert 0.3 < narrow.low < 0.5 < narrow.high < 0.7


def test_equal_arms_differ_by_nothing_at_all_in_every_resample() -> None:
    one = cells([True, False, True], ["a", "b", "c"])
    assert contrast([Term(1, one, "f1"), Term(-1, one, "f1")]) == (0, 0, 0)


def test_a_gain_in_every_family_is_paired() -> None:
    groups = [str(number) for number in range(20) for _ in range(2)]
    better = cells([number % 4 < 3 for number in range(40)], groups)
    worse = cells([number % 4 < 2 for number in range(40)], groups)
    found = contrast([Term(1, better, "f1"), Term(-1, worse, "f1")])
    assert found.value == pytest.approx(0.25)
    assert found.low > 0


def test_a_seed_counts_as_much_as_another_whatever_its_molecules() -> None:
    both = cells([True, True, True, False], ["a", "a", "b", "a"], [0, 0, 0, 1])
    assert point([Term(1, both, "f1")]) == 0.5


def test_one_family_has_no_interval_and_nothing_has_nothing() -> None:
    found = contrast([Term(1, cells([True, False], ["a", "a"]), "f1")])
    assert found.value == 0.5
    assert math.isnan(found.low)
    empty = cells([True], ["a"])
    assert all(
        math.isnan(value)
        for value in contrast([Term(1, Cells(empty.sums_NC[:0], empty.seed_N[:0], empty.group_N[:0]), "f1")])
    )


def test_a_wider_level_gives_a_wider_interval() -> None:
    term = Term(1, cells([number % 3 == 0 for number in range(30)], [str(number) for number in range(30)]), "f1")
    usual, wide = contrast([term]), contrast([term], level=0.999)
    assert wide.low < usual.low < usual.high < wide.high


def test_three_seeds_have_the_interval_of_student() -> None:
    found = over_seeds([1.0, 2.0, 3.0, math.nan])
    assert found.value == 2
    assert found.high - found.value == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert math.isnan(over_seeds([1.0]).low)
    assert math.isnan(over_seeds([]).value)


def test_a_ratio_is_the_geometric_mean_and_leaves_out_what_has_no_logarithm() -> None:
    found = ratio_over_seeds([1.0, 4.0, -1.0], [2.0, 2.0, 2.0])
    assert found.value == pytest.approx(1.0)
    assert found.low == pytest.approx(1 / found.high)


def test_verdicts_and_words() -> None:
    assert judged(Interval(0.1, 0.01, 0.2)) == "shown"
    assert judged(Interval(0.1, 0.0, 0.2)) == "not shown"
    assert judged(Interval(0.1, math.nan, math.nan)) == "not tested"
    assert amount(Interval(0.1, 0.01, 0.2), "+") == "+0.1 [+0.01, +0.2]"
    assert amount(Interval(0.1, math.nan, math.nan)) == "0.1 (no interval)"
    assert amount(Interval(math.nan, math.nan, math.nan)) == "none"
