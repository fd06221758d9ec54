"""From the results of expectations to a verdict on every record, and from the verdicts to one of three outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

from stages.validate.expectations import RECORD, Result

Outcome = Literal["pass", "pass with quarantine", "stop"]

ACCEPTED = "accepted"
QUARANTINED = "quarantined"
JOIN = " | "

SCHEMA = {
    "record_id": pl.String,
    "group": pl.String,
    "outcome": pl.String,
    "expectation": pl.String,
    "observed": pl.String,
    "reason": pl.String,
    "warnings": pl.String,
}


def verdicts(frame: pl.DataFrame, results: Sequence[Result]) -> pl.DataFrame:
    """One verdict a record.

    A failed rule about the whole table (a missing column, say) is a reason against each of its records.

    Parameters
    ----------
    frame
        The records that were judged: record_id and group are read.
    results
        Results of any number of suites, in the order in which reasons are told.

    Returns
    -------
    DataFrame
        record_id, group, outcome (accepted | quarantined), expectation and observed (of the first failing rule; null
        where accepted), reason (all, joined by ``" | "``; null where accepted), warnings (the same for warnings).
    """
    against: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
    remarks: dict[int, list[str]] = defaultdict(list)
    for result in results:
        for row, reason, observed in _reasons(result, frame.height):
            if result.rule.severity == "quarantine":
                against[row].append((result.rule.name, observed, reason))
            else:
                remarks[row].append(reason)
    rows = []
    for row in range(frame.height):
        found = against.get(row)
        rows.append(
            (
                QUARANTINED if found else ACCEPTED,
                found[0][0] if found else None,
                found[0][1] if found else None,
                JOIN.join(reason for _, _, reason in found) if found else None,
                JOIN.join(remarks[row]) if row in remarks else None,
            )
        )
    judged = pl.DataFrame(rows, schema=dict(list(SCHEMA.items())[2:]), orient="row")
    keys = [
        (frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height)).cast(pl.String)
        for name in (RECORD, "group")
    ]
    return pl.DataFrame(keys).hstack(judged).select(list(SCHEMA))


def _reasons(result: Result, records: int) -> Iterable[tuple[int, str, str]]:
    if result.table_reason is not None:
        return [(row, result.table_reason, result.table_observed or "") for row in range(records)]
    return [(failure.row, failure.reason, failure.observed) for failure in result.failures]


def against_all(results: Sequence[Result], records: int) -> list[Result]:
    """Results about a table of columns, turned into reasons against every record of the data that has those columns."""
    turned = []
    for result in results:
        reason = JOIN.join(failure.reason for failure in result.failures) or None
        observed = ", ".join(failure.observed for failure in result.failures) or None
        turned.append(Result(result.rule, result.success, records, 0, (), reason, observed))
    return turned


def share(part: int, whole: int) -> float | None:
    """Share of a whole; undefined (None, written as null) where the whole is empty."""
    return part / whole if whole else None


@dataclass(frozen=True)
class Judgement:
    """What the gate says about one group, or about all of a data set; ``warned`` of the accepted have warnings."""

    name: str
    ingested: int
    accepted: int
    quarantined: int
    warned: int
    max_quarantined: float
    stops: tuple[str, ...]

    @property
    def quarantined_share(self) -> float | None:
        """Share of the ingested records that are quarantined; None where there are none."""
        return share(self.quarantined, self.ingested)

    @property
    def outcome(self) -> Outcome:
        """Stop where any reason to stop stands, else pass, with quarantine if a record is refused."""
        if self.stops:
            return "stop"
        return "pass with quarantine" if self.quarantined else "pass"

    def as_json(self) -> dict[str, Any]:
        """Counts, share, limit, outcome and the reasons to stop."""
        return {
            "ingested": self.ingested,
            "accepted": self.accepted,
            "quarantined": self.quarantined,
            "warned": self.warned,
            "quarantined_share": self.quarantined_share,
            "max_quarantined": self.max_quarantined,
            "outcome": self.outcome,
            "stops": list(self.stops),
        }


def weigh(name: str, verdict: pl.DataFrame, limit: float, *, stops: Iterable[str] = ()) -> Judgement:
    """Count a verdict and hold its share of quarantined records against the limit.

    Parameters
    ----------
    stops
        Reasons to stop that do not lie in the share: an empty table, a leak.
    """
    accepted = verdict.filter(pl.col("outcome") == ACCEPTED).height
    warned = verdict.filter((pl.col("outcome") == ACCEPTED) & pl.col("warnings").is_not_null()).height
    quarantined = verdict.height - accepted
    reasons = list(stops)
    part = share(quarantined, verdict.height)
    if part is not None and part > limit:
        reasons.append(
            f"{name}: {quarantined} of {verdict.height} records are quarantined ({part:.1%}); "
            f"the gate allows {limit:.1%}"
        )
    return Judgement(name, verdict.height, accepted, quarantined, warned, limit, tuple(reasons))


def frequent_reasons(verdict: pl.DataFrame, most: int = 3) -> list[str]:
    """The expectations that quarantine most records, each with its count and one reason as an example."""
    counted = (
        verdict.filter(pl.col("outcome") == QUARANTINED)
        .group_by("expectation")
        .agg(pl.len().alias("records"), pl.col("reason").sort_by("record_id").first().alias("example"))
        .sort(["records", "expectation"], descending=[True, False])
        .head(most)
    )
    return [
        f"{name} ({records} record{'' if records == 1 else 's'}, first: {example.split(JOIN)[0]})"
        for name, records, example in counted.iter_rows()
    ]


def stop_message(what: str, stops: Sequence[str], verdict: pl.DataFrame, folder: Path) -> str:
    """Why the gate stops, in one paragraph: the reasons to stop, the most frequent ones of records, where to look."""
    parts = [f"The gate stops {what}. {'; '.join(stops)}."]
    frequent = frequent_reasons(verdict)
    if frequent:
        parts.append(f"Most frequent reasons: {'; '.join(frequent)}.")
    parts.append(
        f"Every record with its reason stands in {folder / 'verdict.parquet'}, the expectations in "
        f"{folder / 'docs' / 'index.html'}. Mend the data, or change the gate in params.yaml, and run the stage again."
    )
    return " ".join(parts)


def expectation_counts(results: Mapping[str, Sequence[Result]]) -> list[dict[str, Any]]:
    """Counts by expectation over all groups: judged, not judged, failed."""
    counts: dict[tuple[str, str], dict[str, Any]] = {}
    for group in results:
        for result in results[group]:
            key = (result.rule.name, result.rule.severity)
            empty = {"expectation": key[0], "severity": key[1], "judged": 0, "not_judged": 0, "failed": 0}
            count = counts.setdefault(key, empty)
            count["judged"] += result.judged
            count["not_judged"] += result.not_judged
            count["failed"] += failing_records(result)
    return [counts[key] for key in counts]


def failing_records(result: Result) -> int:
    """Number of records a result speaks against."""
    return result.judged if result.table_reason is not None else len(result.failures)
