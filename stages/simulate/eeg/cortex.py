"""The sources, and what rest, the emotions and the hidden states do to their power.

The signs of the class effects are the ones that studies of SEED report: more beta and gamma over the temporal lobes in
positive, more parietal and occipital alpha in neutral, more frontal theta and alpha in negative emotion.
"""

# Shapes: S source, B band, Y class, K state.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.simulate.eeg.electrodes import CHANNELS
from stages.simulate.eeg.options import Emotion

Floats = NDArray[np.float64]

#: Bands in Hz.
BANDS = {"delta": (1.0, 4.0), "theta": (4.0, 8.0), "alpha": (8.0, 14.0), "beta": (14.0, 31.0), "gamma": (31.0, 50.0)}
#: Classes in the order of their labels -1, 0, 1.
CLASSES = {"negative": -1, "neutral": 0, "positive": 1}
#: Electrodes beneath which the sources lie.
PLACES = ("AF3", "AF4", "FZ", "F7", "F8", "T7", "T8", "C3", "C4", "P3", "P4", "PZ", "O1", "O2")
#: Depth beneath the scalp in metres: the cortex.
DEPTH = 0.020
#: Strength at rest in nA m (root mean square), by band.
REST_NAM = {"delta": 45.0, "theta": 30.0, "alpha": 30.0, "beta": 18.0, "gamma": 10.0}
#: Alpha is this many times as strong at the back of the head.
BACK_ALPHA = {"P3": 2.0, "P4": 2.0, "PZ": 2.0, "O1": 2.5, "O2": 2.5}
#: Change of power by class, source and band, relative to ``class_db``.
EFFECTS: dict[str, dict[str, dict[str, float]]] = {
    "negative": {
        "theta": {"FZ": 1.0, "AF3": 0.6, "AF4": 0.6},
        "alpha": {"AF3": 0.7, "AF4": -0.3},
        "delta": {"PZ": 0.5},
    },
    "neutral": {
        "alpha": {"P3": 0.8, "P4": 0.8, "PZ": 0.8, "O1": 1.0, "O2": 1.0},
        "beta": {"T7": -0.4, "T8": -0.4},
    },
    "positive": {
        "beta": {"T7": 1.0, "T8": 1.0, "F7": 0.6, "F8": 0.6},
        "gamma": {"T7": 1.0, "T8": 1.0, "F7": 0.5, "F8": 0.5},
        "alpha": {"AF4": 0.5, "O1": -0.4, "O2": -0.4},
    },
}


def channel_index(name: str) -> int:
    """Place of a channel in SEED's order."""
    return CHANNELS.index(name)


def rest() -> Floats:
    """Log power (S, B) at rest, natural logarithm of (nA m)²."""
    strength_SB = np.array(
        [
            [value * (BACK_ALPHA.get(place, 1.0) if band == "alpha" else 1.0) for band, value in REST_NAM.items()]
            for place in PLACES
        ]
    )
    log_SB: Floats = 2 * np.log(strength_SB)
    return log_SB


def class_effects(emotion: Emotion) -> Floats:
    """Change of log power (Y, S, B) in each class, classes in the order -1, 0, 1."""
    effect_YSB = np.zeros((len(CLASSES), len(PLACES), len(BANDS)))
    for y, name in enumerate(CLASSES):
        for band, places in EFFECTS[name].items():
            for place, size in places.items():
                effect_YSB[y, PLACES.index(place), list(BANDS).index(band)] = size
    return decibels(emotion.class_db) * effect_YSB


def state_effects(emotion: Emotion, rng: np.random.Generator) -> Floats:
    """Change of log power (K, S, B) in each hidden state; over the states the changes have mean zero.

    A part of each pattern lies in the space of the differences between classes: where the law of the states depends on
    subject and class, this part looks like emotion within a subject and misleads across subjects.
    """
    if emotion.states == 1:
        return np.zeros((1, len(PLACES), len(BANDS)))
    effect_YSB = class_effects(emotion.model_copy(update={"class_db": 1.0}))
    contrast_YSB = effect_YSB - effect_YSB.mean(axis=0)
    alike_KSB = np.einsum("ky,ysb->ksb", rng.normal(size=(emotion.states, len(CLASSES))), contrast_YSB)
    other_KSB = rng.normal(size=(emotion.states, len(PLACES), len(BANDS)))
    share = emotion.state_overlap
    pattern_KSB = np.sqrt(share) * _unit(alike_KSB) + np.sqrt(1 - share) * _unit(other_KSB)
    return decibels(emotion.state_db) * _unit(pattern_KSB)


def _unit(pattern_KSB: Floats) -> Floats:
    """Patterns with mean zero over the states and a root mean square of 1."""
    centred_KSB = pattern_KSB - pattern_KSB.mean(axis=0)
    scaled_KSB: Floats = centred_KSB / np.sqrt(np.mean(np.square(centred_KSB)))
    return scaled_KSB


def decibels(size: float) -> float:
    """A change of power in dB as a change of its natural logarithm."""
    return float(size * np.log(10) / 10)
