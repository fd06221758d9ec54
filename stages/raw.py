"""data/raw/NAME: raw bytes with their manifest, read-only, whoever brought or wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stages import artifacts, manifest
from stages.errors import StageError
from stages.manifest import Manifest

READ_ONLY = 0o444


def store(key: str, write: Callable[[Path], Manifest]) -> None:
    """Let ``write`` fill an empty folder and describe it; the folder becomes data/raw/KEY, read-only.

    An error in ``write`` leaves data/raw/KEY as it was.
    """
    artifacts.remove_abandoned()
    with artifacts.atomic(artifacts.raw(key)) as draft:
        draft.mkdir()
        manifest.write(draft, write(draft))
        for path in draft.rglob("*"):
            if path.is_file():
                path.chmod(READ_ONLY)


def simulate(key: str, write: Callable[[Path], None], *, module: str, seed: int, options: dict[str, Any]) -> None:
    """Write data/raw/KEY with a program of this project; its manifest says `simulator`.

    Parameters
    ----------
    write
        Writes files into an empty folder; equal options and seed give equal bytes.
    module, seed, options
        What the manifest says of their origin.

    Raises
    ------
    StageError
        No file was written.
    """

    def described(folder: Path) -> Manifest:
        write(folder)
        written = sorted(path for path in folder.rglob("*") if path.is_file())
        if not written:
            raise StageError(f"{key}: {module} wrote no file. Correct its options, or the program.")
        return Manifest(
            source=key,
            kind="simulator",
            origin={"module": module, "seed": seed, "options": options},
            files=tuple(manifest.hash_file(path, path.relative_to(folder).as_posix()) for path in written),
        )

    store(key, described)
