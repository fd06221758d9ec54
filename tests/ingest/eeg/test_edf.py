"""EDF and BIDS through mne: units, rates, gaps, events."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import mne
import mne_bids
import numpy as np
import pytest

from tests.ingest.eeg import layouts
from tests.ingest.eeg.layouts import every_trial, opened, told

NAMES = ("Fp1", "Cz", "O2")
TAL = b"+%g\x14\x14\0"


def recording(file: Path, seconds: int = 4, **options: object) -> np.ndarray:
    data = np.round(layouts.eeg(3, 3, 100 * seconds), 1)
    layouts.edf(file, data, NAMES, **options)  # type: ignore[arg-type]
    return data


class TestWholeRecordings:
    def test_microvolts_to_the_step_of_the_file(self, tmp_path: Path) -> None:
        data = recording(tmp_path / "S007R02.edf")
        trial = every_trial(tmp_path, {"reader": "edf", "label": "rest"})[0]
        assert trial.signal is not None
        np.testing.assert_allclose(trial.signal(), data, atol=1e-4)
        assert (trial.subject, trial.session, trial.label, trial.rate) == ("S007", "1", "rest", 100.0)
        assert opened(tmp_path, "edf").corpus.notes == ("subject S007: session 02 of the files is session 1",)

    def test_the_physical_dimension_is_believed(self, tmp_path: Path) -> None:
        data = np.round(layouts.eeg(3, 3, 400), 1)
        layouts.edf(tmp_path / "S1.edf", data * [[1], [100], [1]], NAMES, units=("uV", "uV", "uV"))
        mixed = every_trial(tmp_path, "edf")[0].signal
        assert mixed is not None
        layouts.edf(tmp_path / "S1.edf", data, NAMES, units=("uV", "mV", "uV"))
        scaled = every_trial(tmp_path, "edf")[0].signal
        assert scaled is not None
        assert scaled()[1].std() == pytest.approx(1000 * data[1].std(), rel=1e-5)
        assert mixed()[0].std() == pytest.approx(scaled()[0].std(), rel=1e-5)

    def test_a_missing_dimension_must_be_said(self, tmp_path: Path) -> None:
        data = recording(tmp_path / "S1.edf", units=("", "uV", "uV"))
        assert "channel Fp1: found no physical dimension" in told(tmp_path, "edf")
        signal = every_trial(tmp_path, {"reader": "edf", "unit": "uV"})[0].signal
        assert signal is not None
        np.testing.assert_allclose(signal(), data, atol=1e-4)

    def test_names_with_dots_and_references_are_electrodes(self, tmp_path: Path) -> None:
        data = layouts.eeg(3, 5, 200)
        layouts.edf(tmp_path / "S1.edf", data, ("Fc5.", "EEG CZ-REF", "resp", "T8", "EOG left"))
        corpus = opened(tmp_path, "edf").corpus
        assert corpus.channels == ("FC5", "Cz", "T8")
        assert corpus.non_eeg == ("resp", "EOG left")
        named = opened(tmp_path, {"reader": "edf", "channels": {"resp": "belt"}}).corpus
        assert named.channels == ("FC5", "Cz", "belt", "T8")

    def test_a_channel_named_twice_is_taken_once_and_reported(self, tmp_path: Path) -> None:
        data = np.round(layouts.eeg(3, 3, 200), 1)
        layouts.edf(tmp_path / "S1.edf", data, ("Cz", "O1", "CZ"))
        trial = every_trial(tmp_path, "edf")[0]
        assert (trial.channels, trial.duplicate_channels) == (("Cz", "O1"), ("Cz",))
        assert trial.signal is not None
        np.testing.assert_allclose(trial.signal(), data[:2], atol=1e-4)

    def test_the_rate_is_not_rounded(self, tmp_path: Path) -> None:
        data = layouts.eeg(3, 3, 1800)
        layouts.edf(tmp_path / "S1.edf", data, NAMES, rate=600, seconds="0.998977")
        trial = every_trial(tmp_path, "edf")[0]
        assert trial.rate == pytest.approx(600 / 0.998977, rel=1e-12)

    def test_bdf_of_24_bits_with_its_status_channel(self, tmp_path: Path) -> None:
        data = np.round(layouts.eeg(3, 3, 400), 1) + 20_000.0  # electrodes of this kind have an offset
        data[2] = 0
        data[2, 150:160] = 7
        layouts.edf(tmp_path / "P1.bdf", data, ("A1", "Cz", "Status"))
        block = {"reader": "edf", "events": {"channel": "Status", "labels": {"7": "go"}, "seconds": 1}}
        trial = every_trial(tmp_path, block)[0]
        assert trial.unknown_channels == ("Status",)
        assert trial.signal is not None
        np.testing.assert_allclose(trial.signal(), data[:2, 150:250], atol=1 / 60)

    def test_a_faster_channel_beside_the_eeg_does_not_resample_it(self, tmp_path: Path) -> None:
        data = np.round(layouts.eeg(3, 3, 300), 1)
        layouts.edf(tmp_path / "S1.edf", data, ("Cz", "ecg", "O1"), faster={"ecg": 400})
        trial = every_trial(tmp_path, "edf")[0]
        assert trial.rate == 100.0
        assert trial.signal is not None
        np.testing.assert_allclose(trial.signal(), data[[0, 2]], atol=1e-4)

    def test_subjects_and_sessions_by_pattern(self, tmp_path: Path) -> None:
        for name in ("p2-day9.edf", "p2-day10.edf", "p1-day1.edf"):
            recording(tmp_path / "deep" / name)
        block = {"reader": "edf", "pattern": r"(?P<subject>p\d)-day(?P<session>\d+)"}
        trials = every_trial(tmp_path, block)
        assert [(trial.subject, trial.session) for trial in trials] == [("p1", "1"), ("p2", "1"), ("p2", "2")]
        assert trials[2].source_file == "deep/p2-day10.edf"
        assert "a name that the pattern does not match" in told(
            tmp_path, {"reader": "edf", "pattern": "(?P<subject>q)"}
        )

    def test_montages_that_differ_are_joined(self, tmp_path: Path) -> None:
        recording(tmp_path / "a.edf")
        layouts.edf(tmp_path / "b.edf", layouts.eeg(1, 2, 200), ("Cz", "Pz"))
        corpus = opened(tmp_path, "edf").corpus
        assert corpus.channels == ("Fp1", "Cz", "O2", "Pz")


class TestEvents:
    def test_annotations_are_trials(self, tmp_path: Path) -> None:
        notes = [
            b"+0\x14\x14\0+0.5\x151\x14T1\x14\0",
            b"+1\x14\x14\0",
            b"+2\x14\x14\0+2.25\x14T2\x14\0",
            b"+3\x14\x14\0",
        ]
        data = recording(tmp_path / "S1.edf", notes=notes, kind="EDF+C")
        block = {"reader": "edf", "events": {"labels": {"T1": "left", "T2": "right"}}}
        first, second = every_trial(tmp_path, block)
        assert (first.label, second.label) == ("left", "right")
        assert first.signal is not None
        assert second.signal is not None
        np.testing.assert_allclose(first.signal(), data[:, 50:150], atol=1e-4)  # as long as it says
        np.testing.assert_allclose(second.signal(), data[:, 225:], atol=1e-4)  # up to the end

    def test_annotations_of_a_rate_that_is_no_integer_do_not_drift(self, tmp_path: Path) -> None:
        rate = 600 / 0.998977
        records = 20
        impulse = np.zeros((3, 600 * records))
        at = round(19.5 * rate)
        impulse[:, at:] = 100.0
        notes = [b"+%f\x14\x14\0" % (record * 0.998977) for record in range(records)]
        notes[19] += b"+19.5\x14go\x14\0"
        layouts.edf(tmp_path / "S1.edf", impulse, NAMES, rate=600, seconds="0.998977", notes=notes, kind="EDF+C")
        block = {"reader": "edf", "unit": "counts", "events": {"labels": {"go": "go"}, "start": -0.01, "seconds": 0.02}}
        signal = every_trial(tmp_path, block)[0].signal
        assert signal is not None
        steps = np.flatnonzero(np.diff(signal()[0]))
        assert steps.tolist() == [round(0.01 * rate) - 1]

    def test_all_events_of_one_value_of_a_trigger(self, tmp_path: Path) -> None:
        data = np.round(layouts.eeg(3, 3, 100 * 130), 1)
        data[2] = 0
        for number in range(120):
            data[2, 100 * number + 50 : 100 * number + 60] = number % 3 + 1  # cue, task, rest
        layouts.edf(tmp_path / "S1.edf", data, ("Cz", "O1", "trigger"))
        block = {"reader": "edf", "events": {"channel": "trigger", "labels": {"2": "task"}, "seconds": 0.5}}
        trials = every_trial(tmp_path, block)
        assert len(trials) == 40
        for number, trial in enumerate(trials):
            assert trial.signal is not None
            begin = 300 * number + 150
            np.testing.assert_allclose(trial.signal(), data[:2, begin : begin + 50], atol=1e-4)
        assert [trial.trial for trial in trials] == list(range(1, 41))

    def test_what_lies_beyond_the_end_is_missing(self, tmp_path: Path) -> None:
        notes = [b"+0\x14\x14\0", b"+1\x14\x14\0", b"+2\x14\x14\0", b"+3\x14\x14\0+3.5\x14go\x14\0"]
        recording(tmp_path / "S1.edf", notes=notes, kind="EDF+C")
        signal = every_trial(tmp_path, {"reader": "edf", "events": {"labels": {"go": "go"}, "seconds": 2}})[0].signal
        assert signal is not None
        assert signal().shape == (3, 200)
        assert np.isnan(signal()[:, 50:]).all()
        assert np.isfinite(signal()[:, :50]).all()

    def test_no_such_event_or_channel(self, tmp_path: Path) -> None:
        notes = [b"+0\x14\x14\0+0.5\x14T1\x14\0", *(TAL % second for second in (1, 2, 3))]
        recording(tmp_path / "S1.edf", notes=notes, kind="EDF+C")
        assert "found events T1; expected one of T9" in told(
            tmp_path, {"reader": "edf", "events": {"labels": {"T9": "x"}}}
        )
        block = {"reader": "edf", "events": {"channel": "STI", "labels": {"1": "x"}}}
        assert "found channels Fp1, Cz, O2; expected the trigger channel 'STI'" in told(tmp_path, block)
        late = {"reader": "edf", "events": {"labels": {"T1": "x"}, "start": 9}}
        assert "event 'T1' at 0.5 s: found a trial from 9.5 s" in told(tmp_path, late)


class TestBrokenEdf:
    def test_a_gap_in_a_discontinuous_file(self, tmp_path: Path) -> None:
        notes = [TAL % 0, TAL % 10 + b"+10.5\x14hi\x14\0"]
        recording(tmp_path / "S1.edf", 2, notes=notes, kind="EDF+D")
        text = told(tmp_path, "edf")
        assert "S1.edf, record 2: found an onset of 10 s in a discontinuous file (EDF+D); expected 1 s" in text

    def test_a_discontinuous_file_without_a_gap_is_read(self, tmp_path: Path) -> None:
        data = recording(tmp_path / "S1.edf", 2, notes=[TAL % 0, TAL % 1], kind="EDF+D")
        signal = every_trial(tmp_path, "edf")[0].signal
        assert signal is not None
        np.testing.assert_allclose(signal(), data, atol=1e-4)

    def test_cut_short(self, tmp_path: Path) -> None:
        file = tmp_path / "S1.edf"
        recording(file)
        file.write_bytes(file.read_bytes()[:-700])
        assert "found 2.83 records; expected 4, as the header says. The file is cut short" in told(tmp_path, "edf")
        file.write_bytes(file.read_bytes()[:100])
        assert "S1.edf: found first bytes" in told(tmp_path, "edf")

    def test_two_rates_of_eeg(self, tmp_path: Path) -> None:
        layouts.edf(tmp_path / "S1.edf", layouts.eeg(1, 2, 200), ("Cz", "O1"), faster={"O1": 200})
        assert "found Cz at 100 Hz and O1 at 200 Hz; expected one rate" in told(tmp_path, "edf")

    def test_nothing_that_is_eeg(self, tmp_path: Path) -> None:
        layouts.edf(tmp_path / "S1.edf", layouts.eeg(1, 2, 200), ("x", "y"))
        assert "found channels x, y; expected names of electrodes" in told(tmp_path, "edf")
        assert "found no .edf or .bdf file" in told(layouts.seed(tmp_path / "s", {"1_20131027.mat": "a"}), "edf")

    def test_a_text_under_the_name(self, tmp_path: Path) -> None:
        (tmp_path / "S1.edf").write_text("subject;label\n" * 100)
        assert "expected an EDF or BDF file" in told(tmp_path, "edf")


def bids(root: Path, sessions: tuple[str, ...] = ("0", "1"), rate: float = 100.0) -> Path:
    for subject in ("01", "02"):
        for session in sessions:
            folder = root / f"sub-{subject}" / f"ses-{session}" / "eeg"
            stem = f"sub-{subject}_ses-{session}_task-film"
            recording(folder / f"{stem}_eeg.edf")
            (folder / f"{stem}_events.tsv").write_text(
                "onset\tduration\ttrial_type\n0.5\t1\thappy\n1.5\tn/a\tpause\n2\t1\tsad\n"
            )
            (folder / f"{stem}_channels.tsv").write_text("name\ttype\tunits\nFp1\tEOG\tuV\nCz\tEEG\tuV\nO2\tEEG\tuV\n")
    (root / "task-film_eeg.json").write_text(json.dumps({"SamplingFrequency": rate}))
    return root


class TestBids:
    BLOCK = {"reader": "bids", "events": {"labels": {"happy": "happy", "sad": "sad"}}}  # noqa: RUF012

    def test_events_and_types_come_from_the_sidecars(self, tmp_path: Path) -> None:
        trials = every_trial(bids(tmp_path), self.BLOCK)
        assert len(trials) == 8
        assert trials[0].channels == ("Cz", "O2")
        assert trials[0].unknown_channels == ("Fp1",)
        assert [trial.label for trial in trials[:2]] == ["happy", "sad"]
        assert trials[1].signal is not None
        np.testing.assert_allclose(trials[1].signal(), np.round(layouts.eeg(3, 3, 400), 1)[1:, 200:300], atol=1e-4)

    def test_sessions_keyed_0_and_1_are_sessions_1_and_2(self, tmp_path: Path) -> None:
        trials = every_trial(bids(tmp_path), {**self.BLOCK, "sessions": [1, 2]})
        assert len(trials) == 8
        assert {(trial.session, trial.source_file[7:12]) for trial in trials} == {("1", "ses-0"), ("2", "ses-1")}
        assert "subject 01: session 0 of the files is session 1" in opened(tmp_path, self.BLOCK).corpus.notes
        assert "found sessions 1, 2; expected sessions 3" in told(tmp_path, {**self.BLOCK, "sessions": [3]})

    def test_another_rate_in_the_sidecar_is_told(self, tmp_path: Path) -> None:
        notes = opened(bids(tmp_path, rate=100.5), self.BLOCK).corpus.notes
        assert any("says 100.5 Hz, the recording has 100.0 Hz, which counts" in note for note in notes)

    def test_names_that_only_channels_tsv_knows(self, tmp_path: Path) -> None:
        folder = tmp_path / "sub-01" / "eeg"
        layouts.edf(folder / "sub-01_task-x_eeg.edf", layouts.eeg(1, 2, 200), ("E1", "E2"))
        (folder / "sub-01_task-x_channels.tsv").write_text("name\ttype\nE1\tEEG\nE2\tMISC\n")
        assert opened(tmp_path, "bids").corpus.channels == ("E1",)

    def test_a_folder_that_mne_bids_wrote(self, tmp_path: Path) -> None:
        notes = [b"+0\x14\x14\0+0.5\x151\x14happy\x14\0", *(TAL % second for second in (1, 2, 3))]
        data = recording(tmp_path / "raw" / "S1.edf", notes=notes, kind="EDF+C")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has its own opinion of a montage without positions
            raw = mne.io.read_raw_edf(tmp_path / "raw" / "S1.edf", preload=False, verbose="ERROR")
            place = mne_bids.BIDSPath(subject="01", session="2", task="film", root=tmp_path / "set", datatype="eeg")
            mne_bids.write_raw_bids(raw, place, verbose="ERROR")
        block = {"reader": "bids", "events": {"labels": {"happy": "happy"}}}
        trial = every_trial(tmp_path / "set", block)[0]
        assert (trial.subject, trial.session, trial.channels) == ("01", "1", NAMES)
        assert trial.signal is not None
        np.testing.assert_allclose(trial.signal(), data[:, 50:150], atol=1e-4)

    def test_broken(self, tmp_path: Path) -> None:
        bids(tmp_path)
        assert "found recordings of the tasks film; expected recordings of the task rest" in told(
            tmp_path, {**self.BLOCK, "task": "rest"}
        )
        wrong = {"reader": "bids", "events": {"column": "stimulus", "labels": {"happy": "happy"}}}
        assert "expected a column stimulus" in told(tmp_path, wrong)
        events = next(tmp_path.rglob("*_events.tsv"))
        events.write_text("onset\tduration\ttrial_type\nlate\t1\thappy\n")
        assert "line 2, column onset: found 'late'; expected seconds" in told(tmp_path, self.BLOCK)
        events.unlink()
        assert "found no events.tsv" in told(tmp_path, self.BLOCK)
        assert "found no file sub-*/eeg/*_eeg.edf" in told(
            layouts.seed(tmp_path / "s", {"1_20131027.mat": "a"}), "bids"
        )
