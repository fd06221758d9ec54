"""MATLAB files of versions 5 and 7.3."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from stages.errors import DataError
from stages.ingest.eeg import mat, mat_stream
from tests.ingest.eeg import layouts

MATRIX = np.arange(6.0).reshape(2, 3)


@pytest.fixture(params=["5", "7.3"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "both.mat"
    if request.param == "5":
        cell = np.empty((1, 2), dtype=object)
        cell[0] = ["one", "two"]
        scipy.io.savemat(file, {"m": MATRIX, "text": "label", "cell": cell}, do_compression=True)
    else:
        layouts.mat73(file, {"m": MATRIX, "text": "label", "cell": ["one", "two"]})
    return file


class TestBothVersions:
    def test_shapes_are_those_that_matlab_shows(self, both: Path) -> None:
        assert mat.variables(both)["m"] == (2, 3)
        np.testing.assert_array_equal(mat.numbers(both, "m"), MATRIX)

    def test_labels_are_numbers_or_texts(self, both: Path) -> None:
        assert mat.labels(both, "m") == [0, 1, 2, 3, 4, 5]
        assert mat.labels(both, "cell") == ["one", "two"]
        assert mat.labels(both, "text") == ["label"]

    def test_an_absent_variable_is_named_with_those_there(self, both: Path) -> None:
        with pytest.raises(DataError, match=r"found variables .*m.*; expected the variable 'n'"):
            mat.numbers(both, "n")

    def test_text_is_no_array_of_numbers(self, both: Path) -> None:
        with pytest.raises(DataError, match=r"variable text: found .*; expected an array of numbers"):
            mat.numbers(both, "text")

    def test_an_incomplete_file(self, both: Path) -> None:
        both.write_bytes(both.read_bytes()[:-120] if mat.version(both) == "7.3" else both.read_bytes()[:180])
        with pytest.raises(DataError, match=r"both.mat: found a damaged or incomplete MATLAB file"):
            mat.numbers(both, "m")


@pytest.mark.parametrize("content", [b"", b"subject,label\n", b"\0" * 200])
def test_another_file_under_the_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.mat"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"expected a MATLAB file of version 5 or 7\.3"):
        mat.variables(file)


def test_version_4_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "old.mat"
    scipy.io.savemat(file, {"m": MATRIX}, format="4")
    with pytest.raises(DataError, match="version 4 must be saved anew"):
        mat.variables(file)


class TestCellsOneByOne:
    @pytest.mark.parametrize("compressed", [True, False])
    def test_they_are_what_scipy_reads_at_once(self, tmp_path: Path, compressed: bool) -> None:
        file = layouts.dreamer5(tmp_path / "d.mat", layouts.dreamer_content(), compressed)
        whole = scipy.io.loadmat(file, squeeze_me=True, struct_as_record=False)["DREAMER"]
        assert mat_stream.count(file, "DREAMER", "Data") == 3
        streamed = list(mat_stream.cells(file, "DREAMER", "Data"))
        assert len(streamed) == 3
        for one, other in zip(streamed, whole.Data, strict=True):
            assert one.Gender == other.Gender == "male"
            np.testing.assert_array_equal(one.ScoreValence, other.ScoreValence)
            for mine, theirs in zip(one.EEG.stimuli, other.EEG.stimuli, strict=True):
                np.testing.assert_array_equal(mine, theirs)

    def test_from_a_later_cell_on(self, tmp_path: Path) -> None:
        file = layouts.dreamer5(tmp_path / "d.mat", layouts.dreamer_content())
        last = list(mat_stream.cells(file, "DREAMER", "Data", start=2))
        assert len(last) == 1
        np.testing.assert_array_equal(last[0].EEG.stimuli[3], layouts.eeg(203, 53, 14))

    def test_a_stream_cut_short(self, tmp_path: Path) -> None:
        file = layouts.dreamer5(tmp_path / "d.mat", layouts.dreamer_content())
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(DataError, match="it ends inside a variable"):
            list(mat_stream.cells(file, "DREAMER", "Data"))

    def test_another_variable_or_field(self, tmp_path: Path) -> None:
        file = layouts.dreamer5(tmp_path / "d.mat", layouts.dreamer_content())
        with pytest.raises(DataError, match="found variables DREAMER; expected a structure OTHER"):
            mat_stream.count(file, "OTHER", "Data")
        with pytest.raises(DataError, match=r"found fields Data, EEG_SamplingRate.*; expected a cell array Version"):
            mat_stream.count(file, "DREAMER", "Version")
