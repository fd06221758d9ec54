"""Ingest beside pandas: time, peak memory and equal numbers on US-ARM; memory of a 20-year tower and its growth.

Each side runs in its own process. Seconds are wall-clock medians of several runs after a first one (`*_cpu_s`: CPU
time of the same runs; ours parses with two threads). Megabytes are the rise of the peak resident memory in that first
run over what the process held before it, when it had read the head of the file once (so that the machine code of the
libraries is there on both sides). The work is the same on both sides: read the CSV, parse both stamps and compare them,
blank the missing value, pick the shallowest and most complete position of each variable, drop double rows, build the
regular axis, convert units. Pandas reads all columns, as a plain `pd.read_csv` does, and is spared our search for
sentinels, for a changed clock and for broken lines.

    python benchmarks/ingest.py [US-ARM.csv]
"""

from __future__ import annotations

import argparse
import gc
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

RUNS = 7
HEAD_LINES = 2_000
MEBI = 2**20


def ours(file: Path) -> dict[str, Any]:
    from stages.ingest.land_atmosphere.config import Base, Fluxnet
    from stages.ingest.land_atmosphere.native import harmonise, read_tower

    options = Fluxnet(reader="fluxnet") if file.name.startswith("FLX") else Base(reader="base")
    native = harmonise(read_tower(file, options), "benchmark").dataset
    return {
        "time": native["time"].values.astype("datetime64[m]"),
        **{str(name): native[name].values for name in native},
    }


def pandas(file: Path) -> dict[str, Any]:
    """The same cleaning as one writes it with pandas."""
    import numpy as np
    import pandas as pd

    with file.open() as lines:  # `comment="#"` would keep pandas from reading with several threads
        above = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    frame = pd.read_csv(file, skiprows=above).replace(-9999, np.nan)
    start, end = (
        pd.to_datetime(frame[name].astype(str), format="%Y%m%d%H%M") for name in ("TIMESTAMP_START", "TIMESTAMP_END")
    )
    if not (end - start == pd.Timedelta(minutes=30)).all():
        raise ValueError("an interval is not half an hour long")
    frame = frame.set_index(start).drop(columns=["TIMESTAMP_START", "TIMESTAMP_END"])
    frame = frame[~frame.index.duplicated()].sort_index()
    frame = frame.reindex(pd.date_range(frame.index[0], frame.index[-1], freq="30min"))
    chosen = {}
    for variable, scale in {"SWC": 0.01, "LE": 1, "H": 1, "G": 1, "NETRAD": 1, "SW_IN": 1, "VPD": 1}.items():
        for level in range(1, 7):
            names = [name for name in frame if name.removeprefix(variable).removeprefix("_PI")[:1] == "_"]
            names = [
                name
                for name in names
                if name.startswith(variable) and name.split("_")[-2] == str(level) and frame[name].notna().any()
            ]
            if names:
                chosen[variable] = frame[frame[names].notna().sum().idxmax()].to_numpy() * scale
                break
    return {"time": frame.index.to_numpy().astype("datetime64[m]"), **chosen}


SIDES: dict[str, Callable[[Path], dict[str, Any]]] = {"ours": ours, "pandas": pandas}


def measure(side: str, file: Path, runs: int, numbers: Path) -> None:
    """In a process of its own: print seconds of each run and the rise of the peak memory of the first."""
    import numpy as np

    with tempfile.TemporaryDirectory() as scratch:
        head = Path(scratch) / file.name
        with file.open("rb") as stream:
            head.write_bytes(b"".join(stream.readline() for _ in range(HEAD_LINES)))
        SIDES[side](head)
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    result = SIDES[side](file)
    rise = resident("VmHWM") - before
    output = sum(array.nbytes for array in result.values())
    np.savez(numbers, **result)
    del result
    seconds, cpu_seconds = [], []
    for _ in range(runs):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        SIDES[side](file)
        seconds.append(time.perf_counter() - begin)
        cpu_seconds.append(time.process_time() - cpu_begin)
    answer = {
        "seconds": statistics.median(seconds),
        "cpu_seconds": statistics.median(cpu_seconds),
        "mb": rise / MEBI,
        "output_mb": output / MEBI,
    }
    print(json.dumps(answer))


def resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{field} is not in /proc/self/status; this benchmark needs Linux")


def run_side(side: str, file: Path, runs: int, numbers: Path) -> dict[str, Any]:
    words = [sys.executable, __file__, "--side", side, "--runs", str(runs), "--numbers", str(numbers), str(file)]
    answer: dict[str, Any] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return answer


def equal(one: Path, other: Path) -> bool:
    import numpy as np

    with np.load(one) as a, np.load(other) as b:
        return set(b) <= set(a) and all(
            np.allclose(a[name], b[name], rtol=1e-12, atol=0, equal_nan=True)
            if a[name].dtype.kind == "f"
            else np.array_equal(a[name], b[name])
            for name in b
        )


def synthetic(file: Path, years: int) -> None:
    """A half-hourly FULLSET of many columns, most of which nobody asked for."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(years)
    start = np.arange(f"{2020 - years}-01-01", "2020-01-01", 30, dtype="datetime64[m]")
    stamp = pl.Series(start.astype("datetime64[ms]")).dt.strftime("%Y%m%d%H%M")
    end = pl.Series((start + 30).astype("datetime64[ms]")).dt.strftime("%Y%m%d%H%M")
    columns: dict[str, Any] = {"TIMESTAMP_START": stamp, "TIMESTAMP_END": end}
    for name in ("TA_F", "SW_IN_F", "VPD_F", "P_F", "LE_F_MDS", "H_F_MDS", "G_F_MDS", "SWC_F_MDS_1"):
        columns[name] = np.round(rng.gamma(2.0, 10.0, start.size), 3)
        columns[f"{name}_QC"] = rng.choice([0, 0, 0, 1, 2, 3], start.size)
    columns["NETRAD"] = np.where(rng.random(start.size) < 0.1, -9999.0, np.round(rng.normal(80, 150, start.size), 3))
    for index in range(40):
        columns[f"NEE_VUT_{index}"] = np.round(rng.normal(0, 5, start.size), 4)
    pl.DataFrame(columns).write_csv(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="US-ARM csv; default: the one under data/raw/us-arm")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--numbers", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        measure(options.side, options.file, options.runs, options.numbers)
        return
    with tempfile.TemporaryDirectory() as scratch:
        beside_pandas(options.file or find_file(), options.runs, Path(scratch))
        growth(Path(scratch))


def find_file() -> Path:
    found = sorted((ROOT / "data/raw/us-arm").rglob("*.csv"))
    if not found:
        sys.exit("no csv under data/raw/us-arm: run `dvc repro fetch-us-arm`, or name the file")
    return found[0]


def beside_pandas(file: Path, runs: int, scratch: Path) -> None:
    us = run_side("ours", file, runs, scratch / "ours.npz")
    peer = run_side("pandas", file, runs, scratch / "pandas.npz")
    report(
        name="ingest-us-arm-csv",
        work=f"{file.stat().st_size / MEBI:.0f} MB CSV to {us['output_mb']:.1f} MB of harmonised arrays",
        ours_s=round(us["seconds"], 4),
        peer="pandas",
        peer_s=round(peer["seconds"], 4),
        ratio=round(peer["seconds"] / us["seconds"], 2),
        ours_mb=round(us["mb"], 1),
        peer_mb=round(peer["mb"], 1),
        equal=equal(scratch / "ours.npz", scratch / "pandas.npz"),
        ours_cpu_s=round(us["cpu_seconds"], 4),
        peer_cpu_s=round(peer["cpu_seconds"], 4),
        cpu_ratio=round(peer["cpu_seconds"] / us["cpu_seconds"], 2),
        memory_over_output=round(us["mb"] / us["output_mb"], 2),
    )


def growth(scratch: Path) -> None:
    """Peak memory for 1, 4, 16 and 20 years; it should grow with the output and no faster."""
    first: dict[str, Any] | None = None
    for years in (1, 4, 16, 20):
        file = scratch / f"FLX_XX-Syn_FLUXNET2015_FULLSET_HH_{2020 - years}-2019_1-1.csv"
        synthetic(file, years)
        us = run_side("ours", file, 3, scratch / "synthetic.npz")
        first = first or us
        report(
            name=f"ingest-synthetic-{years}-years",
            work=f"{file.stat().st_size / MEBI:.0f} MB CSV to {us['output_mb']:.1f} MB of harmonised arrays",
            ours_s=round(us["seconds"], 4),
            peer=None,
            peer_s=None,
            ratio=None,
            ours_mb=round(us["mb"], 1),
            peer_mb=None,
            equal=None,
            memory_over_output=round(us["mb"] / us["output_mb"], 2),
            memory_over_one_year=round(us["mb"] / first["mb"], 2),
        )
        file.unlink()


def report(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
