"""``train mixemo@SEED``: every method on every corpus, all folds at once, and the study on simulated populations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts
from stages.params import StageParams, bound
from stages.runtime import progress
from stages.systems.mixemo.settings import MAIN, Train

if TYPE_CHECKING:
    import polars as pl

    from stages.systems.mixemo.fitting import Fitted
    from stages.systems.mixemo.windows import Fold, Windows


class Params(StageParams):
    """Params of ``train-mixemo``."""

    train: Train = bound("systems.mixemo.train")


def run(params: Params, *, name: str, key: str) -> None:
    """Train and write weights, history, the subsets of one fold, and the scores of the study."""
    import polars as pl

    from stages.systems.mixemo.corpus import chosen_corpora
    from stages.systems.mixemo.study import count, study_rows

    seed, train = int(key), params.train
    with artifacts.atomic(artifacts.model(name, seed)) as draft:
        draft.mkdir()
        corpora: dict[str, Any] = {}
        history: list[dict[str, Any]] = []
        prototypes: list[pl.DataFrame] = []
        for corpus in chosen_corpora(train.corpora):
            learnt = train_corpus(draft / "weights" / corpus, corpus, train, seed)
            corpora[corpus], rows, subsets = learnt
            history += rows
            prototypes += [] if subsets is None else [subsets]
        total = count(train)
        study = [row for rows in progress(study_rows(train, seed), "study", total=total, unit="fits") for row in rows]
        artifacts.write_json(draft / "config.json", train.model_dump() | {"corpora": list(corpora), "learnt": corpora})
        artifacts.write_table(draft / "history.parquet", pl.DataFrame(history))
        artifacts.write_table(draft / "prototypes.parquet", pl.concat(prototypes))
        artifacts.write_table(draft / "study.parquet", pl.DataFrame(study, schema_overrides={"subsets": pl.Int64}))


def train_corpus(
    folder: Path, corpus: str, train: Train, seed: int
) -> tuple[dict[str, Any], list[dict[str, Any]], pl.DataFrame | None]:
    """Train every method on one corpus and write its weights.

    Returns
    -------
    described, history, prototypes
        What was learnt from; a row a method, fold and look at the validation subjects; the subsets of the first fold.
    """
    from safetensors.torch import save

    from stages.systems.mixemo.corpus import read_windows
    from stages.systems.mixemo.fitting import fit
    from stages.systems.mixemo.model import Layout

    windows, folds = read_windows(corpus, signals=train.backbone.kind == "conv")
    layout = Layout(windows.shape, len(windows.classes), train.backbone)
    folder.mkdir(parents=True)
    history, prototypes = [], None
    for method in progress(train.methods, corpus, unit="methods"):
        fitted = fit(
            windows,
            folds,
            method,
            layout=layout,
            training=train.training,
            baselines=train.baselines,
            mixing=train.mixing,
            seed=seed,
        )
        kept = {name: value.cpu().contiguous() for name, value in fitted.weights.items()}
        (folder / f"{method}.safetensors").write_bytes(save(kept))
        history += [{"corpus": corpus, "method": method} | row for row in fitted.history]
        if method == MAIN:
            prototypes = first_fold(windows, folds, fitted)
    return describe(windows, folds), history, prototypes


def describe(windows: Windows, folds: list[Fold]) -> dict[str, Any]:
    """What a corpus gave to learn from."""
    return {
        "classes": windows.classes,
        "subjects": [fold.held_out for fold in folds],
        "trials": len(set(windows.trial_N.tolist())),
        "windows": len(windows.label_N),
        "shape": windows.shape,
        "simulated": windows.simulated,
        "group_noun": windows.group_noun,
    }


def first_fold(windows: Windows, folds: list[Fold], fitted: Fitted) -> pl.DataFrame | None:
    """Subset and leading two components of each training window of the first fold, or None without subsets."""
    import numpy as np
    import polars as pl

    if fitted.partition is None:
        return None
    mine, component = folds[0].train, fitted.partition.component[0]
    second = component[:, 1] if component.shape[1] > 1 else np.zeros(len(component), np.float32)
    return pl.DataFrame(
        {
            "corpus": [windows.corpus] * len(mine),
            "held_out": [folds[0].held_out] * len(mine),
            "subject": [windows.subjects[place] for place in windows.subject_N[mine]],
            "record_id": [windows.records[place] for place in windows.trial_N[mine]],
            "class": [windows.classes[place] for place in windows.label_N[mine]],
            "subset": fitted.partition.subset[0],
            "first": component[:, 0],
            "second": second,
        }
    )
