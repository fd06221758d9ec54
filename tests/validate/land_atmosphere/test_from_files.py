"""From the file of a tower through ingest and the gate: faults that only both together can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stages import artifacts
from stages.__main__ import main
from tests.conftest import ROOT
from tests.ingest.towers import days, half_hours, table, write

pytestmark = pytest.mark.usefixtures("workspace")


def gate(sites: dict[str, dict[str, Any]]) -> int:
    """Ingest these sites (blocks of params.yaml) and return the exit code of ``validate``."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["land_atmosphere"]["sites"] = sites
    Path("params.yaml").write_text(yaml.safe_dump(params))
    for site in sites:
        assert main(["ingest", f"land_atmosphere@{site}"]) == 0
    return main(["validate", "land_atmosphere"])


def scaled(variable: str, factor: float) -> dict[str, list[float]]:
    month = days(30)
    month[variable] = [value * factor for value in month[variable]]
    return month


@pytest.mark.parametrize(
    ("variable", "factor", "declared", "right"),
    [("VPD", 0.1, "hPa", "kPa"), ("SWC", 0.01, "percent", "m3 m-3")],
)
def test_a_wrong_unit_stops_the_site_and_the_message_says_what_to_write(
    variable: str, factor: float, declared: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("own/tower.csv"), table(half_hours("2015-06-01T00:00", scaled(variable, factor))))
    assert gate({"xx-own": {"path": "own", "format": "base", "gate": {}}}) == 3
    told = " ".join(capsys.readouterr().err.split())
    assert "xx-own: 1 of 1 records are quarantined (100.0%)" in told
    assert f"unit of {variable} (1 record, first: {variable} is declared in {declared}, but 99.5 % of" in told
    correction = {variable: {"column": variable, "unit": right}}
    assert f"`columns: {{{variable}: {{column: {variable}, unit: {right}}}}}`" in told
    assert gate({"xx-own": {"path": "own", "format": {"reader": "base", "columns": correction}, "gate": {}}}) == 0


def test_one_tower_under_two_keys_stops_though_another_column_was_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    month = days(30)
    columns = month | {"SWC_2": [value + 1 for value in month["SWC"]]}
    write(Path("own/tower.csv"), table(half_hours("2015-06-01T00:00", columns)))
    other = {"reader": "base", "columns": {"SWC": "SWC_2"}}
    assert gate({key: {"path": "own", "format": how, "gate": {}} for key, how in (("aa", "base"), ("bb", other))}) == 3
    assert "aa and bb are the same data under two names: 1 month" in " ".join(capsys.readouterr().err.split())


def test_a_site_with_one_variable_is_warned_of() -> None:
    write(Path("own/tower.csv"), table(half_hours("2015-06-01T00:00", {"TA": days(30)["TA"]})))
    assert gate({"xx-own": {"path": "own", "format": "base", "gate": {}}}) == 0
    summary = artifacts.read_json(artifacts.validated("land_atmosphere") / "summary.json")
    assert summary["sites"]["xx-own"]["failed"] == {"several variables": 1}
