"""The signal of one trial: rhythms of the sources, pink background, eyes, muscles, mains and electrodes."""

# Shapes: C channel, S source, B band, F frequency, T time, D dipole of the background.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.runtime import random_numbers
from stages.simulate.eeg.cortex import BANDS, channel_index
from stages.simulate.eeg.electrodes import directions
from stages.simulate.eeg.options import Noise
from stages.simulate.eeg.population import HEAD, Session, Subject
from stages.simulate.eeg.sphere import lead_field

Floats = NDArray[np.float64]
Signal = NDArray[np.float32]
Amplitude = Callable[[Floats], Floats]
RATE = 200
#: The amplifier's resolution in µV.
STEP_UV = 1 / 64
BACKGROUND_DIPOLES = 48
ALPHA_WIDTH = 1.2
#: Electrodes near muscles, and how far a burst reaches over the scalp (standard deviation, radians).
MUSCLES = ("F7", "F8", "FT7", "FT8", "T7", "T8", "TP7", "TP8", "CB1", "CB2")
MUSCLE_REACH = 0.35


@dataclass(frozen=True)
class Surroundings:
    """Topographies that all subjects share."""

    background_CD: Floats  # root mean square 1 over the channels
    blink_C: Floats  # 1 at the strongest channel
    muscle_MC: Floats  # 1 at the centre of each muscle

    @classmethod
    def of(cls, seed: int) -> Surroundings:
        """Draw the dipoles of the background; the eyes are dipoles behind the forehead that point forward and up."""
        electrode_C3 = directions()
        rng = random_numbers(seed, "background")
        direction_D3 = rng.normal(size=(BACKGROUND_DIPOLES, 3))
        direction_D3 /= np.linalg.norm(direction_D3, axis=1, keepdims=True)
        depth_D1 = HEAD.radii[0] * (0.3 + 0.6 * rng.random((BACKGROUND_DIPOLES, 1)))
        moment_D3 = rng.normal(size=(BACKGROUND_DIPOLES, 3))
        background_CD = np.einsum("cdi,di->cd", lead_field(electrode_C3, depth_D1 * direction_D3, HEAD), moment_D3)
        eye_23 = np.array([[-0.35, 0.9, -0.25], [0.35, 0.9, -0.25]])
        eye_23 *= 0.9 * HEAD.radii[0] / np.linalg.norm(eye_23, axis=1, keepdims=True)
        blink_C = np.einsum("cdi,i->c", lead_field(electrode_C3, eye_23, HEAD), [0.0, 0.7, 0.7])
        centre_M3 = electrode_C3[[channel_index(name) for name in MUSCLES]]
        angle_MC = np.arccos(np.clip(centre_M3 @ electrode_C3.T, -1, 1))
        return cls(
            background_CD=background_CD / np.sqrt(np.square(background_CD).sum(axis=1).mean()),
            blink_C=blink_C / np.abs(blink_C).max(),
            muscle_MC=np.exp(-np.square(angle_MC / MUSCLE_REACH) / 2),
        )


@dataclass(frozen=True)
class Recorder:
    """Writes down trials of one session of one subject."""

    person: Subject
    session: Session
    surroundings: Surroundings
    noise: Noise

    def trial(self, index: int, samples: int, rng: np.random.Generator) -> Signal:
        """Signal (C, T) in µV of one trial, rounded to the amplifier's resolution."""
        source_ST = rhythms(self.session.power_RSB[index], self.person.alpha_peak, samples, rng)
        brain_CT = self.person.mixing_CS @ source_ST
        pink_DT = coloured(BACKGROUND_DIPOLES, samples, rng, lambda f: 1 / np.sqrt(np.maximum(f, 1.0)))
        brain_CT += self.noise.background_uv * self.surroundings.background_CD @ pink_DT
        brain_CT += self.blinks(samples, rng) + self.muscles(samples, rng)
        brain_CT += self.electrodes(samples, rng)
        amplified_CT = self.session.gain_C[:, None] * brain_CT
        return (np.round(amplified_CT / STEP_UV) * STEP_UV).astype(np.float32)

    def blinks(self, samples: int, rng: np.random.Generator) -> Floats:
        """Blinks (C, T) in µV: about 0.3 s each, at the forehead."""
        course_T = np.zeros(samples)
        for start in _moments(self.noise.blinks_per_minute, samples, rng):
            length = int(RATE * rng.uniform(0.25, 0.4))
            shape_T = rng.uniform(0.7, 1.3) * np.square(np.sin(np.pi * np.arange(length) / length))
            course_T[start : start + length] += shape_T[: samples - start]
        return self.noise.blink_uv * np.outer(self.surroundings.blink_C, course_T)

    def muscles(self, samples: int, rng: np.random.Generator) -> Floats:
        """Bursts of muscle activity (C, T) in µV: 20 to 90 Hz, 0.3 to 1 s each."""
        activity_CT = np.zeros((self.surroundings.muscle_MC.shape[1], samples))
        for start in _moments(self.noise.muscle_per_minute, samples, rng):
            length = min(int(RATE * rng.uniform(0.3, 1.0)), samples - start)
            which = rng.integers(len(self.surroundings.muscle_MC))
            burst_T = coloured(1, 2 * RATE, rng, lambda f: ((f > 20) & (f < 90)).astype(float))[0, :length]
            size = self.noise.muscle_uv * rng.uniform(0.5, 1.5)
            shape_C = self.surroundings.muscle_MC[which]
            activity_CT[:, start : start + length] += np.outer(size * shape_C, burst_T * np.hanning(length))
        return activity_CT

    def electrodes(self, samples: int, rng: np.random.Generator) -> Floats:
        """Mains, slow drift and the sensors' own noise (C, T) in µV."""
        channels = self.session.gain_C.size
        time_T = np.arange(samples) / RATE
        phase = rng.uniform(0, 2 * np.pi)
        mains_C = self.noise.line_uv * np.exp(0.5 * rng.normal(size=channels))
        mains_CT = np.outer(mains_C, np.sqrt(2) * np.sin(2 * np.pi * self.noise.line_hz * time_T + phase))
        drift_CT = coloured(channels, samples, rng, lambda f: (f < 0.3) / np.maximum(f, 0.02))
        white_CT = rng.normal(size=(channels, samples))
        return mains_CT + self.noise.drift_uv * drift_CT + self.noise.sensor_uv * white_CT


def rhythms(power_SB: Floats, alpha_peak: float, samples: int, rng: np.random.Generator) -> Floats:
    """Activity (S, T) of sources in nA m whose expected power in each band is exp(``power_SB``)."""
    frequency_F = frequencies(samples)
    shape_BF = band_shapes(frequency_F, alpha_peak)
    amplitude_SF = np.sqrt(np.exp(power_SB) @ shape_BF)
    return _noise(amplitude_SF, samples, rng)


def frequencies(samples: int) -> Floats:
    """Frequencies (F,) in Hz of the real Fourier transform of a trial."""
    return np.linspace(0, samples // 2 * RATE / samples, samples // 2 + 1)


def band_shapes(frequency_F: Floats, alpha_peak: float) -> Floats:
    """Power spectra (B, F) of the bands, each of sum 1: falling as 1/f within a band, a peak in alpha."""
    shapes = []
    for name, (low, high) in BANDS.items():
        inside_F = (frequency_F >= low) & (frequency_F < high)
        if name == "alpha":
            shape_F = np.exp(-np.square((frequency_F - alpha_peak) / ALPHA_WIDTH) / 2)
        else:
            shape_F = 1 / np.maximum(frequency_F, 1)
        shapes.append(inside_F * shape_F / (inside_F * shape_F).sum())
    return np.array(shapes)


def coloured(rows: int, samples: int, rng: np.random.Generator, amplitude: Amplitude) -> Floats:
    """Gaussian noise (rows, T) of expected variance 1 with an amplitude spectrum; without a mean."""
    frequency_F = frequencies(samples)
    amplitude_F = np.where(frequency_F > 0, amplitude(frequency_F), 0.0)
    power = np.square(amplitude_F).sum()
    return _noise(np.tile(amplitude_F / np.sqrt(power), (rows, 1)), samples, rng)


def _noise(amplitude_SF: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """Gaussian noise (S, T) whose expected power at each positive frequency is the square of its amplitude.

    At zero and, of an even number of samples, at half the rate the coefficients must be real; both are left out.
    """
    draw_SF = rng.normal(size=(*amplitude_SF.shape, 2)).view(np.complex128)[..., 0] / np.sqrt(2)
    draw_SF[:, 0] = 0
    if samples % 2 == 0:
        draw_SF[:, -1] = 0
    signal_ST: Floats = np.fft.irfft(amplitude_SF * draw_SF, samples, axis=1) * samples / np.sqrt(2)
    return signal_ST


def _moments(per_minute: float, samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """First samples of events of a Poisson process, in their order."""
    count = rng.poisson(per_minute * samples / RATE / 60)
    return np.sort(rng.integers(0, max(1, samples - RATE // 4), size=count))
