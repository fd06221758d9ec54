"""Settings of the synthetic study, and the kinds of its systems."""

from __future__ import annotations

from pydantic import Field

from stages.params import Config

#: Kinds of system, as tables name them.
COLLIDER, PROXY, RANDOM = "collider example", "collider example, proxy", "random systems"


class Study(Config):
    """Simulated systems whose graph in each context is known."""

    repeats: int = Field(ge=1, description="series of each kind for each seed")
    steps: list[int] = Field(min_length=1, description="lengths of the series of random systems")
    variables: list[int] = Field(min_length=1, description="numbers of variables of random systems, drawn in turn")
    example_steps: int = Field(ge=100, description="length of the series of the collider example")
    persistence: float = Field(ge=0, lt=1, description="persistence of the context in random systems")
    density: float = Field(gt=0, le=1, description="share of the pairs that are linked in random systems")
    alpha: float = Field(gt=0, lt=1, description="level of all tests")
