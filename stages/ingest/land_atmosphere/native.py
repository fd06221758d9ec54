"""A tower on its regular axis in the harmonised schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from stages.ingest.land_atmosphere import axis as axes
from stages.ingest.land_atmosphere.axis import Axis
from stages.ingest.land_atmosphere.config import Base, Fluxnet, TableFile
from stages.ingest.land_atmosphere.schema import LONG_NAMES, SUMMED, SUSPECT_SENTINELS, UNITS
from stages.ingest.land_atmosphere.sources import RULES, Origin, Split, Tower, Values, split
from stages.ingest.land_atmosphere.units import canonical, contradiction, convert

REPEATS = 5  # an extreme value that stands so often may be a sentinel
FAR = 3.0  # and lies so many times the spread of all others away from them

FLAGS = {
    "flag": ([-1, 0, 1, 2, 3], "none measured good_fill medium_fill poor_fill"),
    "accept": ([-1, 0, 1, 2], "none best medium bad"),
}


@dataclass
class Native:
    """The native resolution of a tower, and what the records need beside it.

    Attributes
    ----------
    dataset
        V, and where the source has them V_FILLED and V_QC (time).
    suspects
        Steps (index) whose measured value looks like a sentinel, by variable.
    contradictions
        What speaks against the declared unit, and how to correct it, by variable.
    """

    dataset: xr.Dataset
    axis: Axis
    tower: Tower
    suspects: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    contradictions: dict[str, str] = field(default_factory=dict)


def read_tower(path: Path, options: Fluxnet | Base | TableFile) -> Tower:
    """Read the files of a tower with the reader its block names."""
    if isinstance(options, Fluxnet):
        from stages.ingest.land_atmosphere import fluxnet

        return fluxnet.read(path, options)
    if isinstance(options, Base):
        from stages.ingest.land_atmosphere import base

        return base.read(path, options)
    from stages.ingest.land_atmosphere import generic

    return generic.read(path, options)


def harmonise(tower: Tower, site: str) -> Native:
    """Put a tower on a regular axis and into the harmonised schema; the columns of ``tower`` are used up.

    Raises
    ------
    DataError
        A stamp is off the grid, of a clock that changes, or in two files with different values.
    """
    columns = list(tower.columns.values())
    if tower.step.calendar is not None:
        axis = axes.calendar(tower.minutes, tower.step.calendar, columns, tower.rows)
    else:
        axis = axes.regular(tower.minutes, tower.step.minutes or 0, columns, tower.rows, check_clock=tower.check_clock)
    native = Native(xr.Dataset(), axis, tower, notes=[*tower.notes, *_axis_notes(axis)])
    lengths = tower.step.minutes if tower.step.calendar is None else axes.step_lengths(axis)
    arrays: dict[str, tuple[str, NDArray[Any], dict[str, Any]]] = {}
    last_use = {name: variable for variable, origin in tower.chosen.items() for name in origin.columns()}
    for variable, origin in tower.chosen.items():

        def fetch(name: str, user: str = variable) -> Values:
            values = tower.columns.pop(name) if last_use[name] == user else tower.columns[name].copy()
            return axis.spread(values)

        parts = split(origin, fetch, tower.min_good_share)
        native.suspects[variable] = _suspects(variable, parts.measured, tower.sentinels, native.notes)
        native.notes.extend(_split_notes(variable, origin, parts))
        for series in (parts.measured, parts.filled):
            if series is not None:
                convert(variable, series, origin.unit, 0 if lengths is None else lengths)
        arrays.update(_variables(variable, origin, parts, tower))
    native.contradictions = _contradictions(tower, {name: arrays[name][1] for name in tower.chosen})
    time = ("time", axis.start.astype("datetime64[m]").astype("datetime64[s]"), time_attributes(tower))
    native.dataset = xr.Dataset(arrays, coords={"time": time}, attrs=_attributes(tower, site))
    return native


def _contradictions(tower: Tower, measured: Mapping[str, Values]) -> dict[str, str]:
    """What speaks against the units of the measured values (time); TA comes first, for VPD is held against it."""
    found: dict[str, str] = {}
    for variable in sorted(measured, key=lambda name: name != "TA"):
        origin = tower.chosen[variable]
        temperature = None if "TA" in found else measured.get("TA")
        doubt = contradiction(variable, origin.unit, measured[variable], tower.step.minutes, temperature)
        if doubt is not None:
            found[variable] = doubt.told(variable, origin.column)
    return found


def time_attributes(tower: Tower) -> dict[str, Any]:
    """Attributes of every time coordinate."""
    return {
        "long_name": "start of the averaging interval",
        "standard_name": "time",
        "clock": "local standard time, no daylight saving",
        "utc_offset": "not stated" if tower.utc_offset is None else tower.utc_offset,
        "label": "start",
    }


def _attributes(tower: Tower, site: str) -> dict[str, Any]:
    return {
        "site": site,
        "reader": tower.reader,
        "resolution": str(tower.step),
        "utc_offset": "not stated" if tower.utc_offset is None else tower.utc_offset,
    }


def _variables(
    variable: str, origin: Origin, parts: Split, tower: Tower
) -> dict[str, tuple[str, NDArray[Any], dict[str, Any]]]:
    attributes: dict[str, Any] = {
        "units": UNITS[variable],
        "long_name": LONG_NAMES[variable],
        "source_column": origin.column,
        "source_unit": canonical(variable, origin.unit),
        "other_columns": tower.others.get(variable, []),
        "cell_methods": "time: sum" if variable in SUMMED else "time: mean",
        "quality": RULES[origin.rule]
        + (f" (min_good_share {tower.min_good_share:g})" if origin.rule == "share" else "")
        + (f" (accepted: {', '.join(map(str, origin.good))})" if origin.rule == "accept" else ""),
    }
    arrays: dict[str, tuple[str, NDArray[Any], dict[str, Any]]] = {variable: ("time", parts.measured, attributes)}
    if parts.filled is not None:
        arrays[f"{variable}_FILLED"] = (
            "time",
            parts.filled,
            {
                "units": UNITS[variable],
                "long_name": f"{LONG_NAMES[variable]}, gap-filled values where none was measured",
                "source_column": origin.filled or origin.column,
            },
        )
    if parts.flag is not None:
        arrays[f"{variable}_QC"] = ("time", parts.flag, _flag_attributes(variable, origin))
    return arrays


def _flag_attributes(variable: str, origin: Origin) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "long_name": f"quality flag of {variable} as the source gives it",
        "source_column": str(origin.qc),
    }
    if origin.rule == "share":
        return attributes | {
            "units": "percent",
            "comment": "share of measured or well filled half-hours in the step, rounded; -1: none",
        }
    if origin.rule == "accept" and "SSITC" not in str(origin.qc):
        return attributes | {"comment": f"accepted: {', '.join(map(str, origin.good))}; -1: none"}
    values, meanings = FLAGS["flag" if origin.rule == "flag" else "accept"]
    return attributes | {"flag_values": values, "flag_meanings": meanings}


def _split_notes(variable: str, origin: Origin, parts: Split) -> list[str]:
    notes = []
    if parts.refused:
        accepted = ", ".join(map(str, origin.good))
        notes.append(f"{variable}: {parts.refused} values with a {origin.qc} other than {accepted} count as missing.")
    if parts.unflagged:
        kept = "kept as measured" if origin.rule == "accept" else "put with the filled values"
        notes.append(f"{variable}: {parts.unflagged} values without a {origin.qc} are {kept}.")
    if not np.isfinite(parts.measured).any():
        notes.append(f"{variable}: no measured value in {origin.column}.")
    return notes


def _axis_notes(axis: Axis) -> list[str]:
    notes = []
    missing = int(np.count_nonzero(~axis.present())) - axis.conflicts.size
    if missing:
        notes.append(f"{missing} stamps are missing and were added without values.")
    if axis.duplicates.size:
        notes.append(f"{axis.duplicates.size} rows repeat a stamp without contradiction; they were joined.")
    if axis.conflicts.size:
        notes.append(f"{axis.conflicts.size} stamps have rows that contradict each other; they count as missing.")
    if axis.unsorted.size:
        notes.append(f"{axis.unsorted.size} rows stand after a later one; they were sorted.")
    return notes


def _suspects(variable: str, values: Values, declared: tuple[float, ...], notes: list[str]) -> NDArray[np.int64]:
    """Steps whose value is a known sentinel that was not declared, or an extreme that repeats far from all others."""
    found: list[NDArray[np.int64]] = []
    known = [sentinel for sentinel in SUSPECT_SENTINELS if sentinel not in declared]
    finite = np.isfinite(values)
    if not finite.any():
        return np.empty(0, np.int64)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    for sentinel in known:
        if low <= sentinel <= high and (at := np.flatnonzero(values == sentinel)).size:
            found.append(at)
            notes.append(_suspect_note(variable, sentinel, at.size, int(finite.sum())))
    for extreme in (low, high):
        if extreme in known or extreme == 0 or (variable in SUMMED and extreme == high):
            continue
        at = np.flatnonzero(values == extreme)
        if at.size < REPEATS:
            continue
        rest = values[finite & (values != extreme)]
        if rest.size and _is_far(extreme, rest):
            found.append(at)
            notes.append(_suspect_note(variable, extreme, at.size, int(finite.sum())))
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _is_far(extreme: float, rest: Values) -> bool:
    near = float(rest.min() if extreme < rest.min() else rest.max())
    low, high = (float(q) for q in np.quantile(rest, [0.01, 0.99]))
    return high > low and abs(extreme - near) > FAR * (high - low)


def _suspect_note(variable: str, value: float, count: int, total: int) -> str:
    return (
        f"{variable}: {count} of {total} values are {value:g}, which looks like a code for missing; they were kept. "
        f"If it is one, add it: `sentinels: [-9999, {value:g}]`."
    )
