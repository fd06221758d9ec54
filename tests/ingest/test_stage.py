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
from stages.errors import UsageError
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


def test_the_manifest_of_a_fetched_folder_is_kept(project: Path) -> None:
    fetched = manifest.of_path(project / "raw", "de-tha", licence="CC-BY-4.0", citation="Someone 2015")
    manifest.write(project / "raw", fetched)
    run(Params.read(name="land_atmosphere", key="de-tha"), name="land_atmosphere", key="de-tha")
    kept = manifest.read(project / "data/ingested/land_atmosphere/de-tha")
    assert kept == fetched


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
        ("format: fluxnet", "format: fluxnett", "sites.de-tha.format"),
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
