"""Many runs one after another leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.flows.conftest import ROOT, Project

IDLE, CHANGED, ROUNDS = 23, 2, 8

#: Runs the verb again and again in one process; says after each round what the process and the machine hold.
LOOP = f"""
import gc, io, json, os, sys, threading
from contextlib import redirect_stdout
from pathlib import Path
import flows.repro
from flows.__main__ import main

def repro():
    with redirect_stdout(io.StringIO()):
        assert main(["repro", "--jobs", "2", "--devices", "cpu:1"]) == 0

def held():
    gc.collect()
    return {{
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "children": len(Path(f"/proc/self/task/{{os.getpid()}}/children").read_text().split()),
        "leases": len(os.listdir(os.environ["BRAID_LEASES"])) if Path(os.environ["BRAID_LEASES"]).exists() else 0,
        "drafts": len(os.listdir(".dvc/tmp")),
    }}

for number in range({ROUNDS}):
    for change in range({CHANGED}):
        Path("x").write_text(f"{{number}} {{change}}")
        repro()
    for _ in range({IDLE}):
        repro()
    print(json.dumps(held()), flush=True)
"""


def test_nothing_grows(project: Project, prefect_server: dict[str, str], tmp_path: Path) -> None:
    """200 runs in one process, 16 of them with Prefect and a change."""
    gpu = {"device": "gpu"}
    project.graph(
        a={"cmd": "cp x a.txt", "deps": ["x"], "outs": ["a.txt"]},
        b={"cmd": "cp a.txt b.txt", "deps": ["a.txt"], "outs": ["b.txt"], "meta": gpu},
    )
    environment = {**os.environ, **prefect_server, **project.environment, "PYTHONPATH": str(ROOT)}
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    environment["CUDA_VISIBLE_DEVICES"] = ""
    run = subprocess.run(
        [sys.executable, str(script)], cwd=project.root, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    rounds = run.stdout.splitlines()
    assert len(rounds) == ROUNDS
    # The first rounds fill caches of clients and pools; after them nothing is added any more.
    assert len(set(rounds[2:])) == 1, rounds
