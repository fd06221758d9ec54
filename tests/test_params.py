from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from stages.errors import UsageError
from stages.params import Config, StageParams, bound


class Table(Config):
    """A table."""

    reader: Literal["table"] = "table"
    columns: dict[str, str] = Field(default={}, description="name to column")


class Standard(Config):
    """A standard file."""

    reader: Literal["fluxnet"] = "fluxnet"
    resolution: Literal["HH", "DD"] = "HH"


class Twins(Config):
    """How many."""

    repeats: int = Field(default=20, ge=1, description="series for each kind")


class Train(Config):
    """A training."""

    tau_max: int = Field(ge=1)
    twins: Twins = Twins()


class Params(StageParams):
    train: Train = bound("systems.{name}.train")
    format: Table | Standard = bound("sites.{key}.format")


GOOD = """
systems: {pcmci: {train: {tau_max: 5, twins: {repeats: 3}}}}
sites: {us-arm: {format: {reader: table, columns: {SWC: x}}}}
"""


def read(text: str) -> Params:
    Path("params.yaml").write_text(text)
    return Params.read(name="pcmci", key="us-arm")


def test_reads_typed_objects(workspace: Path) -> None:
    params = read(GOOD)
    assert params.train.twins.repeats == 3
    assert params.format == Table(columns={"SWC": "x"})


def test_the_keys_of_a_stage_are_its_params_in_dvc() -> None:
    assert Params.keys(name="pcmci", key="us-arm") == {
        "train": "systems.pcmci.train",
        "format": "sites.us-arm.format",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tau_max", "tau_mx", "systems.pcmci.train.tau_mx is not a known key; did you mean 'tau_max'?"),
        ("tau_max: 5, ", "", "systems.pcmci.train.tau_max is missing."),
        ("repeats", "repeat", "systems.pcmci.train.twins.repeat is not a known key; did you mean 'repeats'?"),
        ("tau_max: 5", "tau_max: many", "systems.pcmci.train.tau_max: found 'many'; input should be a valid integer"),
        (
            "tau_max: 5",
            "tau_max: 0",
            "train.tau_max: found 0; input should be greater than or equal to 1",
        ),
        ("columns", "colums", "sites.us-arm.format.colums is not a known key; did you mean 'columns'?"),
        ("us-arm", "us-amr", "sites.us-arm.format is missing: no key 'us-arm' in sites; did you mean 'us-amr'?"),
        (
            "systems",
            "system",
            "train is missing: no key 'systems' in the top level; did you mean 'system'?",
        ),
    ],
)
def test_a_wrong_key_or_value_is_named(workspace: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read(GOOD.replace(old, new))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "is not valid YAML"),
        ("- a", "found list at the top level; expected a mapping"),
    ],
)
def test_a_broken_file(workspace: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(text)


def test_no_file(workspace: Path) -> None:
    with pytest.raises(UsageError, match="Run the command in the root of the repository"):
        Params.read(name="pcmci", key="us-arm")
