from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.errors import GateStopped, UsageError
from stages.report.gate import read_gate
from stages.validate import expectations
from stages.validate.rna import division, stage
from stages.validate.rna.divided import COLUMNS
from stages.validate.rna.stage import Params
from tests.validate.rna.fakes import families, hairpin, ingested, molecule, params

pytestmark = pytest.mark.usefixtures("workspace")
FILES = {"pdb": {"train": "train.fas", "test": "test.fas"}}


def run(params: Params) -> dict[str, Any]:
    stage.run(params, name="rna", key="")
    return written()


def written() -> dict[str, Any]:
    summary: dict[str, Any] = artifacts.read_json(artifacts.validated("rna") / "summary.json")
    return summary


def table(name: str) -> pl.DataFrame:
    return artifacts.read_table(artifacts.validated("rna") / f"{name}.parquet").collect()


def two_sets() -> Params:
    """Families, one copy and one molecule that is no hairpin; and six of which a test one equals a training one."""
    held = families(20, 4)
    bad = molecule("short", "GGAAACC", "((...))", family="RF001", rna_type="type 1", evidence="Predicted")
    ingested("rfam", [*held, held[0]._replace(name="copy"), bad])
    random = np.random.default_rng(6)
    alone = [molecule(f"{n}ABC", hairpin(random), source_file="train.fas" if n % 2 else "test.fas") for n in range(6)]
    alone[2] = alone[2]._replace(sequence=alone[1].sequence)
    ingested("pdb", alone)
    return params("rfam", "pdb", gate={"copies": "quarantine"}, published=FILES)


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the two sets went through the gate."""
    folder = tmp_path_factory.mktemp("passed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(two_sets())
    return folder


@pytest.fixture
def sets(passed: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Work in that folder; its summary. Only for reading."""
    monkeypatch.chdir(passed)
    return written()


def test_accepted_and_quarantined_are_all_that_was_ingested(sets: dict[str, Any]) -> None:
    assert (sets["outcome"], sets["noun"]) == ("pass with quarantine", "molecule")
    assert (sets["ingested"], sets["accepted"], sets["quarantined"]) == (88, 85, 3)
    assert sets["sites"]["rfam"]["failed"] == {"length": 1, "copy of a molecule": 1}
    verdict = table("verdict")
    assert verdict["record_id"].n_unique() == 88
    assert verdict.filter(pl.col("outcome") == "quarantined").select("record_id", "expectation", "reason").rows() == [
        ("pdb/2ABC", "copy of a molecule", "pdb/2ABC has the sequence and the structure of pdb/1ABC"),
        ("rfam/copy", "copy of a molecule", "rfam/copy has the sequence and the structure of rfam/m0.0"),
        ("rfam/short", "length", "rfam/short has 7 bases; the gate allows 8 to 5000"),
    ]


def test_every_molecule_stands_once_in_every_split_and_a_refused_one_in_no_part(sets: dict[str, Any]) -> None:
    found = table("splits")
    assert found.columns == list(COLUMNS)
    assert not found.select("record_id", "split").is_duplicated().any()
    for name, count in (("transfer-0", 88), ("identity", 88), ("as_published", 6)):
        mine = found.filter(pl.col("split") == name)
        assert mine.height == count
        refused = mine.join(table("verdict").filter(pl.col("outcome") == "quarantined"), on="record_id", how="semi")
        assert refused["part"].null_count() == refused.height == mine["part"].null_count()
    assert sets["leakage"] == {"transfer-0": [], "identity": [], "as_published, pdb": []}


def test_the_report_reads_the_summary(sets: dict[str, Any]) -> None:
    gate = read_gate(artifacts.validated("rna"))
    assert (gate.domain, gate.noun, gate.seed) == ("rna", "molecule", 0)
    assert gate.sites["rfam"].about.variables["sequence"].unit == "base"
    assert gate.sites["rfam"].about.variables["pairs"].long_name == "structure by family"
    parts = gate.splits["transfer-0"].parts
    assert sum(part.records for part in parts.values()) == 85
    assert parts["external"].groups == ["5 molecules without a family"]
    assert sum(part.share or 0 for part in parts.values()) == pytest.approx(1)
    assert sum(tally.records for tallies in gate.tallies.values() for tally in tallies) == 3


def test_strata_of_evidence_stand_in_the_summary(sets: dict[str, Any]) -> None:
    notes = sets["sites"]["rfam"]["about"]["notes"]
    assert "Predicted structures: 13 families, 52 accepted molecules" in notes
    assert "Published structures: 7 families, 28 accepted molecules" in notes
    parts = sets["splits"]["transfer-0"]["parts"]
    assert sum(part["evidence"].get("Published", {"families": 0})["families"] for part in parts.values()) == 7


def test_json_holds_null_and_the_pages_need_no_network(sets: dict[str, Any]) -> None:
    folder = artifacts.validated("rna")
    json.loads((folder / "summary.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    pages = sorted(path.name for path in (folder / "docs").glob("*.html"))
    assert pages == ["index.html", "pdb.html", "rfam.html"]
    for page in (folder / "docs").glob("*.html"):
        text = page.read_text()
        assert not re.search(r"https?:|<script|@import|url\(", text)
        for target in re.findall(r'href="([^"]+)"', text):
            assert (folder / "docs" / target).is_file()
    assert "Split as_published, pdb" in (folder / "docs" / "index.html").read_text()


def test_the_saved_suite_gives_the_verdict_that_was_written(sets: dict[str, Any]) -> None:
    judged = stage.judge_set("rfam", params("rfam"))
    saved = json.loads((artifacts.validated("rna") / "docs" / "suites" / "rfam.json").read_text())
    assert expectations.judge(judged.records, saved) == [r for r in judged.results if r.rule.name != "columns"]


def test_equal_inputs_give_equal_bytes(sets: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = artifacts.sha256_tree(artifacts.validated("rna"))
    monkeypatch.chdir(tmp_path)
    run(two_sets())
    assert artifacts.sha256_tree(artifacts.validated("rna")) == before


def test_too_many_refused_molecules_stop_and_the_verdict_is_kept() -> None:
    held = families(4, 3)
    ingested("rfam", [*held, *(each._replace(name=f"{each.name}.copy") for each in held[:6])])
    with pytest.raises(GateStopped, match=r"rfam: 6 of 18 records are quarantined \(33\.3%\); the gate allows 20\.0%"):
        run(params("rfam"))
    assert table("verdict").filter(pl.col("outcome") == "quarantined").height == 6
    assert written()["outcome"] == "stop"
    assert run(params("rfam", gate={"max_quarantined": 0.5}))["outcome"] == "pass with quarantine"


def test_sound_sets_pass() -> None:
    ingested("rfam", families(12, 2))
    assert run(params("rfam"))["outcome"] == "pass"


def test_a_leak_stops_the_gate_and_a_published_one_is_only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    parent = hairpin(random)
    near = "CCCCCC".join([parent[:STEM_END], parent[STEM_END + 6 :]])
    ingested("pdb", [molecule("a", parent, source_file="train.fas"), molecule("b", near, source_file="test.fas")])
    summary = run(params("pdb", published=FILES))
    assert summary["outcome"] == "pass"
    assert summary["leakage"]["as_published, pdb"][0].startswith("1 of 1 test molecules reach 80% identity")
    # If the clusters were wrong, the audit by neighbours would find it.
    monkeypatch.setattr(division, "clusters", lambda sequences, *, threshold: np.arange(len(sequences)))
    ingested("rfam", families(12, 4))
    with pytest.raises(
        GateStopped, match=r"the split identity leaks: rfam/m.* identity with rfam/m.*, which is in train"
    ):
        run(params("rfam"))


STEM_END = 12


def test_empty_and_absent_sets() -> None:
    with pytest.raises(UsageError, match=r"rna\.sets\.rfam of params\.yaml was not ingested"):
        run(params("rfam"))
    ingested("rfam", [])
    with pytest.raises(GateStopped, match=r"rfam/records\.parquet has 0 records; the gate asks for at least 1"):
        run(params("rfam"))
    assert table("splits").columns == list(COLUMNS)
    with pytest.raises(GateStopped, match=r"rna\.sets in params\.yaml names no set"):
        run(params())


def test_a_malformed_table_stops_and_every_row_is_refused() -> None:
    folder = ingested("rfam", families(3, 2))
    frame = artifacts.read_table(folder / "records.parquet").collect()
    artifacts.write_table(folder / "records.parquet", frame.drop("family"))
    with pytest.raises(GateStopped, match=r"column family of rfam/records\.parquet is missing; the gate expects text"):
        run(params("rfam"))
    assert written()["quarantined"] == 6
    assert table("splits")["part"].null_count() == 12
