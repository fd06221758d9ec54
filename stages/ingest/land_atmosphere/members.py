"""The files of a tower: in a folder, inside zip archives, or compressed with gzip."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from stages.errors import DataError

Kind = Literal["text", "parquet", "netcdf", "xlsx"]

HEAD_BYTES = 1 << 16
SKIPPED_SUFFIXES = (".dvc", ".md", ".pdf", ".html", ".png", ".json", ".ini", ".yml", ".yaml")
AGAIN = "Fetch or copy the file again; it is damaged."


@dataclass(frozen=True, order=True)
class Member:
    """One file that may hold data; ``inner`` is its name inside a zip archive."""

    name: str
    path: Path
    inner: str | None = None

    @property
    def label(self) -> str:
        """The file as an error names it: its path as in params.yaml, and the name inside an archive."""
        return self.path.as_posix() if self.inner is None else f"{self.path.as_posix()}!{self.inner}"

    @property
    def base(self) -> str:
        """File name without folders and without a gzip suffix."""
        return PurePosixPath(self.inner or self.path.name).name.removesuffix(".gz")

    def size(self) -> int:
        """Size on disk, or uncompressed inside the archive."""
        if self.inner is None:
            return self.path.stat().st_size
        with zipfile.ZipFile(self.path) as archive:
            return archive.getinfo(self.inner).file_size

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open for reading, decompressed.

        Raises
        ------
        DataError
            The archive is cut short or damaged.
        """
        try:
            if self.inner is not None:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.inner) as stream:
                    yield _decompressed(stream, self.inner)
            else:
                with self.path.open("rb") as stream:
                    yield _decompressed(stream, self.path.name)
        except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DataError(
                self.label,
                found=f"a damaged or incomplete archive ({error})",
                expected="a complete zip or gzip file",
                remedy=AGAIN,
            ) from None
        except RuntimeError as error:
            if "password" not in str(error):
                raise
            raise DataError(
                self.label, found="an encrypted archive", expected="a readable one", remedy="Unpack it first."
            ) from None

    def head(self) -> bytes:
        """The first bytes, decompressed."""
        with self.open() as stream:
            return stream.read(HEAD_BYTES)

    def everything(self) -> io.BytesIO:
        """All bytes in memory, for formats that need to seek."""
        with self.open() as stream:
            return io.BytesIO(stream.read())


def _decompressed(stream: IO[bytes], name: str) -> IO[bytes]:
    return gzip.GzipFile(fileobj=stream) if name.lower().endswith(".gz") else stream  # type: ignore[return-value]


def members(path: Path) -> list[Member]:
    """All files under a folder, or the one file; zip archives are looked into.

    A file that lies both unpacked and inside an archive under the same name is taken once, unpacked.

    Raises
    ------
    DataError
        The path does not exist, or holds no file.
    """
    if not path.exists():
        raise DataError(
            path,
            found="no such file or folder",
            expected="the data of the tower",
            remedy="Correct `path` in params.yaml, or bring the data with `dvc pull`.",
        )
    loose = [path] if path.is_file() else sorted(_walk(path))
    root = path.parent if path.is_file() else path
    found: list[Member] = []
    for file in loose:
        name = file.relative_to(root).as_posix()
        if file.suffix.lower() == ".zip":
            found.extend(_zipped(file, name))
        else:
            found.append(Member(name, file))
    unpacked = {member.base for member in found if member.inner is None}
    found = [member for member in found if member.inner is None or member.base not in unpacked]
    if not found:
        raise DataError(path, found="no file", expected="the data of the tower", remedy="Put the files there.")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if not name.startswith(".") and not name.lower().endswith(SKIPPED_SUFFIXES):
                yield Path(place) / name


def _zipped(file: Path, name: str) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(file) as archive:
            inner_names = sorted(info.filename for info in archive.infolist() if not info.is_dir())
    except zipfile.BadZipFile as error:
        raise DataError(
            file, found=f"a damaged or incomplete zip archive ({error})", expected="a complete one", remedy=AGAIN
        ) from None
    for inner in inner_names:
        hidden = any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(inner).parts)
        if not hidden and not inner.lower().endswith(SKIPPED_SUFFIXES):
            yield Member(f"{name}!{inner}", file, inner)


def kind(member: Member) -> Kind:
    """What a file is, by its first bytes and not by its name.

    Raises
    ------
    DataError
        The file is empty, in UTF-16, or binary of no known kind.
    """
    head = member.head()
    if not head.strip(b"\xef\xbb\xbf \r\n\t"):
        raise DataError(member.label, found="an empty file", expected="a header and data", remedy=AGAIN)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"\x89HDF", b"CDF\x01", b"CDF\x02", b"CDF\x05")):
        return "netcdf"
    if head.startswith(b"PK\x03\x04"):
        if b"xl/" in head or b"[Content_Types].xml" in head or member.base.lower().endswith((".xlsx", ".xlsm")):
            return "xlsx"
        raise DataError(
            member.label, found="a zip archive under another name", expected="a table", remedy="Name it .zip."
        )
    if head.startswith(b"\x1f\x8b"):
        raise DataError(
            member.label, found="a gzip file under another name", expected="a table", remedy="Let its name end in .gz."
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[1:200:2].count(0) > HEAD_ZEROS_OF_UTF16:
        raise DataError(
            member.label,
            found="text in UTF-16",
            expected="text in UTF-8",
            remedy="Convert it: `iconv -f UTF-16 -t UTF-8 OLD > NEW`, or save it as `CSV UTF-8`.",
        )
    if b"\0" in head:
        raise DataError(
            member.label,
            found=f"binary data (first bytes {head[:8]!r})",
            expected="delimited text, parquet, netCDF or xlsx",
            remedy="Give the data file of the tower, or remove this one from the folder.",
        )
    return "text"


HEAD_ZEROS_OF_UTF16 = 40
