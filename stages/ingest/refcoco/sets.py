"""Open a set in any of the layouts."""

from __future__ import annotations

from pathlib import Path

from stages.errors import DataError
from stages.ingest.refcoco import config
from stages.ingest.refcoco.annotations import RefSet
from stages.ingest.refcoco.config import AnyFormat


def open_set(path: Path, options: AnyFormat, key: str = "") -> RefSet:
    """Read the tables of a set; its images are read one by one later.

    Parameters
    ----------
    path
        Folder of the set, as it was unpacked.
    options
        The block ``format`` of params.yaml.
    key
        Name of the set in params.yaml.

    Raises
    ------
    DataError
        The files are not laid out as the format says, or contradict each other.
    """
    if not path.is_dir():
        raise DataError(
            path,
            found="a file" if path.exists() else "no such folder",
            expected=f"a set of referring segmentation in the layout `{options.reader}`",
            remedy="Correct `path` in params.yaml, or bring the data with `dvc pull`.",
        )
    match options:
        case config.Refer():
            from stages.ingest.refcoco import refer

            return refer.open_refer(path, options, key)
        case config.Coco():
            from stages.ingest.refcoco import coco

            return coco.open_coco(path, options, key)
