"""Leakage-safe splits, made once in validation and read by every system, and the audit that looks for leaks.

Whole groups go to one part (:func:`by_group`), or each is held out in its turn (:func:`leave_one_out`), or each group's
own time is cut in order (:func:`by_order`). Only accepted records count in the shares; quarantined ones get the part of
their group, for the day they are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import polars as pl
from pydantic import Field, model_validator

from stages.params import Config
from stages.runtime import random_numbers

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
FAR = 0.1  # a share further from the one asked for is noted


class Shares(Config):
    """Shares of the accepted records in the three parts; they sum to 1."""

    train: float = Field(gt=0, le=1, description="share to learn from")
    validation: float = Field(ge=0, lt=1, description="share to choose models by; 0: none")
    test: float = Field(ge=0, lt=1, description="share to report on; 0: none")

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.train + self.validation + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train + validation + test is {total:g}, and should be 1")
        return self

    def of(self, part: Part) -> float:
        """Share of one part."""
        return float(getattr(self, part))


@dataclass(frozen=True)
class Assignment:
    """Part of each group (or of each group's steps), and what a reader should know about it."""

    part: pl.Series
    notes: tuple[str, ...]


def by_group(group: pl.Series, accepted: pl.Series, shares: Shares, *, seed: int, stream: str, noun: str) -> Assignment:
    """Assign whole groups to parts.

    The groups are shuffled with the seed; each goes to the part that lacks most of its share of accepted records, and
    no part with a share stays empty while there are groups enough.

    Parameters
    ----------
    group, accepted
        Group (text) and whether the record is accepted, one value a record.
    seed, stream
        Seed and name of the split: two splits of one seed are independent.
    noun
        What a group is, for the notes: site, subject, family.

    Returns
    -------
    Assignment
        Part of each record; the order of the records does not matter.
    """
    sizes: dict[str, int] = {}
    for name, counts in zip(group.to_list(), accepted.to_list(), strict=True):
        sizes[name] = sizes.get(name, 0) + bool(counts)
    usable = sorted(name for name, size in sizes.items() if size)
    notes = []
    wanted = [part for part in PARTS if shares.of(part) > 0]
    if len(usable) < 2:
        notes.append(f"{len(usable)} {noun} with accepted records: all train, no {noun} is left to test on")
        wanted = ["train"]
    elif len(usable) < len(wanted):
        left_out = wanted[1] if wanted[1] != "test" else "train"
        wanted = [part for part in wanted if part != left_out]
        notes.append(f"{len(usable)} {noun}s with accepted records: none for {left_out}")
    order = [usable[i] for i in random_numbers(seed, stream).permutation(len(usable))]
    parts: dict[str, Part] = dict.fromkeys(sizes, PARTS[0])
    parts |= _greedy(order, sizes, shares, wanted)
    silent = sorted(set(sizes) - set(usable), key=str)
    if silent:
        notes.append(f"without accepted records, counted nowhere: {', '.join(map(str, silent))}")
    if len(usable) > 1:
        notes += _far_from_asked(parts, {name: sizes[name] for name in usable}, shares, noun)
    return Assignment(pl.Series([parts[name] for name in group.to_list()], dtype=pl.String), tuple(notes))


def _greedy(order: Sequence[str], sizes: Mapping[str, int], shares: Shares, wanted: Sequence[Part]) -> dict[str, Part]:
    total = sum(sizes[name] for name in order)
    lacking = {part: shares.of(part) * total for part in wanted}
    empty = list(wanted)
    parts: dict[str, Part] = {}
    for position, name in enumerate(order):
        must_fill = len(order) - position <= len(empty)
        part = max(empty if must_fill else wanted, key=lambda p: (lacking[p], -PARTS.index(p)))
        parts[name] = part
        lacking[part] -= sizes[name]
        if part in empty:
            empty.remove(part)
    return parts


def _far_from_asked(parts: Mapping[str, Part], sizes: Mapping[str, int], shares: Shares, noun: str) -> list[str]:
    """A note where whole groups could not be put together to the shares that were asked for."""
    total = sum(sizes.values())
    got = {part: sum(size for name, size in sizes.items() if parts[name] == part) / total for part in PARTS}
    if max(abs(got[part] - shares.of(part)) for part in PARTS) <= FAR:
        return []
    told, asked = ("/".join(f"{100 * share:.0f}" for share in found) for found in (got.values(), map(shares.of, PARTS)))
    return [f"{'/'.join(PARTS)} are {told} % of the accepted records, not {asked}: no {noun} is divided"]


@dataclass(frozen=True)
class Folds:
    """Part of each group in each fold: columns group, fold (the group that is held out) and part.

    ``fold`` is null where no group can be held out.
    """

    table: pl.DataFrame
    notes: tuple[str, ...]


FOLDS = {"group": pl.String, "fold": pl.String, "part": pl.String}


def leave_one_out(
    group: pl.Series, accepted: pl.Series, *, validation: float, seed: int, stream: str, noun: str
) -> Folds:
    """Hold out each group once, and choose validation groups from the others.

    The groups stand on a shuffled circle; those that follow the one that is held out are for validation, so that every
    group serves as often as any other, and no fold validates on the group it tests.

    Parameters
    ----------
    group, accepted
        Group (text) and whether the record is accepted, one value a record; their order does not matter.
    validation
        Share of the groups that are not held out; rounded, at least one of two or more, unless it is 0.
    seed, stream
        Seed and name of the split: two splits of one seed are independent.
    noun
        What a group is, for the notes: subject, site.

    Returns
    -------
    Folds
        A row for each group in each fold. A group without accepted records has no fold of its own, and is train.
    """
    usable = sorted(set(group.filter(accepted).drop_nulls().to_list()))
    silent = sorted(set(group.drop_nulls().to_list()) - set(usable))
    notes = [f"without accepted records, counted nowhere: {', '.join(silent)}"] if silent else []
    if len(usable) < 2:
        notes.append(f"{len(usable)} {noun} with accepted records: all train, no {noun} is left to test on")
        rows: list[tuple[str, str | None, Part]] = [(name, None, "train") for name in sorted([*usable, *silent])]
        return Folds(pl.DataFrame(rows, schema=FOLDS, orient="row"), tuple(notes))
    circle = [usable[i] for i in random_numbers(seed, stream).permutation(len(usable))]
    others = len(usable) - 1
    count = min(others - 1, max(1, round(validation * others))) if validation else 0
    if validation and not count:
        notes.append(f"{len(usable)} {noun}s with accepted records: none for validation")
    rows = []
    for place, held_out in enumerate(circle):
        chosen = {circle[(place + step) % len(circle)] for step in range(1, count + 1)}
        for name in (*usable, *silent):
            part: Part = "test" if name == held_out else "validation" if name in chosen else "train"
            rows.append((name, held_out, part))
    return Folds(pl.DataFrame(rows, schema=FOLDS, orient="row").sort("fold", "group"), tuple(notes))


def by_order(group: pl.Series, step: pl.Series, accepted: pl.Series, shares: Shares, *, noun: str) -> Assignment:
    """Cut each group's steps (years, sessions) in order: the last are test, those before validation, the rest train.

    A group with fewer than three steps that hold accepted records is all train, and noted. A step is never cut.
    """
    frame = pl.DataFrame({"group": group, "step": step, "accepted": accepted.cast(pl.Boolean)})
    cuts: dict[str, tuple[int | None, int | None]] = {}
    notes = []
    for name in sorted(frame["group"].drop_nulls().unique().to_list()):
        mine = frame.filter((pl.col("group") == name) & pl.col("accepted"))
        steps = sorted(mine["step"].drop_nulls().unique().to_list())
        if len(steps) < len(PARTS):
            notes.append(
                f"{name}: {len(steps)} {noun}{'' if len(steps) == 1 else 's'} with accepted records: all train"
            )
            cuts[name] = (None, None)
            continue
        test = max(1, round(shares.test * len(steps))) if shares.test else 0
        validation = max(1, round(shares.validation * len(steps))) if shares.validation else 0
        while test + validation >= len(steps):
            test, validation = (test - 1, validation) if test > validation else (test, validation - 1)
        first_test = steps[-test] if test else None
        first_validation = steps[-test - validation] if validation else None
        cuts[name] = (first_validation, first_test)
    parts = [_part(value, *cuts.get(name, (None, None))) for name, value in zip(group, step, strict=True)]
    return Assignment(pl.Series(parts, dtype=pl.String), tuple(notes))


def _part(step: int | None, first_validation: int | None, first_test: int | None) -> Part:
    if step is not None and first_test is not None and step >= first_test:
        return "test"
    if step is not None and first_validation is not None and step >= first_validation:
        return "validation"
    return "train"


def sizes(part: pl.Series, group: pl.Series, accepted: pl.Series) -> dict[str, Any]:
    """Accepted records, their share, and the groups they come from, for each part."""
    frame = pl.DataFrame({"part": part, "group": group}).filter(accepted)
    found: dict[str, Any] = {}
    for name in PARTS:
        mine = frame.filter(pl.col("part") == name)
        found[name] = {
            "records": mine.height,
            "share": mine.height / frame.height if frame.height else None,
            "groups": sorted(mine["group"].unique().to_list()),
        }
    return found


@dataclass(frozen=True)
class Shared:
    """Records of two groups with the same content, whole or in some pieces (variables, channels)."""

    first: str
    second: str
    records: int
    example: tuple[str, str]
    pieces: tuple[str, ...]
    copy: bool


def shared_between(
    group: pl.Series, record: pl.Series, accepted: pl.Series, whole: pl.Series, pieces: Mapping[str, pl.Series]
) -> list[Shared]:
    """Pairs of groups with equal content in accepted records, whatever part and whatever time the records lie in.

    Parameters
    ----------
    group, record, accepted
        Group and name of each record, and whether it is accepted.
    whole
        Digest of the content of each record.
    pieces
        Digests of its pieces, null where a piece may be equal by chance. Two records are a copy if they are equal as a
        whole or in more than half of the pieces both have: another choice of one column hides no copy, and one shared
        instrument makes none.

    Returns
    -------
    list of Shared
        Copies first, then the pairs that share some pieces, each in the order of the names.
    """
    frame = pl.DataFrame({"group": group, "record": record, "": whole, **pieces}).filter(accepted)
    long = frame.unpivot(index=["group", "record"], variable_name="piece", value_name="digest").drop_nulls()
    had = {
        (name, identity): set(there) - {""}
        for name, identity, there in long.group_by("group", "record").agg("piece").iter_rows()
    }
    equal = long.join(long, on=["piece", "digest"], suffix="_2").filter(pl.col("group") < pl.col("group_2"))
    keys = ["group", "group_2", "record", "record_2"]
    found: dict[tuple[bool, str, str], list[tuple[str, str, set[str]]]] = {}
    for first, second, one, two, there in equal.group_by(keys).agg("piece").sort(keys).iter_rows():
        same = set(there) - {""}
        copy = "" in there or 2 * len(same) > len(had[first, one] & had[second, two])
        found.setdefault((not copy, first, second), []).append((one, two, same))
    return [
        Shared(first, second, len(pairs), pairs[0][:2], _in_order(pieces, [same for *_, same in pairs]), not partly)
        for (partly, first, second), pairs in sorted(found.items())
    ]


def _in_order(pieces: Iterable[str], sets: Iterable[set[str]]) -> tuple[str, ...]:
    there = set().union(*sets)
    return tuple(piece for piece in pieces if piece in there)


def straddling(part: pl.Series, key: pl.Series, accepted: pl.Series, *, noun: str) -> list[str]:
    """Values of a key (group, image, sha256 of the content) whose accepted records lie in more than one part."""
    frame = pl.DataFrame({"part": part, "key": key}).filter(accepted & key.is_not_null())
    spread = frame.group_by("key").agg(pl.col("part").unique().sort()).filter(pl.col("part").list.len() > 1).sort("key")
    return [f"{noun} {value} lies in {' and '.join(parts)}" for value, parts in spread.iter_rows()]


def shared_content(part: pl.Series, sha256: pl.Series, record: pl.Series, accepted: pl.Series) -> list[str]:
    """Accepted records in different parts whose content is the same, byte for byte."""
    frame = pl.DataFrame({"part": part, "sha256": sha256, "record": record}).filter(accepted & sha256.is_not_null())
    spread = (
        frame.sort("record")
        .group_by("sha256")
        .agg(pl.col("part").n_unique().alias("parts"), (pl.col("record") + " (" + pl.col("part") + ")").alias("told"))
        .filter(pl.col("parts") > 1)
        .sort("sha256")
    )
    return [
        f"the same content (sha256 {digest[:12]}) in {', '.join(told)}"
        for digest, told in spread.select("sha256", "told").iter_rows()
    ]


def overlapping_windows(
    part: pl.Series, series: pl.Series, start: pl.Series, end: pl.Series, record: pl.Series, accepted: pl.Series
) -> list[str]:
    """Pairs of accepted windows of one series that share samples but lie in different parts.

    Windows are half-open: [start, end). Of the windows of other parts that a window overlaps, the nearest before it is
    named.
    """
    frame = pl.DataFrame({"part": part, "series": series, "start": start, "end": end, "record": record})
    frame = frame.filter(accepted).sort(["series", "start", "end", "record"])
    found = []
    latest: dict[str, tuple[Any, str]] = {}  # by part: the greatest end so far and its record
    current = None
    for name, lane, begin, stop, identity in frame.select("part", "series", "start", "end", "record").iter_rows():
        if lane != current:
            current, latest = lane, {}
        for other, (reach, witness) in sorted(latest.items()):
            if other != name and reach > begin:
                found.append(f"{witness} ({other}) and {identity} ({name}) share samples of {lane}")
        if name not in latest or stop > latest[name][0]:
            latest[name] = (stop, identity)
    return found


def leak_stops(split_name: str, leaks: Sequence[str], shown: int = 3) -> list[str]:
    """Why the gate stops for the leaks of one split: the first of them in words, and how many more there are."""
    if not leaks:
        return []
    more = f" and {len(leaks) - shown} more" if len(leaks) > shown else ""
    return [f"the split {split_name} leaks: {'; '.join(leaks[:shown])}{more}"]
