"""SEED, SEED-IV and SEED-V as they lie on disk."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from stages.ingest.eeg import seed_files
from stages.ingest.eeg.names import SEED_62
from tests.ingest.eeg import layouts
from tests.ingest.eeg.layouts import every_trial, opened, told

TWO_SESSIONS = {"1_20131107.mat": "djc", "1_20131027.mat": "djc", "10_20131130.mat": "jl", "2_20140404.mat": "jl"}


class TestSeedSignals:
    def test_a_folder_and_the_name_of_the_format_are_enough(self, tmp_path: Path) -> None:
        corpus = opened(layouts.seed(tmp_path, TWO_SESSIONS), "seed").corpus
        assert corpus.subjects == ("1", "2", "10")
        assert corpus.channels == SEED_62
        assert (corpus.rate, corpus.unit, corpus.label_names) == (200.0, "uV", ("negative", "neutral", "positive"))
        assert opened(tmp_path / "Preprocessed_EEG", "seed").corpus == corpus

    def test_sessions_are_dates_in_order_and_a_stimulus_is_the_same_in_all(self, tmp_path: Path) -> None:
        trials = every_trial(layouts.seed(tmp_path, TWO_SESSIONS), "seed")
        sessions = {(trial.session, trial.source_file) for trial in trials if trial.subject == "1"}
        assert sessions == {("1", "1_20131027.mat"), ("2", "1_20131107.mat")}
        assert {trial.stimulus for trial in trials if trial.trial == 3} == {"clip 3"}
        assert len({trial.trial_id for trial in trials}) == len(trials) == 60

    def test_values_are_those_of_the_file_in_microvolts(self, tmp_path: Path) -> None:
        layouts.seed(tmp_path, {"1_20131027.mat": "djc"})
        trial = every_trial(tmp_path, "seed")[10]
        assert trial.signal is not None
        np.testing.assert_array_equal(trial.signal(), layouts.eeg(11, 62, 51).astype(np.float32))
        assert trial.signal().dtype == np.float32
        assert (trial.label, trial.label_value, trial.trial) == ("neutral", 0, 11)

    def test_millivolts_become_microvolts(self, tmp_path: Path) -> None:
        inner = layouts.seed(tmp_path, {"1_20131027.mat": "djc"}) / "Preprocessed_EEG"
        signals = {f"djc_eeg{trial}": layouts.eeg(trial, 62, 40) / 1000 for trial in range(1, 16)}
        scipy.io.savemat(inner / "1_20131027.mat", signals)
        first = every_trial(tmp_path, {"reader": "seed", "unit": "mV"})[0]
        assert first.signal is not None
        np.testing.assert_allclose(first.signal(), layouts.eeg(1, 62, 40), rtol=1e-6)

    def test_version_73_beside_version_5_reads_the_same(self, tmp_path: Path) -> None:
        files = {"1_20131027.mat": "djc"}
        fifth = every_trial(layouts.seed(tmp_path / "5", files), "seed")
        newer = every_trial(layouts.seed(tmp_path / "73", files, version="7.3"), "seed")
        for one, other in zip(fifth, newer, strict=True):
            assert one.signal is not None
            assert other.signal is not None
            np.testing.assert_array_equal(one.signal(), other.signal())
            assert (one.trial_id, one.label) == (other.trial_id, other.label)

    def test_a_trial_that_is_not_there_leaves_the_labels_of_the_others_alone(self, tmp_path: Path) -> None:
        layouts.seed(tmp_path, {"1_20131027.mat": "djc"}, skip=[4])
        trials = every_trial(tmp_path, "seed")
        assert [trial.trial for trial in trials] == [1, 2, 3, *range(5, 16)]
        assert [trial.label_value for trial in trials] == [c for i, c in enumerate(layouts.SEED_CLASSES) if i != 3]
        assert opened(tmp_path, "seed").corpus.notes == ("1_20131027.mat: trials 4 are not there",)

    def test_labels_may_be_texts(self, tmp_path: Path) -> None:
        names = {-1: "negative", 0: "Neutral", 1: "positive"}
        as_cells = np.array([names[value] for value in layouts.SEED_CLASSES], dtype=object)
        layouts.seed(tmp_path / "cells", {"1_20131027.mat": "djc"}, label=as_cells)
        as_text = [str(value) for value in layouts.SEED_CLASSES]
        layouts.seed(tmp_path / "text", {"1_20131027.mat": "djc"}, label=np.array(as_text, dtype=object))
        for folder in ("cells", "text"):
            values = tuple(trial.label_value for trial in every_trial(tmp_path / folder, "seed"))
            assert values == layouts.SEED_CLASSES

    def test_a_value_that_is_no_number_stays_for_the_gate_to_see(self, tmp_path: Path) -> None:
        inner = layouts.seed(tmp_path, {"1_20131027.mat": "djc"}) / "Preprocessed_EEG"
        values = layouts.eeg(1, 62, 40)
        values[3, 5] = np.nan
        scipy.io.savemat(inner / "1_20131027.mat", {"djc_eeg1": values})
        signal = every_trial(tmp_path, "seed")[0].signal
        assert signal is not None
        assert np.isnan(signal()).sum() == 1

    def test_a_flat_trial_is_read_whatever_its_unit(self, tmp_path: Path) -> None:
        inner = layouts.seed(tmp_path, {"1_20131027.mat": "djc"}) / "Preprocessed_EEG"
        scipy.io.savemat(inner / "1_20131027.mat", {"djc_eeg1": np.zeros((62, 200))})
        signal = every_trial(tmp_path, "seed")[0].signal
        assert signal is not None
        assert not signal().any()


class TestBrokenSeed:
    def change(self, folder: Path, content: dict[str, np.ndarray]) -> Path:
        inner = layouts.seed(folder, {"1_20131027.mat": "djc"}) / "Preprocessed_EEG"
        scipy.io.savemat(inner / "1_20131027.mat", content)
        return folder

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            (
                {"djc_eeg1": np.zeros((61, 9))},
                "variable djc_eeg1: found an array of shape (61, 9); expected (62, samples)",
            ),
            ({"djc_eeg1": np.zeros((9, 62))}, "found an array of shape (9, 62)"),
            ({"djc_eeg16": np.zeros((62, 9))}, "found trial 16; expected trials 1 to 15, those that have a label"),
            ({"a_eeg1": np.zeros((62, 9)), "b_eeg1": np.ones((62, 9))}, "found a_eeg1 and b_eeg1"),
            ({"de_LDS1": np.zeros((62, 9, 5))}, "signals and features have readers of their own"),
        ],
    )
    def test_variables(self, tmp_path: Path, content: dict[str, np.ndarray], fault: str) -> None:
        assert fault in told(self.change(tmp_path, content), "seed")

    @pytest.mark.parametrize(
        ("label", "fault"),
        [
            ((0, 1, 2), "label.mat, trial 3: found label 2.0; expected -1, 0 or 1"),
            (np.array(["neutral", "happy"], dtype=object), "label.mat, trial 2: found label 'happy'"),
        ],
    )
    def test_labels(self, tmp_path: Path, label: object, fault: str) -> None:
        assert fault in told(layouts.seed(tmp_path, {"1_20131027.mat": "djc"}, label=label), "seed")

    @pytest.mark.parametrize("kept", [0, 60, 4000])
    def test_a_file_cut_short(self, tmp_path: Path, kept: int) -> None:
        layouts.seed(tmp_path, {"1_20131027.mat": "djc"})
        file = tmp_path / "Preprocessed_EEG/1_20131027.mat"
        file.write_bytes(file.read_bytes()[:kept])
        assert "1_20131027.mat" in told(tmp_path, "seed")

    def test_no_labels_and_no_sessions(self, tmp_path: Path) -> None:
        layouts.seed(tmp_path / "a", {"1_20131027.mat": "djc"})
        (tmp_path / "a/Preprocessed_EEG/label.mat").unlink()
        assert "label.mat: found no such file" in told(tmp_path / "a", "seed")
        layouts.seed(tmp_path / "b", {"one.mat": "djc"})
        assert "found 1 other .mat files; expected files named SUBJECT_YYYYMMDD.mat" in told(tmp_path / "b", "seed")
        assert "found no such file or folder" in told(tmp_path / "c", "seed")

    def test_a_signal_in_volts_declared_as_microvolts(self, tmp_path: Path) -> None:
        self.change(tmp_path, {"djc_eeg1": layouts.eeg(1, 62, 40) / 1e6})
        text = told(tmp_path, "seed")
        assert "variable djc_eeg1: found a standard deviation of" in text
        assert "`unit: V`" in text

    def test_subjects_and_sessions_that_are_not_there(self, tmp_path: Path) -> None:
        layouts.seed(tmp_path, TWO_SESSIONS)
        chosen = every_trial(tmp_path, {"reader": "seed", "subjects": ["1"], "sessions": [2]})
        assert {trial.source_file for trial in chosen} == {"1_20131107.mat"}
        assert "found no subject 7" in told(tmp_path, {"reader": "seed", "subjects": ["7"]})
        assert "expected sessions 1, 2" in told(tmp_path, {"reader": "seed", "sessions": [1, 2]})


class TestSeedFeatures:
    def test_axes_are_windows_channels_bands(self, tmp_path: Path) -> None:
        layouts.seed_features(tmp_path, ["1_20131027.mat"])
        trial = every_trial(tmp_path, "seed_features")[1]
        assert trial.features is not None
        np.testing.assert_allclose(trial.features(), layouts.shipped_features(2, 4).swapaxes(0, 1), rtol=1e-6)
        corpus = opened(tmp_path, "seed_features").corpus
        assert (corpus.kind, corpus.bands) == ("features", ("delta", "theta", "alpha", "beta", "gamma"))
        assert corpus.window_seconds == 1.0

    def test_another_feature_of_the_same_files(self, tmp_path: Path) -> None:
        layouts.seed_features(tmp_path, ["1_20131027.mat"])
        first = every_trial(tmp_path, {"reader": "seed_features", "feature": "psd_LDS"})[0].features
        assert first is not None
        assert (first() < 0).all()

    def test_minus_infinity_of_a_flat_channel_is_missing(self, tmp_path: Path) -> None:
        inner = layouts.seed_features(tmp_path, ["1_20131027.mat"]) / "ExtractedFeatures"
        values = layouts.shipped_features(1, 4)
        values[7] = -np.inf
        scipy.io.savemat(inner / "1_20131027.mat", {"de_LDS1": values})
        features = every_trial(tmp_path, "seed_features")[0].features
        assert features is not None
        assert np.isnan(features()[:, 7]).all()
        assert np.isfinite(np.delete(features(), 7, axis=1)).all()

    def test_four_bands_are_refused(self, tmp_path: Path) -> None:
        inner = layouts.seed_features(tmp_path, ["1_20131027.mat"]) / "ExtractedFeatures"
        scipy.io.savemat(inner / "1_20131027.mat", {"de_LDS1": np.ones((62, 3, 4))})
        assert "found features of shape (3, 62, 4); expected (windows, 62 channels, 5 bands)" in told(
            tmp_path, "seed_features"
        )


class TestSeedIV:
    def test_each_session_has_six_clips_of_each_class(self) -> None:
        for classes in seed_files.SEED_IV_SESSIONS.values():
            assert [classes.count(value) for value in range(4)] == [6, 6, 6, 6]

    def test_sessions_are_folders_not_dates(self, tmp_path: Path) -> None:
        trials = every_trial(layouts.seed_iv(tmp_path, ["1"]), "seed_iv")
        assert len(trials) == 72
        assert {(trial.session, trial.source_file) for trial in trials} == {
            ("1", "1/1_20160108.mat"),
            ("2", "2/1_20160107.mat"),
            ("3", "3/1_20160106.mat"),
        }
        assert [trial.label for trial in trials[:4]] == ["sad", "fear", "happy", "neutral"]
        assert trials[0].stimulus != trials[24].stimulus

    def test_features_have_windows_of_four_seconds(self, tmp_path: Path) -> None:
        opening = opened(layouts.seed_iv(tmp_path), "seed_iv_features")
        assert opening.corpus.window_seconds == 4.0
        assert opening.corpus.subjects == ("1", "2")
        features = opening.load("2")[71].features
        assert features is not None
        assert features().shape == (3, 62, 5)

    def test_a_subject_without_a_session_is_noted(self, tmp_path: Path) -> None:
        layouts.seed_iv(tmp_path)
        next((tmp_path / "eeg_raw_data/2").glob("2_*.mat")).unlink()
        assert opened(tmp_path, "seed_iv").corpus.notes == ("subject 2: session 2 is not there",)

    def test_seed_is_not_seed_iv(self, tmp_path: Path) -> None:
        layouts.seed(tmp_path, {"1_20131027.mat": "djc"})
        assert "expected a folder for each session of SEED-IV" in told(tmp_path, "seed_iv")


class TestSeedV:
    def test_310_columns_are_62_channels_of_5_bands(self, tmp_path: Path) -> None:
        layouts.seed_v(tmp_path / "EEG_DE_features/1_123.npz")
        trials = every_trial(tmp_path, "seed_v")
        assert len(trials) == 45
        last = trials[44]
        assert (last.session, last.trial, last.label) == ("3", 15, "happy")
        assert last.features is not None
        assert last.features().shape == (3, 62, 5)
        assert last.features()[2, 1, 4] == np.float32(2000 + 9 + 0.44)

    @pytest.mark.parametrize("protocol", [0, 2, 4, 5])
    def test_pickles_of_any_protocol(self, tmp_path: Path, protocol: int) -> None:
        layouts.seed_v(tmp_path / "7_123.npz", pack=lambda value: pickle.dumps(value, protocol=protocol))
        assert [trial.label_value for trial in every_trial(tmp_path, "seed_v")] == [trial % 5 for trial in range(45)]

    def test_a_trial_that_is_not_there(self, tmp_path: Path) -> None:
        layouts.seed_v(tmp_path / "7_123.npz", trials=44)
        assert len(every_trial(tmp_path, "seed_v")) == 44

    @pytest.mark.parametrize(
        ("data", "label", "fault"),
        [
            ({0: np.ones((3, 300))}, {0: np.zeros(3)}, "trial 0: found an array of shape (3, 300)"),
            ({0: np.ones((2, 310))}, {0: np.array([0, 1])}, "trial 0: found labels [0, 1]; expected one class"),
            ({0: np.ones((2, 310))}, {1: np.zeros(2)}, "trial 0: found labels []"),
            ({45: np.ones((2, 310))}, {45: np.zeros(2)}, "found trial 45; expected trials 0 to 44"),
            ([1], {}, "member data: found list; expected a dictionary by trial"),
        ],
    )
    def test_broken(self, tmp_path: Path, data: object, label: object, fault: str) -> None:
        file = tmp_path / "1_123.npz"
        np.savez(file, data=np.array(pickle.dumps(data)), label=np.array(pickle.dumps(label)))
        assert fault in told(tmp_path, "seed_v")

    def test_a_pickle_cut_short_or_an_archive_cut_short(self, tmp_path: Path) -> None:
        file = layouts.seed_v(tmp_path / "1_123.npz", pack=lambda value: pickle.dumps(value)[:-40])
        assert "1_123.npz, member data: found a damaged or incomplete pickle" in told(tmp_path, "seed_v")
        file.write_bytes(file.read_bytes()[:300])
        assert "found a damaged or other npz" in told(tmp_path, "seed_v")
