"""FASTA: letters, line ends, gaps, block boundaries, and broken files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.ingest.rna import fasta
from tests.ingest.rna.layouts import opened, read, read_text, told, written


class TestLetters:
    def test_lower_case_and_t(self, tmp_path: Path) -> None:
        molecules = read_text(tmp_path, "a.fa", ">m1 with a description\nacg\nuT\n", "fasta")
        assert [(each.name, each.sequence, each.line) for each in molecules] == [("m1", "ACGUU", 1)]
        assert molecules[0].pairs is None
        assert molecules[0].position_map is None

    def test_ambiguous_codes_stay_and_x_is_n(self, tmp_path: Path) -> None:
        assert read_text(tmp_path, "a.fa", ">m\nRYSWKMBDHVNX\n", "fasta")[0].sequence == "RYSWKMBDHVNN"

    def test_gaps_are_taken_out_with_a_map_of_positions(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "a.afa", ">t\n..GCGUGC...GCA\n", "fasta")[0]
        assert molecule.sequence == "GCGUGCGCA"
        assert molecule.gaps_removed == 5
        assert molecule.position_map is not None
        assert molecule.position_map.tolist() == [2, 3, 4, 5, 6, 7, 11, 12, 13]

    def test_the_map_counts_columns_of_the_row_over_its_lines(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "a.fa", ">t\nAC-\n-G U\n", "fasta")[0]
        assert molecule.sequence == "ACGU"
        assert molecule.position_map is not None
        assert molecule.position_map.tolist() == [0, 1, 4, 5]

    def test_a_record_without_gaps_beside_one_with_gaps_has_no_map(self, tmp_path: Path) -> None:
        first, second = read_text(tmp_path, "a.fa", ">a\nAC-G\n>b\nACGU\n", "fasta")
        assert first.position_map is not None
        assert (second.sequence, second.position_map, second.gaps_removed) == ("ACGU", None, 0)

    def test_a_record_without_bases_is_read_and_noted(self, tmp_path: Path) -> None:
        found = opened(written(tmp_path, "a.fa", ">a\n>b\nAC\n>c\n---\n"), "fasta")
        assert [each.sequence for each in found.molecules()] == ["", "AC", ""]
        assert found.notes.texts == ["a.fa: has records without any base, which the gate judges"]


class TestFiles:
    def test_windows_and_old_line_ends(self, tmp_path: Path) -> None:
        expected = read_text(tmp_path, "a.fa", ">a x\nACG\nU\n\n>b\nGG\n", "fasta")
        for name, end in (("b.fa", b"\r\n"), ("c.fa", b"\r")):
            content = b">a x\nACG\nU\n\n>b\nGG\n".replace(b"\n", end)
            found = read_text(tmp_path, name, content, "fasta")
            assert [(*each[:2], each.line) for each in found] == [(*each[:2], each.line) for each in expected]

    def test_no_line_end_at_the_end(self, tmp_path: Path) -> None:
        assert [each.sequence for each in read_text(tmp_path, "a.fa", ">a\nAC\n>b\nGG", "fasta")] == ["AC", "GG"]
        assert [each.sequence for each in read_text(tmp_path, "b.fa", ">a\nAC\n>b", "fasta")] == ["AC", ""]

    def test_empty_lines_and_a_mark_of_utf8_before_the_first_record(self, tmp_path: Path) -> None:
        found = read_text(tmp_path, "a.fa", b"\xef\xbb\xbf\n\n>a\nAC\n>b\nGG\n", "fasta")
        assert [(each.name, each.line) for each in found] == [("a", 3), ("b", 5)]

    def test_names_in_latin1_and_in_utf8(self, tmp_path: Path) -> None:
        assert read_text(tmp_path, "a.fa", ">caf\xe9\nAC\n".encode("latin-1"), "fasta")[0].name == "caf\xe9"
        assert read_text(tmp_path, "b.fa", ">caf\xe9\nAC\n".encode(), "fasta")[0].name == "caf\xe9"

    def test_a_compressed_file(self, tmp_path: Path) -> None:
        written(tmp_path, "a.fa.gz", gzip.compress(b">a\nACGU\n"))
        assert read(tmp_path, "fasta")[0].sequence == "ACGU"

    def test_files_of_a_folder_in_order_of_their_names(self, tmp_path: Path) -> None:
        for name in ("b.fasta", "in/a.fna", "notes.txt"):
            written(tmp_path, name, f">{Path(name).stem}\nAC\n")
        found = opened(tmp_path, "fasta")
        assert found.files == ("b.fasta", "in/a.fna")
        assert [(each.name, each.source_file) for each in found.molecules()] == [("b", "b.fasta"), ("a", "in/a.fna")]

    def test_files_by_a_pattern(self, tmp_path: Path) -> None:
        written(tmp_path, "x/odd.name", ">a\nAC\n")
        assert len(read(tmp_path, {"reader": "fasta", "files": "*/odd.*"})) == 1

    def test_a_name_that_stands_twice_is_read_twice(self, tmp_path: Path) -> None:
        assert [each.name for each in read_text(tmp_path, "a.fa", ">a\nAC\n>a\nGG\n", "fasta")] == ["a", "a"]

    def test_a_family_in_the_name(self, tmp_path: Path) -> None:
        block = {"reader": "fasta", "family": r"^(?P<family>[^|]+)\|"}
        found = read_text(tmp_path, "a.fa", ">tRNA|x\nAC\n>other\nGG\n", block)
        assert [(each.family, each.family_name) for each in found] == [("tRNA", "tRNA"), (None, None)]

    def test_a_molecule_of_a_hundred_thousand_bases(self, tmp_path: Path) -> None:
        content = b">long\n" + b"ACGUACGUAC\n" * 10_000 + b">short\nAC\n"
        long, short = read_text(tmp_path, "a.fa", content, "fasta")
        assert (len(long.sequence), short.line) == (100_000, 10_002)

    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
    @given(
        records=st.lists(
            st.tuples(st.text("abc", min_size=1, max_size=3), st.text("ACGU-\n", max_size=30)), min_size=1
        ),
        block=st.integers(1, 40),
    )
    def test_where_blocks_end_does_not_matter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: list[tuple[str, str]], block: int
    ) -> None:
        file = written(tmp_path, "a.fa", "".join(f">{name}\n{body}\n" for name, body in records))
        whole = read(file, "fasta")
        with monkeypatch.context() as patched:
            patched.setattr(fasta, "BLOCK", block)
            parts = read(file, "fasta")
        assert [each[:4] for each in parts] == [each[:4] for each in whole]
        assert [each.sequence for each in whole] == [body.replace("\n", "").replace("-", "") for _, body in records]
        for one, other in zip(whole, parts, strict=True):
            np.testing.assert_array_equal(one.position_map, other.position_map)


class TestBroken:
    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("", "line 1: found an empty file; expected a line that begins with '>' and a name"),
            ("ACGU\n", "line 1: found 'ACGU'; expected a line that begins with '>'"),
            (
                ">a\nACGU\n>\nGG\n",
                "line 3: found '>' without a name; expected a name behind '>'. Give the record a name",
            ),
            (
                ">a\nAC\nACGU>b\nGG\n",
                "record 'a', line 3: found '>' at position 5, inside a line; expected '>' at the start of a line only. "
                "Two records are glued together",
            ),
            (
                ">a\nAC\n>b\nACGE\n",
                "record 'b', line 4: found 'E' at position 4 of the sequence; expected A, C, G, U or T",
            ),
            (">a\nAC1\n", "record 'a', line 2: found '1' at position 3 of the sequence"),
            (">a\nACGU\n((.))\n", "record 'a', line 3: found '(' at position 1 of the sequence"),
            (">a\nAC&GU\n", "record 'a', line 2: found '&' at position 3: two strands; expected one molecule a record"),
            (">a\nAC\xe9\n", "found '\xc3' at position 3 of the sequence"),
        ],
    )
    def test_each_fault_names_its_place(self, tmp_path: Path, content: str, fault: str) -> None:
        said = told(written(tmp_path, "a.fa", content), "fasta")
        assert f"{tmp_path}/a.fa" in said
        assert fault in said

    def test_a_structure_in_the_file_points_to_the_other_format(self, tmp_path: Path) -> None:
        said = told(written(tmp_path, "a.fa", ">a\nACGU\n((.))\n"), "fasta")
        assert "If the file holds structures too, its format is another (dotbracket, bprna_st)." in said

    def test_a_compressed_file_cut_short(self, tmp_path: Path) -> None:
        content = gzip.compress(b">a\n" + b"ACGU" * 1000)
        assert "found a damaged gzip file" in told(written(tmp_path, "a.fa.gz", content[:-12]), "fasta")

    def test_no_file(self, tmp_path: Path) -> None:
        written(tmp_path, "a.stk", "x")
        assert "found a.stk; expected files that end in .fa, .fasta" in told(tmp_path, "fasta")
        assert "expected files *.seed" in told(tmp_path, {"reader": "fasta", "files": "*.seed"})
        assert "found no such file or folder" in told(tmp_path / "none", "fasta")
