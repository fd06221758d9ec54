"""Made-up site-months in the layout ingest writes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import polars as pl

from stages import artifacts
from stages.ingest.land_atmosphere.schema import RECORD_COLUMNS, VARIABLES
from stages.validate.land_atmosphere.stage import Params

RANGE = {
    "SWC": (0.08, 0.22, 0.31),
    "P": (0.0, 0.04, 9.6),
    "LE": (-40.0, 60.0, 420.0),
    "H": (-80.0, 45.0, 380.0),
    "G": (-60.0, 4.0, 140.0),
    "NETRAD": (-110.0, 120.0, 760.0),
    "SW_IN": (-2.0, 210.0, 1010.0),
    "VPD": (0.0, 9.0, 38.0),
    "TA": (-4.0, 14.0, 31.0),
}


def month(site: str, year: int, number: int, /, **changed: Any) -> dict[str, Any]:
    """A sound half-hourly month of a tower, with some columns changed."""
    record = f"{site}/{year}-{number:02d}"
    steps = 30 * 48
    row: dict[str, Any] = {
        "record_id": record,
        "group": site,
        "year": year,
        "month": number,
        "source_file": f"{site}.csv",
        "sha256": hashlib.sha256(record.encode()).hexdigest(),
        "resolution_minutes": 30,
        "expected_steps": steps,
        "present_steps": steps,
        "duplicate_stamps": 0,
        "conflicting_stamps": 0,
        "unsorted_stamps": 0,
        "sw_in_peak_hour": 12.0,
        "energy_balance_steps": steps // 2,
        "energy_balance_ratio": 0.8,
    }
    for variable in VARIABLES:
        low, mean, high = RANGE[variable]
        row |= {
            f"coverage_{variable}": 0.9,
            f"filled_{variable}": 0.05,
            f"minimum_{variable}": low,
            f"mean_{variable}": mean,
            f"maximum_{variable}": high,
            f"sentinel_{variable}": 0.0,
            f"constant_hours_{variable}": 2.0,
            f"sha256_{variable}": hashlib.sha256(f"{record} {variable}".encode()).hexdigest(),
        }
    return row | changed


def without(variable: str) -> dict[str, None]:
    """Columns of a variable the site lacks."""
    return {name: None for name in RECORD_COLUMNS if name.endswith(f"_{variable}")}


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    """records.parquet of these months."""
    return pl.DataFrame(list(rows), schema={name: getattr(pl, kind) for name, kind in RECORD_COLUMNS.items()})


def years(site: str, first: int, last: int, /, **changed: Any) -> list[dict[str, Any]]:
    """Twelve sound months for each of some years."""
    return [month(site, year, number, **changed) for year in range(first, last + 1) for number in range(1, 13)]


def ingested(site: str, records: pl.DataFrame, doubts: dict[str, str] | None = None) -> Path:
    """Lay records where ingest would, under the working directory, with a site.json and a manifest.json."""
    folder = artifacts.ingested("land_atmosphere", site)
    artifacts.write_table(folder / "records.parquet", records)
    about = {"site": site, "variables": {"LE": {"unit": "W m-2"}}, "notes": ["made up"], "contradictions": doubts or {}}
    artifacts.write_json(folder / "site.json", about)
    source = {"source": site, "kind": "path", "origin": {"path": "fake"}, "files": [], "licence": "CC-BY-4.0"}
    artifacts.write_json(folder / "manifest.json", source)
    return folder


def params(*sites: str, gate: dict[str, Any] | None = None, **blocks: Any) -> Params:
    """Params with these sites; ``blocks`` gives the block of a site by its name with ``_`` for ``-``."""
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    return Params.model_validate(
        {
            "sites": {site: blocks.get(site.replace("-", "_"), {"path": "x", "format": "base"}) for site in sites},
            "gate": gate or {},
            "splits": {"seed": 0, "by_site": shares, "by_year": shares},
        }
    )


def four_towers() -> Params:
    """Towers shaped like the default ones: two of ten years, one of four, one of one."""
    ingested("us-arm", frame(*years("us-arm", 2003, 2011), month("us-arm", 2012, 1, maximum_LE=2310.0)))
    ingested("ch-dav", frame(*years("ch-dav", 2013, 2022, **without("H"))))
    ingested("us-ar1", frame(*years("us-ar1", 2009, 2012, coverage_LE=0.1)))
    ingested("fr-hes", frame(*years("fr-hes", 2016, 2016)))
    return params("us-arm", "ch-dav", "us-ar1", "fr-hes", fr_hes={"licence": "CC0", "citation": "Hesse 2016"})
