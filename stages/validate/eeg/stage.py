"""The gate of the EEG corpora: every trial is accepted or quarantined, then each corpus is split by subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stages import artifacts
from stages.errors import GateStopped
from stages.ingest.eeg.schema import ENTROPY_UNIT
from stages.params import StageParams, bound
from stages.validate import data_sets, docs, expectations, splits, verdicts
from stages.validate.eeg import copies, folds, inputs, trials, windows
from stages.validate.eeg.folds import CorpusSplit, Splits
from stages.validate.eeg.gate import Gate
from stages.validate.expectations import Result
from stages.validate.verdicts import Judgement

DOMAIN = "eeg"
BLOCK = "eeg.corpora"
GRID_COLUMNS = 120  # more trials in a session are no grid that anyone reads
#: What corpus.json says that the page of a corpus repeats.
ABOUT = ("title", "reader", "resolution", "original_rate", "unit", "montage", "reference", "window_seconds", "feature")
#: Statistics of a trial that should not tell its label, beside its features.
STATISTICS = ("seconds", "std_uv", "max_abs_uv", "drift_uv", "line_noise_share", "saturated_share")


class Params(StageParams):
    """What the gate reads from params.yaml."""

    corpora: dict[str, data_sets.GateOf[Gate]] = bound("eeg.corpora")
    gate: Gate = bound("eeg.gate")
    splits: Splits = bound("eeg.splits")


@dataclass(frozen=True)
class Judged(data_sets.JudgedSet):
    """One corpus with the verdict on its trials.

    ``results`` are those on its trials; ``found`` adds those on its inputs. ``findings`` are told, and stop nothing.
    """

    found: Sequence[Result] = field(default=())
    findings: Sequence[str] = field(default=())

    @property
    def noun(self) -> str:
        """What a group of the corpus is: subject, or block."""
        return str(self.about.get("split_unit", "subject"))


def run(params: Params, *, name: str, key: str) -> None:
    """Judge the ingested trials of every corpus and write verdict.parquet, splits.parquet, summary.json and docs/.

    Raises
    ------
    UsageError
        A corpus of params.yaml was not ingested.
    DataError
        The store of a subject is absent, or does not belong to records.parquet.
    GateStopped
        Too many trials are quarantined, a table is empty or malformed, or a split leaks. All outputs are written.
    """
    data_sets.warn_of_strangers(DOMAIN, BLOCK, "corpus", params.corpora)
    corpora = [judge_corpus(corpus, params) for corpus in sorted(params.corpora)]
    verdict = pl.concat([c.verdict for c in corpora]) if corpora else pl.DataFrame(schema=verdicts.SCHEMA)
    divided = {corpus.key: split(corpus, params.splits) for corpus in corpora}
    table = pl.concat([s.table for s in divided.values()]) if divided else pl.DataFrame(schema=folds.COLUMNS)
    judgements = data_sets.worst_first([corpus.judgement for corpus in corpora])
    stops = [stop for judgement in judgements for stop in judgement.stops]
    stops += [stop for s in divided.values() for stop in splits.leak_stops(s.name, s.leaks)]
    if not corpora:
        stops.append(f"{BLOCK} in params.yaml names no corpus")
    total = verdicts.weigh("all corpora", verdict, params.gate.max_quarantined, stops=stops)
    counts = verdicts.expectation_counts({corpus.key: [*corpus.results, *corpus.found] for corpus in corpora})
    shared = shared_content(corpora)
    summary = {
        "domain": DOMAIN,
        "noun": "trial",
        **total.as_json(),
        "expectations": counts,
        "splits": {"seed": params.splits.seed, **{s.name: s.described for s in divided.values()}},
        "leakage": {s.name: s.leaks for s in divided.values()},
        "sites": {c.key: describe(c, params.corpora[c.key], shared.get(c.key, [])) for c in corpora},
    }
    folder = artifacts.validated(DOMAIN)
    artifacts.write_table(folder / "verdict.parquet", verdict)
    artifacts.write_table(folder / "splits.parquet", table)
    artifacts.write_json(folder / "summary.json", summary)
    with artifacts.atomic(folder / "docs") as draft:
        write_docs(draft, corpora, divided, total, summary)
    for judgement in [*(corpus.judgement for corpus in corpora), total]:
        print(data_sets.line(judgement, "trials"))
    if total.stops:
        raise GateStopped(verdicts.stop_message(DOMAIN, total.stops, verdict, folder))


def judge_corpus(key: str, params: Params) -> Judged:
    """Run the expectations on one corpus: on the shape of its table, then on its trials, then on its inputs."""
    records, about, manifest = data_sets.read_ingested(DOMAIN, key, block=BLOCK, noun="corpus", about="corpus.json")
    gate = params.gate.overridden(params.corpora[key].gate)
    labels = [str(label) for label in about.get("label_names", [])]
    table = f"{key}/records.parquet"
    declared = expectations.columns_table(records, trials.columns())
    shape = expectations.judge(declared, expectations.suite_of(key, [expectations.columns_rule(table)], declared))
    rules = [expectations.row_count(table)]
    results = verdicts.against_all(shape, records.height)
    sound = not expectations.failed(shape) and records.height > 0
    if sound:
        stored = windows.read_stores(artifacts.ingested(DOMAIN, key), records)
        people = about.get("split_unit", "subject") == "subject"
        records = trials.summary_frame(records, stored.counts, labels, people=people)
        rules += [*expectations.identity("trial"), *trials.rules(records, gate, labels)]
    suite = expectations.suite_of(key, rules, records)
    results = [*results, *expectations.judge(records, suite)]
    verdict = verdicts.verdicts(records, results)
    stops = [result.table_reason for result in results if result.table_reason is not None]
    judgement = verdicts.weigh(key, verdict, gate.max_quarantined, stops=stops)
    if not sound:
        return Judged(key, records, verdict, results, suite, judgement, about, manifest)
    found = judge_inputs(key, records, stored, verdict["outcome"] == verdicts.ACCEPTED, gate)
    findings = [*copies.told(records), *(failure.reason for result in found for failure in result.failures)]
    return Judged(key, records, verdict, results, suite, judgement, about, manifest, found, findings)


def judge_inputs(
    key: str, records: pl.DataFrame, stored: windows.Stored, accepted: pl.Series, gate: Gate
) -> list[Result]:
    """Look for a feature, or a statistic of the trial, that alone tells the labels of the accepted trials."""
    import numpy as np

    labelled = (accepted & records["label"].is_not_null()).to_numpy()
    statistics_NF = records.select(pl.col(STATISTICS).cast(pl.Float64)).to_numpy()
    x_NF = np.concatenate([stored.means_NF, statistics_NF], axis=1)[labelled]
    label_N = records["label"].rank("dense").fill_null(0).to_numpy()[labelled]
    separation_F = inputs.separation(x_NF, label_N, gate.min_class_trials)
    table = inputs.table_of([*stored.names, *STATISTICS], separation_F)
    return expectations.judge(table, expectations.suite_of(key, [inputs.rule(key, gate.max_separation)], table))


def split(corpus: Judged, params: Splits) -> CorpusSplit:
    """Leave one subject out; columns that a malformed table lacks are null."""
    there = corpus.records.columns
    names = ("record_id", "group", "sha256", "stimulus")
    records = corpus.records.select((pl.col(n) if n in there else pl.lit(None).alias(n)).cast(pl.String) for n in names)
    return folds.split(corpus.key, records, corpus.accepted, params, noun=corpus.noun)


def shared_content(corpora: Sequence[Judged]) -> dict[str, list[str]]:
    """By corpus, what it shares with others: each is split and learnt by itself, so this leaks nothing."""
    frames = [
        corpus.records.select(
            pl.lit(corpus.key).alias("corpus"), pl.col("record_id", "sha256").cast(pl.String)
        ).with_columns(accepted=corpus.accepted)
        for corpus in corpora
        if {"record_id", "sha256"} <= set(corpus.records.columns)
    ]
    if not frames:
        return {}
    frame = pl.concat(frames)
    found: dict[str, list[str]] = {}
    for pair in splits.shared_between(frame["corpus"], frame["record_id"], frame["accepted"], frame["sha256"], {}):
        for mine, other in ((pair.first, pair.second), (pair.second, pair.first)):
            found.setdefault(mine, []).append(f"{pair.records} trials have equal content in {other}")
    return found


def describe(corpus: Judged, params: data_sets.GateOf[Gate], shared: Sequence[str]) -> dict[str, Any]:
    """Counts, origin and content of one corpus for summary.json; licence and citation of params.yaml win."""
    counts = verdicts.expectation_counts({corpus.key: [*corpus.results, *corpus.found]})
    about = dict(corpus.about)
    rates = " and ".join(f"{rate:g} Hz" for rate in about.get("rates", []))
    features = {"unit": about.get("feature") or "", "long_name": "of a window, by channel and band"}
    variables = {"features": features}
    if about.get("kind", "signals") == "signals":
        features |= {"unit": ENTROPY_UNIT, "long_name": "differential entropy of a window, by channel and band"}
        variables["signal"] = {"unit": str(about.get("unit")), "long_name": "filtered EEG, by channel"}
    return {
        **corpus.judgement.as_json(),
        "failed": {count["expectation"]: count["failed"] for count in counts if count["failed"]},
        "about": {
            **about,
            "start": None,
            "end": None,
            "resolution": rates or None,
            "variables": variables,
            "notes": [*about.get("notes", []), *corpus.findings, *shared],
        },
        "source": data_sets.terms(corpus.manifest, params.licence, params.citation),
    }


def write_docs(
    folder: Any,
    corpora: Sequence[Judged],
    divided: Mapping[str, CorpusSplit],
    total: Judgement,
    summary: Mapping[str, Any],
) -> None:
    """The HTML pages: an overview and a page a corpus, with a grid of its trials."""
    pages = [
        docs.Page(
            corpus.key,
            corpus.judgement,
            [*corpus.results, *corpus.found],
            corpus.suite,
            facts=facts(summary["sites"][corpus.key]),
            grid=grid(corpus),
        )
        for corpus in corpora
    ]
    docs.write(
        folder,
        title="EEG gate",
        noun="corpus",
        total=total,
        pages=pages,
        counts=summary["expectations"],
        sections=[(f"Split {s.name}", folds.facts(s)) for s in divided.values()],
    )


def grid(corpus: Judged) -> docs.Grid | None:
    """Sessions of subjects by trials; none where the table is malformed, or the sessions are long."""
    frame = corpus.records
    if not {"subject", "session", "trial"} <= set(frame.columns) or frame["trial"].n_unique() > GRID_COLUMNS:
        return None
    rows = [f"{subject}/{session}" for subject, session in frame.select("subject", "session").iter_rows()]
    states = [data_sets.state(*pair) for pair in corpus.verdict.select("outcome", "warnings").iter_rows()]
    columns = [str(trial) for trial in frame["trial"]]
    cells = dict(zip(zip(rows, columns, strict=True), states, strict=True))
    numbers = [str(trial) for trial in sorted(frame["trial"].drop_nulls().unique().to_list())]
    return docs.Grid(list(dict.fromkeys(rows)), numbers, cells)


def facts(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a corpus comes from and what is in it, for its page."""
    about = described["about"]
    found = data_sets.source_facts(described["source"])
    found += [(name, str(about[name])) for name in ABOUT if about.get(name)]
    found += [(name, ", ".join(map(str, about[name]))) for name in ("label_names", "channels") if about.get(name)]
    found.append(("simulated", "yes" if about.get("simulated") else "no"))
    return [*found, *(("note", str(note)) for note in about["notes"])]
