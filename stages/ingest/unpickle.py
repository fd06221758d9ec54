"""Pickles of others, read without running anything of theirs.

A pickle may name any function of any module and call it. Here a name is looked up in a short table of constructors of
numpy arrays, numpy scalars and plain containers, each of which checks its arguments; any other name is refused.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stages.errors import DataError

AGAIN = "Copy or download it again."

_NDARRAY = object()


def _dtype(text: Any, align: Any = False, copy: Any = False) -> np.dtype[Any]:
    if not isinstance(text, (str, bytes)):
        raise pickle.UnpicklingError("a data type that is not named by a text")
    # A copy: the state that follows sets the byte order, which numpy ignores on the data types it shares.
    return np.dtype(text.decode("ascii") if isinstance(text, bytes) else text, False, True)


def _reconstruct(kind: Any, shape: Any, code: Any) -> np.ndarray[Any, Any]:
    # numpy makes an empty array here and fills it from the state that follows.
    if kind is not _NDARRAY or tuple(shape) not in ((0,), ()):
        raise pickle.UnpicklingError("an array of a subclass or of a shape that numpy does not write")
    return np.ndarray.__new__(np.ndarray, (0,), np.dtype(np.int8))


def _scalar(kind: Any, data: Any = b"") -> np.generic:
    if not isinstance(kind, np.dtype) or kind.hasobject or not isinstance(data, (bytes, str)):
        raise pickle.UnpicklingError("a numpy scalar that is not a number or a text")
    raw = data.encode("latin1") if isinstance(data, str) else data
    if len(raw) != kind.itemsize:
        raise pickle.UnpicklingError(f"a numpy scalar of {len(raw)} bytes in place of {kind.itemsize}")
    return np.frombuffer(raw, dtype=kind)[0]  # type: ignore[no-any-return]


def _frombuffer(buffer: Any, kind: Any, shape: Any, order: Any = "C") -> np.ndarray[Any, Any]:
    if not isinstance(kind, np.dtype) or kind.hasobject or not isinstance(buffer, (bytes, bytearray, memoryview)):
        raise pickle.UnpicklingError("an array that is not made of bytes")
    return np.frombuffer(buffer, dtype=kind).reshape(shape, order=order)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or str(encoding).replace("-", "").replace("_", "") not in ("latin1", "iso88591"):
        raise pickle.UnpicklingError("a text in another encoding than latin1")
    return text.encode("latin1")


def _bytes(*arguments: Any) -> bytes:
    if arguments and not isinstance(arguments[0], (bytes, bytearray)):
        raise pickle.UnpicklingError("bytes that are not made of bytes")
    return bytes(arguments[0]) if arguments else b""


def _bytearray(*arguments: Any) -> bytearray:
    if len(arguments) == 2:  # Python 2: bytearray(text, "latin-1")
        return bytearray(_encode(*arguments))
    return bytearray(_bytes(*arguments))


def _plain(kind: type) -> Callable[..., Any]:
    def make(*arguments: Any) -> Any:
        if any(not isinstance(argument, (int, float, str, list, tuple, set)) for argument in arguments):
            raise pickle.UnpicklingError(f"a {kind.__name__} that is not made of plain values")
        return kind(*arguments)

    return make


_CONSTRUCTORS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
    **{
        (f"numpy.{core}.{module}", name): constructor
        for core in ("core", "_core")
        for module, name, constructor in (
            ("multiarray", "_reconstruct", _reconstruct),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _frombuffer),
        )
    },
    **{
        (module, name): constructor
        for module in ("builtins", "__builtin__")
        for name, constructor in (
            ("bytes", _bytes),
            ("bytearray", _bytearray),
            ("complex", _plain(complex)),
            ("set", _plain(set)),
            ("frozenset", _plain(frozenset)),
        )
    },
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _CONSTRUCTORS[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused(f"a persistent object {pid!r}")


class _Refused(pickle.UnpicklingError):
    pass


def load(file: Path, content: bytes | None = None, record: str | None = None) -> Any:
    """Read a pickle of Python 2 or 3 that holds numpy arrays, numbers, texts and plain containers.

    Parameters
    ----------
    content
        The bytes of a pickle that lies inside ``file``; by default the file itself is read.
    record
        Place inside the file, for the error.

    Returns
    -------
    Any
        Texts of Python 2 are decoded as latin1.

    Raises
    ------
    DataError
        The pickle is cut short or damaged, or names anything else; nothing of it has run.
    """
    try:
        with io.BytesIO(content) if content is not None else file.open("rb") as stream:
            return _Restricted(stream, encoding="latin1").load()
    except _Refused as error:
        raise DataError(
            file,
            record=record,
            found=f"a pickle that asks for {error}",
            expected="numpy arrays, numbers, texts and plain containers alone",
            remedy="Such a file can run any code when it is opened. Do not open it; get it from its publisher again.",
        ) from None
    # Anything can be raised by a stream that is not what it claims to be.
    except Exception as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            file,
            record=record,
            found=f"a damaged or incomplete pickle ({told})",
            expected="a complete one",
            remedy=AGAIN,
        ) from None
