"""Bug cases of RNA pipelines, from files as a user has them to what she is told.

The numbers are those of the project's list of cases. Each kind of fault is tested in breadth beside its module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from stages import artifacts
from stages.__main__ import main
from stages.rna import alphabet
from stages.rna.scores import averages, count
from stages.rna.structure import brackets, orders, parse

KEY = "cas"


@pytest.fixture(autouse=True)
def _in_workspace(workspace: Path) -> None:
    """Every case has a folder of its own."""
    (workspace / "raw").mkdir()


def ingest(content: str, format_: Any, name: str = "set.txt") -> int:
    """Write params.yaml and one file under raw/, run ``ingest``, and return the exit code."""
    Path("raw", name).write_text(content)
    block = format_ if isinstance(format_, dict) else {"reader": format_}
    sets = {KEY: {"path": "raw", "format": block | {"files": "*"}, "gate": {}}}
    Path("params.yaml").write_text(yaml.safe_dump({"rna": {"sets": sets, "labels": {}}}))
    return main(["ingest", f"rna@{KEY}"])


def molecules() -> pl.DataFrame:
    return pl.read_parquet(artifacts.ingested("rna", KEY) / "molecules.parquet")


def records() -> pl.DataFrame:
    return pl.read_parquet(artifacts.ingested("rna", KEY) / "records.parquet")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_43_gaps_are_taken_out_and_the_map_of_positions_is_kept() -> None:
    assert ingest(">t\n..GCGUGC...GCA\n", "fasta") == 0
    row = molecules().row(0, named=True)
    assert row["sequence"] == "GCGUGCGCA"
    assert row["position_map"] == [2, 3, 4, 5, 6, 7, 11, 12, 13]
    assert records()["gaps_removed"].to_list() == [5]


def test_44_lower_case_and_t_are_known_bases() -> None:
    assert ingest(">t\nacguT\n", "fasta") == 0
    assert molecules()["sequence"].to_list() == ["ACGUU"]
    assert records()["unknown_bases"].to_list() == [0]
    assert json.loads((artifacts.ingested("rna", KEY) / "set.json").read_text())["unknown_bases"] == 0


def test_45_five_bases_are_five_tokens_between_those_of_the_ends() -> None:
    assert alphabet.encode("ACGUU").shape == (5,)
    assert alphabet.decode(alphabet.encode("ACGUU", ends=True)) == "ACGUU"


def test_48_pages_of_brackets() -> None:
    assert ingest(">t\nGGAACCAAGGAACC\n((..AA..))..aa\n", "dotbracket") == 0
    row = molecules().row(0, named=True)
    pairs = [(left + 1, right + 1) for left, right in zip(row["pairs_left"], row["pairs_right"], strict=True)]
    assert pairs == [(1, 10), (2, 9), (5, 14), (6, 13)]


@pytest.mark.parametrize(
    ("sequence", "structure", "place"),
    [("GGAAC", "((..)", "'(' at position 1"), ("AAC", "..)", "')' at position 3")],
)
def test_48_a_bracket_without_partner_is_refused_with_its_position(
    sequence: str, structure: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ingest(f">t\n{sequence}\n{structure}\n", "dotbracket") == 1
    told = said(capsys)
    assert "raw/set.txt, record 't', line 3" in told
    assert place in told
    assert not artifacts.ingested("rna", KEY).exists()


def test_52_the_mean_over_molecules_and_the_pooled_score_are_two_numbers() -> None:
    nine = "(((((((((....)))))))))"
    scores = averages([count(parse("(...)"), parse("(...)")), count(parse(nine), parse("." * 22))])
    assert scores.mean_f1 == 0.5
    assert scores.pooled_f1 == pytest.approx(0.18, abs=0.005)


def test_53_of_two_crossing_helices_of_equal_length_the_first_to_open_is_nested() -> None:
    for text in ("((..[[..))..]]", "[[..((..]]..))", "AA..((..aa..))"):
        assert orders(parse(text)).tolist() == [0, 0, 1, 1]
        assert brackets(parse(text), 14) == "((..[[..))..]]"


def test_two_records_glued_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert ingest(">a\nACGU>b\nACGU\n", "fasta") == 1
    assert "record 'a', line 2: found '>' at position 5, inside a line" in said(capsys)


def test_a_structure_shorter_than_its_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    assert ingest(">a\nGGAAACC\n((...)\n", "dotbracket") == 1
    assert "record 'a', line 3: found a structure of 6 characters, shorter than its sequence" in said(capsys)


def test_an_empty_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert ingest("# STOCKHOLM 1.0\n#=GF AC RF00009\n//\n", "stockholm") == 1
    assert "record 'RF00009', line 1: found no row: the family is empty" in said(capsys)


def test_a_molecule_of_a_hundred_thousand_bases_is_ingested_and_not_folded() -> None:
    Path("raw/set.txt").write_text("")
    content = f">a\n{'GACUA' * 20_000}\n{'(' * 49_000}{'.' * 2_000}{')' * 49_000}\n"
    assert ingest(content, "dotbracket") == 0
    assert records().select("length", "pairs").row(0) == (100_000, 49_000)


def test_interleaved_rows_with_names_of_different_length() -> None:
    blocks = "short   GGC\nlonger-name GGC\n#=GC SS_cons <<<\n\nshort AAAGCC\nlonger-name AAAGCC\n#=GC SS_cons ...>>>\n"
    assert ingest(f"# STOCKHOLM 1.0\n#=GF ID x\n{blocks}//\n", "stockholm") == 0
    assert molecules()["sequence"].to_list() == ["GGCAAAGCC"] * 2
    assert molecules()["pairs_right"].to_list() == [[8, 7, 6]] * 2
