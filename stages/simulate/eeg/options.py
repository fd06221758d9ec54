"""Options of the simulated corpus, as they stand under ``eeg.simulated.NAME`` in params.yaml."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from stages.params import Config


class Design(Config):
    """Who is recorded, how often and for how long."""

    subjects: int = Field(default=10, ge=2, le=99, description="subjects; each has one file a session")
    sessions: int = Field(default=1, ge=1, le=9, description="sessions of each subject, seven days apart")
    trials: int = Field(default=15, ge=3, le=60, description="trials of a session; SEED has 15, a third of each class")
    seconds: tuple[float, float] = Field(default=(11.0, 14.0), description="shortest and longest trial, s")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 4 <= self.seconds[0] <= self.seconds[1]:
            raise ValueError("seconds: expected [shortest, longest] with 4 ≤ shortest ≤ longest")
        if self.trials % 3:
            raise ValueError("trials: expected a multiple of 3, as many of each class")
        return self


class Emotion(Config):
    """What the class and the hidden state of a trial do to band power at the sources."""

    class_db: float = Field(default=3.0, ge=0, description="size of the class's change of power, dB at its main source")
    states: int = Field(default=3, ge=1, le=8, description="hidden states; a trial is in one")
    state_db: float = Field(default=4.0, ge=0, description="size of a state's change of power, dB (root mean square)")
    state_overlap: float = Field(
        default=0.6, ge=0, le=1, description="share of a state's pattern that looks like a difference between classes"
    )
    coupling: float = Field(
        default=0.9, ge=0, le=1, description="how far the law of the states depends on subject and class; 0: uniform"
    )
    trial_db: float = Field(default=1.0, ge=0, description="change of power from trial to trial, dB at each source")


class People(Config):
    """How subjects and their sessions differ."""

    position_mm: float = Field(default=6.0, ge=0, description="displacement of a source between subjects, mm")
    orientation_deg: float = Field(default=20.0, ge=0, description="tilt of a source between subjects, degrees")
    power_db: float = Field(default=2.0, ge=0, description="resting power of a source and band between subjects, dB")
    response: float = Field(
        default=0.3, ge=0, description="relative spread of the class's effect between subjects, by source and band"
    )
    alpha_peak_hz: tuple[float, float] = Field(default=(10.0, 0.8), description="alpha peak: mean and spread, Hz")
    gain_db: float = Field(default=2.0, ge=0, description="gain of the amplifier between subjects, dB")
    channel_gain_db: float = Field(default=0.5, ge=0, description="gain of a channel in a session, dB")
    session_db: float = Field(default=1.0, ge=0, description="power of a source and band between sessions, dB")
    drift_db: float = Field(default=1.5, ge=0, description="change of power from a session's first to last trial, dB")


class Noise(Config):
    """What is not brain rhythm."""

    background_uv: float = Field(default=8.0, ge=0, description="pink background of the brain, µV at a mean channel")
    sensor_uv: float = Field(default=1.0, ge=0, description="white noise of a sensor, µV")
    drift_uv: float = Field(default=10.0, ge=0, description="slow drift of an electrode below 0.3 Hz, µV")
    line_hz: float = Field(default=50.0, gt=0, lt=100, description="frequency of the mains, Hz")
    line_uv: float = Field(default=2.0, ge=0, description="line noise at a mean channel, µV")
    blinks_per_minute: float = Field(default=12.0, ge=0, description="blinks a minute")
    blink_uv: float = Field(default=90.0, ge=0, description="height of a blink at the forehead, µV")
    muscle_per_minute: float = Field(default=6.0, ge=0, description="bursts of muscle activity a minute")
    muscle_uv: float = Field(default=15.0, ge=0, description="size of a burst at its centre, µV")


class Simulation(Config):
    """One simulated corpus in SEED's layout; ``null_control: true`` is its control, where all subjects are alike."""

    seed: int = Field(ge=0, description="seed of all its random numbers")
    null_control: bool = Field(
        default=False,
        description="all subjects share one distribution: one anatomy, one gain, and one uniform law of the states",
    )
    design: Design = Design()
    emotion: Emotion = Emotion()
    people: People = People()
    noise: Noise = Noise()

    def applied(self) -> Simulation:
        """The options in force: under ``null_control`` no difference between subjects or sessions, and no coupling."""
        if not self.null_control:
            return self
        alike = People(
            position_mm=0,
            orientation_deg=0,
            power_db=0,
            response=0,
            alpha_peak_hz=(self.people.alpha_peak_hz[0], 0),
            gain_db=0,
            channel_gain_db=0,
            session_db=0,
            drift_db=0,
        )
        return self.model_copy(update={"people": alike, "emotion": self.emotion.model_copy(update={"coupling": 0.0})})
