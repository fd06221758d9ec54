from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stages import artifacts
from stages.__main__ import main
from stages.errors import DataError, GateStopped, UsageError
from stages.ingest.land_atmosphere.schema import VARIABLES
from stages.validate import expectations
from stages.validate.land_atmosphere import stage
from stages.validate.land_atmosphere.stage import Params
from tests.validate.land_atmosphere.fakes import four_towers, frame, ingested, month, params, years

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("workspace")


def run(params: Params) -> dict[str, Any]:
    stage.run(params, name="land_atmosphere", key="")
    return written()


def written() -> dict[str, Any]:
    summary: dict[str, Any] = artifacts.read_json(artifacts.validated("land_atmosphere") / "summary.json")
    return summary


def table(name: str) -> pl.DataFrame:
    return artifacts.read_table(artifacts.validated("land_atmosphere") / f"{name}.parquet").collect()


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the four towers went through the gate."""
    folder = tmp_path_factory.mktemp("passed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(four_towers())
    return folder


@pytest.fixture
def towers(passed: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Work in that folder; its summary. Only for reading."""
    monkeypatch.chdir(passed)
    return written()


def test_a_pass_with_quarantine(towers: dict[str, Any]) -> None:
    summary = towers
    assert summary["outcome"] == "pass with quarantine"
    assert (summary["ingested"], summary["accepted"], summary["quarantined"]) == (289, 288, 1)
    assert summary["warned"] == 48
    assert summary["sites"]["us-arm"]["failed"] == {"highest LE": 1}
    assert summary["sites"]["us-arm"]["source"]["licence"] == "CC-BY-4.0"
    assert summary["sites"]["fr-hes"]["source"]["licence"] == "CC0"
    assert summary["sites"]["fr-hes"]["source"]["citation"] == "Hesse 2016"
    assert summary["sites"]["fr-hes"]["about"]["notes"] == ["made up"]
    assert sum(site["accepted"] for site in summary["sites"].values()) == 288
    assert summary["leakage"] == {"by_site": [], "by_year": []}
    verdict = table("verdict")
    assert verdict.height == verdict["record_id"].n_unique() == 289
    (refused,) = verdict.filter(pl.col("outcome") == "quarantined").to_dicts()
    assert refused == {
        "record_id": "us-arm/2012-01",
        "group": "us-arm",
        "outcome": "quarantined",
        "expectation": "highest LE",
        "observed": "2310 W m-2",
        "reason": "LE reaches 2310 W m-2 in us-arm/2012-01; the gate allows -300 to 1000",
        "warnings": None,
    }


def test_every_record_has_a_part_in_both_splits(towers: dict[str, Any]) -> None:
    found = table("splits")
    assert found.columns == ["record_id", "group", "by_site", "by_year"]
    assert sorted(found["record_id"]) == sorted(table("verdict")["record_id"])
    assert found.group_by("group").agg(pl.col("by_site").n_unique())["by_site"].to_list() == [1] * 4
    assert set(found["by_site"]) == {"train", "validation", "test"}
    davos = found.filter(pl.col("group") == "ch-dav").with_columns(year=pl.col("record_id").str.slice(7, 4))
    parts = davos.group_by("by_year").agg(pl.col("year").min(), pl.col("year").max().alias("last")).sort("year")
    assert parts.rows() == [("train", "2013", "2018"), ("validation", "2019", "2020"), ("test", "2021", "2022")]
    described = towers["splits"]
    assert described["by_year"]["notes"] == ["fr-hes: 1 year with accepted records: all train"]
    for name in ("by_site", "by_year"):
        assert sum(part["records"] for part in described[name]["parts"].values()) == towers["accepted"]


def test_too_many_quarantined_months_stop_and_the_verdict_is_kept() -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003), *years("us-arm", 2004, 2004, sw_in_peak_hour=18.0)))
    ingested("ch-dav", frame(*years("ch-dav", 2013, 2022)))
    with pytest.raises(GateStopped) as stopped:
        run(params("us-arm", "ch-dav"))
    assert stopped.value.exit_code == 3
    assert str(stopped.value) == (
        "The gate stops land_atmosphere. us-arm: 12 of 24 records are quarantined (50.0%); the gate allows 20.0%. "
        "Most frequent reasons: shortwave peaks at noon (12 records, first: shortwave radiation peaks at 18:00 local "
        "standard time in us-arm/2004-01; the gate allows 10:00 to 14:00: wrong time zone?). Every record with its "
        "reason stands in data/validated/land_atmosphere/verdict.parquet, the expectations in "
        "data/validated/land_atmosphere/docs/index.html. Mend the data, or change the gate in params.yaml, and run the "
        "stage again."
    )
    assert table("verdict").filter(pl.col("outcome") == "quarantined").height == 12
    assert table("splits").height == 144
    summary = written()
    assert (summary["outcome"], summary["sites"]["ch-dav"]["outcome"]) == ("stop", "pass")
    assert "stop" in (artifacts.validated("land_atmosphere") / "docs" / "us-arm.html").read_text()


def test_a_site_may_allow_more(capsys: pytest.CaptureFixture[str]) -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003), month("us-arm", 2004, 1, maximum_H=1200.0)))
    ingested("us-ar1", frame(*(month("us-ar1", 2003, n, conflicting_stamps=n // 10) for n in range(1, 13))))
    summary = run(params("us-arm", "us-ar1", us_ar1={"gate": {"max_quarantined": 0.3}}))
    assert summary["outcome"] == "pass with quarantine"
    assert summary["sites"]["us-ar1"]["quarantined_share"] == 0.25
    assert summary["sites"]["us-ar1"]["max_quarantined"] == 0.3
    assert capsys.readouterr().out.splitlines() == [
        "us-ar1: pass with quarantine: 9 of 12 months accepted, 0 of them with warnings, 3 quarantined",
        "us-arm: pass with quarantine: 12 of 13 months accepted, 0 of them with warnings, 1 quarantined",
        "all sites: pass with quarantine: 21 of 25 months accepted, 0 of them with warnings, 4 quarantined",
    ]


def test_an_empty_table_stops() -> None:
    ingested("us-arm", frame())
    ingested("ch-dav", frame(*years("ch-dav", 2013, 2013)))
    with pytest.raises(GateStopped, match=r"us-arm/records.parquet has 0 records; the gate asks for at least 1"):
        run(params("us-arm", "ch-dav"))
    summary = written()
    assert summary["sites"]["us-arm"]["quarantined_share"] is None
    assert (summary["ingested"], summary["accepted"]) == (12, 12)


def test_a_table_without_a_column_is_quarantined_whole() -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003)).drop("maximum_LE", "year"))
    with pytest.raises(
        GateStopped, match=r"column year of us-arm/records.parquet is missing; the gate expects integer"
    ):
        run(params("us-arm"))
    assert set(table("verdict")["outcome"]) == {"quarantined"}
    assert set(table("verdict")["observed"]) == {"missing, missing"}
    assert table("splits").height == 12


def test_the_same_content_in_two_parts_is_a_leak_and_stops() -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2012)))
    copied = frame(month("us-arm", 2003, 1))["sha256"][0]
    ingested("us-arm", frame(*years("us-arm", 2003, 2011), month("us-arm", 2012, 1, sha256=copied)))
    with pytest.raises(
        GateStopped, match=r"the split by_\w+ leaks: the same content \(sha256 \w{12}\) in us-arm/2003-01 \(train\)"
    ):
        run(params("us-arm"))
    assert written()["leakage"]["by_year"] != []


def copied(site: str, rows: list[dict[str, Any]], *changed: str) -> list[dict[str, Any]]:
    """The months of another site under this key, with the content of some variables changed."""
    return [
        row
        | {"record_id": f"{site}/{row['record_id'].split('/')[1]}", "group": site}
        | ({"sha256": f"{row['sha256'][::-1]}"} if changed else {})
        | {f"sha256_{variable}": f"{position:064d}" for variable in changed}
        for position, row in enumerate(rows)
    ]


@pytest.mark.parametrize("changed", [(), ("SWC", "G")], ids=["whole", "another choice of two columns"])
def test_a_tower_under_two_names_stops_also_where_both_lie_in_one_part(changed: tuple[str, ...]) -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003)))
    ingested("arm-copy", frame(*copied("arm-copy", years("us-arm", 2003, 2003), *changed)))
    for name, first in (("ch-dav", 2013), ("us-ar1", 2005), ("fr-hes", 2015)):
        ingested(name, frame(*years(name, first, first + 5)))
    for seed in range(20):
        block = params("us-arm", "arm-copy", "ch-dav", "us-ar1", "fr-hes").model_dump()
        tried = Params.model_validate(block | {"splits": block["splits"] | {"seed": seed}})
        with pytest.raises(GateStopped) as stopped:
            run(tried)
        message = (
            "arm-copy and us-arm are the same data under two names: 12 months with equal content, first "
            "arm-copy/2003-01 and us-arm/2003-01; take one of the two out of land_atmosphere.sites"
        )
        assert message in str(stopped.value)
        if written()["leakage"]["by_site"] == [] or changed:
            break
    parts = table("splits").filter(pl.col("group").is_in(["us-arm", "arm-copy"]))
    assert changed or parts["by_site"].n_unique() == 1


def test_two_towers_with_one_instrument_are_noted() -> None:
    ingested("us-ne1", frame(*years("us-ne1", 2003, 2003)))
    others = [name for name in VARIABLES if name != "SW_IN"]
    ingested("us-ne2", frame(*copied("us-ne2", years("us-ne1", 2003, 2003), *others)))
    notes = run(params("us-ne1", "us-ne2"))["splits"]["by_site"]["notes"]
    assert notes[-1] == (
        "us-ne1 and us-ne2 share SW_IN in 12 months, first us-ne1/2003-01 and us-ne2/2003-01: one instrument for two "
        "towers? They may lie in different parts"
    )


def test_a_unit_in_doubt_stops_the_site_until_it_is_corrected_or_trusted() -> None:
    doubt = "VPD is declared in hPa, but the values look like kPa: write `unit: kPa`"
    ingested("us-arm", frame(*years("us-arm", 2003, 2003)), {"VPD": doubt})
    ingested("ch-dav", frame(*years("ch-dav", 2013, 2022)))
    with pytest.raises(GateStopped) as stopped:
        run(params("us-arm", "ch-dav"))
    assert "us-arm: 12 of 12 records are quarantined (100.0%); the gate allows 20.0%" in str(stopped.value)
    assert f"unit of VPD (12 records, first: {doubt}, or, if the unit is right after all" in str(stopped.value)
    assert written()["sites"]["us-arm"]["failed"] == {"unit of VPD": 12}
    assert written()["sites"]["ch-dav"]["outcome"] == "pass"
    assert run(params("us-arm", "ch-dav", us_arm={"gate": {"trusted_units": ["VPD"]}}))["outcome"] == "pass"


def test_the_summary_says_what_a_record_is(towers: dict[str, Any]) -> None:
    assert towers["noun"] == "site-month"


def test_a_month_without_keys_is_quarantined() -> None:
    faulty = month("us-arm", 2004, 1, record_id=None, group=None, year=None, month=None, sha256=None)
    ingested("us-arm", frame(*years("us-arm", 2003, 2003), faulty))
    assert run(params("us-arm"))["sites"]["us-arm"]["failed"] == {
        "record_id present": 1,
        "group present": 1,
        "sha256 present": 1,
        "year present": 1,
    }
    assert table("splits").height == table("verdict").height == 13


def test_a_site_that_was_not_ingested_is_an_error() -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003)))
    with pytest.raises(
        UsageError, match=r"land_atmosphere.sites.ch-dav of params.yaml was not ingested: data/ingested/"
    ):
        run(params("us-arm", "ch-dav"))


def test_half_an_ingested_site_is_an_error() -> None:
    folder = ingested("us-arm", frame(*years("us-arm", 2003, 2003)))
    (folder / "site.json").unlink()
    with pytest.raises(DataError, match=r"us-arm/site.json: found no such file"):
        run(params("us-arm"))
    ingested("us-arm", frame(*years("us-arm", 2003, 2003)))
    (folder / "records.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"us-arm/records.parquet: found no readable table"):
        run(params("us-arm"))


def test_an_ingested_site_that_params_no_longer_name_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003)))
    ingested("old-one", frame(*years("old-one", 2003, 2003)))
    assert run(params("us-arm"))["ingested"] == 12
    assert "data/ingested/land_atmosphere/old-one is not a site of params.yaml" in capsys.readouterr().err


def test_no_site_at_all_stops() -> None:
    with pytest.raises(GateStopped, match=r"land_atmosphere.sites in params.yaml names no site"):
        run(params())
    assert table("verdict").height == table("splits").height == 0


def test_json_holds_null_and_the_pages_need_no_network(towers: dict[str, Any]) -> None:
    assert towers["outcome"] == "pass with quarantine"
    folder = artifacts.validated("land_atmosphere")
    json.loads((folder / "summary.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    pages = sorted(path.name for path in (folder / "docs").glob("*.html"))
    assert pages == ["ch-dav.html", "fr-hes.html", "index.html", "us-ar1.html", "us-arm.html"]
    for page in (folder / "docs").glob("*.html"):
        text = page.read_text()
        assert not re.search(r"https?:|//|<script|@import|url\(", text)
        for target in re.findall(r'href="([^"]+)"', text):
            assert (folder / "docs" / target).is_file()
    arm = (folder / "docs" / "us-arm.html").read_text()
    assert "LE reaches 2310 W m-2 in us-arm/2012-01; the gate allows -300 to 1000" in arm
    assert 'title="2012 01: quarantined"' in arm


def test_text_from_outside_is_escaped_in_the_pages() -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003)))
    run(params("us-arm", us_arm={"citation": "<script>alert(1)</script>"}))
    page = (artifacts.validated("land_atmosphere") / "docs" / "us-arm.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_the_saved_suite_gives_the_verdict_that_was_written(towers: dict[str, Any]) -> None:
    folder = artifacts.validated("land_atmosphere")
    site = stage.judge_site("us-arm", params("us-arm"))
    saved = json.loads((folder / "docs" / "suites" / "us-arm.json").read_text())
    assert expectations.judge(site.records, saved) == [r for r in site.results if r.rule.name != "columns"]
    assert site.judgement.as_json().items() <= towers["sites"]["us-arm"].items()


PARAMS = """
land_atmosphere:
  sites:
    us-arm: {path: data/external/us-arm, format: base, gate: {max_quarantined: 0.1}}
  gate: {subdaily: {range: {LE: [-300, 1500]}}}
  splits:
    seed: 0
    by_site: {train: 0.6, validation: 0.2, test: 0.2}
    by_year: {train: 0.6, validation: 0.2, test: 0.2}
"""


def test_the_command_ends_with_code_3_when_the_gate_stops_and_2_when_a_limit_is_misspelt(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ingested("us-arm", frame(*years("us-arm", 2003, 2003), month("us-arm", 2004, 1, maximum_LE=1400.0)))
    (workspace / "params.yaml").write_text(PARAMS)
    assert main(["validate", "land_atmosphere"]) == 0
    assert capsys.readouterr().err == ""
    (workspace / "params.yaml").write_text(PARAMS.replace("1500", "1300").replace("0.1}", "0.05}"))
    assert main(["validate", "land_atmosphere"]) == 3
    told = " ".join(capsys.readouterr().err.split())
    assert told.startswith("error: The gate stops land_atmosphere. us-arm: 1 of 13 records are quarantined")
    (workspace / "params.yaml").write_text(PARAMS.replace("max_quarantined", "max_quarantine"))
    assert main(["validate", "land_atmosphere"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "sites.us-arm.gate.max_quarantine is not a known key; did you mean 'max_quarantined'?" in told


PROGRAM = """
import warnings
warnings.simplefilter("error")
import polars as pl
from stages import artifacts
from stages.validate.land_atmosphere import stage
from tests.validate.land_atmosphere.fakes import four_towers
params = four_towers()
for file in artifacts.DATA.rglob("records.parquet"):
    artifacts.write_table(file, pl.read_parquet(file).sample(fraction=1.0, shuffle=True, seed=7))
stage.run(params, name="land_atmosphere", key="")
"""


def test_equal_data_give_equal_bytes_in_another_process_whatever_the_order_of_rows(
    passed: Path, workspace: Path
) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, stdout=subprocess.DEVNULL)
    here, there = (
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (passed / "data" / "validated", workspace / "data" / "validated")
    )
    assert len(here) == 12
    assert here == there
