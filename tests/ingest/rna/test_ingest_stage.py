"""The verb: what it writes, unique names, equal bytes, labels as a source of their own, how it fails."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages import artifacts, manifest
from stages.errors import DataError, UsageError
from stages.ingest.rna import labels as labelling
from stages.ingest.rna import parts
from stages.ingest.rna.config import MfeLabels
from stages.ingest.rna.molecules import Molecule
from stages.ingest.rna.records import LABELS, MOLECULES, RECORDS, frames
from stages.ingest.rna.schema import LABEL_COLUMNS, MFE, MOLECULE_COLUMNS, RECORD_COLUMNS
from stages.ingest.rna.stage import Params, run
from stages.rna.structure import parse
from tests.ingest.rna.layouts import STOCKHOLM, written


def params(format_: Any = "stockholm", labels: Any = None) -> None:
    rna = {"sets": {"lab": {"path": "raw", "format": format_, "gate": {}}}, "labels": labels or {}}
    Path("params.yaml").write_text(yaml.safe_dump({"rna": rna}))


def ingest() -> Path:
    run(Params.read(name="rna", key="lab"), name="rna", key="lab")
    return artifacts.ingested("rna", "lab")


@pytest.fixture
def project(workspace: Path) -> Path:
    params()
    written(workspace / "raw", "a.stk", STOCKHOLM)
    return workspace


def test_ingest_writes_one_folder(project: Path, stages: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = stages("ingest", "rna@lab", cwd=project)
    assert result.returncode == 0, result.stderr
    assert "lab: 3 molecules, 1 families, 3 structures" in result.stdout
    assert "note: lab: 2 pairs (22.2%) were lost to gaps" in result.stderr
    folder = project / "data/ingested/rna/lab"
    names = ["labels.parquet", "manifest.json", "molecules.parquet", "records.parquet", "set.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    molecules = pl.read_parquet(folder / "molecules.parquet")
    assert molecules.columns == list(MOLECULE_COLUMNS)
    assert molecules.schema == pl.Schema(MOLECULES)
    assert molecules["record_id"].to_list() == ["lab/short/1-9", "lab/a-longer/2-11", "lab/gappy/1-7"]
    assert molecules["sequence"].to_list() == ["GGCAAAGCC", "GGCUAAAGCC", "CUAAAGC"]
    assert molecules["pairs_left"].to_list() == [[0, 1, 2], [0, 1, 2], [0]]
    assert molecules["pairs_right"].to_list() == [[8, 7, 6], [9, 8, 7], [5]]
    assert molecules["pair_order"].to_list() == [[0, 0, 0], [0, 0, 0], [0]]
    assert molecules["position_map"].to_list()[1:] == [None, [2, 3, 4, 5, 6, 7, 9]]
    records = pl.read_parquet(folder / "records.parquet")
    assert records.columns == list(RECORD_COLUMNS)
    assert records.schema == pl.Schema(RECORDS)
    assert records["group"].to_list() == ["lab/RF00001"] * 3
    assert records["sha256"][0] == hashlib.sha256(b"GGCAAAGCC").hexdigest()
    assert records.select("length", "gaps_removed", "pairs", "pairs_lost", "minimum_loop").rows() == [
        (9, 1, 3, 0, 3),
        (10, 0, 3, 0, 4),
        (7, 3, 1, 2, 4),
    ]
    assert records["canonical_share"].to_list() == [1, 1, 1]
    labels = pl.read_parquet(folder / "labels.parquet")
    assert labels.schema == pl.Schema(LABELS)
    assert labels.height == 0
    described = json.loads((folder / "set.json").read_text())
    assert (described["families"], described["split_unit"], described["structures"]) == (1, "family", "family")
    assert described["labels"] == {}
    assert described["simulated"] is False
    assert str(project) not in (folder / "set.json").read_text()
    assert manifest.read(folder) is not None


def test_equal_files_give_equal_bytes(project: Path) -> None:
    params(labels={"mfe": {}})
    first = artifacts.sha256_tree(ingest())
    assert artifacts.sha256_tree(ingest()) == first


def test_a_record_of_a_sequence_alone(project: Path) -> None:
    params("fasta")
    written(project / "raw", "a.fa", ">m\nacgNT\n")
    row = pl.read_parquet(ingest() / "records.parquet").row(0, named=True)
    assert row | {"sha256": None} == dict.fromkeys(RECORD_COLUMNS) | {
        "record_id": "lab/m",
        "group": "lab/m",
        "set": "lab",
        "name": "m",
        "source_file": "a.fa",
        "length": 5,
        "unknown_bases": 1,
        "gaps_removed": 0,
        "gc_share": 0.5,
        "has_structure": False,
    }


def test_a_known_unpaired_molecule_has_empty_pairs_and_one_without_structure_none(workspace: Path) -> None:
    made = [
        Molecule("none", "ACGU", "f", 1),
        Molecule("unpaired", "ACGU", "f", 2, pairs=parse("...."), structure_source="file"),
        Molecule("paired", "GAAAC", "f", 3, pairs=parse("(...)"), structure_source="file"),
        Molecule("empty", "", "f", 4, pairs=parse(""), structure_source="file"),
    ]
    molecules, records = frames(made, "lab")
    assert molecules["pairs_left"].to_list() == [None, [], [0], []]
    assert molecules["pair_order"].to_list() == [None, [], [0], []]
    assert records["pairs"].to_list() == [None, 0, 1, 0]
    assert records["canonical_share"].to_list() == [None, None, 1, None]
    assert records["minimum_loop"].to_list() == [None, None, 3, None]
    assert records["gc_share"].to_list() == [0.5, 0.5, 0.4, None]


class TestNames:
    def ids(self, folder: Path, names: list[str]) -> list[str]:
        made = parts.Parts(folder / "parts", "k")
        for name in names:
            made.add(Molecule(name, "ACGU", "f", 1))
        made.write(folder / "molecules.parquet", folder / "records.parquet")
        assert not made.folder.exists()
        of_records = pl.read_parquet(folder / "records.parquet")["record_id"].to_list()
        assert pl.read_parquet(folder / "molecules.parquet")["record_id"].to_list() == of_records
        return [str(each) for each in of_records]

    def test_a_repeated_name_gets_a_number(self, workspace: Path) -> None:
        assert self.ids(workspace, ["a", "b", "a", "a"]) == ["k/a", "k/b", "k/a#2", "k/a#3"]

    def test_a_name_that_ends_like_a_number_does_not_clash(self, workspace: Path) -> None:
        assert self.ids(workspace, ["a#2", "a", "a", "a#2"]) == ["k/a#2#1", "k/a", "k/a#2", "k/a#2#2"]

    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
    @given(names=st.lists(st.sampled_from(["a", "b", "a#2", "b#2#1", "c"]), min_size=1, max_size=12))
    def test_identifiers_are_unique_in_parts_of_any_size(
        self, workspace: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(parts, "PART_ROWS", 3)
            patched.setattr(parts, "SORTED", 2)
            few = self.ids(workspace, names)
        assert len(set(few)) == len(names)
        assert few == self.ids(workspace, names)

    def test_repeated_names_are_noted(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        written(project / "raw", "b.stk", STOCKHOLM)
        described = json.loads((ingest() / "set.json").read_text())
        assert described["repeated_names"] == 3
        assert "names that stood before: 3 (such as short/1-9, a-longer/2-11, gappy/1-7)" in capsys.readouterr().err


class TestLabels:
    def test_they_lie_beside_the_structures_of_the_files(self, project: Path) -> None:
        params(labels={"mfe": {"max_length": 9}})
        folder = ingest()
        labels = pl.read_parquet(folder / "labels.parquet")
        assert labels.columns == list(LABEL_COLUMNS)
        assert labels["record_id"].to_list() == ["lab/short/1-9", "lab/gappy/1-7"]
        assert labels["source"].unique().to_list() == [MFE]
        assert labels["pairs_left"].to_list()[0] == [0, 1, 2]
        assert [len(each) for each in labels["paired_probability"]] == [9, 7]
        said = json.loads((folder / "set.json").read_text())["labels"][MFE]
        assert said["library"].startswith("ViennaRNA 2.")
        assert (said["molecules"], said["max_length"]) == (2, 9)
        assert "structure_source" not in labels.columns

    def test_processes_give_the_answers_of_one(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        random = np.random.default_rng(0)
        rows = [f">m{index}\n{''.join(random.choice(list('ACGU'), 30))}\n" for index in range(12)]
        params("fasta", {"mfe": {}})
        written(project / "raw", "a.fa", "".join([*rows, *rows[:2]]))
        alone = pl.read_parquet(ingest() / "labels.parquet")
        monkeypatch.setattr(labelling, "FEW", 1)
        monkeypatch.setattr(labelling, "ROWS", 5)
        monkeypatch.setattr(labelling.os, "sched_getaffinity", lambda _: {0, 1})
        assert pl.read_parquet(ingest() / "labels.parquet").equals(alone)
        assert alone.height == 14

    def test_a_large_family_gives_a_part_of_its_different_molecules(self, workspace: Path) -> None:
        made = [Molecule(f"m{index}", "ACGU" * (1 + index // 2), "f", 1, family="big") for index in range(10)]
        made += [Molecule("other", "GG", "f", 1, family="small"), Molecule("none", "", "f", 1, family="small")]
        frames(made, "k")[1].write_parquet("records.parquet")
        chosen = labelling.chosen(Path("records.parquet"), MfeLabels(per_family=2, max_length=16))
        assert chosen.to_list().count(True) == 5
        assert chosen.to_list()[-2:] == [True, False]
        assert chosen.to_list()[8:10] == [False, False]
        assert chosen.to_list()[0:8:2] == chosen.to_list()[1:8:2]
        assert labelling.chosen(Path("records.parquet"), MfeLabels(max_length=16)).sum() == 9


class TestRefusals:
    def test_nothing_is_written_when_a_file_is_bad(self, project: Path) -> None:
        ingest()
        before = artifacts.sha256_tree(artifacts.ingested("rna", "lab"))
        written(project / "raw", "b.stk", STOCKHOLM.replace("<<<____>>>", "<<<____>>_"))
        with pytest.raises(DataError, match=r"b\.stk, record 'RF00001', line 13"):
            ingest()
        assert artifacts.sha256_tree(artifacts.ingested("rna", "lab")) == before

    @pytest.mark.parametrize(
        ("format_", "fault"),
        [
            (
                "stokholm",
                "rna.sets.lab.format.reader: found 'stokholm'; no reader has this name; did you mean 'stockholm'?",
            ),
            ({"reader": "stockholm", "family": "x"}, "rna.sets.lab.format.family is not a known key"),
            ({"reader": "fasta", "family": "("}, "rna.sets.lab.format.family: found '('; is no regular expression"),
            ({"reader": "fasta", "family": "x"}, "must have a group (?P<family>...)"),
        ],
    )
    def test_a_format_that_does_not_exist(self, project: Path, format_: Any, fault: str) -> None:
        params(format_)
        with pytest.raises(UsageError) as error:
            ingest()
        assert fault in str(error.value)

    def test_a_label_source_that_does_not_exist(self, project: Path) -> None:
        params(labels={"mef": {}})
        with pytest.raises(UsageError, match=r"rna\.labels\.mef is not a known key; did you mean 'mfe'"):
            ingest()
