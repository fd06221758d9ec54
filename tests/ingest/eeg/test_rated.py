"""DEAP and DREAMER, whose labels are ratings, and FACED."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from stages.ingest.eeg import faced
from stages.ingest.eeg.names import DEAP_32, DEAP_OTHERS, FACED_30
from tests.ingest.eeg import layouts
from tests.ingest.eeg.layouts import every_trial, opened, told


class TestDeap:
    def test_32_of_40_channels_without_the_baseline(self, tmp_path: Path) -> None:
        layouts.deap(tmp_path, ("s01", "s02", "s10"))
        opening = opened(tmp_path, "deap")
        assert opening.corpus.subjects == ("s01", "s02", "s10")
        assert opening.corpus.non_eeg == DEAP_OTHERS
        trial = opening.load("s02")[6]
        assert trial.signal is not None
        expected = np.random.default_rng(1).normal(0, 15.0, (40, 40, 400))[6, :32, 384:]
        np.testing.assert_array_equal(trial.signal(), expected.astype(np.float32))
        assert (trial.stimulus, trial.channels, trial.rate) == ("video 7", DEAP_32, 128.0)

    def test_the_baseline_may_be_kept(self, tmp_path: Path) -> None:
        layouts.deap(tmp_path)
        signal = every_trial(tmp_path, {"reader": "deap", "keep_baseline": True})[0].signal
        assert signal is not None
        assert signal().shape == (32, 400)

    def test_labels_are_ratings_cut_at_five(self, tmp_path: Path) -> None:
        labels = layouts.deap(tmp_path)
        trials = every_trial(tmp_path, "deap")
        assert [trial.label == "high" for trial in trials] == (labels[:, 0] > 5).tolist()
        assert trials[0].label == "low"  # a rating of exactly 5
        arousal = every_trial(tmp_path, {"reader": "deap", "target": "arousal"})
        assert arousal[0].label == "high"  # 5.01
        assert trials[3].targets == dict(zip(("valence", "arousal", "dominance", "liking"), labels[3], strict=True))

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ({"data": np.ones((40, 32, 400))}, "s01.dat: found data; expected a dictionary with data and labels"),
            ({"data": np.ones((4, 40, 400)), "labels": np.ones((4, 4))}, "data: found an array of shape (4, 40, 400)"),
            ({"data": np.ones((40, 40, 300)), "labels": np.ones((40, 4))}, "8064 samples"),
            ({"data": np.ones((40, 40, 400)), "labels": np.ones((40, 2))}, "labels: found an array of shape (40, 2)"),
            (
                {"data": np.ones((40, 40, 400)), "labels": np.full((40, 4), 9.5)},
                "labels, video 1, valence: found 9.5; expected a rating from 1 to 9",
            ),
        ],
    )
    def test_broken(self, tmp_path: Path, content: dict[str, np.ndarray], fault: str) -> None:
        (tmp_path / "s01.dat").write_bytes(layouts.python2(content))
        assert fault in told(tmp_path, "deap")

    def test_a_pickle_cut_short(self, tmp_path: Path) -> None:
        layouts.deap(tmp_path)
        file = tmp_path / "data_preprocessed_python/s01.dat"
        file.write_bytes(file.read_bytes()[:100_000])
        assert "s01.dat: found a damaged or incomplete pickle" in told(tmp_path, "deap")

    def test_no_file(self, tmp_path: Path) -> None:
        assert "expected s01.dat to s32.dat" in told(tmp_path, "deap")


def sheet(file: Path, labels: np.ndarray, order: np.ndarray, swap: bool = False) -> Path:
    """participant_ratings.csv: rows in order of presentation."""
    lines = ["Participant_id,Trial,Experiment_id,Start_time,Valence,Arousal,Dominance,Liking,Familiarity"]
    for place, video in enumerate(order, start=1):
        values = labels[place - 1 if swap else video - 1]
        lines.append(f"1,{place},{video},1695918,{','.join(f'{value:.2f}' for value in values)},4")
    file.write_text("\n".join(lines) + "\n")
    return file


class TestDeapRatings:
    ORDER = np.random.default_rng(3).permutation(40) + 1

    def test_presentation_order_is_joined_by_video(self, tmp_path: Path) -> None:
        labels = layouts.deap(tmp_path)
        ratings = sheet(tmp_path / "participant_ratings.csv", labels, self.ORDER)
        checked = every_trial(tmp_path, {"reader": "deap", "ratings": str(ratings)})
        assert [trial.label_value for trial in checked] == labels[:, 0].tolist()

    def test_labels_paired_by_row_are_refused(self, tmp_path: Path) -> None:
        labels = layouts.deap(tmp_path)
        ratings = sheet(tmp_path / "participant_ratings.csv", labels, self.ORDER, swap=True)
        text = told(tmp_path, {"reader": "deap", "ratings": str(ratings)})
        assert "s01.dat, video 1: found ratings" in text
        assert "not in order of the video's id" in text

    def test_a_sheet_that_is_not_one(self, tmp_path: Path) -> None:
        layouts.deap(tmp_path)
        bad = tmp_path / "bad.csv"
        block = {"reader": "deap", "ratings": str(bad)}
        assert "bad.csv: found no such file" in told(tmp_path, block)
        bad.write_text("Participant_id,Experiment_id,Valence\n1,1,3\n")
        assert "bad.csv, line 2: found no usable 'arousal'" in told(tmp_path, block)
        row = "1,1,3,3,3,3\n"
        bad.write_text("Participant_id,Experiment_id,Valence,Arousal,Dominance,Liking\n" + row * 2)
        assert "line 3: found participant 1, video 1 again" in told(tmp_path, block)


class TestDreamer:
    @pytest.fixture(params=["5", "7.3"])
    def folder(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        if request.param == "5":
            layouts.dreamer5(tmp_path / "DREAMER.mat", layouts.dreamer_content())
        else:
            layouts.mat73(tmp_path / "DREAMER.mat", {"DREAMER": layouts.dreamer_content()})
        return tmp_path

    def test_clips_are_channels_by_samples(self, folder: Path) -> None:
        opening = opened(folder, "dreamer")
        assert opening.corpus.subjects == ("01", "02", "03")
        for subject, trials in opening:
            assert len(trials) == 18
            signal = trials[4].signal
            assert signal is not None
            expected = layouts.eeg(100 * (int(subject) - 1) + 4, 54, 14).T
            np.testing.assert_array_equal(signal(), expected.astype(np.float32))

    def test_scores_above_three_are_high(self, folder: Path) -> None:
        trials = opened(folder, "dreamer").load("02")
        scores = [1.0 + (1 + clip) % 5 for clip in range(18)]
        assert [trial.targets["valence"] for trial in trials] == scores
        assert [trial.targets["arousal"] for trial in trials] == scores[::-1]
        assert [trial.label for trial in trials] == ["high" if score > 3 else "low" for score in scores]

    def test_one_subject_out_of_order(self, folder: Path) -> None:
        chosen = every_trial(folder, {"reader": "dreamer", "subjects": ["03", "01"]})
        assert [trial.subject for trial in chosen] == ["03"] * 18 + ["01"] * 18
        assert chosen[0].signal is not None
        np.testing.assert_array_equal(chosen[0].signal(), layouts.eeg(200, 50, 14).T.astype(np.float32))

    def test_broken(self, tmp_path: Path) -> None:
        content = layouts.dreamer_content(2)
        content["Data"][1]["EEG"]["stimuli"][2] = np.ones((9, 13))
        layouts.dreamer5(tmp_path / "DREAMER.mat", content)
        assert "subject 02, clip 3: found an array of shape (9, 13); expected (samples, 14 channels)" in told(
            tmp_path, "dreamer"
        )
        content = layouts.dreamer_content(1)
        content["Data"][0]["ScoreArousal"] = np.array([[6.0]] * 18)
        layouts.dreamer5(tmp_path / "DREAMER.mat", content)
        assert "subject 01, clip 1: found arousal 6; expected a score from 1 to 5" in told(tmp_path, "dreamer")
        content["Data"][0]["ScoreArousal"] = np.array([[3.0]] * 17)
        layouts.dreamer5(tmp_path / "DREAMER.mat", content)
        assert "found 18 clips and 17 scores of arousal" in told(tmp_path, "dreamer")
        del content["Data"][0]["ScoreArousal"]
        layouts.dreamer5(tmp_path / "DREAMER.mat", content)
        assert "DREAMER.mat, subject 1" in told(tmp_path, "dreamer")


class TestFaced:
    def test_28_videos_of_nine_classes(self) -> None:
        assert len(faced.LABEL_OF_VIDEO) == faced.VIDEOS
        assert [faced.LABEL_OF_VIDEO.count(value) for value in range(9)] == [3, 3, 3, 3, 4, 3, 3, 3, 3]
        assert faced.LABELS[faced.LABEL_OF_VIDEO[15]] == "neutral"

    def test_signals_without_the_ears(self, tmp_path: Path) -> None:
        values = np.random.default_rng(0).normal(0, 20, (28, 32, 7500)).astype(np.float32)
        inner = tmp_path / "Processed_data"
        inner.mkdir()
        (inner / "sub003.pkl").write_bytes(pickle.dumps(values))
        opening = opened(tmp_path, "faced")
        assert (opening.corpus.rate, opening.corpus.channels, opening.corpus.non_eeg) == (250.0, FACED_30, ("A2", "A1"))
        trial = opening.load("sub003")[27]
        assert trial.signal is not None
        np.testing.assert_array_equal(trial.signal(), values[27, :30])
        assert (trial.label, trial.stimulus) == ("tenderness", "video 28")

    def test_features_are_windows_channels_bands(self, tmp_path: Path) -> None:
        values = np.random.default_rng(0).normal(0, 1, (28, 32, 30, 5))
        inner = tmp_path / "EEG_Features" / "DE"
        inner.mkdir(parents=True)
        (inner / "sub000.pkl.pkl").write_bytes(pickle.dumps(values))
        for path in (tmp_path, tmp_path / "EEG_Features", inner):
            features = every_trial(path, "faced_features")[3].features
            assert features is not None
            np.testing.assert_allclose(features(), values[3, :30].swapaxes(0, 1), rtol=1e-6)

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            (
                np.ones((28, 32, 30, 4)),
                "found an array of shape (28, 32, 30, 4); expected numbers of shape (28, 32, 30, 5)",
            ),
            ({"data": 1}, "found dict"),
        ],
    )
    def test_broken(self, tmp_path: Path, content: object, fault: str) -> None:
        (tmp_path / "sub000.pkl.pkl").write_bytes(pickle.dumps(content))
        assert fault in told(tmp_path, "faced_features")
