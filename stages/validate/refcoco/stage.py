"""The gate of referring segmentation: every ref is accepted or quarantined, the parts are those of the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stages import artifacts
from stages.errors import GateStopped
from stages.params import StageParams, bound
from stages.validate import data_sets, docs, expectations, splits, verdicts
from stages.validate.refcoco import division, refs, twins
from stages.validate.refcoco.gate import Gate, Labelled
from stages.validate.verdicts import Judgement

DOMAIN = "refcoco"
BLOCK = "refcoco.sets"
MEANT = "where train and validation are meant to share images, give the set `gate: {shared_images: allow}`"
FILES_SHOWN = 12
#: What set.json says that the page of a set repeats.
ABOUT = ("title", "reader", "images", "objects", "refs", "sentences", "categories", "parts")


class Params(StageParams):
    """What the gate reads from params.yaml."""

    sets: dict[str, data_sets.GateOf[Gate]] = bound("refcoco.sets")
    gate: Gate = bound("refcoco.gate")
    labelled: Labelled = bound("refcoco.labelled")


@dataclass(frozen=True)
class Judged(data_sets.JudgedSet):
    """One set with the verdict on its refs, their parts, and the images whose masks count as known.

    ``findings`` are told, and stop nothing; ``leaks`` stop.
    """

    table: pl.DataFrame
    labelled: pl.DataFrame
    described: Mapping[str, Any]
    findings: Sequence[str]
    leaks: Sequence[str]

    @property
    def split_name(self) -> str:
        """The split as the report and the documents call it."""
        return f"as the file says, {self.key}"


def run(params: Params, *, name: str, key: str) -> None:
    """Judge the ingested refs of every set and write verdict, splits and labelled.parquet, summary.json and docs/.

    Raises
    ------
    UsageError
        A set of params.yaml was not ingested.
    DataError
        The list of pre-training images is none, or objects.parquet of a set is absent.
    GateStopped
        Too many refs are quarantined, a table is empty or malformed, or an image lies in two parts. All outputs are
        written.
    """
    data_sets.warn_of_strangers(DOMAIN, BLOCK, "set", params.sets)
    sets = [judge_set(each, params) for each in sorted(params.sets)]
    verdict = pl.concat([s.verdict for s in sets]) if sets else pl.DataFrame(schema=verdicts.SCHEMA)
    table = pl.concat([s.table for s in sets]) if sets else pl.DataFrame(schema=division.COLUMNS)
    labelled = pl.concat([s.labelled for s in sets]) if sets else pl.DataFrame(schema=division.LABELLED)
    stops = [stop for judgement in data_sets.worst_first([s.judgement for s in sets]) for stop in judgement.stops]
    stops += [f"{stop}; {MEANT}" for s in sets for stop in splits.leak_stops(s.split_name, s.leaks)]
    if not sets:
        stops.append(f"{BLOCK} in params.yaml names no set")
    total = verdicts.weigh("all sets", verdict, params.gate.max_quarantined, stops=stops)
    summary = {
        "domain": DOMAIN,
        "noun": "referred object",
        **total.as_json(),
        "expectations": verdicts.expectation_counts({s.key: s.results for s in sets}),
        "splits": {"seed": None, **{s.split_name: s.described for s in sets}},
        "leakage": {s.split_name: s.leaks for s in sets},
        "sites": {s.key: describe(s, params.sets[s.key]) for s in sets},
    }
    folder = artifacts.validated(DOMAIN)
    artifacts.write_table(folder / "verdict.parquet", verdict)
    artifacts.write_table(folder / "splits.parquet", table)
    artifacts.write_table(folder / "labelled.parquet", labelled)
    artifacts.write_json(folder / "summary.json", summary)
    with artifacts.atomic(folder / "docs") as draft:
        write_docs(draft, sets, total, summary)
    for judgement in [*(s.judgement for s in sets), total]:
        print(data_sets.line(judgement, "refs"))
    if total.stops:
        raise GateStopped(verdicts.stop_message(DOMAIN, total.stops, verdict, folder))


def judge_set(key: str, params: Params) -> Judged:
    """Run the expectations on one set: on the shape of its table, then on its refs."""
    records, about, manifest = data_sets.read_ingested(DOMAIN, key, block=BLOCK, noun="set", about="set.json")
    gate = params.gate.overridden(params.sets[key].gate)
    known = division.image_ids(gate.pretraining_images) if gate.pretraining_images else set()
    table = f"{key}/records.parquet"
    declared = expectations.columns_table(records, refs.columns())
    shape = expectations.judge(declared, expectations.suite_of(key, [expectations.columns_rule(table)], declared))
    rules = [expectations.row_count(table)]
    results = verdicts.against_all(shape, records.height)
    sound = not expectations.failed(shape) and records.height > 0
    if sound:
        records = refs.summary_frame(records, known, twins.of_one_mask(artifacts.ingested(DOMAIN, key)))
        rules += [*expectations.identity("ref"), *refs.rules(gate)]
    suite = expectations.suite_of(key, rules, records)
    results = [*results, *expectations.judge(records, suite)]
    verdict = verdicts.verdicts(records, results)
    stops = [result.table_reason for result in results if result.table_reason is not None]
    judgement = verdicts.weigh(key, verdict, gate.max_quarantined, stops=stops)
    kept = (key, records, verdict, results, suite, judgement, about, manifest)
    if not sound:
        empty = pl.DataFrame(schema=division.COLUMNS), pl.DataFrame(schema=division.LABELLED)
        return Judged(*kept, *empty, {"parts": {}, "notes": []}, [], [])
    accepted = verdict["outcome"] == verdicts.ACCEPTED
    parts = division.as_the_file_says(records)
    tested, shared = division.audit(records, parts, accepted)
    allowed = gate.shared_images == "allow"
    labelled = division.labelled(key, records, parts, accepted, params.labelled)
    described = {
        "parts": division.sizes(parts, records.select("record_id", "sentences").filter(accepted)),
        "notes": [*labelled_notes(labelled), *(shared_note(shared) if allowed else [])],
    }
    leaks = tested if allowed else [*tested, *shared]
    return Judged(*kept, parts, labelled, described, told(records, accepted), leaks)


def shared_note(shared: Sequence[str]) -> list[str]:
    """How many images lie in training and in validation, where that is allowed."""
    return [f"{len(shared)} images are shared by train and validation: {shared[0]}"] if shared else []


def labelled_notes(labelled: pl.DataFrame) -> list[str]:
    """How many training images each share labels."""
    counts = (
        labelled.filter(pl.col("draw") == 0).group_by("share").agg(pl.col("labelled").sum(), pl.len()).sort("share")
    )
    return [
        f"{100 * share:g}% labelled: {count} of {total} training images" for share, count, total in counts.iter_rows()
    ]


def told(records: pl.DataFrame, accepted: pl.Series) -> list[str]:
    """What a reader should know about the accepted refs."""
    mine = records.filter(accepted)
    ambiguous = int(mine["ambiguous_sentences"].sum())
    total = int(mine["sentences"].sum())
    if not ambiguous:
        return []
    return [f"{ambiguous} of {total} sentences ({ambiguous / total:.1%}) name two objects of one image"]


def describe(judged: Judged, params: data_sets.GateOf[Gate]) -> dict[str, Any]:
    """Counts, origin and content of one set for summary.json; licence and citation of params.yaml win."""
    counts = verdicts.expectation_counts({judged.key: judged.results})
    about = dict(judged.about)
    return {
        **judged.judgement.as_json(),
        "failed": {count["expectation"]: count["failed"] for count in counts if count["failed"]},
        "about": {
            **about,
            "start": None,
            "end": None,
            "resolution": None,
            "variables": {
                "image": {"unit": "8 bit", "long_name": "photograph or scene, RGB"},
                "mask": {"unit": "pixel", "long_name": "mask of an object, run lengths"},
                "sentence": {"unit": "word", "long_name": "expression that names one object of an image"},
            },
            "notes": [*about.get("notes", []), *judged.findings],
        },
        "source": data_sets.terms(judged.manifest, params.licence, params.citation),
    }


def write_docs(folder: Path, sets: Sequence[Judged], total: Judgement, summary: Mapping[str, Any]) -> None:
    """The HTML pages: an overview with the splits, and a page a set."""
    pages = [docs.Page(s.key, s.judgement, s.results, s.suite, facts=facts(summary["sites"][s.key])) for s in sets]
    docs.write(
        folder,
        title="Referring segmentation gate",
        noun="set",
        total=total,
        pages=pages,
        counts=summary["expectations"],
        sections=[(f"Split {s.split_name}", split_facts(s)) for s in sets],
    )


def split_facts(judged: Judged) -> list[tuple[str, str]]:
    """One line a part, then the notes and the leaks, for the documents."""
    found = [
        (part, f"{size['records']} accepted refs, {', '.join(size['groups'])}")
        for part, size in judged.described["parts"].items()
    ]
    found += [("note", note) for note in judged.described["notes"]]
    return [*found, *([("leak", leak) for leak in judged.leaks] or [("audit", "no leakage found")])]


def facts(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a set comes from and what is in it, for its page."""
    about = described["about"]
    source = dict(described["source"])
    files = source.pop("files", [])
    found = data_sets.source_facts({**source, "files": files[:FILES_SHOWN]})
    if len(files) > FILES_SHOWN:  # a file an image: tens of thousands
        found.append(("file", f"and {len(files) - FILES_SHOWN} more, in manifest.json"))
    found += [(name, str(about[name])) for name in ABOUT if about.get(name) is not None]
    found.append(("simulated", "yes" if about.get("simulated") else "no"))
    return [*found, *(("note", str(note)) for note in about["notes"])]
