"""Stockholm: the consensus on each row, wrapped blocks, structures of a row's own, and broken files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.ingest.rna import alignment
from tests.ingest.rna.layouts import STOCKHOLM, opened, read, read_text, shape, told, written

ROWS = STOCKHOLM.splitlines(keepends=True)


def changed(old: str, new: str) -> str:
    assert old in STOCKHOLM
    return STOCKHOLM.replace(old, new)


def wrapped(width: int) -> str:
    """The same family with its columns in blocks."""
    head, rest = STOCKHOLM.split("short/1-9", 1)
    lines = ("short/1-9" + rest).splitlines()[:-1]
    parts = [line.rsplit(None, 1) for line in lines]
    blocks = [
        "\n".join(f"{name}  {row[start : start + width]}" for name, row in parts) for start in range(0, 10, width)
    ]
    return head + "\n\n".join(blocks) + "\n//\n"


class TestFamily:
    def test_the_consensus_on_each_row(self, tmp_path: Path) -> None:
        short, longer, gappy = read_text(tmp_path, "a.stk", STOCKHOLM, "stockholm")
        assert [each.name for each in (short, longer, gappy)] == ["short/1-9", "a-longer/2-11", "gappy/1-7"]
        assert [each.sequence for each in (short, longer, gappy)] == ["GGCAAAGCC", "GGCUAAAGCC", "CUAAAGC"]
        assert [shape(each) for each in (short, longer, gappy)] == ["(((...)))", "(((....)))", "(....)."]
        assert [each.pairs_lost for each in (short, longer, gappy)] == [0, 0, 2]
        assert [each.gaps_removed for each in (short, longer, gappy)] == [1, 0, 3]
        assert longer.position_map is None
        assert gappy.position_map is not None
        assert gappy.position_map.tolist() == [2, 3, 4, 5, 6, 7, 9]
        assert {each.structure_source for each in (short, longer, gappy)} == {"consensus"}
        assert [each.line for each in (short, longer, gappy)] == [10, 11, 12]

    def test_what_is_known_of_the_family(self, tmp_path: Path) -> None:
        molecule = read_text(tmp_path, "a.stk", STOCKHOLM, "stockholm")[0]
        assert (molecule.family, molecule.family_name) == ("RF00001", "5S_rRNA")
        assert (molecule.evidence, molecule.rna_type) == ("Published", "Gene; rRNA")

    @pytest.mark.parametrize("width", [1, 3, 5, 9])
    def test_wrapped_blocks_with_names_of_different_length(self, tmp_path: Path, width: int) -> None:
        whole = read_text(tmp_path, "a.stk", STOCKHOLM, "stockholm")
        parts = read_text(tmp_path, "b.stk", wrapped(width), "stockholm")
        assert [each[:2] for each in parts] == [each[:2] for each in whole]
        assert [shape(each) for each in parts] == [shape(each) for each in whole]
        for one, other in zip(whole, parts, strict=True):
            np.testing.assert_array_equal(one.position_map, other.position_map)

    def test_pseudoknots_in_letters(self, tmp_path: Path) -> None:
        content = changed("<<<____>>>", "<<AA_>>_aa").replace("GGC.AAAGCC", "GGCUAAAGCC")
        molecule = read_text(tmp_path, "a.stk", content, "stockholm")[0]
        assert shape(molecule) == "(([[.)).]]"
        assert molecule.order is not None
        assert molecule.order.tolist() == [0, 0, 1, 1]

    def test_a_structure_of_a_row_of_its_own_comes_before_the_consensus(self, tmp_path: Path) -> None:
        content = changed("a-longer", "#=GR short/1-9 SS  (.......).\na-longer")
        short, longer, _ = read_text(tmp_path, "a.stk", content, "stockholm")
        assert (shape(short), short.structure_source, short.pairs_lost) == ("(......).", "file", 0)
        assert longer.structure_source == "consensus"

    def test_without_a_structure_there_are_no_pairs_and_not_none(self, tmp_path: Path) -> None:
        content = "".join(line for line in ROWS if not line.startswith("#=GC"))
        molecules = read_text(tmp_path, "a.stk", content, "stockholm")
        assert {(each.pairs is None, each.structure_source, each.pairs_lost) for each in molecules} == {
            (True, None, None)
        }
        unpaired = read_text(tmp_path, "b.stk", changed("<<<____>>>", "::::::::::"), "stockholm")
        assert [len(each.pairs) if each.pairs is not None else -1 for each in unpaired] == [0, 0, 0]

    def test_latin1_in_a_comment_and_windows_line_ends(self, tmp_path: Path) -> None:
        content = changed("A title", "Caf\xe9").encode("latin-1").replace(b"\n", b"\r\n")
        assert len(read_text(tmp_path, "a.stk", content, "stockholm")) == 3

    def test_a_family_without_name_is_named_after_the_file(self, tmp_path: Path) -> None:
        content = "".join(line for line in ROWS if not line.startswith("#=GF"))
        found = opened(written(tmp_path, "mine.sto", content + content), "stockholm")
        assert [each.family for each in found.molecules()] == ["mine#1"] * 3 + ["mine#2"] * 3
        assert found.notes.texts == [
            "mine.sto: has alignments without AC and ID; each is a family with the file's name and its number"
        ]

    def test_several_families_and_files(self, tmp_path: Path) -> None:
        written(tmp_path, "b.stk", STOCKHOLM + "\n" + changed("RF00001", "RF00005"))
        written(tmp_path, "a.stk", changed("RF00001", "RF00003"))
        assert [each.family for each in read(tmp_path, "stockholm")][::3] == ["RF00003", "RF00001", "RF00005"]

    def test_a_row_of_gaps_is_read_and_noted(self, tmp_path: Path) -> None:
        found = opened(written(tmp_path, "a.stk", changed("--CUAAAG.C", "----------")), "stockholm")
        molecule = list(found.molecules())[2]
        assert (molecule.sequence, molecule.pairs_lost, shape(molecule)) == ("", 3, "")
        assert found.notes.texts == ["a.stk: has rows of gaps alone, which the gate judges"]

    def test_a_molecule_of_a_hundred_thousand_bases(self, tmp_path: Path) -> None:
        consensus = "<" * 40_000 + "." * 20_000 + ">" * 40_000
        content = f"# STOCKHOLM 1.0\n#=GF ID x\nm {'ACGUA' * 20_000}\n#=GC SS_cons {consensus}\n//\n"
        molecule = read_text(tmp_path, "a.stk", content, "stockholm")[0]
        assert molecule.pairs is not None
        assert molecule.pairs.shape == (40_000, 2)

    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
    @given(rows=st.lists(st.text("ACgu-.", min_size=9, max_size=9), min_size=1, max_size=6), letters=st.integers(1, 30))
    def test_any_gaps_rows_many_at_a_time_or_few(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], letters: int
    ) -> None:
        lines = "".join(f"m{index} {row}\n" for index, row in enumerate(rows))
        content = f"# STOCKHOLM 1.0\n#=GF ID x\n{lines}#=GC SS_cons ((.A.))a.\n//\n"
        with monkeypatch.context() as patched:
            patched.setattr(alignment, "BLOCK", letters)
            molecules = read_text(tmp_path, "a.stk", content, "stockholm")
        consensus = [(0, 6), (1, 5), (3, 7)]
        for row, molecule in zip(rows, molecules, strict=True):
            kept = [column for column, letter in enumerate(row) if letter not in "-."]
            assert molecule.sequence == "".join(row[column] for column in kept).upper()
            assert molecule.pairs is not None
            both = [pair for pair in consensus if pair[0] in kept and pair[1] in kept]
            assert [(kept[left], kept[right]) for left, right in molecule.pairs.tolist()] == both
            assert molecule.pairs_lost == 3 - len(both)


class TestBroken:
    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("", "found an empty file; expected '# STOCKHOLM 1.0'"),
            (">a\nACGU\n", "line 1: found '>a'; expected '# STOCKHOLM 1.0', with which an alignment begins"),
            (
                STOCKHOLM.replace("//\n", "") + STOCKHOLM,
                "family RF00001 (from line 1), line 15: found another header '# STOCKHOLM' before '//'; expected one "
                "family in an alignment. Two records are glued together: put '//' and '# STOCKHOLM 1.0' between them.",
            ),
            (
                changed("#=GF SQ   3", "#=GF AC   RF00002"),
                "family RF00001 (from line 1), line 8: found a second AC, 'RF00002'; expected one family in an "
                "alignment",
            ),
            (STOCKHOLM.replace("//\n", ""), "family RF00001, line 14: found the end of the file; expected '//'"),
            (
                "# STOCKHOLM 1.0\n#=GF AC RF00009\n#=GC SS_cons <>\n//\n",
                "record 'RF00009', line 1: found no row: the family is empty; expected at least one row",
            ),
            (
                changed("GGC.AAAGCC", "GGC.AAAGC"),
                "record 'a-longer/2-11 of RF00001', line 11: found 10 columns in 1 blocks; expected 9 columns in 1 "
                "blocks, as in row 'short/1-9'. A line was lost, or two rows have one name",
            ),
            (
                changed("gappy/1-7 ", "short/1-9 "),
                "record 'a-longer/2-11 of RF00001', line 11: found 10 columns in 1 blocks; expected 20 columns in 2 "
                "blocks",
            ),
            (
                changed("<<<____>>>", "<<<____>>"),
                "record 'RF00001', line 13: found a structure of 9 columns, shorter than its rows; expected 10",
            ),
            (changed("<<<____>>>", "<<<____>>>>"), "found a structure of 11 columns, longer than its rows"),
            (
                changed("<<<____>>>", "<<<____>>_"),
                "record 'RF00001', line 13: found '<' at position 1 of the structure; expected a closing '>' behind it",
            ),
            (changed("<<<____>>>", "_<<____>>>"), "found '>' at position 10 of the structure; expected an opening '<'"),
            (
                changed("ggcTAAAgcc", "ggcTA*Agcc"),
                "record 'a-longer/2-11 of RF00001', line 11: found '*' at position 6",
            ),
            (changed("ggcTAAAgcc", "ggcTA AAgcc"), "record 'a-longer/2-11', line 11: found 2 fields behind the name"),
            (changed("ggcTAAAgcc", ""), "record 'a-longer/2-11', line 11: found a name without a row"),
            (
                changed("a-longer", "#=GR other SS  (.......).\na-longer"),
                "record 'other of RF00001', line 11: found a structure of a row that is not there",
            ),
            (
                changed("a-longer", "#=GR short/1-9 SS  (......)\na-longer"),
                "record 'short/1-9 of RF00001', line 11: found a structure of 8 columns, shorter than its rows",
            ),
        ],
    )
    def test_each_fault_names_its_place(self, tmp_path: Path, content: str, fault: str) -> None:
        said = told(written(tmp_path, "a.stk", content), "stockholm")
        assert f"{tmp_path}/a.stk" in said
        assert fault in said


@pytest.mark.peer
def test_rows_and_consensus_are_those_of_biopython(tmp_path: Path) -> None:
    peer = pytest.importorskip("Bio.AlignIO", reason="biopython is a peer (pip install -e .[peers])")
    file = written(tmp_path, "a.stk", wrapped(4) + STOCKHOLM)
    molecules = read(file, "stockholm")
    with file.open(encoding="latin-1") as stream:
        rows = [row for family in peer.parse(stream, "stockholm") for row in family]
    assert [each.name for each in molecules] == [row.id for row in rows]
    plain = [str(row.seq).replace("-", "").replace(".", "").upper().replace("T", "U") for row in rows]
    assert [each.sequence for each in molecules] == plain
