"""MATLAB files of version 5 and 7.3, one variable at a time.

Version 5 is read by scipy, version 7.3 (an HDF5 file) by h5py; shapes and orientation are those that MATLAB shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import h5py  # type: ignore[import-untyped]
import numpy as np
import scipy.io
from numpy.typing import NDArray

from stages.errors import DataError
from stages.ingest.eeg.trials import AGAIN

HDF5 = b"\x89HDF\r\n\x1a\n"
HEAD = 520

#: Classes of MATLAB that hold numbers.
NUMERIC = {"double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def version(file: Path) -> Literal["5", "7.3"]:
    """Version of a MATLAB file, by its first bytes and not by its name.

    Raises
    ------
    DataError
        The file is of version 4, or no MATLAB file.
    """
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    if HDF5 in (head[:8], head[512:520]):
        return "7.3"
    if len(head) >= 128 and head[124:128] in (b"\x00\x01IM", b"\x01\x00MI"):
        return "5"
    raise DataError(
        file,
        found="an empty file" if not head else f"first bytes {head[:12]!r}",
        expected="a MATLAB file of version 5 or 7.3",
        remedy=f"{AGAIN} A file of version 4 must be saved anew by MATLAB.",
    )


def variables(file: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the variables, without reading their values.

    Raises
    ------
    DataError
        The file is damaged, or no MATLAB file.
    """
    if version(file) == "5":
        try:
            return {name: tuple(shape) for name, shape, _ in scipy.io.whosmat(file)}
        except Exception as error:  # scipy raises whatever its parser meets in a damaged file
            raise damaged(file, error) from None
    try:
        with h5py.File(file, "r") as store:
            return {
                name: tuple(reversed(node.shape)) if isinstance(node, h5py.Dataset) else ()
                for name, node in store.items()
                if not name.startswith("#")
            }
    except (OSError, RuntimeError, KeyError) as error:
        raise damaged(file, error) from None


def numbers(file: Path, name: str) -> NDArray[Any]:
    """Values of one numeric variable.

    Raises
    ------
    DataError
        The variable is absent, holds no numbers, or the file is damaged.
    """
    values = _load5(file, name) if version(file) == "5" else _load73(file, name)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iufb":
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise DataError(
            file, record=f"variable {name}", found=f"type {kind}", expected="an array of numbers", remedy=AGAIN
        )
    return values


def labels(file: Path, name: str) -> list[float | str]:
    """Values of a vector of numbers or texts (a cell array of texts, or a character array with a text in each row).

    Raises
    ------
    DataError
        The variable is absent, or something else than that.
    """
    values = _load5(file, name) if version(file) == "5" else _load73(file, name)
    flat = [values] if isinstance(values, str) else np.asarray(values).ravel().tolist()
    found: list[float | str] = []
    for value in flat:
        inner = value
        while isinstance(inner, np.ndarray) and inner.size == 1:
            inner = inner.ravel()[0]
        if isinstance(inner, str):
            found.append(inner.strip())
        elif isinstance(inner, (int, float, np.number)):
            found.append(float(inner))
        else:
            raise DataError(
                file,
                record=f"variable {name}",
                found=f"an entry of type {type(inner).__name__}",
                expected="numbers or texts",
                remedy=AGAIN,
            )
    return found


def damaged(file: Path, error: Exception) -> DataError:
    """The error for a file that a parser gave up on."""
    told = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(
        file, found=f"a damaged or incomplete MATLAB file ({told})", expected="a complete one", remedy=AGAIN
    )


def _absent(file: Path, name: str, there: list[str]) -> DataError:
    return DataError(
        file,
        found=f"variables {', '.join(there) or 'none'}",
        expected=f"the variable {name!r}",
        remedy="Point `path` at the folder of the corpus as it was published.",
    )


def _load5(file: Path, name: str) -> Any:
    try:
        content = scipy.io.loadmat(file, variable_names=[name], chars_as_strings=True)
    except Exception as error:
        raise damaged(file, error) from None
    if name not in content:
        raise _absent(file, name, list(variables(file)))
    return content[name]


def _load73(file: Path, name: str) -> Any:
    try:
        with h5py.File(file, "r") as store:
            if name not in store:
                raise _absent(file, name, [key for key in store if not key.startswith("#")])
            return value73(store[name])
    except (OSError, RuntimeError, KeyError) as error:
        raise damaged(file, error) from None


def open73(file: Path) -> Any:
    """The HDF5 file behind a MATLAB file of version 7.3, to be closed by the caller.

    Raises
    ------
    DataError
        The file is damaged.
    """
    try:
        return h5py.File(file, "r")
    except OSError as error:
        raise damaged(file, error) from None


def value73(node: Any) -> Any:
    """Value of a dataset of version 7.3: numbers in MATLAB's orientation, a text, or an array of what a cell holds."""
    if not isinstance(node, h5py.Dataset):
        return node
    kind = node.attrs.get("MATLAB_class", b"double")
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    values = node[()]
    if node.attrs.get("MATLAB_empty", 0):
        return np.empty(tuple(int(size) for size in values), dtype=np.float64)
    if kind == "char":
        # Each row of the transposed array is one text.
        return np.array(["".join(map(chr, row)) for row in np.atleast_2d(np.asarray(values).T)])
    if kind == "cell" or getattr(values, "dtype", None) == h5py.ref_dtype:
        held = np.empty(np.asarray(values).T.shape, dtype=object)
        held.ravel()[:] = [value73(node.file[reference]) for reference in np.asarray(values).T.ravel()]
        return held
    return np.asarray(values).T
