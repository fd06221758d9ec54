"""Filters, resampling and montage: gains and phases of sines, rates that are no whole numbers, gaps."""

from __future__ import annotations

import numpy as np
import pytest

from stages.eeg.filters import band_pass, bridge_gaps, resample, resampling
from stages.eeg.montage import align, average_reference, union


def sine(frequency: float, rate: float, seconds: float = 10.0) -> np.ndarray:
    return np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)[None]


@pytest.mark.parametrize(
    ("frequency", "gain"), [(10.0, 1.0), (25.0, 1.0), (1.0, 0.5), (50.0, 0.5), (0.2, 0.0), (80.0, 0.0)]
)
def test_the_band_pass_keeps_the_middle_halves_the_edges_and_shifts_nothing(frequency: float, gain: float) -> None:
    """Forwards and backwards: 1/sqrt(2) squared at the edges of the band, and no phase."""
    passed = band_pass(sine(frequency, 200, 40), 200, (1, 50), 4)
    middle = slice(10 * 200, -10 * 200)
    np.testing.assert_allclose(passed[0, middle], gain * sine(frequency, 200, 40)[0, middle], atol=4e-3)


def test_an_upper_edge_above_half_the_rate_leaves_a_high_pass() -> None:
    passed = band_pass(sine(30, 80, 20), 80, (1, 50), 4)
    np.testing.assert_allclose(passed[0, 400:-400], sine(30, 80, 20)[0, 400:-400], atol=1e-3)


def test_an_offset_and_its_size_do_not_reach_the_filtered_signal() -> None:
    signal_CT = np.random.default_rng(0).normal(size=(2, 1000))
    np.testing.assert_allclose(
        band_pass(signal_CT + 1e5, 200, (1, 50), 4), band_pass(signal_CT, 200, (1, 50), 4), atol=1e-6
    )


@pytest.mark.parametrize("rate", [160.0, 200.0, 250.0, 255.0, 256.0, 512.0])
def test_resampling_keeps_a_sine_below_the_new_half_rate(rate: float) -> None:
    resampled, given = resample(sine(45, rate), rate, 128)
    assert given == 128
    assert resampled.shape[-1] == pytest.approx(1280, abs=1)
    np.testing.assert_allclose(resampled[0, 128:-128], sine(45, 128)[0, 128 : resampled.shape[-1] - 128], atol=5e-3)


def test_resampling_removes_what_would_fold_into_the_bands() -> None:
    resampled, _ = resample(sine(90, 200), 200, 128)
    assert np.abs(resampled[0, 128:-128]).max() < 3e-3


def test_a_slower_recording_keeps_its_rate_and_its_samples() -> None:
    signal_CT = sine(10, 100)
    resampled, given = resample(signal_CT, 100, 128)
    assert given == 100
    np.testing.assert_array_equal(resampled, signal_CT)
    assert resampling(160, None) == (1, 1, 160)


def test_an_odd_rate_gives_its_true_rate_so_that_nothing_drifts() -> None:
    """Case 11: at 600.614990234375 Hz an hour resampled by the factors lasts an hour by the rate that is given."""
    rate = 600.614990234375
    up, down, given = resampling(rate, 128)
    samples = round(3600 * rate)
    assert given == pytest.approx(128, rel=1e-6)
    assert given != 128
    assert -(-samples * up // down) / given == pytest.approx(3600, abs=0.02)


def test_gaps_are_bridged_by_a_line_and_said() -> None:
    bridged, missing = bridge_gaps(np.array([[np.nan, 1, np.nan, np.nan, 4, np.nan], [np.nan] * 6]))
    assert bridged.tolist() == [[1, 1, 2, 3, 4, 4], [0] * 6]
    assert missing.sum() == 10


def test_the_average_of_the_good_channels_is_zero_and_bad_ones_keep_out() -> None:
    signal_CT = np.random.default_rng(1).normal(size=(5, 40))
    signal_CT[3] = 1e6
    referenced = average_reference(signal_CT, np.array([True, True, True, False, True]))
    np.testing.assert_allclose(referenced[[0, 1, 2, 4]].mean(axis=0), 0, atol=1e-15)
    np.testing.assert_array_equal(referenced[3], signal_CT[3])
    np.testing.assert_allclose(referenced[0] - referenced[1], signal_CT[0] - signal_CT[1], atol=1e-14)


def test_the_average_reference_does_not_depend_on_the_recorded_one() -> None:
    signal_CT = np.random.default_rng(2).normal(size=(4, 30))
    good = np.ones(4, dtype=bool)
    np.testing.assert_allclose(
        average_reference(signal_CT + np.random.default_rng(3).normal(size=30), good),
        average_reference(signal_CT, good),
        atol=1e-14,
    )


def test_one_good_channel_stays_as_it_is() -> None:
    signal_CT = np.ones((2, 3))
    np.testing.assert_array_equal(average_reference(signal_CT, np.array([True, False])), signal_CT)


def test_channels_are_put_on_one_axis_by_name() -> None:
    values = np.array([[1.0, 2], [3, 4]])
    aligned = align(values, ("Cz", "Fz"), ("Fz", "Oz", "Cz"))
    np.testing.assert_array_equal(aligned, [[3, 4], [np.nan, np.nan], [1, 2]])
    np.testing.assert_array_equal(align(values, ("Cz", "Fz"), ("Fz",), axis=1), [[2], [4]])
    assert union([("Cz", "Fz"), ("Fz", "Oz")]) == ("Cz", "Fz", "Oz")


@pytest.mark.parametrize("names", [("Cz", "Cz"), ("Cz",), ("Cz", "Fz", "Oz")])
def test_names_that_do_not_fit_the_axis_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="for 2 channels"):
        align(np.zeros((2, 3)), names, ("Fz",))
