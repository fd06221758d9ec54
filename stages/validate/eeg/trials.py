"""What is expected of a trial of EEG: the summary frame of a corpus, and the rules made of the limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from stages.ingest.eeg.schema import RECORD_COLUMNS, TARGETS
from stages.validate.eeg.copies import LEVELS, mark_copies
from stages.validate.eeg.gate import Gate
from stages.validate.expectations import Rule, Severity, between

KINDS = {"String": "text", "Int64": "integer", "Float64": "number"}


def columns() -> dict[str, str]:
    """Columns the gate needs in records.parquet, each with its kind of type."""
    return {name: KINDS[dtype] for name, dtype in RECORD_COLUMNS.items()}


def summary_frame(
    records: pl.DataFrame, windows: pl.DataFrame, labels: Sequence[str], *, people: bool = True
) -> pl.DataFrame:
    """records.parquet with what the stores hold and the figures that stand between trials, in the order of reading.

    Adds the columns of ``windows`` and of :func:`stages.validate.eeg.copies.mark_copies`, judged_std and judged_abs
    (null where the unit is counts), session_trials and usual_trials (of this session, and of most sessions),
    subject_classes and subject_majority (how many classes the subject has, and the share of the most frequent one; null
    where the corpus has no labels). Without ``people`` the subjects are blocks of trials: none is a copy of another as
    a whole, and how many trials it has means nothing (usual_trials is null).
    """
    volts = pl.col("unit") == "uV"
    session = ["subject", "session"]
    frame = mark_copies(records.hstack(windows), LEVELS if people else ()).with_columns(
        pl.when(volts).then("std_uv").alias("judged_std"),
        pl.when(volts).then("max_abs_uv").alias("judged_abs"),
        pl.len().over(session).cast(pl.Int64).alias("session_trials"),
        pl.len().over("subject", "label").alias("alike"),
        pl.col("label").is_not_null().sum().over("subject").alias("labelled"),
    )
    usual = frame.group_by(session).len().get_column("len").mode().sort()
    classes = pl.col("label").drop_nulls().n_unique().over("subject").cast(pl.Int64)
    most = pl.when(pl.col("label").is_not_null()).then("alike").max().over("subject") / pl.col("labelled")
    return frame.with_columns(
        pl.lit(usual.last() if people and usual.len() else None, dtype=pl.Int64).alias("usual_trials"),
        (classes if labels else pl.lit(None, dtype=pl.Int64)).alias("subject_classes"),
        (most if labels else pl.lit(None, dtype=pl.Float64)).alias("subject_majority"),
    ).drop("alike", "labelled")


def rules(frame: pl.DataFrame, gate: Gate, labels: Sequence[str]) -> list[Rule]:
    """The rules for the trials of one corpus, gravest first."""
    return [
        *_copies(),
        *_labels(gate, labels),
        *_sampling(frame, gate),
        *_channels(gate),
        *_signal(gate),
        *_windows(gate),
        *_subjects(frame, gate, labels),
    ]


def _null(column: str, name: str, reason: str, observed: str) -> Rule:
    return Rule(name, "expect_column_values_to_be_null", {"column": column}, "quarantine", reason, observed)


def _at_most(
    column: str, limit: float, name: str, reason: str, observed: str = "{value}", severity: Severity = "quarantine"
) -> Rule:
    return between(name, column, None, limit, severity=severity, reason=reason, observed=observed)


def _copies() -> list[Rule]:
    return [
        _null(
            "copied_label",
            "one label for one content",
            "{record_id} has the content of {value} and another label: one of the two is wrong",
            "{value}",
        ),
        _null(
            "copied_subject",
            "copy of a subject",
            "{record_id} stands in a subject that is a copy of subject {value}",
            "subject {value}",
        ),
        _null(
            "copied_session",
            "copy of a session",
            "{record_id} stands in a session that is a copy of session {value}",
            "session {value}",
        ),
        _null("copied_trial", "copy of a trial", "{record_id} is a copy of {value}, sample by sample", "{value}"),
    ]


def _labels(gate: Gate, labels: Sequence[str]) -> list[Rule]:
    found = []
    if labels:
        found += [
            Rule(
                "label present",
                "expect_column_values_to_not_be_null",
                {"column": "label"},
                "quarantine",
                f"{{record_id}} has no label; the corpus has {', '.join(labels)}",
                "null",
            ),
            Rule(
                "label known",
                "expect_column_values_to_be_in_set",
                {"column": "label", "value_set": list(labels)},
                "quarantine",
                f"{{record_id}} is labelled {{value}}; the corpus has {', '.join(labels)}",
            ),
        ]
    for column, bounds in [("label_value", gate.labels), *((target, gate.ratings) for target in TARGETS)]:
        if bounds is not None:
            low, high = bounds
            found.append(
                between(
                    f"range of {column}",
                    column,
                    low,
                    high,
                    severity="quarantine",
                    reason=f"{column} of {{record_id}} is {{value}}; the gate allows {low:g} to {high:g}",
                    observed="{value}",
                )
            )
    return found


def _usual(frame: pl.DataFrame, column: str) -> Any:
    """The value most trials have; the smallest of equally frequent ones."""
    values = frame.get_column(column).drop_nulls()
    return values.mode().sort().first() if values.len() else None


def _same(frame: pl.DataFrame, column: str, name: str, reason: str, unit: str, severity: Severity) -> list[Rule]:
    """Rule: a trial has the value that most trials of the corpus have; none where the column is empty."""
    usual = _usual(frame, column)
    if usual is None:
        return []
    kwargs = {"column": column, "value_set": [usual]}
    told = f"{reason}; most trials of the corpus have {usual:g}"
    return [Rule(name, "expect_column_values_to_be_in_set", kwargs, severity, told, f"{{value}}{unit}")]


def _sampling(frame: pl.DataFrame, gate: Gate) -> list[Rule]:
    return [
        *_same(frame, "rate", "one rate", "{record_id} is kept at {value} Hz", " Hz", "quarantine"),
        between(
            "sampled fast enough",
            "original_rate",
            gate.min_rate,
            None,
            severity="quarantine",
            reason=f"{{record_id}} was sampled at {{value}} Hz; the bands need at least {gate.min_rate:g} Hz",
            observed="{value} Hz",
        ),
        *_same(frame, "original_rate", "one original rate", "{record_id} was sampled at {value} Hz", " Hz", "warning"),
    ]


def _channels(gate: Gate) -> list[Rule]:
    return [
        _at_most(
            "missing_channels",
            gate.max_missing_channels,
            "missing channels",
            f"{{record_id}} lacks {{value}} channels of the corpus; the gate allows {gate.max_missing_channels}",
        ),
        _at_most(
            "duplicate_channels",
            gate.max_duplicate_channels,
            "channels named twice",
            "{value} channels stand twice in the file of {record_id}, and only the first of each was read; "
            f"the gate allows {gate.max_duplicate_channels}",
        ),
        _at_most(
            "flat_channels",
            gate.max_flat_channels,
            "flat channels",
            f"{{value}} of {{channels}} channels of {{record_id}} are flat; the gate allows {gate.max_flat_channels}",
        ),
    ]


def _signal(gate: Gate) -> list[Rule]:
    low, high = gate.std_uv
    return [
        _at_most(
            "nan_share",
            gate.max_nan,
            "every sample a number",
            f"{{value:.2%}} of the samples of {{record_id}} are no number; the gate allows {gate.max_nan:.2%}",
            "{value:.2%}",
        ),
        between(
            "standard deviation",
            "judged_std",
            low,
            high,
            severity="quarantine",
            reason="the channels of {record_id} have a standard deviation of {value} uV; "
            f"the gate allows {low:g} to {high:g}: another unit?",
            observed="{value} uV",
        ),
        _at_most(
            "judged_abs",
            gate.max_abs_uv,
            "largest amplitude",
            f"{{record_id}} reaches {{value}} uV; the gate allows {gate.max_abs_uv:g}",
            "{value} uV",
        ),
        _at_most(
            "saturated_share",
            gate.max_saturated,
            "saturated samples",
            "{value:.1%} of the samples of {record_id} lie at the extreme value of their channel; "
            f"the gate allows {gate.max_saturated:.1%}: amplifier at its limit?",
            "{value:.1%}",
        ),
        _at_most(
            "line_noise_share",
            gate.max_line_noise,
            "line noise",
            f"{{value:.1%}} of the power of {{record_id}} is mains hum; the gate allows {gate.max_line_noise:.1%}",
            "{value:.1%}",
        ),
        _at_most(
            "line_noise_share",
            gate.much_line_noise,
            "little line noise",
            "{value:.1%} of the power of {record_id} is mains hum; "
            f"the gate warns above {gate.much_line_noise:.1%}",
            "{value:.1%}",
            "warning",
        ),
        _at_most(
            "drift_uv",
            gate.much_drift_uv,
            "drift",
            f"a channel of {{record_id}} drifts by {{value}} uV; the gate warns above {gate.much_drift_uv:g}",
            "{value} uV",
            "warning",
        ),
    ]


def _windows(gate: Gate) -> list[Rule]:
    return [
        Rule(
            "windows stored",
            "expect_column_pair_values_to_be_equal",
            {"column_A": "stored_windows", "column_B": "windows"},
            "quarantine",
            "the store holds {stored_windows} windows of {record_id}, records.parquet says {windows}",
            "{stored_windows} windows",
        ),
        _at_most(
            "stray_windows",
            0,
            "windows within the trial",
            "{value} windows reach beyond {record_id}, and so hold samples of another trial",
            "{value} windows",
        ),
        between(
            "enough windows",
            "stored_windows",
            gate.min_windows,
            None,
            severity="quarantine",
            reason=f"{{record_id}} has {{value}} windows; the gate asks for at least {gate.min_windows}",
            observed="{value} windows",
        ),
        _at_most(
            "masked_share",
            gate.max_masked,
            "masked features",
            "{value:.1%} of the features of {record_id} are no number (flat or missing channels of a window); "
            f"the gate allows {gate.max_masked:.1%}",
            "{value:.1%}",
        ),
        _at_most(
            "artifact_share",
            gate.many_artifacts,
            "few artifacts",
            "{value:.1%} of the windows of {record_id} are flagged as artifact; "
            f"the gate warns above {gate.many_artifacts:.1%}",
            "{value:.1%}",
            "warning",
        ),
    ]


def _subjects(frame: pl.DataFrame, gate: Gate, labels: Sequence[str]) -> list[Rule]:
    found = []
    if frame["usual_trials"].count():  # the expectation would count a pair of a number and a null as unequal
        found.append(
            Rule(
                "all trials of the session",
                "expect_column_pair_values_to_be_equal",
                {"column_A": "session_trials", "column_B": "usual_trials"},
                "warning",
                "session {session} of subject {subject} has {session_trials} trials; most sessions have {usual_trials}",
                "{session_trials} trials",
            )
        )
    if labels:
        found += [
            between(
                "all classes of the subject",
                "subject_classes",
                len(labels),
                None,
                severity="warning",
                reason=f"subject {{subject}} has trials of {{value}} of the {len(labels)} classes",
                observed="{value} classes",
            ),
            _at_most(
                "subject_majority",
                gate.max_majority,
                "class balance",
                "{value:.1%} of the trials of subject {subject} are of one class; "
                f"the gate warns above {gate.max_majority:.1%}",
                "{value:.1%}",
                "warning",
            ),
        ]
    return found
