"""Tables without a naming standard: columns, units and time are named in params.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError
from stages.ingest.land_atmosphere import names, tables
from stages.ingest.land_atmosphere.axis import Step, find_step
from stages.ingest.land_atmosphere.base import named, refuse_mixed_sites, shift
from stages.ingest.land_atmosphere.config import TableColumn, TableFile
from stages.ingest.land_atmosphere.members import Member, members
from stages.ingest.land_atmosphere.schema import VARIABLES
from stages.ingest.land_atmosphere.sources import Loaded, Tower, load
from stages.ingest.land_atmosphere.stamps import Minutes, joined, to_minutes
from stages.ingest.land_atmosphere.tables import Layout, require_once


def read(path: Path, options: TableFile) -> Tower:
    """Read one tower.

    Raises
    ------
    DataError
        A named column is missing, or a fault in a file.
    """
    layout = Layout(
        options.delimiter,
        options.comment,
        options.header_line,
        options.skip_lines,
        options.decimal,
        options.null_tokens,
        options.sentinels,
    )
    time = options.time
    stamps = [time.column] if isinstance(time.column, str) else list(time.column)
    columns: Mapping[Any, TableColumn] = options.columns
    candidates = {name: [named(columns[name], columns[name].unit)] for name in VARIABLES if name in columns}
    wanted = list(dict.fromkeys(c for origins in candidates.values() for o in origins for c in o.columns()))
    found, ignored = _select(path, layout, stamps, wanted)
    loaded = load(found, layout, stamps, candidates)
    minutes, step = _time(loaded, stamps, options)
    return Tower(
        reader="table",
        files=[member.name for member, _ in found],
        ignored=ignored,
        step=step,
        minutes=minutes,
        rows=loaded.rows(),
        chosen=loaded.chosen,
        others={},
        columns=loaded.columns,
        sentinels=options.sentinels,
        utc_offset=time.utc_offset,
        check_clock=time.clock is None,
    )


def _select(
    path: Path, layout: Layout, stamps: Sequence[str], wanted: Sequence[str]
) -> tuple[list[tuple[Member, list[str]]], dict[str, str]]:
    everything = members(path)
    refuse_mixed_sites(path, {m.name: match["site"] for m in everything if (match := names.FLUXNET.match(m.base))})
    found, ignored = tables.with_columns(everything, layout, stamps, every=True)
    if not found:
        raise DataError(
            path,
            found="no file with the time column; " + "; ".join(ignored.values()),
            expected=f"a table with the column {stamps[0]!r}",
            remedy="Correct `path` or `time.column` in params.yaml.",
        )
    for member, there in found:
        require_once(member, there, wanted)
    return found, ignored


def _time(loaded: Loaded, stamps: Sequence[str], options: TableFile) -> tuple[Minutes, Step]:
    time = options.time
    parts = []
    for table in loaded.tables:
        column = stamps[0] if len(stamps) == 1 else joined(table, stamps)
        parts.append(to_minutes(table, column, form=time.format, utc_offset=time.utc_offset))
        table.stamps.clear()
    minutes = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if time.clock == "utc":
        minutes = minutes + shift(time.utc_offset, loaded.tables[0].member)
    step = find_step(minutes, loaded.rows())
    length = step.minutes or 0
    return minutes - {"start": 0, "middle": length // 2, "end": length}[time.label], step
