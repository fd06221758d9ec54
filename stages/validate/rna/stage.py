"""The gate of the RNA sets: every molecule is accepted or quarantined, then all are split by family and by identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stages import artifacts
from stages.errors import GateStopped, UsageError
from stages.params import StageParams, bound
from stages.validate import data_sets, docs, expectations, splits, verdicts
from stages.validate.rna import divided, division, molecules, stored
from stages.validate.rna.divided import Divided
from stages.validate.rna.gate import Gate
from stages.validate.rna.settings import Splits
from stages.validate.verdicts import Judgement

DOMAIN = "rna"
BLOCK = "rna.sets"
#: What set.json says that the page of a set repeats.
ABOUT = ("reader", "structures", "molecules", "families", "bases", "longest", "pairs", "pseudoknotted_pairs")
#: What the splits read of a molecule, and its kind where a malformed table lacks it.
RECORDS = {
    "record_id": pl.String,
    "group": pl.String,
    "set": pl.String,
    "family": pl.String,
    "source_file": pl.String,
    "sha256": pl.String,
    "length": pl.Int64,
    "evidence": pl.String,
}


class Params(StageParams):
    """What the gate reads from params.yaml."""

    sets: dict[str, data_sets.GateOf[Gate]] = bound("rna.sets")
    gate: Gate = bound("rna.gate")
    splits: Splits = bound("rna.splits")


@dataclass(frozen=True)
class Judged(data_sets.JudgedSet):
    """One set with the verdict on its molecules.

    ``pool`` holds the accepted ones with their sequences. ``findings`` are told, and stop nothing.
    """

    pool: pl.DataFrame
    findings: Sequence[str]


def run(params: Params, *, name: str, key: str) -> None:
    """Judge the ingested molecules of every set and write verdict.parquet, splits.parquet, summary.json and docs/.

    Raises
    ------
    UsageError
        A set of params.yaml was not ingested, or `published` names what is not there.
    DataError
        molecules.parquet of a set is absent, or does not belong to records.parquet.
    GateStopped
        Too many molecules are quarantined, a table is empty or malformed, or a split leaks. All outputs are written.
    """
    data_sets.warn_of_strangers(DOMAIN, BLOCK, "set", params.sets)
    sets = [judge_set(each, params) for each in sorted(params.sets)]
    verdict = pl.concat([s.verdict for s in sets]) if sets else pl.DataFrame(schema=verdicts.SCHEMA)
    divisions = divide(sets, params.splits)
    tables = [each.table for each in divisions]
    table = pl.concat(tables) if tables else pl.DataFrame(schema=divided.COLUMNS)
    judgements = data_sets.worst_first([s.judgement for s in sets])
    stops = [stop for judgement in judgements for stop in judgement.stops]
    stops += [stop for each in divisions if each.stops for stop in splits.leak_stops(each.name, each.leaks)]
    if not sets:
        stops.append(f"{BLOCK} in params.yaml names no set")
    total = verdicts.weigh("all sets", verdict, params.gate.max_quarantined, stops=stops)
    shared = shared_content(sets)
    summary = {
        "domain": DOMAIN,
        "noun": "molecule",
        **total.as_json(),
        "expectations": verdicts.expectation_counts({s.key: s.results for s in sets}),
        "splits": {"seed": params.splits.seed, **{each.name: each.described for each in divisions}},
        "leakage": {each.name: each.leaks for each in divisions},
        "sites": {s.key: describe(s, params.sets[s.key], shared.get(s.key, [])) for s in sets},
    }
    folder = artifacts.validated(DOMAIN)
    artifacts.write_table(folder / "verdict.parquet", verdict)
    artifacts.write_table(folder / "splits.parquet", table)
    artifacts.write_json(folder / "summary.json", summary)
    with artifacts.atomic(folder / "docs") as draft:
        write_docs(draft, sets, divisions, total, summary)
    for judgement in [*(s.judgement for s in sets), total]:
        print(data_sets.line(judgement, "molecules"))
    if total.stops:
        raise GateStopped(verdicts.stop_message(DOMAIN, total.stops, verdict, folder))


def judge_set(key: str, params: Params) -> Judged:
    """Run the expectations on one set: on the shape of its table, then on its molecules."""
    records, about, manifest = data_sets.read_ingested(DOMAIN, key, block=BLOCK, noun="set", about="set.json")
    gate = params.gate.overridden(params.sets[key].gate)
    table = f"{key}/records.parquet"
    declared = expectations.columns_table(records, molecules.columns())
    shape = expectations.judge(declared, expectations.suite_of(key, [expectations.columns_rule(table)], declared))
    rules = [expectations.row_count(table)]
    results = verdicts.against_all(shape, records.height)
    pool = records.select(_column(name, kind, records) for name, kind in RECORDS.items()).clear()
    pool = pool.with_columns(rna_type=pl.lit(None, pl.String), sequence=pl.lit(None, pl.String))
    sound = not expectations.failed(shape) and records.height > 0
    if sound:
        held = stored.read(artifacts.ingested(DOMAIN, key), records)
        records = molecules.summary_frame(records, stored.facts(held, records["pairs"]))
        rules += [
            *expectations.identity("molecule"),
            *molecules.rules(gate, families=records["family"].count() > 0),
        ]
    suite = expectations.suite_of(key, rules, records)
    results = [*results, *expectations.judge(records, suite)]
    verdict = verdicts.verdicts(records, results)
    accepted = verdict["outcome"] == verdicts.ACCEPTED
    if sound:
        pool = (
            records.select(*(_column(n, kind, records) for n, kind in RECORDS.items()), "rna_type")
            .hstack([held["sequence"]])
            .filter(accepted)
        )
    stops = [result.table_reason for result in results if result.table_reason is not None]
    judgement = verdicts.weigh(key, verdict, gate.max_quarantined, stops=stops)
    findings = told(records, accepted) if sound else []
    return Judged(key, records, verdict, results, suite, judgement, about, manifest, pool, findings)


def _column(name: str, kind: Any, records: pl.DataFrame) -> pl.Expr:
    return (pl.col(name) if name in records.columns else pl.lit(None)).cast(kind, strict=False).alias(name)


def divide(sets: Sequence[Judged], params: Splits) -> list[Divided]:
    """All splits: the families by each seed, the clusters of all sets, and the files of the sets that are published so.

    Raises
    ------
    UsageError
        `published` or `corpora` names a set that is none, or `published` files that are not there.
    """
    for place, named in (("published", params.published), ("transfer.corpora", params.transfer.corpora)):
        unknown = sorted(set(named) - {s.key for s in sets})
        if unknown:
            raise UsageError(f"rna.splits.{place} of params.yaml names {', '.join(unknown)}; {BLOCK} has no such set.")
    if not sets:
        return []
    columns = {s.key: s.records.select(_column(n, kind, s.records) for n, kind in RECORDS.items()) for s in sets}
    records, pool = pl.concat(list(columns.values())), pl.concat([s.pool for s in sets])
    found = [division.transfer(records, pool, params, seed) for seed in params.transfer.seeds]
    found.append(division.by_identity(records, pool, params))
    published = {s.key: params.published[s.key] for s in sets if s.key in params.published}
    for s in sets:
        if s.key in published:
            found.append(division.as_published(columns[s.key], s.pool, params, s.key, published[s.key]))
    return found


def told(records: pl.DataFrame, accepted: pl.Series) -> list[str]:
    """Accepted molecules and families by evidence, and what has no structure or no family."""
    mine = records.filter(accepted)
    notes = []
    counted = mine.drop_nulls("evidence").group_by("evidence").agg(pl.len(), pl.col("family").n_unique())
    for kind, count, families in counted.sort("evidence").iter_rows():
        notes.append(f"{kind} structures: {families} families, {count} accepted molecules")
    for name, text in (("family", "no family"), ("evidence", "no evidence of their structures")):
        absent = mine[name].null_count()
        if absent:
            notes.append(f"{absent} of {mine.height} accepted molecules have {text}")
    without = mine.filter(~pl.col("has_structure")).height
    return [*notes, *([f"{without} of {mine.height} accepted molecules have no structure"] if without else [])]


def shared_content(sets: Sequence[Judged]) -> dict[str, list[str]]:
    """By set, how many sequences it shares with others; the splits over all sets keep those in one part."""
    frames = [s.pool.select(pl.lit(s.key).alias("set"), "record_id", "sha256") for s in sets]
    if not frames:
        return {}
    frame = pl.concat(frames)
    everyone = pl.Series([True] * frame.height, dtype=pl.Boolean)
    found: dict[str, list[str]] = {}
    for pair in splits.shared_between(frame["set"], frame["record_id"], everyone, frame["sha256"], {}):
        for mine, other in ((pair.first, pair.second), (pair.second, pair.first)):
            found.setdefault(mine, []).append(f"{pair.records} molecules have the sequence of one in {other}")
    return found


def describe(judged: Judged, params: data_sets.GateOf[Gate], shared: Sequence[str]) -> dict[str, Any]:
    """Counts, origin and content of one set for summary.json; licence and citation of params.yaml win."""
    counts = verdicts.expectation_counts({judged.key: judged.results})
    about = dict(judged.about)
    sequence = {"unit": "base", "long_name": "bases A, C, G, U, and IUPAC codes of several"}
    variables = {"sequence": sequence}
    if about.get("with_structure"):
        variables["pairs"] = {"unit": "base pair", "long_name": f"structure by {about.get('structures')}"}
    return {
        **judged.judgement.as_json(),
        "failed": {count["expectation"]: count["failed"] for count in counts if count["failed"]},
        "about": {
            **about,
            "start": None,
            "end": None,
            "resolution": None,
            "variables": variables,
            "notes": [*about.get("notes", []), *judged.findings, *shared],
        },
        "source": data_sets.terms(judged.manifest, params.licence, params.citation),
    }


def write_docs(
    folder: Path, sets: Sequence[Judged], divisions: Sequence[Divided], total: Judgement, summary: Mapping[str, Any]
) -> None:
    """The HTML pages: an overview with the splits and their nearest neighbours, and a page a set."""
    pages = [docs.Page(s.key, s.judgement, s.results, s.suite, facts=facts(summary["sites"][s.key])) for s in sets]
    docs.write(
        folder,
        title="RNA gate",
        noun="set",
        total=total,
        pages=pages,
        counts=summary["expectations"],
        sections=[(f"Split {each.name}", divided.facts(each)) for each in divisions],
    )


def facts(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a set comes from and what is in it, for its page."""
    about = described["about"]
    found = data_sets.source_facts(described["source"])
    found += [(name.replace("_", " "), str(about[name])) for name in ABOUT if about.get(name) is not None]
    found.append(("simulated", "yes" if about.get("simulated") else "no"))
    return [*found, *(("note", str(note)) for note in about["notes"])]
