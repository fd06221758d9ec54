"""Limits of the EEG gate: what is expected of one trial, in physical units.

They ask whether an amplifier on a scalp can have given this, not whether the trial is clean: EEG has a standard
deviation of 1 to 200 uV, raw recordings with drifts and movement several times that. They are the project's own,
rounded outwards.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from stages.ingest.eeg.schema import BANDS
from stages.params import Config

Share = Annotated[float, Field(ge=0, le=1)]
Limit = Annotated[float, Field(gt=0)]


def _ascending(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"the lower bound {bounds[0]:g} is above the upper bound {bounds[1]:g}")
    return bounds


Bounds = Annotated[tuple[float, float], AfterValidator(_ascending)]


class Gate(Config):
    """Limits of the gate. A corpus's own gate names only those it changes."""

    max_quarantined: Share = Field(0.2, description="share of a corpus's trials, and of all")
    std_uv: Bounds = Field((0.5, 500.0), description="uV; standard deviation of a channel; counts are not judged")
    max_abs_uv: Limit = Field(5000.0, description="uV; largest distance from the median of a channel")
    max_flat_channels: int = Field(0, ge=0, description="channels without any variation in a trial")
    max_saturated: Share = Field(0.05, description="share of samples at the extreme value of their channel")
    max_line_noise: Share = Field(0.95, description="share of the power above 1 Hz that is mains hum")
    much_line_noise: Share = Field(0.3, description="the same; above: warning")
    much_drift_uv: Limit = Field(500.0, description="uV from the first to the last fifth of a trial; above: warning")
    max_nan: Share = Field(0.0, description="share of samples that are no number")
    many_artifacts: Share = Field(0.5, description="share of a trial's windows flagged as artifact; above: warning")
    min_windows: int = Field(1, ge=1, description="windows of a trial")
    max_masked: float = Field(0.1, ge=0, lt=1, description="share of a trial's features that are no number")
    min_rate: Limit = Field(2 * max(high for _, high in BANDS.values()), description="Hz; twice the highest band")
    max_missing_channels: int = Field(0, ge=0, description="channels of the corpus that the trial lacks")
    max_duplicate_channels: int = Field(0, ge=0, description="channels that stand twice in the file")
    labels: Bounds | None = Field(None, description="range of the number that is the label; null: not judged")
    ratings: Bounds | None = Field(None, description="range of ratings such as valence; null: not judged")
    max_majority: Share = Field(0.8, description="share of a subject's most frequent class; above: warning")
    max_separation: Share = Field(0.98, description="area under the ROC curve of one input alone; above: reported")
    min_class_trials: int = Field(10, ge=1, description="trials of a class below which no input is judged")

    def overridden(self, override: Gate | None) -> Gate:
        """These limits with those that a corpus's own gate sets."""
        if override is None:
            return self
        return Gate.model_validate(self.model_dump() | override.model_dump(exclude_unset=True))
