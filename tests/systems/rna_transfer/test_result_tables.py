"""Tables of scores by stratum and family."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stages.systems.rna_transfer import geometry_tables, result_tables
from stages.systems.rna_transfer.comparisons import Comparison
from tests.systems.rna_transfer.answered import FAMILY_COUNT, MEMBERS, comparison, optimisation, quality
from tests.systems.rna_transfer.small import settings


@pytest.fixture(scope="module")
def found() -> Comparison:
    return comparison(quality(base_pairs={"fine_tuned": 0.8}))


def test_classes_are_half_open_and_named() -> None:
    names = [
        ("below 70 bases", -math.inf, 70),
        ("70 to below 100 bases", 70, 100),
        ("100 bases and more", 100, math.inf),
    ]
    assert result_tables.classes_of([100, 70], "bases") == names
    assert result_tables.classes_of([], "bases") == []


def test_the_classes_of_a_kind_hold_every_molecule_of_families_once(found: Comparison) -> None:
    strata = result_tables.strata_of(found, "base_pairs", [70], [0.7])
    whole = strata["all of families"]
    for kind in (["structure: Published", "structure: Predicted"], ["below 70 bases", "70 bases and more"],
                 ["below 70 % identity", "70 % identity and more"]):  # fmt: skip
        assert (np.sum([strata[name] for name in kind], axis=0) == whole).all(), kind
    assert not (strata["without a family (PDB)"] & whole).any()
    assert found.counted("base_pairs", whole) == (FAMILY_COUNT * MEMBERS, FAMILY_COUNT)


def test_the_arms_table_has_both_averages_and_says_what_never_pairing_gets(found: Comparison) -> None:
    table = result_tables.arms_table(found, "base_pairs")
    assert table.title == "Base pairs: arms (simulated)"
    assert [column for column in table.columns if column.startswith("F1")] == [
        "F1, mean over molecules", "F1, all pairs together",
    ]  # fmt: skip
    assert f"{FAMILY_COUNT * MEMBERS} test molecules of {FAMILY_COUNT} families" in table.caption
    assert "never pairs, right where nothing pairs): 0." in table.caption
    assert table.rows[0][-3:] == [None, None, None]  # the random arm has no difference to itself


def test_families_stand_in_the_order_of_the_benefit(found: Comparison) -> None:
    gains = [float(row[-1] or 0.0) for row in result_tables.family_table(found, "base_pairs").rows]
    assert len(gains) == FAMILY_COUNT
    assert gains == sorted(gains)


def test_one_size_and_length_have_no_table_of_sizes(found: Comparison) -> None:
    assert result_tables.axis_table(found) is None
    size = {"width": 16, "layers": 2, "heads": 2, "tokens": [300, 600]}
    table = result_tables.axis_table(comparison(quality(), train=settings(sizes={"small": size})))
    assert table is not None
    assert {row[3] for row in table.rows} == {300, 600}


def test_differences_name_the_winner_only_where_the_whole_interval_is_on_its_side(found: Comparison) -> None:
    rows = {tuple(row[:4]): row[-1] for row in result_tables.differences_table(found).rows}
    assert rows["base pairs", "fine-tuned", "random", "F1, mean over molecules"] == "fine-tuned"
    assert rows["base pairs", "frozen", "one-hot", "F1, mean over molecules"] == "open"


def test_what_was_not_measured_has_no_table(found: Comparison) -> None:
    nothing = optimisation()
    assert geometry_tables.sharpness_table(found, nothing) is None
    assert geometry_tables.distance_table(found, nothing) is None
    assert geometry_tables.similarity_table(found, nothing) is None
    told = geometry_tables.sharpness_table(
        found, optimisation(sharpness={"random": [8.0, 10.0], "fine_tuned": [4.0, 5.0]})
    )
    assert told is not None
    ratio = told.rows[1][told.columns.index("ratio")]
    assert ratio == pytest.approx(0.5)
