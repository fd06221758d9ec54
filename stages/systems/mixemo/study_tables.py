"""The tables, claims and figures of the study on simulated populations."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from stages.metrics.summary import Claim, Table, Verdict
from stages.systems.mixemo.scores import interval, over_seeds, paired
from stages.systems.mixemo.settings import ABLATIONS, BAR, MAIN, METHODS, READINGS, REFERENCE
from stages.systems.mixemo.tables import judged, rng_of, told

UNIT = ["seed", "population"]
#: What each kind of population is, for tables.
KINDS = {
    "coupled": "hidden states whose law depends on subject and class",
    "uncoupled": "hidden states equally likely for all",
    "shifts": "no states, subjects shifted",
    "control": "no states, no shifts: one distribution",
}


def compared(study: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Scores of the methods on one kind of population, the curve of the number of subsets left out."""
    return study.filter((pl.col("kind") == kind) & pl.col("subsets").is_null())


def tables(study: pl.DataFrame) -> list[Table]:
    """Methods on each kind of population, and the number of subsets where the study has its curve."""
    rows: list[list[str | float | int | bool | None]] = []
    for kind in (kind for kind in KINDS if kind in set(study["kind"])):
        mine = compared(study, kind)
        for method in (method for method in METHODS if method in set(mine["method"])):
            mean, low, high = interval(mine, UNIT, method, rng_of("study", kind, method))
            f1 = over_seeds(mine.filter(pl.col("method") == method), UNIT)["macro_f1"].to_numpy().mean()
            gain: tuple[float, ...] = (math.nan,) * 4
            if method != REFERENCE:
                gain = paired(mine, UNIT, method, REFERENCE, rng_of("study", kind, method, "gain"))
            rows.append([kind, METHODS[method], mean, low, high, float(f1), *gain])
    populations = study.select(UNIT).unique().height
    found = [
        Table(
            title="Fresh populations (simulated): methods at one budget",
            caption=f"{populations} populations of each kind, drawn after the settings were fixed; differential "
            "entropies with hidden trial states, leave one subject out. "
            + "; ".join(f"{kind}: {text}" for kind, text in KINDS.items())
            + ". Means over populations with 95 % bootstrap intervals over them; gain over ERM, paired, and its p.",
            columns=[
                "population",
                "method",
                "accuracy",
                "low",
                "high",
                "macro-F1",
                "gain",
                "gain low",
                "gain high",
                "p",
            ],
            rows=_plain(rows),
        )
    ]
    curve = subset_curve(study)
    if curve.height:
        found.append(
            Table(
                title="Fresh populations (simulated): number of subsets",
                caption="MixEmo on the coupled populations with K subsets; gain over ERM, paired, with "
                "95 % bootstrap intervals. With K = 1 nothing moves: half of the samples see each window twice.",
                columns=["subsets", "accuracy", "gain", "gain low", "gain high", "p"],
                rows=_plain([list(row) for row in curve.iter_rows()]),
            )
        )
    return found


def _plain(rows: list[list[Any]]) -> list[list[Any]]:
    return [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]


def subset_curve(study: pl.DataFrame) -> pl.DataFrame:
    """Gain over ERM against the number of subsets: subsets, accuracy, gain, low, high, p."""
    erm = compared(study, "coupled").filter(pl.col("method") == REFERENCE)
    curve = study.filter(pl.col("subsets").is_not_null())
    rows = []
    for subsets in sorted(curve["subsets"].unique()):
        mine = curve.filter(pl.col("subsets") == subsets)
        both = pl.concat([mine, erm])
        mean, low, high, p = paired(both, UNIT, MAIN, REFERENCE, rng_of("study", "curve", str(subsets)))
        accuracy = interval(mine, UNIT, MAIN, rng_of("study", "curve"))[0]
        rows.append({"subsets": subsets, "accuracy": accuracy, "gain": mean, "low": low, "high": high, "p": p})
    return pl.DataFrame(rows)


def claims(study: pl.DataFrame) -> list[Claim]:
    """What the study says about the claim of the paper, its mechanism, and the control."""
    kinds = set(study["kind"])
    said: list[Claim] = []
    if "coupled" in kinds:
        mine = compared(study, "coupled")
        methods = set(mine["method"])
        for other in (REFERENCE, BAR):
            if other in methods:
                said.append(
                    _gain(mine, MAIN, other, f"On fresh populations MixEmo generalises better than {METHODS[other]}")
                )
        for name in (name for name in READINGS if name in methods and name != MAIN):
            said.append(
                _gain(mine, name, REFERENCE, f"On fresh populations {METHODS[name]}, generalises better than ERM")
            )
        why = {
            "iid_prototypes": "Subsets of one distribution matter: random subsets of the same sizes do worse",
            "subject_prototypes": "Subsets tell more than subjects: subjects as subsets do worse",
            "no_collaboration": "Collaboration matters: without the divergence MixEmo does worse",
            "no_augmentation": "Augmentation matters: without moved windows MixEmo does worse",
        }
        for name in (name for name in ABLATIONS if name in why):
            if name in methods:
                said.append(_gain(mine, MAIN, name, why[name]))
            else:
                evidence = "in the study's profile (`params apply study`)"
                said.append(Claim(claim=f"{why[name]} (simulated)", verdict="not tested", evidence=evidence))
    if "control" in kinds:
        difference = paired(compared(study, "control"), UNIT, MAIN, REFERENCE, rng_of("study", "control", "claim"))
        verdict: Verdict = judged(difference[1], expected_gain=False)
        said.append(
            Claim(
                claim="Where all subjects share one distribution MixEmo gains nothing over ERM (control, simulated)",
                verdict=verdict,
                evidence=f"difference paired over {_populations(study)} populations {told(difference)}",
            )
        )
    return said


def _gain(mine: pl.DataFrame, one: str, other: str, claim: str) -> Claim:
    difference = paired(mine, UNIT, one, other, rng_of("study", one, other, "claim"))
    return Claim(
        claim=f"{claim} (simulated)",
        verdict=judged(difference[1]),
        evidence=f"{METHODS[one]} less {METHODS[other]}, paired over {_populations(mine)} populations with coupled "
        f"states: {told(difference)}",
    )


def _populations(study: pl.DataFrame) -> int:
    return study.select(UNIT).unique().height


def figures(study: pl.DataFrame) -> dict[str, Any]:
    """Flat figures for ``dvc metrics``: gain over ERM of every method on every kind of population."""
    found: dict[str, Any] = {}
    for kind in (kind for kind in KINDS if kind in set(study["kind"])):
        mine = compared(study, kind)
        methods = [name for name in METHODS if name in set(mine["method"]) and name != REFERENCE]
        found[kind] = {name: paired(mine, UNIT, name, REFERENCE, rng_of("study", "figures"))[0] for name in methods}
    return {"study_gain": found}
