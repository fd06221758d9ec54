"""Writers of small files in the exact layout of each corpus: C channels, T samples, W windows."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.io
from numpy.typing import NDArray
from pydantic import TypeAdapter

from stages.errors import DataError
from stages.ingest.eeg.config import AnyFormat, Format
from stages.ingest.eeg.trials import OpenCorpus, Trial, open_corpus

SEED_CLASSES = (1, 0, -1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 0, 1, -1)


def format_of(block: Any) -> AnyFormat:
    options: AnyFormat = TypeAdapter(Format).validate_python(block)
    return options


def opened(path: Path, block: Any) -> OpenCorpus:
    return open_corpus(path, format_of(block), "key")


def every_trial(path: Path, block: Any) -> list[Trial]:
    return [trial for _, trials in opened(path, block) for trial in trials]


def read_all(path: Path, block: Any) -> None:
    """Read everything there is: the trials, and what each of them holds."""
    for trial in every_trial(path, block):
        for read in (trial.signal, trial.features):
            if read is not None:
                read()


def told(path: Path, block: Any) -> str:
    """What the user is told about a corpus that cannot be read."""
    try:
        read_all(path, block)
    except DataError as error:
        return str(error)
    raise AssertionError("it was read")


def eeg(seed: int, channels: int, samples: int, std: float = 20.0) -> NDArray[np.float64]:
    """Noise in microvolts that differs by seed."""
    return np.random.default_rng(seed).normal(0.0, std, (channels, samples))


def mat73(file: Path, content: Mapping[str, Any]) -> Path:
    """A MATLAB file of version 7.3: HDF5 behind a block of 512 bytes, arrays transposed, cells by reference."""
    with h5py.File(file, "w", userblock_size=512) as store:
        for name, value in content.items():
            _node73(store, store, name, value)
    with file.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return file


def _node73(store: h5py.File, parent: Any, name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        group = parent.create_group(name)
        group.attrs["MATLAB_class"] = np.bytes_("struct")
        for key, inner in value.items():
            _node73(store, group, key, inner)
        return group
    if isinstance(value, list):
        held = store.require_group("#refs#")
        nodes = [_node73(store, held, f"r{len(held)}", inner) for inner in value]
        data = np.array([[node.ref for node in nodes]], dtype=h5py.ref_dtype).T
        node = parent.create_dataset(name, data=data.T)
        node.attrs["MATLAB_class"] = np.bytes_("cell")
        return node
    if isinstance(value, str):
        node = parent.create_dataset(name, data=np.array([[ord(letter)] for letter in value], dtype=np.uint16))
        node.attrs["MATLAB_class"] = np.bytes_("char")
        return node
    node = parent.create_dataset(name, data=np.atleast_2d(value).T)
    node.attrs["MATLAB_class"] = np.bytes_("double")
    return node


def seed(
    folder: Path,
    files: Mapping[str, str],
    *,
    samples: int = 40,
    skip: Sequence[int] = (),
    label: Any = SEED_CLASSES,
    version: str = "5",
) -> Path:
    """``Preprocessed_EEG/``: files by name with the initials in their keys; the values differ by file and trial."""
    inner = folder / "Preprocessed_EEG"
    inner.mkdir(parents=True)
    scipy.io.savemat(inner / "label.mat", {"label": np.atleast_2d(np.array(label))})
    for number, (name, initials) in enumerate(files.items()):
        content = {
            f"{initials}_eeg{trial}": eeg(100 * number + trial, 62, samples + trial)
            for trial in range(1, 16)
            if trial not in skip
        }
        if version == "5":
            scipy.io.savemat(inner / name, content, do_compression=True)
        else:
            mat73(inner / name, content)
    return folder


def seed_features(folder: Path, files: Sequence[str], windows: int = 4) -> Path:
    """``ExtractedFeatures/``: de_LDS of :func:`shipped_features`, and psd_LDS as its negative."""
    inner = folder / "ExtractedFeatures"
    inner.mkdir(parents=True)
    scipy.io.savemat(inner / "label.mat", {"label": np.atleast_2d(np.array(SEED_CLASSES))})
    for name in files:
        content = {}
        for trial in range(1, 16):
            content[f"de_LDS{trial}"] = shipped_features(trial, windows)
            content[f"psd_LDS{trial}"] = -shipped_features(trial, windows)
        scipy.io.savemat(inner / name, content)
    return folder


def shipped_features(trial: int, windows: int) -> NDArray[np.float64]:
    """Shape (channel, window, band): trial + channel / 100 + window / 10 + 10 band."""
    c, w, f = np.ogrid[:62, :windows, :5]
    return np.asarray(trial + c / 100 + w / 10 + 10 * f, dtype=np.float64)


def seed_iv(folder: Path, subjects: Sequence[str] = ("1", "2"), samples: int = 30) -> Path:
    """``eeg_raw_data/`` and ``eeg_feature_smooth/``: a folder for each session; dates as they come."""
    for session in ("1", "2", "3"):
        raw, smooth = folder / "eeg_raw_data" / session, folder / "eeg_feature_smooth" / session
        raw.mkdir(parents=True)
        smooth.mkdir(parents=True)
        for subject in subjects:
            name = f"{subject}_2016010{9 - int(session)}.mat"
            signals = {f"cz_eeg{trial}": eeg(trial, 62, samples) for trial in range(1, 25)}
            scipy.io.savemat(raw / name, signals)
            scipy.io.savemat(smooth / name, {f"de_LDS{trial}": shipped_features(trial, 3) for trial in range(1, 25)})
    return folder


def seed_v(file: Path, trials: int = 45, windows: int = 3, pack: Any = pickle.dumps) -> Path:
    """``EEG_DE_features/1_123.npz``: two pickles as bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    data = {trial: np.arange(310.0) + 1000 * np.arange(windows)[:, None] + trial / 100 for trial in range(trials)}
    label = {trial: np.full(windows, trial % 5) for trial in range(trials)}
    np.savez(file, data=np.array(pack(data)), label=np.array(pack(label)))
    return file


def python2(value: Any) -> bytes:
    """A pickle as Python 2 and its numpy write it (protocol 2), of a dictionary of arrays and texts of bytes."""
    return b"\x80\x02" + _python2(value) + b"."


def _python2(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"}(" + b"".join(_python2(key) + _python2(held) for key, held in value.items()) + b"u"
    if isinstance(value, str):
        return _python2(value.encode("latin1"))
    if isinstance(value, bytes):
        return b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value
    array = np.ascontiguousarray(value, dtype=np.float64)
    shape = b"(" + b"".join(b"M" + struct.pack("<H", size) for size in array.shape) + b"t"
    kind = b"cnumpy\ndtype\nU\x02f8K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01" + shape + kind + b"\x89" + _python2(array.tobytes()) + b"tb"
    return b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R" + state


def deap(folder: Path, names: Sequence[str] = ("s01",), samples: int = 400, std: float = 15.0) -> NDArray[np.float64]:
    """``data_preprocessed_python/``; returns the labels, the same for all participants."""
    inner = folder / "data_preprocessed_python"
    inner.mkdir(parents=True)
    labels = np.round(np.random.default_rng(5).uniform(1, 9, (40, 4)), 2)
    labels[0] = [5.0, 5.01, 9.0, 1.0]
    for number, name in enumerate(names):
        data = np.random.default_rng(number).normal(0, std, (40, 40, samples))
        (inner / f"{name}.dat").write_bytes(python2({"labels": labels, "data": data}))
    return labels


def dreamer_content(subjects: int = 3, clips: int = 18) -> dict[str, Any]:
    """The structure of DREAMER.mat; clip i of subject s has 50 + i samples, and score 1 + (s + i) % 5."""
    people = []
    for subject in range(subjects):
        stimuli = [eeg(100 * subject + clip, 50 + clip, 14) for clip in range(clips)]
        baseline = [eeg(7, 30, 14) for _ in range(clips)]
        score = np.array([[1.0 + (subject + clip) % 5] for clip in range(clips)])
        heart = {"baseline": [eeg(8, 10, 2) for _ in range(clips)], "stimuli": [eeg(9, 10, 2) for _ in range(clips)]}
        people.append(
            {
                "Age": "22",
                "Gender": "male",
                "EEG": {"baseline": baseline, "stimuli": stimuli},
                "ECG": heart,
                "ScoreValence": score,
                "ScoreArousal": score[::-1],
                "ScoreDominance": score,
            }
        )
    return {"Data": people, "EEG_SamplingRate": 128.0, "noOfSubjects": float(subjects), "Version": "1.0.2"}


def dreamer5(file: Path, content: dict[str, Any], compressed: bool = True) -> Path:
    def matlab(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: matlab(held) for name, held in value.items()}
        if isinstance(value, list):
            cells = np.empty((len(value), 1), dtype=object)
            cells[:, 0] = [matlab(held) for held in value]
            return cells
        return value

    scipy.io.savemat(file, {"DREAMER": matlab(content)}, do_compression=compressed)
    return file


def edf(
    file: Path,
    data_CT: NDArray[np.float64],
    names: Sequence[str],
    *,
    rate: int = 100,
    seconds: str = "1",
    units: Sequence[str] | None = None,
    kind: str = "",
    notes: Sequence[bytes] | None = None,
    faster: Mapping[str, int] | None = None,
) -> Path:
    """An EDF file with a step of 0.1 units, or a BDF file with one of 1/32 by the ending of its name.

    ``rate`` samples stand in a record of so many ``seconds``; signals in ``faster`` have more. ``notes`` are the
    annotations of each record, which make it EDF+. A channel named Status holds the digits themselves.
    """
    width = 3 if file.suffix == ".bdf" else 2
    most = 1 << (8 * width - 1)
    low, high = (-3276.8, 3276.7) if width == 2 else (-262144, 262143)
    step = (high - low) / (2 * most - 1)
    offset = low + step * most
    records = data_CT.shape[1] // rate
    labels = [*names, *(["EDF Annotations"] if notes else [])]
    units = [*(units or ["uV"] * len(names)), *([""] if notes else [])]
    samples = [(faster or {}).get(name, rate) for name in names] + ([40] if notes else [])
    count = len(labels)

    def column(values: Sequence[Any], size: int) -> bytes:
        return b"".join(str(value).encode("latin1").ljust(size) for value in values)

    head = (b"0" if width == 2 else b"\xffBIOSEMI").ljust(8) + b"X".ljust(80) + b"Startdate X X X X".ljust(80)
    head += b"01.01.2000.00.00" + column([256 * (count + 1)], 8) + column([kind], 44) + column([records], 8)
    head += column([seconds], 8) + column([count], 4) + column(labels, 16) + column([""] * count, 80)
    head += column(units, 8) + column([low] * len(names) + ([-1] if notes else []), 8)
    head += column([high] * len(names) + ([1] if notes else []), 8)
    head += column([-most] * count, 8) + column([most - 1] * count, 8) + column([""] * count, 80)
    head += column(samples, 8) + column([""] * count, 32)
    body = b""
    for record in range(records):
        for index, size in enumerate(samples[: len(names)]):
            part = data_CT[index, record * rate : (record + 1) * rate]
            part = part if size == rate else np.repeat(part, size // rate)
            scaled = part if names[index] == "Status" else (part - offset) / step
            digits = np.rint(scaled).astype("<i4").view(np.uint8).reshape(-1, 4)
            body += np.ascontiguousarray(digits[:, :width]).tobytes()
        if notes:
            body += notes[record].ljust(80, b"\0")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(head + body)
    return file


def uea(file: Path, trials: Sequence[tuple[NDArray[np.float64], str]], head: str = "") -> Path:
    """A .ts file of trials (C, T) with their classes."""
    classes = " ".join(dict.fromkeys(label for _, label in trials))
    lines = ["#made here, Amplitude +/-1000 \xb5V", "@problemName Made", "@timestamps false", "@univariate false"]
    lines += ["@equalLength true", f"@classLabel true {classes}", *([head] if head else []), "@data", ""]
    for values_CT, label in trials:
        series = [",".join(repr(float(value)) for value in row) for row in values_CT]
        lines.append(":".join([*series, label]))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(("\n".join(lines) + "\n").encode("latin1"))
    return file
