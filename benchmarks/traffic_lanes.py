"""MiniTraffic on real lanes and on a week of METR-LA, in mph, beside PatchTST and DCRNN on the same split.

    python benchmarks/traffic_lanes.py                     both sets, all arms, 1, 5, 10 and 100 %, three seeds
    python benchmarks/traffic_lanes.py --quick             a smoke test: one seed, one share, few updates
    python benchmarks/traffic_lanes.py --sets pems-lane    one of the sets
    python benchmarks/traffic_lanes.py --peers FOLDER      a virtual environment with the peers; without it, none
    python benchmarks/traffic_lanes.py --markdown          the tables for the documentation instead of JSON
    python benchmarks/traffic_lanes.py --data FOLDER       where the sets lie (default: ../shared/data/traffic)
    python benchmarks/traffic_lanes.py --keep FOLDER       work there and leave it; a second run takes what it finds

The sets pass our readers and our gate in a workspace of their own, and `train` and `evaluate` run as in the graph. A
folder that is absent is said and skipped. Peers learn from the same blocks of steps, see the same contexts, choose by
the same validation windows and the same number of looks, and are scored by the same code; they get `--peer-steps`
updates for each learning rate where ours get what params.yaml says. PatchTST is that of transformers (channels apart,
mean absolute error), DCRNN that of torch-geometric-temporal, a layer as wide as our network on the set's own graph,
with a linear head that is added to the last value:

    python -m venv FOLDER && FOLDER/bin/pip install torch transformers torch-geometric
    FOLDER/bin/pip install --no-deps torch-geometric-temporal

A line a set, share and arm: MAE, RMSE (mph) and MAPE (%) over all steps ahead with 95 % intervals over days and seeds,
`less`: MiniTraffic's MAE less the arm's, paired. `seconds` of the stages and of the peers' trainings are wall time of
this machine, and `load` its load average; compare them within one run only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

SETS: dict[str, dict[str, Any]] = {
    "pems-lane": {"folder": "pems_lane", "mode": "lane", "format": {"reader": "lanes"}},
    "metr-la-week": {
        "folder": "metr_la_week",
        "mode": "road",
        "format": {
            "reader": "wide",
            "file": "los_speed.csv",
            "header": True,
            "unit": "mph",
            "null_value": 0,
            "clock": {"start": "2012-03-01T00:00:00", "step_minutes": 5},
            "adjacency": "los_adj.csv",
        },
    },
}
PEERS = {"patchtst": "PatchTST (transformers)", "dcrnn": "DCRNN (torch-geometric-temporal)"}
SHARES = [0.01, 0.05, 0.1, 1.0]


class Forecast(NamedTuple):
    """A batch of forecasts in the form that the room scores."""

    start_W: np.ndarray
    forecast_WHS: np.ndarray
    observed_WHS: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--shares", nargs="+", type=float)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--peers", type=Path, help="virtual environment of the peers")
    parser.add_argument("--peer-steps", type=int, default=400)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "traffic")
    parser.add_argument("--params", type=Path, default=ROOT / "params.yaml", help="settings: default params.yaml")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    there = [name for name in options.sets if (options.data / SETS[name]["folder"]).is_dir()]
    for name in options.sets:
        if name not in there:
            say({"name": f"traffic_lanes {name}", "skipped": f"{options.data / SETS[name]['folder']} is absent"})
    if not there:
        return
    shares = options.shares or ([0.05] if options.quick else SHARES)
    seeds = list(range(options.seeds or (1 if options.quick else 3)))
    peers = resolved(options.peers)
    data, settings = options.data.resolve(), options.params.resolve()
    with Workspace(options.keep) as folder:
        os.chdir(folder)
        prepare(settings, data, there, shares, seeds, options.quick)
        rows = measure(there, shares, seeds, peers, 20 if options.quick else options.peer_steps)
    if options.markdown:
        print("\n".join(markdown(rows)))
    else:
        for row in rows:
            say({"name": f"traffic_lanes {row['set']}"} | row)


class Workspace:
    """A folder that goes away with the block, or one that stays."""

    def __init__(self, keep: Path | None) -> None:
        self.keep = keep

    def __enter__(self) -> Path:
        self.folder = Path(tempfile.mkdtemp()) if self.keep is None else self.keep.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def __exit__(self, *_: object) -> None:
        os.chdir(ROOT)
        if self.keep is None:
            shutil.rmtree(self.folder, ignore_errors=True)


def resolved(peers: Path | None) -> Path | None:
    """Python of the peers' environment; a line where there is none."""
    if peers is None:
        say({"name": "traffic_lanes peers", "skipped": "no --peers FOLDER"})
        return None
    python = peers.absolute() / "bin" / "python"  # not resolved: a link would leave the environment
    if not python.exists():
        sys.exit(f"{python}: not found; --peers takes a virtual environment, see --help")
    return python


def say(line: dict[str, Any]) -> None:
    """One JSON object a line."""
    print(json.dumps({key: rounded(value) for key, value in line.items()}), flush=True)


def rounded(value: Any) -> Any:
    """Six significant digits, and null for what is undefined."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value


# The stages of the graph, in a workspace of their own.


def prepare(file: Path, data: Path, names: list[str], shares: list[float], seeds: list[int], quick: bool) -> None:
    """Write params.yaml and run ingest, validate, train and evaluate; stages whose artifact is there are left out."""
    import yaml

    tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings = tree["systems"]["minitraffic"]["train"]
    tree["seeds"] = seeds
    tree["traffic"]["sets"] = {
        name: {"path": str(data / SETS[name]["folder"]), "format": SETS[name]["format"], "gate": {}} for name in names
    }
    from stages.systems.minitraffic.settings import ARMS

    tree["systems"]["minitraffic"]["evaluate"] = {"windows": 10**6}  # all of them
    settings |= {
        "targets": [{"set": name, "mode": SETS[name]["mode"]} for name in names],
        "shares": shares,
        "arms": list(ARMS),
    }
    settings["pretraining"] |= {"roads": names}
    if len(names) == 1 and SETS[names[0]]["mode"] == "road":
        sys.exit("metr-la-week alone has no roads to pre-train on: take pems-lane too")
    if quick:
        settings["pretraining"] |= {"steps": 30, "check": 10}
        settings["finetuning"] |= {"steps": 10, "check": 5}
    Path("params.yaml").write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    todo = [(f"ingest traffic@{name}", f"data/ingested/traffic/{name}") for name in names]
    todo += [("validate traffic", "data/validated/traffic")]
    todo += [(f"train minitraffic@{seed}", f"data/models/minitraffic/{seed}") for seed in seeds]
    todo += [("evaluate minitraffic", "data/evaluations/minitraffic")]
    for command, made in todo:
        if not Path(made).exists():
            stage(command)


def stage(command: str) -> None:
    """Run one verb as the graph does."""
    begin = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-m", "stages", *command.split()], env=environment, stdout=sys.stderr)
    if ran.returncode:
        sys.exit(ran.returncode)  # the stage has said why
    seconds = time.perf_counter() - begin
    say({"name": f"traffic_lanes {command}", "seconds": seconds, "load": os.getloadavg()[0]})


def measure(
    names: list[str], shares: list[float], seeds: list[int], peers: Path | None, steps: int
) -> list[dict[str, Any]]:
    """A row a set, share and arm, the peers among them."""
    import polars as pl

    from stages import artifacts
    from stages.systems.minitraffic.comparisons import Comparison
    from stages.systems.minitraffic.evaluate import describe
    from stages.systems.minitraffic.predictions import arm_errors, open_test_part
    from stages.systems.minitraffic.problem import open_target
    from stages.systems.minitraffic.scores_by_block import ErrorTable
    from stages.systems.minitraffic.settings import Train, arms_of

    folder = artifacts.evaluation("minitraffic")
    configs = {seed: artifacts.read_json(artifacts.model("minitraffic", seed) / "config.json") for seed in seeds}
    train = Train.model_validate({key: value for key, value in configs[seeds[0]].items() if key != "learnt"})
    errors, costs, tested = [artifacts.read_table(folder / "errors.parquet").collect()], {}, {}
    for name in names:
        goal = next(goal for goal in train.targets if goal.set == name)
        target = open_target(goal, train)
        part = open_test_part(target)
        arms = tuple(arms_of(train, goal))
        for peer in PEERS if peers else ():
            for share in shares:
                for seed in seeds:
                    block = configs[seed]["learnt"][name]["blocks"][f"{share:g}"]
                    found = run_peer(peers, peer, target, train, (block["start"], block["stop"]), steps, seed)
                    if "failed" in found:
                        say({"name": f"traffic_lanes {name} {peer}", "skipped": found["failed"]})
                        break
                    made = arm_errors(batches(found, target, part.start_W), part)
                    labels = {"target": name, "share": share, "arm": peer, "seed": seed}
                    errors.append(made.select(*(pl.lit(v).alias(k) for k, v in labels.items()), pl.all()))
                    costs[name, share, peer] = found
                    arms = arms if peer in arms else (*arms, peer)
                else:
                    continue
                break
        tested[name] = describe(target, part, configs[seeds[0]]["learnt"][name], shares, arms)
    table = pl.concat([frame.cast({"seed": pl.Int64}) for frame in errors])
    found = Comparison(ErrorTable(table), tested)
    own = artifacts.read_json(folder / "metrics.json")["figures"]
    return [row for name in names for share in shares for row in rows_of(found, name, share, own, costs)]


def rows_of(
    found: Any, name: str, share: float, own: dict[str, Any], costs: dict[Any, Any]
) -> Iterator[dict[str, Any]]:
    """Rows of one set and share; ``own`` are the figures of the evaluation, ``costs`` what the peers say."""
    from stages.systems.minitraffic.settings import ARMS, MAIN

    target = found.tested[name]
    for arm in target.arms:
        mae, rmse, mape = (found.estimate(name, share, arm, score) for score in ("mae", "rmse", "mape"))
        row = {"set": name, "share": share, "arm": arm, "called": (ARMS | PEERS)[arm], "unit": target.unit}
        row |= {"mae": mae.value, "mae_low": mae.low, "mae_high": mae.high, "rmse": rmse.value}
        row |= {"rmse_low": rmse.low, "rmse_high": rmse.high, "mape": mape.value}
        if arm != MAIN:
            for score in ("mae", "rmse"):
                difference, percent = found.difference(name, share, arm, score)
                row |= {f"less_{score}": difference.value, f"less_{score}_low": difference.low}
                row |= {f"less_{score}_high": difference.high, f"less_{score}_percent": percent}
        peer = costs.get((name, share, arm))
        if peer is None:
            row |= {"parameters": own["parameters"][name][arm], "flops": own["forward_flops"][name][arm]}
        else:
            said = ("parameters", "flops", "seconds", "updates", "rate", "chosen_step", "looks")
            row |= {key: peer[key] for key in said}
        yield row | {"blocks": target.counted, "windows": target.windows}


# The peers, in an environment of their own.


def run_peer(
    python: Path | None, peer: str, target: Any, train: Any, block: tuple[int, int], steps: int, seed: int
) -> dict[str, Any]:
    """Train one peer in its environment; what it says, with its forecasts, or why it failed."""
    accepted, search = target.accepted, train.finetuning
    with tempfile.TemporaryDirectory() as scratch:
        task, answer = Path(scratch) / "task.npz", Path(scratch) / "answer.npz"
        about = {
            "peer": peer,
            "block": block,
            "validation": accepted.part("validation"),
            "test": accepted.part("test"),
            "context": train.context,
            "horizon": train.horizon,
            "patch": train.network.patch,
            "stride": train.network.stride,
            "width": train.network.width,
            "layers": train.network.layers,
            "heads": train.network.heads,
            "rates": search.learning_rates,
            "steps": steps,
            "checks": len(range(0, search.steps, search.check)),
            "looked": search.validation,
            "batch": search.batch,
            "directed": accepted.directed,
            "seed": seed,
        }
        edges = accepted.edges
        np.savez(
            task, values=target.values_TS, clock=target.clock_TF, source=edges.source_E, target=edges.target_E,
            weight=edges.weight_E, about=json.dumps(about),
        )  # fmt: skip
        command = [str(python), str(ROOT / "benchmarks" / "peers" / "traffic.py"), str(task), str(answer)]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            return {"failed": (ran.stderr.strip().splitlines() or ["no message"])[-1]}
        with np.load(answer) as found:
            return json.loads(str(found["about"])) | {"forecast": found["forecast"]}


def batches(found: dict[str, Any], target: Any, start_W: np.ndarray) -> Iterator[Forecast]:
    """Forecasts of a peer in the form that the room scores."""
    steps_WH = start_W[:, None] + np.arange(target.horizon)
    yield Forecast(start_W, found["forecast"], target.values_TS[steps_WH])


def markdown(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Tables by set: arms by share, MAE and RMSE, and MiniTraffic's difference in MAE."""
    shares = sorted({row["share"] for row in rows})
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        for score in ("mae", "rmse"):
            yield f"\nTest {score.upper()} over all steps ahead, {name}, {mine[0]['unit']} ({mine[0]['blocks']}); "
            yield "in brackets MiniTraffic's less the arm's with its 95 % interval\n"
            yield "| arm | " + " | ".join(f"{100 * share:g} %" for share in shares) + " |"
            yield "|---|" + "---|" * len(shares)
            for arm in dict.fromkeys(row["called"] for row in mine):
                found = {row["share"]: row for row in mine if row["called"] == arm}
                yield f"| {arm} | " + " | ".join(cell(found.get(share), score) for share in shares) + " |"
        yield "\n| arm | parameters | FLOPs of a forecast |\n|---|---|---|"
        for row in (row for row in mine if row["share"] == shares[0]):
            yield f"| {row['called']} | {row['parameters']} | {row['flops']} |"


def cell(row: dict[str, Any] | None, score: str) -> str:
    """A value with the paired difference below it."""
    if row is None:
        return ""
    text = f"{row[score]:.2f}"
    if f"less_{score}" not in row:
        return f"**{text}**"
    low, high = row[f"less_{score}_low"], row[f"less_{score}_high"]
    return f"{text} ({row[f'less_{score}']:+.2f} [{low:+.2f}, {high:+.2f}])"


if __name__ == "__main__":
    main()
