from __future__ import annotations

import numpy as np
import polars as pl

from stages.validate.rna import neighbours
from tests.validate.rna.fakes import letters

RANDOM = np.random.default_rng(0)
ANCESTOR = letters(RANDOM, 100)
STRANGER = letters(RANDOM, 100)


def with_substitutions(sequence: str, every: int) -> str:
    """Every n-th base replaced by the next of A, C, G, U."""
    return "".join("CGUA"["ACGU".index(base)] if place % every == 0 else base for place, base in enumerate(sequence))


def table(**part_and_sequence: tuple[str | None, str]) -> tuple[pl.DataFrame, pl.Series]:
    frame = pl.DataFrame(
        {
            "record_id": list(part_and_sequence),
            "sequence": [sequence for _, sequence in part_and_sequence.values()],
        }
    )
    return frame, pl.Series([part for part, _ in part_and_sequence.values()], dtype=pl.String)


def test_ten_percent_of_substitutions_are_ninety_percent_of_identity() -> None:
    frame, part = table(a=("train", ANCESTOR), b=("test", with_substitutions(ANCESTOR, 10)))
    found = neighbours.near(frame.with_columns(part=part), ["test"], ["train"], at_least=0.8)
    assert found.rows() == [("b", "a", 0.9)]
    assert neighbours.leaks(found, 0.8, "which is in train") == ["b has 90.0% identity with a, which is in train"]
    assert neighbours.leaks(found, 0.91, "which is in train") == []
    assert neighbours.told(neighbours.worst(found)) == ["b: 90.0% identity with a"]


def test_of_two_that_are_too_near_the_one_of_the_earlier_part_is_excluded() -> None:
    near = with_substitutions(ANCESTOR, 10)
    for earlier, later in (
        ("pretrain", "train"),
        ("pretrain", "validation"),
        ("pretrain", "test"),
        ("pretrain", "external"),
        ("train", "validation"),
        ("train", "test"),
        ("validation", "test"),
    ):
        frame, part = table(one=(later, ANCESTOR), two=(earlier, near), other=(earlier, STRANGER))
        found = neighbours.excluded(frame, part, 0.8)
        assert found.rows() == [("two", "one", 0.9, earlier)], (earlier, later)


def test_tasks_are_not_kept_away_from_molecules_without_a_family() -> None:
    frame, part = table(one=("external", ANCESTOR), two=("train", with_substitutions(ANCESTOR, 10)))
    assert neighbours.excluded(frame, part, 0.8).is_empty()


def test_a_molecule_that_left_its_part_keeps_no_other_out() -> None:
    # 40 evenly spread substitutions of 200 in a: the chain goes from test over train to pretrain.
    start = letters(RANDOM, 200)
    middle = with_substitutions(start, 6)
    far = "".join("CGUA"["ACGU".index(b)] if place % 6 == 3 else b for place, b in enumerate(middle))
    frame, part = table(test=("test", start), train=("train", middle), pretrain=("pretrain", far))
    found = neighbours.excluded(frame, part, 0.8)
    assert found["record_id"].to_list() == ["train"]
    apart, part = table(train=("train", middle), pretrain=("pretrain", far))
    assert neighbours.excluded(apart, part, 0.8)["record_id"].to_list() == ["pretrain"]


def test_without_a_molecule_on_one_side_nothing_is_near() -> None:
    frame, part = table(a=("train", ANCESTOR), b=(None, ANCESTOR))
    assert neighbours.near(frame.with_columns(part=part), ["test"], ["train"], at_least=0).is_empty()
    assert neighbours.excluded(frame, part, 0.8).is_empty()
