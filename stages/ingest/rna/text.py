"""Files of a set and their lines: which ones there are, compressed or not, UTF-8 or Latin-1, any line end."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from stages.errors import DataError

AGAIN = "Copy or download it again."
BOM = b"\xef\xbb\xbf"


def files_of(path: Path, pattern: str | None, suffixes: Sequence[str]) -> list[Path]:
    """The files of a set in the order of their names; a file named by ``path`` itself is taken whatever its name.

    Raises
    ------
    DataError
        There is no such file.
    """
    if not path.exists():
        raise DataError(
            path,
            found="no such file or folder",
            expected="an RNA set",
            remedy="Correct `path` in params.yaml, or bring the data with `dvc pull`.",
        )
    if path.is_file():
        return [path]
    there = [file for file in path.glob(pattern or "**/*") if file.is_file() and not file.name.startswith(".")]
    chosen = sorted(file for file in there if pattern or plain_suffix(file) in suffixes)
    if not chosen:
        names = ", ".join(sorted(file.name for file in there)[:5]) or "no file"
        raise DataError(
            path,
            found=names,
            expected=f"files {pattern}" if pattern else f"files that end in {', '.join(suffixes)} (or .gz after it)",
            remedy="Correct `path` in params.yaml, or name the files with `format.files`, such as '**/*.txt'.",
        )
    return chosen


def plain_suffix(file: Path) -> str:
    """Suffix of a file's name in lower case, without that of its compression."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def stem(file: Path) -> str:
    """Name of a file without its suffix and that of its compression."""
    name = file.name[: -len(".gz")] if file.name.lower().endswith(".gz") else file.name
    return Path(name).stem


def relative(file: Path, path: Path) -> str:
    """Name of a file inside the set's folder."""
    return file.relative_to(path).as_posix() if path.is_dir() else file.name


@contextmanager
def open_bytes(file: Path) -> Iterator[IO[bytes]]:
    """A file's bytes, unpacked where it is compressed.

    Raises
    ------
    DataError
        The compressed file is damaged or cut short.
    """
    try:
        if file.name.lower().endswith(".gz"):
            with gzip.open(file, "rb") as packed:
                yield cast(IO[bytes], packed)
        else:
            with file.open("rb") as stream:
                yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(file, found=f"a damaged gzip file ({error})", expected="a complete one", remedy=AGAIN) from None


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """Lines of a text file without their ends, each with its number from 1."""
    with open_bytes(file) as stream:
        for number, raw in enumerate(stream, start=1):
            yield number, decoded(raw.removeprefix(BOM) if number == 1 else raw).rstrip("\r\n")


def decoded(raw: bytes) -> str:
    """Text of bytes: UTF-8, and Latin-1 where they are not (names and comments of older databases)."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
