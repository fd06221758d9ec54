"""Differential entropy: closed forms, Parseval, and what must never come out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal as filters

from stages.eeg.entropy import BITS_PER_NAT, band_entropies, band_variances, differential_entropy, windows_of

BANDS = [(1.0, 4.0), (4.0, 8.0), (8.0, 14.0), (14.0, 31.0), (31.0, 50.0)]


def test_std_2_has_2_112_nats_and_3_047_bits() -> None:
    """Case 1: the variance goes in, not the standard deviation, which would give 2.547 bits."""
    entropy = differential_entropy(np.array(4.0))
    assert entropy == pytest.approx(2.112, abs=5e-4)
    assert entropy * BITS_PER_NAT == pytest.approx(3.047, abs=5e-4)


def test_ten_times_the_amplitude_adds_ln_10() -> None:
    signal_CT = np.random.default_rng(0).normal(size=(3, 400))
    more = band_entropies(10 * signal_CT, 200, BANDS, 1.0) - band_entropies(signal_CT, 200, BANDS, 1.0)
    np.testing.assert_allclose(more, np.log(10), atol=1e-6)


def test_no_variance_is_nan_and_never_minus_infinity() -> None:
    assert np.isnan(differential_entropy(np.array([0.0, -1.0, np.nan, np.inf]))).all()


@pytest.mark.parametrize("definition", ["spectral", "filtered"])
@pytest.mark.parametrize("level", [0.0, 0.1, -812.7, 4300.0])
def test_a_flat_channel_is_masked_and_its_neighbour_is_not(definition: str, level: float) -> None:
    """Case 2: 200 equal samples."""
    signal_CT = np.random.default_rng(1).normal(size=(2, 200)).astype(np.float32)
    signal_CT[0] = level
    entropy_WCB = band_entropies(signal_CT, 200, BANDS, 1.0, definition=definition)  # type: ignore[arg-type]
    assert np.isnan(entropy_WCB[:, 0]).all()
    assert np.isfinite(entropy_WCB[:, 1]).all()


def test_bands_that_tile_the_spectrum_add_up_to_the_variance() -> None:
    """Parseval, for an odd number of samples, whose spectrum has no coefficient at half the rate."""
    signal_CT = np.random.default_rng(2).normal(size=(2, 7 * 201))
    bands = [(0.5, 10.0), (10.0, 33.0), (33.0, 100.5)]
    variance_WCB = band_variances(signal_CT, 201, bands, 1.0, taper="none")
    np.testing.assert_allclose(variance_WCB.sum(axis=-1), windows_of(signal_CT, 201).var(axis=-1), rtol=1e-12)


@pytest.mark.parametrize("taper", ["hann", "none"])
def test_a_sine_has_half_its_squared_amplitude_in_its_band_alone(taper: str) -> None:
    time_T = np.arange(400) / 200
    sine_CT = 3 * np.sin(2 * np.pi * 11 * time_T + 0.7)[None]
    variance_WCB = band_variances(sine_CT, 200, BANDS, 1.0, taper=taper)  # type: ignore[arg-type]
    np.testing.assert_allclose(variance_WCB[..., 2], 4.5, rtol=1e-12)
    assert not variance_WCB[..., [0, 1, 3, 4]].any()


def test_an_edge_belongs_to_the_upper_band() -> None:
    sine_CT = np.sin(2 * np.pi * 8 * np.arange(200) / 200)[None]
    variance_B = band_variances(sine_CT, 200, BANDS, 1.0, taper="none")[0, 0]
    assert variance_B[1] == 0
    assert variance_B[2] == pytest.approx(0.5)


@pytest.mark.parametrize(("definition", "tolerance"), [("spectral", 0.01), ("filtered", 0.12)])
def test_white_noise_has_variance_in_proportion_to_the_width_of_the_band(definition: str, tolerance: float) -> None:
    """A filter that starts at rest passes less: its first samples are those of a filter that is not yet awake."""
    signal_CT = np.random.default_rng(3).normal(scale=2, size=(20, 200 * 4 * 50))
    found_B = band_variances(signal_CT, 200, BANDS, 4.0, definition=definition).mean(axis=(0, 1))  # type: ignore[arg-type]
    expected_B = np.array([4 * (high - low) / 100 for low, high in BANDS])
    np.testing.assert_allclose(found_B[2:], expected_B[2:], rtol=tolerance)
    if definition == "spectral":
        np.testing.assert_allclose(found_B, expected_B, rtol=0.03)


def test_the_filtered_definition_is_the_variance_behind_a_filter_at_rest() -> None:
    """Against scipy's own recursion, sample by sample."""
    signal_CT = np.random.default_rng(4).normal(scale=30, size=(3, 3 * 128)).astype(np.float32)
    found_WCB = band_variances(signal_CT, 128, BANDS, 1.0, definition="filtered")
    for band, edges in enumerate(BANDS):
        sections = filters.butter(5, edges, btype="bandpass", fs=128, output="sos")
        direct_WC = filters.sosfilt(sections, windows_of(signal_CT, 128).astype(float), axis=-1).var(axis=-1)
        np.testing.assert_allclose(found_WCB[..., band], direct_WC, rtol=1e-9)


@pytest.mark.parametrize("definition", ["spectral", "filtered"])
def test_a_band_above_half_the_rate_is_nan(definition: str) -> None:
    signal_CT = np.random.default_rng(5).normal(size=(2, 160))
    entropy_WCB = band_entropies(signal_CT, 80, BANDS, 1.0, definition=definition)  # type: ignore[arg-type]
    assert np.isnan(entropy_WCB[..., 4]).all()
    assert np.isfinite(entropy_WCB[..., :4]).all()


def test_a_band_narrower_than_the_resolution_is_nan() -> None:
    signal_CT = np.random.default_rng(6).normal(size=(1, 200))
    assert np.isnan(band_variances(signal_CT, 200, [(8.2, 8.8)], 1.0)).all()
    assert np.isfinite(band_variances(np.tile(signal_CT, 4), 200, [(8.2, 8.8)], 4.0)).all()


def test_float32_samples_give_the_entropy_of_float64_to_a_few_millionths() -> None:
    signal_CT = np.cumsum(np.random.default_rng(7).normal(size=(4, 2000)), axis=1)
    exact = band_variances(signal_CT, 200, BANDS, 1.0)
    single = band_variances(signal_CT.astype(np.float32), 200, BANDS, 1.0)
    np.testing.assert_allclose(differential_entropy(single), differential_entropy(exact), atol=5e-6)


def test_blocks_do_not_change_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    signal_CT = np.random.default_rng(8).normal(size=(3, 2100))
    whole = band_entropies(signal_CT, 100, BANDS[:4], 1.0)
    monkeypatch.setattr("stages.eeg.entropy.BLOCK_VALUES", 1)
    np.testing.assert_array_equal(band_entropies(signal_CT, 100, BANDS[:4], 1.0), whole)
    assert whole.shape == (21, 3, 4)


def test_a_rest_shorter_than_a_window_is_left_out() -> None:
    assert windows_of(np.zeros((2, 599)), 200).shape == (2, 2, 200)
    assert band_entropies(np.zeros((2, 150)), 200, BANDS, 1.0).shape == (0, 2, 5)
