"""The tables of scores in metrics.json: arms, differences, strata, families, sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from stages.metrics.summary import Table
from stages.systems.rna_transfer.answers import EXTERNAL, FAMILIES, Mask
from stages.systems.rna_transfer.claims import SHORT, gap_closed
from stages.systems.rna_transfer.comparisons import COUNTS, MAIN, Comparison, first_score
from stages.systems.rna_transfer.estimates import Interval
from stages.systems.rna_transfer.scored import SCORES
from stages.systems.rna_transfer.settings import ALIGNMENT, ARMS, BASELINE, TASKS, Run

#: Most families that a table shows; above, those with the largest loss and gain.
SHOWN_FAMILIES = 60
EDGE_FAMILIES = 15
BOUNDS = ("low", "high")


def cells(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Cells of a table with None for NaN."""
    return [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]


def titled(found: Comparison, text: str) -> str:
    """A title that says where a set is simulated."""
    return f"{text} (simulated)" if found.simulated else text


def in_title(task: str) -> str:
    """A task with a capital letter."""
    return TASKS[task][0].upper() + TASKS[task][1:]


def counted(found: Comparison, task: str, chosen: Mask | None = None) -> str:
    """What was tested, in words."""
    molecules, families = found.counted(task, chosen)
    return f"{molecules} test molecules of {families} families"


def arms_table(found: Comparison, task: str) -> Table:
    """Every arm of one task: its two averages, and its difference to the random arm."""
    names = list(SCORES[task].items())[:2]
    rows: list[list[Any]] = []
    for run in found.leading_runs(task):
        estimates = [found.estimate(task, run, score) for score, _ in names]
        gain: list[Any] = [None] * 3
        if run.arm != BASELINE:
            gain = list(found.difference(task, run, found.run(BASELINE)))
        rows.append([ARMS[run.arm], *estimates[0], *estimates[1], *gain])
    learnt = found.learnt["tasks"][task]
    chance = found.chance(task)
    unanswered = _unanswered(found, task)
    unpaired = " (an answer that never pairs, right where nothing pairs)" if task == "base_pairs" else ""
    return Table(
        title=titled(found, f"{in_title(task)}: arms"),
        caption=f"{counted(found, task)}; no family of theirs, and no molecule of {100 * found.identity:g} % identity, "
        f"is in pre-training or training. Learnt from {learnt['molecules']['train']} molecules of "
        f"{learnt['families']['train']} families, chosen by {learnt['molecules']['validation']} of others. Model "
        f"{found.lead}, {found.run(MAIN).tokens} bases of pre-training; {len(found.seeds)} seeds. 95 % bootstrap "
        f"intervals over families and seeds. More: less the random arm, paired. Without knowledge{unpaired}: "
        f"{chance:.3g}.{unanswered}",
        columns=["arm", *(name for _, text in names for name in (text, *BOUNDS)), "more", "more low", "more high"],
        rows=cells(rows),
    )


def _unanswered(found: Comparison, task: str) -> str:
    run = found.run("mfe")
    if not found.has(task, run):
        return ""
    mine = found.answered[task]
    missing = mine.molecules.filter(mine.where(FAMILIES) & ~mine.answered(run))["record_id"].n_unique()
    return f" {missing} molecules were not folded; differences to folding leave them out." if missing else ""


def scores_table(found: Comparison) -> Table:
    """All scores of every task and arm."""
    rows = [
        [TASKS[task], SHORT[run.arm], name, *found.estimate(task, run, score)]
        for task in found.tasks
        for run in found.leading_runs(task)
        for score, name in SCORES[task].items()
    ]
    return Table(
        title=titled(found, "All scores"),
        caption="Means over molecules and scores of all pairs or bases together are named apart: the first weigh a "
        "short molecule as much as a long one. Test molecules of families; intervals over families and seeds.",
        columns=["task", "arm", "score", "value", *BOUNDS],
        rows=cells(rows),
    )


def differences_table(found: Comparison) -> Table:
    """Paired differences of the arms that count for each other."""
    rows: list[list[Any]] = []
    for task in found.tasks:
        for arm, other in COUNTS:
            one, two = found.run(arm), found.run(other)
            if not found.has(task, one, two):
                continue
            for score, name in list(SCORES[task].items())[:2]:
                more = found.difference(task, one, two, score)
                rows.append([TASKS[task], SHORT[arm], SHORT[other], name, *more, _wins(more, arm, other)])
    return Table(
        title=titled(found, "Paired differences"),
        caption="Score of the first arm less that of the second over the same molecules and seeds; positive where the "
        "first is better. Better: whose score is higher by the whole 95 % interval over families and seeds.",
        columns=["task", "arm", "less", "score", "difference", *BOUNDS, "better"],
        rows=cells(rows),
    )


def _wins(more: Interval, arm: str, other: str) -> str:
    if not math.isfinite(more.low):
        return "no interval"
    return SHORT[arm] if more.low > 0 else SHORT[other] if more.high < 0 else "open"


def strata_of(found: Comparison, task: str, lengths: Sequence[int], identities: Sequence[float]) -> dict[str, Mask]:
    """Test molecules by name of the stratum: evidence, length class, identity class, and those without a family."""
    mine = found.answered[task]
    family_N = mine.where(FAMILIES)
    made = {"all of families": family_N}
    for evidence in sorted(mine.molecules["evidence"].drop_nulls().unique().to_list()):
        is_so_N = (mine.molecules["evidence"] == evidence).fill_null(value=False).to_numpy()
        made[f"structure: {evidence}"] = family_N & is_so_N
    length_N = mine.molecules["length"].to_numpy()
    for name, low, high in classes_of([int(border) for border in lengths], "bases"):
        made[name] = family_N & (length_N >= low) & (length_N < high)
    near_N = mine.molecules["identity"].cast(pl.Float64).fill_null(0.0).to_numpy()
    for name, low, high in classes_of([100 * border for border in identities], "% identity"):
        made[name] = family_N & (100 * near_N >= low) & (100 * near_N < high)
    made["without a family (PDB)"] = mine.where(EXTERNAL)
    return {name: chosen for name, chosen in made.items() if chosen.any()}


def classes_of(borders: Sequence[float], unit: str) -> list[tuple[str, float, float]]:
    """Half-open classes between borders: name, first value, first value beyond."""
    edges = [-math.inf, *sorted(borders), math.inf]
    found = []
    for low, high in pairwise(edges):
        if math.isinf(low) and math.isinf(high):
            continue
        if math.isinf(low):
            name = f"below {high:g} {unit}"
        elif math.isinf(high):
            name = f"{low:g} {unit} and more"
        else:
            name = f"{low:g} to below {high:g} {unit}"
        found.append((name, low, high))
    return found


def strata_table(found: Comparison, task: str, lengths: Sequence[int], identities: Sequence[float]) -> Table:
    """The leading score by stratum, and the benefit there."""
    runs = found.leading_runs(task)
    rows: list[list[Any]] = []
    for name, chosen in strata_of(found, task, lengths, identities).items():
        values = [found.value(task, run, chosen=chosen) for run in runs]
        gain = found.difference(task, found.run(MAIN), found.run(BASELINE), chosen=chosen)
        rows.append([name, *found.counted(task, chosen), *values, *gain])
    return Table(
        title=titled(found, f"{in_title(task)}: strata"),
        caption=f"{first_score(task)}. Structure: what the family's consensus rests on, as Rfam says. Identity: with "
        "the nearest molecule of the training part; unrelated molecules reach 60 %. A molecule without a family "
        "counts as a family of its own and is in no other row; kin of it may be in training. Benefit: fine-tuned less "
        "random, paired.",
        columns=[
            *("stratum", "molecules", "families", *(SHORT[run.arm] for run in runs)),
            *("benefit", "benefit low", "benefit high"),
        ],
        rows=cells(rows),
    )


def family_table(found: Comparison, task: str) -> Table:
    """The leading score of every test family, in the order of the benefit."""
    runs = found.leading_runs(task)
    mine = found.answered[task]
    rows: list[list[Any]] = []
    for group in sorted(mine.molecules.filter(mine.where(FAMILIES))["group"].unique().to_list()):
        is_so_N = (mine.molecules["group"] == group).to_numpy()
        about = mine.molecules.filter(is_so_N).row(0, named=True)
        values = [found.value(task, run, chosen=is_so_N) for run in runs]
        main, start = (found.value(task, found.run(arm), chosen=is_so_N) for arm in (MAIN, BASELINE))
        rows.append([group, about["rna_type"], found.counted(task, is_so_N)[0], *values, main - start])
    rows.sort(key=lambda row: (math.isnan(row[-1]), row[-1], row[0]))
    many = len(rows) > SHOWN_FAMILIES
    shown = rows[:EDGE_FAMILIES] + rows[-EDGE_FAMILIES:] if many else rows
    return Table(
        title=titled(found, f"{in_title(task)}: test families"),
        caption=f"{first_score(task)}, mean over {len(found.seeds)} seeds, in the order of the benefit"
        + (f": the {EDGE_FAMILIES} lowest and highest of {len(rows)}." if many else "."),
        columns=["family", "type", "molecules", *(SHORT[run.arm] for run in runs), "benefit"],
        rows=cells(shown),
    )


def axis_table(found: Comparison) -> Table | None:
    """The benefit of every size and pre-training length; None where there is one of each."""
    if sum(len(found.lengths(model)) for model in found.models) < 2:
        return None
    rows: list[list[Any]] = []
    for task in found.tasks:
        for model in found.models:
            start = found.run(BASELINE, model)
            for tokens in found.lengths(model):
                for arm in (MAIN, "frozen", "lower", "upper", "shuffled"):
                    run = Run(model, tokens, arm)
                    if not found.has(task, run, start):
                        continue
                    more = found.difference(task, run, start)
                    rows.append(
                        [
                            *(TASKS[task], model, found.parameters(model), tokens if tokens >= 0 else None),
                            *(SHORT[arm], found.value(task, run), found.value(task, start), *more),
                        ]
                    )
    return Table(
        title=titled(found, "Sizes and pre-training lengths"),
        caption="The leading score of each arm, that of random initialisation of the same size, and the paired "
        "difference with its interval over families and seeds. A local model does not say what it was trained on.",
        columns=["task", "model", "weights", "bases of pre-training", "arm", "score", "random", "more", *BOUNDS],
        rows=cells(rows),
    )


def alignment_table(found: Comparison) -> Table | None:
    """The benefit of every task on one scale; None without the fine-tuned arm."""
    if not all(found.has(task, found.run(MAIN)) for task in found.tasks):
        return None
    rows: list[list[Any]] = []
    for task in found.tasks:
        start = found.run(BASELINE)
        own, chance = found.estimate(task, start), found.chance(task)
        rows.append([TASKS[task], ALIGNMENT[task], first_score(task), chance, *own, *found.benefit(task)])
        rows[-1] += list(gap_closed(found, [task]))
    return Table(
        title=titled(found, "Benefit by alignment"),
        caption="Random: what the random arm reaches, beside an answer without knowledge; a task that it does not "
        "learn says nothing of a benefit. Share: the benefit over what the random arm lacks to 1.",
        columns=[
            *("task", "alignment", "score", "without knowledge", "random", "random low", "random high"),
            *("benefit", "benefit low", "benefit high", "share", "share low", "share high"),
        ],
        rows=cells(rows),
    )


def molecules_table(found: Comparison) -> Table:
    """What each task was learnt from, first seed."""
    rows: list[list[Any]] = []
    for task in found.tasks:
        about = found.learnt["tasks"][task]
        parts = [about[what][part] for part in ("train", "validation", "test") for what in ("molecules", "families")]
        left_out = ", ".join(f"{n} {why.replace('_', ' ')}" for why, n in sorted(about["left_out"].items()) if n)
        heads = ", ".join(f"{name} {n}" for name, n in sorted(about["head_parameters"].items()))
        classes = None if about["classes"] is None else len(about["classes"])
        rows.append([TASKS[task], *parts, about["molecules"].get("external", 0), classes, left_out or None, heads])
    columns = [f"{part} {what}" for part in ("training", "validation", "test") for what in ("molecules", "families")]
    return Table(
        title=titled(found, "Molecules of the tasks"),
        caption="First seed. Families take turns when molecules are drawn. Left out: of all downstream molecules.",
        columns=["task", *columns, "without a family", "types", "left out", "weights of the head"],
        rows=rows,
    )


def pretraining_table(found: Comparison, pretraining: pl.DataFrame) -> Table:
    """Losses at the end of every pre-training run."""
    rows: list[list[Any]] = []
    order = {model: place for place, model in enumerate(found.models)}
    runs = pretraining.partition_by("model", "tokens", as_dict=True)
    for model, tokens in sorted(runs, key=lambda name: (order[name[0]], name[1])):
        run = runs[model, tokens]
        last = run.sort("step").group_by("seed", maintain_order=True).last()
        known = run.drop_nulls("validation_loss").sort("step").group_by("seed", maintain_order=True).last()
        values = [_mean(last["loss"]), _mean(known["validation_loss"])]
        rows.append([model, found.parameters(str(model)), tokens, int(last["seen"].max()), *values])  # type: ignore[arg-type]
    corpus = found.learnt["corpus"]
    return Table(
        title=titled(found, "Pre-training"),
        caption=f"Masked language modelling on {corpus['molecules']} molecules ({corpus['bases']} bases) of "
        f"{corpus['families']} families; mean over seeds, the learning rate ends at 0. New families: "
        f"{corpus['validation_molecules']} molecules of {corpus['validation_families']} families that no part of "
        f"training has. The entropy of single bases is {corpus['unigram_loss']:.4g} nats: a loss at it has learnt "
        "nothing but their shares.",
        columns=["model", "weights", "bases wanted", "bases seen", "training loss, nats", "loss on new families, nats"],
        rows=cells(rows),
    )


def _mean(values: pl.Series) -> float:
    known = values.drop_nulls().to_numpy()
    return float(np.mean(known)) if len(known) else math.nan
