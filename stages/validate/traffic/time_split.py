"""Splits by time: boundaries at steps of the whole set, common to all sensors, with a gap of one window after each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from pydantic import Field

from stages.validate import splits
from stages.validate.splits import PARTS, Shares

GAP = "gap"
NAME = "by_time"
COLUMNS = {
    "record_id": pl.String,
    "group": pl.String,
    "split": pl.String,
    "part": pl.String,
    "start": pl.Int64,
    "stop": pl.Int64,
}


class Splits(Shares):
    """Shares of the steps of a set, in the order of time, and the length of the gap between the parts."""

    window: int = Field(ge=1, description="steps of context and horizon together: the gap, where nothing is learnt")


@dataclass(frozen=True)
class TimeSplit:
    """The parts of one set.

    Attributes
    ----------
    ranges
        Half-open range of steps of each part, and of each gap (``gap`` before a part is named ``gap PART``), in the
        order of time; together they are all steps of the set.
    notes
        What a reader should know: a part without room for a window.
    """

    ranges: dict[str, tuple[int, int]]
    notes: tuple[str, ...]

    @property
    def parts(self) -> dict[str, tuple[int, int]]:
        """The parts alone, after the gaps; an empty one is left out."""
        return {name: self.ranges[name] for name in PARTS if name in self.ranges}

    def part_of(self, start: int | None, stop: int | None) -> str:
        """The part in which most of a range lies; a gap only where no part has any of it."""
        if start is None or stop is None:
            return GAP
        shares = {name: min(stop, b) - max(start, a) for name, (a, b) in self.parts.items()}
        best = max(shares, key=lambda name: shares[name], default=GAP)
        return best if shares.get(best, 0) > 0 else GAP


def cut(steps: int, shares: Splits) -> TimeSplit:
    """Cut the steps of a set at the shares; the first ``window`` steps of validation and test are the gap."""
    first = int(shares.train * steps + 1e-9)
    second = int((shares.train + shares.validation) * steps + 1e-9)
    bounds = {"train": (0, first), "validation": (first, second), "test": (second, steps)}
    ranges: dict[str, tuple[int, int]] = {}
    notes = []
    for part in PARTS:
        start, stop = bounds[part]
        if start == stop:
            continue
        inside = start if part == "train" else min(stop, start + shares.window)
        if inside > start:
            ranges[f"{GAP} {part}"] = (start, inside)
        if stop > inside:
            ranges[part] = (inside, stop)
        if stop - inside < shares.window:
            notes.append(
                f"{part} holds no window of {shares.window} steps: {stop - inside} of the set's {steps} lie in it"
            )
    return TimeSplit(ranges, tuple(notes))


def rows(records: pl.DataFrame, found: TimeSplit) -> pl.DataFrame:
    """A row for each sensor-day in each part it reaches into, with the steps that lie there.

    Parameters
    ----------
    records
        record_id, group, start and stop; a record without a range of steps has one row without a part.
    """
    table = pl.DataFrame(
        [(name.split()[0], start, stop) for name, (start, stop) in found.ranges.items()],
        schema={"part": pl.String, "part_start": pl.Int64, "part_stop": pl.Int64},
        orient="row",
    )
    inside = (
        records.select("record_id", "group", "start", "stop")
        .with_row_index("place")
        .join(table, how="cross")
        .with_columns(pl.max_horizontal("start", "part_start"), pl.min_horizontal("stop", "part_stop"))
    )
    inside = inside.filter(pl.col("start") < pl.col("stop"))
    unplaced = records.select("record_id", "group", "start", "stop").with_row_index("place")
    unplaced = unplaced.join(inside.select("place"), on="place", how="anti")
    both = pl.concat([inside, unplaced.with_columns(part=pl.lit(None, dtype=pl.String))], how="diagonal")
    return both.sort("place", "start").with_columns(split=pl.lit(NAME)).select(list(COLUMNS))


def audit(table: pl.DataFrame, accepted: pl.Series, window: int) -> list[str]:
    """Leaks of the rows of one set: shared steps, one step in two parts, and parts closer than a window.

    Parameters
    ----------
    table
        What :func:`rows` returned.
    accepted
        Whether the record of each row is accepted.
    """
    used = table.filter(accepted & pl.col("part").is_in(PARTS))
    found = splits.overlapping_windows(
        used["part"],
        used["group"],
        used["start"],
        used["stop"],
        used["record_id"],
        pl.Series([True] * used.height, dtype=pl.Boolean),
    )
    bounds = used.group_by("part").agg(pl.col("start").min(), pl.col("stop").max()).sort("start").rows()
    for (first, _, stop), (second, start, _) in itertools.pairwise(bounds):
        if start - stop < window:
            found.append(
                f"{second} starts {start - stop} steps after the end of {first}, and a window has {window}: "
                "one that starts in the first reaches the second"
            )
    return found


def copied_days(records: pl.DataFrame, accepted: pl.Series, part: pl.Series) -> pl.DataFrame:
    """Sensor-days whose values stand, byte for byte, in an earlier part.

    Parameters
    ----------
    records
        record_id, sha256, start and ``moves`` (days without any change are equal by nature, and left out).

    Returns
    -------
    DataFrame
        record_id, copied_day (the first record of that content) and copied_part (the part that it lies in).
    """
    frame = records.select("record_id", "sha256", "start", "moves").with_columns(part=part, accepted=accepted)
    frame = frame.filter(
        pl.col("accepted") & pl.col("moves") & pl.col("sha256").is_not_null() & pl.col("part").is_in(PARTS)
    ).sort("start", "record_id")
    frame = frame.with_columns(
        copied_day=pl.col("record_id").first().over("sha256"), copied_part=pl.col("part").first().over("sha256")
    )
    return frame.filter(pl.col("part") != pl.col("copied_part")).select("record_id", "copied_day", "copied_part")


def sizes(table: pl.DataFrame, accepted: pl.Series, found: TimeSplit) -> dict[str, Any]:
    """Accepted sensor-days of each part (one that reaches into two counts in both), and their share of the steps."""
    used = table.with_columns(accepted=accepted, steps=pl.col("stop") - pl.col("start")).filter("accepted")
    total = int(used.filter(pl.col("part").is_in(PARTS))["steps"].sum())
    described: dict[str, Any] = {}
    for part in PARTS:
        mine = used.filter(pl.col("part") == part)
        start, stop = found.parts.get(part, (0, 0))
        described[part] = {
            "records": mine.height,
            "share": int(mine["steps"].sum()) / total if total else None,
            "groups": [f"{mine['group'].n_unique()} sensors, steps {start} to {stop}"] if mine.height else [],
            "start": start,
            "stop": stop,
        }
    return described


def facts(described: Mapping[str, Any], leaks: list[str]) -> list[tuple[str, str]]:
    """One line a part, then the notes and the leaks, for the documents."""
    found = [
        (part, f"{size['records']} accepted sensor-days of {', '.join(size['groups']) or 'no sensor'}")
        for part, size in described["parts"].items()
    ]
    found += [("note", note) for note in described["notes"]]
    return [*found, *([("leak", leak) for leak in leaks] or [("audit", "no leakage found")])]
