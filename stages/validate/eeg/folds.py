"""Leave one subject out within each corpus, and the audit of every fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from pydantic import Field

from stages.params import Config
from stages.validate import splits

COLUMNS = {"record_id": pl.String, "group": pl.String, "fold": pl.String, "part": pl.String}


class Splits(Config):
    """Seed and size of the split: each subject is held out once."""

    seed: int = Field(ge=0, description="shuffles the subjects, of which some validate in each fold")
    validation: float = Field(ge=0, lt=1, description="share of the subjects that are not held out; 0: none")


@dataclass(frozen=True)
class CorpusSplit:
    """The folds of one corpus.

    Attributes
    ----------
    name
        As the report and the documents call it.
    table
        record_id, group, fold (the group held out; null where nothing is) and part, a row for each trial in each fold.
    described
        Parts of an average fold, notes and number of folds, for summary.json.
    leaks
        What the audit found, in words.
    """

    name: str
    table: pl.DataFrame
    described: dict[str, Any]
    leaks: list[str]


def split(key: str, records: pl.DataFrame, accepted: pl.Series, params: Splits, *, noun: str) -> CorpusSplit:
    """Split one corpus and look for leaks.

    Parameters
    ----------
    records
        record_id, group, sha256 and stimulus of all trials.
    accepted
        Whether each is accepted.
    noun
        What a group is: subject, or block where the corpus does not say who was recorded.
    """
    folds = splits.leave_one_out(
        records["group"],
        accepted,
        validation=params.validation,
        seed=params.seed,
        stream=f"leave one out {key}",
        noun=noun,
    )
    frame = records.select("record_id", "group", "sha256", "stimulus").with_columns(accepted=accepted)
    frame = frame.join(folds.table, on="group", how="left", maintain_order="left_right")
    frame = frame.with_columns(pl.col("part").fill_null("train"))  # a trial without a group is in no fold
    leaks = audit(frame, noun)
    notes = [*folds.notes, *shared_stimuli(frame, noun)]
    if noun != "subject":
        notes.insert(0, f"the corpus does not say who was recorded: a {noun} may share people with others")
    held_out = folds.table["fold"].drop_nulls().n_unique()
    if held_out:
        notes.insert(0, f"{held_out} folds, each holds out one {noun}; the parts are those of an average fold")
    name = f"leave one {noun} out, {key}"
    described = {"folds": held_out, "validation": params.validation, "parts": sizes(frame), "notes": notes}
    return CorpusSplit(name, frame.select(list(COLUMNS)), described, leaks)


def audit(frame: pl.DataFrame, noun: str) -> list[str]:
    """Leaks of all folds: a group or a trial in two parts of one fold, and equal content in two parts of one fold.

    Windows are cut inside a trial, so that trials in one part keep their windows, and all samples of these, together.
    """
    found = []
    for (fold,), mine in frame.group_by("fold", maintain_order=True):
        part, accepted = mine["part"], mine["accepted"]
        leaks = [
            *splits.straddling(part, mine["group"], accepted, noun=noun),
            *splits.straddling(part, mine["record_id"], accepted, noun="trial"),
            *splits.shared_content(part, mine["sha256"], mine["record_id"], accepted),
        ]
        found += [f"fold {fold}: {leak}" for leak in leaks]
    return found


def shared_stimuli(frame: pl.DataFrame, noun: str) -> list[str]:
    """A note on stimuli that stand on both sides of a fold: the same clip, and so the same label, is known already."""
    shown = frame.filter(pl.col("accepted") & pl.col("stimulus").is_not_null() & pl.col("fold").is_not_null())
    if shown.is_empty():
        return []
    sides = shown.group_by("fold", "stimulus").agg(
        tested=(pl.col("part") == "test").any(), learnt=(pl.col("part") == "train").any()
    )
    tested = sides.filter(pl.col("tested"))
    shared = tested.filter(pl.col("learnt"))
    if shared.is_empty():
        return []
    clips = shared["stimulus"].n_unique()
    return [
        f"shared stimuli: {clips} of {tested['stimulus'].n_unique()} stimuli shown to a {noun} that is held out are "
        f"also in the training part of that fold; results hold for new {noun}s, not for new stimuli"
    ]


def sizes(frame: pl.DataFrame) -> dict[str, Any]:
    """Accepted trials of an average fold, their share, and the groups that stand in each part in some fold."""
    counted = frame.filter("accepted")
    folds = max(1, counted["fold"].n_unique())
    found: dict[str, Any] = {}
    for part in splits.PARTS:
        mine = counted.filter(pl.col("part") == part)
        found[part] = {
            "records": round(mine.height / folds),
            "share": mine.height / counted.height if counted.height else None,
            "groups": sorted(mine["group"].drop_nulls().unique().to_list()),
        }
    return found


def facts(described: CorpusSplit) -> list[tuple[str, str]]:
    """One line a part, then the notes and the leaks, for the documents."""
    found = [
        (part, f"{size['records']} accepted trials of {_listed(size['groups'])}")
        for part, size in described.described["parts"].items()
    ]
    found += [("note", note) for note in described.described["notes"]]
    return [*found, *([("leak", leak) for leak in described.leaks] or [("audit", "no leakage found")])]


def _listed(groups: Sequence[str], most: int = 8) -> str:
    if not groups:
        return "nobody"
    more = f" and {len(groups) - most} more" if len(groups) > most else ""
    return ", ".join(groups[:most]) + more
