"""Simulated populations of subjects: differential entropies with hidden trial states (no signals are made).

A window is a class pattern, a subject's shift, the shift and scale of the trial's hidden state, slow noise of the trial
and fast noise of the window. The law of the states depends on subject and class where they are *coupled*: source
subjects then show classes together with states that a new subject combines otherwise.

Shape suffixes: N window, D feature, Y class, G subject, K state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.params import Config
from stages.systems.mixemo.settings import Kind
from stages.systems.mixemo.windows import Windows

CLASSES = ("negative", "neutral", "positive")
CHANNELS, BANDS = 62, 5


class Population(Config):
    """Sizes of the effects, in standard deviations of a window's noise along one feature."""

    states: int = 6
    rank: int = 12
    class_effect: float = 0.25
    state_effect: float = 1.3
    subject_effect: float = 0.3
    trial_noise: float = 0.2
    state_scale: float = 0.3
    coupling: float = 0.25


EFFECTS = Population()


def simulate(
    kind: Kind,
    rng: np.random.Generator,
    *,
    name: str,
    subjects: int,
    trials: int,
    windows: int,
    effects: Population = EFFECTS,
) -> Windows:
    """Draw a population.

    Parameters
    ----------
    kind
        coupled: the law of the states depends on subject and class; uncoupled: states are equally likely whatever the
        subject and the class; shifts: no states, subjects differ by a shift; control: neither, all subjects share one
        distribution.
    rng
        Where everything is drawn from.
    name
        Key of the population.
    subjects, trials, windows
        Subjects, trials of a subject (classes in turn), windows of a trial.
    """
    features = CHANNELS * BANDS

    def patterns(count: int) -> NDArray[np.float64]:
        """Smooth random patterns of unit root mean square: combinations of a few common sources."""
        return np.asarray(rng.normal(size=(count, effects.rank)) @ sources / np.sqrt(effects.rank))

    sources = rng.normal(size=(effects.rank, features))
    class_YD = effects.class_effect * patterns(len(CLASSES))
    state_KD = effects.state_effect * patterns(effects.states)
    scale_KD = np.exp(effects.state_scale * patterns(effects.states))
    subject_GD = effects.subject_effect * patterns(subjects)
    shifted, stateful = kind != "control", kind in ("coupled", "uncoupled")
    concentration = np.full(effects.states, effects.coupling)
    x, label, subject, trial, state = [], [], [], [], []
    for g in range(subjects):
        even = np.full((len(CLASSES), effects.states), 1 / effects.states)
        law_YK = rng.dirichlet(concentration, len(CLASSES)) if kind == "coupled" else even
        for t in range(trials):
            y = t % len(CLASSES)
            k = int(rng.choice(effects.states, p=law_YK[y]))
            trial_D = effects.trial_noise * patterns(1)[0]
            noise_WD = rng.normal(size=(windows, features)) + rng.normal(size=(windows, effects.rank)) @ sources * (
                0.5 / np.sqrt(effects.rank)
            )
            centre_D = class_YD[y] + trial_D
            if shifted:
                centre_D = centre_D + subject_GD[g]
            if stateful:
                centre_D = centre_D + state_KD[k]
                noise_WD = noise_WD * scale_KD[k]
            x.append(centre_D + noise_WD)
            label += [y] * windows
            subject += [g] * windows
            trial += [g * trials + t] * windows
            state += [k] * windows
    return Windows(
        corpus=name,
        x_ND=np.concatenate(x).reshape(-1, CHANNELS, BANDS).astype(np.float32),
        label_N=np.array(label),
        subject_N=np.array(subject),
        trial_N=np.array(trial),
        classes=CLASSES,
        subjects=tuple(f"s{g + 1:02d}" for g in range(subjects)),
        records=tuple(f"{name}/s{g + 1:02d}/{t + 1}" for g in range(subjects) for t in range(trials)),
        simulated=True,
        state_N=np.array(state),
    )
