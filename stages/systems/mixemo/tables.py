"""The tables, claims and figures of MixEmo's metrics.json on the corpora."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from stages.metrics.summary import Claim, Headline, Table, Verdict
from stages.runtime import random_numbers
from stages.systems.mixemo.scores import interval, over_seeds, paired
from stages.systems.mixemo.settings import BAR, BASELINES, MAIN, METHODS, READINGS, REFERENCE, TRANSDUCTIVE

UNIT = ["subject"]
#: What the budget counts, for captions.
COUNTED = {
    "forward": "forward samples, moved windows and passes for the partition included",
    "real": "windows, moved ones on top of them",
}


def rng_of(*names: str) -> np.random.Generator:
    """Random numbers of one interval: a table's order does not move another's."""
    return random_numbers(0, "mixemo", *names)


def best_baseline(scores: pl.DataFrame) -> str:
    """The baseline with the highest accuracy on the held-out subjects: chosen with hindsight, to its favour."""
    there = scores.filter(pl.col("method").is_in(list(BASELINES)))
    return str(there.group_by("method").agg(pl.col("accuracy").mean()).sort("accuracy", "method")["method"][-1])


def headline(scores: pl.DataFrame, corpus: str, about: dict[str, Any], best: str, seeds: int) -> Headline:
    """MixEmo's accuracy on the leading corpus, beside the best baseline's."""
    mine = scores.filter(pl.col("corpus") == corpus)
    value, low, high = interval(mine, UNIT, MAIN, rng_of("headline"))
    baseline, _, _ = interval(mine, UNIT, best, rng_of("headline"))
    return Headline(
        metric=f"accuracy over windows of unseen {about['group_noun']}s, {corpus}",
        unit="1",
        value=value,
        low=low,
        high=high,
        baseline=f"{BASELINES[best]}, the best baseline, same backbone, folds and budget",
        baseline_value=baseline,
        records=about["trials"],
        groups=len(about["subjects"]),
        split_unit=about["group_noun"],
        seeds=seeds,
        simulated=about["simulated"],
    )


def judged(low: float, expected_gain: bool = True) -> Verdict:
    """Shown where the interval of a gain lies above 0; not tested where there is no interval."""
    if math.isnan(low):
        return "not tested"
    return "shown" if (low > 0) == expected_gain else "not shown"


def told(difference: tuple[float, float, float, float]) -> str:
    """A paired difference in words."""
    mean, low, high, p = difference
    if math.isnan(low):
        return f"{mean:+.3f}, one group: no interval"
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}], p = {p:.3f}"


def claims(scores: pl.DataFrame, corpora: dict[str, Any]) -> list[Claim]:
    """Whether MixEmo generalises better than ERM and than mixup on each corpus."""
    said = []
    for corpus, about in corpora.items():
        mine = scores.filter(pl.col("corpus") == corpus)
        noun, made = about["group_noun"], ", simulated" if about["simulated"] else ""
        for other in (REFERENCE, BAR):
            if other not in set(mine["method"]):
                continue
            difference = paired(mine, UNIT, MAIN, other, rng_of(corpus, other))
            accuracies = ", ".join(f"{METHODS[m]} {_mean(mine, m):.3f}" for m in (MAIN, other))
            said.append(
                Claim(
                    claim=f"MixEmo generalises better to unseen {noun}s than {METHODS[other]} ({corpus}{made})",
                    verdict=judged(difference[1]),
                    evidence=f"{accuracies}; paired over {len(about['subjects'])} {noun}s {told(difference)}",
                )
            )
    return said


def _mean(scores: pl.DataFrame, method: str) -> float:
    return float(over_seeds(scores.filter(pl.col("method") == method), UNIT)["accuracy"].to_numpy().mean())


def methods_table(scores: pl.DataFrame, corpus: str, about: dict[str, Any], config: dict[str, Any]) -> Table:
    """All methods on one corpus, transductive ones last."""
    mine = scores.filter(pl.col("corpus") == corpus)
    noun = about["group_noun"]
    methods = sorted(config["methods"], key=lambda method: method in TRANSDUCTIVE)
    rows: list[list[str | float | int | bool | None]] = []
    for method in methods:
        per_subject = over_seeds(mine.filter(pl.col("method") == method), UNIT)
        mean, low, high = interval(mine, UNIT, method, rng_of(corpus, method))
        gain: tuple[float, ...] = (math.nan,) * 4
        if method != REFERENCE:
            gain = paired(mine, UNIT, method, REFERENCE, rng_of(corpus, method, "gain"))
        kind = "baseline" if method in BASELINES else "reading" if method in READINGS else "ablation"
        rows.append(
            [
                METHODS[method],
                "transductive" if method in TRANSDUCTIVE else kind,
                *(mean, low, high),
                float(per_subject["macro_f1"].to_numpy().mean()),
                float(per_subject["accuracy"].to_numpy().min()),
                float(per_subject["trial_accuracy"].to_numpy().mean()),
                *gain,
            ]
        )
    training = config["training"]
    return Table(
        title=f"{corpus}{' (simulated)' if about['simulated'] else ''}: methods at one budget",
        caption=f"Leave-one-{noun}-out: {len(about['subjects'])} {noun}s, {about['trials']} trials, {about['windows']} "
        f"windows, classes {', '.join(about['classes'])}. Accuracy over windows, mean over {noun}s and seeds "
        f"{', '.join(map(str, sorted(mine['seed'].unique())))}, 95 % bootstrap intervals over {noun}s; a trial is "
        "predicted by the mean of its windows. Gain: over ERM, paired; p of its signs. Same backbone, start, batches "
        f"and budget: {training['steps'] * training['batch']} {COUNTED[training['counted']]}. "
        f"Weights chosen by validation {noun}s. A transductive row has seen the held-out "
        f"{noun}'s windows (not their labels) and is not comparable.",
        columns=[
            *("method", "kind", "accuracy", "low", "high", "macro-F1", f"worst {noun}", "accuracy over trials"),
            *("gain", "gain low", "gain high", "p"),
        ],
        rows=[[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows],
    )


def subjects_table(scores: pl.DataFrame, corpus: str, about: dict[str, Any]) -> Table:
    """Accuracy of every held-out subject under every method."""
    mine = scores.filter(pl.col("corpus") == corpus)
    methods = [method for method in METHODS if method in set(mine["method"])]
    found = {
        method: dict(over_seeds(mine.filter(pl.col("method") == method), UNIT).select("subject", "accuracy").rows())
        for method in methods
    }
    sizes = dict(mine.group_by("subject").agg(pl.col("windows").first()).rows())
    return Table(
        title=f"{corpus}{' (simulated)' if about['simulated'] else ''}: accuracy by {about['group_noun']}",
        caption=f"Accuracy over the windows of the {about['group_noun']} that is held out, mean over seeds.",
        columns=[about["group_noun"], "windows", *(METHODS[method] for method in methods)],
        rows=[[name, sizes[name], *(found[method][name] for method in methods)] for name in about["subjects"]],
    )


def training_table(history: pl.DataFrame, corpora: dict[str, Any]) -> Table:
    """How much of the budget each method used, and when its weights were chosen."""
    keys = ["corpus", "method", "seed", "fold"]
    last = history.group_by(keys).agg(pl.col("samples").max(), pl.col("step").max())
    chosen = history.filter("chosen").select(*keys, pl.col("step").alias("chosen_step"))
    joined = last.join(chosen, on=keys, how="left")
    told_rows = joined.group_by("corpus", "method").agg(
        pl.col("samples").max(), pl.col("step").max(), pl.col("chosen_step").median()
    )
    order = {method: place for place, method in enumerate(METHODS)}
    places = {corpus: place for place, corpus in enumerate(corpora)}
    rows = sorted(told_rows.iter_rows(), key=lambda row: (places[row[0]], order[row[1]]))
    return Table(
        title="Budget used",
        caption="Forward samples and updates of each fold, and the update (median over folds and seeds) whose weights "
        "the validation subjects chose. Every look is in history.parquet of the models.",
        columns=["corpus", "method", "forward samples", "updates", "chosen at update"],
        rows=[[corpus, METHODS[method], *rest] for corpus, method, *rest in rows],
    )


def figures(scores: pl.DataFrame, corpora: dict[str, Any]) -> dict[str, Any]:
    """Flat figures for ``dvc metrics``: mean accuracy of every method on every corpus."""
    found: dict[str, Any] = {}
    for corpus in corpora:
        mine = scores.filter(pl.col("corpus") == corpus)
        found[corpus] = {method: _mean(mine, method) for method in METHODS if method in set(mine["method"])}
    return {"accuracy": found}
