"""Windows of a traffic set beside windows that are materialised: memory, and the time of a first epoch.

The set has the size of METR-LA (34,272 steps of 207 sensors, float32); windows have a context and a horizon of 12
steps. The peer is written out as DCRNN and BasicTS prepare their data: every window is cut and all are stacked, then
batches are picked from the stack in a shuffled order. Each side runs in a process of its own, preparation included,
after a first batch of a small series that loads its libraries. Its memory is the peak above what the process then
holds; `times_the_set` counts the series too, so 1 is the series alone. `equal` says that both sides gave the same
numbers: sums of every batch's context and target, weighted by place.

    python benchmarks/traffic_windows.py [--steps 34272] [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SENSORS = 207
CONTEXT = HORIZON = 12
BATCH = 64
MEBI = 2**20


def series(steps: int) -> np.ndarray:
    return np.random.default_rng(0).random((steps, SENSORS), dtype=np.float32)


def peer_batches(values: np.ndarray) -> Iterator[tuple[Any, Any]]:
    """All windows as one array (window, step, sensor), then batches of it."""
    windows = len(values) - CONTEXT - HORIZON + 1
    contexts = np.stack([values[start : start + CONTEXT] for start in range(windows)])
    targets = np.stack([values[start + CONTEXT : start + CONTEXT + HORIZON] for start in range(windows)])
    order = np.random.default_rng(1).permutation(windows)
    for begin in range(0, windows, BATCH):
        chosen = order[begin : begin + BATCH]
        yield contexts[chosen], targets[chosen]


def our_batches(values: np.ndarray) -> Iterator[tuple[Any, Any]]:
    from stages.traffic.windows import Windows

    for _, context, target in Windows(values, CONTEXT, HORIZON).batches(BATCH, np.random.default_rng(1)):
        yield context.swapaxes(1, 2), target.swapaxes(1, 2)


def torch_batches(values: np.ndarray) -> Iterator[tuple[Any, Any]]:
    import torch

    from stages.traffic.windows import Windows

    tensor = torch.from_numpy(values)
    for _, context, target in Windows(tensor, CONTEXT, HORIZON).batches(BATCH, np.random.default_rng(1)):
        yield context.swapaxes(1, 2), target.swapaxes(1, 2)


SIDES = {"peer": peer_batches, "numpy": our_batches, "torch": torch_batches}


def memory() -> tuple[int, int]:
    """Resident bytes now and at the peak."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) * 1024, int(fields["VmHWM"].split()[0]) * 1024


def side(name: str, steps: int) -> None:
    """In a process of its own: one epoch with its preparation, then the check in a second one."""
    if name == "torch":
        import torch

        torch.set_num_threads(1)
    for _ in SIDES[name](series(10 * BATCH)):
        pass
    values = series(steps)
    before, _ = memory()
    begin = time.perf_counter()
    for _ in SIDES[name](values):
        pass
    seconds = time.perf_counter() - begin
    _, peak = memory()
    weight = np.arange(1, CONTEXT + 1, dtype=np.float64)[None, :, None]
    check = 0.0
    for place, (context, target) in enumerate(SIDES[name](values)):
        both = np.asarray(context).sum(axis=2, keepdims=True) + 2 * np.asarray(target).sum(axis=2, keepdims=True)
        check += (place % 7 + 1) * float((both * weight).sum())
    above = max(0, peak - before)
    print(json.dumps({"seconds": seconds, "bytes": above + values.nbytes, "set": values.nbytes, "check": check}))


def measured(name: str, steps: int, runs: int) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).resolve()), "--side", name, "--steps", str(steps)]
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(runs)
    ]
    return found[-1] | {"seconds": statistics.median(answer["seconds"] for answer in found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=34_272)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side(options.side, options.steps)
        return
    peer = measured("peer", options.steps, options.runs)
    for name in ("numpy", "torch"):
        ours = measured(name, options.steps, options.runs)
        line = {
            "name": f"traffic_windows.{name}",
            "work": f"{options.steps} steps of {SENSORS} sensors, windows of {CONTEXT} + {HORIZON}, batches of {BATCH}",
            "ours_s": round(ours["seconds"], 3),
            "peer": "all windows stacked, as DCRNN and BasicTS do",
            "peer_s": round(peer["seconds"], 3),
            "ratio": round(peer["seconds"] / ours["seconds"], 1),
            "ours_mb": round(ours["bytes"] / MEBI, 1),
            "peer_mb": round(peer["bytes"] / MEBI, 1),
            "times_the_set": round(ours["bytes"] / ours["set"], 2),
            "peer_times_the_set": round(peer["bytes"] / peer["set"], 2),
            "equal": bool(np.isclose(ours["check"], peer["check"], rtol=1e-6, atol=0)),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
