"""BEACON's csv with matrices and ArchiveII's csv: layouts, checks between columns, and broken files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from stages.ingest.rna import matrices
from tests.ingest.rna.layouts import opened, read, read_text, shape, told, written

ARCHIVE = """\
id,sequence,structure,base_pairs,len
5s_One-1,GGAAACC,((...)),"[[1, 7], [2, 6]]",7
tRNA_tdbR-2,aaT,...,[],3
"""


def matrix(structure: str, triangles: int = 2) -> np.ndarray:
    size = len(structure)
    made = np.zeros((size, size), dtype=np.float32)
    for left, right in matrices.structure.parse(structure).tolist():
        made[left, right] = 1
        made[right, left] = float(triangles == 2)
    return made


def beacon(folder: Path, triangles: int = 2) -> Path:
    rows = ["seq,file_name,data_name", "GGAAACC,bpRNA_1,TR0", "GCAAATU,bpRNA_2,TS0"]
    written(folder, "bpRNA.csv", "\n".join(rows) + "\n")
    for name, text in (("TR0/bpRNA_1", "((...))"), ("TS0/bpRNA_2", "(.....)")):
        (folder / name).parent.mkdir(exist_ok=True)
        np.save(folder / f"{name}.npy", matrix(text, triangles))
    return folder


class TestBeacon:
    @pytest.mark.parametrize("triangles", [1, 2])
    def test_a_matrix_of_each_sequence(self, tmp_path: Path, triangles: int) -> None:
        found = read(beacon(tmp_path, triangles), "beacon")
        assert [(each.name, each.sequence, shape(each)) for each in found] == [
            ("bpRNA_1", "GGAAACC", "((...))"),
            ("bpRNA_2", "GCAAAUU", "(.....)"),
        ]

    def test_matrices_are_looked_at_in_parts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(matrices, "BLOCK", 14)
        assert shape(read(beacon(tmp_path), "beacon")[0]) == "((...))"

    def test_one_split(self, tmp_path: Path) -> None:
        assert [each.name for each in read(beacon(tmp_path), {"reader": "beacon", "splits": ["TS0"]})] == ["bpRNA_2"]
        assert "found no row; expected a sequence of VL0" in told(tmp_path, {"reader": "beacon", "splits": ["VL0"]})

    def test_the_layout_of_the_structures_of_pdb(self, tmp_path: Path) -> None:
        written(tmp_path, "pdbRNA.csv", "seq,file_name,data_name\nGGAAACC,1abc,TR1\n")
        (tmp_path / "ct").mkdir()
        np.save(tmp_path / "ct" / "1abc.npy", matrix("((...))"))
        assert shape(read(tmp_path, "beacon")[0]) == "((...))"

    def test_no_matrix(self, tmp_path: Path) -> None:
        (beacon(tmp_path) / "TR0/bpRNA_1.npy").unlink()
        assert "bpRNA.csv, record 'bpRNA_1', line 2: found no TR0/bpRNA_1.npy beside the csv" in told(
            tmp_path, "beacon"
        )

    @pytest.mark.parametrize(
        ("made", "fault"),
        [
            (
                matrix("((..))"),
                "found an array of shape (6, 6), float32; expected numbers, (7, 7) for the sequence on line 2",
            ),
            (2 * matrix("((...))"), "bpRNA_1.npy: found values other than 0 and 1"),
            (np.eye(7), "line 2: found a base paired with itself at position 1"),
            (matrix("((...))") + matrix("(....).", 1), "line 2: found a base paired with 6 and 7 at position 1"),
        ],
    )
    def test_a_matrix_that_is_no_structure(self, tmp_path: Path, made: np.ndarray, fault: str) -> None:
        np.save(beacon(tmp_path) / "TR0/bpRNA_1.npy", made)
        assert fault in told(tmp_path, "beacon")

    def test_a_pickle_is_refused(self, tmp_path: Path) -> None:
        (beacon(tmp_path) / "TR0/bpRNA_1.npy").write_bytes(pickle.dumps([1]))
        assert "TR0/bpRNA_1.npy: found no array of numbers" in told(tmp_path, "beacon")

    def test_a_path_for_a_name_is_refused(self, tmp_path: Path) -> None:
        written(tmp_path, "bpRNA.csv", "seq,file_name\nAC,../../x\n")
        assert "found a file_name that is a path" in told(tmp_path, "beacon")


class TestArchiveII:
    def test_rows(self, tmp_path: Path) -> None:
        first, second = read_text(tmp_path, "ArchiveII.csv", ARCHIVE, "archiveii")
        assert (first.name, first.family, shape(first), first.line) == ("5s_One-1", "5s", "((...))", 2)
        assert (second.sequence, second.family, shape(second)) == ("AAU", "tRNA", "...")

    def test_a_table_of_splits_beside_it_is_noted(self, tmp_path: Path) -> None:
        written(tmp_path, "ArchiveII.csv", ARCHIVE)
        written(tmp_path, "folds.csv", "fold,id\n5s,x\n")
        found = opened(tmp_path, "archiveii")
        assert found.files == ("ArchiveII.csv",)
        assert found.notes.texts == ["folds.csv: passed over, it has no columns id, sequence, structure"]

    def test_pairs_may_be_left_out(self, tmp_path: Path) -> None:
        assert len(read_text(tmp_path, "a.csv", "id,sequence,structure\na,GAAAC,(...)\n", "archiveii")) == 1

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("fold,id\n5s,x\n", "line 1: found columns fold, id; expected columns id, sequence, structure"),
            ("", "found columns none"),
            ("id,sequence,structure\n", "found no row; expected a molecule"),
            (
                ARCHIVE.replace("[2, 6]", "[2, 5]"),
                "record '5s_One-1', line 2: found 2 base_pairs that are not the 2 of the structure",
            ),
            (ARCHIVE.replace("[2, 6]", "[2, 8]"), "found a pair with base 8 at position 8 of the structure"),
            (ARCHIVE.replace("[2, 6]", "2"), "found base_pairs that are no list of pairs"),
            (ARCHIVE.replace('",7', '",8'), "found a sequence of 7 letters; expected 8, as in the column len"),
            (
                ARCHIVE.replace(",3\n", "\n"),
                "record 'tRNA_tdbR-2', line 3: found 4 fields; expected 5, as in the header",
            ),
            (ARCHIVE.replace("aaT", ""), "record 'tRNA_tdbR-2', line 3: found an empty field sequence"),
            (ARCHIVE.replace("((...)),", "((..)),"), "found a structure of 6 characters, shorter than its sequence"),
        ],
    )
    def test_each_fault_names_its_place(self, tmp_path: Path, content: str, fault: str) -> None:
        said = told(written(tmp_path, "a.csv", content), "archiveii")
        assert f"{tmp_path}/a.csv" in said
        assert fault in said
