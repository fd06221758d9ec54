"""Reading and writing what passes between stages, and the only place that knows where it lies.

Every write goes to ``data/.partial`` first, on the same disk, and is renamed into place: a killed stage leaves the old
artifact or none. (A temporary sibling inside ``data/ingested/D`` would change the hash of a folder other stages depend
on.) No pickle is written; JSON holds null where a number is undefined.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from stages.errors import StageError

if TYPE_CHECKING:
    import polars as pl
    import xarray as xr
    from numpy.typing import NDArray

DATA = Path("data")
PARTIAL = DATA / ".partial"
LOCK = "lock"
REPORT = DATA / "report"

HASH_BLOCK = 1 << 20
SHARD_VALUES = 1 << 22  # values in one file of a zarr array: 32 MiB of float64
CHUNK_VALUES = 1 << 16  # values decompressed at once: about 3.7 years of half-hours


def raw(source: str) -> Path:
    """Untouched bytes of a source, with manifest.json."""
    return DATA / "raw" / source


def ingested(domain: str, site: str | None = None) -> Path:
    """The typed data set of one source of a domain: data.zarr, records.parquet, manifest.json."""
    folder = DATA / "ingested" / domain
    return folder if site is None else folder / site


def validated(domain: str) -> Path:
    """What the gate of a domain wrote: verdict.parquet, splits.parquet, summary.json, docs/."""
    return DATA / "validated" / domain


def model(system: str, seed: int | None = None) -> Path:
    """What training a system with one seed wrote."""
    folder = DATA / "models" / system
    return folder if seed is None else folder / str(seed)


def evaluation(system: str) -> Path:
    """What evaluating a system wrote: metrics.json, tables and plots/."""
    return DATA / "evaluations" / system


@contextmanager
def atomic(target: Path) -> Iterator[Path]:
    """Yield a path to write a file or folder to; it becomes ``target`` when the block ends without an error.

    Raises
    ------
    StageError
        The disk is full: the message names the target and the space left; nothing is left behind.
    """
    with _guarded_drafts():
        scratch = Path(tempfile.mkdtemp(dir=PARTIAL))
        alive = _locked(scratch / LOCK)
    draft = scratch / target.name
    try:
        yield draft
        target.parent.mkdir(parents=True, exist_ok=True)
        _put_in_place(draft, target, scratch / "replaced")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        free = shutil.disk_usage(PARTIAL).free
        raise StageError(
            f"{target}: the disk is full ({free / 2**20:.0f} MiB free under {PARTIAL.resolve()}). Nothing was changed; "
            "make room (`dvc gc --workspace --dry` lists what only other commits need) and run the stage again."
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        alive.close()


def _put_in_place(draft: Path, target: Path, aside: Path) -> None:
    """Rename a draft to its target; an old folder steps aside for it, and back where that fails."""
    if not (target.is_dir() and not target.is_symlink() and draft.exists()):
        draft.replace(target)
        return
    target.rename(aside)
    try:
        draft.replace(target)
    except BaseException:
        aside.rename(target)
        raise


def remove_abandoned() -> None:
    """Delete the drafts of processes that are gone (kill -9, power cut): the kernel has freed their locks."""
    if not PARTIAL.is_dir():
        return
    with _guarded_drafts():
        for scratch in (path for path in PARTIAL.iterdir() if path.is_dir()):
            try:
                _locked(scratch / LOCK).close()
            except BlockingIOError:
                continue
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _guarded_drafts() -> Iterator[None]:
    """Keep the making of a draft and the search for abandoned ones apart."""
    PARTIAL.mkdir(parents=True, exist_ok=True)
    with (PARTIAL / LOCK).open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def _locked(path: Path) -> IO[str]:
    """Open a file with a lock that ends with the process; raises BlockingIOError where another process holds it."""
    stream = path.open("a")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        raise
    return stream


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys; NaN and infinities become null."""
    text = json.dumps(_plain(value), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    with atomic(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON artifact."""
    return json.loads(path.read_text(encoding="utf-8"))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return value.as_posix()
    return value


def write_table(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as parquet."""
    with atomic(path) as draft:
        frame.write_parquet(draft, compression="zstd")


def read_table(path: Path) -> pl.LazyFrame:
    """Scan a parquet table lazily."""
    import polars as pl

    return pl.scan_parquet(path)


def write_dataset(store: Path, groups: Mapping[str, xr.Dataset]) -> None:
    """Write Datasets as the groups of one zarr store, sharded so that each array is one file or few.

    ``store`` is written in place: call it inside :func:`atomic` of the folder it belongs to. The first dimension is
    chunked; equal Datasets give equal bytes.
    """
    from zarr.codecs import ZstdCodec

    for group, dataset in groups.items():
        encoding: dict[str, Any] = {}
        for name, variable in dataset.variables.items():
            if variable.ndim == 0:
                continue
            row = max(1, math.prod(variable.shape[1:]))
            chunk = max(1, min(variable.shape[0], CHUNK_VALUES // row))
            shard = chunk * max(1, min(-(-variable.shape[0] // chunk), SHARD_VALUES // (chunk * row)))
            encoding[str(name)] = {
                "chunks": (chunk, *variable.shape[1:]),
                "shards": (shard, *variable.shape[1:]),
                "compressors": ZstdCodec(level=3),
            }
            if variable.dtype.kind == "M":
                encoding[str(name)] |= {"units": "minutes since 1970-01-01", "dtype": "int64"}
        dataset.to_zarr(store, group=group, mode="w", zarr_format=3, encoding=encoding, consolidated=False)


def open_dataset(store: Path, group: str) -> xr.Dataset:
    """Open one group of a zarr store; values are read when they are used."""
    import xarray as xr

    dataset: xr.Dataset = xr.open_zarr(store, group=group, chunks=None, consolidated=False)
    return dataset


def sha256_file(path: Path) -> str:
    """Hex digest of a file's bytes (line endings included)."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def sha256_tree(folder: Path) -> str:
    """Hex digest of a folder: relative names and contents, in the order of the names."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256_file(path)}\n".encode())
    return digest.hexdigest()


def sha256_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Hex digest of named arrays: names, types and shapes count as well as values."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
