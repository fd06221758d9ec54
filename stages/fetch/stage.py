"""``python -m stages fetch SOURCE``: bring the raw bytes of one source of params.yaml to data/raw/SOURCE."""

from __future__ import annotations

from stages import raw
from stages.fetch.registry import RegistrySource
from stages.params import StageParams, bound


class Params(StageParams):
    """The block of one source."""

    source: RegistrySource = bound("sources.{key}")


def run(params: Params, *, name: str, key: str) -> None:
    """Write data/raw/KEY: the files of the source, read-only, and manifest.json.

    Raises
    ------
    StageError, UsageError, DataError
        The bytes cannot be had, or are not what params.yaml pins; data/raw/KEY stays as it was.
    """
    raw.store(key, lambda draft: params.source.write(draft, key))
