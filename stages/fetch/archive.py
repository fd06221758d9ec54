"""Taking single members out of an archive without trusting it.

Only the members asked for are unpacked; names, kinds and sizes are checked before a byte is written, and bytes are
counted while they are. Permissions and times of the archive are not used. tar (plain, gz, bz2, xz) and zip (wheels).
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

from stages.errors import DataError

BLOCK = 1 << 20
TAR_END = bytes(1024)
NAMES_SEARCHED = 20_000  # difflib needs seconds beyond
OTHER_VERSION = "Pin another version of the package, or tell its authors."
TRUNCATED = (
    "Delete the file if it is your own copy; the digest in params.yaml is that of a damaged archive, so pin another."
)


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


@dataclass(frozen=True)
class Request:
    """Members to take out of one archive.

    Attributes
    ----------
    topped
        The members lie below one folder that their names leave out (an sdist's ``name-version/``).
    max_bytes
        The most that may come out: of a zip's members together, of a tar as a whole (it is read from its beginning).
    """

    archive: Path
    members: tuple[str, ...]
    topped: bool
    max_bytes: int

    def fault(self, member: str | None, found: str, expected: str, remedy: str = OTHER_VERSION) -> DataError:
        """An error that names the archive and the member."""
        record = None if member is None else f"member {member!r}"
        return DataError(self.archive.name, record=record, found=found, expected=expected, remedy=remedy)

    def wanted(self, stored: str) -> str | None:
        """The member asked for that an entry of the archive is."""
        name = self.plain(stored)
        return name if name in self.members else None

    def plain(self, stored: str) -> str:
        """Name of an entry as params.yaml writes it."""
        name = stored.removeprefix("./")
        return name.partition("/")[2] if self.topped else name


def file_names(members: Sequence[str]) -> dict[str, str]:
    """File name by member: its last part; if two members share theirs, every member keeps its whole path."""
    bases = {member: PurePosixPath(member).name for member in members}
    distinct = {base.casefold() for base in bases.values()}
    return bases if len(distinct) == len(members) else {member: member for member in members}


def unsafe(name: str) -> str | None:
    """Why a member name must not become a path below a folder, or None."""
    if name.startswith("/"):
        return "an absolute path"
    parts = name.split("/")
    if ".." in parts:
        return "a path with '..'"
    if "" in parts or "." in parts:
        return "a path with an empty part or '.'"
    if "\\" in name or ":" in name or not name.isprintable():
        return "a path with a backslash, a colon or an unprintable character"
    return None


def extract(request: Request, folder: Path) -> dict[str, Path]:
    """Write the members into a folder.

    Returns
    -------
    dict
        The path written, by member.

    Raises
    ------
    DataError
        A member is missing (the nearest names are listed), unsafe, no regular file, encrypted or too large, or the
        archive is truncated or damaged.
    """
    for member in request.members:
        if reason := unsafe(member):
            raise request.fault(member, reason, "a path below the archive's top", "Correct `members` in params.yaml.")
    targets = {member: folder / name for member, name in file_names(request.members).items()}
    with _reading(request), request.archive.open("rb") as stream:
        head = stream.read(512)
        stream.seek(0)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            _unzip(request, stream, targets)
        else:
            _untar(request, _decompressed(request, stream, head), targets)
    return targets


@contextmanager
def _reading(request: Request) -> Iterator[None]:
    """Turn what the decompressors raise into one error; errors of the disk pass."""
    try:
        yield
    except EOFError as error:
        raise request.fault(None, f"a truncated archive ({error})", "a whole archive", TRUNCATED) from error
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise request.fault(None, f"a damaged archive ({error})", "a whole archive", TRUNCATED) from error
    except NotImplementedError as error:
        raise request.fault(
            None, f"a compression that Python cannot undo ({error})", "deflate, bzip2 or lzma"
        ) from error


def _decompressed(request: Request, stream: IO[bytes], head: bytes) -> Readable:
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(stream)
    if head.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(stream)
    if head[257:262] == b"ustar":
        return stream
    raise request.fault(
        None,
        f"a file that begins with {head[:16]!r}",
        "a zip, a wheel or a tar (plain, gz, bz2, xz)",
        "Check package, version and sha256 in params.yaml.",
    )


class _Counted:
    """A stream that refuses to give more than a limit and remembers how it ended."""

    def __init__(self, stream: Readable, request: Request) -> None:
        self.stream = stream
        self.request = request
        self.count = 0
        self.tail = b""

    def read(self, size: int, /) -> bytes:
        block = self.stream.read(size)
        self.count += len(block)
        if self.count > self.request.max_bytes:
            raise _too_large(self.request, None, f"more than {self.request.max_bytes} bytes when decompressed")
        self.tail = (self.tail + block)[-len(TAR_END) :]
        return block


def _untar(request: Request, stream: Readable, targets: dict[str, Path]) -> None:
    counted = _Counted(stream, request)
    names: list[str] = []
    done: set[str] = set()
    with tarfile.open(fileobj=cast(IO[bytes], counted), mode="r|", bufsize=BLOCK) as tar:
        for entry in tar:
            names.append(request.plain(entry.name))
            member = request.wanted(entry.name)
            if member is None:
                continue
            _once(request, member, done)
            if not entry.isreg():
                raise request.fault(member, _tar_kind(entry), "a regular file")
            content = tar.extractfile(entry)
            assert content is not None  # it is a regular file
            _copy(request, member, content, targets[member], entry.size, request.max_bytes)
    # tarfile stops at the end marker; what decompressors check (CRC, length) stands behind it.
    while counted.read(BLOCK):
        pass
    if len(done) < len(targets) and counted.tail != TAR_END:
        raise request.fault(None, "an archive without tar's end marker", "a whole archive", TRUNCATED)
    _all_there(request, done, names)


def _tar_kind(entry: tarfile.TarInfo) -> str:
    if entry.issym():
        return f"a symbolic link to {entry.linkname!r}"
    if entry.islnk():
        return f"a hard link to {entry.linkname!r}"
    return "a folder" if entry.isdir() else "a device or pipe"


def _unzip(request: Request, stream: IO[bytes], targets: dict[str, Path]) -> None:
    done: set[str] = set()
    left = request.max_bytes
    with zipfile.ZipFile(stream) as archive:
        for entry in archive.infolist():
            member = request.wanted(entry.filename)
            if member is None:
                continue
            _once(request, member, done)
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "a folder, device or pipe"
                raise request.fault(member, kind, "a regular file")
            if entry.flag_bits & 0x1:
                raise request.fault(member, "an encrypted member", "a readable one")
            with archive.open(entry) as content:
                left -= _copy(request, member, content, targets[member], entry.file_size, left)
        names = [request.plain(name) for name in archive.namelist()]
    _all_there(request, done, names)


def _once(request: Request, member: str, done: set[str]) -> None:
    if member in done:
        raise request.fault(member, "the member twice", "one member of that name")
    done.add(member)


def _copy(request: Request, member: str, content: IO[bytes], target: Path, declared: int, limit: int) -> int:
    """Write one member; returns its size."""
    if declared > limit:
        raise _too_large(request, member, f"a member of {declared} bytes")
    target.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with target.open("xb") as output:
        while block := content.read(BLOCK):
            count += len(block)
            if count > limit:
                raise _too_large(request, member, f"more than the {declared} bytes declared")
            output.write(block)
    if count != declared:
        raise request.fault(member, f"{count} bytes", f"the {declared} bytes it declares", TRUNCATED)
    return count


def _too_large(request: Request, member: str | None, found: str) -> DataError:
    return request.fault(
        member,
        found,
        f"at most {request.max_bytes} bytes (`max_bytes`)",
        "If the archive really is that large, raise `max_bytes` of the source in params.yaml.",
    )


def _all_there(request: Request, done: Iterable[str], names: list[str]) -> None:
    for member in request.members:
        if member not in set(done):
            near = _nearest(member, [name for name in names if name and not name.endswith("/")])
            hint = f"The nearest: {', '.join(near)}." if near else f"It holds {len(names)} members, none alike."
            below = "below the archive's top folder" if request.topped else "in the archive"
            raise request.fault(member, f"no such member {below}", "one", f"{hint} Correct `members` in params.yaml.")


def _nearest(member: str, names: list[str]) -> list[str]:
    same = [name for name in names if PurePosixPath(name).name == PurePosixPath(member).name]
    alike = difflib.get_close_matches(member, names[:NAMES_SEARCHED], n=3, cutoff=0.5)
    return list(dict.fromkeys([*same, *alike]))[:3]
