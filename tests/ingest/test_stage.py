"""The verb: what it writes, that equal input gives equal bytes, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xarray as xr

from stages import artifacts, manifest
from stages.errors import DataError, UsageError
from stages.ingest.land_atmosphere import schema
from stages.ingest.land_atmosphere.stage import Params, run
from tests.ingest.towers import days, fluxnet_name, half_hours, table, write

PARAMS = """\
land_atmosphere:
  aggregation: {min_coverage: 0.75}
  sites:
    de-tha:
      path: raw
      format: fluxnet
      gate: {max_quarantined: 0.3}
    us-arm:
      path: base/tower.csv
      format: {reader: base, utc_offset: -6}
"""


@pytest.fixture
def project(workspace: Path) -> Path:
    write(workspace / "params.yaml", PARAMS)
    columns = {"TA_F": days(40)["TA"], "TA_F_QC": [0] * 40 * 48}
    write(workspace / "raw" / fluxnet_name("HH"), table(half_hours("2014-01-01T00:00", columns)))
    write(workspace / "base" / "tower.csv", table(half_hours("2003-01-01T00:00", days(40))))
    return workspace


def test_ingest_writes_one_folder(project: Path, stages: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = stages("ingest", "land_atmosphere@us-arm", cwd=project)
    assert result.returncode == 0, result.stderr
    assert "2 records" in result.stdout
    folder = project / "data/ingested/land_atmosphere/us-arm"
    assert sorted(path.name for path in folder.iterdir()) == [
        "data.zarr",
        "manifest.json",
        "records.parquet",
        "site.json",
    ]
    records = pl.read_parquet(folder / "records.parquet")
    assert records["record_id"].to_list() == ["us-arm/2003-01", "us-arm/2003-02"]
    with artifacts.open_dataset(folder / "data.zarr", "native") as native:
        assert set(schema.VARIABLES) == set(native.data_vars)
        assert {name: native[name].attrs["units"] for name in schema.VARIABLES} == schema.UNITS
        assert native["time"].values[1] == np.datetime64("2003-01-01T00:30")
        assert native["time"].attrs["utc_offset"] == -6
    with artifacts.open_dataset(folder / "data.zarr", "daily") as daily:
        assert daily.sizes["time"] == 40
        assert daily["P"].values[0] == pytest.approx(sum(days(1)["P"]))
        assert daily["TA_COVERAGE"].values.tolist() == [1.0] * 40
    with artifacts.open_dataset(folder / "data.zarr", "three_day") as three_day:
        assert (three_day["time"].values.astype("datetime64[D]").astype(int) % 3 == 0).all()
    site = json.loads((folder / "site.json").read_text())
    assert site["files"] == ["tower.csv"]
    assert site["variables"]["SWC"] == {
        "source_column": "SWC",
        "source_unit": "percent",
        "unit": "m3 m-3",
        "other_columns": [],
        "filled_column": None,
        "qc_column": None,
        "measured_steps": 40 * 48,
    }
    assert str(project) not in (folder / "site.json").read_text()


def test_equal_input_gives_equal_bytes(project: Path) -> None:
    folder = project / "data/ingested/land_atmosphere/de-tha"
    digests = set()
    for _ in range(2):
        run(Params.read(name="land_atmosphere", key="de-tha"), name="land_atmosphere", key="de-tha")
        digests.add(artifacts.sha256_tree(folder))
    command = [sys.executable, "-m", "stages", "ingest", "land_atmosphere@de-tha"]
    root = str(Path(__file__).parents[2])
    subprocess.run(command, cwd=project, env={"PYTHONPATH": root, "PYTHONHASHSEED": "77"}, check=True)
    digests.add(artifacts.sha256_tree(folder))
    assert len(digests) == 1


@pytest.fixture
def fetched(project: Path) -> Path:
    """The raw folder of de-tha where fetch writes it, with its manifest."""
    folder = project / "data" / "raw" / "tharandt"
    folder.parent.mkdir(parents=True)
    (project / "raw").rename(folder)
    text = (project / "params.yaml").read_text().replace("path: raw", "path: data/raw/tharandt")
    (project / "params.yaml").write_text(text)
    origin = manifest.of_path(folder, "tharandt", licence="CC-BY-4.0", citation="Someone 2015")
    manifest.write(folder, origin.model_copy(update={"kind": "registry", "origin": {"package": "towers"}}))
    return folder


def ingest_tharandt() -> manifest.Manifest | None:
    run(Params.read(name="land_atmosphere", key="de-tha"), name="land_atmosphere", key="de-tha")
    return manifest.read(artifacts.ingested("land_atmosphere", "de-tha"))


@pytest.mark.parametrize("inside", ["", fluxnet_name("HH")])
def test_the_manifest_of_a_fetched_folder_is_kept(project: Path, fetched: Path, inside: str) -> None:
    text = (project / "params.yaml").read_text().replace("data/raw/tharandt", f"data/raw/tharandt/{inside}")
    (project / "params.yaml").write_text(text)
    kept = ingest_tharandt()
    assert kept == manifest.read(fetched)
    assert kept is not None
    assert kept.origin == {"package": "towers"}


def test_fetched_bytes_that_were_changed_are_refused(fetched: Path) -> None:
    file = fetched / fluxnet_name("HH")
    file.write_text(file.read_text().replace("15", "16", 1))
    with pytest.raises(DataError) as caught:
        ingest_tharandt()
    assert f"data/raw/tharandt: found {file.name} with sha256" in str(caught.value)
    assert "`dvc checkout data/raw/tharandt` or `dvc repro -f fetch@tharandt`" in str(caught.value)
    assert not artifacts.ingested("land_atmosphere", "de-tha").exists()


@pytest.mark.parametrize("text", ["true", '{"name": "an npm package"}', "{"])
def test_a_manifest_of_the_users_own_is_no_evidence(project: Path, text: str) -> None:
    (project / "raw" / "manifest.json").write_text(text)
    kept = ingest_tharandt()
    assert kept is not None
    assert (kept.kind, kept.origin) == ("path", {"path": "raw"})
    assert [file.name for file in kept.files] == [fluxnet_name("HH")]


def test_a_forged_manifest_outside_of_data_raw_gives_no_licence(project: Path) -> None:
    manifest.write(project / "raw", manifest.of_path(project / "raw", "de-tha", licence="CC0", citation="Nobody"))
    kept = ingest_tharandt()
    assert kept is not None
    assert (kept.source, kept.licence, kept.citation) == ("land_atmosphere@de-tha", None, None)


def test_a_unit_in_doubt_stands_in_site_json_and_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"VPD_F": (np.array(days(40)["VPD"]) / 10).tolist(), "VPD_F_QC": [0] * 40 * 48}
    write(project / "raw" / fluxnet_name("HH"), table(half_hours("2014-01-01T00:00", columns)))
    ingest_tharandt()
    site = artifacts.read_json(artifacts.ingested("land_atmosphere", "de-tha") / "site.json")
    assert list(site["contradictions"]) == ["VPD"]
    told = capsys.readouterr().err
    assert told.startswith(f"warning: de-tha: {site['contradictions']['VPD']}. The gate refuses the site unless")
    assert "unit: kPa" in told


def test_notes_are_told_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"TA_F": [1.0, 2.0], "TA_F_QC": [0, 0], "SWC_ROOT": [1, 2]}
    write(project / "raw" / fluxnet_name("HH"), table(half_hours("2014-01-01T00:00", columns)))
    ingest_tharandt()
    assert capsys.readouterr().err == (
        "note: de-tha: SWC: not read, for no column has a name the format knows; there are SWC_ROOT. "
        "If one is right, name it: `columns: {SWC: SWC_ROOT}`.\n"
    )


def test_a_failure_leaves_the_old_output(
    project: Path, stages: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert stages("ingest", "land_atmosphere@de-tha", cwd=project).returncode == 0
    before = artifacts.sha256_tree(project / "data/ingested")
    file = project / "raw" / fluxnet_name("HH")
    file.write_text(file.read_text()[:-9])
    result = stages("ingest", "land_atmosphere@de-tha", cwd=project)
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: raw/{fluxnet_name('HH')}, line 1921: found")
    assert "Traceback" not in result.stderr
    assert artifacts.sha256_tree(project / "data/ingested") == before


def test_coarse_data_has_no_daily_group_and_says_so(project: Path) -> None:
    (project / "raw" / fluxnet_name("HH")).unlink()
    columns = {"TIMESTAMP": ["201401", "201402"], "TA_F": [1, 2], "TA_F_QC": [1, 1]}
    write(project / "raw" / fluxnet_name("MM"), table(columns))
    run(Params.read(name="land_atmosphere", key="de-tha"), name="land_atmosphere", key="de-tha")
    store = project / "data/ingested/land_atmosphere/de-tha/data.zarr"
    with artifacts.open_dataset(store, "native") as native:
        assert native["TA"].values.tolist() == [1, 2]
    with pytest.raises((FileNotFoundError, KeyError, ValueError)):
        artifacts.open_dataset(store, "daily")
    notes = json.loads((store.parent / "site.json").read_text())["notes"]
    assert "the resolution is a month: there are no daily and three-day values." in notes


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "format: fluxnet",
            "format: fluxnett",
            "sites.de-tha.format.reader: found 'fluxnett'; no reader has this name; did",
        ),
        (
            "format: fluxnet",
            "format: {reader: base, columns: {VPD: {column: VPD_F, unit: bar}}}",
            "sites.de-tha.format.columns.VPD.unit: found 'bar'; unit 'bar' is not known for VPD; known are: hPa, mbar",
        ),
        ("format: fluxnet", "format: {reader: fluxnet, resolutoin: DD}", "did you mean 'resolution'?"),
        ("format: fluxnet", "format: {reader: table}", "time is missing"),
        ("min_coverage: 0.75", "min_coverage: 75", "aggregation.min_coverage"),
        ("format: fluxnet", "format: {reader: fluxnet, utc_offset: 25}", "utc_offset"),
        ("path: raw", "pth: raw", "no key 'path'"),
    ],
)
def test_a_wrong_block_is_named_by_its_key(project: Path, old: str, new: str, words: str) -> None:
    text = (project / "params.yaml").read_text()
    (project / "params.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        Params.read(name="land_atmosphere", key="de-tha")
    assert words in str(caught.value)


def test_the_schema_needs_nothing_but_the_standard_library() -> None:
    code = f"import sys; sys.modules.update(dict.fromkeys({['numpy', 'polars', 'xarray', 'pydantic']!r})); "
    code += "import stages.ingest.land_atmosphere.schema"
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": root})


def test_groups_of_a_store_are_readable_by_plain_xarray(project: Path) -> None:
    run(Params.read(name="land_atmosphere", key="us-arm"), name="land_atmosphere", key="us-arm")
    store = project / "data/ingested/land_atmosphere/us-arm/data.zarr"
    with xr.open_zarr(store, group="native", consolidated=False) as dataset:
        assert dataset["SWC"].attrs["units"] == "m3 m-3"
