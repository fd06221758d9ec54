"""One trial through all steps: gaps, flat channels, references, artifacts that are made and found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stages.eeg.artifacts import KINDS, MISSING, Limits, flagged_windows, recorded_windows
from stages.eeg.preprocess import Processed, Steps, Windows, bad_channels, missing_at, process

BANDS = ((1.0, 4.0), (4.0, 8.0), (8.0, 14.0), (14.0, 31.0), (31.0, 50.0))
LIMITS = Limits(flat=0.1, amplitude=150.0, gradient=10.0, muscle=0.5)


def eeg(seconds: float = 10, rate: float = 200, channels: int = 16, seed: int = 0) -> np.ndarray:
    """Pink noise of 10 uV, float32 as readers give it."""
    random = np.random.default_rng(seed)
    frequency = np.fft.rfftfreq(round(seconds * rate), 1 / rate)
    spectrum = random.normal(size=(channels, frequency.size)) + 1j * random.normal(size=(channels, frequency.size))
    signal_CT = np.fft.irfft(spectrum / np.sqrt(np.maximum(frequency, 0.5)), n=round(seconds * rate))
    return (10 * signal_CT / signal_CT.std()).astype(np.float32)


def run(recorded_CT: np.ndarray, rate: float = 200, **changes: Any) -> Processed:
    steps = {"rate": 128.0, "band": (1.0, 50.0), "order": 4, "reference": "average", "reference_channels": 8}
    windows = Windows(changes.pop("seconds", 1.0), BANDS, "spectral", "hann", changes.pop("limits", LIMITS))
    return process(recorded_CT, rate, Steps(**(steps | changes)), windows)


def seen(found: Processed, kind: str) -> list[tuple[int, int]]:
    """Windows and channels flagged with a kind."""
    bit = 1 << [str(name) for name in KINDS].index(kind)
    return [(int(window), int(channel)) for window, channel in np.argwhere(found.kinds_WC & bit)]


def test_clean_eeg_has_shapes_units_and_no_flag() -> None:
    found = run(eeg())
    assert found.signal_CT.shape == (16, 1280)
    assert (found.signal_CT.dtype, found.entropy_WCB.dtype) == (np.float32, np.float32)
    assert found.entropy_WCB.shape == (10, 16, 5)
    assert np.isfinite(found.entropy_WCB).all()
    assert not found.kinds_WC.any()
    np.testing.assert_allclose(found.signal_CT.mean(axis=0), 0, atol=1e-5)


def test_a_flat_channel_is_masked_and_leaves_the_others_as_if_it_were_not_there() -> None:
    """Case 2: and the average reference, which would lend it the others' signal, does not hide it."""
    recorded_CT = eeg()
    recorded_CT[3] = 42.0
    found = run(recorded_CT)
    rest = np.delete(np.arange(16), 3)
    assert np.isnan(found.entropy_WCB[:, 3]).all()
    assert not found.signal_CT[3].any()
    alone = run(recorded_CT[rest])
    np.testing.assert_allclose(found.entropy_WCB[:, rest], alone.entropy_WCB, atol=1e-6)
    assert seen(found, "flat") == [(window, 3) for window in range(10)]


def test_a_flat_second_is_masked_in_its_window_alone() -> None:
    recorded_CT = eeg()
    recorded_CT[5, 600:800] = recorded_CT[5, 600]
    found = run(recorded_CT)
    assert seen(found, "flat") == [(3, 5)]
    assert [(int(w), int(c)) for w, c in np.argwhere(np.isnan(found.entropy_WCB).all(axis=-1))] == [(3, 5)]


def test_missing_samples_stay_missing_and_do_not_spread() -> None:
    recorded_CT = eeg()
    recorded_CT[2, 500:520] = np.nan
    found = run(recorded_CT)
    assert seen(found, "missing") == [(2, 2)]
    assert np.isnan(found.signal_CT).sum() == pytest.approx(20 * 128 / 200, abs=1.5)
    assert np.isnan(found.signal_CT[2, 320:333]).any()
    assert np.isfinite(np.delete(found.entropy_WCB, 2, axis=1)).all()
    whole = run(eeg())
    np.testing.assert_allclose(found.entropy_WCB[5:, 2], whole.entropy_WCB[5:, 2], atol=0.05)


@pytest.mark.parametrize("level", [np.nan, np.inf])
def test_a_channel_without_samples_is_bad(level: float) -> None:
    recorded_CT = eeg()
    recorded_CT[1] = level
    assert np.flatnonzero(bad_channels(recorded_CT, 0.1)).tolist() == [1]
    found = run(recorded_CT)
    assert np.isfinite(found.entropy_WCB[:, np.arange(16) != 1]).all()
    assert np.isnan(found.entropy_WCB[:, 1]).all()
    assert (found.kinds_WC[:, 1] == MISSING).all()


def test_a_blink_a_jump_and_muscle_are_told_apart() -> None:
    recorded_CT = eeg()
    time_T = np.arange(200) / 200
    recorded_CT[0, 200:400] += 400 * np.exp(-0.5 * ((time_T - 0.5) / 0.08) ** 2)
    recorded_CT[1, 900:] += 400
    recorded_CT[2, 1400:1600] += 40 * np.sin(2 * np.pi * 41 * time_T)
    found = run(recorded_CT)
    assert (1, 0) in seen(found, "amplitude")
    assert (1, 0) not in seen(found, "gradient")
    assert (1, 0) not in seen(found, "muscle")
    assert (4, 1) in seen(found, "gradient")
    assert {place for place in seen(found, "muscle") if place[1] == 2} == {(7, 2)}


def test_counts_are_judged_by_what_needs_no_unit() -> None:
    found = run(4000 + 1000 * eeg(), limits=Limits(muscle=0.5))
    assert not found.kinds_WC.any()


def test_few_channels_keep_the_recorded_reference() -> None:
    recorded_CT = eeg(channels=4) + eeg(channels=1, seed=9)
    found = run(recorded_CT)
    np.testing.assert_array_equal(found.signal_CT, run(recorded_CT, reference="recorded").signal_CT)
    assert np.abs(found.signal_CT.mean(axis=0)).max() > 1


def test_a_scale_moves_every_entropy_by_its_logarithm() -> None:
    """All steps are linear, so that a subject's gain is a constant of all bands and channels."""
    recorded_CT = eeg()
    more = run(7 * recorded_CT).entropy_WCB - run(recorded_CT).entropy_WCB
    np.testing.assert_allclose(more, np.log(7), atol=1e-4)


def test_windows_do_not_depend_on_what_follows_the_trial() -> None:
    """A trial is filtered by itself: no sample of the next one reaches it."""
    trials = [eeg(seed=1), eeg(seed=2)]
    alone = run(trials[0])
    assert alone.entropy_WCB.shape[0] == 10
    joined = run(np.concatenate(trials, axis=1))
    assert not np.array_equal(joined.entropy_WCB[9], alone.entropy_WCB[9])
    np.testing.assert_allclose(joined.entropy_WCB[2:6], alone.entropy_WCB[2:6], atol=1e-3)


def test_a_trial_shorter_than_a_window_has_none() -> None:
    found = run(eeg(seconds=0.8))
    assert found.entropy_WCB.shape == (0, 16, 5)
    assert flagged_windows(found.kinds_WC, 0.0).shape == (0,)


def test_four_second_windows_of_another_rate() -> None:
    found = run(eeg(seconds=13, rate=250), 250, seconds=4.0)
    assert found.entropy_WCB.shape == (3, 16, 5)


def test_a_window_is_flagged_above_the_share_of_its_channels() -> None:
    kinds_WC = np.zeros((3, 20), dtype=np.uint8)
    kinds_WC[1, 0] = 1
    kinds_WC[2, :3] = 4
    assert flagged_windows(kinds_WC, 0.0).tolist() == [False, True, True]
    assert flagged_windows(kinds_WC, 0.05).tolist() == [False, False, True]


def test_ranges_are_those_of_the_windows() -> None:
    recorded_CT = np.array([[0.0, 3, 1, 1, 5, np.nan, 7, 7]])
    range_WC, missing_WC = recorded_windows(recorded_CT, 2.0, 4, 1.0)
    assert range_WC[:, 0].tolist() == [3, 0, 0, 0]
    assert missing_WC[:, 0].tolist() == [False, False, True, False]


def test_a_missing_sample_is_missing_on_both_sides_at_the_new_rate() -> None:
    missing_CT = np.zeros((1, 10), dtype=bool)
    missing_CT[0, 4] = True
    assert np.flatnonzero(missing_at(missing_CT, 10, 5, 5)[0]).tolist() == [2]
    assert np.flatnonzero(missing_at(missing_CT, 10, 10, 10)[0]).tolist() == [4]
    assert np.flatnonzero(missing_at(missing_CT, 10, 8, 8)[0]).tolist() == [3]
