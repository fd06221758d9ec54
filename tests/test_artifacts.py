from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from stages import artifacts
from stages.errors import StageError
from tests.conftest import ROOT


def drafts() -> list[Path]:
    return [path for path in artifacts.PARTIAL.iterdir() if path.is_dir()]


def test_a_failed_write_leaves_the_old_artifact_and_no_draft(workspace: Path) -> None:
    target = workspace / "data" / "x.json"
    artifacts.write_json(target, {"a": 1})
    with pytest.raises(ZeroDivisionError), artifacts.atomic(target) as draft:
        draft.write_text(f"half of it, then {1 / (draft.name == 'y')}")
    assert artifacts.read_json(target) == {"a": 1}
    assert drafts() == []


def test_a_folder_replaces_the_folder_before_it(workspace: Path) -> None:
    target = workspace / "data" / "models"
    for name in ("old", "new"):
        with artifacts.atomic(target) as draft:
            draft.mkdir()
            (draft / name).touch()
    assert [path.name for path in target.iterdir()] == ["new"]


def test_a_block_that_writes_nothing_leaves_the_old_folder(workspace: Path) -> None:
    target = workspace / "data" / "models"
    with artifacts.atomic(target) as draft:
        draft.mkdir()
        (draft / "old").touch()
    with pytest.raises(FileNotFoundError), artifacts.atomic(target):
        pass
    assert [path.name for path in target.iterdir()] == ["old"]


def test_a_rename_that_fails_brings_the_old_folder_back(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = workspace / "data" / "models"
    with artifacts.atomic(target) as draft:
        draft.mkdir()
        (draft / "old").touch()

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError), artifacts.atomic(target) as draft:
        draft.mkdir()
    assert [path.name for path in target.iterdir()] == ["old"]


def test_a_full_disk_names_the_target_and_leaves_nothing(workspace: Path) -> None:
    target = workspace / "data" / "x.parquet"
    with pytest.raises(StageError, match=r"x\.parquet: the disk is full \(\d+ MiB free"), artifacts.atomic(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not target.exists()
    assert drafts() == []


def test_a_really_full_disk(workspace: Path) -> None:
    """The kernel refuses to write past the limit, in the middle of a file."""
    script = (
        "import resource, signal; from pathlib import Path; from stages import artifacts\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "artifacts.write_json(Path('data/x.json'), list(range(10000)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert run.returncode != 0
    assert not Path("data/x.json").exists()
    assert drafts() == []


def test_the_draft_of_a_killed_process_is_removed_by_the_next_stage(workspace: Path) -> None:
    script = (
        "import os, signal; from pathlib import Path; from stages import artifacts\n"
        "with artifacts.atomic(Path('data/x')) as draft:\n"
        "    draft.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
    assert run.returncode == -signal.SIGKILL
    assert len(drafts()) == 1
    with artifacts.atomic(Path("data/y")) as draft:  # ours, alive: stays
        draft.touch()
        artifacts.remove_abandoned()
        assert len(drafts()) == 1
    assert not Path("data/x").exists()


def test_an_undefined_metric_is_null(workspace: Path) -> None:
    """Case 60: JSON has no NaN."""
    artifacts.write_json(Path("data/metrics.json"), {"f1": float("nan"), "of": [np.float64("inf"), np.int64(3)]})
    assert Path("data/metrics.json").read_text() == '{\n  "f1": null,\n  "of": [\n    null,\n    3\n  ]\n}\n'


def test_line_endings_are_content(workspace: Path) -> None:
    """Case 54."""
    Path("a").write_bytes(b"a\r\nb\r\n")
    Path("b").write_bytes(b"a\nb\n")
    assert artifacts.sha256_file(Path("a")) != artifacts.sha256_file(Path("b"))


def test_shape_type_and_name_are_content() -> None:
    """Case 56: the same bytes in another shape are other data."""
    flat = np.arange(6)
    variants = [{"x": flat}, {"x": flat.reshape(2, 3)}, {"y": flat}, {"x": flat.astype(np.float64)}, {"x": flat[:0]}]
    assert len({artifacts.sha256_arrays(variant) for variant in variants}) == len(variants)


def test_a_dataset_reads_back_lazily_and_its_bytes_are_equal(workspace: Path) -> None:
    time = np.datetime64("2015-01-01", "ns") + np.arange(70_000) * np.timedelta64(30, "m")
    values = np.random.default_rng(0).normal(size=70_000)
    dataset = xr.Dataset(
        {"LE": ("time", values, {"units": "W m-2"}), "LE_QC": ("time", np.zeros(70_000, np.int8))},
        coords={"time": ("time", time.astype("datetime64[ns]"))},
    )
    hashes = set()
    for name in ("one", "two"):
        artifacts.write_dataset(Path(name), {"native": dataset})
        hashes.add(artifacts.sha256_tree(Path(name)))
    back = artifacts.open_dataset(Path("one"), "native")
    xr.testing.assert_identical(back.load(), dataset)
    assert len(hashes) == 1
    assert sum(path.is_file() for path in Path("one").rglob("*")) <= 8  # one shard and one header an array


@given(st.dictionaries(st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)))
def test_json_round_trip(tmp_path_factory: pytest.TempPathFactory, value: dict[str, object]) -> None:
    folder = tmp_path_factory.mktemp("json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        artifacts.write_json(Path("data/x.json"), value)
        expected = {key: None if value in (float("inf"), float("-inf")) else value for key, value in value.items()}
        assert artifacts.read_json(Path("data/x.json")) == expected


def test_a_table_reads_back(workspace: Path) -> None:
    frame = pl.DataFrame({"record_id": ["a", "b"], "mean_LE": [1.5, None]})
    artifacts.write_table(Path("data/records.parquet"), frame)
    assert artifacts.read_table(Path("data/records.parquet")).collect().equals(frame)
