"""The blocks ``eeg.preprocessing`` and ``eeg.features`` of params.yaml as typed objects."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stages.ingest.eeg.schema import BANDS
from stages.params import Config


def _ascending(edges: tuple[float, float]) -> tuple[float, float]:
    if not 0 < edges[0] < edges[1]:
        raise PydanticCustomError("band", "expected two edges in Hz above 0, the lower one first")
    return edges


Band = Annotated[tuple[float, float], AfterValidator(_ascending)]


class Preprocessing(Config):
    """What is done to the samples of each trial, before any feature."""

    rate: float | None = Field(
        128.0, gt=0, description="sampling rate in Hz; a slower recording keeps its own; null: as recorded"
    )
    band: Band = Field((1.0, 50.0), description="edges of the band-pass in Hz, run forwards and backwards")
    order: int = Field(4, ge=1, le=8, description="order of the Butterworth band-pass in one direction")
    reference: Literal["average", "recorded"] = Field(
        "average", description="average of the good channels, or as recorded"
    )
    reference_channels: int = Field(
        8, ge=2, description="with fewer channels there is no average reference: the recorded one stays"
    )


class NoSmoothing(Config):
    """Features as measured."""

    method: Literal["none"]


class MovingAverage(Config):
    """Mean over neighbouring windows of the same trial."""

    method: Literal["moving_average"]
    windows: int = Field(5, ge=1, description="windows of the mean, an odd number")


class LinearDynamicalSystem(Config):
    """Kalman filter and smoother over the windows of the same trial, each feature on its own."""

    method: Literal["lds"]
    ratio: float = Field(0.1, gt=0, description="process variance over noise variance, where the fit begins")
    em_steps: int = Field(10, ge=0, description="steps of expectation maximisation in each trial; 0: ratio as it is")


def _named(value: Any) -> Any:
    """A bare name is short for ``{method: NAME}``."""
    return {"method": value} if isinstance(value, str) else value


def _odd(value: Any) -> Any:
    if isinstance(value, MovingAverage) and value.windows % 2 == 0:
        raise PydanticCustomError("odd", "a moving average has an odd number of windows: its mean lies in the middle")
    return value


Smoothing = Annotated[
    NoSmoothing | MovingAverage | LinearDynamicalSystem,
    Field(discriminator="method"),
    BeforeValidator(_named),
    AfterValidator(_odd),
]


class Artifacts(Config):
    """Rules by which a window is flagged; nothing is removed. null switches a rule off."""

    flat_uv: float = Field(0.1, ge=0, description="largest range of a flat channel of a window, in uV")
    amplitude_uv: float | None = Field(150.0, gt=0, description="largest magnitude after the filter, in uV")
    gradient_uv: float | None = Field(20.0, gt=0, description="largest step after the filter, in uV per ms")
    muscle: float | None = Field(0.5, gt=0, le=1, description="largest share of the variance above muscle_from")
    muscle_from: float = Field(30.0, gt=0, description="Hz from which variance counts as muscle")
    channels: float = Field(
        0.1, ge=0, lt=1, description="share of the channels that may break a rule before the window is flagged"
    )


class Features(Config):
    """Differential entropy of bands in windows that touch and do not overlap."""

    window_seconds: float = Field(1.0, gt=0, description="length of a window in seconds")
    bands: dict[str, Band] = Field(
        dict(BANDS), min_length=1, description="name -> edges in Hz, the upper one not in the band"
    )
    definition: Literal["spectral", "filtered"] = Field(
        "spectral", description="power in the window's spectrum, or variance behind a Butterworth band-pass"
    )
    taper: Literal["hann", "none"] = Field("hann", description="taper of the spectrum")
    smoothing: Smoothing = Field(LinearDynamicalSystem(method="lds"), description="none, moving_average or lds")
    artifacts: Artifacts = Artifacts()
