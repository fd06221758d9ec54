"""``dvc repro`` with nothing to do, beside ``dvc status`` on the same workspace: python benchmarks/repro.py.

Needs a workspace that is up to date (``make repro``). Prints one JSON object a line; times are medians of wall time,
taken in turns; the target is a ratio of at most 1.5.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

DVC = str(Path(sys.executable).parent / "dvc")


def timed(*words: str) -> tuple[float, str]:
    """Wall seconds and output of a DVC command."""
    start = time.perf_counter()
    run = subprocess.run([DVC, *words], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, run.stdout


def main() -> None:
    """Time both commands in turns and print the line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two rounds in place of seven")
    rounds = 2 if parser.parse_args().quick else 7
    status, repro, idle = [], [], True
    for _ in range(rounds):
        seconds, output = timed("status")
        status.append(seconds)
        idle &= "up to date" in output
        seconds, output = timed("repro")
        repro.append(seconds)
        idle &= "Running stage" not in output
    ours, peer = statistics.median(repro), statistics.median(status)
    line = {
        "name": "repro",
        "work": "nothing to do, land-atmosphere graph",
        "ours_s": round(ours, 3),
        "peer": "dvc status",
        "peer_s": round(peer, 3),
        "ratio": round(ours / peer, 2),
        "ours_mb": None,
        "peer_mb": None,
        "equal": idle,
    }
    print(json.dumps(line))
    if not idle:
        sys.exit("the workspace was not up to date: run `make repro` first")


if __name__ == "__main__":
    main()
