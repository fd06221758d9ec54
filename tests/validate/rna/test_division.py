from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from stages.errors import UsageError
from stages.validate.rna import stage
from stages.validate.rna.divided import Divided
from tests.validate.rna.fakes import families, hairpin, ingested, molecule, mutated, params

pytestmark = pytest.mark.usefixtures("workspace")


def divided(*sets: str, **splits: Any) -> dict[str, Divided]:
    given = params(*sets, **splits)
    return {each.name: each for each in stage.divide([stage.judge_set(key, given) for key in sets], given.splits)}


def part_of(split: Divided) -> dict[str, str]:
    return dict(split.table.select("record_id", "part").iter_rows())


def test_families_are_whole_and_every_part_has_its_share() -> None:
    ingested("a", families(20, 4))
    split = divided("a")["transfer-0"]
    by_family = split.table.group_by("group").agg(pl.col("part").unique())
    assert by_family["part"].list.len().to_list() == [1] * 20
    counted = {part: size["families"] for part, size in split.described["parts"].items()}
    assert counted["pretrain"] in (9, 10, 11)
    assert sum(counted.values()) == 20
    assert counted["external"] == counted["excluded"] == 0
    assert split.leaks == []


def test_each_seed_is_a_division_of_its_own() -> None:
    ingested("a", families(20, 2))
    transfer = {"seeds": [0, 7], "pretrain": 0.5, "downstream": {"train": 0.5, "validation": 0.2, "test": 0.3}}
    found = divided("a", transfer=transfer)
    assert list(found) == ["transfer-0", "transfer-7", "identity"]
    assert part_of(found["transfer-0"]) != part_of(found["transfer-7"])
    assert divided("a")["transfer-0"].table.equals(found["transfer-0"].table)


def test_molecules_without_a_family_keep_pre_training_away() -> None:
    held = families(20, 4)
    ingested("a", held)
    pretrained = {r for r, part in part_of(divided("a")["transfer-0"]).items() if part == "pretrain"}
    relative = next(each for each in held if f"a/{each.name}" in pretrained)
    random = np.random.default_rng(9)
    ingested("pdb", [molecule("1ABC", mutated(relative.sequence, random, 5)), molecule("2ABC", hairpin(random))])
    split = divided("a", "pdb")["transfer-0"]
    parts = part_of(split)
    assert (parts["pdb/1ABC"], parts["pdb/2ABC"]) == ("external", "external")
    family = [f"a/{each.name}" for each in held if each.family == relative.family]
    assert [parts[name] for name in family] == ["excluded"] * 4
    reason = split.table.filter(pl.col("record_id") == family[0])["reason"][0]
    assert reason.startswith("pretrain: ")
    assert reason.endswith(" % identity with pdb/1ABC")
    (note,) = [note for note in split.described["notes"] if note.startswith("4 molecules of pretrain are excluded")]
    assert "a later part" in note
    assert "and 1 more in splits.parquet" in note


def test_relatives_in_another_family_leave_pre_training() -> None:
    held = families(20, 4)
    ingested("a", held)
    first = part_of(divided("a")["transfer-0"])
    tested = next(each for each in held if first[f"a/{each.name}"] == "test")
    learnt = next(each for each in held if first[f"a/{each.name}"] == "pretrain")
    hidden = molecule("hidden", mutated(tested.sequence, np.random.default_rng(4), 4), **_labels(learnt))
    ingested("a", [*held, hidden])
    split = divided("a")["transfer-0"]
    assert part_of(split)["a/hidden"] == "excluded"
    assert split.leaks == []
    assert part_of(split)[f"a/{tested.name}"] == "test"


def _labels(like: Any) -> dict[str, Any]:
    return {"family": like.family, "rna_type": like.rna_type, "evidence": like.evidence}


def test_short_molecules_are_excluded_and_named() -> None:
    ingested("a", [*families(12, 3), molecule("tiny", "GGGGAAAACCCC", "((((....))))", family="RF001")])
    found = divided("a")
    for name in ("transfer-0", "identity"):
        row = found[name].table.row(by_predicate=pl.col("record_id") == "a/tiny", named=True)
        assert (row["part"], row["reason"]) == ("excluded", "fewer than 35 bases")
        assert any(note.startswith("1 molecules of fewer than 35 bases are") for note in found[name].described["notes"])


def test_a_corpus_goes_to_pre_training_but_for_families_downstream() -> None:
    held = families(20, 4)
    ingested("a", held)
    first = part_of(divided("a")["transfer-0"])
    tested = next(each for each in held if first[f"a/{each.name}"] == "test")
    random = np.random.default_rng(11)
    ingested(
        "corpus",
        [
            molecule("free", hairpin(random), None),
            molecule("named", hairpin(random), None, family=tested.family),
            molecule("near", mutated(tested.sequence, random, 4), None),
        ],
    )
    transfer = {"seeds": [0], "pretrain": 0.5, "downstream": {"train": 0.5, "validation": 0.2, "test": 0.3}}
    split = divided("a", "corpus", transfer=transfer | {"corpora": ["corpus"]})["transfer-0"]
    parts = part_of(split)
    assert parts["corpus/free"] == "pretrain"
    assert (parts["corpus/named"], parts["corpus/near"]) == ("excluded", "excluded")
    assert {record: part for record, part in parts.items() if record.startswith("a/")} == first
    reason = split.table.filter(pl.col("record_id") == "corpus/named")["reason"][0]
    assert reason == "its family is in test"
    assert any("1 molecules of corpora are excluded" in note for note in split.described["notes"])


def test_without_families_everything_is_external() -> None:
    random = np.random.default_rng(2)
    ingested("a", [molecule(f"m{n}", hairpin(random)) for n in range(6)])
    split = divided("a")["transfer-0"]
    assert set(part_of(split).values()) == {"external"}
    assert split.described["notes"][0] == "no molecule has a family: nothing was divided"


def test_clusters_are_whole_over_all_sets() -> None:
    held = families(12, 4)
    ingested("a", held)
    random = np.random.default_rng(1)
    ingested("b", [molecule(f"b{n}", mutated(held[4 * n].sequence, random, 3)) for n in range(12)])
    split = divided("a", "b")["identity"]
    clusters = split.table.group_by("cluster").agg(pl.len(), pl.col("part").n_unique())
    assert clusters["len"].to_list() == [5] * 12
    assert clusters["part"].to_list() == [1] * 12
    assert split.described["notes"][0] == "12 clusters, the largest of 5 molecules"
    tested = split.described["parts"]["test"]["records"]
    assert split.described["notes"][-1].startswith(f"0 of {tested} test molecules have a neighbour of 75% identity or")
    assert split.leaks == []


def test_a_family_is_sampled_up_to_the_cap_in_a_drawn_order() -> None:
    ingested("a", families(12, 7))
    table = divided("a")["transfer-0"].table
    places = table.group_by("group").agg(pl.col("place").sort(), pl.col("sampled").sum(), pl.col("part").first())
    assert places["place"].to_list() == [list(range(7))] * 12
    learnt = places["part"].is_in(["pretrain", "train"])
    assert set(places.filter(learnt)["sampled"]) == {3}
    assert set(places.filter(~learnt)["sampled"]) == {7}
    assert table["place"].head(7).to_list() != list(range(7))
    everyone = divided("a", per_family=None)["transfer-0"].table
    assert everyone["sampled"].all()


def test_the_parts_of_the_authors_are_kept_and_audited() -> None:
    random = np.random.default_rng(8)
    parent, other = hairpin(random), hairpin(random)
    held = [
        molecule("a", parent, source_file="SRtrain.fas"),
        molecule("b", mutated(parent, random, 5), source_file="SRtest.fas"),
        molecule("c", other, source_file="SRtest.fas"),
        molecule("d", hairpin(random), source_file="more.fas"),
    ]
    ingested("pdb", held)
    globs = {"train": "SRtrain*", "test": "SRtest*"}
    split = divided("pdb", published={"pdb": globs})["as_published, pdb"]
    assert part_of(split) == {"pdb/a": "train", "pdb/b": "test", "pdb/c": "test", "pdb/d": None}
    assert split.table.select("split").unique().item() == "as_published"
    assert split.table["nearest"].to_list() == [None, "pdb/a", None, None]
    assert split.table["identity"][1] == pytest.approx(0.9)
    assert split.leaks == [
        "1 of 2 test molecules reach 80% identity with one of train (1 of them have 35 bases or more, where that is no "
        "chance), the nearest: pdb/b: 90.0% identity with pdb/a"
    ]
    assert not split.stops
    assert "in no part: more.fas" in split.described["notes"]


def test_files_that_are_not_there_are_an_error() -> None:
    ingested("pdb", [molecule("a", hairpin(np.random.default_rng(0)), source_file="train.fas")])
    with pytest.raises(
        UsageError, match=r"published\.pdb\.test of params.yaml is 'no\*', and no file .* has train.fas"
    ):
        divided("pdb", published={"pdb": {"train": "train*", "test": "no*"}})
    with pytest.raises(UsageError, match=r"puts train\.fas into train and into test; a file has one part"):
        divided("pdb", published={"pdb": {"train": "train*", "test": "*"}})
    with pytest.raises(
        UsageError, match=r"rna\.splits\.published of params\.yaml names bpdb; rna\.sets has no such set"
    ):
        divided("pdb", published={"bpdb": {"train": "*"}})
