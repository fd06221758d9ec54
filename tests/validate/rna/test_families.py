from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from stages.validate.rna.families import PARTS, Part, divide, strata
from stages.validate.rna.settings import Transfer

SHARES: dict[Part, float] = {"pretrain": 0.5, "train": 0.25, "validation": 0.05, "test": 0.2}


def many() -> dict[str, str]:
    """433 families in seven strata of very different sizes, as Rfam's seed alignments have."""
    sizes = [162, 110, 65, 45, 30, 20, 1]
    return {f"RF{stratum}-{n}": f"type {stratum}" for stratum, size in enumerate(sizes) for n in range(size)}


@pytest.mark.parametrize("seed", range(5))
def test_parts_have_their_share_of_all_families_and_of_every_stratum(seed: int) -> None:
    families = many()
    found = divide(families, SHARES, seed=seed)
    assert found.keys() == families.keys()
    counted = Counter(found.values())
    for part in PARTS:
        assert abs(counted[part] - SHARES[part] * 433) < 2
        for stratum, size in Counter(families.values()).items():
            mine = sum(found[family] == part for family in families if families[family] == stratum)
            assert abs(mine - SHARES[part] * size) < 3


def test_the_order_of_the_families_does_not_matter_and_the_seed_does() -> None:
    families = many()
    backwards = dict(reversed(families.items()))
    assert divide(families, SHARES, seed=0) == divide(backwards, SHARES, seed=0)
    first, second = (divide(families, SHARES, seed=seed) for seed in (0, 1))
    moved = sum(first[family] != second[family] for family in families)
    # Two independent draws differ in 1 - sum of squared shares = 64.5 % of the families.
    assert 0.5 < moved / len(families) < 0.8


def test_a_family_that_is_alone_in_its_stratum_can_be_in_any_part() -> None:
    assert {divide(many(), SHARES, seed=seed)["RF6-0"] for seed in range(40)} >= {"pretrain", "train", "test"}


def test_a_part_without_a_share_has_no_family() -> None:
    shares = Transfer.model_validate(
        {"seeds": [0], "pretrain": 0.5, "downstream": {"train": 0.8, "validation": 0, "test": 0.2}}
    ).shares()
    assert shares == pytest.approx({"pretrain": 0.5, "train": 0.4, "validation": 0, "test": 0.1})
    assert set(divide(many(), shares, seed=0).values()) == {"pretrain", "train", "test"}


def test_no_family_is_no_error() -> None:
    assert divide({}, SHARES, seed=0) == {}


def test_the_stratum_is_what_most_molecules_say() -> None:
    table = pl.DataFrame(
        {
            "family": ["a", "a", "a", "b", None],
            "rna_type": ["tRNA", "tRNA", "rRNA", None, "tRNA"],
            "evidence": ["Published", "Published", "Published", "Predicted", None],
        }
    )
    assert strata(table) == {"a": "tRNA, Published", "b": "–, Predicted"}


def test_a_seed_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a seed stands twice"):
        Transfer.model_validate(
            {"seeds": [1, 1], "pretrain": 0.5, "downstream": {"train": 1, "validation": 0, "test": 0}}
        )
