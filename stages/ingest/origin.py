"""Where the files of a data set come from: the manifest of the fetched source, or a description of the user's files."""

from __future__ import annotations

from pathlib import Path

from stages import artifacts, manifest
from stages.manifest import Manifest


def origin(path: Path, dataset: str) -> Manifest:
    """The manifest to keep beside a data set that was made from ``path``.

    Parameters
    ----------
    path
        File or folder named in params.yaml.
    dataset
        ``DOMAIN@KEY``, the source's name where the files are the user's own.

    Raises
    ------
    DataError
        The folder does not hold the bytes that were fetched, or no data.
    """
    return fetched(path) or manifest.of_path(path, dataset)


def fetched(path: Path) -> Manifest | None:
    """The manifest of the source under data/raw/ that a path lies in, checked against the bytes; None elsewhere.

    Outside data/raw/ a manifest.json is some file of the user's: it is no evidence of where the data come from.

    Raises
    ------
    DataError
        The folder does not hold the bytes that were fetched.
    """
    raw = artifacts.raw("").resolve()
    if not path.resolve().is_relative_to(raw) or path.resolve() == raw:
        return None
    source = path.resolve().relative_to(raw).parts[0]
    folder = artifacts.raw(source)
    if not (folder / manifest.NAME).is_file():
        return None
    remedy = (
        f"Bring the fetched bytes back with `dvc checkout {folder}` or `dvc repro -f fetch@{source}`; data of your own "
        "belong outside data/raw/."
    )
    return manifest.verify(folder, remedy=remedy)
