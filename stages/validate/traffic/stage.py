"""The gate of the traffic sets: every sensor-day is accepted or quarantined, then each set is split by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from stages import artifacts
from stages.errors import GateStopped
from stages.ingest.traffic.schema import LONG_NAMES
from stages.params import StageParams, bound
from stages.validate import data_sets, docs, expectations, splits, verdicts
from stages.validate.expectations import Result
from stages.validate.traffic import sensor_days, series, time_split
from stages.validate.traffic.gate import Gate
from stages.validate.traffic.series import Examined
from stages.validate.traffic.time_split import Splits, TimeSplit
from stages.validate.verdicts import Judgement

DOMAIN = "traffic"
BLOCK = "traffic.sets"
GRID_COLUMNS = 45  # more days are drawn by the week, more weeks by four of them
GRID_ROWS = 250
#: What set.json says that the page of a set repeats.
ABOUT = ("reader", "null", "timezone", "lane_order", "roads")


class Params(StageParams):
    """What the gate reads from params.yaml."""

    sets: dict[str, data_sets.GateOf[Gate]] = bound("traffic.sets")
    gate: Gate = bound("traffic.gate")
    splits: Splits = bound("traffic.splits")


@dataclass(frozen=True)
class Judged(data_sets.JudgedSet):
    """One set with the verdict on its sensor-days, and its split.

    ``results`` are those on its sensor-days; ``found`` adds those on the set and on its sensors. ``findings`` are told,
    and stop nothing; ``leaks`` stop.
    """

    table: pl.DataFrame
    described: Mapping[str, Any]
    found: Sequence[Result] = field(default=())
    findings: Sequence[str] = field(default=())
    leaks: Sequence[str] = field(default=())
    examined: Examined | None = None

    @property
    def split_name(self) -> str:
        """The split as the report and the documents call it."""
        return f"by time, {self.key}"


def run(params: Params, *, name: str, key: str) -> None:
    """Judge the ingested sensor-days of every set and write verdict.parquet, splits.parquet, summary.json and docs/.

    Raises
    ------
    UsageError
        A set of params.yaml was not ingested.
    DataError
        What ingest wrote for a set is not complete, or its files do not belong together.
    GateStopped
        Too many sensor-days are quarantined, a table is empty or malformed, a set as a whole is not what it says it is,
        or a split leaks. All outputs are written.
    """
    data_sets.warn_of_strangers(DOMAIN, BLOCK, "set", params.sets)
    sets = [judge_set(key, params) for key in sorted(params.sets)]
    verdict = pl.concat([s.verdict for s in sets]) if sets else pl.DataFrame(schema=verdicts.SCHEMA)
    table = pl.concat([s.table for s in sets]) if sets else pl.DataFrame(schema=time_split.COLUMNS)
    judgements = data_sets.worst_first([s.judgement for s in sets])
    stops = [stop for judgement in judgements for stop in judgement.stops]
    stops += [stop for s in sets for stop in splits.leak_stops(s.split_name, s.leaks)]
    if not sets:
        stops.append(f"{BLOCK} in params.yaml names no set")
    total = verdicts.weigh("all sets", verdict, params.gate.max_quarantined, stops=stops)
    shared = shared_content(sets)
    summary = {
        "domain": DOMAIN,
        "noun": "sensor-day",
        **total.as_json(),
        "expectations": verdicts.expectation_counts({s.key: [*s.results, *s.found] for s in sets}),
        # boundaries follow from the shares alone; the report asks every domain for a seed
        "splits": {"seed": None, **{s.split_name: s.described for s in sets}},
        "leakage": {s.split_name: list(s.leaks) for s in sets},
        "sites": {s.key: describe(s, params.sets[s.key], shared.get(s.key, [])) for s in sets},
    }
    folder = artifacts.validated(DOMAIN)
    artifacts.write_table(folder / "verdict.parquet", verdict)
    artifacts.write_table(folder / "splits.parquet", table)
    artifacts.write_json(folder / "summary.json", summary)
    with artifacts.atomic(folder / "docs") as draft:
        write_docs(draft, sets, total, summary)
    for judgement in [*(s.judgement for s in sets), total]:
        print(data_sets.line(judgement, "sensor-days"))
    if total.stops:
        raise GateStopped(verdicts.stop_message(DOMAIN, total.stops, verdict, folder))


def judge_set(key: str, params: Params) -> Judged:
    """Run the expectations on one set: on the shape of its table, then on its sensor-days, its sensors and itself."""
    records, about, manifest = data_sets.read_ingested(DOMAIN, key, block=BLOCK, noun="set", about="set.json")
    gate = params.gate.overridden(params.sets[key].gate)
    table = f"{key}/records.parquet"
    declared = expectations.columns_table(records, sensor_days.columns())
    shape = expectations.judge(declared, expectations.suite_of(key, [expectations.columns_rule(table)], declared))
    rules = [expectations.row_count(table)]
    results = verdicts.against_all(shape, records.height)
    examined = None
    if not expectations.failed(shape) and records.height:
        examined = series.examine(artifacts.ingested(DOMAIN, key), records, gate, params.splits)
        records = examined.records
        rules += expectations.identity("sensor-day")
        rules += sensor_days.rules(
            gate,
            examined.stored.units,
            examined.stored.step_minutes,
            lanes=examined.on_lanes,
            copies=gate.near_copies == "quarantine",
        )
    suite = expectations.suite_of(key, rules, records)
    results = [*results, *expectations.judge(records, suite)]
    verdict = verdicts.verdicts(records, results)
    found = [] if examined is None else series.judge_tables(key, examined, gate)
    stops = [result.table_reason for result in results if result.table_reason is not None]
    stops += [failure.reason for r in found if r.rule.severity == "quarantine" for failure in r.failures]
    judgement = verdicts.weigh(key, verdict, gate.max_quarantined, stops=stops)
    kept = (key, records, verdict, results, suite, judgement, about, manifest)
    accepted = verdict["outcome"] == verdicts.ACCEPTED
    if examined is None:
        return Judged(*kept, *_undivided(records, accepted))
    divided, described, leaks, copied = divide(records, accepted, examined.split, params.splits)
    copied += [copy.told for copy in examined.copies]
    if gate.near_copies == "stop":
        leaks += copied
    findings = told(found, examined.stored.sensor_ids) + ([] if gate.near_copies == "stop" else copied)
    return Judged(*kept, divided, described, found, findings, leaks, examined)


def divide(
    records: pl.DataFrame, accepted: pl.Series, split: TimeSplit, params: Splits
) -> tuple[pl.DataFrame, dict[str, Any], list[str], list[str]]:
    """The rows of one set's split, its description, what the audit finds, and sensor-days copied from other parts."""
    table = time_split.rows(records, split)
    by_record = records.select("record_id").with_columns(accepted=accepted).unique("record_id", keep="first")
    row_accepted = table.join(by_record, on="record_id", how="left", maintain_order="left")["accepted"]
    row_accepted = row_accepted.fill_null(False)
    leaks = time_split.audit(table, row_accepted, params.window)
    part = pl.Series([split.part_of(start, stop) for start, stop in records.select("start", "stop").iter_rows()])
    copied = [
        f"{record} has the values of {source} in {source_part}, byte for byte"
        for record, source, source_part in time_split.copied_days(records, accepted, part).iter_rows()
    ]
    described = {
        "window": params.window,
        "parts": time_split.sizes(table, row_accepted, split),
        "notes": [f"a gap of {params.window} steps opens validation and test", *split.notes],
    }
    return table, described, leaks, copied


def _undivided(records: pl.DataFrame, accepted: pl.Series) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Rows without a part, and a description of empty parts, for a table that is malformed."""
    there = records.columns
    columns = {n: pl.col(n) if n in there else pl.lit(None) for n in time_split.COLUMNS}
    columns |= {"split": pl.lit(time_split.NAME), "part": pl.lit(None)}
    table = records.select(
        columns[name].cast(kind, strict=False).alias(name) for name, kind in time_split.COLUMNS.items()
    )
    nothing = TimeSplit({}, ("the table of sensor-days is malformed: nothing was divided",))
    return table, {"parts": time_split.sizes(table, accepted, nothing), "notes": list(nothing.notes)}


def told(found: Sequence[Result], sensors: Sequence[str], most: int = 3) -> list[str]:
    """What the tables of a set and of its sensors warn of: the first reasons of each rule, then the ids of the rest."""
    notes = []
    for result in found:
        if result.rule.severity != "warning":
            continue
        notes += [failure.reason for failure in result.failures[:most]]
        rest = [sensors[failure.row] for failure in result.failures[most:]]  # the set has one row: no rest
        if rest:
            notes.append(f"{result.rule.name} fails for {len(rest)} more: {', '.join(rest)}")
    return notes


def shared_content(sets: Sequence[Judged]) -> dict[str, list[str]]:
    """By set, the sensor-days it shares with others: each is split by itself, so this leaks nothing within one."""
    frames = [
        s.records.select(pl.lit(s.key).alias("set"), "record_id", "sha256").with_columns(
            accepted=s.accepted & s.records["moves"]
        )
        for s in sets
        if s.examined is not None
    ]
    if not frames:
        return {}
    frame = pl.concat(frames)
    found: dict[str, list[str]] = {}
    for pair in splits.shared_between(frame["set"], frame["record_id"], frame["accepted"], frame["sha256"], {}):
        for mine, other in ((pair.first, pair.second), (pair.second, pair.first)):
            found.setdefault(mine, []).append(
                f"{pair.records} sensor-days have equal content in {other}: do not train on one and test on the other"
            )
    return found


def describe(judged: Judged, params: data_sets.GateOf[Gate], shared: Sequence[str]) -> dict[str, Any]:
    """Counts, origin and content of one set for summary.json; licence and citation of params.yaml win."""
    counts = verdicts.expectation_counts({judged.key: [*judged.results, *judged.found]})
    about = dict(judged.about)
    stored = None if judged.examined is None else judged.examined.stored
    clock = stored is not None and stored.clock and stored.time_T.size > 0
    units = {} if stored is None else stored.units
    step = about.get("step_minutes")
    return {
        **judged.judgement.as_json(),
        "failed": {count["expectation"]: count["failed"] for count in counts if count["failed"]},
        "about": {
            **about,
            "start": str(stored.time_T[0]) if stored is not None and clock else None,
            "end": str(stored.time_T[-1]) if stored is not None and clock else None,
            "resolution": None if step is None else f"{step:g} minutes",
            "variables": {name: {"unit": unit, "long_name": LONG_NAMES.get(name)} for name, unit in units.items()},
            "notes": [*about.get("notes", []), *judged.findings, *shared],
        },
        "source": data_sets.terms(judged.manifest, params.licence, params.citation),
    }


def write_docs(folder: Path, sets: Sequence[Judged], total: Judgement, summary: Mapping[str, Any]) -> None:
    """The HTML pages: an overview and a page a set, with a grid of its sensors and days."""
    pages = [
        docs.Page(
            s.key,
            s.judgement,
            [*s.results, *s.found],
            s.suite,
            facts=facts(summary["sites"][s.key]),
            grid=grid(s),
        )
        for s in sets
    ]
    docs.write(
        folder,
        title="Traffic gate",
        noun="set",
        total=total,
        pages=pages,
        counts=summary["expectations"],
        sections=[(f"Split {s.split_name}", time_split.facts(s.described, list(s.leaks))) for s in sets],
    )


def grid(judged: Judged) -> docs.Grid | None:
    """Sensors by days, or by weeks or four of them, each cell the worst of its days; none for very many sensors."""
    frame = judged.records
    if judged.examined is None or frame["sensor"].n_unique() > GRID_ROWS:
        return None
    days = sorted(frame["day"].drop_nulls().unique().to_list())
    size = next((n for n in (1, 7, 28) if len(days) <= n * GRID_COLUMNS), -(-len(days) // GRID_COLUMNS))
    column_of = {day: days[place - place % size] for place, day in enumerate(days)}
    order = ("accepted", "warned", "quarantined")
    cells: dict[tuple[str, str], str] = {}
    told = zip(frame["sensor"], frame["day"], judged.verdict["outcome"], judged.verdict["warnings"], strict=True)
    for sensor, day, outcome, warned in told:
        if sensor is None or day is None:
            continue
        cell, state = (sensor, column_of[day]), data_sets.state(outcome, warned)
        cells[cell] = max(cells.get(cell, order[0]), state, key=order.index)
    rows = list(dict.fromkeys(frame["sensor"].drop_nulls().to_list()))
    return docs.Grid(rows, list(dict.fromkeys(column_of.values())), cells)


def facts(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a set comes from and what is in it, for its page."""
    about = described["about"]
    found = data_sets.source_facts(described["source"])
    found += [(name, str(about[name])) for name in ABOUT if about.get(name) is not None]
    found += [(name, str(about[name])) for name in ("start", "end", "resolution") if about.get(name)]
    found += [(name, variable["unit"]) for name, variable in about["variables"].items()]
    found.append(("simulated", "yes" if about.get("simulated") else "no"))
    return [*found, *(("note", str(note)) for note in about["notes"])]
