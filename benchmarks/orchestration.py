"""`python -m flows repro` beside `dvc repro`, Snakemake and Kedro's runner, on the same graphs: one JSON object a line.

    python benchmarks/orchestration.py                    all of it, about 25 minutes, most of them asleep
    python benchmarks/orchestration.py --only idle plan   some of it
    python benchmarks/orchestration.py --quick            a smoke test with short sleeps and small graphs
    python benchmarks/orchestration.py --peers FOLDER     where the commands snakemake and kedro lie (default: PATH)

The graphs are layered: `width` stages in each layer, each with two deps in the layer above, so that `jobs` that divide
the width give an ideal schedule of layers * width / jobs * seconds. Every tool starts one process a stage which sleeps
and writes its name, and all outs are compared (`equal`). `*_s` is wall time, `*_cpu_s` user and system time of the
whole process tree, processes that outlive their parents included (this process is their reaper). `*_mb` is the peak of
the tool's main process. `load` is the load average before the line: above 1 on two cores, take the CPU columns and not
the wall times. Short measurements are medians, the sides by turns; those of minutes are single.

Snakemake and Kedro are never in this project's environment: `pip install snakemake kedro` into one of their own.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
DVC = [str(BIN / "dvc")]
OURS = [sys.executable, "-m", "flows", "repro"]
PR_SET_CHILD_SUBREAPER = 36
QUIET = {
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "KEDRO_DISABLE_TELEMETRY": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


@dataclass(frozen=True)
class Spent:
    """What a command took: wall seconds, CPU seconds of its tree, MB of its main process."""

    wall: float
    cpu: float
    mb: float


@dataclass(frozen=True)
class Graph:
    """Layers of stages; all stages of a kind sleep equally long."""

    layers: int
    width: int
    seconds: float

    @property
    def stages(self) -> int:
        """Number of stages."""
        return self.layers * self.width

    def ideal(self, jobs: int) -> float:
        """Seconds that no schedule can beat."""
        return self.layers * -(-self.width // jobs) * self.seconds

    def deps(self) -> Iterator[tuple[str, list[str]]]:
        """Each stage's name with the names of those above it; outs are called as their stages, in out/."""
        for layer in range(self.layers):
            for place in range(self.width):
                above = {f"s{layer - 1:03}_{(place + step) % self.width}" for step in (0, 1)} if layer else set()
                yield f"s{layer:03}_{place}", sorted(above)

    def command(self, name: str) -> str:
        """Shell line of a stage."""
        sleep = f"sleep {self.seconds:g} && " if self.seconds else ""
        return f"{sleep}echo {name} > out/{name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers", type=Path, help="folder of the commands snakemake and kedro")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ.update(QUIET)
    os.environ["PYTHONPATH"] = str(ROOT)
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PREFECT_HOME"] = str(Path(scratch) / "prefect")
        os.environ["BRAID_LEASES"] = str(Path(scratch) / "leases")
        # Prefect's database is made once for a user, not once a run: not measured.
        run([*OURS, "--jobs", "1"], dvc_workspace(Path(scratch) / "warm", Graph(1, 1, 0)))
        for part in options.only:
            PARTS[part](Path(scratch) / part, options.quick, options.peers)


def sleeping(scratch: Path, quick: bool, peers: Path | None) -> None:
    """Points 1 and 2: wall time over the ideal schedule, Prefect's start-up included."""
    small = Graph(2, 4, 0.2)
    with running_server() as address:
        servers = {"temporary": {}, "running": {"PREFECT_API_URL": address}}
        for graph, jobs in ((small, 2), (small, 4)) if quick else ((Graph(5, 8, 5), 2), (Graph(5, 8, 30), 8)):
            base, ideal, load = scratch / f"jobs-{jobs}", graph.ideal(jobs), os.getloadavg()[0]
            work = f"{graph.stages} stages, width {graph.width}, each {graph.seconds:g} s asleep, {jobs} jobs"
            mine = {
                server: run([*OURS, "--jobs", str(jobs)], dvc_workspace(base / server, graph), environment)
                for server, environment in servers.items()
            }
            for peer, start in PEERS.items():
                at = base / peer.replace(" ", "-")
                reason = f"serial: {graph.stages * graph.seconds:g} s asleep at least" if jobs > 4 else None
                theirs = None
                if peer != "dvc repro" or not reason:
                    theirs, reason = start(at, graph, jobs, peers)
                for server, ours in mine.items():
                    fields: dict[str, Any] = {"ideal_s": ideal, "ours_over_ideal": round(ours.wall / ideal, 3)}
                    if theirs:
                        fields["peer_over_ideal"] = round(theirs.wall / ideal, 3)
                        fields["equal"] = outs(base / server) == outs(at)
                    words = f"{work}, {server} Prefect server"
                    report("sleeping", words, ours, peer, theirs, load=load, reason=reason, target=1.15, **fields)


def idle(scratch: Path, quick: bool, peers: Path | None) -> None:
    """Point 3: nothing to do, beside `dvc status`."""
    graph = Graph(2, 4, 0) if quick else Graph(10, 8, 0)
    at = dvc_workspace(scratch, graph)
    run([*OURS, "--jobs", "2"], at)
    load = os.getloadavg()[0]
    ours, theirs = by_turns(1 if quick else 7, lambda: run(OURS, at), lambda: run([*DVC, "status"], at))
    fields = {"ours_over_peer": round(ours.wall / theirs.wall, 2), "cpu_over_peer": round(ours.cpu / theirs.cpu, 2)}
    report("idle", f"nothing to do on {graph.stages} stages", ours, "dvc status", theirs, load=load, target=2, **fields)


def each(scratch: Path, quick: bool, peers: Path | None) -> None:
    """Point 4: what a stage costs beyond its command: CPU of all stages less that of one, in the same graph."""
    graph = Graph(2, 4, 0) if quick else Graph(10, 8, 0)
    with running_server() as address:
        kinds: dict[str, tuple[list[str], dict[str, str]]] = {
            "flows, temporary server": ([*OURS, "--jobs", "2"], {}),
            "flows, running server": ([*OURS, "--jobs", "2"], {"PREFECT_API_URL": address}),
            "dvc repro": ([*DVC, "repro"], {}),
        }
        load = os.getloadavg()[0]
        found: dict[str, tuple[Spent, float]] = {}
        last = list(graph.deps())[-1][0]
        for kind, (words, environment) in kinds.items():
            at = dvc_workspace(scratch / kind.replace(" ", "-"), graph)
            first, slopes = None, []
            for _ in range(1 if quick else 3):
                change_source(at)
                whole = run(words, at, environment)
                first = first or whole
                change_command(at, graph, last)
                one = run(words, at, environment)
                slopes.append((whole.cpu - one.cpu) / (graph.stages - 1))
            assert first is not None
            found[kind] = first, statistics.median(slopes)
    peer, peer_each = found["dvc repro"]
    for kind in list(kinds)[:2]:
        ours, ours_each = found[kind]
        fields = {"ours_each_cpu_s": round(ours_each, 4), "peer_each_cpu_s": round(peer_each, 4)}
        counted = " (its own CPU not counted)" if "running" in kind else ""
        work = f"{graph.stages} stages of `echo`, each run; {kind}{counted}"
        equal = outs(scratch / kind.replace(" ", "-")) == outs(scratch / "dvc-repro")
        report("each-stage", work, ours, "dvc repro", peer, load=load, equal=equal, target=0.6, **fields)


def plan(scratch: Path, quick: bool, peers: Path | None) -> None:
    """Point 5: a large graph, nothing run yet and all run; why each stage would run is part of it."""
    graph = Graph(5, 8, 0) if quick else Graph(125, 8, 0)
    at = dvc_workspace(scratch, graph)
    for state in ("never run", "up to date"):
        if state == "up to date":
            for name, _ in graph.deps():
                (at / "out" / name).write_text(f"{name}\n")
            run([*DVC, "commit", "-f", "-q"], at)
        load = os.getloadavg()[0]
        script = (
            "from pathlib import Path; from flows.plan import in_order; from flows.workspace import opened\n"
            "with opened(Path.cwd()) as workspace:\n"
            "    all(bool(workspace.changes(name)) is %s for name in in_order(workspace)) or exit(2)"
            % (state == "never run")
        )
        sides = [sys.executable, "-c", script], [*DVC, "status", "-q"]
        ours, theirs = by_turns(1 if quick else 3, *(partial(run, words, at, ok=(0, 1)) for words in sides))
        report("plan", f"planning {graph.stages} stages, {state}", ours, "dvc status", theirs, load=load, target_s=10)


def start(scratch: Path, quick: bool, peers: Path | None) -> None:
    """Point 6: Prefect's start-up, paid once a run with the temporary server."""
    graph = Graph(1, 1, 0)
    at = dvc_workspace(scratch, graph)

    def one(words: list[str], environment: dict[str, str] | None = None) -> Spent:
        change_command(at, graph, "s000_0")
        return run(words, at, environment)

    with running_server() as address:
        load = os.getloadavg()[0]
        temporary, running, peer = by_turns(
            1 if quick else 5,
            lambda: one([*OURS, "--jobs", "1"]),
            lambda: one([*OURS, "--jobs", "1"], {"PREFECT_API_URL": address}),
            lambda: one([*DVC, "repro"]),
        )
    for words, ours in (("temporary", temporary), ("running", running)):
        report("start-up", f"one stage of `echo`, {words} Prefect server", ours, "dvc repro", peer, load=load)


PARTS: dict[str, Callable[[Path, bool, Path | None], None]] = {
    part.__name__: part for part in (idle, plan, start, each, sleeping)
}


def run(words: list[str], at: Path, environment: dict[str, str] | None = None, ok: tuple[int, ...] = (0,)) -> Spent:
    """Run a command to its end, and its orphans to theirs."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    known = set(psutil.Process().children())
    process = subprocess.Popen(
        words, cwd=at, env=os.environ | (environment or {}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    wall = time.perf_counter() - begin
    if process.returncode not in ok:
        sys.exit(f"{' '.join(words)} exited with {process.returncode}:\n{output[-3000:]}")
    for orphan in set(psutil.Process().children()) - known:
        with suppress(ChildProcessError):
            os.waitpid(orphan.pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(wall, cpu, usage.ru_maxrss / 1024)


def by_turns(turns: int, *sides: Callable[[], Spent]) -> list[Spent]:
    """Medians of several turns in which each side runs once."""
    spent: list[list[Spent]] = [[] for _ in sides]
    for _ in range(turns):
        for index, side in enumerate(sides):
            spent[index].append(side())
    return [
        Spent(*(statistics.median(getattr(one, field) for one in side) for field in ("wall", "cpu", "mb")))
        for side in spent
    ]


@contextmanager
def running_server() -> Iterator[str]:
    """Prefect's server as it runs for days; yields the address of its API."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    address = f"http://127.0.0.1:{port}/api"
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            with suppress(OSError), urlopen(f"{address}/health", timeout=5):
                break
            time.sleep(0.5)
        else:
            sys.exit("Prefect's server did not start within two minutes")
        yield address
    finally:
        server.terminate()
        server.wait()


def dvc_workspace(at: Path, graph: Graph) -> Path:
    (at / "out").mkdir(parents=True)
    lines = ["stages:"]
    for name, above in graph.deps():
        deps = ", ".join(["source", *(f"out/{one}" for one in above)])
        lines.append(f"  {name}:\n    cmd: {graph.command(name)}\n    deps: [{deps}]\n    outs: [out/{name}]")
    (at / "dvc.yaml").write_text("\n".join(lines) + "\n")
    (at / "source").write_text("0\n")
    for words in (["git", "init", "-q"], [*DVC, "init", "-q"], [*DVC, "config", "core.analytics", "false"]):
        run(words, at)
    return at


def change_source(at: Path) -> None:
    """Every stage must run: all depend on this file; its content was never there before."""
    (at / "source").write_text(f"{time.time_ns()}\n")


def change_command(at: Path, graph: Graph, name: str) -> None:
    """That stage must run, and no other: its out stays the same."""
    file = at / "dvc.yaml"
    changed = f"{graph.command(name)} && true {time.time_ns()}"
    lines = [f"    cmd: {changed}" if f"echo {name} >" in line else line for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines) + "\n")


def outs(at: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted((at / "out").iterdir()) if not file.name.startswith(".")}


Started = tuple[Spent | None, str | None]


def dvc_repro(at: Path, graph: Graph, jobs: int, peers: Path | None) -> Started:
    return run([*DVC, "repro"], dvc_workspace(at, graph)), None


def snakemake(at: Path, graph: Graph, jobs: int, peers: Path | None) -> Started:
    command = shutil.which("snakemake", path=peers and str(peers))
    if not command:
        return None, "snakemake is not installed (--peers FOLDER)"
    (at / "out").mkdir(parents=True)
    last = [f"out/{name}" for name, _ in list(graph.deps())[-graph.width :]]
    rules = [f"rule all:\n    input: {json.dumps(last)}"]
    for name, above in graph.deps():
        deps = json.dumps([f"out/{one}" for one in above])
        rules.append(
            f"rule {name}:\n    input: {deps}\n    output: 'out/{name}'\n    shell: {json.dumps(graph.command(name))}"
        )
    (at / "Snakefile").write_text("\n".join(rules) + "\n")
    return run([command, "--cores", str(jobs), "--quiet", "all"], at, {"XDG_CACHE_HOME": str(at / "cache")}), None


KEDRO = """
import subprocess, sys
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Pipeline, node
from kedro.runner import ThreadRunner
def stage(command):
    def work(*above):
        subprocess.run(command, shell=True, check=True)
        return command
    return work
graph, jobs = GRAPH, JOBS
nodes = [node(stage(command), above or None, name, name=f"run_{name}") for name, above, command in graph]
names = [name for name, _, _ in graph]
ThreadRunner(max_workers=jobs).run(Pipeline(nodes), DataCatalog({name: MemoryDataset() for name in names}))
"""


def kedro(at: Path, graph: Graph, jobs: int, peers: Path | None) -> Started:
    command = shutil.which("kedro", path=peers and str(peers))
    if not command:
        return None, "kedro is not installed (--peers FOLDER)"
    (at / "out").mkdir(parents=True)
    stages = [(name, above, graph.command(name)) for name, above in graph.deps()]
    (at / "flow.py").write_text(KEDRO.replace("GRAPH", repr(stages)).replace("JOBS", str(jobs)))
    return run([str(Path(command).parent / "python"), "flow.py"], at, {"PYTHONPATH": ""}), None


PEERS: dict[str, Callable[[Path, Graph, int, Path | None], Started]] = {
    "dvc repro": dvc_repro,
    "snakemake": snakemake,
    "kedro ThreadRunner": kedro,
}


def report(name: str, work: str, ours: Spent, peer: str, theirs: Spent | None, *, load: float, **more: Any) -> None:
    fields = {
        "name": f"orchestration-{name}",
        "work": work,
        "ours_s": round(ours.wall, 3),
        "peer": peer if theirs else None,
        "peer_s": round(theirs.wall, 3) if theirs else None,
        "ratio": round(theirs.wall / ours.wall, 2) if theirs else None,
        "ours_mb": round(ours.mb, 1),
        "peer_mb": round(theirs.mb, 1) if theirs else None,
        "equal": more.pop("equal", None),
        "ours_cpu_s": round(ours.cpu, 2),
        "peer_cpu_s": round(theirs.cpu, 2) if theirs else None,
        "load": round(load, 2),
    }
    if not theirs:
        more["reason"] = f"{peer}: {more['reason']}"
    print(json.dumps(fields | {key: value for key, value in more.items() if value is not None}), flush=True)


if __name__ == "__main__":
    main()
