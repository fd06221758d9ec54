"""Trials that are recorded once and stand in a corpus twice: single ones, whole sessions, whole subjects.

Content is compared by its digest. The first of equal trials, in the order of reading, stays; the others are copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

Level = Literal["subject", "session"]

MOST = 0.5  # a session (subject) of whose trials more than this share stand in one other is its copy
LEVELS: tuple[Level, ...] = ("session", "subject")
KEYS: dict[Level, list[str]] = {"subject": ["subject"], "session": ["subject", "session"]}


def mark_copies(records: pl.DataFrame, levels: Sequence[Level] = LEVELS) -> pl.DataFrame:
    """Add what each trial is a copy of.

    Parameters
    ----------
    records
        Trials in the order of reading, with record_id, subject, session, label and sha256.
    levels
        What can be a copy as a whole.

    Returns
    -------
    DataFrame
        The trials with copied_label (a trial of equal content and another label, against both of them), copied_subject
        and copied_session (the subject, or subject/session, that the trial's own one repeats) and copied_trial (the
        first trial with equal content, where neither session nor subject is a copy); all null where there is none.
    """
    first = pl.col("record_id").first().over("sha256")
    origin = pl.when(pl.col("sha256").is_not_null() & (first != pl.col("record_id"))).then(first)
    frame = records.with_columns(origin.alias("copied_trial"), _place("session"), _place("subject"))
    frame = frame.with_columns(_conflict())
    for level in LEVELS:
        if level not in levels:
            frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(f"copied_{level}"))
            continue
        frame = frame.join(_repeated(frame, level), on=f"place_{level}", how="left", maintain_order="left")
    whole = pl.col("copied_subject").is_not_null()
    later = pl.col("copied_trial").is_not_null()
    return frame.with_columns(
        pl.when(later).then("copied_subject").alias("copied_subject"),
        pl.when(later & ~whole).then("copied_session").alias("copied_session"),
        pl.when(~whole & pl.col("copied_session").is_null()).then("copied_trial").alias("copied_trial"),
    ).drop("place_subject", "place_session")


def _place(level: Level) -> pl.Expr:
    return pl.concat_str(KEYS[level], separator="/").alias(f"place_{level}")


def _conflict() -> pl.Expr:
    """A trial of equal content that bears another label, null where there is none."""
    there = pl.col("sha256").is_not_null() & pl.col("label").is_not_null()
    first, last = (
        pl.col("record_id").sort_by("label", maintain_order=True).get(place).over("sha256") for place in (0, -1)
    )
    smallest, largest = pl.col("label").min().over("sha256"), pl.col("label").max().over("sha256")
    other = pl.when(pl.col("label") == smallest).then(last).otherwise(first)
    return pl.when(there & (smallest != largest)).then(other).alias("copied_label")


def _repeated(frame: pl.DataFrame, level: Level) -> pl.DataFrame:
    """Sessions (subjects) most of whose trials stand in one earlier session (subject): itself, and that one."""
    place = f"place_{level}"
    first = pl.col(place).first().over("sha256")
    counted = frame.select(
        pl.col(place),
        pl.len().over(place).alias("trials"),
        pl.when(pl.col("sha256").is_not_null() & (first != pl.col(place))).then(first).alias("source"),
    )
    return (
        counted.filter(pl.col("source").is_not_null())
        .group_by(place, "source")
        .agg(pl.len().alias("shared"), pl.col("trials").first())
        .filter(pl.col("shared") > MOST * pl.col("trials"))
        .sort("shared", "source", descending=[True, False])
        .unique(place, keep="first", maintain_order=True)
        .select(place, pl.col("source").alias(f"copied_{level}"))
    )


def told(marked: pl.DataFrame) -> list[str]:
    """In words, which subjects and sessions are copies, and how many single trials."""
    notes = []
    for level in reversed(LEVELS):
        place = marked.select(_place(level), f"copied_{level}").drop_nulls()
        found = place.group_by(f"place_{level}", f"copied_{level}", maintain_order=True).len()
        notes += [f"{level} {name} is a copy of {source}: {count} trials" for name, source, count in found.iter_rows()]
    single = marked["copied_trial"].count()
    if single:
        notes.append(f"{single} single trial{' is a copy' if single == 1 else 's are copies'} of others")
    conflicts = marked["copied_label"].count()
    if conflicts:
        notes.append(f"{conflicts} trials have equal content and different labels")
    return notes
