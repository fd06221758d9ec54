"""The verb: what it writes for signals and for features, equal bytes, one subject at a time, how it fails."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from scipy.io import savemat

from stages import artifacts, manifest
from stages.errors import DataError, UsageError
from stages.ingest.eeg import stage
from stages.ingest.eeg.records import line_noise_share, statistics
from stages.ingest.eeg.schema import BANDS, RECORD_COLUMNS
from stages.ingest.eeg.stage import Params, run
from stages.ingest.eeg.trials import Corpus, OpenCorpus, Trial

LABELS = [1, 0, -1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 0, 1, -1]


def params(**features: Any) -> dict[str, Any]:
    return {
        "eeg": {
            "corpora": {"lab": {"path": "raw", "format": "seed", "gate": {}}},
            "preprocessing": {},
            "features": {"smoothing": "none"} | features,
        }
    }


def pink(samples: int, seed: int, channels: int = 62) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.cumsum(random.normal(size=(channels, samples)), axis=1) * 0.3 + random.normal(size=(channels, samples))


def write_seed(folder: Path, subjects: int = 2, seconds: float = 3.1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    savemat(folder / "label.mat", {"label": np.array([LABELS])})
    for subject in range(1, subjects + 1):
        trials = {f"xy_eeg{trial}": pink(round(200 * seconds), 100 * subject + trial) for trial in range(1, 16)}
        savemat(folder / f"{subject}_20200{subject}01.mat", trials)


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "params.yaml").write_text(yaml.safe_dump(params()))
    write_seed(workspace / "raw" / "Preprocessed_EEG")
    return workspace


def ingest() -> Path:
    run(Params.read(name="eeg", key="lab"), name="eeg", key="lab")
    return artifacts.ingested("eeg", "lab")


def test_ingest_writes_one_folder(project: Path, stages: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = stages("ingest", "eeg@lab", cwd=project)
    assert result.returncode == 0, result.stderr
    assert "lab: 30 trials of 2 subjects" in result.stdout
    folder = project / "data/ingested/eeg/lab"
    assert sorted(path.name for path in folder.iterdir()) == [
        "corpus.json",
        "manifest.json",
        "records.parquet",
        "subjects",
    ]
    records = pl.read_parquet(folder / "records.parquet")
    assert records.columns == list(RECORD_COLUMNS)
    assert records["record_id"].to_list()[:2] == ["lab/1/1/1", "lab/1/1/2"]
    assert records["record_id"].is_unique().all()
    assert records["group"].unique(maintain_order=True).to_list() == ["lab/1", "lab/2"]
    assert records["windows"].to_list() == [3] * 30
    assert records["original_rate"].unique().to_list() == [200]
    assert records["rate"].unique().to_list() == [128]
    with artifacts.open_dataset(folder / "subjects/2.zarr", "de") as de:
        assert de["de"].shape == (45, 62, 5)
        assert (de["de"].dtype, de["de"].attrs["units"]) == (np.float32, "nat")
        assert de["trial"].values.tolist() == [trial for trial in range(15) for _ in range(3)]
        assert de["start_seconds"].values.tolist() == [0, 1, 2] * 15
        assert de.attrs["bands"] == list(BANDS)
        assert de.attrs["channels"][:3] == ["Fp1", "Fpz", "Fp2"]
        assert np.isfinite(de["de"].values).all()
        assert de["artifact"].dtype == np.bool_
        assert de["artifact_kinds"].shape == (45, 62)
    with artifacts.open_dataset(folder / "subjects/2.zarr", "signal") as signal:
        assert signal["signal"].dims == ("channel", "time")
        assert signal["signal"].attrs["units"] == "uV"
        assert signal["trial_stop"].values[-1] == signal.sizes["time"]
        assert (signal["trial_start"].values[1:] == signal["trial_stop"].values[:-1]).all()
    corpus = json.loads((folder / "corpus.json").read_text())
    assert corpus["simulated"] is False
    assert corpus["bands"]["delta"] == [1, 4]
    assert str(project) not in (folder / "corpus.json").read_text()


def test_stored_signals_are_the_trials_in_order(project: Path) -> None:
    """The features of a trial come back from its stretch of the store: no trial is under another's row."""
    from stages.eeg.entropy import band_entropies

    folder = ingest()
    with (
        artifacts.open_dataset(folder / "subjects/1.zarr", "signal") as signal,
        artifacts.open_dataset(folder / "subjects/1.zarr", "de") as de,
    ):
        for row in (0, 7, 14):
            stretch = slice(int(signal["trial_start"][row]), int(signal["trial_stop"][row]))
            again = band_entropies(signal["signal"].values[:, stretch], 128, list(BANDS.values()), 1.0)
            np.testing.assert_allclose(de["de"].values[de["trial"].values == row], again, atol=1e-4)


def test_equal_input_gives_equal_bytes(project: Path) -> None:
    before = artifacts.sha256_tree(ingest())
    assert artifacts.sha256_tree(ingest()) == before


@pytest.mark.parametrize(
    "smoothing", [{"method": "moving_average", "windows": 3}, "lds", {"method": "lds", "em_steps": 0}]
)
def test_smoothing_keeps_to_the_trial(project: Path, smoothing: Any) -> None:
    (project / "params.yaml").write_text(yaml.safe_dump(params(smoothing=smoothing)))
    whole = ingest()
    with artifacts.open_dataset(whole / "subjects/1.zarr", "de") as de:
        before = de["de"].values[3:]
    file = project / "raw/Preprocessed_EEG/1_20200101.mat"
    savemat(file, {f"xy_eeg{trial}": pink(620, 5 if trial == 1 else 100 + trial) for trial in range(1, 16)})
    with artifacts.open_dataset(ingest() / "subjects/1.zarr", "de") as de:
        np.testing.assert_allclose(de["de"].values[3:], before, atol=1e-6)
    corpus = artifacts.read_json(whole / "corpus.json")
    assert corpus["smoothing"]["method"] == (smoothing if isinstance(smoothing, str) else smoothing["method"])


def test_a_flat_channel_is_told_in_the_records_and_masked_in_the_features(project: Path) -> None:
    trials = {f"xy_eeg{trial}": pink(620, trial) for trial in range(1, 16)}
    trials["xy_eeg4"][7] = 0
    trials["xy_eeg5"][9, 100:110] = np.nan
    savemat(project / "raw/Preprocessed_EEG/1_20200101.mat", trials)
    folder = ingest()
    records = pl.read_parquet(folder / "records.parquet")
    assert records["flat_channels"].to_list()[:5] == [0, 0, 0, 1, 0]
    assert records["nan_share"][4] == pytest.approx(10 / (62 * 620))
    with artifacts.open_dataset(folder / "subjects/1.zarr", "de") as de:
        masked = np.argwhere(np.isnan(de["de"].values).all(axis=-1)).tolist()
        assert masked == [[9, 7], [10, 7], [11, 7], [12, 9]]
        assert not np.isinf(de["de"].values).any()


def fake(load: Callable[[str], list[Trial]], kind: Any = "signals", **changes: Any) -> OpenCorpus:
    about: dict[str, Any] = {
        "key": "lab",
        "reader": "seed",
        "title": "fake",
        "kind": kind,
        "subjects": ("a", "b"),
        "label_names": ("low", "high"),
        "channels": ("Fp1", "Cz", "Oz"),
        "rate": 200.0,
        "unit": "uV",
    }
    return OpenCorpus(Corpus(**(about | changes)), load)


def trial(subject: str, number: int, channels: tuple[str, ...] = ("Fp1", "Cz", "Oz"), **changes: Any) -> Trial:
    about: dict[str, Any] = {
        "session": "1",
        "stimulus": f"clip {number}",
        "label": "low",
        "label_value": 0,
        "rate": 200.0,
        "unit": "uV",
        "source_file": f"{subject}.mat",
        "signal": lambda: pink(620, number, len(channels)).astype(np.float32),
    }
    return Trial(subject=subject, trial=number, channels=channels, **(about | changes))


@pytest.fixture
def opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[OpenCorpus]:
    """The corpus that the stage is given."""
    holder: list[OpenCorpus] = []
    monkeypatch.setattr("stages.ingest.eeg.trials.open_corpus", lambda *_: holder[0])
    return holder


def test_shipped_features_are_kept_as_they_are(opened: list[OpenCorpus]) -> None:
    shipped = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    shipped[1, 2] = np.nan
    changes = {"signal": None, "features": lambda: shipped, "rate": float("nan")}
    about = {"bands": ("alpha", "beta"), "window_seconds": 4.0, "feature_unit": "as published", "rate": None}
    opened.append(fake(lambda subject: [trial(subject, 1, **changes)], "features", **about))
    folder = ingest()
    with artifacts.open_dataset(folder / "subjects/a.zarr", "de") as de:
        np.testing.assert_array_equal(de["de"].values, shipped)
        assert de["start_seconds"].values.tolist() == [0, 4, 8, 12]
        assert de["de"].attrs["units"] == "as published"
        assert de["artifact_kinds"].values[1, 2] != 0
    assert not (folder / "subjects/a.zarr/signal").exists()
    row = pl.read_parquet(folder / "records.parquet").row(0, named=True)
    assert (row["rate"], row["std_uv"], row["windows"], row["seconds"]) == (None, None, 4, 16)


def test_a_trial_without_a_channel_keeps_the_others_in_their_places(opened: list[OpenCorpus]) -> None:
    there = pink(620, 1, 3).astype(np.float32)
    trials = [
        trial("a", 1, signal=lambda: there),
        trial("a", 2, ("Oz", "Fp1"), signal=lambda: there[[2, 0]], unknown_channels=("x", "y")),
    ]
    opened.append(fake(lambda subject: trials if subject == "a" else [trial(subject, 1)]))
    folder = ingest()
    records = pl.read_parquet(folder / "records.parquet")
    assert records["missing_channels"].to_list() == [0, 1, 0]
    assert records["unknown_channels"].to_list() == [0, 2, 0]
    assert records["channels"].to_list() == [3, 2, 3]
    with artifacts.open_dataset(folder / "subjects/a.zarr", "de") as de:
        first, second = de["de"].values[:3], de["de"].values[3:]
        np.testing.assert_allclose(second[:, [0, 2]], first[:, [0, 2]], atol=1e-6)
        assert np.isnan(second[:, 1]).all()


def test_one_subject_is_in_memory_at_a_time(opened: list[OpenCorpus]) -> None:
    """When a subject is read, the arrays of the one before are gone."""
    import gc
    import weakref

    alive: list[weakref.ref[Any]] = []

    def load(subject: str) -> list[Trial]:
        gc.collect()
        assert not [reference for reference in alive if reference() is not None]
        recording = pink(620, 1, 3).astype(np.float32)
        alive.append(weakref.ref(recording))
        return [trial(subject, 1, signal=lambda: recording)]

    opened.append(fake(load, subjects=("a", "b", "c")))
    ingest()
    assert len(alive) == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rate": 90.0}, "b.mat, trial b/1/2: found 90 Hz; expected at least 100 Hz for features up to 50 Hz"),
        ({"rate": 120.0}, "found 120 Hz after resampling; expected 128 Hz as in the subject's trials before it"),
    ],
)
def test_a_rate_that_does_not_fit_is_refused(opened: list[OpenCorpus], changes: dict[str, Any], words: str) -> None:
    opened.append(fake(lambda subject: [trial(subject, 1), trial(subject, 2, **(changes if subject == "b" else {}))]))
    with pytest.raises(DataError) as caught:
        ingest()
    assert words in str(caught.value)
    assert not artifacts.ingested("eeg", "lab").exists()


@pytest.mark.parametrize("name", ["../b", ".b", "b/c"])
def test_a_subject_that_is_no_file_name_is_refused(opened: list[OpenCorpus], name: str) -> None:
    opened.append(fake(lambda subject: [trial(subject, 1)], subjects=(name,)))
    with pytest.raises(DataError, match="a name that is no file name"):
        ingest()


@pytest.mark.parametrize(
    ("block", "change", "words"),
    [
        ("preprocessing", {"band": [4, 50]}, "eeg.features.bands.delta: found [1.0, 4.0] Hz; eeg.preprocessing.band"),
        ("preprocessing", {"band": [50, 1]}, "eeg.preprocessing.band"),
        ("preprocessing", {"refrence": "average"}, "did you mean 'reference'?"),
        ("features", {"smoothing": "kalman"}, "eeg.features.smoothing"),
        ("features", {"smoothing": {"method": "moving_average", "windows": 4}}, "an odd number of windows"),
        ("features", {"window_seconds": 0}, "eeg.features.window_seconds"),
    ],
)
def test_a_wrong_block_is_named_by_its_key(project: Path, block: str, change: dict[str, Any], words: str) -> None:
    tree = params()
    tree["eeg"][block] |= change
    (project / "params.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(UsageError) as caught:
        stage.run(Params.read(name="eeg", key="lab"), name="eeg", key="lab")
    assert words in str(caught.value)


def test_the_manifest_of_a_simulator_says_simulated(project: Path) -> None:
    folder = project / "data/raw/sim"
    folder.parent.mkdir(parents=True)
    (project / "raw").rename(folder)
    files = manifest.of_path(folder, "sim").files
    manifest.write(folder, manifest.Manifest(source="sim", kind="simulator", origin={"seed": 1}, files=files))
    tree = params()
    tree["eeg"]["corpora"]["lab"]["path"] = "data/raw/sim"
    (project / "params.yaml").write_text(yaml.safe_dump(tree))
    assert artifacts.read_json(ingest() / "corpus.json")["simulated"] is True


def test_statistics_of_known_signals() -> None:
    time_T = np.arange(2000) / 200
    drifting = np.stack([100 * time_T, np.zeros(2000), 20 * np.sqrt(2) * np.sin(2 * np.pi * 10 * time_T)])
    found = statistics(drifting.astype(np.float32), 200)
    assert found["flat_channels"] == 1
    assert found["drift_uv"] == pytest.approx(800, rel=1e-3)  # 8 s from the middle of the first fifth to the last's
    assert found["std_uv"] == pytest.approx(20, rel=1e-3)
    assert found["max_abs_uv"] == pytest.approx(500, rel=2e-3)
    assert found["nan_share"] == 0


def test_saturation_is_a_repeated_extreme_value() -> None:
    clipped = np.clip(40 * np.sin(2 * np.pi * np.arange(400) / 100), -30, 30)[None]
    share = statistics(clipped, 200)["saturated_share"]
    assert share == pytest.approx(np.mean(np.abs(clipped) == 30), abs=0.03)
    assert statistics(np.random.default_rng(0).normal(size=(2, 400)), 200)["saturated_share"] == 0


@pytest.mark.parametrize(("rate", "line"), [(200.0, 50), (256.0, 60), (128.0, 50)])
def test_line_noise_is_a_share_of_the_power(rate: float, line: int) -> None:
    """Of white noise it is the width of the line's five half-hertz bins over the whole."""
    time_T = np.arange(round(100 * rate)) / rate
    noise_CT = np.random.default_rng(0).normal(size=(2, time_T.size))
    hum = np.sin(2 * np.pi * line * time_T)
    width = 2.5 / (rate / 2 - 1)
    assert line_noise_share(noise_CT + hum, rate) == pytest.approx((0.5 + width) / 1.5, abs=0.01)
    assert line_noise_share(np.tile(hum, (2, 1)), rate) == pytest.approx(1, abs=1e-6)
    assert line_noise_share(noise_CT, rate) == pytest.approx(width, rel=0.15)
    assert line_noise_share(noise_CT, 90) is None


def test_nothing_there_has_no_statistics_and_no_warning() -> None:
    assert statistics(np.full((2, 50), np.nan), 200) == {"flat_channels": 0, "nan_share": 1.0}
    assert statistics(np.ones((2, 400)), 200)["line_noise_share"] is None
