"""Limits of the RNA gate: what is expected of one molecule and of its structure.

They ask whether a structure can be one of this sequence, not whether it is right. A consensus that is projected onto a
molecule loses pairs to gaps and gets loops that no hairpin has: the limits on those warn first, and refuse later.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stages.params import Config

Share = Annotated[float, Field(ge=0, le=1)]
Bases = Annotated[int, Field(ge=0)]
Choice = Literal["quarantine", "report"]


def _ascending(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] < 1:
        raise ValueError(f"the shortest length is {bounds[0]}; a molecule has a base")
    if bounds[0] > bounds[1]:
        raise ValueError(f"the shortest length {bounds[0]} is above the longest {bounds[1]}")
    return bounds


Lengths = Annotated[tuple[int, int], AfterValidator(_ascending)]


class Gate(Config):
    """Limits of the gate. A set's own gate names only those it changes."""

    max_quarantined: Share = Field(0.2, description="share of a set's molecules, and of all")
    length: Lengths = Field((8, 5000), description="bases; 7 are the least a hairpin of two pairs has")
    max_unknown: Share = Field(0.05, description="share of bases that are IUPAC codes of several")
    many_unknown: Share = Field(0.0, description="the same; above: warning")
    min_canonical: Share = Field(0.5, description="share of GC, AU and GU among the pairs")
    few_canonical: Share = Field(0.8, description="the same; below: warning")
    min_loop: Bases = Field(2, description="bases between the two of a pair; solved structures have 2 at the least")
    short_loop: Bases = Field(3, description="the same; below: warning, for folding programs allow 3 at the least")
    max_lost: Share = Field(0.5, description="share of the consensus pairs of the family lost to gaps")
    much_lost: Share = Field(0.2, description="the same; above: warning")
    copies: Choice = Field("quarantine", description="sequence and structure of an earlier molecule of the set")
    other_structure: Choice = Field("report", description="sequence of an earlier molecule with another structure")
    no_family: Choice = Field("report", description="a molecule without a family, in a set that has families")

    def overridden(self, override: Gate | None) -> Gate:
        """These limits with those that a set's own gate sets."""
        if override is None:
            return self
        return Gate.model_validate(self.model_dump() | override.model_dump(exclude_unset=True))
