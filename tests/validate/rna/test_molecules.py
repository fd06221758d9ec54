from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.ingest.rna.molecules import Molecule
from stages.ingest.rna.schema import RECORD_COLUMNS
from stages.validate.rna import molecules, stage
from stages.validate.rna.gate import Gate
from stages.validate.rna.stage import Judged
from tests.validate.rna.fakes import BRACKETS, STEM, families, hairpin, ingested, molecule, params

pytestmark = pytest.mark.usefixtures("workspace")
RANDOM = np.random.default_rng(3)
SOUND = hairpin(RANDOM)


def judged(*held: Molecule, gate: dict[str, Any] | None = None) -> Judged:
    """Twenty-four sound molecules of families, and the ones in question behind them."""
    ingested("a", [*families(8, 3), *held])
    return stage.judge_set("a", params("a", gate=gate))


def said(found: Judged, name: str) -> tuple[str, str | None, str | None]:
    row = found.verdict.row(by_predicate=pl.col("record_id") == f"a/{name}", named=True)
    return row["outcome"], row["reason"], row["warnings"]


def odd(sequence: str, brackets: str | None = BRACKETS, **fields: Any) -> Molecule:
    return molecule("odd", sequence, brackets, **({"family": "RF900", "evidence": "Published"} | fields))


def replaced(sequence: str, places: dict[int, str]) -> str:
    return "".join(places.get(place, base) for place, base in enumerate(sequence))


def test_sound_molecules_are_accepted_without_a_word() -> None:
    found = judged(odd(SOUND))
    assert found.judgement.outcome == "pass"
    assert found.verdict["warnings"].null_count() == 25


NO_STEM = "G" * STEM + "A" * 6 + "G" * STEM + "A" * 20
REFUSED: dict[str, tuple[Molecule, str]] = {
    "length": (odd("GGAAACC", "((...))"), "a/odd has 7 bases; the gate allows 8 to 5000"),
    "no base": (odd("", None), "a/odd has 0 bases; the gate allows 8 to 5000"),
    "unknown bases": (
        odd(replaced(SOUND, {40: "N", 41: "R", 42: "Y"})),
        "6.0% of the bases of a/odd are IUPAC codes of several; the gate allows 5.0%",
    ),
    "canonical pairs": (
        odd(NO_STEM),
        "0.0% of the pairs of a/odd are GC, AU or GU; the gate asks for at least 50.0%",
    ),
    "smallest loop": (
        odd("GGGGACCCC" + "A" * 30, "((((.))))" + "." * 30),
        "a pair of a/odd has 1 bases between its two; the gate asks for at least 2 bases",
    ),
    "pairs lost": (
        odd(SOUND, pairs_lost=13),
        "13 consensus pairs of a/odd (52.0%) are lost to gaps; the gate allows 50.0%",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_molecule_that_cannot_be_is_refused(name: str) -> None:
    bad, reason = REFUSED[name]
    outcome, reasons, _ = said(judged(bad), "odd")
    assert (outcome, reasons) == ("quarantined", reason)


WARNED: dict[str, tuple[Molecule, str]] = {
    "unknown": (
        odd(replaced(SOUND, {40: "N"})),
        "2.0% of the bases of a/odd are IUPAC codes of several; the gate warns above 0.0%",
    ),
    "loop": (
        odd("GGGGAACCCC" + "A" * 30, "((((..))))" + "." * 30),
        "a pair of a/odd has 2 bases between its two; the gate warns below 3 bases",
    ),
    "lost": (
        odd(SOUND, pairs_lost=4),
        "4 consensus pairs of a/odd (25.0%) are lost to gaps; the gate warns above 20.0%",
    ),
    "unpaired": (odd(SOUND, "." * len(SOUND)), "a/odd has a structure without any pair"),
    "family": (
        odd(SOUND, family=None),
        "a/odd has no family: it is in no part of the families that are divided",
    ),
}


@pytest.mark.parametrize("name", WARNED)
def test_a_molecule_that_is_odd_is_accepted_with_a_warning(name: str) -> None:
    bad, warning = WARNED[name]
    assert said(judged(bad), "odd") == ("accepted", None, warning)


def test_the_exact_limits_are_allowed() -> None:
    found = judged(odd("GGAAAACC", "((....))"), molecule("lost", SOUND, family="RF901", pairs_lost=STEM))
    assert said(found, "odd") == ("accepted", None, None)
    assert said(found, "lost")[0] == "accepted"


def test_a_molecule_without_a_structure_is_judged_by_its_sequence() -> None:
    assert said(judged(odd(SOUND, None)), "odd") == ("accepted", None, None)
    assert judged(odd(SOUND, None)).findings[-1] == "1 of 25 accepted molecules have no structure"


def test_the_later_copy_is_refused_and_another_structure_is_told() -> None:
    other = "." + BRACKETS[1 : 2 * STEM + 5] + "." + BRACKETS[2 * STEM + 6 :]
    held = (odd(SOUND), molecule("copy", SOUND, family="RF900"), molecule("other", SOUND, other, family="RF901"))
    found = judged(*held)
    assert said(found, "odd") == ("accepted", None, None)
    assert said(found, "copy")[:2] == ("quarantined", "a/copy has the sequence and the structure of a/odd")
    outcome, _, warnings = said(found, "other")
    assert outcome == "accepted"
    assert warnings == (
        "a/other has the sequence of a/odd and another structure | "
        "a/other of family RF901 has the sequence of a molecule of family RF900"
    )
    strict = judged(*held, gate={"copies": "report", "other_structure": "quarantine"})
    assert [said(strict, name)[0] for name in ("odd", "copy", "other")] == ["accepted", "accepted", "quarantined"]


def test_a_set_without_families_is_told_once() -> None:
    random = np.random.default_rng(5)
    ingested("a", [molecule(f"m{n}", hairpin(random)) for n in range(4)])
    found = stage.judge_set("a", params("a"))
    assert found.verdict["warnings"].null_count() == 4
    assert found.findings[0] == "4 of 4 accepted molecules have no family"
    strict = stage.judge_set("a", params("a", gate={"no_family": "quarantine"}))
    assert strict.judgement.quarantined == 4


def test_evidence_is_counted_by_stratum() -> None:
    found = judged()
    assert found.findings[:2] == [
        "Predicted structures: 5 families, 15 accepted molecules",
        "Published structures: 3 families, 9 accepted molecules",
    ]


def changed(column: str, value: Callable[[pl.Expr], pl.Expr], table: str = "molecules") -> tuple[str, str | None]:
    """Verdict on a molecule of which one column was changed after ingest."""
    folder = ingested("a", [*families(8, 3), odd(SOUND)])
    frame = artifacts.read_table(folder / f"{table}.parquet").collect()
    mine = pl.col("record_id") == "a/odd"
    new = pl.when(mine).then(value(pl.col(column)).cast(frame.schema[column])).otherwise(pl.col(column))
    artifacts.write_table(folder / f"{table}.parquet", frame.with_columns(new.alias(column)))
    return said(stage.judge_set("a", params("a")), "odd")[:2]


def test_what_does_not_belong_together_is_refused() -> None:
    outcome, reason = changed("sequence", lambda c: c.str.replace("G", "x"))
    assert outcome == "quarantined"
    assert reason is not None
    assert reason.startswith("a/odd has 1 letters that are no base: A, C, G, U or an IUPAC code of several | the seq")
    outcome, reason = changed("sequence", lambda c: c + "A")
    assert "molecules.parquet holds 51 bases of a/odd, records.parquet says 50" in str(reason)
    outcome, reason = changed("pairs_left", lambda c: c.list.head(11))
    assert "the lists of left and right ends and of orders of a/odd differ in length by 1" in str(reason)
    outcome, reason = changed("pairs_right", lambda c: c + 40)
    assert "12 pairs of a/odd are not of two of its 50 bases" in str(reason)
    outcome, reason = changed("pairs_right", lambda c: c * 0 + 29)
    assert "1 bases of a/odd stand in more than one pair" in str(reason)
    outcome, reason = changed("pairs", lambda c: c + 1, "records")
    assert "molecules.parquet and records.parquet differ by 1 in the number of pairs of a/odd" in str(reason)


def test_a_table_without_a_column_is_refused_as_a_whole() -> None:
    folder = ingested("a", families(2, 2))
    frame = artifacts.read_table(folder / "records.parquet").collect()
    artifacts.write_table(folder / "records.parquet", frame.drop("canonical_share"))
    found = stage.judge_set("a", params("a"))
    assert found.judgement.accepted == 0
    assert "column canonical_share of a/records.parquet is missing; the gate expects number" in found.judgement.stops[0]
    assert found.pool.is_empty()


def test_the_gate_expects_every_column_of_the_contract() -> None:
    assert list(molecules.columns()) == list(RECORD_COLUMNS)


def test_limits_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the shortest length 50 is above the longest 40"):
        Gate.model_validate({"length": [50, 40]})
    with pytest.raises(ValueError, match=r"the shortest length is 0; a molecule has a base"):
        Gate.model_validate({"length": [0, 40]})


def test_a_set_changes_only_the_limits_it_names() -> None:
    found = Gate(min_loop=0).overridden(Gate(min_canonical=0.1))
    assert (found.min_loop, found.min_canonical, found.max_lost) == (0, 0.1, 0.5)
