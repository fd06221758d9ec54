from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from stages.validate import expectations, verdicts
from stages.validate.eeg import trials
from stages.validate.eeg.gate import Gate
from stages.validate.eeg.windows import COLUMNS
from tests.validate.eeg.fakes import LABELS, WINDOWS, frame, trial

# Columns changed in one sound trial, the rule they break, the reason it must give.
QUARANTINED: list[tuple[dict[str, Any], str, str]] = [
    ({"label": None}, "label present", "ID has no label; the corpus has negative, neutral, positive"),
    ({"label": "angry"}, "label known", "ID is labelled angry; the corpus has negative, neutral, positive"),
    ({"label_value": 3.0}, "range of label_value", "label_value of ID is 3; the gate allows -1 to 1"),
    ({"valence": 12.0}, "range of valence", "valence of ID is 12; the gate allows 1 to 9"),
    ({"rate": 100.0}, "one rate", "ID is kept at 100 Hz; most trials of the corpus have 128"),
    ({"original_rate": 64.0}, "sampled fast enough", "ID was sampled at 64 Hz; the bands need at least 100 Hz"),
    ({"missing_channels": 2}, "missing channels", "ID lacks 2 channels of the corpus; the gate allows 0"),
    (
        {"duplicate_channels": 1},
        "channels named twice",
        "1 channels stand twice in the file of ID, and only the first of each was read; the gate allows 0",
    ),
    ({"flat_channels": 1}, "flat channels", "1 of 3 channels of ID are flat; the gate allows 0"),
    ({"nan_share": 0.001}, "every sample a number", "0.10% of the samples of ID are no number; the gate allows 0.00%"),
    (
        {"std_uv": 1.9e-5},
        "standard deviation",
        "the channels of ID have a standard deviation of 0.000019 uV; the gate allows 0.5 to 500: another unit?",
    ),
    (
        {"std_uv": 20000.0},
        "standard deviation",
        "the channels of ID have a standard deviation of 20000 uV; the gate allows 0.5 to 500: another unit?",
    ),
    ({"max_abs_uv": 7000.5}, "largest amplitude", "ID reaches 7000.5 uV; the gate allows 5000"),
    (
        {"saturated_share": 0.31},
        "saturated samples",
        "31.0% of the samples of ID lie at the extreme value of their channel; the gate allows 5.0%: "
        "amplifier at its limit?",
    ),
    ({"line_noise_share": 0.96}, "line noise", "96.0% of the power of ID is mains hum; the gate allows 95.0%"),
    (
        {"stored_windows": 3},
        "windows stored",
        "the store holds 3 windows of ID, records.parquet says 4",
    ),
    (
        {"stray_windows": 1},
        "windows within the trial",
        "1 windows reach beyond ID, and so hold samples of another trial",
    ),
    (
        {"windows": 0, "stored_windows": 0},
        "enough windows",
        "ID has 0 windows; the gate asks for at least 1",
    ),
    (
        {"masked_share": 0.25},
        "masked features",
        "25.0% of the features of ID are no number (flat or missing channels of a window); the gate allows 10.0%",
    ),
]
WARNED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"original_rate": 256.0},
        "one original rate",
        "ID was sampled at 256 Hz; most trials of the corpus have 200",
    ),
    (
        {"line_noise_share": 0.4},
        "little line noise",
        "40.0% of the power of ID is mains hum; the gate warns above 30.0%",
    ),
    (
        {"artifact_share": 0.75},
        "few artifacts",
        "75.0% of the windows of ID are flagged as artifact; the gate warns above 50.0%",
    ),
    ({"drift_uv": 800.0}, "drift", "a channel of ID drifts by 800 uV; the gate warns above 500"),
]
SOUND: list[dict[str, Any]] = [
    {},
    {"std_uv": 500.0, "max_abs_uv": 5000.0, "artifact_share": 0.5},  # at the limits
    {"unit": "counts", "std_uv": 3000.0, "max_abs_uv": 9000.0},  # counts have no volts to be judged by
    dict.fromkeys(("std_uv", "max_abs_uv", "drift_uv", "line_noise_share", "saturated_share", "nan_share")),
    {"unknown_channels": 2},  # gaze, triggers: passed over by the reader
    {"masked_share": 0.1},
    {"masked_share": None},
]
GATE = Gate(labels=(-1, 1), ratings=(1, 9))


def summary(*rows: dict[str, Any], labels: tuple[str, ...] = LABELS) -> pl.DataFrame:
    """The summary frame, with the windows that the rows name."""
    usual = {"stored_windows": WINDOWS, "stray_windows": 0, "masked_share": 0.0}
    held = [{name: row.pop(name, value) for name, value in usual.items()} for row in rows]
    return trials.summary_frame(frame(*rows), pl.DataFrame(held, schema=COLUMNS), labels)


def judged(table: pl.DataFrame, gate: Gate = GATE, labels: tuple[str, ...] = LABELS) -> pl.DataFrame:
    suite = expectations.suite_of("s", trials.rules(table, gate, labels), table)
    return verdicts.verdicts(table, expectations.judge(table, suite))


@pytest.fixture(scope="module")
def verdict() -> list[dict[str, Any]]:
    """All cases as the trials of one session, judged in one run."""
    cases = [*(c for c, _, _ in QUARANTINED), *(c for c, _, _ in WARNED), *SOUND]
    return judged(summary(*(trial("c", "s", 1, i, **changed) for i, changed in enumerate(cases)))).to_dicts()


@pytest.mark.parametrize("position", range(len(QUARANTINED)), ids=lambda i: QUARANTINED[i][1])
def test_a_trial_is_quarantined_with_value_and_bound(verdict: list[dict[str, Any]], position: int) -> None:
    _, name, reason = QUARANTINED[position]
    row = verdict[position]
    assert (row["outcome"], row["expectation"]) == ("quarantined", name)
    assert row["reason"] == reason.replace("ID", f"c/s/1/{position}")


@pytest.mark.parametrize("position", range(len(WARNED)), ids=lambda i: WARNED[i][1])
def test_a_trial_is_accepted_with_a_warning(verdict: list[dict[str, Any]], position: int) -> None:
    where = len(QUARANTINED) + position
    row = verdict[where]
    assert (row["outcome"], row["reason"]) == ("accepted", None)
    assert row["warnings"] == WARNED[position][2].replace("ID", f"c/s/1/{where}")


@pytest.mark.parametrize("position", range(len(SOUND)))
def test_a_sound_trial_is_accepted_without_a_word(verdict: list[dict[str, Any]], position: int) -> None:
    row = verdict[len(QUARANTINED) + len(WARNED) + position]
    assert (row["outcome"], row["reason"], row["warnings"]) == ("accepted", None, None)


def test_a_corpus_without_labels_is_not_judged_by_them() -> None:
    table = summary(trial("c", "s", 1, 1, label=None), labels=())
    assert judged(table, labels=())["outcome"].to_list() == ["accepted"]


def test_a_subject_that_misses_a_trial_or_a_class_is_warned_of() -> None:
    rows = [trial("c", s, 1, n) for s in ("a", "b", "c") for n in range(1, 7) if (s, n) != ("b", 4)]
    rows = [row for row in rows if row["subject"] != "c" or row["label"] == "neutral" or row["trial"] == 2]
    found = judged(summary(*rows)).group_by("group", maintain_order=True).agg(pl.col("warnings").unique())
    said = dict(found.iter_rows())
    assert said["c/a"] == [None]
    assert said["c/b"] == ["session 1 of subject b has 5 trials; most sessions have 6"]
    assert said["c/c"] == [
        "session 1 of subject c has 3 trials; most sessions have 6 | subject c has trials of 2 of the 3 classes"
    ]
    lopsided = [trial("c", "a", 1, n, label=LABELS[0 if n < 9 else 1]) for n in range(10)]
    assert judged(summary(*lopsided, labels=LABELS[:2]), labels=LABELS[:2])["warnings"].unique().to_list() == [
        "90.0% of the trials of subject a are of one class; the gate warns above 80.0%"
    ]


def test_blocks_are_no_people_whose_number_of_trials_means_something() -> None:
    rows = [trial("c", s, 1, n, sha256=f"{n}") for s in ("a", "b", "c") for n in range(1, 7) if (s, n) != ("c", 6)]
    table = trials.summary_frame(
        frame(*rows),
        pl.DataFrame([{"stored_windows": WINDOWS, "stray_windows": 0, "masked_share": 0.0}] * 17),
        LABELS,
        people=False,
    )
    found = judged(table)
    assert found["warnings"].null_count() == 17
    assert found["expectation"].drop_nulls().unique().to_list() == ["copy of a trial"]
    assert found["outcome"].to_list() == ["accepted"] * 6 + ["quarantined"] * 11


def test_a_corpus_changes_only_the_limits_it_names() -> None:
    changed = Gate(max_nan=0.1).overridden(Gate(std_uv=(0, 9)))
    assert (changed.max_nan, changed.std_uv, changed.many_artifacts) == (0.1, (0, 9), 0.5)
    with pytest.raises(ValidationError, match="the lower bound 9 is above the upper bound 1"):
        Gate(ratings=(9, 1))
