"""Families divided among pre-training and the downstream parts: whole families, in proportion in every stratum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import polars as pl

from stages.runtime import random_numbers

Part = Literal["pretrain", "train", "validation", "test"]
PARTS: tuple[Part, ...] = ("pretrain", "train", "validation", "test")


def strata(molecules: pl.DataFrame) -> dict[str, str]:
    """Stratum of each family: RNA type and evidence of most of its molecules.

    Parameters
    ----------
    molecules
        family, rna_type and evidence; those without a family are left out.
    """
    told = molecules.drop_nulls("family").select("family", pl.col("rna_type", "evidence").fill_null("–"))
    counted = told.group_by("family", "rna_type", "evidence").len()
    ordered = counted.sort("family", "len", "rna_type", "evidence", descending=[False, True, False, False])
    most = ordered.group_by("family", maintain_order=True).first()
    return {family: f"{kind}, {evidence}" for family, kind, evidence, _ in most.iter_rows()}


def divide(stratum_of: Mapping[str, str], shares: Mapping[Part, float], *, seed: int) -> dict[str, Part]:
    """Give every family to a part.

    The strata are shuffled, and the families within each; then each family goes to the part that lacks most of its
    share of the families so far. So each part has its share of all families, and of a stratum as nearly as whole
    families allow.

    Parameters
    ----------
    stratum_of
        Stratum of each family.
    shares
        Share of the families by part, 1 in total.

    Returns
    -------
    dict
        Part of each family. The order of the families does not matter.
    """
    random = random_numbers(seed, "rna families")
    members: dict[str, list[str]] = {}
    for family in sorted(stratum_of):
        members.setdefault(stratum_of[family], []).append(family)
    names = sorted(members)
    # A start that differs by seed: else the first families of all would always go to the largest part.
    lacking = dict(zip(PARTS, random.uniform(-0.5, 0.5, len(PARTS)).tolist(), strict=True))
    wanted = [part for part in PARTS if shares.get(part, 0) > 0]
    found: dict[str, Part] = {}
    for place in random.permutation(len(names)):
        families = members[names[place]]
        for number in random.permutation(len(families)):
            for part in wanted:
                lacking[part] += shares[part]
            chosen = max(wanted, key=lambda part: lacking[part])
            lacking[chosen] -= 1
            found[families[number]] = chosen
    return found
