"""EEG features beside torcheeg, and the memory of ingest as subjects grow.

Differential entropy of simulated trials (62 channels, 128 Hz, 1 s windows), both sides in one process:

filtered
    Our `filtered` definition and `torcheeg.transforms.BandDifferentialEntropy`, which is the variance behind a
    Butterworth filter of order 5 that starts at rest with each window. `equal` is the largest difference in nats over
    torcheeg's own bands (4 to 49 Hz). Below 4 Hz torcheeg's filters, kept as one polynomial, have rounding errors of
    their own: `delta` is the difference there, beside that of ours from scipy's second-order sections (`delta_exact`).
spectral
    Our default definition on the same windows, for its time alone: it is another definition.

Where torcheeg is not installed, its documented formula written with scipy takes its place, and the line says so.
torcheeg 1.1.3 pins an old scipy: install it and what it imports with `pip install --no-deps` into an environment that
sees the project's packages. Memory is the peak resident memory of `ingest` on 1, 4 and 16 subjects of a simulated
corpus in SEED's layout, each in a process of its own.

    python benchmarks/eeg_features.py [--trials 4] [--no-memory]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import signal
from scipy.io import savemat

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

RATE = 128
CHANNELS = 62
SECONDS = 16
RUNS = 5
SUBJECTS = (1, 4, 16)
MEBI = 2**20
TORCHEEG_BANDS = {"theta": (4, 8), "alpha": (8, 14), "beta": (14, 31), "gamma": (31, 49)}
ALL_BANDS = {"delta": (1, 4), **TORCHEEG_BANDS}

Transform = Callable[[np.ndarray], np.ndarray]


def simulated_trials(count: int) -> list[np.ndarray]:
    """Pink noise of 10 uV, float32 as readers give it."""
    random = np.random.default_rng(0)
    frequency = np.fft.rfftfreq(SECONDS * RATE, 1 / RATE)
    trials = []
    for _ in range(count):
        phase = random.normal(size=(CHANNELS, frequency.size)) + 1j * random.normal(size=(CHANNELS, frequency.size))
        trial = np.fft.irfft(phase / np.sqrt(np.maximum(frequency, 0.5)))
        trials.append((10 * trial / trial.std()).astype(np.float32))
    return trials


def torcheeg_transform(bands: dict[str, tuple[int, int]]) -> tuple[str, Transform]:
    """Bits of one window (channel, sample) -> (channel, band), by torcheeg or by its formula."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torcheeg.transforms import BandDifferentialEntropy
    except ImportError:
        return "torcheeg's formula in scipy", lambda window: formula(window, bands)
    transform = BandDifferentialEntropy(
        sampling_rate=RATE, band_dict={name: list(band) for name, band in bands.items()}
    )
    return "torcheeg", lambda window: transform(eeg=window)["eeg"]


def formula(window: np.ndarray, bands: dict[str, tuple[int, int]]) -> np.ndarray:
    """What torcheeg documents: a filter for each band, designed and run for each channel of each window."""
    entropies = []
    for low, high in bands.values():
        row = []
        for channel in window:
            numerator, denominator = signal.butter(5, (low / (RATE / 2), high / (RATE / 2)), btype="band")
            row.append(0.5 * np.log2(2 * np.pi * np.e * np.var(signal.lfilter(numerator, denominator, channel))))
        entropies.append(row)
    return np.array(entropies).T


def peer_entropies(trials: list[np.ndarray], transform: Transform) -> np.ndarray:
    windows = [trial[:, start : start + RATE] for trial in trials for start in range(0, SECONDS * RATE, RATE)]
    return np.stack([transform(window) for window in windows])


def our_entropies(trials: list[np.ndarray], bands: dict[str, tuple[int, int]], definition: Any) -> np.ndarray:
    from stages.eeg.entropy import band_entropies

    edges = list(bands.values())
    return np.concatenate([band_entropies(trial, RATE, edges, 1.0, definition=definition) for trial in trials])


def timed(work: Callable[[], np.ndarray], runs: int) -> tuple[float, np.ndarray]:
    """Median of the seconds of several runs after a first one, and the answer."""
    answer = work()
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), answer


def speed(count: int) -> None:
    trials = simulated_trials(count)
    name, transform = torcheeg_transform(ALL_BANDS)
    few = trials[:1]
    transform(few[0][:, :RATE])
    begin = time.perf_counter()
    peer = peer_entropies(trials, transform) * np.log(2)
    peer_seconds = time.perf_counter() - begin
    work = f"{count} trials of {SECONDS} s, {CHANNELS} channels, {len(ALL_BANDS)} bands"
    sections = [signal.butter(5, band, btype="bandpass", fs=RATE, output="sos") for band in ALL_BANDS.values()]
    windows = np.concatenate([trial.reshape(CHANNELS, -1, RATE).transpose(1, 0, 2) for trial in trials]).astype(float)
    delta = signal.sosfilt(sections[0], windows, axis=-1).var(axis=-1)
    exact = 0.5 * np.log(2 * np.pi * np.e * delta)
    for definition in ("filtered", "spectral"):
        seconds, ours = timed(lambda kind=definition: our_entropies(trials, ALL_BANDS, kind), RUNS)
        line: dict[str, Any] = {
            "name": f"eeg_features.{definition}",
            "work": work,
            "ours_s": round(seconds, 5),
            "peer": name,
            "peer_s": round(peer_seconds, 3),
            "ratio": round(peer_seconds / seconds, 1),
        }
        if definition == "filtered":
            difference = np.abs(ours - peer)
            line["equal"] = bool(difference[..., 1:].max() < 1e-5)
            line["difference_nats"] = float(difference[..., 1:].max())
            line["delta"] = float(difference[..., 0].max())
            line["delta_exact"] = float(np.abs(ours[..., 0] - exact).max())
        print(json.dumps(line), flush=True)


PARAMS = """\
eeg:
  corpora: {lab: {path: raw, format: seed, gate: {}}}
  preprocessing: {}
  features: {}
"""


def memory() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        first = Path(scratch) / "1_20200101.mat"
        random = np.random.default_rng(0)
        savemat(first, {f"xy_eeg{trial}": random.normal(scale=10, size=(CHANNELS, 4000)) for trial in range(1, 16)})
        peaks = {}
        for subjects in SUBJECTS:
            folder = Path(scratch) / str(subjects)
            raw = folder / "raw" / "Preprocessed_EEG"
            raw.mkdir(parents=True)
            (folder / "params.yaml").write_text(PARAMS)
            savemat(raw / "label.mat", {"label": np.array([[1, 0, -1] * 5])})
            for subject in range(1, subjects + 1):
                os.link(first, raw / f"{subject}_20200101.mat")
            begin = time.perf_counter()
            answer = subprocess.run(
                [sys.executable, str(Path(__file__).resolve()), "--ingest"],
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
            )
            peaks[subjects] = round(float(answer.stdout.splitlines()[-1]) / MEBI, 1)
            seconds = time.perf_counter() - begin
            work = f"{subjects} subjects, 15 trials of 20 s, {CHANNELS} channels, 200 Hz"
            line = {
                "name": "eeg_features.memory",
                "work": work,
                "ours_s": round(seconds, 2),
                "ours_mb": peaks[subjects],
            }
            print(json.dumps(line | {"growth": round(peaks[subjects] / peaks[SUBJECTS[0]], 3)}), flush=True)


def ingest() -> None:
    """In a process of its own: print the peak of its resident memory in bytes."""
    from stages.ingest.eeg.stage import Params, run

    run(Params.read(name="eeg", key="lab"), name="eeg", key="lab")
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    print(int(fields["VmHWM"].split()[0]) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--ingest", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ingest:
        ingest()
        return
    speed(options.trials)
    if not options.no_memory:
        memory()


if __name__ == "__main__":
    main()
