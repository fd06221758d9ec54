"""Headline and claims of the transfer study: when each counts as shown.

A difference shows where its whole interval lies on the right side of zero. A claim that some task has a property is
tested with intervals widened for the number of comparisons.
"""

from __future__ import annotations

import math
from typing import Any

from stages.metrics.summary import Claim, Headline, Verdict
from stages.systems.rna_transfer.comparisons import MAIN, Comparison, first_score
from stages.systems.rna_transfer.convergence import LEAST_GAIN
from stages.systems.rna_transfer.estimates import LEVEL, Interval, amount, judged
from stages.systems.rna_transfer.optimisation import SHARPNESS, Optimisation
from stages.systems.rna_transfer.settings import ALIGNMENT, ARMS, BASELINE, TASKS, Run

STUDY = "`python -m stages params apply study` has more"
#: Share of the benefit that the lower layers alone keep where reuse is hierarchical, at least.
KEPT = 0.5


def headline(found: Comparison) -> Headline:
    """Score of the pre-trained and fine-tuned arm beside the best baseline of the same budget."""
    task = found.tasks[0]
    arm = MAIN if found.has(task, found.run(MAIN)) else BASELINE
    value, low, high = found.estimate(task, found.run(arm))
    best = found.best(task)
    folded = found.run("mfe")
    beside = (
        f"; {ARMS['mfe']} has {found.value(task, folded):.3g}" if found.has(task, folded) else ""
    )  # fmt: skip
    molecules, families = found.counted(task)
    return Headline(
        metric=f"{first_score(task)} of new families: {TASKS[task]}, {ARMS[arm]}",
        unit="",
        value=_finite(value),
        low=_finite(low),
        high=_finite(high),
        baseline="none"
        if best is None
        else f"{ARMS[best.arm]}: the best of those without pre-training that learn from the same molecules{beside}",
        baseline_value=None if best is None else _finite(found.value(task, best)),
        records=molecules,
        groups=families,
        split_unit=f"family and {found.identity * 100:g} % sequence identity",
        seeds=len(found.seeds),
        simulated=found.simulated,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def claims(found: Comparison, optimised: Optimisation) -> list[Claim]:
    """Everything the paper claims, and whether a simple baseline is beaten at all."""
    return [
        frozen(found),
        reuse(found),
        benefits(found),
        alignment(found),
        capacity(found),
        flatter(found, optimised),
        faster(found, optimised),
        simple_baselines(found),
    ]


def frozen(found: Comparison) -> Claim:
    """Whether frozen features are worse than no pre-training in some task."""
    claim = "Frozen representations do not transfer in general: in some task they are worse than no pre-training"
    own = found.run("frozen")
    compared = [
        (task, other)
        for task in found.tasks
        for other in (found.run("random_frozen"), found.run("one_hot"))
        if found.has(task, own, other)
    ]
    if not compared:
        return _untold(claim, "frozen")
    level = 1 - (1 - LEVEL) / len(compared)
    differences = [(task, other, found.difference(task, own, other, level=level)) for task, other in compared]
    known = [difference for _, _, difference in differences if math.isfinite(difference.high)]
    verdict: Verdict = (
        "not tested" if not known else "shown" if any(each.high < 0 for each in known) else "not shown"
    )  # fmt: skip
    told = "; ".join(f"{TASKS[task]}, less {_short(other)} {amount(each, '+')}" for task, other, each in differences)
    return Claim(
        claim=claim,
        verdict=verdict,
        evidence=f"{told}. Intervals hold for all {len(compared)} comparisons together (Bonferroni); the heads are "
        "those of the other arms, and no encoder is trained",
    )


def reuse(found: Comparison) -> Claim:
    """Whether the lower layers alone keep the benefit, as hierarchical reuse has it."""
    claim = (
        f"Hierarchical reuse does not hold: the lower layers alone keep less than {100 * KEPT:g} % of the benefit, or "
        "less than the upper ones"
    )
    lower, upper, whole, start = (found.run(arm) for arm in ("lower", "upper", MAIN, BASELINE))
    tasks = [task for task in found.tasks if found.has(task, lower, upper, whole)]
    if not tasks:
        return _untold(claim, "lower and upper")
    verdicts, told = [], []
    for task in tasks:
        gains = [found.difference(task, arm, start) for arm in (whole, lower, upper)]
        told.append(
            f"{TASKS[task]}: benefit of all layers {amount(gains[0], '+')}, of the lower ones {amount(gains[1], '+')}, "
            f"of the upper ones {amount(gains[2], '+')}"
        )
        if judged(gains[0]) != "shown":
            continue
        missing = found.weighed([(KEPT, task, whole, ""), (1 - KEPT, task, start, ""), (-1.0, task, lower, "")])
        behind = found.difference(task, upper, lower)
        verdicts.append("shown" in (judged(missing), judged(behind)))
    verdict: Verdict = "not tested" if not verdicts else "shown" if all(verdicts) else "not shown"
    nothing = "" if verdicts else "No task has a benefit that could be kept. "
    return Claim(claim=claim, verdict=verdict, evidence=nothing + "; ".join(told))


def benefits(found: Comparison) -> Claim:
    """Whether pre-training helps in the task that leads."""
    task = found.tasks[0]
    claim = f"Pre-training and fine-tuning beat random initialisation with the same schedule ({TASKS[task]})"
    if not found.has(task, found.run(MAIN)):
        return _untold(claim, MAIN)
    told = [f"{first_score(task)}: {amount(found.benefit(task), '+')}"]
    told += [f"{TASKS[other]}: {amount(found.benefit(other), '+')}" for other in found.tasks[1:]]
    if found.has(task, found.run("shuffled")):
        gain = found.difference(task, found.run(MAIN), found.run("shuffled"))
        told.append(f"less shuffled weights of the same statistics, {TASKS[task]}: {amount(gain, '+')}")
    return Claim(claim=claim, verdict=judged(found.benefit(task)), evidence="; ".join(told))


def learnable(found: Comparison, task: str) -> bool:
    """Whether the random arm learns a task: its whole interval lies clearly above chance."""
    low = found.estimate(task, found.run(BASELINE)).low
    return math.isfinite(low) and low > found.chance(task) + LEAST_GAIN


def alignment(found: Comparison) -> Claim:
    """Whether aligned tasks gain more than misaligned ones."""
    claim = "The benefit is governed by alignment: aligned tasks gain, and gain more than misaligned ones"
    if not all(found.has(task, found.run(MAIN)) for task in found.tasks):
        return _untold(claim, MAIN)
    kinds = {kind: [t for t in found.tasks if ALIGNMENT[t] == kind] for kind in ("aligned", "functional", "misaligned")}
    told = [f"{TASKS[task]} ({ALIGNMENT[task]}): {amount(gap_closed(found, [task]), '+')}" for task in found.tasks]
    evidence = f"Benefit as a share of what the random arm lacks to 1: {'; '.join(told)}"
    if not kinds["aligned"] or not kinds["misaligned"]:
        return Claim(claim=claim, verdict="not tested", evidence=f"No task of one kind was trained. {evidence}")
    hard = [task for task in kinds["misaligned"] if not learnable(found, task)]
    if hard:
        score = amount(found.estimate(hard[0], found.run(BASELINE)))
        return Claim(
            claim=claim,
            verdict="not tested",
            evidence=f"The random arm does not learn {TASKS[hard[0]]} ({score}), so that it says nothing. {evidence}",
        )
    own = gap_closed(found, kinds["aligned"])
    more = gap_closed(found, kinds["aligned"], kinds["misaligned"])
    verdicts = {judged(own), judged(more)}
    verdict: Verdict = (
        "not tested" if "not tested" in verdicts else "shown" if verdicts == {"shown"} else "not shown"
    )  # fmt: skip
    return Claim(
        claim=claim,
        verdict=verdict,
        evidence=f"{evidence}. Aligned together {amount(own, '+')}, less misaligned {amount(more, '+')}",
    )


def gap_closed(found: Comparison, tasks: list[str], less: list[str] | None = None) -> Interval:
    """Benefit as a share of what the random arm lacks to 1, the mean over tasks, less the mean over others.

    The lack is taken as it was measured: the resamples are those of the benefits.
    """
    terms: list[tuple[float, str, Run, str]] = []
    for sign, some in ((1.0, tasks), (-1.0, less or [])):
        for task in some:
            lack = 1 - found.value(task, found.run(BASELINE))
            weight = sign / (len(some) * lack) if lack > 0 else math.nan
            terms += [(weight, task, found.run(MAIN), ""), (-weight, task, found.run(BASELINE), "")]
    return found.weighed(terms)


def capacity(found: Comparison) -> Claim:
    """Whether the largest size gains more than the smallest."""
    claim = "The benefit grows with capacity"
    task = found.tasks[0]
    sizes = sorted(found.train.sizes, key=found.parameters)
    if len(sizes) < 2:
        return Claim(claim=claim, verdict="not tested", evidence=f"One size was trained; {STUDY}.")
    common = set.intersection(*(set(found.lengths(size)) for size in sizes))
    if not common or MAIN not in found.train.arms:
        return Claim(claim=claim, verdict="not tested", evidence="No pre-training length is common to all sizes.")
    tokens = max(common)
    told = [
        f"{size} ({found.parameters(size)} weights) {amount(found.benefit(task, size, tokens), '+')}" for size in sizes
    ]
    small, large = sizes[0], sizes[-1]
    more = found.weighed(
        [
            *((1.0, task, found.run(MAIN, large, tokens), ""), (-1.0, task, found.run(BASELINE, large), "")),
            *((-1.0, task, found.run(MAIN, small, tokens), ""), (1.0, task, found.run(BASELINE, small), "")),
        ]
    )
    return Claim(
        claim=claim,
        verdict=judged(more),
        evidence=f"{TASKS[task]}, {tokens} bases of pre-training, benefit of {'; '.join(told)}; largest less smallest "
        f"{amount(more, '+')}",
    )


def flatter(found: Comparison, optimised: Optimisation) -> Claim:
    """Whether the fine-tuned solution is flatter than the random arm's at one training loss."""
    claim = "Pre-training leads to flatter minima at the same training loss"
    tasks = [task for task in found.tasks if task in found.train.geometry.tasks]
    arms = found.train.geometry.arms
    if not tasks or MAIN not in arms or BASELINE not in arms:
        return Claim(claim=claim, verdict="not tested", evidence=f"Sharpness was not measured at this size; {STUDY}.")
    verdicts: list[Verdict] = []
    told = []
    for task in tasks:
        said = []
        for measure, name in SHARPNESS.items():
            ratio, seeds = optimised.sharper(task, found.run(MAIN), found.run(BASELINE), measure)
            said.append(f"{name} {amount(ratio)} ({seeds} of {len(found.seeds)} seeds)")
            if measure == "sharpness":
                known = math.isfinite(ratio.high)
                verdicts.append("not tested" if not known else "shown" if ratio.high < 1 else "not shown")
        told.append(f"{TASKS[task]} (benefit {amount(found.benefit(task), '+')}): {', '.join(said)}")
    verdict: Verdict = (
        "not tested" if set(verdicts) == {"not tested"} else "shown" if set(verdicts) == {"shown"} else "not shown"
    )  # fmt: skip
    return Claim(
        claim=claim,
        verdict=verdict,
        evidence="Ratios to the random arm, below 1 where flatter, intervals over seeds; the eigenvalue decides, in "
        f"every task. {'; '.join(told)}",
    )


def faster(found: Comparison, optimised: Optimisation) -> Claim:
    """Whether the fine-tuned arm reaches the random arm's level in fewer updates, in aligned tasks."""
    claim = "Pre-training makes convergence faster in aligned tasks"
    tasks = [task for task in found.tasks if ALIGNMENT[task] == "aligned" and found.has(task, found.run(MAIN))]
    if not tasks:
        return _untold(claim, MAIN)
    verdicts: list[Verdict] = []
    told = []
    for task in tasks:
        reached = optimised.reached(task, found.run(MAIN), found.run(BASELINE), found.chances(task))
        if not reached.levels:
            told.append(f"{TASKS[task]}: the random arm never leaves chance")
            continue
        if reached.never:
            verdicts.append("not shown")
            told.append(f"{TASKS[task]}: never reached in {reached.never} of {len(reached.steps)} seeds")
            continue
        high = reached.change.high
        verdicts.append("not tested" if not math.isfinite(high) else "shown" if high < 0 else "not shown")
        told.append(f"{TASKS[task]}: {amount(_percent(reached.change), '+')} % updates")
    verdict: Verdict = (
        "not tested"
        if not verdicts or set(verdicts) == {"not tested"}
        else "shown"
        if set(verdicts) == {"shown"}
        else "not shown"
    )
    return Claim(
        claim=claim,
        verdict=verdict,
        evidence="Updates to 90 % of the random arm's gain over chance, more than those of the random arm, intervals "
        f"over seeds: {'; '.join(told)}",
    )


def _percent(found: Interval) -> Interval:
    return Interval(*(100 * value for value in found))


def simple_baselines(found: Comparison) -> Claim:
    """Whether the fine-tuned arm beats the head on one-hot bases and folding, where they can answer."""
    claim = "No simple baseline is better: one-hot bases with the same head, folding without training"
    own = found.run(MAIN)
    compared = [
        (task, other)
        for task in found.tasks
        for other in (found.run("one_hot"), found.run("mfe"))
        if found.has(task, own, other)
    ]
    if not compared:
        return _untold(claim, f"{MAIN}, one_hot and mfe")
    differences = [(task, other, found.difference(task, own, other)) for task, other in compared]
    verdicts = {judged(difference) for _, _, difference in differences}
    verdict: Verdict = (
        "shown" if verdicts == {"shown"} else "not tested" if verdicts == {"not tested"} else "not shown"
    )  # fmt: skip
    told = "; ".join(f"{TASKS[task]}, less {_short(other)} {amount(each, '+')}" for task, other, each in differences)
    return Claim(claim=claim, verdict=verdict, evidence=told)


def _short(run: Run) -> str:
    return SHORT[run.arm]


#: Arms in a word or two, for evidence, tables of differences and pictures.
SHORT = {
    "random": "random",
    "fine_tuned": "fine-tuned",
    "frozen": "frozen",
    "random_frozen": "random frozen",
    "lower": "lower layers",
    "upper": "upper layers",
    "shuffled": "shuffled",
    "one_hot": "one-hot",
    "mfe": "MFE",
}


def _untold(claim: str, arms: str) -> Claim:
    return Claim(claim=claim, verdict="not tested", evidence=f"Without the arms {arms}; {STUDY}.")


def figures(found: Comparison) -> dict[str, Any]:
    """Flat figures for ``dvc metrics``: the leading score of every task and arm."""
    return {
        "score": {
            task: {run.arm: _finite(found.value(task, run)) for run in found.leading_runs(task)} for task in found.tasks
        },
        "benefit": {task: _finite(found.benefit(task).value) for task in found.tasks},
    }
