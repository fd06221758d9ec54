"""The study: every method on simulated populations that no setting was chosen on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stages.runtime import random_numbers
from stages.systems.mixemo.settings import MAIN, TRANSDUCTIVE, Kind, Train

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.systems.mixemo.windows import Fold, Windows

#: Of how many source subjects one chooses the weights.
VALIDATION_SHARE = 0.25


def count(train: Train) -> int:
    """Number of trainings that :func:`study_rows` does for one seed."""
    study = train.study
    curve = len(study.subsets) if "coupled" in study.kinds else 0
    return study.populations * (len(study.kinds) * len(study.methods) + curve)


def study_rows(train: Train, seed: int) -> Iterator[list[dict[str, Any]]]:
    """Scores of each training: seed, population, kind, method, subsets, subject, accuracy, macro_f1.

    ``subsets`` is null but on the curve of the number of subsets, where only MixEmo is trained.
    """
    study = train.study
    for number in range(study.populations):
        for kind in study.kinds:
            windows, folds = population(train, kind, seed, number)
            for method in study.methods:
                yield _rows(windows, folds, method, None, train, seed, number, kind)
            if kind == "coupled":
                for subsets in study.subsets:
                    yield _rows(windows, folds, MAIN, subsets, train, seed, number, kind)


def population(train: Train, kind: Kind, seed: int, number: int) -> tuple[Windows, list[Fold]]:
    """One population of a seed and its folds; each has random numbers of its own."""
    from stages.systems.mixemo.populations import simulate
    from stages.systems.mixemo.windows import leave_one_out

    study = train.study
    rng = random_numbers(seed, "population", kind, str(number))
    windows = simulate(
        kind,
        rng,
        name=f"{kind}-{number}",
        subjects=study.subjects,
        trials=study.trials,
        windows=study.windows,
    )
    return windows, leave_one_out(windows, max(1, round(VALIDATION_SHARE * (study.subjects - 1))), rng)


def _rows(
    windows: Windows,
    folds: list[Fold],
    method: str,
    subsets: int | None,
    train: Train,
    seed: int,
    number: int,
    kind: Kind,
) -> list[dict[str, Any]]:
    from stages.systems.mixemo.fitting import fit, predict
    from stages.systems.mixemo.model import Layout
    from stages.systems.mixemo.scores import accuracy, macro_f1
    from stages.systems.mixemo.windows import standardised_by_subject

    mixing = train.mixing if subsets is None else train.mixing.model_copy(update={"subsets": subsets})
    layout = Layout(windows.shape, len(windows.classes), train.backbone.model_copy(update={"kind": "mlp"}))
    fitted = fit(
        windows,
        folds,
        method,
        layout=layout,
        training=train.training,
        baselines=train.baselines,
        mixing=mixing,
        seed=seed,
    )
    tested = standardised_by_subject(windows) if method in TRANSDUCTIVE else windows
    rows = []
    for fold, log_p_NY in zip(folds, predict(fitted.weights, layout, tested, folds), strict=True):
        label_N: NDArray[np.int64] = windows.label_N[fold.test]
        predicted_N = log_p_NY.argmax(axis=1)
        rows.append(
            {
                **{"seed": seed, "population": number, "kind": kind, "method": method, "subsets": subsets},
                "subject": fold.held_out,
                "accuracy": accuracy(label_N, predicted_N),
                "macro_f1": macro_f1(label_N, predicted_N),
            }
        )
    return rows
