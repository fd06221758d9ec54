"""AmeriFlux BASE, ICOS, EddyPro and European fluxdata files: standard names with position qualifiers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.ingest.land_atmosphere import tables
from stages.ingest.land_atmosphere.axis import Rows, Step, find_step
from stages.ingest.land_atmosphere.config import Base, SourceColumn
from stages.ingest.land_atmosphere.members import Member, members
from stages.ingest.land_atmosphere.names import FLUXNET, near_misses
from stages.ingest.land_atmosphere.schema import VARIABLES
from stages.ingest.land_atmosphere.sources import Loaded, Origin, Rule, Tower, alternatives, load
from stages.ingest.land_atmosphere.stamps import Minutes, text_of, to_minutes
from stages.ingest.land_atmosphere.tables import Layout, require_once, shorten

UNITS = {"SWC": "percent", "P": "mm", "VPD": "hPa", "TA": "degC"}
SITE = re.compile(r"^[A-Za-z]+_(?P<site>[A-Z]{2}-[A-Za-z0-9]{3})_|^(?P<european>[A-Z]{2}-[A-Za-z0-9]{3})_")
SSITC_FLAGS = (0, 1, 2)
SSITC_GOOD = (0, 1)
START, END = "TIMESTAMP_START", "TIMESTAMP_END"
EXPECTED = (
    "delimited text, parquet or xlsx with the columns TIMESTAMP_START or TIMESTAMP_END, such as "
    "AMF_<site>_BASE_<HH|HR>_<version>.csv, ICOSETC_<site>_FLUXES_L2.csv, eddypro_*_fluxnet_*.csv"
)


def read(path: Path, options: Base) -> Tower:
    """Read one tower.

    Raises
    ------
    DataError
        No file of the format, files of two towers, or a fault in a file.
    """
    layout = Layout(options.delimiter, "#", null_tokens=options.null_tokens, sentinels=options.sentinels)
    found, ignored = _select(path, layout)
    refuse_mixed_sites(path, {member.name: _site(member) for member, _ in found})
    names = list(dict.fromkeys(name for _, columns in found for name in columns))
    by_rule = _candidates(names)
    candidates = overridden(by_rule, options.columns, found, lambda variable: UNITS.get(variable, "W m-2"))
    if not candidates:
        raise DataError(
            found[0][0].label,
            found=f"none of the variables {', '.join(VARIABLES)} among {shorten(names)}",
            expected="standard names such as LE, H_1_1_1, SWC_1_1_1, VPD_PI",
            remedy="Name the columns under `format: {reader: base, columns: {...}}`.",
        )
    loaded = load(found, layout, [name for name in (START, END) if name in names], candidates)
    _check_flags(loaded)
    minutes, step = _time(loaded, options)
    return Tower(
        reader="base",
        files=[member.name for member, _ in found],
        ignored=ignored,
        step=step,
        minutes=minutes,
        rows=loaded.rows(),
        chosen=loaded.chosen,
        others=alternatives(by_rule, loaded.chosen),
        columns=loaded.columns,
        sentinels=options.sentinels,
        notes=near_misses(names, candidates),
        site=_site(found[0][0]) or None,
        utc_offset=options.utc_offset,
        check_clock=options.clock is None,
    )


def _check_flags(loaded: Loaded) -> None:
    """Refuse steady-state flags on another scale than 0, 1, 2; by the wrong scale most values would be lost."""
    for variable, origin in loaded.chosen.items():
        if origin.qc is None or not origin.qc.startswith(f"{variable}_SSITC_TEST"):
            continue
        flags = loaded.columns[origin.qc]
        wrong = np.isfinite(flags) & ~np.isin(flags, SSITC_FLAGS)
        if wrong.any() and origin.good == SSITC_GOOD:
            row = int(np.argmax(wrong))
            block = f"columns: {{{variable}: {{column: {origin.column}, qc: {origin.qc}, good: [...]}}}}"
            loaded.rows().refuse(
                row,
                found=f"{origin.qc} {flags[row]:g}",
                expected="the flags 0 (best), 1 and 2 (bad)",
                remedy=f"Say which flags count as measured: `{block}`.",
            )


def _select(path: Path, layout: Layout) -> tuple[list[tuple[Member, list[str]]], dict[str, str]]:
    """Files with a time column; of a folder, the others are left out with the reason."""
    found, ignored = tables.with_columns(members(path), layout, (START, END), every=False)
    if not found:
        raise DataError(
            path,
            found="no file with a time column; " + "; ".join(f"{name}: {why}" for name, why in ignored.items()),
            expected=EXPECTED,
            remedy="Correct `path` in params.yaml, or choose the reader `fluxnet` or `table`.",
        )
    _refuse_fluxnet(path, [member for member, _ in found])
    return found, ignored


def _refuse_fluxnet(path: Path, used: Sequence[Member]) -> None:
    """Refuse files of FLUXNET, whose LE_F_MDS, SWC_F_MDS_1 and the like have no name of this format."""
    fluxnet = [member.name for member in used if FLUXNET.match(member.base)]
    if not fluxnet:
        return
    alone = len(fluxnet) == len(used)
    raise DataError(
        path,
        found=f"files of FLUXNET2015 or its successors: {shorten(fluxnet, 3)}",
        expected="AmeriFlux BASE and its relatives; of FLUXNET most variables would be lost",
        remedy=f"Set `format: fluxnet` in params.yaml{'' if alone else ', or move these files out of the folder'}.",
    )


def _site(member: Member) -> str:
    match = SITE.match(member.base)
    return (match["site"] or match["european"]) if match else ""


def refuse_mixed_sites(path: Path, sites: Mapping[str, str]) -> None:
    """Refuse files whose names speak of more than one tower.

    Raises
    ------
    DataError
        Names one file of each.
    """
    first: dict[str, str] = {}
    for name, site in sites.items():
        if site:
            first.setdefault(site.upper(), name)
    if len(first) > 1:
        raise DataError(
            path,
            found="files of several towers: " + ", ".join(first.values()),
            expected="one tower in each folder",
            remedy="Make one folder and one block under `sites` for each.",
        )


def _candidates(names: Sequence[str]) -> dict[str, list[Origin]]:
    """Columns of each variable by the naming rules ``NAME[_PI][_F][_H_V_R]``."""
    there = set(names)
    candidates: dict[str, list[Origin]] = {}
    for variable in VARIABLES:
        pattern = re.compile(rf"^{variable}(?P<pi>_PI)?(?P<filled>_[Ff])?(?P<place>(_(\d+|A)){{0,3}})$")
        matches = [(name, match) for name in names if (match := pattern.match(name))]
        filled = {(match["place"], match["pi"] or ""): name for name, match in matches if match["filled"]}
        measured = [(name, match) for name, match in matches if not match["filled"]]
        for name, match in measured:
            place, pi = match["place"], match["pi"] or ""
            level, order = _position(place)
            qc = f"{variable}_SSITC_TEST{place}"
            flagged = qc in there and not pi
            origin = Origin(
                name,
                UNITS.get(variable, "W m-2"),
                "accept" if flagged else "plain",
                qc if flagged else None,
                filled.get((place, pi)) or filled.get((place, "_PI")) or filled.get((place, "")),
                SSITC_GOOD if flagged else (),
                tier=(bool(pi), level),
                order=order,
            )
            candidates.setdefault(variable, []).append(origin)
        if not measured and filled:
            candidates[variable] = [
                Origin(name, UNITS.get(variable, "W m-2"), "unknown", tier=(2, _position(place)[0]))
                for (place, _), name in filled.items()
            ]
    return candidates


def _position(place: str) -> tuple[int, tuple[int, ...]]:
    """Vertical index (0 without a qualifier), then horizontal and replicate index; averages come before replicates."""
    parts = [0 if part == "A" else int(part) for part in place.split("_")[1:]]
    if len(parts) == 1:
        return parts[0], (0, 0)
    horizontal, vertical, replicate = (*parts, 0, 0, 0)[:3]
    return vertical, (horizontal, replicate)


def overridden(
    candidates: dict[str, list[Origin]],
    columns: Mapping[Any, SourceColumn],
    found: Sequence[tuple[Member, Sequence[str]]],
    unit: Callable[[str], str],
) -> dict[str, list[Origin]]:
    """Replace the candidates of the variables a user has named a column for.

    Raises
    ------
    DataError
        No file has the column; the nearest names are given.
    """
    names = list(dict.fromkeys(name for _, columns_there in found for name in columns_there))
    result = dict(candidates)
    for variable, wanted in columns.items():
        member = found[0][0]
        require_once(member, names, [name for name in (wanted.column, wanted.qc, wanted.filled) if name is not None])
        by_rule = next((o for o in candidates.get(variable, []) if o.column == wanted.column), None)
        if by_rule is not None and wanted.qc is None and wanted.filled is None:
            result[variable] = [replace(by_rule, unit=wanted.unit or by_rule.unit)]
        else:
            result[variable] = [named(wanted, wanted.unit or unit(variable))]
    return {variable: result[variable] for variable in VARIABLES if variable in result}


def named(wanted: SourceColumn, unit: str) -> Origin:
    """The origin a user has named in params.yaml."""
    rule: Rule = "plain" if wanted.qc is None else "accept"
    good = () if wanted.qc is None else wanted.good
    return Origin(wanted.column, unit, rule, wanted.qc, wanted.filled, good)


def join_stamps(
    loaded: Loaded, stamps: Sequence[str], utc_offset: float | None, clock: str | None
) -> tuple[Minutes, int | None]:
    """Start of each row of all files, and the length of the interval where both of its ends are stamped.

    Raises
    ------
    DataError
        Start and end are not the same distance apart in all rows.
    """
    starts = []
    length: int | None = None
    for table in loaded.tables:
        start = to_minutes(table, stamps[0], utc_offset=utc_offset)
        if len(stamps) == 2 and stamps[1] in table.stamps:
            end = to_minutes(table, stamps[1], utc_offset=utc_offset)
            lengths = end - start
            length = int(np.median(lengths)) if length is None else length
            if length <= 0:
                table.refuse(
                    int(np.argmax(lengths <= 0)),
                    found=f"{stamps[1]} not after {stamps[0]}",
                    expected="the end of each interval after its start",
                    remedy="Exchange the names of the two columns, or mend them.",
                )
            digits = len(str(table.stamps[stamps[0]][0]))
            wrong = lengths != length
            if digits >= LONG_STAMP and wrong.any():
                row = int(np.argmax(wrong))
                table.refuse(
                    row,
                    found=f"an interval of {int(lengths[row])} min ({text_of(start[row])} to {text_of(end[row])})",
                    expected=f"{length} min as in the other rows",
                    remedy="Mend or delete this line; a clock change must not be in the stamps.",
                )
        starts.append(start)
        table.stamps.clear()
    minutes = starts[0] if len(starts) == 1 else np.concatenate(starts)
    if clock == "utc":
        minutes = minutes + shift(utc_offset, loaded.tables[0].member)
    return minutes, length


LONG_STAMP = 12


def shift(utc_offset: float | None, member: Member) -> int:
    """Minutes to add to UTC stamps.

    Raises
    ------
    DataError
        The offset is not stated.
    """
    if utc_offset is None:
        raise DataError(
            member.label,
            found="`clock: utc` without `utc_offset`",
            expected="the offset of the local standard time of the tower",
            remedy="Set `utc_offset` in params.yaml, hours ahead of UTC (5.5 is allowed).",
        )
    return round(60 * utc_offset)


def _shifted(rows: Rows, offset: int) -> Rows:
    return Rows(
        file=lambda row: rows.file(row + offset),
        label=lambda row: rows.label(row + offset),
        place=lambda row: rows.place(row + offset),
    )


def _time(loaded: Loaded, options: Base) -> tuple[Minutes, Step]:
    both = all(START in table.stamps for table in loaded.tables)
    only_end = not any(START in table.stamps for table in loaded.tables)
    if not both and not only_end:
        names = [next(t.member.label for t in loaded.tables if (START in t.stamps) is there) for there in (True, False)]
        raise DataError(
            names[1],
            found=f"{END} alone, while {names[0]} has {START}",
            expected="the same time columns in all files",
            remedy="Give the files one at a time.",
        )
    stamps = [START, END] if both else [END]
    files = [table.member.label for table in loaded.tables]
    sizes = [table.rows for table in loaded.tables]
    minutes, length = join_stamps(loaded, stamps, options.utc_offset, options.clock)
    rows = loaded.rows()
    steps = []
    for offset, size in zip(np.cumsum([0, *sizes[:-1]]).tolist(), sizes, strict=True):
        if size > 1:
            part = _shifted(rows, offset)
            steps.append(find_step(minutes[offset : offset + size], part).minutes)
    step = length if length is not None else (steps[0] if steps else find_step(minutes, rows).minutes)
    for file, other in zip(files, steps, strict=False):
        if other != step:
            raise DataError(
                file,
                found=f"steps of {other} min",
                expected=f"{step} min, as TIMESTAMP_START and TIMESTAMP_END or the first file say",
                remedy="Give files of one resolution.",
            )
    return (minutes if both else minutes - int(step or 0)), Step(step)
