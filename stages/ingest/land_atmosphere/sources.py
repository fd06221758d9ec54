"""Which column of the files each variable comes from, and how its measured and its filled values are told apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stages.ingest.land_atmosphere import tables
from stages.ingest.land_atmosphere.axis import Rows, Step
from stages.ingest.land_atmosphere.members import Member
from stages.ingest.land_atmosphere.stamps import Minutes
from stages.ingest.land_atmosphere.tables import Layout, Table

Values = NDArray[np.float64]
Rule = Literal["plain", "flag", "share", "accept", "unknown"]

#: What each rule means, as it stands in the attributes of the variable.
RULES: dict[Rule, str] = {
    "plain": "all values count as measured; the source has no flag",
    "flag": "measured where the flag is 0; filled otherwise",
    "share": "measured where the share of measured or well filled half-hours is at least min_good_share; else filled",
    "accept": "measured where the flag is one of the accepted ones or missing; missing otherwise",
    "unknown": "a filled series without its flag: no value counts as measured",
}


@dataclass(frozen=True)
class Origin:
    """A column that may give one variable.

    Attributes
    ----------
    tier
        Origins of the lowest tier with any value are preferred: kind of series, then depth or height.
    order
        Decides between origins of one tier with equal coverage.
    """

    column: str
    unit: str
    rule: Rule = "plain"
    qc: str | None = None
    filled: str | None = None
    good: tuple[int, ...] = ()
    tier: tuple[int, ...] = (0,)
    order: tuple[int, ...] = ()

    def columns(self) -> list[str]:
        """All columns this origin reads."""
        return [name for name in (self.column, self.qc, self.filled) if name is not None]


@dataclass
class Split:
    """One variable on some axis: measured and filled values never share a place; flag -1 where there is none."""

    measured: Values
    filled: Values | None
    flag: NDArray[np.int8] | None
    refused: int
    unflagged: int


@dataclass
class Tower:
    """What a reader found: rows in the order of the files, not yet on an axis."""

    reader: str
    files: list[str]
    ignored: dict[str, str]
    step: Step
    minutes: Minutes
    rows: Rows
    chosen: dict[str, Origin]
    others: dict[str, list[str]]
    columns: dict[str, Values]
    sentinels: tuple[float, ...]
    notes: list[str] = field(default_factory=list)
    site: str | None = None
    utc_offset: float | None = None
    check_clock: bool = True
    min_good_share: float = 0.75


def split(origin: Origin, read: Callable[[str], Values], min_good_share: float) -> Split:
    """Tell measured from filled values by the rule of an origin.

    Parameters
    ----------
    origin
        Columns and rule.
    read
        Column name -> values (any shape, all equal), NaN where missing; the arrays become the result's.
    min_good_share
        Threshold of the rule ``share``.
    """
    values = read(origin.column)
    qc = None if origin.qc is None else read(origin.qc)
    if origin.rule == "unknown":
        return Split(np.full(values.shape, np.nan), values, None, 0, 0)
    if origin.rule == "plain" or qc is None:
        return Split(values, _beside(values, origin, read), None, 0, 0)
    flagged = np.isfinite(qc)
    present = np.isfinite(values)
    unflagged = int(np.count_nonzero(present & ~flagged))
    if origin.rule == "accept":
        refused = flagged & ~np.isin(qc, origin.good) & present
        values[refused] = np.nan
        return Split(values, _beside(values, origin, read), _flags(qc, 1), int(np.count_nonzero(refused)), unflagged)
    measured = qc == 0 if origin.rule == "flag" else qc >= min_good_share
    filled = np.where(measured, np.nan, values)
    values[~measured] = np.nan
    return Split(values, filled, _flags(qc, 100 if origin.rule == "share" else 1), 0, unflagged)


def _beside(measured: Values, origin: Origin, read: Callable[[str], Values]) -> Values | None:
    if origin.filled is None:
        return None
    filled = read(origin.filled)
    filled[np.isfinite(measured)] = np.nan
    return filled


def _flags(qc: Values, scale: int) -> NDArray[np.int8]:
    flags = np.full(qc.shape, -1, dtype=np.int8)
    good = np.isfinite(qc) & (qc >= 0) & (qc * scale <= 127)
    flags[good] = np.rint(qc[good] * scale).astype(np.int8)
    return flags


@dataclass
class Loaded:
    """Rows of all files, one after another."""

    tables: list[Table]
    chosen: dict[str, Origin]
    columns: dict[str, Values]

    def rows(self) -> Rows:
        """Row number -> file, and place in it."""
        starts = np.cumsum([0, *(table.rows for table in self.tables)]).tolist()

        def table_of(row: int) -> int:
            return min(bisect_right(starts, row) - 1, len(self.tables) - 1)

        return Rows(
            file=lambda row: self.tables[table_of(row)].member.name,
            label=lambda row: self.tables[table_of(row)].member.label,
            place=lambda row: self.tables[table_of(row)].place(row - starts[table_of(row)]),
        )


def load(
    found: Sequence[tuple[Member, Sequence[str]]],
    layout: Layout,
    stamps: Iterable[str],
    candidates: Mapping[str, Sequence[Origin]],
    min_good_share: float = 0.75,
) -> Loaded:
    """Read stamps and the best column of each variable.

    Of the candidates of a variable, those of the lowest tier are read; the one with most measured values is kept. A
    tier without any value is passed over for the next.

    Parameters
    ----------
    found
        Files and the names of their columns.
    candidates
        Variable -> possible origins, at least one each.
    """
    tiers = {variable: sorted({origin.tier for origin in origins}) for variable, origins in candidates.items()}
    level = dict.fromkeys(candidates, 0)
    stamps = list(stamps)
    result = Loaded([], {}, {})
    pending = list(candidates)
    while pending:
        now = {
            variable: [origin for origin in candidates[variable] if origin.tier == tiers[variable][level[variable]]]
            for variable in pending
        }
        columns = _read_all(found, layout, [] if result.tables else stamps, now, result)
        pending = []
        for variable, origins in now.items():
            best, any_value = _best(origins, columns, min_good_share)
            if any_value or level[variable] + 1 == len(tiers[variable]):
                result.chosen[variable] = best
                result.columns |= {name: columns[name] for name in best.columns()}
            else:
                level[variable] += 1
                pending.append(variable)
    result.chosen = {variable: result.chosen[variable] for variable in candidates}
    return result


def alternatives(candidates: Mapping[str, Sequence[Origin]], chosen: Mapping[str, Origin]) -> dict[str, list[str]]:
    """The columns of each variable that were not chosen."""
    return {
        variable: list(dict.fromkeys(o.column for o in candidates.get(variable, []) if o.column != origin.column))
        for variable, origin in chosen.items()
    }


def _read_all(
    found: Sequence[tuple[Member, Sequence[str]]],
    layout: Layout,
    stamps: Sequence[str],
    now: Mapping[str, Sequence[Origin]],
    result: Loaded,
) -> dict[str, Values]:
    wanted = list(dict.fromkeys(name for origins in now.values() for o in origins for name in o.columns()))
    read = []
    for member, names in found:
        here = [name for name in wanted if name in names]
        read.append(tables.read(member, layout, here, [name for name in stamps if name in names] or list(stamps)))
    if not result.tables:
        result.tables = read
    columns = {}
    for name in wanted:
        parts = [table.numbers.pop(name, None) for table in read]
        if len(parts) == 1 and parts[0] is not None:
            columns[name] = parts[0]
        else:
            blocks = zip(parts, read, strict=True)
            columns[name] = np.concatenate([np.full(t.rows, np.nan) if part is None else part for part, t in blocks])
    return columns


def _best(origins: Sequence[Origin], columns: Mapping[str, Values], min_good_share: float) -> tuple[Origin, bool]:
    def coverage(origin: Origin) -> tuple[int, int]:
        values = np.isfinite(columns[origin.column])
        total = int(np.count_nonzero(values))
        if origin.filled is not None:
            total = max(total, int(np.count_nonzero(np.isfinite(columns[origin.filled]))))
        if origin.qc is None or origin.rule in ("plain", "unknown"):
            return (0 if origin.rule == "unknown" else int(np.count_nonzero(values))), total
        qc = columns[origin.qc]
        if origin.rule == "accept":
            good = np.isin(qc, origin.good) | ~np.isfinite(qc)
        else:
            good = qc == 0 if origin.rule == "flag" else qc >= min_good_share
        return int(np.count_nonzero(values & good)), total

    scored = [(coverage(origin), origin) for origin in origins]
    best = max(scored, key=lambda pair: (pair[0], [-place for place in pair[1].order]))
    return best[1], best[0][1] > 0
