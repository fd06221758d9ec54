"""The block ``format``: what it takes, and what each mistake is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stages.errors import UsageError
from stages.ingest.traffic import config
from stages.ingest.traffic.stage import Params


def parsed(format_: Any) -> Any:
    tree = {"traffic": {"sets": {"lab": {"path": "raw", "format": format_, "gate": {}}}}}
    return Params.parse(tree, name="traffic", key="lab", file=Path("params.yaml")).format


def test_a_bare_name_is_short_for_the_reader() -> None:
    assert parsed("lanes") == config.Lanes(reader="lanes")
    assert parsed("hdf") == config.Hdf(reader="hdf")
    assert parsed("hdf").unit == "mph"
    assert parsed("pems").variables == ("flow", "occupancy", "speed")


def test_no_set_has_a_null_value_unless_it_is_said() -> None:
    assert [parsed(name).null_value for name in ("hdf", "pems", "libcity", "lanes")] == [None] * 4
    assert parsed({"reader": "hdf", "null_value": 0}).null_value == 0


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "UTC", "-08:00", "+0530"])
def test_zones(zone: str) -> None:
    assert parsed({"reader": "hdf", "timezone": zone}).timezone == zone


@pytest.mark.parametrize(
    ("format_", "told"),
    [
        ("hdff", "no reader has this name; did you mean 'hdf'?"),
        ({"reader": "hdf", "nul_value": 0}, "nul_value is not a known key; did you mean 'null_value'?"),
        ({"reader": "hdf", "timezone": "California"}, "is no time zone; expected a name such as America/Los_Angeles"),
        ({"reader": "hdf", "variable": "flow"}, "a flow is in veh/h, veh/step, not in mph"),
        ({"reader": "hdf", "step_minutes": 7}, "a step must divide a day of 1440 minutes"),
        ({"reader": "wide", "unit": "mph"}, "give either `time` (column of the stamps) or `clock`"),
        ({"reader": "wide", "time": "t"}, "unit is missing"),
        ({"reader": "wide", "unit": "mph", "time": "t", "rows": "sensor"}, "has no column of stamps"),
        ({"reader": "lanes", "lane_column": "(lane"}, "is no regular expression"),
        ({"reader": "lanes", "lane_column": r"(?P<road>\d+)"}, "must have a group (?P<lane>...)"),
        ({"reader": "basicts"}, "unit is missing"),
    ],
)
def test_mistakes(format_: Any, told: str) -> None:
    with pytest.raises(UsageError, match=r"params\.yaml: traffic\.sets\.lab\.format") as caught:
        parsed(format_)
    assert told in str(caught.value)
