"""Algorithms A and B beside tigramite 5.2.10.1 on the series of the synthetic study: one JSON object a line.

    python benchmarks/endogenous_context.py               about 9 minutes on two cores, most of it RPCMCI's
    python benchmarks/endogenous_context.py --quick       a smoke test of ten seconds
    python benchmarks/endogenous_context.py --repeats 10  more series of each kind
    python benchmarks/endogenous_context.py --no-rpcmci   without the slowest peer: a minute or two

Each kind of series of the study has four lines, of ours and a peer on equal series:

    A, B        J-PCMCI+ with the context as an observed time-context node: one graph, scored in both contexts
    A           RPCMCI, which is not given the context but learns two regimes: their graphs are scored under the better
                of the two matchings. It gets the true number of transitions. Needs ortools and scikit-learn, which
                nothing else here does; without them the line gives the reason
    masked      PCMCI+ of the peer with all target times of other contexts masked. `equal` is true when graphs are the
                same, and p-values and values within 1e-8, except values of pairs without a link at lag 0: the peer's
                may be that of another test than its p-value

Seconds are CPU seconds a series of this process with one thread, `_wall_s` wall seconds; ours is the median of three
runs after a warm-up, the peer's is one run. Memory is the peak above the level before the call: of Python's and numpy's
allocations (tracemalloc) on the first series, null where that run would take minutes. Rates are means over series, of
both contexts together, links to the own past left out. Series that leave A, B or masking too few samples are skipped
for both sides and counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.pcmci import PEER, peak_mb, restart_with_one_thread  # noqa: E402
from stages.causal.errors import CausalDataError  # noqa: E402
from stages.causal.processes import processes  # noqa: E402
from stages.systems.endogenous_context.adaptive import Algorithm, ContextResult, discover  # noqa: E402
from stages.systems.endogenous_context.models import random_context_model  # noqa: E402
from stages.systems.endogenous_context.study import (  # noqa: E402
    COLLIDER,
    PERSISTENCES,
    PROXY,
    PROXY_MEMORY,
    RANDOM,
    TAU_MAX,
    Series,
    Task,
    score,
    tasks,
)
from stages.systems.endogenous_context.study_config import Study  # noqa: E402

ALPHA = 0.05
SEEDS = (0, 1, 2)
#: Default size: 30 repeats over three seeds.
STUDY = Study(
    **{"repeats": 10, "steps": [200, 500, 1000], "variables": [5, 6, 7, 8], "example_steps": 500},
    **{"persistence": 0.5, "density": 0.4, "alpha": ALPHA},
)
WORKERS = 2
TARGET_S = 180
#: Of RPCMCI, whose own defaults are 20 and 10.
ITERATIONS, ANNEALINGS = 4, 2
RPCMCI_REPEATS = 2
METHODS: tuple[Algorithm, ...] = ("A", "B")

Call = Callable[[], Any]
Counts = dict[str, Any]


class Timed(NamedTuple):
    """CPU and wall seconds of a call, and its result."""

    cpu_s: float
    wall_s: float
    result: Any


def timed(call: Call, repeats: int = 1) -> Timed:
    """Time a call: medians of some runs, the last result."""
    seconds = []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        result = call()
        seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
    return Timed(statistics.median(cpu for cpu, _ in seconds), statistics.median(wall for _, wall in seconds), result)


def ours(series: Series, algorithm: Algorithm) -> Call:
    """Prepare a run of ours."""
    search: dict[str, Any] = {"algorithm": algorithm, "tau_max": TAU_MAX, "pc_alpha": ALPHA}
    search |= {"names": series.names, "defined_by": series.defined_by}
    return lambda: discover(series.data_TN, series.context_T, **search)


def quietly(peer: Callable[[Series], Any], series: Series) -> Call:
    """Prepare a run of the peer without its warnings."""

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return peer(series)

    return call


def jpcmci_plus(series: Series) -> list[np.ndarray]:
    """Graph of the peer's J-PCMCI+ over the system's variables, the same for both contexts."""
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.jpcmciplus import JPCMCIplus

    n = len(series.names)
    nodes = dict.fromkeys(range(n), "system") | {n: "time_context"}
    frame = DataFrame({0: np.column_stack([series.data_TN, series.context_T])}, analysis_mode="multiple")
    search = JPCMCIplus(nodes, dataframe=frame, cond_ind_test=ParCorr(), verbosity=0)
    graph_NNL = search.run_jpcmciplus(tau_max=TAU_MAX, pc_alpha=ALPHA)["graph"][:n, :n]
    return [graph_NNL, graph_NNL]


def rpcmci(series: Series) -> tuple[list[np.ndarray], np.ndarray]:
    """Graphs of the peer's RPCMCI, one a learnt regime, and its regime at each step."""
    from sklearn.linear_model import LinearRegression
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.rpcmci import RPCMCI

    search = RPCMCI(
        DataFrame(series.data_TN), cond_ind_test=ParCorr(), prediction_model=LinearRegression(), seed=0, verbosity=-1
    )
    found = search.run_rpcmci(
        **{"num_regimes": 2, "max_transitions": int(np.count_nonzero(np.diff(series.context_T)))},
        **{"num_iterations": ITERATIONS, "max_anneal": ANNEALINGS, "n_jobs": 1},
        **{"tau_min": 0, "tau_max": TAU_MAX, "pc_alpha": ALPHA, "alpha_level": ALPHA},
    )
    if found is None:
        raise ArithmeticError("none of the annealings came to an end")
    return [found["causal_results"][regime]["graph"] for regime in range(2)], found["regimes"].argmax(axis=0)


def masked_pcmci_plus(series: Series) -> list[dict[str, np.ndarray]]:
    """PCMCI+ of the peer for each context, target times of the other masked."""
    from tigramite.data_processing import DataFrame
    from tigramite.independence_tests.parcorr import ParCorr
    from tigramite.pcmci import PCMCI

    found = []
    for level in range(2):
        mask_TN = np.repeat((series.context_T != level)[:, None], len(series.names), axis=1)
        search = PCMCI(DataFrame(series.data_TN, mask=mask_TN), ParCorr(mask_type="y"), verbosity=0)
        found.append(search.run_pcmciplus(tau_max=TAU_MAX, pc_alpha=ALPHA))
    return found


def with_graphs(result: ContextResult, graphs: Sequence[np.ndarray]) -> ContextResult:
    """Put graphs of the peer into a result of ours, so that both are scored by the same code."""
    pairs = zip(result.graphs.items(), graphs, strict=True)
    replaced = {label: replace(graph, graph_NNL=graph_NNL) for (label, graph), graph_NNL in pairs}
    return replace(result, graphs=replaced, context_links=None)


def counts(result: ContextResult, series: Series) -> Counts:
    """Counts of one series, both contexts together."""
    rows: list[dict[str, Any]] = list(score(result, series))
    summed = {name: sum(row[name] for row in rows) for name in ("hits", "true", "false", "absent", "off_kept", "off")}
    if series.model != RANDOM:
        summed["false_x_y"] = statistics.fmean(row["false_collider"] for row in rows)
    return summed


def better_matching(
    result: ContextResult, graphs: list[np.ndarray], regime_T: np.ndarray, series: Series
) -> tuple[Counts, float]:
    """Counts under the matching of regimes and contexts with more right adjacencies; share of steps learnt right."""
    both = [counts(with_graphs(result, matched), series) for matched in (graphs, graphs[::-1])]
    right = float((regime_T == series.context_T).mean())
    return max(both, key=lambda found: found["hits"] - found["false"]), max(right, 1 - right)


def rates(found: Iterable[Counts]) -> dict[str, float | None]:
    """Means over series of TPR, FPR, switched-off links kept and, where the example has it, the false X - Y."""
    series = list(found)

    def mean(numerator: str, denominator: str) -> float | None:
        shares = [row[numerator] / row[denominator] for row in series if row[denominator]]
        return round(statistics.fmean(shares), 4) if shares else None

    said = {"tpr": mean("hits", "true"), "fpr": mean("false", "absent"), "off_kept": mean("off_kept", "off")}
    false = [row["false_x_y"] for row in series if "false_x_y" in row]
    return said | ({"false_x_y": round(statistics.fmean(false), 4)} if false else {})


def is_equal(result: ContextResult, peer: list[dict[str, np.ndarray]]) -> bool:
    """Compare graphs, values and p-values of every context."""
    same = True
    for graph, theirs in zip(result.graphs.values(), peer, strict=True):
        value_NNL = np.abs(graph.value_NNL - theirs["val_matrix"])
        # Where lag 0 has no link, the peer's value may be that of another test than its p-value.
        value_NNL[:, :, 0] *= graph.graph_NNL[:, :, 0] != ""
        gap = max(value_NNL.max(), np.abs(graph.p_NNL - theirs["p_matrix"]).max())
        same &= bool((graph.graph_NNL == theirs["graph"]).all()) and bool(gap < 1e-8)
    return same


def show(name: str, work: str, mine: Sequence[Timed], peer: str | None, theirs: Sequence[Timed], **more: Any) -> None:
    """Print one line."""
    row: dict[str, Any] = {"name": name, "work": work}
    for side, runs in (("ours", mine), ("peer", theirs)):
        row |= {"peer": peer} if side == "peer" else {}
        row[f"{side}_s"] = round(statistics.fmean(run.cpu_s for run in runs), 6) if runs else None
        row[f"{side}_wall_s"] = round(statistics.fmean(run.wall_s for run in runs), 6) if runs else None
    row["ratio"] = round(row["peer_s"] / row["ours_s"], 1) if theirs else None
    print(json.dumps(row | {"ours_mb": None, "peer_mb": None, "equal": None} | more), flush=True)


def drawn(
    model: str, persistence: float, steps: int, repeats: int
) -> tuple[list[Series], dict[Algorithm, list[Timed]], int]:
    """Draw series, the first of the study's seed 0, run ours on each; and how many left a context too few samples."""
    kept: list[Series] = []
    runs: dict[Algorithm, list[Timed]] = {algorithm: [] for algorithm in get_args(Algorithm)}
    skipped = 0
    for repeat in range(repeats):
        series = Task(STUDY, SEEDS[0], model, persistence, steps, repeat).series()
        try:
            found = {algorithm: timed(ours(series, algorithm), 3) for algorithm in runs}
        except CausalDataError:
            skipped += 1
            continue
        kept.append(series)
        for algorithm, run in found.items():
            runs[algorithm].append(run)
    return kept, runs, skipped


def measure(model: str, persistence: float, steps: int, repeats: int, with_rpcmci: bool) -> None:
    """Print the lines of one kind of series."""
    kept, runs, skipped = drawn(model, persistence, steps, repeats)
    variables = "N 5-8" if model == RANDOM else f"N={4 + (model == PROXY)}"
    kind = f"{model}, persistence {persistence:g}, T={steps}, {variables}, tau_max={TAU_MAX}, alpha={ALPHA}"
    if not kept:
        show("endogenous-context", kind, [], PEER, [], reason=f"all {skipped} series leave a context too few samples")
        return
    sizes: dict[str, Any] = {"series": len(kept), "skipped": skipped}
    scored = {
        method: [counts(run.result, series) for run, series in zip(of_method, kept, strict=True)]
        for method, of_method in runs.items()
    }
    if find_spec("tigramite") is None or find_spec("joblib") is None:
        for method in METHODS:
            said = {"reason": f"{PEER} or joblib is not installed", "ours_rates": rates(scored[method])}
            show("endogenous-context", f"{method} on {kind}", runs[method], PEER, [], **sizes, **said)
        return
    joint = [timed(quietly(jpcmci_plus, series)) for series in kept]
    joint_mb = peak_mb(quietly(jpcmci_plus, kept[0]))
    joint_rates = rates(
        counts(with_graphs(mine.result, theirs.result), series)
        for mine, theirs, series in zip(runs["A"], joint, kept, strict=True)
    )
    for method in METHODS:
        show(
            "endogenous-context-jpcmci-plus",
            f"{method} on {kind}",
            runs[method],
            f"{PEER}, J-PCMCI+",
            joint,
            **sizes,
            ours_mb=peak_mb(ours(kept[0], method)),
            peer_mb=joint_mb,
            ours_rates=rates(scored[method]),
            peer_rates=joint_rates,
            reason="another method: rates instead of equality",
        )
    if with_rpcmci:
        measure_rpcmci(kind, kept[:RPCMCI_REPEATS], runs["A"][:RPCMCI_REPEATS], scored["A"][:RPCMCI_REPEATS])
    masked = [timed(quietly(masked_pcmci_plus, series)) for series in kept]
    show(
        "endogenous-context-masked",
        f"PCMCI+ masked on {kind}",
        runs["masked"],
        f"{PEER}, PCMCI+ with a mask for each context",
        masked,
        **sizes,
        ours_mb=peak_mb(ours(kept[0], "masked")),
        peer_mb=peak_mb(quietly(masked_pcmci_plus, kept[0])),
        equal=all(is_equal(mine.result, theirs.result) for mine, theirs in zip(runs["masked"], masked, strict=True)),
        ours_rates=rates(scored["masked"]),
    )


def measure_rpcmci(kind: str, kept: list[Series], runs: list[Timed], scored: list[Counts]) -> None:
    """Print the line beside RPCMCI; series on which it gives up are counted, and left out on both sides."""
    peer = f"{PEER}, RPCMCI, {ITERATIONS} iterations, {ANNEALINGS} annealings"
    done: list[tuple[Timed, Counts, Timed, Counts, float]] = []
    failures = []
    for series, run, own in zip(kept, runs, scored, strict=True):
        try:
            learnt = timed(quietly(rpcmci, series))
        except ImportError as error:
            reason = f"RPCMCI needs ortools and scikit-learn: {error}"
            show("endogenous-context-rpcmci", f"A on {kind}", runs, peer, [], reason=reason, ours_rates=rates(scored))
            return
        except Exception as error:  # the peer's own failures are of any kind
            failures.append(f"{type(error).__name__}: {error}"[:200])
            continue
        graphs, regime_T = learnt.result
        done.append((run, own, learnt, *better_matching(run.result, graphs, regime_T, series)))
    show(
        "endogenous-context-rpcmci",
        f"A on {kind}",
        [row[0] for row in done] or runs,
        peer,
        [row[2] for row in done],
        **{"series": len(done), "peer_failed": len(failures), "peer_failures": sorted(set(failures))},
        ours_rates=rates([row[1] for row in done] or scored),
        peer_rates=rates(row[3] for row in done),
        peer_steps_right=round(statistics.fmean(row[4] for row in done), 4) if done else None,
        reason="another method, contexts not given: rates instead of equality",
    )


def measure_study(study: Study, seeds: Sequence[int], workers: int) -> None:
    """Print the line of the whole study, spread over processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter()
    every = [task for seed in seeds for task in tasks(study, seed)]
    with processes(workers) as spread:
        series = sum(1 for _ in spread.map(Task.run, every))
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = {
        "name": "endogenous-context-study",
        "work": f"the whole study: seeds {list(seeds)}, {study.repeats} repeats each, {series} series, 5 methods",
        "workers": workers,
        "ours_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "ours_wall_s": round(wall, 2),
        "target_wall_s": TARGET_S,
        **{"peer": None, "peer_s": None, "ratio": None},
        "ours_mb": round(after.ru_maxrss / 1024, 1),
        **{"peer_mb": None, "equal": None},
        "reason": "no peer; memory is that of the largest process, with start and compiled code in the seconds",
    }
    print(json.dumps(row), flush=True)


def measure_growth(variables: int, steps: int, grows: str) -> None:
    """Print lines of ours on a random system with 1.6 links a variable."""
    rng = np.random.default_rng(variables)
    system = random_context_model(rng, variables=variables, persistence=0.5, density=1.6 / variables, tau_max=TAU_MAX)
    data_TN, context_T = system.simulate(rng, steps)
    nothing: frozenset[str] = frozenset()
    series = Series(RANDOM, 0.5, 0, data_TN, context_T, system.graphs, None, system.names, nothing, nothing)
    for method in METHODS:
        call = ours(series, method)
        work = f"{method} on a random system, persistence 0.5, T={steps}, N={variables}, tau_max={TAU_MAX}"
        more = {"reason": "growth of ours alone", "ours_mb": peak_mb(call)}
        show(f"endogenous-context-growth-{grows}", work, [timed(call, 5)], None, [], **more)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="A and B beside tigramite, one JSON object a line.")
    parser.add_argument("--quick", action="store_true", help="a smoke test of ten seconds")
    parser.add_argument("--repeats", type=int, default=5, help="series of each kind, of which RPCMCI gets two at most")
    parser.add_argument("--no-rpcmci", action="store_true", help="leave the slowest peer out")
    options = parser.parse_args()
    restart_with_one_thread()
    drawn(COLLIDER, 0.8, 300, 1)  # compiles
    if options.quick:
        measure(COLLIDER, 0.95, STUDY.example_steps, 1, not options.no_rpcmci)
        measure(RANDOM, 0.5, 500, 1, False)
        measure_growth(4, 500, "N")
        measure_study(STUDY.model_copy(update={"repeats": 1, "steps": [200]}), SEEDS[:1], WORKERS)
        return
    for persistence in PERSISTENCES:
        measure(COLLIDER, persistence, STUDY.example_steps, options.repeats, not options.no_rpcmci)
    measure(PROXY, PROXY_MEMORY, STUDY.example_steps, options.repeats, not options.no_rpcmci)
    for steps in STUDY.steps:
        measure(RANDOM, STUDY.persistence, steps, options.repeats, not options.no_rpcmci)
    for variables in (4, 8, 16):
        measure_growth(variables, 1000, "N")
    for steps in (500, 1000, 2000):
        measure_growth(8, steps, "T")
    measure_study(STUDY, SEEDS, WORKERS)


if __name__ == "__main__":
    main()
