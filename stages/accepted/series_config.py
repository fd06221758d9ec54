"""Which of a tower's means a causal search sees: the settings that the systems on towers share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from stages.params import Config

DOMAIN = "land_atmosphere"
#: The word for one step of an aggregation.
STEPS = {"daily": "day", "three_day": "3-day step"}
Variable = Literal["SWC", "P", "LE", "H", "G", "NETRAD", "SW_IN", "VPD", "TA"]
Month = Annotated[int, Field(ge=1, le=12)]


class SeriesConfig(Config):
    """Which series of a tower a causal search sees, and how far back it looks."""

    variables: list[Variable] = Field(min_length=2, description="variables of the graph, where a tower has them")
    aggregation: Literal["daily", "three_day"] = Field(description="step of the series: means over one or three days")
    months: list[Month] = Field(
        min_length=1, description="months of the warm season, 1 to 12; other days are no targets"
    )
    harmonics: int = Field(ge=0, le=6, description="harmonics of the seasonal cycle that is subtracted")
    tau_max: int = Field(ge=1, le=30, description="largest lag, steps of the aggregation")
    min_days: int = Field(
        ge=30,
        description="fewest values a variable needs in the season to take part, steps; a third in a part of the years",
    )

    @field_validator("variables", "months")
    @classmethod
    def _once(cls, value: list[Any]) -> list[Any]:
        if len(set(value)) < len(value):
            raise ValueError("the same entry stands twice")
        return value
