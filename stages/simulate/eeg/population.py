"""The people of a simulated corpus: anatomy, rhythms, and which hidden states an emotion brings about in whom."""

# Shapes: C channel, S source, B band, Y class, K state, R trial.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.runtime import random_numbers
from stages.simulate.eeg import cortex, electrodes
from stages.simulate.eeg.cortex import decibels
from stages.simulate.eeg.options import Simulation
from stages.simulate.eeg.sphere import Head, lead_field

Floats = NDArray[np.float64]
#: Concentration of the law of the states of one subject and class: below 1 one state prevails.
CONCENTRATION = 0.3
HEAD = Head()


@dataclass(frozen=True)
class Subject:
    """One person: what stays the same in all sessions."""

    number: int
    initials: str
    mixing_CS: Floats  # µV at the channels for 1 nA m at the sources
    power_YSB: Floats  # log power by class, natural logarithm of (nA m)²
    states_YK: Floats  # law of the hidden states by class
    alpha_peak: float
    gain: float


@dataclass(frozen=True)
class Session:
    """One recording of a subject: its labels, the state and the log power of each trial, the gains of the channels."""

    label_R: NDArray[np.int64]
    state_R: NDArray[np.int64]
    power_RSB: Floats
    gain_C: Floats


def labels(simulation: Simulation) -> NDArray[np.int64]:
    """Labels (R,) -1, 0 or 1 of the trials, the same in each session: blocks of all three in random order."""
    rng = random_numbers(simulation.seed, "labels")
    blocks = [rng.permutation(list(cortex.CLASSES.values())) for _ in range(simulation.design.trials // 3)]
    return np.concatenate(blocks)


def subject(simulation: Simulation, number: int) -> Subject:
    """Draw a person; subjects are counted from 1, and each is drawn from random numbers of its own."""
    options = simulation.applied()
    rng = random_numbers(simulation.seed, "subject", f"{number}")
    people, emotion = options.people, options.emotion
    shape_SB = (len(cortex.PLACES), len(cortex.BANDS))
    response_YSB = cortex.class_effects(emotion) * (1 + people.response * rng.normal(size=(3, *shape_SB)))
    power_SB = cortex.rest() + decibels(people.power_db) * rng.normal(size=shape_SB)
    own_YK = rng.dirichlet(np.full(emotion.states, CONCENTRATION), size=3)
    mean, spread = people.alpha_peak_hz
    return Subject(
        number=number,
        initials=initials(number),
        mixing_CS=mixing(options, rng),
        power_YSB=power_SB + response_YSB,
        states_YK=(1 - emotion.coupling) / emotion.states + emotion.coupling * own_YK,
        alpha_peak=float(np.clip(mean + spread * rng.normal(), 8.5, 12.5)),
        gain=float(np.exp(decibels(people.gain_db) / 2 * rng.normal())),
    )


def session(simulation: Simulation, person: Subject, number: int) -> Session:
    """Draw a session of a person; sessions are counted from 1."""
    options = simulation.applied()
    rng = random_numbers(simulation.seed, "session", f"{person.number}", f"{number}")
    state_KSB = cortex.state_effects(options.emotion, random_numbers(simulation.seed, "states"))
    label_R = labels(simulation)
    class_R = label_R + 1
    state_R = np.array([rng.choice(options.emotion.states, p=person.states_YK[y]) for y in class_R])
    shape_SB = state_KSB.shape[1:]
    session_SB = decibels(options.people.session_db) * rng.normal(size=shape_SB)
    drift_SB = decibels(options.people.drift_db) * rng.normal(size=shape_SB)
    elapsed_R = np.linspace(-0.5, 0.5, label_R.size)[:, None, None]
    trial_RSB = decibels(options.emotion.trial_db) * rng.normal(size=(label_R.size, *shape_SB))
    channel_C = decibels(options.people.channel_gain_db) / 2 * rng.normal(size=len(electrodes.CHANNELS))
    return Session(
        label_R=label_R,
        state_R=state_R,
        power_RSB=person.power_YSB[class_R] + state_KSB[state_R] + session_SB + elapsed_R * drift_SB + trial_RSB,
        gain_C=person.gain * np.exp(channel_C),
    )


def mixing(options: Simulation, rng: np.random.Generator) -> Floats:
    """Potentials (C, S) in µV of sources of 1 nA m: shared places and orientations, displaced and tilted by person."""
    shared = random_numbers(options.seed, "anatomy")
    electrode_C3 = electrodes.directions()
    outward_S3 = electrode_C3[[cortex.channel_index(place) for place in cortex.PLACES]]
    # Cortex folds: the common orientation lies between radial (a gyrus) and tangential (the wall of a sulcus).
    orientation_S3 = outward_S3 + 0.7 * shared.normal(size=outward_S3.shape)
    moved_S3 = (HEAD.radius - cortex.DEPTH) * outward_S3
    moved_S3 = moved_S3 + options.people.position_mm / 1000 * rng.normal(size=outward_S3.shape) / np.sqrt(3)
    inside_S1 = np.minimum(1, 0.95 * HEAD.radii[0] / np.linalg.norm(moved_S3, axis=1, keepdims=True))
    tilt = np.tan(np.radians(options.people.orientation_deg)) / np.sqrt(2)
    tilted_S3 = _unit(orientation_S3) + tilt * rng.normal(size=outward_S3.shape)
    field_CS3 = lead_field(electrode_C3, moved_S3 * inside_S1, HEAD)
    volts_CS: Floats = np.einsum("csi,si->cs", field_CS3, _unit(tilted_S3))
    return volts_CS * 1e-9 * 1e6


def initials(number: int) -> str:
    """Two letters that no other subject has, as SEED's keys begin with the initials of the person."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[(7 * number) % 26] + letters[(11 * number + number // 26) % 26]


def _unit(vector_S3: Floats) -> Floats:
    unit_S3: Floats = vector_S3 / np.linalg.norm(vector_S3, axis=1, keepdims=True)
    return unit_S3
