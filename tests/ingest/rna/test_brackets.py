"""Dot-bracket and bpRNA's st files: records, wrapped lines, energies, headers, and broken files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.rna.layouts import read, read_text, shape, told, written

ST = """\
#Name: bpRNA_CRW_1
#Length: 12
#PageNumber: 1
GGGGAAAACCCC
((((....))))
SSSSHHHHSSSS
NNNNNNNNNNNN
S1 1..4 "GGGG" 9..12 "CCCC"
H1 5..8 "AAAA" (4,9) G:C
segment1 4bp 1..4 GGGG 9..12 CCCC
"""


class TestDotBracket:
    def test_three_lines_a_record(self, tmp_path: Path) -> None:
        content = ">6U7Y [8],1.A.C.15.\nCCgaaAGT\n((....))\n\n>b\nAAA\n...\n"
        first, second = read_text(tmp_path, "a.fas", content, "dotbracket")
        assert (first.name, first.sequence, shape(first), first.line) == ("6U7Y", "CCGAAAGU", "((....))", 1)
        assert (second.name, shape(second), second.line) == ("b", "...", 5)
        assert (first.structure_source, first.family, first.position_map) == ("file", None, None)

    def test_pages_of_brackets_and_letters(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "a.dbn", ">a\nGGAACCAAGGAACC\n((..AA..))..aa\n", "dotbracket")[0]
        assert molecule.pairs is not None
        assert (molecule.pairs + 1).tolist() == [[1, 10], [2, 9], [5, 14], [6, 13]]
        assert molecule.order is not None
        assert molecule.order.tolist() == [0, 0, 1, 1]

    @pytest.mark.parametrize("energy", ["(-12.30)", "( -1.20)", "[ -1.40]", "{ -1.20 d=0.44}", "-3.4"])
    def test_an_energy_behind_the_structure(self, tmp_path: Path, energy: str) -> None:
        assert shape(read_text(tmp_path, "a.db", f">a\nGGAAACC\n((...)) {energy}\n", "dotbracket")[0]) == "((...))"

    def test_wrapped_lines(self, tmp_path: Path) -> None:
        content = ">a\nGGGG\nAAAA\nCCCC\n((((\n....\n))))\n>b\nGGGGAA\nAACCCC\n((((....))))\n"
        found = read_text(tmp_path, "a.dbn", content, "dotbracket")
        assert [(each.sequence, shape(each)) for each in found] == [("GGGGAAAACCCC", "((((....))))")] * 2

    def test_a_file_without_headers_has_the_name_of_the_file(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "mine.dbn", "# made by hand\nGGAAACC\r\n((...))\r\n", "dotbracket")[0]
        assert (molecule.name, shape(molecule)) == ("mine", "((...))")

    def test_headers_of_bprna(self, tmp_path: Path) -> None:
        content = "#Name: one\n#Length:  7,\n#PageNumber: 1\nGGAAACC\n((...))\n#Name: two\n#Length: 3\nAAA\n...\n"
        assert [each.name for each in read_text(tmp_path, "a.dbn", content, "dotbracket")] == ["one", "two"]

    def test_gaps_in_the_sequence_lose_their_pairs(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "a.dbn", ">a\nGG-AAA.CC\n(((...)))\n", "dotbracket")[0]
        assert (molecule.sequence, shape(molecule), molecule.pairs_lost) == ("GGAAACC", "((...))", 1)
        assert molecule.position_map is not None
        assert molecule.position_map.tolist() == [0, 1, 3, 4, 5, 7, 8]

    def test_a_molecule_of_a_hundred_thousand_bases(self, tmp_path: Path) -> None:
        content = f">a\n{'ACGUA' * 20_000}\n{'(' * 40_000}{'.' * 20_000}{')' * 40_000}\n"
        assert len(read_text(tmp_path, "a.dbn", content, "dotbracket")[0].sequence) == 100_000

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("\n", "found no record; expected a name, a sequence and a structure"),
            (
                ">a\nGGAAACC\n((..)\n",
                "record 'a', line 3: found a structure of 5 characters, shorter than its sequence; expected 7",
            ),
            (">a\nGGAAACC\n((...)).\n", "line 3: found a structure of 8 characters, longer than its sequence"),
            (
                ">a\nGGAAC\n((..)\n",
                "record 'a', line 3: found '(' at position 1 of the structure; expected a closing ')' behind it. "
                "Correct the structure",
            ),
            (">a\nGAC\n..)\n", "line 3: found ')' at position 3 of the structure; expected an opening '(' before it"),
            (
                ">a\nGGAAACC\n((...))\nGCAAAGC\n((...))\n",
                "record 'a', line 4: found another line, 'GCAAAGC', behind a complete structure; expected one sequence "
                "and one structure in a record. Two records are glued together",
            ),
            ("GGAAACC\n((...))\nGCAAAGC\n((...))\n", "record 'a', line 3: found another line, 'GCAAAGC'"),
            (">a\nGGAAACC((...))>b\nAAA\n", "found '(' at position 8 of the sequence"),
            (">a\nGGAAACC\n", "record 'a', line 1: found no structure; expected a sequence, and its structure"),
            (">a\n((...))\n.......\n>b\nAAA\n...\n", "found '(' at position 1 of the sequence"),
            (">a\n>b\nAAA\n...\n", "record 'a', line 1: found no sequence and no structure"),
            (">\nAAA\n...\n", "line 1: found a record without a name"),
            (">a\nAAA\n... note\n", "line 3: found 'note' behind a structure; expected an energy or nothing"),
            (
                "#Name: a\n#Length: 9\nAAA\n...\n",
                "line 1: found a sequence of 3 letters; expected 9, as its '#Length:' says",
            ),
            (">a\nGG&CC\n((&))\n", "record 'a', line 1: found '&' at position 3: two strands"),
        ],
    )
    def test_each_fault_names_its_place(self, tmp_path: Path, content: str, fault: str) -> None:
        said = told(written(tmp_path, "a.dbn", content), "dotbracket")
        assert f"{tmp_path}/a.dbn" in said
        assert fault in said


class TestSt:
    def test_sequence_and_brackets(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "bpRNA_CRW_1.st", ST, {"reader": "bprna_st", "family": "_(?P<family>[A-Z]+)_"})[
            0
        ]
        assert (molecule.name, molecule.sequence, shape(molecule)) == ("bpRNA_CRW_1", "GGGGAAAACCCC", "((((....))))")
        assert molecule.family == "CRW"

    def test_a_folder_of_files(self, tmp_path: Path) -> None:
        for name in "ab":
            written(tmp_path, f"{name}.st", ST.replace("CRW_1", name))
        assert [each.name for each in read(tmp_path, "bprna_st")] == ["bpRNA_a", "bpRNA_b"]

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            (ST.replace("SSSSHHHHSSSS", "SSSSHHHHSSS"), "line 6: found a line of 11 kinds of loops; expected 12"),
            (ST.replace("#Length: 12", "#Length: 13"), "line 1: found a sequence of 12 letters; expected 13"),
            ("\n".join(ST.splitlines()[:5]), "line 1: found 2 lines behind the header"),
            (ST + "\n".join(ST.splitlines()[3:]), "line 11: found 'GGGGAAAACCCC' among the loops"),
            (ST.replace("((((....))))", "((((....)))"), "line 5: found a structure of 11 characters, shorter"),
        ],
    )
    def test_each_fault_names_its_place(self, tmp_path: Path, content: str, fault: str) -> None:
        assert fault in told(written(tmp_path, "a.st", content), "bprna_st")
