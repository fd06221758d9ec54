"""uci_alcoholism as a corpus of the project: long parquet to BIDS, through ingest and the gate; folds and an anchor.

Shape suffixes: N window or trial, C channel, T sample, D feature, Y class.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from numpy.typing import NDArray

from stages.params import PARAMS_FILE, load_params
from stages.systems.mixemo.windows import Fold, Windows, moments, standardise

ROOT = Path(__file__).resolve().parents[2]
KEY = "uci-alcoholism"
PARQUET = ROOT.parent / "shared" / "data" / "eeg" / "uci_alcoholism" / "eegdata.parquet"
GROUPS = {"a": "alcoholic", "c": "control"}
CHANNELS, RATE = 64, 256
NOT_EEG = {"X": "EOG", "Y": "EOG", "nd": "MISC"}
#: Pairs of subjects, one of each class, that choose the weights in a balanced fold.
VALIDATION_PAIRS = 2
#: The anchor: Hz of the log spectra, inverse strength of the penalty, groups of subjects, and draws of the groups.
SPECTRUM_HZ = (1, 50)
STRENGTH = 1.0
GROUPS_HELD_OUT, DRAWS = 5, 20

HEADER = """Brain Vision Data Exchange Header File Version 1.0
[Common Infos]
Codepage=UTF-8
DataFile={stem}_eeg.eeg
MarkerFile={stem}_eeg.vmrk
DataFormat=BINARY
DataOrientation=MULTIPLEXED
NumberOfChannels={channels}
SamplingInterval={interval}
[Binary Infos]
BinaryFormat=IEEE_FLOAT_32
[Channel Infos]
"""
MARKERS = """Brain Vision Data Exchange Marker File, Version 1.0
[Common Infos]
Codepage=UTF-8
DataFile={stem}_eeg.eeg
[Marker Infos]
Mk1=New Segment,,1,1,0
"""


@contextlib.contextmanager
def workspace() -> Iterator[dict[str, Any]]:
    """Run a block in a temporary workspace where the corpus is ingested and judged; yields what the gate made of it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_bids(folder / "bids")
        tree = load_params(ROOT / PARAMS_FILE)
        layout = {"reader": "bids", "events": {"labels": {name: name for name in GROUPS.values()}}}
        tree["eeg"]["corpora"] = {KEY: {"path": "bids", "format": layout, "gate": {}}}
        (folder / PARAMS_FILE).write_text(yaml.safe_dump(tree))
        for words in (["ingest", f"eeg@{KEY}"], ["validate", "eeg"]):
            run_stage(words, folder)
        with contextlib.chdir(folder):
            yield verdict()


def run_stage(words: Sequence[str], folder: Path) -> None:
    """Run a stage of the project in another workspace."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "stages", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"stages {' '.join(words)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")


def verdict() -> dict[str, Any]:
    """Number of trials and of accepted ones, and why the others are quarantined."""
    judged = pl.read_parquet("data/validated/eeg/verdict.parquet").unique("record_id")
    out = judged.filter(pl.col("outcome") != "accepted")
    reasons = out["reason"].sort().to_list()
    return {"trials": judged.height, "accepted": judged.height - out.height, "quarantined": reasons}


def write_bids(folder: Path) -> None:
    """Write the long table as BIDS, a recording a subject and an event a trial; float32 keeps the numbers."""
    table = pl.read_parquet(PARQUET).cast({pl.Categorical: pl.String})
    block = CHANNELS * RATE
    names = table["channel"][:block:RATE].to_list()
    whole = table.height % block == 0
    channel = table["channel"].to_numpy().reshape(-1, CHANNELS, RATE) if whole else np.empty((0, 1, 1))
    time = table["time"].to_numpy()
    if not whole or (channel != np.array(names)[:, None]).any() or (time.reshape(-1, RATE) != np.arange(RATE)).any():
        sys.exit(f"{PARQUET}: expected whole trials of {CHANNELS} channels x {RATE} samples one after the other")
    microvolts_NCT = table["voltage"].to_numpy().reshape(-1, CHANNELS, RATE)
    trials = table[::block].select("subject", "group").with_row_index("place")
    for subject, group, places in trials.group_by("subject", "group", maintain_order=True).agg("place").iter_rows():
        stem = folder / f"sub-{subject}" / "eeg" / f"sub-{subject}_task-pictures"
        write_recording(stem, names, microvolts_NCT[places])
        onsets = "".join(f"{second}\t1\t{GROUPS[group]}\n" for second in range(len(places)))
        stem.with_name(f"{stem.name}_events.tsv").write_text(f"onset\tduration\ttrial_type\n{onsets}")
    kinds = "".join(f"{name}\t{NOT_EEG.get(name, 'EEG')}\tuV\n" for name in names)
    (folder / "task-pictures_channels.tsv").write_text(f"name\ttype\tunits\n{kinds}")


def write_recording(stem: Path, names: Sequence[str], microvolts_NCT: NDArray[np.float32]) -> None:
    """Write trials one after the other as one BrainVision recording."""
    stem.parent.mkdir(parents=True)
    lines = "".join(f"Ch{number}={name},,1,µV\n" for number, name in enumerate(names, start=1))
    header = HEADER.format(stem=stem.name, channels=len(names), interval=1e6 / RATE) + lines
    stem.with_name(f"{stem.name}_eeg.vhdr").write_text(header, encoding="utf-8")
    stem.with_name(f"{stem.name}_eeg.vmrk").write_text(MARKERS.format(stem=stem.name), encoding="utf-8")
    microvolts_NCT.transpose(0, 2, 1).astype("<f4").tofile(stem.with_name(f"{stem.name}_eeg.eeg"))


def balanced(windows: Windows, rng: np.random.Generator) -> list[Fold]:
    """Folds that hold a subject out beside one of the other class, untested: both classes are as common in training.

    Pairs lie on a circle in an order drawn at random; the two pairs after the one that is held out choose the weights.
    """
    of = windows.subject_N
    label = np.array([windows.label_N[of == subject][0] for subject in range(len(windows.subjects))])
    pairs = np.stack([rng.permutation(np.flatnonzero(label == y)) for y in (0, 1)], axis=1)
    folds = {}
    for place, pair in enumerate(pairs):
        validation = pairs[(place + 1 + np.arange(VALIDATION_PAIRS)) % len(pairs)]
        train = ~np.isin(of, [*pair, *validation.ravel()])
        for held_out in pair:
            parts = (np.flatnonzero(part) for part in (train, np.isin(of, validation), of == held_out))
            folds[held_out] = Fold(windows.subjects[held_out], *parts)
    return [folds[held_out] for held_out in range(len(windows.subjects))]


def log_spectra(signals: Windows) -> NDArray[np.float64]:
    """Log power of each channel and Hertz of each window, shape (window, channel x Hz)."""
    x_NCT = signals.x_ND - signals.x_ND.mean(axis=2, keepdims=True)
    power = np.abs(np.fft.rfft(x_NCT * np.hanning(x_NCT.shape[2]), axis=2)) ** 2
    return np.log(power[..., SPECTRUM_HZ[0] : SPECTRUM_HZ[1] + 1] + 1e-9).reshape(len(x_NCT), -1)


def logistic_regression(
    x_ND: NDArray[np.float64], label_N: NDArray[np.int64], train: NDArray[np.int64], test: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Log class probabilities of the test windows; penalty |w|^2 / 2 beside the sum of the losses."""
    from scipy.optimize import minimize

    x_ND = standardise(x_ND, *moments(x_ND[train])).astype(np.float64)  # type: ignore[arg-type]
    x, sign_N = x_ND[train], 2.0 * label_N[train] - 1

    def loss(weight_D: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin_N = sign_N * (x @ weight_D[1:] + weight_D[0])
        pull_N = -STRENGTH * sign_N * np.exp(-np.logaddexp(0, margin_N))
        gradient_D = np.concatenate([[pull_N.sum()], x.T @ pull_N + weight_D[1:]])
        return STRENGTH * np.logaddexp(0, -margin_N).sum() + weight_D[1:] @ weight_D[1:] / 2, gradient_D

    weight_D = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B").x
    score_N = x_ND[test] @ weight_D[1:] + weight_D[0]
    log_p_NY: NDArray[np.float32] = -np.logaddexp(0, np.stack([score_N, -score_N], axis=1)).astype(np.float32)
    return log_p_NY


def anchor(signals: Windows) -> dict[str, float]:
    """Accuracy of the logistic regression with two subjects of each class held out: mean and standard deviation.

    Five groups of four subjects, drawn anew many times; the deviation is that of single groups.
    """
    x_ND, of, found = log_spectra(signals), signals.subject_N, []
    label = np.array([signals.label_N[of == subject][0] for subject in range(len(signals.subjects))])
    rng = np.random.default_rng(0)
    for _ in range(DRAWS):
        order = np.stack([rng.permutation(np.flatnonzero(label == y)) for y in (0, 1)], axis=1)
        for held_out in order.reshape(GROUPS_HELD_OUT, -1):
            out = np.isin(of, held_out)
            log_p = logistic_regression(x_ND, signals.label_N, np.flatnonzero(~out), np.flatnonzero(out))
            found.append(float(np.mean(log_p.argmax(axis=1) == signals.label_N[out])))
    return {"accuracy": float(np.mean(found)), "sd": float(np.std(found))}
