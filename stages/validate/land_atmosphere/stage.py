"""The gate of the land-atmosphere data: every site-month is accepted or quarantined, then the months are split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import Field

from stages import artifacts
from stages.errors import GateStopped
from stages.ingest.land_atmosphere.schema import DIGEST, VARIABLES
from stages.params import Config, StageParams, bound
from stages.validate import data_sets, docs, expectations, splits, verdicts
from stages.validate.data_sets import JudgedSet as Site
from stages.validate.land_atmosphere import site_months
from stages.validate.land_atmosphere.site_months import Gate
from stages.validate.splits import Shared
from stages.validate.verdicts import Judgement

DOMAIN = "land_atmosphere"
BLOCK = "land_atmosphere.sites"
MONTHS = tuple(f"{month:02d}" for month in range(1, 13))


class Splits(Config):
    """Seed and shares of the two splits: whole sites, and whole years within each site."""

    seed: int = Field(ge=0, description="shuffles the sites of by_site")
    by_site: splits.Shares
    by_year: splits.Shares


class Params(StageParams):
    """What the gate reads from params.yaml."""

    sites: dict[str, data_sets.GateOf[Gate]] = bound("land_atmosphere.sites")
    gate: Gate = bound("land_atmosphere.gate")
    splits: Splits = bound("land_atmosphere.splits")


def run(params: Params, *, name: str, key: str) -> None:
    """Judge the ingested months of every site and write verdict.parquet, splits.parquet, summary.json and docs/.

    Raises
    ------
    UsageError
        A site of params.yaml was not ingested.
    GateStopped
        Too many months are quarantined, a table is empty or malformed, two sites hold the same data, or the splits
        leak. All outputs are written.
    """
    data_sets.warn_of_strangers(DOMAIN, BLOCK, "site", params.sites)
    sites = [judge_site(site, params) for site in sorted(params.sites)]
    verdict = pl.concat([site.verdict for site in sites]) if sites else pl.DataFrame(schema=verdicts.SCHEMA)
    table, notes, leaks = split(sites, params.splits)
    shared = shared_content(sites)
    notes["by_site"] += [told(pair) for pair in shared if not pair.copy]
    stops = [
        stop for judgement in data_sets.worst_first([site.judgement for site in sites]) for stop in judgement.stops
    ]
    stops += [told(pair) for pair in shared if pair.copy]
    stops += [stop for split_name, found in leaks.items() for stop in splits.leak_stops(split_name, found)]
    if not sites:
        stops.append(f"{BLOCK} in params.yaml names no site")
    total = verdicts.weigh("all sites", verdict, params.gate.max_quarantined, stops=stops)
    counts = verdicts.expectation_counts({site.key: site.results for site in sites})
    summary = {
        "domain": DOMAIN,
        "noun": "site-month",
        **total.as_json(),
        "expectations": counts,
        "splits": describe_splits(table, verdict, notes, params.splits),
        "leakage": leaks,
        "sites": {site.key: describe_site(site, params.sites[site.key]) for site in sites},
    }
    folder = artifacts.validated(DOMAIN)
    artifacts.write_table(folder / "verdict.parquet", verdict)
    artifacts.write_table(folder / "splits.parquet", table)
    artifacts.write_json(folder / "summary.json", summary)
    with artifacts.atomic(folder / "docs") as draft:
        write_docs(draft, sites, total, counts, summary)
    for site in sites:
        print(data_sets.line(site.judgement, "months"))
    print(data_sets.line(total, "months"))
    if total.stops:
        raise GateStopped(verdicts.stop_message(DOMAIN, total.stops, verdict, folder))


def shared_content(sites: Sequence[Site]) -> list[Shared]:
    """Pairs of sites whose accepted months have equal content, whole or in some variables."""
    digests = {"sha256": "sha256"} | {variable: f"{DIGEST}_{variable}" for variable in VARIABLES}
    frames = [
        site.records.select(
            pl.lit(site.key).alias("site"),
            *(
                (pl.col(name) if name in site.records.columns else pl.lit(None)).cast(pl.String).alias(alias)
                for alias, name in {"record_id": "record_id", **digests}.items()
            ),
            accepted=site.accepted,
        )
        for site in sites
    ]
    if not frames:
        return []
    months = pl.concat(frames)
    pieces = {variable: months[variable] for variable in VARIABLES}
    return splits.shared_between(months["site"], months["record_id"], months["accepted"], months["sha256"], pieces)


def told(pair: Shared) -> str:
    """In words what two sites share."""
    count = f"{pair.records} month{'' if pair.records == 1 else 's'}"
    first = f"first {pair.example[0]} and {pair.example[1]}"
    if pair.copy:
        return (
            f"{pair.first} and {pair.second} are the same data under two names: {count} with equal content, {first}; "
            "take one of the two out of land_atmosphere.sites"
        )
    return (
        f"{pair.first} and {pair.second} share {', '.join(pair.pieces)} in {count}, {first}: one instrument for two "
        "towers? They may lie in different parts"
    )


def judge_site(key: str, params: Params) -> Site:
    """Run the expectations on one site: first on the shape of its table, then, if it has that shape, on its months."""
    records, about, manifest = data_sets.read_ingested(DOMAIN, key, block=BLOCK, noun="site", about="site.json")
    gate = params.gate.overridden(params.sites[key].gate)
    table = f"{key}/records.parquet"
    declared = expectations.columns_table(records, site_months.columns())
    shape = expectations.judge(declared, expectations.suite_of(key, [expectations.columns_rule(table)], declared))
    rules = [expectations.row_count(table)]
    results = verdicts.against_all(shape, records.height)
    if not expectations.failed(shape) and records.height:
        records = site_months.summary_frame(records, gate, about.get("contradictions", {}))
        rules += [*expectations.identity("month"), *site_months.rules(records, gate)]
    suite = expectations.suite_of(key, rules, records)
    results = [*results, *expectations.judge(records, suite)]
    verdict = verdicts.verdicts(records, results)
    stops = [result.table_reason for result in results if result.table_reason is not None]
    judgement = verdicts.weigh(key, verdict, gate.max_quarantined, stops=stops)
    return Site(key, records, verdict, results, suite, judgement, about, manifest)


def split(sites: Sequence[Site], params: Splits) -> tuple[pl.DataFrame, dict[str, list[str]], dict[str, list[str]]]:
    """Both splits of all months, notes on them, and the leaks the audit finds in each."""
    keys = ("record_id", "group", "year", "sha256")
    frames = [
        site.records.select(
            pl.col(name) if name in site.records.columns else pl.lit(None).alias(name) for name in keys
        ).with_columns(
            pl.col("record_id", "group", "sha256").cast(pl.String),
            pl.col("year").cast(pl.Int64, strict=False),
            accepted=site.accepted,
        )
        for site in sites
    ]
    schema = {"record_id": pl.String, "group": pl.String, "year": pl.Int64, "sha256": pl.String, "accepted": pl.Boolean}
    months = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
    accepted = months["accepted"]
    by_site = splits.by_group(
        months["group"], accepted, params.by_site, seed=params.seed, stream="by_site", noun="site"
    )
    by_year = splits.by_order(months["group"], months["year"], accepted, params.by_year, noun="year")
    leaks = {}
    for split_name, part in (("by_site", by_site.part), ("by_year", by_year.part)):
        leaks[split_name] = splits.shared_content(part, months["sha256"], months["record_id"], accepted)
    leaks["by_site"] += splits.straddling(by_site.part, months["group"], accepted, noun="site")
    site_year = months["group"] + "/" + months["year"].cast(pl.String)
    leaks["by_year"] += splits.straddling(by_year.part, site_year, accepted, noun="year")
    table = months.select("record_id", "group", by_site.part.alias("by_site"), by_year.part.alias("by_year"))
    return table, {"by_site": list(by_site.notes), "by_year": list(by_year.notes)}, leaks


def describe_splits(
    table: pl.DataFrame, verdict: pl.DataFrame, notes: Mapping[str, Sequence[str]], params: Splits
) -> dict[str, Any]:
    """Sizes of the parts, which sites are in them, and the notes, for summary.json."""
    accepted = verdict["outcome"] == verdicts.ACCEPTED
    described: dict[str, Any] = {"seed": params.seed}
    for name, shares in (("by_site", params.by_site), ("by_year", params.by_year)):
        described[name] = {
            "shares": shares.model_dump(),
            "parts": splits.sizes(table[name], table["group"], accepted),
            "notes": list(notes[name]),
        }
    return described


def describe_site(site: Site, params: data_sets.GateOf[Gate]) -> dict[str, Any]:
    """Counts, origin and content of one site for summary.json; licence and citation of params.yaml win."""
    reasons = verdicts.expectation_counts({site.key: site.results})
    return {
        **site.judgement.as_json(),
        "failed": {count["expectation"]: count["failed"] for count in reasons if count["failed"]},
        "about": dict(site.about),
        "source": data_sets.terms(site.manifest, params.licence, params.citation),
    }


def write_docs(
    folder: Path,
    sites: Sequence[Site],
    total: Judgement,
    counts: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
) -> None:
    """The HTML pages: an overview and a page a site, with a calendar of its months."""
    pages = [
        docs.Page(
            site.key,
            site.judgement,
            site.results,
            site.suite,
            facts=facts(summary["sites"][site.key]),
            grid=calendar(site),
        )
        for site in sites
    ]
    sections = [
        (f"Split {name}", split_facts(summary["splits"][name], summary["leakage"][name]))
        for name in ("by_site", "by_year")
    ]
    docs.write(
        folder,
        title="Land-atmosphere gate",
        noun="site",
        total=total,
        pages=pages,
        counts=counts,
        sections=sections,
    )


def calendar(site: Site) -> docs.Grid | None:
    """Years by months of one site; none where the table has no years and months."""
    if not {"year", "month"} <= set(site.records.columns):
        return None
    cells = {}
    for year, month, outcome, warnings in zip(
        site.records["year"], site.records["month"], site.verdict["outcome"], site.verdict["warnings"], strict=True
    ):
        if year is None or month is None:
            continue
        cells[f"{year}", f"{month:02d}"] = data_sets.state(outcome, warnings)
    return docs.Grid(sorted({year for year, _ in cells}), MONTHS, cells)


def facts(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a site's data come from and what is in them, for its page."""
    source, about = described["source"], described["about"]
    found = data_sets.source_facts(source)
    found += [(name, str(about[name])) for name in ("start", "end", "resolution", "utc_offset") if name in about]
    for variable, block in about.get("variables", {}).items():
        column = f", from {block['source_column']} in {block['source_unit']}" if "source_column" in block else ""
        found.append((variable, f"{block['unit']}{column}"))
    return [*found, *(("note", str(note)) for note in about.get("notes", []))]


def split_facts(described: Mapping[str, Any], leaks: Sequence[str]) -> list[tuple[str, str]]:
    """One line a part, then the notes and the leaks."""
    found = [
        (part, f"{size['records']} accepted months of {', '.join(size['groups']) or 'no site'}")
        for part, size in described["parts"].items()
    ]
    found += [("note", note) for note in described["notes"]]
    return [*found, *(("leak", leak) for leak in leaks)] if leaks else [*found, ("audit", "no leakage found")]
