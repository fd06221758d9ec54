"""Bug cases of EEG pipelines, from files as a user has them to what she is told.

The numbers are those of the project's list of cases. Each kind of fault is tested in breadth beside its module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.io
import yaml

from stages import artifacts
from stages.__main__ import main
from stages.eeg.entropy import differential_entropy
from stages.ingest.eeg.names import SEED_62
from stages.ingest.eeg.schema import BANDS
from tests.ingest.eeg import layouts

KEY = "cas"
RATE = 200
SEED_FILE = {"1_20131027.mat": "djc"}


@pytest.fixture(autouse=True)
def _in_workspace(workspace: Path) -> None:
    """Every case has a folder of its own."""


def ingest(format_: Any = "seed", **blocks: Any) -> int:
    """Write params.yaml for the corpus under raw/, run ``ingest``, and return the exit code."""
    eeg = {
        "corpora": {KEY: {"path": "raw", "format": format_, "gate": {}}},
        "preprocessing": {},
        "features": {"smoothing": "none"},
        "gate": {},
        "splits": {"seed": 0, "validation": 0.2},
    }
    Path("params.yaml").write_text(yaml.safe_dump({"eeg": eeg | blocks}))
    return main(["ingest", f"eeg@{KEY}"])


def records() -> pl.DataFrame:
    return pl.read_parquet(artifacts.ingested("eeg", KEY) / "records.parquet")


def features(subject: str) -> np.ndarray:
    store = artifacts.open_dataset(artifacts.ingested("eeg", KEY) / "subjects" / f"{subject}.zarr", "de")
    return np.asarray(store["de"])


def verdict() -> pl.DataFrame:
    main(["validate", "eeg"])
    return pl.read_parquet("data/validated/eeg/verdict.parquet")


def quarantined() -> dict[str, str]:
    """Reason for each record that is not accepted."""
    refused = verdict().filter(pl.col("outcome") == "quarantined")
    return dict(zip(refused["record_id"], refused["reason"], strict=True))


def seed_trials(file: str, trials: dict[str, np.ndarray]) -> None:
    scipy.io.savemat(Path("raw/Preprocessed_EEG") / file, trials)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_01_entropy_of_a_standard_deviation_of_2_is_2112_nats() -> None:
    assert float(differential_entropy(np.array(4.0))) == pytest.approx(2.112, abs=5e-4)
    assert float(differential_entropy(np.array(4.0))) / np.log(2) == pytest.approx(3.047, abs=5e-4)


def test_02_a_flat_channel_is_never_minus_infinity() -> None:
    layouts.seed(Path("raw"), SEED_FILE, samples=500)
    trials = {f"djc_eeg{trial}": layouts.eeg(trial, 62, 500) for trial in range(1, 16)}
    trials["djc_eeg4"][10] = 0
    seed_trials("1_20131027.mat", trials)
    assert ingest() == 0
    assert not np.isinf(features("1")).any()
    assert records().filter(pl.col("flat_channels") > 0)["record_id"].to_list() == [f"{KEY}/1/1/4"]
    assert list(quarantined()) == [f"{KEY}/1/1/4"]


def test_03_trials_are_numbers_whatever_the_initials() -> None:
    layouts.seed(Path("raw"), {"1_20131027.mat": "djc", "2_20140404.mat": "jl"}, samples=400)
    assert ingest() == 0
    by_subject = records().group_by("subject", maintain_order=True).agg("trial", "label_value")
    assert by_subject["trial"].to_list() == [list(range(1, 16))] * 2
    assert by_subject["label_value"].to_list() == [list(layouts.SEED_CLASSES)] * 2


def test_05_sessions_1_and_2_of_a_store_with_0_and_1(capsys: pytest.CaptureFixture[str]) -> None:
    for session in ("0", "1"):
        folder = Path("raw") / "sub-01" / f"ses-{session}" / "eeg"
        data = layouts.eeg(int(session), 3, 100 * 102)
        layouts.edf(folder / f"sub-01_ses-{session}_eeg.edf", data, ("Fp1", "Cz", "O2"))
        lines = [f"{second}\t1\tfeet" for second in range(1, 101)]
        (folder / f"sub-01_ses-{session}_events.tsv").write_text("\n".join(["onset\tduration\ttrial_type", *lines]))
    block = {"reader": "bids", "sessions": [1, 2], "events": {"labels": {"feet": "feet"}}}
    assert ingest(block) == 0
    found = records().group_by("session", "source_file").len().sort("session").rows()
    assert [(session, file[7:12], count) for session, file, count in found] == [
        ("1", "ses-0", 100),
        ("2", "ses-1", 100),
    ]
    assert ingest({**block, "sessions": [2, 3]}) == 1
    assert "found sessions 1, 2; expected sessions 2, 3" in said(capsys)


def test_06_sixty_electrodes_among_eye_tracking_columns() -> None:
    electrodes = [name.upper() for name in SEED_62 if not name.startswith("CB")]
    names = ["x", "y", *electrodes, "targetPosX", "validity"]
    layouts.edf(Path("raw/S1.edf"), layouts.eeg(1, 64, 800), names, rate=RATE)
    assert ingest("edf") == 0
    row = records().row(0, named=True)
    assert (row["channels"], row["unknown_channels"]) == (60, 4)
    assert features("S1").shape[1] == 60


def test_06_an_input_that_tells_the_label_alone_is_reported() -> None:
    layouts.seed(Path("raw"), {f"{subject}_20131027.mat": "djc" for subject in range(1, 4)}, samples=600)
    for subject in range(1, 4):
        trials = {f"djc_eeg{trial}": layouts.eeg(20 * subject + trial, 62, 600) for trial in range(1, 16)}
        for trial, label in enumerate(layouts.SEED_CLASSES, start=1):
            trials[f"djc_eeg{trial}"][20] *= 10.0**label
        seed_trials(f"{subject}_20131027.mat", trials)
    # Without the average reference, by which the channel would tell on itself in all others.
    assert ingest(preprocessing={"reference": "recorded"}) == 0
    verdict()
    summary = Path("data/validated/eeg/summary.json").read_text()
    for band in BANDS:
        assert f"{SEED_62[20]} {band} alone tells the classes of {KEY} apart" in summary
    assert f"{SEED_62[21]} alpha alone" not in summary


def test_07_forty_events_of_value_2_not_the_first_forty() -> None:
    data = layouts.eeg(3, 3, RATE * 122)
    data[2] = 0
    for number in range(120):
        begin = RATE * (number + 1)
        data[2, begin : begin + 20] = number % 3 + 1  # cue, task, rest
    layouts.edf(Path("raw/S1.edf"), data, ("Cz", "O1", "trigger"), rate=RATE)
    block = {"reader": "edf", "events": {"channel": "trigger", "labels": {"2": "task"}, "seconds": 1}}
    assert ingest(block) == 0
    assert records()["trial"].to_list() == list(range(1, 41))
    assert records()["stimulus"].unique().to_list() == ["2"]


def test_08_twenty_volts_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    layouts.seed(Path("raw"), SEED_FILE, samples=400)
    assert ingest({"reader": "seed", "unit": "V"}) == 1
    assert not artifacts.ingested("eeg", KEY).exists()
    told = said(capsys)
    assert "1_20131027.mat, variable djc_eeg1: found a standard deviation of" in told
    assert "expected that of EEG, 1 to 200 uV (1e-6 to 2e-4 V)" in told
    assert "such as `unit: uV`" in told


def test_10_a_gap_of_nine_seconds_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    notes = [b"+0\x14\x14\0", b"+10\x14\x14\0+10.5\x14stimulus\x14\0"]
    layouts.edf(Path("raw/S1.edf"), layouts.eeg(1, 2, 400), ("Cz", "O1"), rate=RATE, notes=notes, kind="EDF+D")
    assert ingest("edf") == 1
    assert "S1.edf, record 2: found an onset of 10 s in a discontinuous file (EDF+D); expected 1 s" in said(capsys)


def test_11_a_rate_that_is_no_integer_is_kept() -> None:
    layouts.edf(Path("raw/S1.edf"), layouts.eeg(1, 2, 3000), ("Cz", "O1"), rate=600, seconds="0.998976")
    assert ingest("edf", preprocessing={"rate": None}) == 0
    row = records().row(0, named=True)
    assert row["original_rate"] == pytest.approx(600 / 0.998976, rel=1e-12)
    assert row["seconds"] == pytest.approx(5 * 0.998976, rel=1e-12)


def test_15_labels_are_joined_to_the_sheet_by_participant_and_video(capsys: pytest.CaptureFixture[str]) -> None:
    labels = layouts.deap(Path("raw"), samples=384 + 300)
    order = np.random.default_rng(2).permutation(40) + 1
    head = "Participant_id,Trial,Experiment_id,Valence,Arousal,Dominance,Liking"
    for name, rows in (("by_video.csv", labels[order - 1]), ("by_row.csv", labels)):
        lines = [
            f"1,{place},{video},{','.join(f'{value:.2f}' for value in values)}"
            for place, (video, values) in enumerate(zip(order, rows, strict=True), start=1)
        ]
        Path(name).write_text("\n".join([head, *lines]) + "\n")
    assert ingest({"reader": "deap", "ratings": "by_video.csv"}) == 0
    assert records()["valence"].to_list() == labels[:, 0].tolist()
    assert ingest({"reader": "deap", "ratings": "by_row.csv"}) == 1
    assert "s01.dat, video 1: found ratings" in said(capsys)


class TestOtherInput:
    def test_version_73_beside_version_5(self) -> None:
        layouts.seed(Path("raw"), {"1_20131027.mat": "djc"}, samples=400)
        file = Path("raw/Preprocessed_EEG/2_20140404.mat")
        layouts.mat73(file, {f"jl_eeg{trial}": layouts.eeg(trial, 62, 400 + trial) for trial in range(1, 16)})
        assert ingest() == 0
        digests = records().sort("subject", "trial").group_by("subject", maintain_order=True).agg("sha256")["sha256"]
        assert digests[0].to_list() == digests[1].to_list()

    def test_a_subject_that_lacks_one_trial(self, capsys: pytest.CaptureFixture[str]) -> None:
        layouts.seed(Path("raw"), SEED_FILE, samples=400, skip=[7])
        assert ingest() == 0
        assert records().height == 14
        assert records().filter(pl.col("trial") == 8)["label"].to_list() == ["neutral"]
        assert "1_20131027.mat: trials 7 are not there" in said(capsys)

    def test_labels_as_texts(self) -> None:
        names = np.array([{-1: "negative", 0: "neutral", 1: "positive"}[c] for c in layouts.SEED_CLASSES], dtype=object)
        layouts.seed(Path("raw"), SEED_FILE, samples=400, label=names)
        assert ingest() == 0
        assert records()["label_value"].to_list() == list(layouts.SEED_CLASSES)

    def test_a_channel_named_twice_is_quarantined(self) -> None:
        layouts.edf(Path("raw/S1.edf"), layouts.eeg(1, 3, 800), ("Cz", "O1", "CZ"), rate=RATE)
        assert ingest("edf") == 0
        assert records()["duplicate_channels"].to_list() == [1]
        assert list(quarantined()) == [f"{KEY}/S1/1/1"]

    def test_a_session_that_is_a_copy_of_another(self) -> None:
        layouts.seed(Path("raw"), {"1_20131027.mat": "djc", "2_20140404.mat": "jl"}, samples=400)
        folder = Path("raw/Preprocessed_EEG")
        (folder / "1_20131107.mat").write_bytes((folder / "1_20131027.mat").read_bytes())
        assert ingest() == 0
        refused = quarantined()
        assert set(refused) == {f"{KEY}/1/2/{trial}" for trial in range(1, 16)}
        assert "copy of session 1/1" in refused[f"{KEY}/1/2/1"]

    def test_no_number_inside_a_trial(self) -> None:
        layouts.seed(Path("raw"), SEED_FILE, samples=500)
        trials = {f"djc_eeg{trial}": layouts.eeg(trial, 62, 500) for trial in range(1, 16)}
        trials["djc_eeg9"][3, 100:110] = np.nan
        seed_trials("1_20131027.mat", trials)
        assert ingest() == 0
        assert list(quarantined()) == [f"{KEY}/1/1/9"]

    def test_a_pickle_cut_short(self, capsys: pytest.CaptureFixture[str]) -> None:
        layouts.deap(Path("raw"), ("s01", "s02"))
        file = Path("raw/data_preprocessed_python/s02.dat")
        file.write_bytes(file.read_bytes()[:200_000])
        assert ingest("deap") == 1
        assert "s02.dat: found a damaged or incomplete pickle" in said(capsys)
        assert not artifacts.ingested("eeg", KEY).exists()

    def test_a_pickle_that_calls_a_function_of_the_system(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("raw").mkdir()
        Path("raw/s01.dat").write_bytes(b"cposix\nsystem\n(S'touch ran'\ntR.")
        assert ingest("deap") == 1
        assert "s01.dat: found a pickle that asks for posix.system" in said(capsys)
        assert not Path("ran").exists()
