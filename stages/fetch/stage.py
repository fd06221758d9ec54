"""``python -m stages fetch SOURCE``: bring the raw bytes of one source of params.yaml to data/raw/SOURCE."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stages import artifacts, manifest
from stages.fetch.registry import RegistrySource
from stages.fetch.simulator import SimulatorSource
from stages.params import StageParams, bound

READ_ONLY = 0o444

Source = Annotated[RegistrySource | SimulatorSource, Field(discriminator="kind")]


class Params(StageParams):
    """The block of one source."""

    source: Source = bound("sources.{key}")


def run(params: Params, *, name: str, key: str) -> None:
    """Write data/raw/KEY: the files of the source, read-only, and manifest.json.

    Raises
    ------
    StageError, UsageError, DataError
        The bytes cannot be had, or are not what params.yaml pins; data/raw/KEY stays as it was.
    """
    artifacts.remove_abandoned()
    with artifacts.atomic(artifacts.raw(key)) as draft:
        draft.mkdir()
        manifest.write(draft, params.source.write(draft, key))
        for path in draft.rglob("*"):
            if path.is_file():
                path.chmod(READ_ONLY)
