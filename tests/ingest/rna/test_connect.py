"""BPSEQ and CT: headings, several structures, and broken files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.rna.layouts import read, read_text, shape, told, written

BPSEQ = "1 G 5\n2 a 0\n3 A 0\n4 T 0\n5 C 1\n"
HAIRPIN = [("G", 5), ("A", 0), ("A", 0), ("U", 0), ("C", 1)]


def ct(header: str, bases: list[tuple[str, int]]) -> str:
    """One structure of a CT file."""
    size = len(bases)
    rows = [
        f"{index:5d} {letter} {index - 1:4d} {index + 1 if index < size else 0:4d} {partner:4d} {index:4d}"
        for index, (letter, partner) in enumerate(bases, start=1)
    ]
    return "\n".join([header, *rows]) + "\n"


class TestBpseq:
    def test_a_molecule(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "d.5.e.Homo.bpseq", "Filename: x\nOrganism: y\n\n" + BPSEQ, "bpseq")[0]
        assert (molecule.name, molecule.sequence, shape(molecule)) == ("d.5.e.Homo", "GAAUC", "(...)")
        assert molecule.line == 4

    def test_several_molecules_with_something_between(self, tmp_path: Path) -> None:
        found = read_text(tmp_path, "a.bpseq", f"{BPSEQ}\n{BPSEQ}# next\n{BPSEQ}", "bpseq")
        assert [(each.name, each.line) for each in found] == [("a", 1), ("a", 7), ("a", 13)]

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("# nothing\n", "found no base; expected a line for each base"),
            (
                BPSEQ + BPSEQ,
                "record 'a', line 6: found base number 1 again; expected one molecule, or a heading before the next "
                "one. Two records are glued together",
            ),
            (BPSEQ.replace("3 A 0\n", ""), "line 3: found base number 4; expected base number 3. Lines were lost"),
            (
                BPSEQ.replace("5 C 1", "5 C 2"),
                "line 1: found a pair with base 5, which pairs with base 2 at position 1",
            ),
            (
                BPSEQ.replace("5 C 1\n", ""),
                "line 1: found a pair with base 5 at position 1 of the structure; expected bases 1 to 4",
            ),
            (BPSEQ.replace("4 T 0", "4 T 4"), "line 4: found a base paired with itself at position 4"),
            (
                BPSEQ.replace("2 a 0", "2 a"),
                "line 2: found '2 a'; expected a number, a letter and the partner's number",
            ),
            (BPSEQ.replace("2 a 0", "2 ! 0"), "found '!' at position 2 of the sequence"),
        ],
    )
    def test_each_fault_names_its_place(self, tmp_path: Path, content: str, fault: str) -> None:
        said = told(written(tmp_path, "a.bpseq", content), "bpseq")
        assert f"{tmp_path}/a.bpseq" in said
        assert fault in said


class TestCt:
    @pytest.mark.parametrize(
        ("header", "name"),
        [
            ("5 ENERGY = -1.2 RD0260 tRNA of Homo", "RD0260"),
            ("5  dG = -1.2 [initially -3.4] tRNA", "tRNA"),
            ("5 ENERGY = -1.2", "a"),
            ("5", "a"),
            ("    5 my_name", "my_name"),
        ],
    )
    def test_the_name_in_the_header(self, tmp_path: Path, header: str, name: str) -> None:
        molecule = read_text(tmp_path, "a.ct", ct(header, HAIRPIN), "ct")[0]
        assert (molecule.name, molecule.sequence, shape(molecule)) == (name, "GAAUC", "(...)")

    def test_several_structures(self, tmp_path: Path) -> None:
        unpaired = [(letter, 0) for letter, _ in HAIRPIN]
        content = "# comment\n" + ct("5 dG = -1 x", HAIRPIN) + "\n" + ct("5 dG = 0 x", unpaired)
        assert [shape(each) for each in read_text(tmp_path, "a.ct", content, "ct")] == ["(...)", "....."]
        assert len(read_text(tmp_path, "a.ct", content, {"reader": "ct", "structures": "first"})) == 1

    def test_a_folder_of_files(self, tmp_path: Path) -> None:
        for name in ("b.ct", "a.CT"):
            written(tmp_path, name, ct("5", HAIRPIN))
        assert [each.name for each in read(tmp_path, "ct")] == ["a", "b"]

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("", "found an empty file; expected a header with the number of bases"),
            (ct("title 5", HAIRPIN), "record 'a', line 1: found 'title 5'; expected a header: the number of bases"),
            (
                ct("4 x", HAIRPIN).replace("    3    5    0    4", "    3    0    0    4"),
                "line 2: found a pair with base 5 at position 1 of the structure; expected bases 1 to 4",
            ),
            (ct("6 x", HAIRPIN), "record 'x', line 6: found the end of a strand at base 5 of 6; expected one strand"),
            (
                ct("4 x", [("G", 0)] * 4) + ct("", HAIRPIN),
                "record 'a', line 7: found the line of a base, number 1, where the structure above it is complete",
            ),
            (
                "\n".join(ct("5 x", HAIRPIN).splitlines()[:4]) + "\n" + ct("5 y", HAIRPIN),
                "record 'x', line 5: found '5 y' after 3 bases; expected a line for each of the 5 bases of the header",
            ),
            (
                "\n".join(ct("5 x", HAIRPIN).splitlines()[:4]),
                "record 'x', line 4: found the end of the file after 3 bases; expected 5, as its header says",
            ),
            (ct("5 x", [*HAIRPIN[:4], ("C", 2)]), "line 2: found a pair with base 5, which pairs with base 2"),
        ],
    )
    def test_each_fault_names_its_place(self, tmp_path: Path, content: str, fault: str) -> None:
        said = told(written(tmp_path, "a.ct", content), "ct")
        assert f"{tmp_path}/a.ct" in said
        assert fault in said
