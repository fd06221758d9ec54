"""Signals of trials: the power that was asked for, where and at which frequency it appears."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from stages.simulate.eeg import cortex, population, signals
from stages.simulate.eeg.electrodes import CHANNELS
from stages.simulate.eeg.options import Emotion, Noise, People, Simulation

Floats = NDArray[np.float64]
SILENT = Noise(
    background_uv=0, sensor_uv=0, drift_uv=0, line_uv=0, blinks_per_minute=0, muscle_per_minute=0, blink_uv=0
)


def recorder(noise: Noise, people: People | None = None, emotion: Emotion | None = None) -> signals.Recorder:
    simulation = Simulation(seed=1, noise=noise, people=people or People(), emotion=emotion or Emotion())
    person = population.subject(simulation, 1)
    session = population.session(simulation, person, 1)
    return signals.Recorder(person, session, signals.Surroundings.of(1), noise)


def power(signal: NDArray[np.floating], low: float, high: float) -> Floats:
    """Power in a band (C,) from the Fourier transform."""
    samples = signal.shape[-1]
    frequency = np.fft.rfftfreq(samples, 1 / signals.RATE)
    spectrum = 2 * np.abs(np.fft.rfft(signal) / samples) ** 2
    total: Floats = spectrum[..., (frequency >= low) & (frequency < high)].sum(axis=-1)
    return total


def test_a_source_has_the_power_that_is_asked_for() -> None:
    power_SB = np.log([[100.0, 25.0, 400.0, 9.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    source_ST = signals.rhythms(power_SB, 10.0, 200_000, np.random.default_rng(0))
    for band, (low, high) in enumerate(cortex.BANDS.values()):
        np.testing.assert_allclose(power(source_ST, low, high), np.exp(power_SB[:, band]), rtol=0.05)
    np.testing.assert_allclose(source_ST.var(axis=1), np.exp(power_SB).sum(axis=1), rtol=0.03)


@pytest.mark.parametrize("peak", [8.5, 10.0, 12.0])
def test_the_alpha_peak_lies_at_the_frequency_of_the_person(peak: float) -> None:
    silent = np.full((1, 5), -50.0)
    silent[0, 2] = 0
    source_T = signals.rhythms(silent, peak, 200_000, np.random.default_rng(0))[0]
    spectrum = np.abs(np.fft.rfft(source_T)) ** 2
    smooth = np.convolve(spectrum, np.ones(201) / 201, mode="same")
    assert abs(np.argmax(smooth) * signals.RATE / 200_000 - peak) < 0.4


@pytest.mark.parametrize("samples", [2000, 2001])
def test_coloured_noise_has_variance_one_and_no_mean(samples: int) -> None:
    noise = signals.coloured(400, samples, np.random.default_rng(0), lambda f: 1 / np.maximum(f, 1))
    assert np.mean(noise**2) == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(noise.mean(axis=1), 0, atol=1e-9)


def test_blinks_are_the_largest_at_the_forehead_and_positive() -> None:
    blink_C = signals.Surroundings.of(0).blink_C
    assert CHANNELS[np.argmax(blink_C)] in {"FP1", "FPZ", "FP2"}
    assert abs(blink_C[CHANNELS.index("OZ")]) < 0.3
    assert blink_C.max() == 1


def test_without_noise_there_is_only_the_brain_within_the_bands() -> None:
    quiet = recorder(SILENT).trial(0, 4000, np.random.default_rng(0))
    assert quiet.dtype == np.float32
    assert quiet.shape == (62, 4000)
    assert (power(quiet, 55, 100) < 1e-3 * power(quiet, 1, 50)).all()


def test_line_noise_stands_at_the_frequency_of_the_mains() -> None:
    noise = SILENT.model_copy(update={"line_uv": 2.0, "line_hz": 60.0})
    signal = recorder(noise).trial(0, 4000, np.random.default_rng(0))
    assert (power(signal, 59.9, 60.1) > 50 * power(signal, 61, 99)).all()


def test_muscle_is_above_20_hz_and_at_the_side_of_the_head() -> None:
    noise = SILENT.model_copy(update={"muscle_per_minute": 200.0, "muscle_uv": 50.0})
    bursts = recorder(noise).muscles(12_000, np.random.default_rng(0))
    assert power(bursts, 18, 92).sum() > 0.98 * power(bursts, 0, 101).sum()
    strength = bursts.std(axis=1)
    assert strength[CHANNELS.index("T8")] > 5 * strength[CHANNELS.index("CZ")]


def test_a_signal_is_rounded_to_the_step_of_the_amplifier() -> None:
    signal = recorder(Noise()).trial(0, 2400, np.random.default_rng(0))
    np.testing.assert_array_equal(signal * 64, np.round(signal * 64))


def test_the_whole_looks_like_eeg() -> None:
    signal = recorder(Noise()).trial(0, 4000, np.random.default_rng(0))
    spread = signal.std(axis=1)
    assert 5 < np.median(spread) < 50
    assert np.abs(signal).max() < 500


def test_positive_emotion_raises_temporal_gamma_by_its_decibels() -> None:
    """With states, people and noise switched off, only the class is left, at the sources beneath T7 and T8."""
    alike = People.model_validate(
        dict.fromkeys(People.model_fields, 0) | {"alpha_peak_hz": (10, 0), "orientation_deg": 0}
    )
    quiet = recorder(SILENT, alike, Emotion(class_db=6, states=1, trial_db=0))
    label_R = quiet.session.label_R
    found = {
        name: power(quiet.trial(int(np.argmax(label_R == label)), 40_000, np.random.default_rng(5)), 31, 50)
        for name, label in cortex.CLASSES.items()
    }
    ratio_C = 10 * np.log10(found["positive"] / found["neutral"])
    assert CHANNELS[int(np.argmax(ratio_C))] in {"T7", "TP7", "FT7", "T8", "TP8", "FT8", "C5", "C6"}
    assert 4 < ratio_C.max() < 6.5
    np.testing.assert_allclose(found["negative"], found["neutral"], rtol=1e-3)
