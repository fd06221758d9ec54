"""What is expected of a molecule: the summary frame of a set, and the rules made of the limits."""

from __future__ import annotations

from typing import Any

import polars as pl

from stages.ingest.rna.schema import RECORD_COLUMNS
from stages.validate.expectations import Rule, Severity, between
from stages.validate.rna.gate import Choice, Gate

KINDS = {"String": "text", "Int64": "integer", "Float64": "number", "Boolean": "flag"}


def columns() -> dict[str, str]:
    """Columns the gate needs in records.parquet, each with its kind of type."""
    return {name: KINDS[dtype] for name, dtype in RECORD_COLUMNS.items()}


def summary_frame(records: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """records.parquet with what molecules.parquet holds and with the figures that stand between molecules.

    Adds the columns of ``stored`` (:func:`stages.validate.rna.stored.facts`) and

    - unknown_share, lost_share (null without a consensus), paired (pairs; null without a structure)
    - copy_of: the first molecule of the set with the same sequence and structure
    - other_structure: the first molecule of the set with the same sequence, where its structure is another one
    - other_family: family of the first molecule of the set with the same sequence, where it is another one
    """
    pairs_there = pl.col("pairs") + pl.col("pairs_lost")
    first, first_family = (pl.col(name).first().over("sha256") for name in ("record_id", "family"))
    first_structure = pl.col("structure").first().over("sha256")
    copied = pl.col("record_id").first().over("sha256", "structure")
    known = pl.col("sha256").is_not_null()
    return (
        records.hstack(stored)
        .with_columns(pl.col("structure").fill_null("none"), pl.col("family").cast(pl.String))
        .with_columns(
            unknown_share=pl.when(pl.col("length") > 0).then(pl.col("unknown_bases") / pl.col("length")),
            lost_share=pl.when(pairs_there > 0).then(pl.col("pairs_lost") / pairs_there),
            paired=pl.when("has_structure").then("pairs"),
            copy_of=pl.when(known & (copied != pl.col("record_id"))).then(copied),
            other_structure=pl.when(known & (first_structure != pl.col("structure"))).then(first),
            other_family=pl.when(known & (first_family != pl.col("family"))).then(first_family),
        )
    )


def rules(gate: Gate, *, families: bool) -> list[Rule]:
    """The rules for the molecules of one set, gravest first.

    Parameters
    ----------
    families
        Whether a molecule of the set has a family.
    """
    return [*_stored(), *_sequences(gate), *_structures(gate), *_equals(gate), *_families(gate, families)]


def _severity(choice: Choice) -> Severity:
    return "quarantine" if choice == "quarantine" else "warning"


def _null(column: str, name: str, reason: str, severity: Severity) -> Rule:
    return Rule(name, "expect_column_values_to_be_null", {"column": column}, severity, reason)


def _none(column: str, name: str, reason: str) -> Rule:
    return between(name, column, None, 0, severity="quarantine", reason=reason, observed="{value}")


def _equal(name: str, column: str, other: str, reason: str) -> Rule:
    kwargs = {"column_A": column, "column_B": other}
    observed = f"{{{column}}}"
    return Rule(name, "expect_column_pair_values_to_be_equal", kwargs, "quarantine", reason, observed)


def _stored() -> list[Rule]:
    """What molecules.parquet must hold: the same molecules as records.parquet, with structures that can be one."""
    return [
        _none(
            "odd_letters",
            "alphabet",
            "{record_id} has {value} letters that are no base: A, C, G, U or an IUPAC code of several",
        ),
        _equal(
            "sequence stored",
            "stored_sha256",
            "sha256",
            "the sequence of {record_id} in molecules.parquet has sha256 {stored_sha256}, records.parquet says "
            "{sha256}",
        ),
        _equal(
            "length stored",
            "stored_length",
            "length",
            "molecules.parquet holds {stored_length} bases of {record_id}, records.parquet says {length}",
        ),
        _none(
            "torn_pairs",
            "pairs complete",
            "the lists of left and right ends and of orders of {record_id} differ in length by {value}",
        ),
        _none(
            "miscounted_pairs",
            "pairs stored",
            "molecules.parquet and records.parquet differ by {value} in the number of pairs of {record_id}",
        ),
        _none("outside_pairs", "pairs inside", "{value} pairs of {record_id} are not of two of its {length} bases"),
        _none("shared_bases", "one partner a base", "{value} bases of {record_id} stand in more than one pair"),
    ]


def _sequences(gate: Gate) -> list[Rule]:
    shortest, longest = gate.length
    return [
        between(
            "length",
            "length",
            shortest,
            longest,
            severity="quarantine",
            reason=f"{{record_id}} has {{value}} bases; the gate allows {shortest} to {longest}",
            observed="{value} bases",
        ),
        *_graded(
            "unknown bases",
            "unknown_share",
            None,
            (gate.max_unknown, gate.many_unknown),
            "{value:.1%} of the bases of {record_id} are IUPAC codes of several",
        ),
    ]


def _graded(
    name: str, column: str, unit: str | None, limits: tuple[float, float], reason: str, *, least: bool = False
) -> list[Rule]:
    """Two rules on one figure: one limit refuses, the other warns; ``least`` where the limits are lower ones.

    Shares are told in percent; figures with a ``unit`` as they are.
    """
    severities: tuple[Severity, Severity] = ("quarantine", "warning")
    found = []
    for limit, severity in zip(limits, severities, strict=True):
        told = f"{limit:.1%}" if unit is None else f"{limit:g}{unit}"
        asks = ("asks for at least" if least else "allows") if severity == "quarantine" else "warns"
        where = "" if severity == "quarantine" else (" below" if least else " above")
        found.append(
            between(
                name if severity == "quarantine" else f"{name}, warning",
                column,
                limit if least else None,
                None if least else limit,
                severity=severity,
                reason=f"{reason}; the gate {asks}{where} {told}",
                observed="{value:.1%}" if unit is None else f"{{value}}{unit}",
            )
        )
    return found


def _structures(gate: Gate) -> list[Rule]:
    return [
        *_graded(
            "canonical pairs",
            "canonical_share",
            None,
            (gate.min_canonical, gate.few_canonical),
            "{value:.1%} of the pairs of {record_id} are GC, AU or GU",
            least=True,
        ),
        *_graded(
            "smallest loop",
            "minimum_loop",
            " bases",
            (gate.min_loop, gate.short_loop),
            "a pair of {record_id} has {value} bases between its two",
            least=True,
        ),
        *_graded(
            "pairs lost",
            "lost_share",
            None,
            (gate.max_lost, gate.much_lost),
            "{pairs_lost} consensus pairs of {record_id} ({value:.1%}) are lost to gaps",
        ),
        between(
            "a pair at least",
            "paired",
            1,
            None,
            severity="warning",
            reason="{record_id} has a structure without any pair",
            observed="{value} pairs",
        ),
    ]


def _equals(gate: Gate) -> list[Rule]:
    return [
        _null(
            "copy_of",
            "copy of a molecule",
            "{record_id} has the sequence and the structure of {value}",
            _severity(gate.copies),
        ),
        _null(
            "other_structure",
            "one structure for one sequence",
            "{record_id} has the sequence of {value} and another structure",
            _severity(gate.other_structure),
        ),
        _null(
            "other_family",
            "one family for one sequence",
            "{record_id} of family {family} has the sequence of a molecule of family {value}",
            "warning",
        ),
    ]


def _families(gate: Gate, families: bool) -> list[Rule]:
    if not families and gate.no_family == "report":
        return []  # a set without families is told once, not for each of its molecules
    kwargs: dict[str, Any] = {"column": "family"}
    reason = "{record_id} has no family: it is in no part of the families that are divided"
    severity = _severity(gate.no_family)
    return [Rule("family present", "expect_column_values_to_not_be_null", kwargs, severity, reason, "null")]
