"""FLUXNET2015 and its successors: FULLSET and SUBSET, half-hours to years, as csv, zip or xlsx."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from stages.errors import DataError
from stages.ingest.land_atmosphere import names, tables
from stages.ingest.land_atmosphere.axis import Step, find_step
from stages.ingest.land_atmosphere.base import join_stamps, overridden, refuse_mixed_sites
from stages.ingest.land_atmosphere.config import Fluxnet
from stages.ingest.land_atmosphere.members import Member, members
from stages.ingest.land_atmosphere.schema import RESOLUTION_MINUTES, VARIABLES
from stages.ingest.land_atmosphere.sources import Loaded, Origin, Rule, Tower, alternatives, load
from stages.ingest.land_atmosphere.stamps import Minutes
from stages.ingest.land_atmosphere.tables import Layout, shorten

EXPECTED = (
    "FLX_<site>_FLUXNET2015_<FULLSET|SUBSET>_<HH|HR|DD|WW|MM|YY>_<years>_<version>.csv, or a .zip with such files"
)
FINEST_FIRST = ("HH", "HR", "DD", "WW", "MM", "YY")
CALENDAR = {"WW": "week", "MM": "month", "YY": "year"}
PREFERRED = {"_F": 0, "_F_MDS": 1, "": 2}
WITHOUT_FLAG = 3


@dataclass(frozen=True)
class _File:
    member: Member
    site: str
    product: str
    resolution: str


def read(path: Path, options: Fluxnet) -> Tower:
    """Read one tower.

    Raises
    ------
    DataError
        No file of the format, files of two towers, or a fault in a file.
    """
    everything = members(path)
    notes: list[str] = []
    used, ignored, resolution = _select(path, everything, options, notes)
    layout = Layout(options.delimiter, "#", null_tokens=options.null_tokens, sentinels=options.sentinels)
    found = [(file.member, tables.column_names(file.member, layout)) for file in used]
    stamps = _stamp_columns(found, resolution)
    columns = list(dict.fromkeys(name for _, there in found for name in there))
    by_rule = _candidates(columns, resolution, notes)
    candidates = overridden(by_rule, options.columns, found, lambda variable: _unit(variable, resolution))
    if not candidates:
        raise DataError(
            used[0].member.label,
            found=f"none of the variables {', '.join(VARIABLES)} among {shorten(columns)}",
            expected="columns such as TA_F, SW_IN_F, VPD_F, P_F, LE_F_MDS, SWC_F_MDS_1",
            remedy="Name the columns under `format: {reader: fluxnet, columns: {...}}`.",
        )
    notes.extend(names.near_misses(columns, candidates))
    loaded = load(found, layout, stamps, candidates, options.min_good_share)
    step, minutes = _time(loaded, stamps, resolution, options)
    return Tower(
        reader="fluxnet",
        files=[file.member.name for file in used],
        ignored=ignored,
        step=step,
        minutes=minutes,
        rows=loaded.rows(),
        chosen=loaded.chosen,
        others=alternatives(by_rule, loaded.chosen),
        columns=loaded.columns,
        sentinels=options.sentinels,
        notes=notes,
        site=used[0].site or None,
        utc_offset=options.utc_offset,
        check_clock=options.clock is None,
        min_good_share=options.min_good_share,
    )


def _select(
    path: Path, everything: Sequence[Member], options: Fluxnet, notes: list[str]
) -> tuple[list[_File], dict[str, str], str]:
    """Files of one tower, product and resolution; all others with the reason they are left out."""
    ignored: dict[str, str] = {}
    files: list[_File] = []
    for member in everything:
        match = names.FLUXNET.match(member.base)
        if match:
            files.append(_File(member, match["site"], match["product"] or "", match["resolution"]))
        elif path.is_file() and len(everything) == 1:
            files.append(_unnamed(member, options))
        else:
            auxiliary = re.search(r"_(ERA5?I?|AUX\w*)_", member.base)
            ignored[member.name] = f"{auxiliary[1]} file: no measurements" if auxiliary else "not named as FLUXNET data"
    if not files:
        _refuse_no_file(path, list(ignored))
    refuse_mixed_sites(path, {file.member.name: file.site for file in files})
    there = [code for code in FINEST_FIRST if any(file.resolution == code for file in files)]
    resolution = options.resolution or there[0]
    if resolution not in there:
        _refuse_resolution(path, resolution, there)
    products = {file.product for file in files if file.resolution == resolution}
    product = "FULLSET" if "FULLSET" in products else sorted(products)[0]
    used = []
    for file in files:
        if file.resolution != resolution:
            ignored[file.member.name] = f"resolution {file.resolution}; {resolution} is read"
        elif file.product != product:
            ignored[file.member.name] = f"{file.product}; {product} is read"
            notes.append(f"{file.product} and {product} are both there; {product} is read.")
        else:
            used.append(file)
    return used, ignored, resolution


def _unnamed(member: Member, options: Fluxnet) -> _File:
    if options.resolution is None:
        raise DataError(
            member.label,
            found="a file that is not named as FLUXNET data",
            expected=EXPECTED,
            remedy="Say its resolution: `format: {reader: fluxnet, resolution: HH}`.",
        )
    return _File(member, "", "", options.resolution)


def _refuse_no_file(path: Path, there: Sequence[str]) -> NoReturn:
    raise DataError(
        path,
        found=f"no FLUXNET file; there is: {shorten(there)}",
        expected=EXPECTED,
        remedy="Correct `path` in params.yaml, or choose the reader `base` or `table`.",
    )


def _refuse_resolution(path: Path, wanted: str, there: Sequence[str]) -> NoReturn:
    raise DataError(
        path,
        found=f"resolutions {', '.join(there)}",
        expected=wanted,
        remedy="Correct `resolution` in params.yaml.",
    )


def _stamp_columns(found: Sequence[tuple[Member, Sequence[str]]], resolution: str) -> list[str]:
    wanted = ["TIMESTAMP_START", "TIMESTAMP_END"] if resolution in ("HH", "HR", "WW") else ["TIMESTAMP"]
    for member, there in found:
        tables.require_once(member, there, wanted, tables.OTHER_READER)
    return wanted


def _unit(variable: str, resolution: str) -> str:
    if variable == "SWC":
        return "percent"
    if variable == "P":
        # WW and MM hold the mean of the daily sums; YY holds the sum of the year.
        return "mm d-1" if resolution in ("WW", "MM") else "mm"
    return "hPa" if variable == "VPD" else "degC" if variable == "TA" else "W m-2"


def _candidates(columns: Sequence[str], resolution: str, notes: list[str]) -> dict[str, list[Origin]]:
    there = set(columns)
    candidates: dict[str, list[Origin]] = {}
    for variable in VARIABLES:
        pattern = re.compile(rf"^{variable}(?P<series>_F_MDS|_F)?(_(?P<layer>\d+))?$")
        for name in columns:
            match = pattern.match(name)
            if match is None:
                continue
            qc = f"{name}_QC" if f"{name}_QC" in there else None
            series = match["series"] or ""
            layer = int(match["layer"] or 0)
            if qc is not None:
                rule: Rule = "flag" if resolution in ("HH", "HR") else "share"
                origin = Origin(name, _unit(variable, resolution), rule, qc, tier=(PREFERRED[series], layer))
            elif series:
                origin = Origin(name, _unit(variable, resolution), "unknown", tier=(WITHOUT_FLAG, layer))
            else:
                origin = Origin(name, _unit(variable, resolution), tier=(PREFERRED[series], layer))
            candidates.setdefault(variable, []).append(origin)
        origins = candidates.get(variable, [])
        if origins and all(origin.rule == "unknown" for origin in origins):
            notes.append(f"{variable}: {origins[0].column} has no {origins[0].column}_QC; no value counts as measured.")
    return candidates


def _time(loaded: Loaded, stamps: Sequence[str], resolution: str, options: Fluxnet) -> tuple[Step, Minutes]:
    minutes, stated = join_stamps(loaded, stamps, options.utc_offset, options.clock)
    if resolution in CALENDAR:
        return Step(RESOLUTION_MINUTES[resolution], CALENDAR[resolution]), minutes
    step = RESOLUTION_MINUTES[resolution]
    if stated is not None:
        found: int | None = stated
    else:
        found = step if minutes.size == 1 else find_step(minutes, loaded.rows()).minutes
    if found != step:
        loaded.rows().refuse(
            0,
            found=f"steps of {found} min",
            expected=f"{step} min, as the {resolution} in the name says",
            remedy="Check the file, or state its `resolution` in params.yaml.",
        )
    return Step(step), minutes
