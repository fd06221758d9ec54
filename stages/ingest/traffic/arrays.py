"""Arrays of numpy's formats (npy, npz), read in blocks along their first axis.

Shapes: T time, S sensor, V variable.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.traffic.sets import Array
from stages.ingest.traffic.tables import AGAIN

#: Bytes that are read at once.
BLOCK_BYTES = 1 << 22


@dataclass(frozen=True)
class Source:
    """An array on disk: a npy file, or the member of a npz file."""

    file: Path
    member: str | None = None


def shape_of(source: Source) -> tuple[int, ...]:
    """Shape of an array, from its header alone."""
    with _stream(source) as stream:
        return _header(source, stream)[0]


def read_features(source: Source, count: int) -> list[Array]:
    """The first features of an array (time, sensor, feature) or (time, sensor), each as float32 (time, sensor).

    Raises
    ------
    DataError
        The array is no matrix or cube of numbers, is cut short, or holds objects.
    """
    with _stream(source) as stream:
        shape, dtype, fortran = _header(source, stream)
        if len(shape) not in (2, 3) or dtype.kind not in "fiu" or 0 in shape:
            raise DataError(
                source.file,
                record=source.member,
                found=f"an array of shape {shape} and type {dtype}",
                expected="numbers of shape (time, sensor) or (time, sensor, feature)",
                remedy="Name the file of the data.",
            )
        features = [np.empty(shape[:2], dtype=np.float32) for _ in range(min(count, (*shape, 1)[2]))]
        for first, block in _blocks(source, stream, shape, dtype, fortran):
            for index, values_TS in enumerate(features):
                values_TS[first : first + len(block)] = block[..., index] if block.ndim == 3 else block
    return features


def read_raw(file: Path, shape: tuple[int, int, int], count: int) -> list[Array]:
    """The first features of bare float32 numbers of a known shape (time, sensor, feature).

    Raises
    ------
    DataError
        The file is not of that size.
    """
    expected = int(np.prod(shape)) * 4
    size = file.stat().st_size
    if size != expected:
        raise DataError(
            file,
            found=f"{size} bytes",
            expected=f"{expected}: float32 of shape {shape} as its description says",
            remedy=AGAIN,
        )
    features = [np.empty(shape[:2], dtype=np.float32) for _ in range(min(count, shape[2]))]
    with file.open("rb") as stream:
        for first, block in _blocks(Source(file), stream, shape, np.dtype("<f4"), False):
            for index, values_TS in enumerate(features):
                values_TS[first : first + len(block)] = block[..., index]
    return features


def members(file: Path) -> list[str]:
    """Names of the arrays of a npz file."""
    try:
        with zipfile.ZipFile(file) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(file, found=f"no readable npz file ({error})", expected="one", remedy=AGAIN) from None


@contextmanager
def _stream(source: Source) -> Iterator[IO[bytes]]:
    if source.member is None:
        with source.file.open("rb") as stream:
            yield stream
        return
    with zipfile.ZipFile(source.file) as archive, archive.open(f"{source.member}.npy") as member:
        yield member


def _header(source: Source, stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape, type, and whether the first axis runs fastest."""
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except (ValueError, zipfile.BadZipFile, OSError) as error:
        told = str(error).splitlines()[0]
        raise DataError(
            source.file, record=source.member, found=f"no array ({told})", expected="one", remedy=AGAIN
        ) from None
    return tuple(shape), dtype, bool(fortran)


def _blocks(
    source: Source, stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Row number and rows, as many as fit into a block."""
    row = int(np.prod(shape[1:])) * dtype.itemsize
    step = shape[0] if fortran else max(1, BLOCK_BYTES // row)
    for first in range(0, shape[0], step):
        rows = min(step, shape[0] - first)
        data = _exactly(source, stream, rows * row)
        block = np.frombuffer(data, dtype=dtype)
        yield first, block.reshape((rows, *shape[1:]), order="F" if fortran else "C")


def _exactly(source: Source, stream: IO[bytes], size: int) -> bytes:
    try:
        data = stream.read(size)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise DataError(
            source.file, record=source.member, found=f"damaged data ({error})", expected="a whole file", remedy=AGAIN
        ) from None
    if len(data) != size:
        raise DataError(
            source.file, record=source.member, found="an array that is cut short", expected="a whole one", remedy=AGAIN
        )
    return data
