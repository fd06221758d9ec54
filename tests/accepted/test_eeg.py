from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.accepted.eeg import Accepted, open_corpus
from stages.errors import DataError, UsageError
from stages.ingest.eeg.schema import BANDS
from stages.validate.eeg import stage
from tests.validate.eeg.fakes import (
    CHANNELS,
    LABELS,
    PEOPLE,
    RATE,
    WINDOWS,
    features,
    frame,
    ingested,
    params,
    signal,
    subjects,
)

pytestmark = pytest.mark.usefixtures("workspace")
RECORDS = frame(
    *(
        row | ({"std_uv": 2310.0} if row["record_id"] == "six/s01/1/2" or row["subject"] == "s06" else {})
        for row in subjects("six", PEOPLE)
    )
)


@pytest.fixture
def six(workspace: Path) -> Accepted:
    """Six people; one trial of the first is refused, and all of the last; one value of the second is masked."""
    second = features(RECORDS.filter(pl.col("subject") == "s02"), seed=1)
    second["de"][5, 2, 0] = np.nan
    ingested("six", RECORDS, {"s02": second})
    stage.run(params("six", six={"gate": {"max_quarantined": 0.5}}, gate={"max_quarantined": 0.5}), name="eeg", key="")
    return open_corpus("six")


def test_what_is_known_before_anything_is_read(six: Accepted) -> None:
    assert (six.classes, six.channels, six.bands) == (LABELS, CHANNELS, tuple(BANDS))
    assert six.subjects == PEOPLE[:5]
    assert six.simulated
    assert (six.trials(), six.trials(["s01"])) == (29, 5)


def test_a_refused_trial_is_not_there_and_the_others_keep_their_windows(six: Accepted) -> None:
    found = six.features("s01")
    x_WCB, label_W, trial_W, record_ids = found
    assert record_ids == [f"six/s01/1/{n}" for n in (1, 3, 4, 5, 6)]
    assert (x_WCB.shape, x_WCB.dtype) == ((5 * WINDOWS, 3, 5), np.float32)
    stored = features(RECORDS.filter(pl.col("subject") == "s01"), seed=0)["de"].to_numpy()
    np.testing.assert_array_equal(x_WCB, np.delete(stored, slice(WINDOWS, 2 * WINDOWS), axis=0))
    np.testing.assert_array_equal(trial_W, np.repeat(np.arange(5), WINDOWS))
    np.testing.assert_array_equal(label_W, np.repeat([1, 0, 1, 2, 0], WINDOWS))


def test_a_masked_value_is_filled_from_its_trial_and_flagged_windows_are_left_out_where_asked(six: Accepted) -> None:
    found = six.features("s02")
    others = [4, 6, 7]
    np.testing.assert_allclose(found.x_WCB[5, 2, 0], found.x_WCB[others, 2, 0].mean(), rtol=1e-6)
    clean = six.features("s02", artifacts_too=False)
    assert np.bincount(clean.trial_W).tolist() == [3] * 6
    np.testing.assert_array_equal(clean.x_WCB, np.delete(found.x_WCB, np.s_[WINDOWS - 1 :: WINDOWS], axis=0))


def test_a_window_of_samples_that_are_no_numbers_is_left_out(six: Accepted) -> None:
    samples = signal(RECORDS.filter(pl.col("subject") == "s02"))
    samples["signal"][1, 5 * RATE + 3] = np.nan
    artifacts.write_dataset(artifacts.ingested("eeg", "six") / "subjects" / "s02.zarr", {"signal": samples})
    assert np.bincount(six.signals("s02").trial_W).tolist() == [4, 3, 4, 4, 4, 4]


def test_signals_are_cut_where_the_windows_of_the_features_lie(six: Accepted) -> None:
    found = six.signals("s01")
    assert found.x_WCB.shape == (5 * WINDOWS, 3, RATE)
    kept = np.delete(np.arange(6 * WINDOWS), slice(WINDOWS, 2 * WINDOWS))
    np.testing.assert_array_equal(found.x_WCB[:, 1, 0], kept * RATE)
    np.testing.assert_array_equal(np.diff(found.x_WCB, axis=2), 1)
    np.testing.assert_array_equal(found.label_W, six.features("s01").label_W)


def test_folds_hold_out_each_subject_once(six: Accepted) -> None:
    folds = six.folds()
    assert [fold.held_out for fold in folds] == list(six.subjects)
    for fold in folds:
        assert sorted((*fold.train, *fold.validation, *fold.test)) == sorted(six.subjects)
        assert (len(fold.train), len(fold.validation)) == (3, 1)


def test_a_subject_without_accepted_trials_and_a_signal_that_is_not_there_are_errors(six: Accepted) -> None:
    with pytest.raises(UsageError, match="six has no subject s06 with accepted trials"):
        six.features("s06")
    (artifacts.ingested("eeg", "six") / "subjects" / "s01.zarr" / "signal").rename("elsewhere")
    with pytest.raises(DataError, match="found no group `signal`"):
        six.signals("s01")


def test_a_corpus_the_gate_has_not_seen_is_an_error(six: Accepted) -> None:
    ingested("new", frame(*subjects("new", ["a"])))
    with pytest.raises(UsageError, match="The gate has no verdict on 6 of 6 trials of new"):
        open_corpus("new")


def test_a_corpus_without_labels_has_windows_without_a_class(workspace: Path) -> None:
    ingested("lone", frame(*subjects("lone", ["a"], 2, label=None)), label_names=[])
    stage.run(params("lone"), name="eeg", key="")
    lone = open_corpus("lone")
    assert lone.folds() == []
    assert set(lone.features("a").label_W.tolist()) == {-1}
