"""The tables of convergence and geometry in metrics.json."""

from __future__ import annotations

from typing import Any

import numpy as np

from stages.metrics.summary import Table
from stages.systems.rna_transfer.claims import SHORT
from stages.systems.rna_transfer.comparisons import Comparison
from stages.systems.rna_transfer.estimates import over_seeds
from stages.systems.rna_transfer.optimisation import MATCHED, RESIDUAL, SHARPNESS, Optimisation
from stages.systems.rna_transfer.result_tables import BOUNDS, cells, titled
from stages.systems.rna_transfer.settings import BASELINE, ENCODERLESS, METRICS, TASKS


def convergence_table(found: Comparison, optimised: Optimisation) -> Table:
    """Updates of each arm to the random arm's level."""
    rows: list[list[Any]] = []
    for task in found.tasks:
        start = found.run(BASELINE)
        for run in found.leading_runs(task):
            if run.arm == "mfe":
                continue
            reached = optimised.reached(task, run, start, found.chances(task))
            there = len(reached.levels)
            rows.append(
                [
                    *(TASKS[task], SHORT[run.arm], METRICS[task][0], float(np.mean(reached.levels)) if there else None),
                    *(there, there - reached.never, reached.median, *reached.change),
                ]
            )
    return Table(
        title=titled(found, "Updates to the random arm's level"),
        caption="The level is chance and 90 % of the random arm's best gain over it on the validation molecules, seed "
        f"by seed; of {len(found.seeds)} seeds those count in which the random arm leaves chance. Updates are counted "
        "at the checks, so that smaller differences are not seen. Median: none where half of the seeds never reach it. "
        "More: updates more than the random arm's as a share of them, Student's interval over seeds; none where a seed "
        "never reaches the level.",
        columns=[
            *("task", "arm", "metric", "level, mean", "seeds with a level", "seeds that reach it", "updates, median"),
            *("more", "more low", "more high"),
        ],
        rows=cells(rows),
    )


def sharpness_table(found: Comparison, optimised: Optimisation) -> Table | None:
    """Sharpness of the measured arms at one training loss; None where it was not measured."""
    rows: list[list[Any]] = []
    start = found.run(BASELINE)
    for task in found.tasks:
        for run in found.leading_runs(task):
            level = over_seeds(optimised.measured(task, run, "matched_loss")).value
            if not np.isfinite(level):
                continue
            row: list[Any] = [TASKS[task], SHORT[run.arm], level]
            row.append(over_seeds(optimised.measured(task, run, "matched_step")).value)
            for measure in SHARPNESS:
                row.append(over_seeds(optimised.sharpness(task, run, measure)).value)
            ratio: list[Any] = [None] * 4
            if run != start:
                estimate, seeds = optimised.sharper(task, run, start, "sharpness")
                ratio = [*estimate, seeds]
            barriers = (over_seeds(optimised.measured(task, run, name)).value for name in BARRIERS)
            rows.append([*row, *ratio, *barriers, found.benefit(task).value if run != start else None])
    if not rows:
        return None
    return Table(
        title=titled(found, "Sharpness at one training loss"),
        caption="Sharpness falls with the loss, so that all arms of a task are taken where the loss on the same "
        "training molecules first comes down to one level, the lowest that all reach. Means over seeds; a seed counts "
        f"where the loss is within {100 * MATCHED:g} % of the level, and for the eigenvalue where the residual is at "
        f"most {100 * RESIDUAL:g} % of it. Ratio: geometric mean of the eigenvalue over the random arm's, Student's "
        "interval over seeds; below 1 is flatter. Barrier: height of the loss on the straight line to the random arm's "
        "solution, and to that of the same start with the molecules in another order.",
        columns=[
            *("task", "arm", "training loss", "update", "largest eigenvalue", "trace", "rise to the worst loss nearby"),
            *("ratio", "ratio low", "ratio high", "seeds", "barrier to random", "barrier to twin", "task's benefit"),
        ],
        rows=cells(rows),
    )


BARRIERS = ("barrier_random", "barrier_twin")


def distance_table(found: Comparison, optimised: Optimisation) -> Table | None:
    """How far each arm went from its start, in all and layer by layer; None where no encoder was trained."""
    runs = [(task, run) for task in found.tasks for run in found.leading_runs(task) if run.arm not in ENCODERLESS]
    layers = next((found_ for task, run in runs if (found_ := optimised.layers(task, run, "distance_relative"))), [])
    if not layers:
        return None
    rows: list[list[Any]] = []
    for task, run in runs:
        whole = over_seeds(optimised.measured(task, run, "distance"))
        if not np.isfinite(whole.value):
            continue
        relative = [over_seeds(optimised.measured(task, run, "distance_relative", layer)) for layer in (None, *layers)]
        rows.append([TASKS[task], SHORT[run.arm], *whole, *(each.value for each in relative)])
    return Table(
        title=titled(found, "Distance from the start"),
        caption="Norm of the change of the encoder's weights from where the arm starts to the step that validation "
        "molecules chose, Student's interval over seeds; then the same over the norm of the start, in all and by part.",
        columns=["task", "arm", "distance", *BOUNDS, "relative", *(layer.replace("_", " ") for layer in layers)],
        rows=cells(rows),
    )


def similarity_table(found: Comparison, optimised: Optimisation) -> Table | None:
    """CKA of each layer with the same layer of the start, and of pre-trained with random layers."""
    rows: list[list[Any]] = []
    layers: list[str] = []
    for task in found.tasks:
        for run in found.leading_runs(task):
            for measure, name in SIMILARITIES.items():
                matrix = optimised.similarity(task, run, measure)
                if matrix is None:
                    continue
                layers = layers or matrix[0]
                rows.append([TASKS[task], SHORT[run.arm], name, *np.diagonal(matrix[1]).tolist()])
    if not rows:
        return None
    return Table(
        title=titled(found, "Similarity of layers (linear CKA)"),
        caption="Each layer with the same layer of the other encoder on the same bases of validation molecules, mean "
        "over seeds; 1 where one is a rotation, scaling and shift of the other.",
        columns=["task", "arm", "compared", *(layer.replace("_", " ") for layer in layers)],
        rows=cells(rows),
    )


SIMILARITIES = {
    "cka_start": "after training with its own start",
    "cka_pretrained_random": "pre-trained with random initialisation",
}
