"""MixEmo and its baselines on real subjects, beside torcheeg's DGCNN, and what they cost: one JSON object a line.

    python benchmarks/mixemo.py                     all of it
    python benchmarks/mixemo.py --time              10 subjects x 6 methods x 3 seeds on the simulated corpus, alone
    python benchmarks/mixemo.py --only uci          the table of evaluate on uci_alcoholism, 20 real subjects
    python benchmarks/mixemo.py --only peer --peers FOLDER
    python benchmarks/mixemo.py --markdown          and the tables at the end, as docs/benchmarks.md has them
    python benchmarks/mixemo.py --quick             a smoke test: one seed, few updates

`--peers FOLDER` holds torcheeg: `pip install --no-deps --target FOLDER torcheeg==1.1.3`. Settings are those of
params.yaml. `cpu_s` is CPU time of training all folds with all seeds, on one thread; `load` is the load average.

uci_alcoholism (../shared/data/eeg, no part of the project) is written as a BIDS folder of float32 BrainVision files, a
recording for each subject and an event for each trial of 1 s, and goes through `stages ingest` and `stages validate`
with the filters, features, limits and splits of params.yaml: the gate quarantines the trial that stands twice and those
with a flat channel. Channels X, Y (eyes) and nd are no EEG by channels.tsv. A trial is one window, so that there is
nothing to smooth, and each trial is filtered alone.

Its label belongs to the subject. A held-out subject has one class: its accuracy is the recall of that class, and as ten
subjects have each class, the mean over subjects is the balanced accuracy. Macro-F1 of one subject has no meaning there;
it is that of all 20 together, mean over seeds. `subjects_right` is the share of subjects of whom the mean of their
windows' probabilities is right. Chance is *below* .5: the class of the held-out subject is the rarer one among the
other 19, and what a method learns of how common the classes are counts against it. The lines `...-balanced` leave that
out: a subject of the other class is put aside with each held-out one, and two pairs choose the weights.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.corpora import uci_alcoholism  # noqa: E402
from benchmarks.peers import dgcnn  # noqa: E402
from stages.params import PARAMS_FILE, load_params  # noqa: E402
from stages.systems.mixemo.corpus import read_windows  # noqa: E402
from stages.systems.mixemo.fitting import fit, predict  # noqa: E402
from stages.systems.mixemo.model import Layout  # noqa: E402
from stages.systems.mixemo.predictions import prediction_table  # noqa: E402
from stages.systems.mixemo.scores import interval, macro_f1, over_seeds, paired, subject_scores  # noqa: E402
from stages.systems.mixemo.settings import BASELINES, MAIN, METHODS, REFERENCE, TRANSDUCTIVE, Train  # noqa: E402
from stages.systems.mixemo.tables import UNIT, rng_of  # noqa: E402
from stages.systems.mixemo.train import Params  # noqa: E402
from stages.systems.mixemo.windows import Fold, Windows, standardised_by_subject  # noqa: E402

SIMULATED, REAL = "sim-seed", uci_alcoholism.KEY
SIX = [*BASELINES, MAIN]
AIM_S = 180
#: Learning rates of the peer, as multiples of that of all methods.
RATES = (1, 10)

LogP = list[NDArray[np.float32]]


@dataclass(frozen=True)
class Corpus:
    """Windows and folds of one corpus."""

    key: str
    windows: Windows
    folds: list[Fold]

    @property
    def by_subject(self) -> bool:
        """Whether the label is a property of the subject."""
        of, label = self.windows.subject_N, self.windows.label_N
        return all(len(np.unique(label[of == subject])) == 1 for subject in np.unique(of))


@dataclass(frozen=True)
class Result:
    """Log class probabilities of the test windows of each fold, by seed, and the CPU seconds of training."""

    method: str
    told: str
    cpu_s: float
    log_p: dict[int, LogP]


@dataclass(frozen=True)
class Plan:
    """What to do, with which settings and seeds; the peer's name and class, or why there is none."""

    only: frozenset[str]
    train: Train
    seeds: list[int]
    profile: str
    peer: tuple[str, Any] | str

    @property
    def beside(self) -> bool:
        """Whether the peer is trained."""
        return "peer" in self.only and not isinstance(self.peer, str)

    def work(self, corpus: Corpus) -> str:
        """What the lines of a corpus are about."""
        size = f"{len(corpus.folds)} subjects held out, {len(corpus.windows.label_N)} windows"
        return f"{size}, settings {self.profile}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=("time", "uci", "peer"), default=("time", "uci", "peer"))
    parser.add_argument("--time", action="store_true", help="the same as --only time")
    parser.add_argument("--peers", type=Path, help="folder of the package torcheeg")
    parser.add_argument("--markdown", action="store_true", help="print the tables at the end")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    plan = planned(options)
    if isinstance(plan.peer, str) and "peer" in plan.only:
        report(name="mixemo-peer", peer=None, peer_s=None, reason=plan.peer)
    tables: list[str] = []
    for key, measure, part in ((SIMULATED, simulated, "time"), (REAL, real, "uci")):
        if part in plan.only or plan.beside:
            with opened(key) as corpus:
                if isinstance(corpus, str):
                    report(name=f"mixemo-{key}", reason=corpus)
                else:
                    tables += [markdown(lines) for lines in measure(corpus, plan)]
    if options.markdown:
        print("\n\n".join(tables))


def planned(options: argparse.Namespace) -> Plan:
    """Settings of params.yaml, few of them in a smoke test."""
    train, tree = Params.read(file=ROOT / PARAMS_FILE).train, load_params(ROOT / PARAMS_FILE)
    only = frozenset({"time"} if options.time else options.only)
    plan = Plan(only, train, list(tree["seeds"]), str(tree["profile"]), dgcnn.load(options.peers))
    if not options.quick:
        return plan
    few = train.training.model_copy(update={"steps": 40, "warmup": 20, "check": 10})
    return replace(plan, train=train.model_copy(update={"training": few}), seeds=plan.seeds[:1], profile="quick")


def simulated(corpus: Corpus, plan: Plan) -> list[list[dict[str, Any]]]:
    """What training costs, and the peer beside it."""
    methods = SIX if "time" in plan.only else [REFERENCE, MAIN]
    load, begin = os.getloadavg()[0], time.perf_counter()
    results = [ours(corpus, method, plan) for method in methods]
    wall, cpu = time.perf_counter() - begin, sum(result.cpu_s for result in results)
    if "time" in plan.only:
        work = f"{len(methods)} methods x {len(plan.seeds)} seeds on one thread; {plan.work(corpus)}"
        report(
            name="mixemo-time", work=work, ours_s=round(wall, 1), ours_cpu_s=round(cpu, 1), aim_s=AIM_S, peer=None,
            peer_s=None, ratio=None, load=round(load, 2),
        )  # fmt: skip
    return [told(corpus, [*results, *theirs(corpus, plan)], plan)]


def real(corpus: Corpus, plan: Plan) -> list[list[dict[str, Any]]]:
    """The table of evaluate on real subjects, with the anchor and the peer; and the same with balanced folds."""
    signals, _ = read_windows(REAL, signals=True)
    methods = plan.train.methods if "uci" in plan.only else [REFERENCE, MAIN]
    results = [ours(corpus, method, plan) for method in methods]
    tables = [told(corpus, [*results, log_spectra(corpus, signals), *theirs(corpus, plan)], plan)]
    if "uci" in plan.only:
        even = replace(corpus, folds=uci_alcoholism.balanced(corpus.windows, np.random.default_rng(0)))
        results = [ours(even, method, plan) for method in methods]
        tables.append(told(even, [*results, log_spectra(even, signals)], plan, "-balanced"))
        work = "logistic regression on log spectra, two subjects of each class held out, 20 draws of 5 groups"
        report(name=f"mixemo-{REAL}-anchor", work=work, **rounded(uci_alcoholism.anchor(signals)))
    return tables


def told(corpus: Corpus, results: Sequence[Result], plan: Plan, suffix: str = "") -> list[dict[str, Any]]:
    """Print and return a line for each method, and print those of the comparison with the peer."""
    lines = scored(corpus, results)
    for line in lines:
        name = f"mixemo-{corpus.key}{suffix}"
        report(name=name, work=plan.work(corpus), simulated=corpus.windows.simulated, **line)
    if any(result.method.startswith("dgcnn") for result in results):
        compare(corpus, plan.work(corpus), results)
    return lines


def ours(corpus: Corpus, method: str, plan: Plan) -> Result:
    """Train a method of the project on all folds at once."""
    windows, train = corpus.windows, plan.train
    layout = Layout(windows.shape, len(windows.classes), train.backbone)
    settings: dict[str, Any] = {"training": train.training, "baselines": train.baselines, "mixing": train.mixing}
    tested = standardised_by_subject(windows) if method in TRANSDUCTIVE else windows
    log_p, cpu = {}, 0.0
    for seed in plan.seeds:
        begin = time.process_time()
        fitted = fit(windows, corpus.folds, method, layout=layout, seed=seed, **settings)
        cpu += time.process_time() - begin
        log_p[seed] = predict(fitted.weights, layout, tested, corpus.folds)
    return Result(method, METHODS[method], cpu, log_p)


def theirs(corpus: Corpus, plan: Plan) -> list[Result]:
    """Train the peer, where there is one, under the same split, batches, budget and choice of weights."""
    if not plan.beside or isinstance(plan.peer, str):
        return []
    (name, kind), windows, training = plan.peer, corpus.windows, plan.train.training
    layout = Layout(windows.shape, len(windows.classes), plan.train.backbone)
    results = []
    for rate in (training.learning_rate * times for times in RATES):
        begin = time.process_time()
        log_p = {
            seed: dgcnn.fit_predict(kind, windows, corpus.folds, layout, training, seed, rate) for seed in plan.seeds
        }
        cpu = time.process_time() - begin
        results.append(Result(f"dgcnn_{rate:g}", f"{name}, learning rate {rate:g}", cpu, log_p))
    return results


def log_spectra(corpus: Corpus, signals: Windows) -> Result:
    """The anchor under the same folds; it has nothing to choose, and learns from the validation subjects too."""
    begin = time.process_time()
    x_ND = uci_alcoholism.log_spectra(signals)
    log_p = [
        uci_alcoholism.logistic_regression(x_ND, signals.label_N, np.union1d(fold.train, fold.validation), fold.test)
        for fold in corpus.folds
    ]
    return Result("log_spectra", "logistic regression on log spectra", time.process_time() - begin, {0: log_p})


def scored(corpus: Corpus, results: Sequence[Result]) -> list[dict[str, Any]]:
    """Scores of each method as in the table of evaluate, with intervals over subjects and the gain over ERM."""
    windows, folds, lines = corpus.windows, corpus.folds, []
    scores = subject_scores(pl.concat([predictions(corpus, result) for result in results]))
    for result in results:
        mine = scores.filter(pl.col("method") == result.method)
        by_subject = over_seeds(mine, UNIT)
        mean, low, high = interval(scores, UNIT, result.method, rng_of(corpus.key, result.method))
        each = by_subject["accuracy"].to_numpy()
        line: dict[str, Any] = {"method": result.told, "accuracy": mean, "low": low, "high": high}
        if corpus.by_subject:
            line |= one_class(windows, folds, result)
            line |= {"sd": float(each.std(ddof=1))}
        else:
            line |= {"macro_f1": float(by_subject["macro_f1"].to_numpy().mean())}
            line |= {"trial_accuracy": float(by_subject["trial_accuracy"].to_numpy().mean())}
        line["worst"] = float(each.min())
        if result.method != REFERENCE:
            gain = paired(scores, UNIT, result.method, REFERENCE, rng_of(corpus.key, result.method, "gain"))
            line |= dict(zip(("gain", "gain_low", "gain_high", "p"), gain, strict=True))
        lines.append(rounded(line) | {"seeds": len(result.log_p), "cpu_s": round(result.cpu_s, 2)})
    return lines


def predictions(corpus: Corpus, result: Result) -> pl.DataFrame:
    """A row a test window, of all seeds."""
    parts = [
        prediction_table(corpus.windows, corpus.folds, log_p).with_columns(
            corpus=pl.lit(corpus.key), method=pl.lit(result.method), seed=pl.lit(seed)
        )
        for seed, log_p in result.log_p.items()
    ]
    return pl.concat(parts)


def one_class(windows: Windows, folds: Sequence[Fold], result: Result) -> dict[str, Any]:
    """What the accuracies of subjects of one class do not say: pooled macro-F1, recalls, subjects that are right."""
    label = np.concatenate([windows.label_N[fold.test] for fold in folds])
    own = np.array([windows.label_N[fold.test][0] for fold in folds])
    f1, right, recall = [], [], []
    for log_p in result.log_p.values():
        f1.append(macro_f1(label, np.concatenate(log_p).argmax(axis=1)))
        right.append(np.mean([np.exp(each).mean(axis=0).argmax() for each in log_p] == own))
        each_right = np.array([np.mean(each.argmax(axis=1) == y) for each, y in zip(log_p, own, strict=True)])
        recall.append([each_right[own == y].mean() for y in range(len(windows.classes))])
    mean = np.mean(recall, axis=0)
    by_class = {f"recall_{name}": float(mean[y]) for y, name in enumerate(windows.classes)}
    return {"macro_f1": float(np.mean(f1)), "subjects_right": float(np.mean(right)), **by_class}


def compare(corpus: Corpus, work: str, results: Sequence[Result]) -> None:
    """Ours less the peer at its better learning rate, chosen with hindsight to its favour, paired over subjects."""
    scores = subject_scores(pl.concat([predictions(corpus, result) for result in results]))
    mean = dict(scores.group_by("method").agg(pl.col("accuracy").mean()).iter_rows())
    peer = max((result for result in results if result.method.startswith("dgcnn")), key=lambda one: mean[one.method])
    for method in (REFERENCE, MAIN):
        mine = next(result for result in results if result.method == method)
        gain = paired(scores, UNIT, method, peer.method, rng_of(corpus.key, method, "peer"))
        line = dict(zip(("difference", "low", "high", "p"), gain, strict=True))
        line |= {"accuracy": mean[method], "peer_accuracy": mean[peer.method]}
        report(
            name=f"mixemo-peer-{corpus.key}", work=f"{work}; {METHODS[method]}", ours_s=round(mine.cpu_s, 2),
            peer=peer.told, peer_s=round(peer.cpu_s, 2), ratio=round(peer.cpu_s / mine.cpu_s, 2), ours_mb=None,
            peer_mb=None, equal=None, **rounded(line),
        )  # fmt: skip


@contextlib.contextmanager
def opened(key: str) -> Iterator[Corpus | str]:
    """A corpus as the gate accepts it, in whose workspace the block runs; why not, where there is none."""
    if key == SIMULATED:
        with contextlib.chdir(ROOT):
            if not Path("data/ingested/eeg", key).is_dir():
                yield f"{key} was not ingested: run `dvc repro validate-eeg`"
                return
            yield Corpus(key, *read_windows(key, signals=False))
    elif not uci_alcoholism.PARQUET.is_file():
        yield f"no {os.path.relpath(uci_alcoholism.PARQUET, ROOT)}"
    else:
        with uci_alcoholism.workspace() as found:
            report(name=f"mixemo-{key}-gate", work="trials through ingest and validate", **found)
            yield Corpus(key, *read_windows(key, signals=False))


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    def short(value: Any) -> Any:
        return (None if math.isnan(value) else round(float(value), 4)) if isinstance(value, float) else value

    return {name: short(value) for name, value in line.items()}


def report(**fields: Any) -> None:
    print(json.dumps(fields, ensure_ascii=False), flush=True)


def markdown(lines: Sequence[dict[str, Any]]) -> str:
    """The lines of one table in Markdown."""
    extra: dict[str, Callable[[dict[str, Any]], str]] = {"over trials": lambda one: f"{one['trial_accuracy']:.3f}"}
    if "subjects_right" in lines[0]:
        recalls = [name for name in lines[0] if name.startswith("recall_")]
        extra = {
            " / ".join(name.removeprefix("recall_") for name in recalls): lambda one: " / ".join(
                f"{one[name]:.2f}" for name in recalls
            ),
            "subjects right": lambda one: f"{one['subjects_right']:.2f}",
        }
    names = ["method", "accuracy", *extra, "macro-F1", "worst subject", "gain over ERM", "p", "CPU s"]
    rows = [f"| {' | '.join(names)} |", f"|---|{'---:|' * (len(names) - 1)}"]
    for one in lines:
        gain, p = "", ""
        if "gain" in one:
            gain, p = (
                f"{round(one['gain'], 3) + 0.0:+.3f} [{one['gain_low']:.3f}, {one['gain_high']:.3f}]",
                f"{one['p']:.2f}",
            )
        cells = [one["method"], f"{one['accuracy']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"]
        cells += [tell(one) for tell in extra.values()]
        cells += [f"{one['macro_f1']:.3f}", f"{one['worst']:.2f}", gain, p, f"{one['cpu_s']:.1f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
