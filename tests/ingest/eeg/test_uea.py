"""Files of the UEA archive."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ingest.eeg import layouts
from tests.ingest.eeg.layouts import every_trial, opened, told

BLOCK = {"reader": "uea", "rate": 255.0, "blocks": 2}


def trials(count: int, label: str, first: int = 0) -> list[tuple[np.ndarray, str]]:
    return [(np.round(layouts.eeg(first + number, 3, 7), 2), label) for number in range(count)]


def folder(path: Path) -> Path:
    layouts.uea(path / "Made_TRAIN.ts", [*trials(4, "long"), *trials(6, "short", 10)])
    layouts.uea(path / "Made_TEST.ts", [*trials(2, "long", 20), *trials(2, "short", 30)])
    return path


class TestUea:
    def test_blocks_are_contiguous_and_have_every_class(self, tmp_path: Path) -> None:
        corpus = opened(folder(tmp_path), BLOCK).corpus
        assert corpus.subjects == ("train-1", "train-2", "test-1", "test-2")
        assert corpus.split_unit == "block"
        rows = {subject: [trial.trial for trial in held] for subject, held in opened(tmp_path, BLOCK)}
        assert rows == {"train-1": [1, 2, 5, 6, 7], "train-2": [3, 4, 8, 9, 10], "test-1": [1, 3], "test-2": [2, 4]}

    def test_every_trial_is_there_once_with_its_values(self, tmp_path: Path) -> None:
        found = every_trial(folder(tmp_path), BLOCK)
        assert len({trial.trial_id for trial in found}) == len(found) == 14
        last = found[-1]
        assert (last.source_file, last.trial, last.label, last.label_value) == ("Made_TEST.ts", 4, "short", 1)
        assert last.signal is not None
        np.testing.assert_array_equal(last.signal(), np.round(layouts.eeg(31, 3, 7), 2).astype(np.float32))

    def test_counts_stay_counts_whatever_their_size(self, tmp_path: Path) -> None:
        layouts.uea(tmp_path / "Eyes_TRAIN.ts", [(np.full((2, 5), 4300.0) + row, "0") for row in range(2)])
        trial = every_trial(tmp_path, BLOCK)[0]
        assert trial.unit == "counts"
        assert trial.signal is not None
        assert trial.signal()[0, 0] == 4300.0

    def test_channels_and_labels_may_be_named(self, tmp_path: Path) -> None:
        named = {**BLOCK, "channels": ["FZ", "A1-Cz", "x"], "labels": {"long": "long blink"}}
        corpus = opened(folder(tmp_path), named).corpus
        assert corpus.channels == ("Fz", "A1", "x")
        assert corpus.label_names == ("long blink", "short")
        assert opened(tmp_path, BLOCK).corpus.channels == ("ch1", "ch2", "ch3")

    def test_a_question_mark_is_missing(self, tmp_path: Path) -> None:
        file = layouts.uea(tmp_path / "Made_TRAIN.ts", trials(4, "a"))
        lines = file.read_bytes().split(b"\n")
        cells = lines[-2].split(b",")
        cells[1] = b"?"
        file.write_bytes(b"\n".join([*lines[:-2], b",".join(cells), b""]))
        signal = every_trial(tmp_path, BLOCK)[-1].signal
        assert signal is not None
        assert np.argwhere(np.isnan(signal())).tolist() == [[0, 1]]

    def test_windows_line_ends(self, tmp_path: Path) -> None:
        file = layouts.uea(tmp_path / "Made_TRAIN.ts", trials(4, "a"))
        before = [trial.signal() for trial in every_trial(tmp_path, BLOCK) if trial.signal]
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        after = [trial.signal() for trial in every_trial(tmp_path, BLOCK) if trial.signal]
        np.testing.assert_array_equal(before, after)


class TestBroken:
    @pytest.mark.parametrize(
        ("old", "new", "fault"),
        [
            (b"@data", b"@date", "Made_TRAIN.ts: found no line @data"),
            (b"@timestamps false", b"@timestamps true", "line 3: found series with time stamps"),
            (b":a\n", b":b\n", "line 9: found class 'b'; expected one of a behind the last colon"),
            (b":a\n", b"\n", "expected one of a behind the last colon"),
        ],
    )
    def test_lines(self, tmp_path: Path, old: bytes, new: bytes, fault: str) -> None:
        file = layouts.uea(tmp_path / "Made_TRAIN.ts", trials(4, "a"))
        assert old in file.read_bytes()
        file.write_bytes(file.read_bytes().replace(old, new, 1))
        assert fault in told(tmp_path, BLOCK)

    def test_dimensions_that_differ(self, tmp_path: Path) -> None:
        layouts.uea(tmp_path / "Made_TRAIN.ts", [*trials(2, "a"), (layouts.eeg(1, 2, 7), "a")])
        assert "line 11: found 2 dimensions; expected 3" in told(tmp_path, BLOCK)

    def test_a_cell_that_is_no_number(self, tmp_path: Path) -> None:
        file = layouts.uea(tmp_path / "Made_TRAIN.ts", trials(4, "a"))
        content = file.read_bytes()
        at = content.index(b",", content.index(b"@data"))
        file.write_bytes(content[:at] + b",x" + content[at:])
        assert "trial 1, dimension 1: found could not convert string to float: 'x'" in told(tmp_path, BLOCK)

    def test_dimensions_of_unequal_length(self, tmp_path: Path) -> None:
        file = layouts.uea(tmp_path / "Made_TRAIN.ts", trials(4, "a"))
        content = file.read_bytes()
        at = content.index(b",", content.index(b"@data"))
        file.write_bytes(content[:at] + b",1.5" + content[at:])
        assert "trial 1: found dimensions of 8, 7, 7 samples" in told(tmp_path, BLOCK)

    def test_files(self, tmp_path: Path) -> None:
        assert "found no .ts file" in told(tmp_path, BLOCK)
        folder(tmp_path)
        assert "Make `format.blocks` smaller" in told(tmp_path, {**BLOCK, "blocks": 9})
        assert "Correct `format.channels`" in told(tmp_path, {**BLOCK, "channels": ["a", "b"]})
        layouts.uea(tmp_path / "Other_TRAIN.ts", trials(4, "a"))
        assert "expected NAME_TRAIN.ts and NAME_TEST.ts of one data set" in told(tmp_path, BLOCK)

    def test_two_files_of_different_data_sets(self, tmp_path: Path) -> None:
        layouts.uea(tmp_path / "Made_TRAIN.ts", trials(4, "a"))
        layouts.uea(tmp_path / "Made_TEST.ts", trials(4, "b"))
        assert "The two files are not of one data set" in told(tmp_path, BLOCK)
