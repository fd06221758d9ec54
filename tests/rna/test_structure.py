"""Structures as pairs: hand-computed ones, inverses, the order of pseudoknots and its ties."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.rna import structure
from stages.rna.structure import StructureError, brackets, checked, from_partners, orders, parse, partners, project


def pairs_of(*pairs: tuple[int, int]) -> np.ndarray:
    """Pairs as people of the field count them, from 1."""
    return np.array(pairs, dtype=np.int32).reshape(-1, 2) - 1


def from_one(pairs: np.ndarray) -> list[tuple[int, int]]:
    return [(left + 1, right + 1) for left, right in pairs.tolist()]


@st.composite
def any_structure(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Pairs that may cross in any way, and a length."""
    length = draw(st.integers(1, 24))
    order = draw(st.permutations(range(length)))
    count = draw(st.integers(0, length // 2))
    chosen = [sorted(order[2 * index : 2 * index + 2]) for index in range(count)]
    return checked(np.array(chosen, dtype=np.int64).reshape(-1, 2), length), length


def crosses(one: list[int], other: list[int]) -> bool:
    first, second = sorted([one, other])
    return first[0] < second[0] < first[1] < second[1]


class TestParse:
    def test_pages_of_different_brackets_may_cross(self) -> None:
        assert from_one(parse("((..AA..))..aa")) == [(1, 10), (2, 9), (5, 14), (6, 13)]

    def test_wuss_pairs_all_kinds_of_brackets_and_none_of_the_others(self) -> None:
        assert from_one(parse("<([{_-,:.~}])>")) == [(1, 14), (2, 13), (3, 12), (4, 11)]

    def test_an_unpaired_molecule_has_no_pairs_and_an_empty_one_neither(self) -> None:
        assert parse("....").shape == parse("").shape == (0, 2)

    @pytest.mark.parametrize(
        ("text", "position", "told"),
        [
            ("((..)", 1, "position 1: found '('; expected a closing ')' behind it"),
            ("..)", 3, "position 3: found ')'; expected an opening '(' before it"),
            ("(.A.).", 3, "position 3: found 'A'; expected a closing 'a' behind it"),
            ("..a", 3, "position 3: found 'a'; expected an opening 'A' before it"),
            ("(.]", 3, "position 3: found ']'; expected an opening '[' before it"),
            (".(*)", 3, "position 3: found '*'; expected one of .-_,:~ or a bracket"),
        ],
    )
    def test_a_bracket_without_partner_is_refused_with_its_position(self, text: str, position: int, told: str) -> None:
        with pytest.raises(StructureError) as error:
            parse(text)
        assert str(error.value) == told
        assert error.value.position == position - 1

    def test_a_hairpin_of_a_hundred_thousand_bases(self) -> None:
        pairs = parse("(" * 49_000 + "." * 2_000 + ")" * 49_000)
        assert len(pairs) == 49_000
        assert pairs[-1].tolist() == [48_999, 51_000]
        assert not orders(pairs).any()


class TestForms:
    @settings(deadline=None)
    @given(any_structure())
    def test_brackets_and_back(self, made: tuple[np.ndarray, int]) -> None:
        pairs, length = made
        np.testing.assert_array_equal(parse(brackets(pairs, length)), pairs)

    @settings(deadline=None)
    @given(any_structure())
    def test_partners_and_back(self, made: tuple[np.ndarray, int]) -> None:
        pairs, length = made
        np.testing.assert_array_equal(from_partners(partners(pairs, length)), pairs)

    def test_partners_by_hand(self) -> None:
        assert partners(parse("(..).()"), 7).tolist() == [3, -1, -1, 0, -1, 6, 5]

    def test_pairs_in_any_order_and_direction_have_one_normal_form(self) -> None:
        found = checked(np.array([[9, 0], [1, 8], [8, 1]]), 10)
        assert found.tolist() == [[0, 9], [1, 8]]
        assert found.dtype == np.int32

    @pytest.mark.parametrize(
        ("pairs", "told"),
        [
            ([[0, 5]], "position 6: found a pair with base 6; expected bases 1 to 5"),
            ([[2, 2]], "position 3: found a base paired with itself; expected a pair of two bases"),
            ([[0, 4], [1, 4]], "position 5: found a base paired with 1 and 2; expected one partner at most"),
        ],
    )
    def test_pairs_that_cannot_be(self, pairs: list[list[int]], told: str) -> None:
        with pytest.raises(StructureError) as error:
            checked(np.array(pairs), 5)
        assert str(error.value) == told

    @pytest.mark.parametrize(
        ("partner", "told"),
        [
            ([3, -1, -1, 1], "position 1: found a pair with base 4, which pairs with base 2"),
            ([3, -1, -1, -1], "position 1: found a pair with base 4, which pairs with none"),
            ([-1, 1, -1], "position 2: found a base paired with itself"),
            ([-1, 7, -1], "position 2: found a pair with base 8; expected bases 1 to 3"),
        ],
    )
    def test_partners_that_do_not_name_each_other(self, partner: list[int], told: str) -> None:
        with pytest.raises(StructureError) as error:
            from_partners(np.array(partner))
        assert str(error.value).startswith(told)

    def test_projection_loses_the_pairs_with_a_gap(self) -> None:
        kept = np.array([letter != "-" for letter in "GG-AAAC-C"])
        pairs, lost = project(parse("(((...)))"), kept)
        assert from_one(pairs) == [(1, 7)]
        assert lost == 2
        assert brackets(pairs, 7) == "(.....)"


class TestOrders:
    def test_nested_pairs_have_order_0(self) -> None:
        assert orders(parse("((.()..)())")).tolist() == [0] * 4

    def test_the_longer_of_two_crossing_helices_is_nested(self) -> None:
        assert brackets(parse("((...[[[..))...]]]"), 18) == "[[...(((..]]...)))"

    def test_of_two_crossing_helices_of_equal_length_the_one_that_opens_first_is_nested(self) -> None:
        assert orders(parse("((..AA..))..aa")).tolist() == [0, 0, 1, 1]
        assert orders(parse("AA..((..aa..))")).tolist() == [0, 0, 1, 1]

    def test_two_short_helices_outweigh_the_one_they_cross(self) -> None:
        # The middle helix has 3 pairs and crosses one of 2 on either side: 4 nested pairs are more than 3.
        assert brackets(parse("((..[[[..))...((..]]]..))"), 25) == "((..[[[..))...((..]]]..))"

    def test_three_helices_that_all_cross_have_three_orders(self) -> None:
        assert orders(parse("(((.[[.{.))).]].}")).tolist() == [0, 0, 0, 1, 1, 2]

    def test_crossing_the_pseudoknot_but_not_the_nested_part_is_order_0(self) -> None:
        assert orders(parse("(.[.).(.].)")).tolist() == [0, 1, 0]

    @settings(deadline=None)
    @given(any_structure())
    def test_no_two_pairs_of_one_order_cross(self, made: tuple[np.ndarray, int]) -> None:
        pairs, _ = made
        for level in range(int(orders(pairs).max(initial=0)) + 1):
            same = pairs[orders(pairs) == level].tolist()
            assert not any(crosses(one, other) for one, other in combinations(same, 2))

    @settings(deadline=None)
    @given(any_structure())
    def test_the_nested_part_is_as_large_as_any(self, made: tuple[np.ndarray, int]) -> None:
        pairs, _ = made
        listed = pairs.tolist()[:10]
        found = int(np.count_nonzero(orders(np.array(listed, dtype=np.int32).reshape(-1, 2)) == 0))
        largest = max(
            size
            for size in range(len(listed) + 1)
            for subset in combinations(listed, size)
            if not any(crosses(one, other) for one, other in combinations(subset, 2))
        )
        assert found == largest

    def test_a_knot_too_large_for_the_exact_search_takes_the_longest_helix_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(structure, "MAX_EXACT_HELICES", 1)
        assert brackets(parse("((..[[[..))...((..]]]..))"), 25) == "[[..(((..]]...[[..)))..]]"
        assert orders(parse("((..AA..))..aa")).tolist() == [0, 0, 1, 1]

    def test_more_orders_than_kinds_of_brackets_are_refused(self) -> None:
        crossing = np.array([[index, index + 40] for index in range(40)], dtype=np.int32)
        assert orders(crossing).max() == 39
        with pytest.raises(StructureError, match="a pseudoknot of order 39; expected at most 29"):
            brackets(crossing, 80)
