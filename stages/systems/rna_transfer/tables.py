"""The tables of one seed: pre-training, histories, predictions, geometry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from stages.systems.rna_transfer.settings import Run
from stages.systems.rna_transfer.tasks import Answer, Example

Schema = dict[str, pl.DataType | type[pl.DataType]]
RUN: Schema = {"model": pl.String, "tokens": pl.Int64}
PRETRAINING: Schema = RUN | {
    "step": pl.Int64,
    "seen": pl.Int64,
    "loss": pl.Float64,
    "validation_loss": pl.Float64,
    "learning_rate": pl.Float64,
}
ARM: Schema = RUN | {"task": pl.String, "arm": pl.String}
HISTORY: Schema = ARM | {
    "step": pl.Int64,
    "epoch": pl.Float64,
    "seen": pl.Int64,
    "loss": pl.Float64,
    "probe_loss": pl.Float64,
    "validation_metric": pl.Float64,
    "threshold": pl.Float64,
    "chosen": pl.Boolean,
}
PREDICTIONS: Schema = ARM | {
    "record_id": pl.String,
    "pairs_left": pl.List(pl.Int32),
    "pairs_right": pl.List(pl.Int32),
    "scores": pl.List(pl.Float32),
}
GEOMETRY: Schema = ARM | {
    "measure": pl.String,
    "layer": pl.String,
    "other_layer": pl.String,
    "value": pl.Float64,
    "error": pl.Float64,
    "converged": pl.Boolean,
    "note": pl.String,
}


def prediction_rows(
    run: Run, task: str, examples: Sequence[Example], answers: Iterable[Answer | None]
) -> list[dict[str, Any]]:
    """A row a molecule; null where nothing was answered."""
    rows = []
    for example, answer in zip(examples, answers, strict=True):
        pairs = None if answer is None else answer.pairs
        rows.append(
            run._asdict()
            | {
                "task": task,
                "record_id": example.record_id,
                "pairs_left": None if pairs is None else pairs[:, 0].tolist(),
                "pairs_right": None if pairs is None else pairs[:, 1].tolist(),
                "scores": None if answer is None else answer.score.tolist(),
            }
        )
    return rows


def pretraining_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Losses of pre-training."""
    return pl.DataFrame(rows, schema=PRETRAINING)


def history_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Checks of every arm."""
    return pl.DataFrame(rows, schema=HISTORY)


def predictions_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Answers of every arm to every test molecule."""
    return pl.DataFrame(rows, schema=PREDICTIONS)


def geometry_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Distances, similarities, sharpness."""
    return pl.DataFrame(rows, schema=GEOMETRY)
