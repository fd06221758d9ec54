"""A whole corpus on disk, in the layout of SEED's preprocessed EEG."""

# Shapes: C channel, T time, R trial.

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np

from stages.runtime import progress, random_numbers
from stages.simulate.eeg import matfile, population
from stages.simulate.eeg.options import Simulation
from stages.simulate.eeg.signals import RATE, Recorder, Surroundings

FOLDER = "Preprocessed_EEG"
FIRST_DAY = datetime.date(2000, 1, 1)


def write(folder: Path, simulation: Simulation) -> None:
    """Write label.mat and one file for each subject and session; equal options give equal bytes.

    A file is called ``SUBJECT_YYYYMMDD.mat`` and holds ``INITIALS_eeg1`` and so on, each (C, T) in µV at 200 Hz.
    """
    target = folder / FOLDER
    target.mkdir(parents=True)
    label_R = population.labels(simulation)
    matfile.write(target / "label.mat", {"label": label_R[None].astype(np.float64)})
    samples_R = durations(simulation)
    surroundings = Surroundings.of(simulation.seed)
    design = simulation.design
    for number in progress(range(1, design.subjects + 1), "simulating", total=design.subjects, unit="subjects"):
        person = population.subject(simulation, number)
        for visit in range(1, design.sessions + 1):
            recorded = population.session(simulation, person, visit)
            recorder = Recorder(person, recorded, surroundings, simulation.noise)
            trials = {
                f"{person.initials}_eeg{trial + 1}": recorder.trial(
                    trial, int(samples), random_numbers(simulation.seed, "trial", f"{number}", f"{visit}", f"{trial}")
                )
                for trial, samples in enumerate(samples_R)
            }
            matfile.write(target / f"{number}_{day(number, visit):%Y%m%d}.mat", trials)


def durations(simulation: Simulation) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Samples (R,) of each trial: all subjects see the same clips."""
    shortest, longest = simulation.design.seconds
    rng = random_numbers(simulation.seed, "durations")
    return np.round(RATE * rng.uniform(shortest, longest, simulation.design.trials)).astype(np.int64)


def day(subject: int, session: int) -> datetime.date:
    """Date of a session: the sessions of a subject lie a week apart."""
    return FIRST_DAY + datetime.timedelta(days=subject - 1 + 7 * (session - 1))
