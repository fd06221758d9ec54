"""How params.yaml says the molecules are to be divided."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from stages.params import Config
from stages.validate import splits
from stages.validate.rna import families
from stages.validate.splits import Shares

Seed = Annotated[int, Field(ge=0)]


class Transfer(Config):
    """Families for pre-training and, apart from them, for the tasks downstream; one split for each seed."""

    seeds: tuple[Seed, ...] = Field(min_length=1, description="of the divisions of the families")
    pretrain: float = Field(gt=0, lt=1, description="share of the families to pre-train on")
    downstream: Shares = Field(description="shares of the other families")
    corpora: tuple[str, ...] = Field(
        (), description="sets to pre-train on as a whole, but for what is of a family downstream or too near to it"
    )

    @model_validator(mode="after")
    def _seeds_differ(self) -> Self:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("a seed stands twice")
        return self

    def shares(self) -> dict[families.Part, float]:
        """Share of the families by part."""
        rest: dict[families.Part, float] = {
            part: (1 - self.pretrain) * self.downstream.of(part) for part in splits.PARTS
        }
        return {"pretrain": self.pretrain, **rest}


class Splits(Config):
    """Splits by family, by sequence identity, and as sets were published."""

    seed: int = Field(ge=0, description="of the split by identity")
    identity: float = Field(0.8, gt=0, le=1, description="sequence identity that no two parts may reach")
    audit: float = Field(
        0.75, ge=0, le=1, description="identity below which no neighbour is looked for; unrelated molecules reach 0.7"
    )
    shortest: int = Field(35, ge=1, description="bases; shorter molecules reach `identity` by chance and are excluded")
    per_family: int | None = Field(None, ge=1, description="most molecules of a family to learn from; null: all")
    transfer: Transfer
    by_identity: Shares
    published: dict[str, dict[splits.Part, str]] = Field(
        {}, description="by set and part: glob of the files that its authors made for it"
    )
