"""Ingest of a set of METR-LA's size (34,272 steps x 207 sensors) beside pandas: time, peak memory, equal numbers.

Each side runs in its own process. Seconds are wall-clock medians of several runs after a first one. Megabytes are the
rise of the peak resident memory in that first run over what the process held when it had read a small file of the same
kind (so that the libraries are there on both sides); `*_over_array` is that rise over the size of the float32 result.
The work is the same on both sides: read the frame, put it on a regular grid of 5 minutes (7 steps are missing), turn
the null value 0 into NaN, give float32. Ours also compares stamps with the grid, looks for copies and infinite values,
and keeps where the null value stood; pandas is spared that. `pandas.read_hdf` needs PyTables, which is no dependency
of the project: install it into an environment of its own that sees this one; without it that line has no peer.

The last line is the whole verb on the HDF file, in a process of its own: read, measure 24,633 sensor-days, write.

    python benchmarks/traffic_ingest.py [--runs 5]
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

STEPS, SENSORS = 34_272, 207
SMALL = 576
MISSING = (1000, 2000, 2001, 9000, 15000, 20000, 34000)
RUNS = 5
MEBI = 2**20

Answer = dict[str, Any]


def ours(file: Path) -> Answer:
    from pydantic import TypeAdapter

    from stages.ingest.traffic.config import Format
    from stages.ingest.traffic.sets import open_set

    block: Any = {"reader": "hdf", "null_value": 0}
    if file.suffix == ".csv":
        block = {"reader": "wide", "time": "time", "unit": "mph", "null_value": 0}
    traffic = open_set(file, TypeAdapter(Format).validate_python(block))
    return {"time": traffic.time_T, "values": traffic.variables["speed"]}


def pandas(file: Path) -> Answer:
    import numpy as np
    import pandas as pd

    if file.suffix == ".csv":
        frame = pd.read_csv(file, index_col="time", parse_dates=["time"])
    else:
        frame = pd.DataFrame(pd.read_hdf(file))
    frame = frame.asfreq("5min").astype(np.float32)
    values = frame.mask(frame == 0).to_numpy()
    return {"time": frame.index.to_numpy().astype("datetime64[m]"), "values": values}


SIDES: dict[str, Callable[[Path], Answer]] = {"ours": ours, "pandas": pandas}


def measure(side: str, file: Path, runs: int, numbers: Path) -> None:
    """In a process of its own: print the seconds of each run and the rise of the peak memory of the first."""
    import numpy as np

    SIDES[side](file.with_name(f"small-{file.name}"))
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    result = SIDES[side](file)
    rise = resident("VmHWM") - before
    np.savez(numbers, **result)
    size = result["values"].nbytes
    del result
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        SIDES[side](file)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": statistics.median(seconds), "mb": rise / MEBI, "over": rise / size}))


def resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{field} is not in /proc/self/status; this benchmark needs Linux")


def run_side(side: str, file: Path, runs: int, numbers: Path) -> Answer:
    words = [
        sys.executable,
        __file__,
        "--side",
        side,
        "--runs",
        str(runs),
        "--numbers",
        str(numbers),
        "--file",
        str(file),
    ]
    answer: Answer = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return answer


def equal(one: Path, other: Path) -> bool:
    import numpy as np

    with np.load(one) as a, np.load(other) as b:
        same = np.array_equal(a["values"], b["values"], equal_nan=True)
        return bool(same and np.array_equal(a["time"], b["time"]))


def write_files(folder: Path) -> None:
    """The same speeds as csv and as a pandas frame in HDF5, and small ones for the first reading."""
    import numpy as np

    from tests.ingest.traffic import layouts

    ids = [str(717_000 + index) for index in range(SENSORS)]
    for prefix, steps in (("small-", SMALL), ("", STEPS)):
        values = layouts.speeds(steps, SENSORS, seed=1)
        values[np.random.default_rng(2).random(values.shape) < 0.08] = 0
        kept = np.setdiff1d(np.arange(steps), MISSING)
        moments = layouts.times(steps)
        stamps = [moments[step] for step in kept]
        layouts.hdf_fixed(folder / f"{prefix}speed.h5", values[kept], ids, stamps)
        layouts.wide(folder / f"{prefix}speed.csv", values[kept], ids, stamps)


def beside_pandas(file: Path, runs: int, scratch: Path, peer: str, *, there: bool) -> None:
    us = run_side("ours", file, runs, scratch / "ours.npz")
    them = run_side("pandas", file, runs, scratch / "pandas.npz") if there else None
    report(
        name=f"traffic-ingest-{file.suffix[1:]}",
        work=f"{STEPS} x {SENSORS} {file.suffix[1:]} of {file.stat().st_size / MEBI:.0f} MB to float32 on a grid",
        ours_s=round(us["seconds"], 3),
        peer=peer if them else None,
        peer_s=round(them["seconds"], 3) if them else None,
        ratio=round(them["seconds"] / us["seconds"], 2) if them else None,
        ours_mb=round(us["mb"], 1),
        peer_mb=round(them["mb"], 1) if them else None,
        equal=equal(scratch / "ours.npz", scratch / "pandas.npz") if them else None,
        ours_over_array=round(us["over"], 2),
        peer_over_array=round(them["over"], 2) if them else None,
    )


def whole_verb(file: Path, scratch: Path) -> None:
    """The verb on the small file and then on the large one, in a process of its own."""
    sets = {
        key: f"{{path: {path}, format: {{reader: hdf, null_value: 0}}, gate: {{}}}}"
        for key, path in {"small": file.with_name(f"small-{file.name}"), "large": file}.items()
    }
    (scratch / "params.yaml").write_text(f"traffic: {{sets: {{small: {sets['small']}, large: {sets['large']}}}}}\n")
    words = [sys.executable, __file__, "--side", "verb", "--file", str(file)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=scratch)
    us: Answer = json.loads(done.stdout.splitlines()[-1])
    report(
        name="traffic-ingest-verb",
        work=f"{STEPS} x {SENSORS}: read, measure {SENSORS * STEPS // 288} sensor-days, write",
        ours_s=round(us["seconds"], 2),
        peer=None,
        peer_s=None,
        ratio=None,
        ours_mb=round(us["mb"], 1),
        peer_mb=None,
        equal=None,
        ours_over_array=round(us["mb"] * MEBI / (4 * STEPS * SENSORS), 2),
    )


def measure_verb() -> None:
    from stages.__main__ import main as stages

    stages(["ingest", "traffic@small"])
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    begin = time.perf_counter()
    stages(["ingest", "traffic@large"])
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "mb": (resident("VmHWM") - before) / MEBI}))


def report(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", choices=[*SIDES, "verb"], help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--numbers", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    if options.side == "verb":
        measure_verb()
        return
    if options.side:
        measure(options.side, options.file, options.runs, options.numbers)
        return
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write_files(scratch)
        tables = importlib.util.find_spec("tables") is not None
        beside_pandas(scratch / "speed.csv", options.runs, scratch, "pandas.read_csv", there=True)
        beside_pandas(scratch / "speed.h5", options.runs, scratch, "pandas.read_hdf", there=tables)
        whole_verb(scratch / "speed.h5", scratch)


if __name__ == "__main__":
    main()
