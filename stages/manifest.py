"""manifest.json: what a folder of raw bytes is, where it comes from and on whose terms.

One schema serves a fetched package, a simulator and a user's own folder. Equal content gives equal bytes: it holds no
times and no path of a machine other than the one a user wrote in params.yaml.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from stages import artifacts
from stages.errors import DataError
from stages.params import Config

NAME = "manifest.json"
AGAIN = "Run the stage that wrote the folder again."


class File(Config):
    """One file: its name relative to the folder, its size, its digest, and the archive member it was."""

    name: str
    bytes: int
    sha256: str
    member: str | None = None


class Manifest(Config):
    """Origin, content and terms of one source.

    ``origin`` holds for a registry the package, version, archive and sha256; for a simulator the module, seed and
    options; for a user's own data the path as written in params.yaml.
    """

    source: str
    kind: Literal["registry", "simulator", "path"]
    origin: dict[str, JsonValue]
    files: tuple[File, ...]
    licence: str | None = None
    citation: str | None = None

    @property
    def bytes(self) -> int:
        """Size of all files together."""
        return sum(file.bytes for file in self.files)


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into its folder, files in the order of their names."""
    ordered = manifest.model_copy(update={"files": tuple(sorted(manifest.files, key=lambda file: file.name))})
    artifacts.write_json(folder / NAME, ordered.model_dump(mode="json", exclude_none=True))


def read(folder: Path, *, remedy: str = AGAIN) -> Manifest | None:
    """The manifest of a folder, or None where there is none.

    Raises
    ------
    DataError
        The file is no manifest; the message names the first fault.
    """
    file = folder / NAME
    try:
        tree: Any = artifacts.read_json(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(file, found=f"text that is not JSON ({error})", expected="a manifest", remedy=remedy) from None
    try:
        return Manifest.model_validate(tree)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"]) or "the top level"
        raise DataError(
            file, record=place, found=f"{fault['input']!r}", expected=f"a manifest ({fault['msg']})", remedy=remedy
        ) from None


def verify(folder: Path, expected: Manifest | None = None, *, remedy: str = AGAIN) -> Manifest:
    """Check that a folder holds exactly the files of its manifest, each with its digest.

    Parameters
    ----------
    folder
        A folder, or the single file that a manifest of kind ``path`` describes.
    expected
        The manifest to check against; by default the one in the folder.
    remedy
        What the user can do about a fault.

    Raises
    ------
    DataError
        All missing, changed and unlisted files are named at once.
    """
    manifest = expected or read(folder, remedy=remedy)
    if manifest is None:
        raise DataError(folder, found=f"no {NAME}", expected="a folder that fetch or ingest wrote", remedy=remedy)
    base = folder.parent if folder.is_file() else folder
    present = {folder.name} if folder.is_file() else {name for name, _ in _walk(folder)}
    faults = []
    for file in manifest.files:
        if file.name not in present:
            faults.append(f"{file.name} missing")
        elif (found := hash_file(base / file.name, file.name)).sha256 != file.sha256:
            faults.append(f"{file.name} with sha256 {found.sha256} instead of {file.sha256}")
    unlisted = sorted(present - {file.name for file in manifest.files})
    if unlisted:
        faults.append(f"{', '.join(unlisted)} not listed in the manifest")
    if faults:
        raise DataError(folder, found="; ".join(faults), expected="the files of its manifest, unchanged", remedy=remedy)
    return manifest


def of_path(path: Path, source: str, *, licence: str | None = None, citation: str | None = None) -> Manifest:
    """Describe a user's own folder or file where it lies; nothing is copied.

    Hidden files, DVC's pointers (``*.dvc``) and an earlier manifest.json do not count. Links are followed.

    Raises
    ------
    DataError
        The path is missing, empty or unreadable, holds a broken or circular link, or a file that is none (a socket).
    """
    if not path.exists():
        found = "a link that points nowhere" if path.is_symlink() else f"no such file or folder in {Path.cwd()}"
        raise DataError(
            path,
            found=found,
            expected=f"the data of {source}",
            remedy="Correct the path in params.yaml, or bring the data with `dvc pull`.",
        )
    if path.is_dir():
        files = tuple(hash_file(file, name) for name, file in sorted(_walk(path)))
    else:
        files = (hash_file(path, path.name),)
    if not files:
        raise DataError(
            path,
            found="no file (hidden files, *.dvc and manifest.json do not count)",
            expected=f"the data of {source}",
            remedy="Put the data there, or correct the path in params.yaml.",
        )
    return Manifest(
        source=source,
        kind="path",
        origin={"path": path.as_posix()},
        files=files,
        licence=licence,
        citation=citation,
    )


def hash_file(path: Path, name: str, *, member: str | None = None) -> File:
    """Size and digest of a file's bytes, line endings included, read once."""
    _checked_name(path, name)
    digest = hashlib.sha256()
    size = 0
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(
                path,
                found="a socket, pipe or device",
                expected="a regular file",
                remedy="Move it out of the data's folder.",
            )
        with path.open("rb") as stream:
            while block := stream.read(artifacts.HASH_BLOCK):
                digest.update(block)
                size += len(block)
    except FileNotFoundError:
        raise DataError(
            path,
            found="a link that points nowhere" if path.is_symlink() else "a file that vanished while it was read",
            expected="a readable file",
            remedy="Restore what it points to, or delete it.",
        ) from None
    except OSError as error:
        raise DataError(
            path,
            found=f"a file that cannot be read ({error.strerror})",
            expected="a readable file",
            remedy=f"Give the user who runs Braid the right to read it (`ls -l {path}`).",
        ) from None
    return File(name=name, bytes=size, sha256=digest.hexdigest(), member=member)


def _checked_name(path: Path, name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise DataError(
            ascii(str(path)), found="a name that is not UTF-8", expected="a UTF-8 name", remedy="Rename the file."
        ) from None


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and path of each file of a folder that counts as data."""

    def refuse(error: OSError) -> None:
        raise DataError(
            str(error.filename),
            found=f"a folder that cannot be read ({error.strerror})",
            expected="a readable folder",
            remedy="Give the user who runs Braid the right to read it.",
        ) from None

    for place, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        here = Path(place)
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            if (here / name).is_symlink() and here.resolve().is_relative_to((here / name).resolve()):
                raise DataError(
                    here / name,
                    found="a link to a folder that contains it",
                    expected="a folder of files",
                    remedy="Remove the link.",
                )
        for name in names:
            relative = (here / name).relative_to(folder).as_posix()
            if not name.startswith(".") and not name.endswith(".dvc") and relative != NAME:
                yield relative, here / name
